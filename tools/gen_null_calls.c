/* gen_null_calls HEADER…: prints, for tests/tape/test_null.c, a call of every function that the
 * public headers declare, in which any one argument can be a bad one (NULL, COT_NONE, a
 * forgotten var, a negative count), and a table of them. The other arguments are those of
 * tests/samples/null_arguments.def.
 *
 * Run by the build. It exits with 1, and says why, when a parameter has no argument in the
 * table, when a row of the table fits nothing, and when the header does not say what the table
 * says of a parameter that may be left out: so a new function is tried like the others, or
 * breaks the build. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNTOF(a) ((int)(sizeof(a) / sizeof(*(a))))
enum { MOST = 16, TEXT = 1 << 18 };

/* ---- the tables ------------------------------------------------------------------------------ */

typedef struct row {
    const char *function, *parameter, *type, *what, *text; /* NULL: any */
    bool        used;
} row;

#define NOTHING(...)
static row arguments[] = { /* the first that fits is taken */
#define ARG(function, parameter, ...) {"cot_" #function, #parameter, NULL, NULL, #__VA_ARGS__, false},
#define NAMED(type, parameter, ...) {NULL, #parameter, type, NULL, #__VA_ARGS__, false},
#define TYPE(type, ...) {NULL, NULL, type, NULL, #__VA_ARGS__, false},
#define WAY NOTHING
#define WAY_NAMED NOTHING
#define WAY_OF NOTHING
#define MAY_BE NOTHING
#define EVERY_MAY_BE NOTHING
#include "samples/null_arguments.def"
#undef ARG
#undef NAMED
#undef TYPE
#undef WAY
#undef WAY_NAMED
#undef WAY_OF
#undef MAY_BE
#undef EVERY_MAY_BE
};
static row ways[] = {
#define ARG NOTHING
#define NAMED NOTHING
#define TYPE NOTHING
#define WAY(type, what, ...) {NULL, NULL, type, what, #__VA_ARGS__, false},
#define WAY_NAMED(type, parameter, what, ...) {NULL, #parameter, type, what, #__VA_ARGS__, false},
#define WAY_OF(function, parameter, what, ...) {"cot_" #function, #parameter, NULL, what, #__VA_ARGS__, false},
#define MAY_BE NOTHING
#define EVERY_MAY_BE NOTHING
#include "samples/null_arguments.def"
#undef WAY
#undef WAY_NAMED
#undef WAY_OF
#undef MAY_BE
#undef EVERY_MAY_BE
};
static row optional[] = { /* text: the words of the header */
#define WAY NOTHING
#define WAY_NAMED NOTHING
#define WAY_OF NOTHING
#define MAY_BE(function, parameter, what, text) {"cot_" #function, #parameter, NULL, what, text, false},
#define EVERY_MAY_BE(type, parameter, what, text) {NULL, #parameter, type, what, text, false},
#include "samples/null_arguments.def"
};

typedef struct parameter { char type[80], name[40]; } parameter;
typedef struct function {
    char      type[80], name[60];
    int       n;
    parameter p[MOST];
} function;

static bool fits(row *r, const function *f, const parameter *p) {
    return (!r->function || strcmp(r->function, f->name) == 0) &&
           (!r->parameter || strcmp(r->parameter, p->name) == 0) && (!r->type || strcmp(r->type, p->type) == 0);
}

/* The function's own row, else one for type and name, else one for the type. */
static row *argument_of(const function *f, const parameter *p) {
    row *best = NULL;
    int  rank = 0;
    for (int i = 0; i < COUNTOF(arguments); i++) {
        row *r = &arguments[i];
        int  its = r->function ? 3 : r->parameter ? 2 : 1;
        if (fits(r, f, p) && its > rank) best = r, rank = its;
    }
    return best;
}

static bool is_pointer(const parameter *p) { return strchr(p->type, '*') != NULL; }

/* ---- the headers ----------------------------------------------------------------------------- */

static char section[TEXT]; /* the comments since the last heading, one line of words, … */
static char opening[TEXT]; /* … and those in front of the first, which hold everywhere */
static int  wrong;

static void say(const char *what, const char *whose, const char *name) {
    fprintf(stderr, "gen_null_calls: %s: %s of %s\n", what, name ? name : "?", whose ? whose : "every function");
    wrong = 1;
}

static void add_comment(const char *from, const char *to) {
    size_t n = strlen(section);
    if (to - from > 8 && strncmp(from, "/* ====", 7) == 0) {
        if (!opening[0]) strcpy(opening, section);
        n = 0;
    }
    for (; from < to && n + 2 < sizeof section; from++) {
        char c = *from == '\n' || *from == '*' ? ' ' : *from;
        if (c == ' ' && n && section[n - 1] == ' ') continue;
        section[n++] = c;
    }
    section[n] = 0;
}

/* The words of [from, to) with single spaces; stars stand apart from what is before them. */
static void tidy(const char *from, const char *to, char *out, size_t size) {
    size_t n = 0;
    for (; from < to && n + 2 < size; from++) {
        bool space = isspace((unsigned char)*from);
        if (space && (n == 0 || out[n - 1] == ' ' || out[n - 1] == '*')) continue;
        if (*from == '*' && n && out[n - 1] != ' ' && out[n - 1] != '*') out[n++] = ' ';
        out[n++] = space ? ' ' : *from;
    }
    while (n && out[n - 1] == ' ') n--;
    out[n] = 0;
}

/* "const cot_var *xs": the last word is the name. */
static void split(const char *from, const char *to, char *type, char *name) {
    const char *word;
    while (to > from && isspace((unsigned char)to[-1])) to--;
    for (word = to; word > from && (isalnum((unsigned char)word[-1]) || word[-1] == '_');) word--;
    tidy(word, to, name, 40);
    tidy(from, word, type, 80);
}

static bool read_function(const char *from, const char *to, function *f) {
    const char *open = memchr(from, '(', (size_t)(to - from)), *p;
    char        all[1024];
    *f = (function){.n = 0};
    if (!open) return false;
    split(from, open, f->type, all);
    snprintf(f->name, sizeof f->name, "%.59s", all);
    while (to > open && to[-1] != ')') to--;
    for (p = open + 1; p < to;) {
        const char *end = p;
        while (end < to - 1 && *end != ',') end++;
        if (f->n == MOST) return false;
        split(p, end, f->p[f->n].type, f->p[f->n].name);
        if (f->p[f->n].type[0]) f->n++; /* not (void) */
        p = end + 1;
    }
    return true;
}

/* ---- what is printed ------------------------------------------------------------------------- */

static int  functions;
static char table[TEXT], names[TEXT];

/* The ways in which an argument can be bad: those of the table, and NULL for every pointer. */
static int ways_of(const function *f, const parameter *p, row *out[MOST]) {
    static row null = {NULL, NULL, NULL, "NULL", "NULL", false};
    int        n = 0;
    if (is_pointer(p)) out[n++] = &null;
    for (int i = 0; i < COUNTOF(ways) && n < MOST; i++)
        if (fits(&ways[i], f, p)) out[n++] = &ways[i], ways[i].used = true;
    return n;
}

static bool may_be(const function *f, const parameter *p, const char *what) {
    for (int i = 0; i < COUNTOF(optional); i++) {
        row *r = &optional[i];
        if (!fits(r, f, p) || strcmp(r->what, what)) continue;
        r->used = true;
        if (!strstr(r->function ? section : opening, r->text))
            say("the header does not say there that it may be left out", f->name, p->name);
        return true;
    }
    return false;
}

static void print_function(const function *f) {
    char  *rows = table + strlen(table);
    size_t left = (size_t)(table + sizeof table - rows);
    char   result[80];
    size_t n = 0;
    for (const char *c = f->type; *c; c++) { /* "const char *": const_char_p */
        if (*c == '*') result[n++] = 'p';
        else result[n++] = *c == ' ' ? '_' : *c;
    }
    result[n] = 0;
    printf("static void call_%s(fixture *f, int bad, int way) {\n    (void)f, (void)bad, (void)way;\n", f->name);
    int used = snprintf(rows, left, "static const null_parameter parameters_of_%s[] = {\n", f->name);
    if (strcmp(f->type, "void")) printf("    take_%s(f, ", result);
    else printf("    ");
    printf("(%s)(", f->name);
    for (int k = 0; k < f->n; k++) {
        const parameter *p = &f->p[k];
        row             *good = argument_of(f, p), *bad[MOST];
        int              count = ways_of(f, p, bad);
        if (!good) {
            say("there is no argument in null_arguments.def", f->name, p->name);
            continue;
        }
        good->used = true;
        printf("%s\n        ", k ? "," : "");
        for (int w = 0; w < count; w++) {
            printf("bad == %d && way == %d ? %s : ", k, w, bad[w]->text);
            used += snprintf(rows + used, left - (size_t)used, "    {%d, %d, \"%s\", \"%s\", \"%s\", %s},\n", k, w,
                             p->type, p->name, bad[w]->what, may_be(f, p, bad[w]->what) ? "true" : "false");
        }
        printf("%s", good->text);
    }
    printf(")%s;\n}\n", strcmp(f->type, "void") ? ")" : "");
    used += snprintf(rows + used, left - (size_t)used, "    {-1, -1, \"\", \"\", \"\", true},\n};\n");
    size_t at = strlen(names);
    snprintf(names + at, sizeof names - at, "    {\"%s\", \"%s\", call_%s, parameters_of_%s},\n", f->name, f->type,
             f->name, f->name);
    functions++;
}

static void read_header(const char *path) {
    static char text[4 * TEXT];
    FILE       *file = fopen(path, "rb");
    size_t      n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    bool        line_start = true;
    if (file) fclose(file);
    if (n == 0 || n == sizeof text - 1) say("cannot read the header", path, NULL);
    text[n] = 0;
    section[0] = 0;
    for (char *p = text; *p;) {
        if (strncmp(p, "/*", 2) == 0) {
            char *end = strstr(p, "*/");
            if (!end) break;
            add_comment(p, end);
            p = end + 2;
        } else if (line_start && *p == '#') { /* a directive, with the lines that continue it */
            for (; *p && *p != '\n'; p++)
                if (p[0] == '\\' && p[1] == '\n') p++;
        } else if (strncmp(p, "COT_API", 7) == 0) {
            char *end = strchr(p, ';'), *line = end ? strchr(end, '\n') : NULL,
                 *comment = end ? strstr(end, "/*") : NULL;
            function f;
            if (!end || !read_function(p + 7, end, &f)) {
                say("a declaration cannot be read", path, NULL);
                break;
            }
            if (comment && line && comment < line)
                add_comment(comment, line); /* it stands beside, and is read again: no matter */
            print_function(&f);
            p = end + 1;
        } else {
            line_start = *p == '\n' || (line_start && isspace((unsigned char)*p));
            p++;
            continue;
        }
        line_start = false;
    }
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) read_header(argv[i]);
    for (int i = 0; i < COUNTOF(arguments); i++)
        if (!arguments[i].used)
            say("a row of null_arguments.def fits nothing", arguments[i].function,
                arguments[i].parameter ? arguments[i].parameter : arguments[i].type);
    for (int i = 0; i < COUNTOF(ways); i++)
        if (!ways[i].used) say("a way in null_arguments.def fits nothing", ways[i].function, ways[i].what);
    for (int i = 0; i < COUNTOF(optional); i++)
        if (!optional[i].used)
            say("a parameter that may be left out fits nothing", optional[i].function, optional[i].parameter);
    printf("%sstatic const null_function null_functions[] = {\n%s};\n", table, names);
    if (functions < 100) say("there are too few functions; are the headers read?", "", "");
    return wrong;
}
