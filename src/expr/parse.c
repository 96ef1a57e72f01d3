/* parse.c: the grammar, by recursive descent straight into steps.
 *
 *     program     statement ((';' | NEWLINE) statement)*
 *     statement   (NAME (',' NAME)* '=')* expression (',' expression)*  |  NAME '+=' expression …
 *     expression  or ['if' or 'else' expression]
 *     or          and ('or' and)*             and   not ('and' not)*           not   'not' not | comparison
 *     comparison  sum (('<' | …) sum)*        sum, product: left to right      unary ('-' | '+') unary | power
 *     power       postfix ['**' unary]        postfix  atom ('(' … ')' | '[' … ']' | '.' NAME)*
 *
 * Only brackets and what is right-associative recurse, and each counts to COT__EXPR_MAX_DEPTH. */
#include "expr/emit.h"

#include <string.h>

static bool expression(cot__parser *p);

/* ---- tokens and errors ----------------------------------------------------------------------------------------------------- */

bool cot__parse_next(cot__parser *p) {
    p->last_stop = p->token.stop;
    return cot__lex(&p->lexer, &p->token);
}
#define next cot__parse_next

static bool fail_at(cot__parser *p, uint32_t start, uint32_t stop, const char *message) {
    return cot__expr_fail(p->error, p->e->text, p->e->length, start, stop, "%s", message);
}

bool cot__parse_expected(cot__parser *p, const char *what) {
    const cot__token *t = &p->token;
    const char       *text = p->e->text;
    size_t            length = p->e->length;
    int               n = (int)(t->stop - t->start);
    if (t->kind == TOKEN_END)
        return cot__expr_fail(p->error, text, length, t->start, t->stop, "expected %s, found the end of the text", what);
    if (t->kind == TOKEN_NEWLINE)
        return cot__expr_fail(p->error, text, length, t->start, t->stop, "expected %s, found the end of the line", what);
    if (t->kind == TOKEN_FOREIGN)
        return cot__expr_fail(p->error, text, length, t->start, t->stop, "expected %s; '%.*s' is a word of Python that is not part of the language",
                              what, n, text + t->start);
    return cot__expr_fail(p->error, text, length, t->start, t->stop, "expected %s, found '%.*s%s'", what, n > 40 ? 40 : n, text + t->start,
                          n > 40 ? "…" : "");
}

static __attribute__((noinline)) bool not_closed(cot__parser *p, int bracket, uint32_t opened) {
    cot__expr_error place;
    char            what[100];
    cot__expr_fail(&place, p->e->text, p->e->length, opened, opened + 1, " ");
    const char *open = bracket == ')' ? "(" : "[";
    if (p->token.kind == TOKEN_END && place.line == 1)
        snprintf(what, sizeof what, "'%c' to close the '%s' at column %d", bracket, open, place.column);
    else if (place.line == 1)
        snprintf(what, sizeof what, "an operator, ',' or '%c' to close the '%s' at column %d", bracket, open, place.column);
    else
        snprintf(what, sizeof what, "'%c' to close the '%s' at line %d, column %d", bracket, open, place.line, place.column);
    return cot__parse_expected(p, what);
}

bool cot__parse_close(cot__parser *p, int bracket, uint32_t opened) {
    return p->token.kind == bracket ? next(p) : not_closed(p, bracket, opened);
}

static bool deeper(cot__parser *p) {
    if (++p->depth <= COT__EXPR_MAX_DEPTH) return true;
    return cot__expr_fail(p->error, p->e->text, p->e->length, p->token.start, p->token.stop,
                          "nested more than %d deep; give parts a name in a statement of their own", COT__EXPR_MAX_DEPTH);
}

static bool push(cot__parser *p, cot__item item) {
    cot__step *s = cot__emit(p, STEP_PUSH, 1, p->token.start, p->token.stop);
    if (s) s->as.item = item;
    return s && next(p);
}

/* ---- atoms ----------------------------------------------------------------------------------------------------------------- */

static bool load(cot__parser *p, const cot__token *t) {
    cot__item known;
    int       name = cot__intern(p, t->start, t->stop);
    if (name < 0) return false;
    cot__name *n = &p->e->names[name];
    if (!n->assigned && !n->required && !cot__known_name(n->text, n->length, &known)) {
        n->required = true;
        n->order = p->e->required_count++;
    }
    cot__step *s = cot__emit(p, STEP_LOAD, 1, t->start, t->stop);
    if (s) s->n = name;
    return s != NULL;
}

/* Items up to a closing bracket, which is passed; a comma may follow the last. *comma: was there any? */
static bool items(cot__parser *p, int bracket, uint32_t opened, int *n, bool *comma) {
    *n = 0;
    *comma = false;
    while (p->token.kind != bracket) {
        if (!expression(p)) return false;
        ++*n;
        if (p->token.kind != ',') break;
        *comma = true;
        if (!next(p)) return false;
    }
    return cot__parse_close(p, bracket, opened);
}

static bool bracketed(cot__parser *p) {
    bool     list = p->token.kind == '[', comma;
    uint32_t start = p->token.start;
    int      n;
    if (!deeper(p) || !next(p) || !items(p, list ? ']' : ')', start, &n, &comma)) return false;
    p->depth--;
    if (!list && n == 1 && !comma) return true;
    cot__step *s = cot__emit(p, list ? STEP_LIST : STEP_TUPLE, 1 - n, start, p->last_stop);
    if (s) s->n = n;
    return s != NULL;
}

static bool atom(cot__parser *p) {
    cot__token t = p->token;
    switch (t.kind) {
    case TOKEN_NUMBER: return push(p, cot__item_number(t.number));
    case TOKEN_INTEGER: return push(p, cot__item_integer(t.integer));
    case TOKEN_TRUE:
    case TOKEN_FALSE: return push(p, cot__item_bool(t.kind == TOKEN_TRUE));
    case TOKEN_NONE: return push(p, (cot__item){.kind = ITEM_NONE});
    case TOKEN_STRING: {
        char *copy = cot__store_text(&p->e->pool, p->e->text + t.start + 1, t.stop - t.start - 2);
        if (!copy) return cot__expr_short_of_memory(p->error);
        return push(p, (cot__item){.kind = ITEM_TEXT, .as.text = copy});
    }
    case TOKEN_NAME:
        if (!next(p)) return false;
        return p->token.kind == '(' ? cot__parse_call(p, &t) : load(p, &t);
    case '(':
    case '[': return bracketed(p);
    default: return cot__parse_expected(p, "a number, a name or '('");
    }
}

/* ---- x[…], x.T ------------------------------------------------------------------------------------------------------------- */

static bool push_none(cot__parser *p) {
    cot__step *s = cot__emit(p, STEP_PUSH, 1, p->token.start, p->token.start);
    if (s) s->as.item = (cot__item){.kind = ITEM_NONE};
    return s != NULL;
}

static bool ends_part(int kind) { return kind == ':' || kind == ',' || kind == ']'; }

/* One item of an index: an expression, a slice, or an ellipsis. */
static bool index_item(cot__parser *p) {
    uint32_t start = p->token.start;
    if (p->token.kind == TOKEN_ELLIPSIS) return push(p, (cot__item){.kind = ITEM_ELLIPSIS});
    if (p->token.kind != ':' && !expression(p)) return false;
    if (p->token.kind != ':') return true;
    if (p->token.start == start && !push_none(p)) return false; /* no expression stands before the colon */
    for (int part = 1; part < 3; part++) {
        bool given = p->token.kind == ':';
        if (given && !next(p)) return false;
        if (given && !ends_part(p->token.kind) ? !expression(p) : !push_none(p)) return false;
    }
    return cot__emit(p, STEP_SLICE, -2, start, p->last_stop) != NULL;
}

static bool index_of(cot__parser *p, uint32_t start) {
    uint32_t opened = p->token.start;
    int      n = 0;
    if (!deeper(p) || !next(p)) return false;
    while (p->token.kind != ']') {
        if (!index_item(p)) return false;
        n++;
        if (p->token.kind != ',') break;
        if (!next(p)) return false;
    }
    if (n == 0 && p->token.kind == ']') return cot__parse_expected(p, "an index: an integer, a slice, a list, None or ...");
    if (!cot__parse_close(p, ']', opened)) return false;
    p->depth--;
    cot__step *s = cot__emit(p, STEP_INDEX, -n, start, p->last_stop);
    if (!s) return false;
    s->n = n;
    s->at = opened;
    return true;
}

static bool attribute(cot__parser *p, uint32_t start) {
    if (!next(p)) return false;
    cot__token t = p->token;
    if (t.kind != TOKEN_NAME) return cot__parse_expected(p, "a name after '.'");
    char *copy = cot__store_text(&p->e->pool, p->e->text + t.start, t.stop - t.start);
    if (!copy) return cot__expr_short_of_memory(p->error);
    if (!next(p)) return false;
    if (p->token.kind == '(')
        return cot__expr_fail(p->error, p->e->text, p->e->length, t.start, t.stop, "there are no methods and modules here; write %.40s(…)", copy);
    cot__step *s = cot__emit(p, STEP_ATTRIBUTE, 0, start, t.stop);
    if (!s) return false;
    s->at = t.start;
    s->as.item = (cot__item){.kind = ITEM_TEXT, .as.text = copy};
    return true;
}

static bool postfix(cot__parser *p) {
    uint32_t start = p->token.start;
    if (!atom(p)) return false;
    for (;;) {
        if (p->token.kind == '[') {
            if (!index_of(p, start)) return false;
        } else if (p->token.kind == '.') {
            if (!attribute(p, start)) return false;
        } else if (p->token.kind == '(') {
            return cot__parse_expected(p, "an operator (only a name can be called, and a product is written with *)");
        } else {
            return true;
        }
    }
}

/* ---- operators ------------------------------------------------------------------------------------------------------------- */

static bool binary_step(cot__parser *p, cot__step_kind kind, const cot__token *operator, int what, uint32_t start) {
    cot__step *s = cot__emit(p, kind, kind == STEP_COMPARE_ON ? 0 : -1, start, p->last_stop);
    if (!s) return false;
    s->what = what;
    s->at = operator->start;
    s->at_stop = operator->stop;
    return true;
}

static bool unary(cot__parser *p) {
    cot__token t = p->token;
    if (t.kind != '-' && t.kind != '+') {
        if (!postfix(p)) return false;
        cot__token power = p->token;
        if (power.kind != TOKEN_POWER) return true;
        if (!deeper(p) || !next(p) || !unary(p)) return false;
        p->depth--;
        return binary_step(p, STEP_BINARY, &power, TOKEN_POWER, t.start);
    }
    if (!deeper(p) || !next(p) || !unary(p)) return false;
    p->depth--;
    cot__step *s = cot__emit(p, STEP_UNARY, 0, t.start, p->last_stop);
    if (!s) return false;
    s->what = t.kind;
    s->at_stop = t.stop;
    return true;
}

static bool is_product(int kind) { return kind == '*' || kind == '/' || kind == '%' || kind == '@' || kind == TOKEN_FLOOR_DIVIDE; }

static bool product(cot__parser *p) {
    uint32_t start = p->token.start;
    if (!unary(p)) return false;
    while (is_product(p->token.kind)) {
        cot__token t = p->token;
        if (!next(p) || !unary(p) || !binary_step(p, STEP_BINARY, &t, t.kind, start)) return false;
    }
    return true;
}

static bool sum(cot__parser *p) {
    uint32_t start = p->token.start;
    if (!product(p)) return false;
    while (p->token.kind == '+' || p->token.kind == '-') {
        cot__token t = p->token;
        if (!next(p) || !product(p) || !binary_step(p, STEP_BINARY, &t, t.kind, start)) return false;
    }
    return true;
}

static bool is_comparison(int kind) {
    return kind == '<' || kind == '>' || kind == TOKEN_LESS_EQUAL || kind == TOKEN_GREATER_EQUAL || kind == TOKEN_EQUAL || kind == TOKEN_NOT_EQUAL;
}

/* a < b < c: both must hold, b is computed once. */
static bool comparison(cot__parser *p) {
    uint32_t start = p->token.start;
    int      chained = 0;
    if (!sum(p)) return false;
    while (is_comparison(p->token.kind)) {
        cot__token t = p->token;
        if (!next(p) || !sum(p)) return false;
        bool more = is_comparison(p->token.kind);
        if (!binary_step(p, more ? STEP_COMPARE_ON : STEP_COMPARE, &t, t.kind, start)) return false;
        chained += more;
    }
    for (; chained > 0; chained--)
        if (!cot__emit(p, STEP_BOTH, -1, start, p->last_stop)) return false;
    return true;
}

static bool negation(cot__parser *p) {
    cot__token t = p->token;
    if (t.kind != TOKEN_NOT) return comparison(p);
    if (!deeper(p) || !next(p) || !negation(p)) return false;
    p->depth--;
    cot__step *s = cot__emit(p, STEP_NOT, 0, t.start, p->last_stop);
    if (s) s->at_stop = t.stop;
    return s != NULL;
}

/* x and y and z: one jump each to behind the next operand, so that a chain needs no second look. */
static bool connective(cot__parser *p, int word, cot__step_kind kind, bool (*operand)(cot__parser *)) {
    uint32_t start = p->token.start;
    if (!operand(p)) return false;
    while (p->token.kind == word) {
        cot__token t = p->token;
        size_t     jump = p->e->count;
        if (!binary_step(p, kind, &t, word, start) || !next(p) || !operand(p)) return false;
        p->e->steps[jump].n = (int)(p->e->count - jump - 1);
    }
    return true;
}

static bool conjunction(cot__parser *p) { return connective(p, TOKEN_AND, STEP_AND, negation); }
static bool disjunction(cot__parser *p) { return connective(p, TOKEN_OR, STEP_OR, conjunction); }

/* The value stands before its condition, the condition runs before it: their steps change places. */
static bool conditional(cot__parser *p) {
    cot__expr *e = p->e;
    size_t     first = e->count, after, jump;
    uint32_t   start = p->token.start;
    if (!disjunction(p)) return false;
    if (p->token.kind != TOKEN_IF) return true;
    if (!next(p)) return false;
    size_t   condition = e->count;
    uint32_t condition_start = p->token.start;
    if (!disjunction(p)) return false;
    if (!cot__emit(p, STEP_CHOOSE, -1, condition_start, p->last_stop)) return false;
    after = e->count;
    cot__exchange(e, first, condition, after);
    if (p->token.kind != TOKEN_ELSE) return cot__parse_expected(p, "'else' and a value for the other case");
    e->steps[first + (after - condition) - 1].n = (int)(condition - first) + 1;
    jump = e->count;
    if (!cot__emit(p, STEP_JUMP, -1, start, start)) return false; /* the other case starts from the same height */
    if (!deeper(p) || !next(p) || !expression(p)) return false;
    p->depth--;
    e->steps[jump].n = (int)(e->count - jump - 1);
    return true;
}

static bool expression(cot__parser *p) { return conditional(p); }
bool cot__parse_expression(cot__parser *p) { return expression(p); }

/* ---- statements ------------------------------------------------------------------------------------------------------------ */

/* Is what comes next NAME, …, NAME = ? A look ahead that parses nothing: *n counts the names. */
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
        if (!expression(p)) return false;
        n++;
        if (p->token.kind != ',') break;
        comma = true;
        if (!next(p)) return false;
        if (p->token.kind == TOKEN_END || p->token.kind == TOKEN_NEWLINE || p->token.kind == ';') break;
    }
    if (!comma) return true;
    cot__step *s = cot__emit(p, STEP_TUPLE, 1 - n, start, p->last_stop);
    if (s) s->n = n;
    return s != NULL;
}

static bool store(cot__parser *p, int name, uint32_t start, uint32_t stop) {
    p->e->names[name].assigned = true;
    cot__step *s = cot__emit(p, STEP_STORE, 0, start, stop);
    if (s) s->n = name;
    return s != NULL;
}

typedef struct target {
    uint32_t start, stop;
    int      name;
    struct target *before;
} target;

/* a = … or a, b = …: the value is computed first, then stored from the last name to the first; what was unpacked is dropped. */
static bool assignment(cot__parser *p, int n) {
    target  *last = NULL;
    uint32_t start = p->token.start;
    bool     unpacks = n > 1;
    if (!deeper(p)) return false; /* a = b = … */
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
    cot__step *s = cot__emit(p, STEP_UNPACK, n, start, equals);
    if (!s) return false;
    s->n = n;
    for (; last; last = last->before)
        if (!store(p, last->name, last->start, last->stop) || !cot__emit(p, STEP_DROP, -1, last->start, last->stop)) return false;
    return true;
}

/* x += y is x = x + y. */
static bool update(cot__parser *p) {
    cot__token name = p->token;
    if (!next(p)) return false;
    cot__token operator = p->token;
    if (!load(p, &name) || !next(p) || !expression(p)) return false;
    operator.stop--;
    return binary_step(p, STEP_BINARY, &operator, operator.update, name.start) &&
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

static bool program(cot__parser *p) {
    bool any = false;
    if (!next(p)) return false;
    for (;;) {
        int n;
        while (ends_statement(p->token.kind))
            if (!next(p)) return false;
        if (p->token.kind == TOKEN_END) break;
        if (any && !cot__emit(p, STEP_DROP, -1, p->token.start, p->token.start)) return false;
        any = true;
        p->depth = 0;
        if (is_update(p)) {
            if (!update(p)) return false;
        } else if (is_assignment(p, &n) ? !assignment(p, n) : !tuple_of(p)) {
            return false;
        }
        if (p->token.kind == ')' || p->token.kind == ']')
            return cot__expr_fail(p->error, p->e->text, p->e->length, p->token.start, p->token.stop, "'%c' closes nothing: no bracket is open",
                                  p->token.kind);
        if (p->token.kind == '=')
            return fail_at(p, p->token.start, p->token.stop, "only names can be assigned to, as in y = x + 1; equality is written ==");
        if (p->token.kind != TOKEN_END && !ends_statement(p->token.kind)) return cot__parse_expected(p, "an operator or the end of the statement");
    }
    return any || cot__expr_fail(p->error, p->e->text, p->e->length, 0, 0, "expected an expression; the text is empty");
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------- */

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
        snprintf(error->message, sizeof error->message, "the text has %zu bytes; at most %d are read", length, COT__EXPR_MAX_BYTES);
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
    cot__free(&e->pool.al, p.table, p.table_room * sizeof *p.table);
    if (ok) return e;
    cot__expr_free(e);
    return NULL;
}

cot__expr *cot__expr_parse(const char *text, size_t length, cot__expr_error *error) { return cot__expr_parse_with(NULL, text, length, error); }

void cot__expr_free(cot__expr *e) {
    if (!e) return;
    cot_allocator al = e->pool.al;
    cot__free(&al, e->steps, e->room * sizeof *e->steps);
    cot__free(&al, e->names, e->name_room * sizeof *e->names);
    cot__store_free(&e->pool);
    cot__free(&al, e, sizeof *e);
}

int cot__expr_names(const cot__expr *e, const char *const **names) {
    if (names) *names = e ? e->required : NULL;
    return e ? e->required_count : 0;
}

bool cot__expr_uses(const cot__expr *e, const char *name) {
    for (size_t i = 0; e && name && i < e->name_count; i++)
        if (strcmp(e->names[i].text, name) == 0) return true;
    return false;
}
