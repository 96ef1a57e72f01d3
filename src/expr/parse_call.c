/* parse_call.c: parses f(x, axis=0): finds the function, and the parameter of each argument. All
 * that can be known from the text is checked here. */
#include "expr/emit.h"

#include "base/text.h"

#include <string.h>

const cot__callee *cot__find_callee(const char *name, size_t length) {
    int low = 0, high = cot__callee_count;
    while (low < high) {
        int         middle = (low + high) / 2;
        const char *at = cot__callees[middle].name;
        int         order = strncmp(at, name, length);
        if (order == 0 && at[length] == 0) return &cot__callees[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const char *cot__signature(const cot__callee *f, char *buf, size_t size) {
    cot__text x = cot__text_buffer(buf, size);
    cot__putf(&x, "%s(", f->name);
    for (int i = 0; i < f->n; i++) {
        const cot__parameter *p = &f->parameter[i];
        cot__putf(&x, "%s%s%s", i ? ", " : "", p->takes == TAKES_REST ? "*" : "", p->name);
        if (p->fallback) cot__putf(&x, "=%s", p->fallback);
    }
    cot__put(&x, ")");
    return buf;
}

int         cot__expr_function_count(void) { return cot__callee_count; }
const char *cot__expr_function_name(int i) { return i >= 0 && i < cot__callee_count ? cot__callees[i].name : NULL; }
const char *cot__expr_signature(const char *function, char *buf, size_t size) {
    const cot__callee *f = cot__find_callee(function, strlen(function));
    return f ? cot__signature(f, buf, size) : NULL;
}

const char *cot__expr_behind(const char *name) {
    static const struct { const char *operator, *function;
    } operators[] = {
        {"+", "add"},         {"-", "sub"},           {"*", "mul"},        {"/", "div"},
        {"**", "pow"},        {"@", "matmul"},        {"%", "remainder"},  {"//", "floor_divide"},
        {"<", "less"},        {"<=", "less_equal"},   {">", "greater"},    {">=", "greater_equal"},
        {"==", "equal"},      {"!=", "not_equal"},    {".T", "transpose"}, {"and", "logical_and"},
        {"or", "logical_or"}, {"not", "logical_not"}, {"[]", "slice"},     {"[:]", "slice"},
    };
    const cot__callee *f = cot__find_callee(name, strlen(name));
    for (int i = 0; !f && i < COUNTOF(operators); i++)
        if (strcmp(operators[i].operator, name) == 0) return operators[i].function;
    return f ? f->function : NULL;
}

/* ---- errors ---------------------------------------------------------------------------------- */

#define FAIL(p, start, stop, ...) cot__expr_fail((p)->error, (p)->e->text, (p)->e->length, start, stop, __VA_ARGS__)

/* Names that other languages and books use for functions of this language. */
static const char *other_name(const char *name) {
    static const struct { const char *name, *here;
    } others[] = {
        {"ln", "log(x)"},
        {"lg", "log10(x)"},
        {"fabs", "abs(x)"},
        {"sgn", "sign(x)"},
        {"tg", "tan(x)"},
        {"arctg", "atan(x)"},
        {"cot", "1/tan(x)"},
        {"ctg", "1/tan(x)"},
        {"sec", "1/cos(x)"},
        {"csc", "1/sin(x)"},
        {"sh", "sinh(x)"},
        {"ch", "cosh(x)"},
        {"th", "tanh(x)"},
        {"ceiling", "ceil(x)"},
        {"fmax", "maximum(x, y)"},
        {"fmin", "minimum(x, y)"},
        {"logistic", "sigmoid(x)"},
        {"len", "x.shape[0]"},
        {"length", "x.size"},
        {"range", "arange(n)"},
        {"identity", "eye(n)"},
        {"inverse", "inv(a)"},
        {"rand", "uniform(key, shape)"},
        {"randn", "normal(key, shape)"},
        {"ravel", "reshape(x, -1)"},
        {"flatten", "reshape(x, -1)"},
        {"vstack", "concat(xs, axis=0), or stack(xs) of vectors"},
        {"hstack", "concat(xs, axis=…)"},
        {"select", "where(c, a, b)"},
        {"If", "a if c else b"},
        {"average", "mean(x)"},
    };
    for (int i = 0; i < COUNTOF(others); i++)
        if (strcmp(others[i].name, name) == 0) return others[i].here;
    return NULL;
}

static __attribute__((noinline)) bool unknown_function(cot__parser *p, const cot__token *name) {
    const char *among[1024], *near;
    char        text[64];
    cot__item   known;
    size_t      length = name->stop - name->start;
    int         n = 0;
    snprintf(text, sizeof text, "%.*s", length > 60 ? 60 : (int)length, p->e->text + name->start);
    if (other_name(text))
        return FAIL(p, name->start, name->stop, "unknown function '%s'; write %s", text, other_name(text));
    if (cot__known_name(p->e->text + name->start, length, &known))
        return FAIL(p, name->start, name->stop, "'%s' is a %s, not a function%s", text,
                    known.kind == ITEM_DTYPE ? "dtype" : "number",
                    known.kind == ITEM_DTYPE ? "; cast(x, dtype) converts" : "; a product is written with *");
    for (int i = 0; i < cot__callee_count && n < COUNTOF(among); i++) among[n++] = cot__callees[i].name;
    near = length > 60 ? NULL : cot__nearest(text, n, among);
    if (near) return FAIL(p, name->start, name->stop, "unknown function '%s'; did you mean '%s'?", text, near);
    for (size_t i = 0; i < p->e->name_count; i++)
        if (p->e->names[i].length == length && memcmp(p->e->names[i].text, p->e->text + name->start, length) == 0)
            return FAIL(p, name->start, name->stop, "'%s' is a value, not a function; a product is written with *",
                        text);
    return FAIL(p, name->start, name->stop, "unknown function '%s'", text);
}

static __attribute__((noinline)) bool unknown_keyword(cot__parser *p, const cot__callee *f, const cot__token *name) {
    const char *among[COT__MOST_PARAMETERS], *near;
    char        text[64], list[300];
    cot__text   x = cot__text_buffer(list, sizeof list);
    snprintf(text, sizeof text, "%.*s", name->stop - name->start > 60 ? 60 : (int)(name->stop - name->start),
             p->e->text + name->start);
    for (int i = 0; i < f->n; i++) {
        among[i] = f->parameter[i].name;
        cot__putf(&x, "%s%s", i == 0 ? "" : i + 1 == f->n ? " and " : ", ", among[i]);
    }
    near = cot__nearest(text, f->n, among);
    if (near)
        return FAIL(p, name->start, name->stop, "%s has no keyword '%s'; did you mean '%s'? There are %s", f->name,
                    text, near, list);
    return FAIL(p, name->start, name->stop, "%s has no keyword '%s'; there %s %s", f->name, text,
                f->n == 1 ? "is" : "are", list);
}

/* Not inlined: the parser recurses through the callers, and their stack frames should not hold
 * these buffers. */
static __attribute__((noinline)) bool does_not_fit(cot__parser *p, const cot__callee *f, uint32_t start, uint32_t stop,
                                                   const char *missing) {
    char signature[400];
    cot__signature(f, signature, sizeof signature);
    if (missing) return FAIL(p, start, stop, "%s needs %s: %s", f->name, missing, signature);
    return FAIL(p, start, stop, "%s takes at most %d argument%s: %s", f->name, f->n, f->n == 1 ? "" : "s", signature);
}

/* ---- arguments ------------------------------------------------------------------------------- */

typedef struct arguments {
    cot__given *given;
    int         n, room;
    int         positional;
    bool        keywords;
    bool        seen[COT__MOST_PARAMETERS];
} arguments;

static bool add(cot__parser *p, arguments *a, int parameter, uint32_t start) {
    if (a->n == a->room) {
        int         room = a->room ? 2 * a->room : 4;
        cot__given *grown = cot__store_take(&p->e->pool, (size_t)room * sizeof *grown);
        if (!grown) return cot__expr_short_of_memory(p->error);
        if (a->n) memcpy(grown, a->given, (size_t)a->n * sizeof *grown);
        a->given = grown;
        a->room = room;
    }
    a->given[a->n++] = (cot__given){start, p->last_stop, parameter};
    a->seen[parameter] = true;
    return true;
}

static __attribute__((noinline)) bool is_keyword(const cot__parser *p) {
    cot__expr_error unused;
    cot__lexer      x = p->lexer;
    cot__token      t;
    x.error = &unused;
    return p->token.kind == TOKEN_NAME && cot__lex(&x, &t) && t.kind == '=';
}

static bool keyword(cot__parser *p, const cot__callee *f, arguments *a) {
    cot__token name = p->token;
    size_t     length = name.stop - name.start;
    int        at = 0;
    while (at < f->n &&
           (strlen(f->parameter[at].name) != length || memcmp(f->parameter[at].name, p->e->text + name.start, length)))
        at++;
    if (at == f->n || f->parameter[at].takes == TAKES_REST) return unknown_keyword(p, f, &name);
    if (a->seen[at]) return FAIL(p, name.start, name.stop, "%s is given twice to %s", f->parameter[at].name, f->name);
    a->keywords = true;
    if (!cot__parse_next(p) || !cot__parse_next(p)) return false;
    uint32_t start = p->token.start;
    return cot__parse_expression(p) && add(p, a, at, start);
}

static bool positional(cot__parser *p, const cot__callee *f, arguments *a) {
    uint32_t start = p->token.start;
    if (a->keywords)
        return FAIL(p, p->token.start, p->token.stop, "an argument without a name cannot follow one with a name");
    int at = a->positional < f->n ? a->positional : f->n - 1;
    if (a->positional >= f->n && (f->n == 0 || f->parameter[f->n - 1].takes != TAKES_REST))
        return does_not_fit(p, f, start, p->token.stop, NULL);
    if (!cot__parse_expression(p)) return false;
    a->positional++;
    return add(p, a, at, start);
}

bool cot__parse_call(cot__parser *p, const cot__token *name) {
    arguments          a = {.n = 0};
    uint32_t           opened = p->token.start;
    const cot__callee *f = cot__find_callee(p->e->text + name->start, name->stop - name->start);
    if (!f) return unknown_function(p, name);
    if (++p->depth > COT__EXPR_MAX_DEPTH)
        return FAIL(p, name->start, name->stop,
                    "nested more than %d deep; give parts a name in a statement of their own", COT__EXPR_MAX_DEPTH);
    if (!cot__parse_next(p)) return false;
    while (p->token.kind != ')' && p->token.kind != TOKEN_END) {
        if (is_keyword(p) ? !keyword(p, f, &a) : !positional(p, f, &a)) return false;
        if (p->token.kind != ',') break;
        if (!cot__parse_next(p)) return false;
    }
    if (!cot__parse_close(p, ')', opened)) return false;
    p->depth--;
    for (int i = 0; i < f->n; i++)
        if (!a.seen[i] && !f->parameter[i].fallback)
            return does_not_fit(p, f, name->start, name->stop, f->parameter[i].name);
    cot__expr_step *s = cot__emit(p, STEP_CALL, 1 - a.n, name->start, p->last_stop);
    if (!s) return false;
    s->n = a.n;
    s->at_stop = name->stop;
    s->as.call.callee = f;
    s->as.call.given = a.given;
    return true;
}
