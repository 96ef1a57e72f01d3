/* parse.c: the grammar, by recursive descent straight into steps; here its operators, parse_atom.c
 * and statement.c have the rest.
 *
 *     program     statement ((';' | NEWLINE) statement)*
 *     statement   (NAME (',' NAME)* '=')* expression (',' expression)*  |  NAME '+=' expression …
 *     expression  or ['if' or 'else' expression]
 *     or          and ('or' and)*
 *     and         not ('and' not)*
 *     not         'not' not | comparison
 *     comparison  sum (('<' | …) sum)*        sum and product from left to right
 *     unary       ('-' | '+') unary | power
 *     power       postfix ['**' unary]
 *     postfix     atom ('(' … ')' | '[' … ']' | '.' NAME)*
 *
 * Only brackets and what is right-associative recurse, and each counts to COT__EXPR_MAX_DEPTH. */
#include "expr/emit.h"

#define next cot__parse_next
#define deeper cot__parse_deeper

/* ---- operators ------------------------------------------------------------------------------- */

bool cot__parse_step(cot__parser *p, cot__expr_step_kind kind, const cot__token *operator, int what, uint32_t start) {
    cot__expr_step *s = cot__emit(p, kind, kind == STEP_COMPARE_ON ? 0 : -1, start, p->last_stop);
    if (!s) return false;
    s->what = what;
    s->at = operator->start;
    s->at_stop = operator->stop;
    return true;
}

static bool unary(cot__parser *p) {
    cot__token t = p->token;
    if (t.kind != '-' && t.kind != '+') {
        if (!cot__parse_postfix(p)) return false;
        cot__token power = p->token;
        if (power.kind != TOKEN_POWER) return true;
        if (!deeper(p) || !next(p) || !unary(p)) return false;
        p->depth--;
        return cot__parse_step(p, STEP_BINARY, &power, TOKEN_POWER, t.start);
    }
    if (!deeper(p) || !next(p) || !unary(p)) return false;
    p->depth--;
    cot__expr_step *s = cot__emit(p, STEP_UNARY, 0, t.start, p->last_stop);
    if (!s) return false;
    s->what = t.kind;
    s->at_stop = t.stop;
    return true;
}

static bool is_product(int kind) {
    return kind == '*' || kind == '/' || kind == '%' || kind == '@' || kind == TOKEN_FLOOR_DIVIDE;
}

static bool product(cot__parser *p) {
    uint32_t start = p->token.start;
    if (!unary(p)) return false;
    while (is_product(p->token.kind)) {
        cot__token t = p->token;
        if (!next(p) || !unary(p) || !cot__parse_step(p, STEP_BINARY, &t, t.kind, start)) return false;
    }
    return true;
}

static bool sum(cot__parser *p) {
    uint32_t start = p->token.start;
    if (!product(p)) return false;
    while (p->token.kind == '+' || p->token.kind == '-') {
        cot__token t = p->token;
        if (!next(p) || !product(p) || !cot__parse_step(p, STEP_BINARY, &t, t.kind, start)) return false;
    }
    return true;
}

static bool is_comparison(int kind) {
    return kind == '<' || kind == '>' || kind == TOKEN_LESS_EQUAL || kind == TOKEN_GREATER_EQUAL ||
           kind == TOKEN_EQUAL || kind == TOKEN_NOT_EQUAL;
}

/* a < b < c: both comparisons must hold, and b is computed once. */
static bool comparison(cot__parser *p) {
    uint32_t start = p->token.start;
    int      chained = 0;
    if (!sum(p)) return false;
    while (is_comparison(p->token.kind)) {
        cot__token t = p->token;
        if (!next(p) || !sum(p)) return false;
        bool more = is_comparison(p->token.kind);
        if (!cot__parse_step(p, more ? STEP_COMPARE_ON : STEP_COMPARE, &t, t.kind, start)) return false;
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
    cot__expr_step *s = cot__emit(p, STEP_NOT, 0, t.start, p->last_stop);
    if (s) s->at_stop = t.stop;
    return s != NULL;
}

/* x and y and z: each operand has one jump to the place behind the next operand, so that a chain
 * needs no second pass. */
static bool connective(cot__parser *p, int word, cot__expr_step_kind kind, bool (*operand)(cot__parser *)) {
    uint32_t start = p->token.start;
    if (!operand(p)) return false;
    while (p->token.kind == word) {
        cot__token t = p->token;
        size_t     jump = p->e->count;
        if (!cot__parse_step(p, kind, &t, word, start) || !next(p) || !operand(p)) return false;
        p->e->steps[jump].n = (int)(p->e->count - jump - 1);
    }
    return true;
}

static bool conjunction(cot__parser *p) { return connective(p, TOKEN_AND, STEP_AND, negation); }
static bool disjunction(cot__parser *p) { return connective(p, TOKEN_OR, STEP_OR, conjunction); }

/* The text has the value before its condition, but the condition must run first: their steps are
 * exchanged. */
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
    /* the other case starts from the same height of the stack */
    if (!cot__emit(p, STEP_JUMP, -1, start, start)) return false;
    if (!deeper(p) || !next(p) || !cot__parse_expression(p)) return false;
    p->depth--;
    e->steps[jump].n = (int)(e->count - jump - 1);
    return true;
}

bool cot__parse_expression(cot__parser *p) { return conditional(p); }
