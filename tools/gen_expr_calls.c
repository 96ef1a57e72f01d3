/* gen_expr_calls: prints the table of functions that expressions can call, from rules.def,
 * operands.def, functions.def and spelling.def: for each its parameters as Python spells them,
 * and a C function that calls the one of the library.
 *
 * Run by the build. It exits with 1, and says why, when a parameter of a prototype has no
 * spelling or a spelling no parameter, so that a new operation either can be called or breaks
 * the build. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNTOF(a) ((int)(sizeof(a) / sizeof(*(a))))

/* ---- the tables ------------------------------------------------------------------------------ */

typedef struct row {
    const char *name, *text;
    /* how many operands, the first ones, may be plain numbers; of elementwise operations all */
    int         mixes;
} row;

#define NOTHING(...)
static const row elementwise[] = {
#define UNARY(name, ...) {#name, NULL, 1},
#define BINARY(name, ...) {#name, NULL, 2},
#define TERNARY(name, ...) {#name, NULL, 3},
#include "rules/rules.def"
#undef UNARY
#undef BINARY
#undef TERNARY
};
static const struct { const char *name, *operand[3]; } operands[] = {
#define OPERANDS(name, first, second, third) {#name, {first, second, third}},
#include "rules/operands.def"
};
static const row functions[] = {
#define FAMILY NOTHING
#define FUNCTION(name, parameters, mixes, formula) {#name, parameters, mixes},
#include "rules/functions.def"
};

static const row everywhere[] = {
#define EVERYWHERE(parameter, spelling) {parameter, spelling, 0},
#define SIGNATURE NOTHING
#define ALIAS NOTHING
#define EXTRA NOTHING
#define BY_HAND NOTHING
#define FIRST_RESULT NOTHING
#include "expr/spelling.def"
};
static const row signatures[] = {
#define EVERYWHERE NOTHING
#define SIGNATURE(name, spelling) {#name, spelling, 0},
#define ALIAS NOTHING
#define EXTRA NOTHING
#define BY_HAND NOTHING
#define FIRST_RESULT NOTHING
#include "expr/spelling.def"
};
static const row aliases[] = {
#define EVERYWHERE NOTHING
#define SIGNATURE NOTHING
#define ALIAS(name, function) {#name, #function, 0},
#define EXTRA NOTHING
#define BY_HAND NOTHING
#define FIRST_RESULT NOTHING
#include "expr/spelling.def"
};
static const row extras[] = {
#define EVERYWHERE NOTHING
#define SIGNATURE NOTHING
#define ALIAS NOTHING
#define EXTRA(name, parameters) {#name, parameters, 0},
#define BY_HAND NOTHING
#define FIRST_RESULT NOTHING
#include "expr/spelling.def"
};
static const row by_hand[] = {
#define EVERYWHERE NOTHING
#define SIGNATURE NOTHING
#define ALIAS NOTHING
#define EXTRA NOTHING
#define BY_HAND(name) {#name, "", 0},
#define FIRST_RESULT NOTHING
#include "expr/spelling.def"
};
static const row first_result[] = {
#define EVERYWHERE NOTHING
#define SIGNATURE NOTHING
#define ALIAS NOTHING
#define EXTRA NOTHING
#define BY_HAND NOTHING
#define FIRST_RESULT(name) {#name, "", 0},
#include "expr/spelling.def"
};

static const char *find(const row *rows, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(rows[i].name, name) == 0) return rows[i].text;
    return NULL;
}
#define FIND(table, name) find(table, COUNTOF(table), name)

/* ---- texts ----------------------------------------------------------------------------------- */

enum { TEXT = 400, MOST = 16 };

static void stop(const char *function, const char *what, const char *which) {
    fprintf(stderr, "gen_expr_calls: %s: %s '%s'\n", function, what, which);
    exit(1);
}

/* The next piece of a list, without spaces around it; NULL at its end. */
static const char *piece(const char *list, char *out) {
    const char *end;
    while (*list == ' ' || *list == ',' || *list == '(') list++;
    if (!*list || *list == ')') return NULL;
    end = list + strcspn(list, ",)");
    size_t n = (size_t)(end - list);
    if (n >= TEXT) stop("?", "a parameter is too long:", list);
    memcpy(out, list, n);
    while (n > 0 && out[n - 1] == ' ') n--;
    out[n] = 0;
    return end;
}

typedef struct c_parameter {
    char type[TEXT], name[TEXT];
} c_parameter;

static c_parameter split_type(const char *text) {
    c_parameter p;
    const char *name = text + strlen(text);
    while (name > text && (isalnum((unsigned char)name[-1]) || name[-1] == '_')) name--;
    const char *end = name;
    while (end > text && end[-1] == ' ') end--;
    memcpy(p.type, text, (size_t)(end - text));
    p.type[end - text] = 0;
    strcpy(p.name, name);
    return p;
}

/* ---- parameters as Python has them ----------------------------------------------------------- */

typedef struct parameter {
    char name[TEXT], c_name[TEXT], fallback[TEXT], none[TEXT];
    bool has_fallback, rest;
    const char *takes;
} parameter;

static parameter read_spelling(const char *text) {
    parameter p = {.takes = NULL};
    char      t[TEXT], *cut;
    strcpy(t, text);
    if ((cut = strstr(t, "->"))) {
        strcpy(p.none, cut + 2);
        *cut = 0;
    }
    if ((cut = strchr(t, '='))) {
        strcpy(p.fallback, cut + 1);
        p.has_fallback = true;
        *cut = 0;
    }
    p.rest = t[0] == '*';
    strcpy(p.c_name, t + p.rest);
    if ((cut = strchr(t, ':'))) {
        strcpy(p.c_name, cut + 1);
        *cut = 0;
    }
    strcpy(p.name, t + p.rest);
    return p;
}

/* Parameters of Python that are parts of one of C. */
static const struct { const char *whole, *part, *takes, *field; } parts[] = {
    {"cot_axes", "keepdims", "FLAG", NULL},
    {"int", "upper", "FLAG", "COT_UPPER"}, {"int", "transposed", "FLAG", "COT_TRANSPOSED"},
    {"int", "unit_diagonal", "FLAG", "COT_UNIT_DIAGONAL"}, {"int", "right", "FLAG", "COT_RIGHT"},
    {"cot_conv_options", "stride", "THREE", NULL}, {"cot_conv_options", "padding", "THREE", NULL},
    {"cot_conv_options", "dilation", "THREE", NULL}, {"cot_conv_options", "groups", "INTEGER", NULL},
    {"cot_conv_options", "padding_before", "THREE", NULL}, {"cot_conv_options", "padding_after", "THREE", NULL},
    {"cot_conv_options", "output_padding", "THREE", NULL},
    {"cot_pool_options", "window", "THREE", NULL}, {"cot_pool_options", "stride", "THREE", NULL},
    {"cot_pool_options", "padding", "THREE", NULL}, {"cot_pool_options", "ceil_mode", "FLAG", NULL},
    {"cot_pool_options", "exclude_padding", "FLAG", NULL},
    {"const cot_attention_options *", "mask", "MAYBE", NULL}, {"const cot_attention_options *", "bias", "MAYBE", NULL},
    {"const cot_attention_options *", "causal", "FLAG", NULL}, {"const cot_attention_options *", "scale", "REAL", NULL},
    {"const cot_attention_options *", "first_query", "INTEGER", NULL},
};

static const struct { const char *type, *takes, *field;
} types[] = {
    {"cot_var", "VAR", "var"},
    {"cot_axes", "AXES", "axes"},
    {"cot_shape", "SHAPE", "shape"},
    {"cot_dtype", "DTYPE", "dtype"},
    {"bool", "FLAG", "flag"},
    {"int", "INT", "integer"},
    {"int64_t", "INTEGER", "integer"},
    {"double", "REAL", "number"},
    {"cot_key", "KEY", "key"},
    {"cot__table", "TABLE", "table"},
    {"cot__order", "ORDER", "order"},
    {"const char *", "TEXT", "text"},
    {"const cot_var *", "VARS", "list.xs"},
};

typedef struct function {
    char        name[TEXT];
    c_parameter c[MOST];
    parameter   p[MOST];
    int         n_c, n, mixes;
    bool        elementwise, status, by_hand, first;
} function;

static const char *takes_of(const function *f, const parameter *p) {
    for (int i = 0; i < f->n_c; i++) {
        if (strcmp(f->c[i].name, p->c_name)) continue;
        for (int k = 0; k < COUNTOF(types); k++)
            if (strcmp(types[k].type, f->c[i].type) == 0)
                return p->rest                                                         ? "REST"
                       : k == 0 && p->has_fallback && strcmp(p->fallback, "None") == 0 ? "MAYBE"
                                                                                       : types[k].takes;
    }
    for (int i = 0; i < f->n_c; i++)
        for (int k = 0; k < COUNTOF(parts); k++)
            if (strcmp(parts[k].whole, f->c[i].type) == 0 && strcmp(parts[k].part, p->c_name) == 0)
                return parts[k].takes;
    stop(f->name, "no parameter of C for", p->name);
    return NULL;
}

static int place_of(const function *f, const char *c_name) {
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->p[i].c_name, c_name) == 0) return i;
    return -1;
}

static bool is_out(const c_parameter *c) { return strcmp(c->type, "cot_var *") == 0; }
static bool is_count(const function *f, int i) {
    return strcmp(f->c[i].type, "int") == 0 && i + 1 < f->n_c && strcmp(f->c[i + 1].type, "const cot_var *") == 0;
}

static void add_spelling(function *f, const char *list) {
    char text[TEXT];
    while ((list = piece(list, text))) {
        if (f->n == MOST) stop(f->name, "too many parameters at", text);
        f->p[f->n++] = read_spelling(text);
    }
}

/* An elementwise operation with its prototype, which stands in text. */
static row with_prototype(const row *r, char text[TEXT]) {
    static const char *const usual[] = {"x", "y", "w"};
    const char *const       *names = usual;
    size_t                   used = 0;
    for (int i = 0; i < COUNTOF(operands); i++)
        if (strcmp(operands[i].name, r->name) == 0) names = operands[i].operand;
    for (int k = 0; k < r->mixes; k++)
        used += (size_t)snprintf(text + used, TEXT - used, "%scot_var %s", k ? ", " : "(", names[k]);
    snprintf(text + used, TEXT - used, ")");
    return (row){r->name, text, r->mixes};
}

static void read_function(function *f, const row *r, bool is_elementwise, bool returns_status) {
    char        text[TEXT];
    const char *list = r->text, *own = FIND(signatures, r->name);
    *f = (function){.elementwise = is_elementwise, .status = returns_status, .mixes = r->mixes};
    strcpy(f->name, r->name);
    f->by_hand = FIND(by_hand, r->name) != NULL;
    f->first = FIND(first_result, r->name) != NULL;
    while ((list = piece(list, text))) f->c[f->n_c++] = split_type(text);
    if (own) {
        add_spelling(f, own);
    } else {
        for (int i = 0; i < f->n_c; i++) {
            const c_parameter *c = &f->c[i];
            char               whole[2 * TEXT];
            if (strcmp(c->type, "cot_tape *") == 0 || is_out(c) || is_count(f, i)) continue;
            snprintf(whole, sizeof whole, "%.*s%s%.*s", TEXT, c->type, c->type[strlen(c->type) - 1] == '*' ? "" : " ",
                     TEXT - 2, c->name);
            const char *spelling = FIND(everywhere, whole);
            add_spelling(f, spelling ? spelling : c->name);
        }
    }
    for (int i = 0; i < f->n; i++) f->p[i].takes = takes_of(f, &f->p[i]);
}

/* ---- printing -------------------------------------------------------------------------------- */

static void print_options(const function *f, const char *type) {
    const char *bare = strncmp(type, "const ", 6) == 0 ? type + 6 : type;
    printf("%s(%.*s){", bare != type ? "&" : "", (int)strcspn(bare, " *"), bare);
    for (int k = 0; k < COUNTOF(parts); k++) {
        if (strcmp(parts[k].whole, type)) continue;
        int at = place_of(f, parts[k].part);
        if (at < 0) stop(f->name, "no spelling for", parts[k].part);
        const char *t = parts[k].takes;
        if (strcmp(t, "THREE") == 0)
            printf(".%s = {A[%d].three[0], A[%d].three[1], A[%d].three[2]}, ", parts[k].part, at, at, at);
        else
            printf(".%s = A[%d].%s, ", parts[k].part, at,
                   strcmp(t, "FLAG") == 0    ? "flag"
                   : strcmp(t, "MAYBE") == 0 ? "var"
                   : strcmp(t, "REAL") == 0  ? "number"
                                             : "integer");
    }
    printf("}");
}

static void print_argument(const function *f, int i, int *outs) {
    const c_parameter *c = &f->c[i];
    int                at = place_of(f, c->name), keep = place_of(f, "keepdims");
    if (strcmp(c->type, "cot_tape *") == 0) {
        printf("c->tape");
    } else if (is_out(c)) {
        if (f->first)
            printf("NULL");
        else
            printf("&c->result[%d]", (*outs)++);
    } else if (is_count(f, i)) {
        int list = place_of(f, f->c[i + 1].name);
        if (list < 0) stop(f->name, "no spelling for", f->c[i + 1].name);
        printf("A[%d].list.n", list);
    } else if (strstr(c->type, "_options")) {
        print_options(f, c->type);
    } else if (strcmp(c->type, "int") == 0 && strcmp(c->name, "flags") == 0) {
        for (int k = 0; k < COUNTOF(parts); k++)
            if (strcmp(parts[k].whole, "int") == 0)
                printf("%s(A[%d].flag ? %s : 0)", k > 1 ? " | " : "", place_of(f, parts[k].part), parts[k].field);
    } else if (at < 0) {
        stop(f->name, "no spelling for", c->name);
    } else if (strcmp(c->type, "cot_axes") == 0 && keep >= 0) {
        printf("keep(A[%d].axes, A[%d].flag)", at, keep);
    } else if (strcmp(c->type, "cot_dtype") == 0) {
        printf("cot__dtype_or(c, A[%d].dtype)", at);
    } else {
        for (int k = 0; k < COUNTOF(types); k++)
            if (strcmp(types[k].type, c->type) == 0)
                printf("%sA[%d].%s", strcmp(c->type, "int") == 0 ? "(int)" : "", at, types[k].field);
    }
}

static bool is_tuple(const function *f) {
    for (int i = 0; i < f->n_c; i++)
        if (is_out(&f->c[i])) return !f->first;
    return false;
}

static void print_call(const function *f) {
    int outs = f->status ? 0 : 1;
    if (f->by_hand) return;
    printf("static void call_%s(cot__invocation *c) {\n    ", f->name);
    printf(f->status ? "(cot_%s)(" : "c->result[0] = (cot_%s)(", f->name);
    for (int i = 0; i < f->n_c; i++) {
        if (i) printf(", ");
        print_argument(f, i, &outs);
    }
    printf(");\n    c->results = %d;\n}\n", f->first ? 1 : outs);
}

static void print_parameters(const function *f) {
    printf("static const cot__parameter parameters_%s[] = {\n", f->name);
    for (int i = 0; i < f->n; i++) {
        const parameter *p = &f->p[i];
        bool             flat = strcmp(p->none, "flat") == 0;
        printf("    {\"%s\", TAKES_%s, ", p->name, p->takes);
        if (p->has_fallback)
            printf("\"%s\", ", p->fallback);
        else
            printf("NULL, ");
        printf("%s, %s, %s},\n", p->none[0] && !flat ? p->none : "0", p->none[0] ? "true" : "false",
               flat ? "true" : "false");
    }
    printf("};\n");
}

typedef struct entry {
    const char     *name;
    const function *f;
} entry;

static int by_name(const void *a, const void *b) { return strcmp(((const entry *)a)->name, ((const entry *)b)->name); }

int main(void) {
    static function all[COUNTOF(elementwise) + COUNTOF(functions) + COUNTOF(extras)];
    static entry    entries[COUNTOF(all) + COUNTOF(aliases)];
    int             n = 0, count = 0;
    for (int i = 0; i < COUNTOF(elementwise); i++) {
        char text[TEXT];
        row  r = with_prototype(&elementwise[i], text);
        read_function(&all[n++], &r, true, false);
    }
    /* one that is extra as well has another prototype there */
    for (int i = 0; i < COUNTOF(functions); i++)
        if (!FIND(extras, functions[i].name)) read_function(&all[n++], &functions[i], false, false);
    for (int i = 0; i < COUNTOF(extras); i++) {
        read_function(&all[n], &extras[i], false, false);
        /* of cotangent.h: results through pointers, a status returned */
        all[n].status = is_tuple(&all[n]);
        n++;
    }
    for (int i = 0; i < n; i++) entries[count++] = (entry){all[i].name, &all[i]};
    for (int i = 0; i < COUNTOF(aliases); i++) {
        const function *meant = NULL;
        for (int k = 0; k < n; k++)
            if (strcmp(all[k].name, aliases[i].text) == 0) meant = &all[k];
        if (!meant) stop(aliases[i].name, "no function", aliases[i].text);
        entries[count++] = (entry){aliases[i].name, meant};
    }
    qsort(entries, (size_t)count, sizeof *entries, by_name);
    for (int i = 1; i < count; i++)
        if (strcmp(entries[i - 1].name, entries[i].name) == 0) stop(entries[i].name, "defined twice:", entries[i].name);

    printf("/* Generated by tools/gen_expr_calls.c from src/rules/rules.def, src/rules/functions.def and "
           "src/expr/spelling.def. */\n"
           "#include \"expr/program.h\"\n#include \"expr/by_hand.h\"\n\n#define A c->arg\n\n"
           "static inline cot_axes keep(cot_axes axes, bool keepdims) {\n    axes.keepdims = keepdims;\n    return "
           "axes;\n}\n\n");
    for (int i = 0; i < n; i++) {
        print_parameters(&all[i]);
        print_call(&all[i]);
    }
    printf("\nconst cot__callee cot__callees[] = {\n");
    for (int i = 0; i < count; i++) {
        const function *f = entries[i].f;
        printf("    {\"%s\", %d, parameters_%s, %s%s, %s, %s, %d, \"%s\"},\n", entries[i].name, f->n, f->name,
               f->by_hand ? "cot__by_hand_" : "call_", f->name, f->elementwise ? "true" : "false",
               is_tuple(f) ? "true" : "false", f->mixes, f->name);
    }
    printf("};\nconst int cot__callee_count = %d;\n", count);
    return 0;
}
