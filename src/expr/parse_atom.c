/* parse_atom.c: parses numbers, names, brackets and calls, and x[…] and x.T behind them. It also
 * writes the errors of tokens. */
#include "expr/emit.h"

#include <stdio.h>

#define next cot__parse_next

/* ---- tokens and errors ----------------------------------------------------------------------- */

bool cot__parse_next(cot__parser *p) {
    p->last_stop = p->token.stop;
    return cot__lex(&p->lexer, &p->token);
}

bool cot__parse_expected(cot__parser *p, const char *what) {
    const cot__token *t = &p->token;
    const char       *text = p->e->text;
    size_t            length = p->e->length;
    int               n = (int)(t->stop - t->start);
    if (t->kind == TOKEN_END)
        return cot__expr_fail(p->error, text, length, t->start, t->stop, "expected %s, found the end of the text",
                              what);
    if (t->kind == TOKEN_NEWLINE)
        return cot__expr_fail(p->error, text, length, t->start, t->stop, "expected %s, found the end of the line",
                              what);
    if (t->kind == TOKEN_FOREIGN)
        return cot__expr_fail(p->error, text, length, t->start, t->stop,
                              "expected %s; '%.*s' is a word of Python that is not part of the language", what, n,
                              text + t->start);
    return cot__expr_fail(p->error, text, length, t->start, t->stop, "expected %s, found '%.*s%s'", what,
                          n > 40 ? 40 : n, text + t->start, n > 40 ? "…" : "");
}

static __attribute__((noinline)) bool not_closed(cot__parser *p, int bracket, uint32_t opened) {
    cot__expr_error place;
    char            what[100];
    cot__expr_fail(&place, p->e->text, p->e->length, opened, opened + 1, " ");
    const char *open = bracket == ')' ? "(" : "[";
    if (p->token.kind == TOKEN_END && place.line == 1)
        snprintf(what, sizeof what, "'%c' to close the '%s' at column %d", bracket, open, place.column);
    else if (place.line == 1)
        snprintf(what, sizeof what, "an operator, ',' or '%c' to close the '%s' at column %d", bracket, open,
                 place.column);
    else
        snprintf(what, sizeof what, "'%c' to close the '%s' at line %d, column %d", bracket, open, place.line,
                 place.column);
    return cot__parse_expected(p, what);
}

bool cot__parse_close(cot__parser *p, int bracket, uint32_t opened) {
    return p->token.kind == bracket ? next(p) : not_closed(p, bracket, opened);
}

bool cot__parse_deeper(cot__parser *p) {
    if (++p->depth <= COT__EXPR_MAX_DEPTH) return true;
    return cot__expr_fail(p->error, p->e->text, p->e->length, p->token.start, p->token.stop,
                          "nested more than %d deep; give parts a name in a statement of their own",
                          COT__EXPR_MAX_DEPTH);
}

static bool push(cot__parser *p, cot__item item) {
    cot__expr_step *s = cot__emit(p, STEP_PUSH, 1, p->token.start, p->token.stop);
    if (s) s->as.item = item;
    return s && next(p);
}

/* ---- atoms ----------------------------------------------------------------------------------- */

static bool starts_operand(int kind) {
    return kind == TOKEN_NAME || kind == TOKEN_NUMBER || kind == TOKEN_INTEGER || kind == TOKEN_STRING;
}

bool cot__parse_load(cot__parser *p, const cot__token *t) {
    cot__item known;
    /* "sin x" */
    if (starts_operand(p->token.kind) && cot__find_callee(p->e->text + t->start, t->stop - t->start))
        return cot__parse_expected(p, "'(' after the name of a function");
    int       name = cot__intern(p, t->start, t->stop);
    if (name < 0) return false;
    cot__name *n = &p->e->names[name];
    if (!n->assigned && !n->required && !cot__known_name(n->text, n->length, &known)) {
        n->required = true;
        n->order = p->e->required_count++;
    }
    cot__expr_step *s = cot__emit(p, STEP_LOAD, 1, t->start, t->stop);
    if (s) s->n = name;
    return s != NULL;
}

/* Parses items up to a closing bracket, which is skipped. A comma may follow the last item. *comma:
 * was there a comma? */
static bool items(cot__parser *p, int bracket, uint32_t opened, int *n, bool *comma) {
    *n = 0;
    *comma = false;
    while (p->token.kind != bracket && p->token.kind != TOKEN_END) {
        if (!cot__parse_expression(p)) return false;
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
    if (!cot__parse_deeper(p) || !next(p) || !items(p, list ? ']' : ')', start, &n, &comma)) return false;
    p->depth--;
    if (!list && n == 1 && !comma) return true;
    cot__expr_step *s = cot__emit(p, list ? STEP_LIST : STEP_TUPLE, 1 - n, start, p->last_stop);
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
        return p->token.kind == '(' ? cot__parse_call(p, &t) : cot__parse_load(p, &t);
    case '(':
    case '[': return bracketed(p);
    default: return cot__parse_expected(p, "a number, a name or '('");
    }
}

/* ---- x[…], x.T ------------------------------------------------------------------------------- */

static bool push_none(cot__parser *p) {
    cot__expr_step *s = cot__emit(p, STEP_PUSH, 1, p->token.start, p->token.start);
    if (s) s->as.item = (cot__item){.kind = ITEM_NONE};
    return s != NULL;
}

static bool ends_part(int kind) { return kind == ':' || kind == ',' || kind == ']' || kind == TOKEN_END; }

/* One item of an index: an expression, a slice, or an ellipsis. */
static bool index_item(cot__parser *p) {
    uint32_t start = p->token.start;
    if (p->token.kind == TOKEN_ELLIPSIS) return push(p, (cot__item){.kind = ITEM_ELLIPSIS});
    if (p->token.kind != ':' && !cot__parse_expression(p)) return false;
    if (p->token.kind != ':') return true;
    /* no expression stands before the colon: push None */
    if (p->token.start == start && !push_none(p)) return false;
    for (int part = 1; part < 3; part++) {
        bool given = p->token.kind == ':';
        if (given && !next(p)) return false;
        if (given && !ends_part(p->token.kind) ? !cot__parse_expression(p) : !push_none(p)) return false;
    }
    return cot__emit(p, STEP_SLICE, -2, start, p->last_stop) != NULL;
}

static bool index_of(cot__parser *p, uint32_t start) {
    uint32_t opened = p->token.start;
    int      n = 0;
    if (!cot__parse_deeper(p) || !next(p)) return false;
    while (p->token.kind != ']' && p->token.kind != TOKEN_END) {
        if (!index_item(p)) return false;
        n++;
        if (p->token.kind != ',') break;
        if (!next(p)) return false;
    }
    if (n == 0 && p->token.kind == ']')
        return cot__parse_expected(p, "an index: an integer, a slice, a list, None or ...");
    if (!cot__parse_close(p, ']', opened)) return false;
    p->depth--;
    cot__expr_step *s = cot__emit(p, STEP_INDEX, -n, start, p->last_stop);
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
        return cot__expr_fail(p->error, p->e->text, p->e->length, t.start, t.stop,
                              "there are no methods and modules here; write %.40s(…)", copy);
    cot__expr_step *s = cot__emit(p, STEP_ATTRIBUTE, 0, start, t.stop);
    if (!s) return false;
    s->at = t.start;
    s->as.item = (cot__item){.kind = ITEM_TEXT, .as.text = copy};
    return true;
}

bool cot__parse_postfix(cot__parser *p) {
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
