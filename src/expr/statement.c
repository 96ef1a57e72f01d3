/* statement.c: assignments, the statements of a program, and the program as a whole. */
#include "expr/emit.h"

#include <stdio.h>
#include <string.h>

#define next cot__parse_next

/* ---- statements ------------------------------------------------------------------------------ */

/* Does NAME, …, NAME = come next? This looks ahead without parsing. *n: number of names. */
static __attribute__((noinline)) bool is_assignment(const cot__parser *p, int *n) {
    cot__expr_error unused;
    cot__lexer      x = p->lexer;
    cot__token      t = p->token;
    x.error = &unused;
    for (*n = 0; t.kind == TOKEN_NAME;) {
        ++*n;
        if (!cot__lex(&x, &t)) return false;
        if (t.kind == '=') return true;
        if (t.kind != ',' || !cot__lex(&x, &t)) return false;
        if (t.kind == '=') return true; /* q, = … */
    }
    return false;
}

static bool tuple_of(cot__parser *p) {
    uint32_t start = p->token.start;
    int      n = 0;
    bool     comma = false;
    for (;;) {
        if (!cot__parse_expression(p)) return false;
        n++;
        if (p->token.kind != ',') break;
        comma = true;
        if (!next(p)) return false;
        if (p->token.kind == TOKEN_END || p->token.kind == TOKEN_NEWLINE || p->token.kind == ';') break;
    }
    if (!comma) return true;
    cot__expr_step *s = cot__emit(p, STEP_TUPLE, 1 - n, start, p->last_stop);
    if (s) s->n = n;
    return s != NULL;
}

static bool store(cot__parser *p, int name, uint32_t start, uint32_t stop) {
    p->e->names[name].assigned = true;
    cot__expr_step *s = cot__emit(p, STEP_STORE, 0, start, stop);
    if (s) s->n = name;
    return s != NULL;
}

typedef struct target {
    uint32_t start, stop;
    int      name;
    struct target *before;
} target;

/* a = … or a, b = …: the value is computed first. Its parts are stored from the last name to the
 * first, and then dropped. */
static bool assignment(cot__parser *p, int n) {
    target  *last = NULL;
    uint32_t start = p->token.start;
    bool     unpacks = n > 1;
    if (!cot__parse_deeper(p)) return false; /* a = b = … */
    for (int i = 0; i < n; i++) {
        target *t = cot__store_take(&p->e->pool, sizeof *t);
        if (!t) return cot__expr_short_of_memory(p->error);
        *t = (target){p->token.start, p->token.stop, cot__intern(p, p->token.start, p->token.stop), last};
        if (t->name < 0 || !next(p)) return false;
        last = t;
        if (p->token.kind == ',') {
            unpacks = true;
            if (!next(p)) return false;
        }
    }
    uint32_t equals = p->token.start;
    if (!next(p)) return false;
    int more;
    if (is_assignment(p, &more) ? !assignment(p, more) : !tuple_of(p)) return false;
    if (!unpacks) return store(p, last->name, last->start, last->stop);
    cot__expr_step *s = cot__emit(p, STEP_UNPACK, n, start, equals);
    if (!s) return false;
    s->n = n;
    for (; last; last = last->before)
        if (!store(p, last->name, last->start, last->stop) || !cot__emit(p, STEP_DROP, -1, last->start, last->stop))
            return false;
    return true;
}

/* x += y is x = x + y. */
static bool update(cot__parser *p) {
    cot__token name = p->token;
    if (!next(p)) return false;
    cot__token operator = p->token;
    if (!cot__parse_load(p, &name) || !next(p) || !cot__parse_expression(p)) return false;
    operator.stop--;
    return cot__parse_step(p, STEP_BINARY, &operator, operator.update, name.start) &&
           store(p, cot__intern(p, name.start, name.stop), name.start, name.stop);
}

static __attribute__((noinline)) bool is_update(const cot__parser *p) {
    cot__expr_error unused;
    cot__lexer      x = p->lexer;
    cot__token      t;
    x.error = &unused;
    return p->token.kind == TOKEN_NAME && cot__lex(&x, &t) && t.kind == TOKEN_UPDATE;
}

static bool ends_statement(int kind) { return kind == ';' || kind == TOKEN_NEWLINE; }

/* The width of the spaces before byte `at`; a tab goes to the next 8th column. -1: `at` is not the
 * first thing on its line. */
static int64_t indentation(const char *text, uint32_t at) {
    uint32_t start = at;
    int64_t  width = 0;
    while (start > 0 && (text[start - 1] == ' ' || text[start - 1] == '\t')) start--;
    /* a byte order mark may stand before the first line */
    bool begins = start == 0 || text[start - 1] == '\n' || (start == 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0);
    /* the end of the line before */
    uint32_t before = start > 1 && text[start - 2] == '\r' ? start - 2 : start > 0 ? start - 1 : 0;
    /* after a backslash the line continues, so no line begins here */
    if (!begins || (before > 0 && text[before - 1] == '\\')) return -1;
    for (; start < at; start++) width = text[start] == '\t' ? (width / 8 + 1) * 8 : width + 1;
    return width;
}

/* A line that was meant to continue the one before must not become a statement of its own: the
 * value of the line before would be dropped. */
static __attribute__((noinline)) bool begins_rightly(cot__parser *p, int64_t *first) {
    int64_t width = indentation(p->e->text, p->token.start);
    if (*first < 0) *first = width < 0 ? 0 : width;
    if (width <= *first) return true;
    return cot__expr_fail(
        p->error, p->e->text, p->e->length, p->token.start, p->token.stop,
        "unexpected indent: statements begin in one column; put brackets around an expression of several lines");
}

static __attribute__((noinline)) bool unused_value(cot__parser *p, uint32_t start, uint32_t stop) {
    return cot__expr_fail(
        p->error, p->e->text, p->e->length, start, stop,
        "this value is not used: the last statement is the result; assign it, as in a = …, or put brackets around an "
        "expression of several lines");
}

static bool program(cot__parser *p) {
    /* value: the statement before was an expression whose value got no name */
    bool     any = false, value = false;
    int64_t  first = -1;
    uint32_t start = 0, stop = 0;
    if (!next(p)) return false;
    for (;;) {
        int n;
        while (ends_statement(p->token.kind))
            if (!next(p)) return false;
        if (p->token.kind == TOKEN_END) break;
        if (!begins_rightly(p, &first)) return false;
        if (value) return unused_value(p, start, stop);
        if (any && !cot__emit(p, STEP_DROP, -1, p->token.start, p->token.start)) return false;
        any = true;
        p->depth = 0;
        start = p->token.start;
        if (is_update(p)) {
            if (!update(p)) return false;
        } else if (is_assignment(p, &n)) {
            if (!assignment(p, n)) return false;
        } else {
            value = true;
            if (!tuple_of(p)) return false;
        }
        stop = p->last_stop;
        if (p->token.kind == ')' || p->token.kind == ']')
            return cot__expr_fail(p->error, p->e->text, p->e->length, p->token.start, p->token.stop,
                                  "'%c' closes nothing: no bracket is open", p->token.kind);
        if (p->token.kind == '=')
            return cot__expr_fail(p->error, p->e->text, p->e->length, p->token.start, p->token.stop, "%s",
                                  "only names can be assigned to, as in y = x + 1; equality is written ==");
        if (p->token.kind != TOKEN_END && !ends_statement(p->token.kind))
            return cot__parse_expected(p, "an operator or the end of the statement");
    }
    return any || cot__expr_fail(p->error, p->e->text, p->e->length, 0, 0, "expected an expression; the text is empty");
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Names that must be given, in order of first use. */
static bool list_required(cot__parser *p) {
    cot__expr *e = p->e;
    e->required = cot__store_take(&e->pool, ((size_t)e->required_count + 1) * sizeof *e->required);
    if (!e->required) return cot__expr_short_of_memory(p->error);
    for (size_t i = 0; i < e->name_count; i++)
        if (e->names[i].required) e->required[e->names[i].order] = e->names[i].text;
    return true;
}

cot__expr *cot__expr_parse_with(const cot_allocator *al, const char *text, size_t length, cot__expr_error *error) {
    cot__expr_error unused;
    if (!error) error = &unused;
    *error = (cot__expr_error){0};
    if (length > COT__EXPR_MAX_BYTES) {
        snprintf(error->message, sizeof error->message, "the text has %zu bytes; at most %d are read", length,
                 COT__EXPR_MAX_BYTES);
        return NULL;
    }
    cot__store  pool = {.al = al ? *al : (cot_allocator){NULL, NULL}};
    cot__expr *e = cot__alloc(&pool.al, sizeof *e);
    if (!e) {
        cot__expr_short_of_memory(error);
        return NULL;
    }
    *e = (cot__expr){.pool = pool, .length = length};
    e->text = cot__store_text(&e->pool, text ? text : "", text ? length : 0);
    if (!text) e->length = 0;
    cot__parser p = {.e = e, .error = error};
    p.lexer = (cot__lexer){.text = e->text, .length = e->length, .error = error};
    bool ok = e->text ? program(&p) && list_required(&p) : cot__expr_short_of_memory(error);
    if (ok) return e;
    cot__expr_free(e);
    return NULL;
}

cot__expr *cot__expr_parse(const char *text, size_t length, cot__expr_error *error) {
    return cot__expr_parse_with(NULL, text, length, error);
}

void cot__expr_free(cot__expr *e) {
    if (!e) return;
    cot_allocator al = e->pool.al;
    cot__free(&al, e->steps, e->room * sizeof *e->steps);
    cot__free(&al, e->names, e->name_room * sizeof *e->names);
    cot__free(&al, e->table, e->table_room * sizeof *e->table);
    cot__store_free(&e->pool);
    cot__free(&al, e, sizeof *e);
}

int cot__expr_names(const cot__expr *e, const char *const **names) {
    if (names) *names = e ? e->required : NULL;
    return e ? e->required_count : 0;
}

int  cot__expr_name_count(const cot__expr *e) { return e ? (int)e->name_count : 0; }
bool cot__expr_uses(const cot__expr *e, const char *name) { return name && cot__expr_name(e, name, strlen(name)) >= 0; }
