/* formula.c: a rule as a formula for people, with as few parentheses as precedence allows.
 *
 * Recursive over a rule, whose depth the table bounds; never over the tape. */
#include "rules/elementwise_ids.h"
#include "base/number.h"
#include "base/text.h"
#include "rules/elementwise_table.h"

/* How tightly an expression binds. Products read as one chain, a·b·c, whatever their nesting. */
enum { CHOICE = 1, OR_ELSE, AND_ALSO, COMPARISON, SUM, MINUS, PRODUCT, POWER, ATOM };

/* Operations written between their operands; all others are calls, name(a, b). */
static const struct infix { const char *sign; int binds, left, right; } infix[OP_elementwise_count] = {
    [OP_add] = {" + ", SUM, SUM, PRODUCT},        [OP_sub] = {" - ", SUM, SUM, PRODUCT},
    [OP_mul] = {"·", PRODUCT, PRODUCT, PRODUCT},  [OP_smul] = {"·", PRODUCT, PRODUCT, PRODUCT},
    [OP_div] = {"/", PRODUCT, PRODUCT, POWER},    [OP_sdiv] = {"/", PRODUCT, PRODUCT, POWER},
    [OP_pow] = {"^", POWER, ATOM, ATOM},          [OP_equal] = {" = ", COMPARISON, SUM, SUM},
    [OP_not_equal] = {" ≠ ", COMPARISON, SUM, SUM},     [OP_less] = {" < ", COMPARISON, SUM, SUM},
    [OP_less_equal] = {" ≤ ", COMPARISON, SUM, SUM},    [OP_greater] = {" > ", COMPARISON, SUM, SUM},
    [OP_greater_equal] = {" ≥ ", COMPARISON, SUM, SUM}, [OP_logical_and] = {" and ", AND_ALSO, AND_ALSO, AND_ALSO},
    [OP_logical_or] = {" or ", OR_ELSE, OR_ELSE, OR_ELSE},
};

/* Operations written around their only operand. */
static const struct around { const char *before, *after; int binds, inside; } around[OP_elementwise_count] = {
    [OP_neg] = {"-", "", MINUS, PRODUCT},      [OP_abs] = {"|", "|", ATOM, CHOICE},
    [OP_square] = {"", "²", POWER, ATOM},      [OP_reciprocal] = {"1/", "", PRODUCT, POWER},
    [OP_rsqrt] = {"1/sqrt(", ")", PRODUCT, CHOICE}, [OP_exp2] = {"2^", "", POWER, ATOM},
    [OP_lgamma] = {"log|Γ(", ")|", ATOM, CHOICE},   [OP_digamma] = {"ψ(", ")", ATOM, CHOICE},
    [OP_logical_not] = {"not ", "", COMPARISON, SUM},
};

static const cot__tree *operand(const cot__tree *e, int k) {
    for (e++; k > 0; k--) e = cot__tree_after(e);
    return e;
}

static bool is_division(const cot__tree *e) {
    return e->what == TREE_OP && (e->op == OP_div || e->op == OP_sdiv || e->op == OP_reciprocal || e->op == OP_rsqrt);
}

static bool is_zero(const cot__tree *e) { return e->what == TREE_NUMBER && cot__tree_number(e) == 0; }
/* where(c, g, 0) is written [c]·g, as in the manual. */
static bool is_gate(const cot__tree *e) { return e->what == TREE_OP && e->op == OP_where && is_zero(operand(e, 2)); }

static int binding(const cot__tree *e) {
    if (e->what == TREE_NUMBER) return cot__tree_number(e) < 0 ? MINUS : ATOM;
    if (e->what != TREE_OP) return ATOM;
    if (is_gate(e)) return PRODUCT;
    if (e->op == OP_where) return CHOICE;
    if (e->op == OP_fma) return SUM;
    return infix[e->op].sign ? infix[e->op].binds : around[e->op].before ? around[e->op].binds : ATOM;
}

/* `of` is the operation that the rule belongs to; its operands' names are used. */
static void write(cot__text *x, int of, const cot__tree *e, int least);

static void write_number(cot__text *x, double v) {
    char digits[40];
    for (int n = 6; n <= 17; n++) {
        /* the shortest text that reads back as v, but no shorter than %g */
        cot__format(digits, sizeof digits, "%.*g", n, v);
        if (cot__read_number(digits, NULL) == v) break;
    }
    cot__put(x, digits);
}

static void write_call(cot__text *x, int of, const cot__tree *e) {
    static const char *const names[OP_elementwise_count] = {
        [OP_maximum] = "max", [OP_minimum] = "min", [OP_log_sigmoid] = "log sigmoid"};
    cot__put(x, names[e->op] ? names[e->op] : cot__elementwise_table[e->op].name);
    for (int k = 0; k < cot__elementwise_table[e->op].arity; k++) {
        cot__put(x, k ? ", " : "(");
        write(x, of, operand(e, k), CHOICE);
    }
    cot__put(x, ")");
}

static void write_operation(cot__text *x, int of, const cot__tree *e) {
    const struct infix  *i = &infix[e->op];
    const struct around *a = &around[e->op];
    if (is_gate(e)) {
        cot__put(x, "[");
        write(x, of, operand(e, 0), CHOICE);
        cot__put(x, "]·");
        write(x, of, operand(e, 1), is_division(operand(e, 1)) ? POWER : PRODUCT);
    } else if (e->op == OP_where) {
        write(x, of, operand(e, 0), OR_ELSE);
        cot__put(x, " ? ");
        write(x, of, operand(e, 1), OR_ELSE);
        cot__put(x, " : ");
        write(x, of, operand(e, 2), CHOICE);
    } else if (e->op == OP_fma) {
        write(x, of, operand(e, 0), PRODUCT);
        cot__put(x, "·");
        write(x, of, operand(e, 1), is_division(operand(e, 1)) ? POWER : PRODUCT);
        cot__put(x, " + ");
        write(x, of, operand(e, 2), PRODUCT);
    } else if (i->sign) {
        /* a·(b/c) is not computed as a·b/c */
        bool chain = i->binds == PRODUCT && is_division(operand(e, 1));
        write(x, of, operand(e, 0), i->left);
        cot__put(x, i->sign);
        write(x, of, operand(e, 1), chain ? POWER : e->op == OP_add && binding(operand(e, 1)) == SUM ? SUM : i->right);
    } else if (a->before) {
        cot__put(x, a->before);
        write(x, of, operand(e, 0), a->inside);
        cot__put(x, a->after);
    } else
        write_call(x, of, e);
}

static void write(cot__text *x, int of, const cot__tree *e, int least) {
    bool parentheses = binding(e) < least;
    if (parentheses) cot__put(x, "(");
    switch (e->what) {
    case TREE_OPERAND: cot__put(x, cot__operand_name(of, e->op)); break;
    case TREE_RESULT: cot__put(x, "z"); break;
    case TREE_G: cot__put(x, "g"); break;
    case TREE_NUMBER: write_number(x, cot__tree_number(e)); break;
    case TREE_OP: write_operation(x, of, e); break;
    }
    if (parentheses) cot__put(x, ")");
}

const char *cot__formula(int op, const cot__tree *tree, char *buf, size_t size) {
    cot__text x = cot__text_buffer(buf, size);
    if (tree) write(&x, op, tree, CHOICE);
    return buf;
}
