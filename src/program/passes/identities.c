/* identities.c: arithmetic that does nothing, or does what something simpler does, for every IEEE
 * number and to the bit.
 *
 *   x * 1, smul(x, 1)      exact; so are x / 1 and sdiv(x, 1)
 *   x - 0, x + (-0)        also for x = -0. Not x + 0, which makes +0 of -0, but for integers
 *   -(-x)                  turns the sign twice
 *   |-x|, |x| of |x|       the sign is taken off anyway; so of squares
 *   x + (-y) = x - y       this is what IEEE's difference is; x - (-y) = x + y likewise
 *   (-x) * (-y) = x * y    the sign of a product or quotient is the product of the signs
 *   x / 2^k = x * 2^-k     both round the same real number, if 2^-k is a normal number
 *   max(x, x), min(x, x)   x, also if it is NaN; relu of relu, floor of floor, …: nothing is left
 *                          to be done
 *   where(c, x, x)         x; where the condition is one constant, the branch that it takes
 *   not(not(x))            of bools
 *
 * Integers narrower than 64 bits are stored rounded to their dtype, so the rules about signs are
 * for floats. A number is a plain number or a constant whose elements all have the same bits, also
 * through views of it. */
#include "base/element.h"
#include "program/passes/makers.h"
#include "program/passes/rewrite.h"
#include "program/passes/uniform.h"
#include "rules/elementwise_ids.h"

/* An operation that is looked at: its operands are values of the new program. */
typedef struct look {
    cot__rewrite      *r;
    uint32_t           k;
    cot__append       *o;
    cot_dtype          dtype; /* of its operands */
} look;

/* ---- questions ------------------------------------------------------------------------------- */

static bool is_float(const look *l) { return cot__dtype_is_float(l->dtype); }

/* Is operand i this number, whatever dtype and shape it has? */
static bool is_number(const look *l, int i, double number) {
    double x;
    if (l->o->x[i] == COT__NO_VALUE) x = l->o->number;
    else if (!cot__uniform_value(l->r->edit->state, l->r->to.p, l->o->x[i], &x)) return false;
    return x == number && signbit(x) == signbit(number);
}

/* Operand i, if the new program makes it by this operation: the operand of that. */
static bool is_made_by(const look *l, int i, int op, uint32_t *of) {
    return cot__made_by(l->r->to.p, l->o->x[i], op, of);
}

/* Has the value the type of the operation's result? */
static bool can_stand_for(const look *l, uint32_t v) {
    return v != COT__NO_VALUE && cot__same_type(l->r->to.p, v, l->r->from, l->r->from->operation[l->k].result);
}

/* ---- the value that the result is ------------------------------------------------------------ */

/* Which operand of a sum, difference, product or quotient the result is; -1: neither. */
static int neutral(const look *l) {
    bool whole = !is_float(l);
    switch (l->o->op) {
    case OP_mul:
    case OP_smul: return is_number(l, 1, 1) ? 0 : is_number(l, 0, 1) ? 1 : -1;
    case OP_div:
    case OP_sdiv: return is_number(l, 1, 1) ? 0 : -1;
    case OP_sub: return is_number(l, 1, 0) || (whole && is_number(l, 1, -0.0)) ? 0 : -1;
    case OP_add:
        if (is_number(l, 1, -0.0) || (whole && is_number(l, 1, 0))) return 0;
        return is_number(l, 0, -0.0) || (whole && is_number(l, 0, 0)) ? 1 : -1;
    default: return -1;
    }
}

/* Rounded to a whole number already? */
static bool is_whole(const look *l) {
    uint32_t of;
    return is_made_by(l, 0, OP_floor, &of) || is_made_by(l, 0, OP_ceil, &of) || is_made_by(l, 0, OP_round, &of) ||
           is_made_by(l, 0, OP_trunc, &of);
}

/* Which value a unary operation gives: its operand, or the operand of that. */
static uint32_t unary(const look *l) {
    uint32_t x = l->o->x[0], of = COT__NO_VALUE;
    switch (l->o->op) {
    case OP_neg: return is_float(l) && is_made_by(l, 0, OP_neg, &of) ? of : COT__NO_VALUE;
    case OP_logical_not: return is_made_by(l, 0, OP_logical_not, &of) ? of : COT__NO_VALUE;
    case OP_abs: return is_float(l) && is_made_by(l, 0, OP_abs, &of) ? x : COT__NO_VALUE;
    case OP_relu: return is_made_by(l, 0, OP_relu, &of) ? x : COT__NO_VALUE;
    case OP_floor:
    case OP_ceil:
    case OP_round:
    case OP_trunc: return is_whole(l) ? x : COT__NO_VALUE;
    default: return COT__NO_VALUE;
    }
}

static uint32_t chosen(const look *l) {
    const uint32_t *x = l->o->x;
    if (x[1] == x[2] || is_number(l, 0, 1)) return x[1];
    return is_number(l, 0, 0) ? x[2] : COT__NO_VALUE;
}

/* A value of the new program that the result is, or none. */
static uint32_t value_of(const look *l) {
    int i = l->o->n == 2 ? neutral(l) : -1;
    if (i >= 0) return l->o->x[i];
    if (l->o->n == 1) return unary(l);
    if (l->o->op == OP_where) return chosen(l);
    if ((l->o->op == OP_maximum || l->o->op == OP_minimum) && l->o->x[0] == l->o->x[1]) return l->o->x[0];
    return COT__NO_VALUE;
}

/* ---- something simpler ----------------------------------------------------------------------- */

/* |-x| and (-x)^2. */
static bool drop_sign(const look *l) {
    return (l->o->op == OP_abs || l->o->op == OP_square) && is_made_by(l, 0, OP_neg, &l->r->x[0]);
}

static void swap(uint32_t *x) {
    uint32_t first = x[0];
    x[0] = x[1];
    x[1] = first;
}

/* x + (-y), (-y) + x, x - (-y). */
static bool turn_sum(const look *l) {
    if (l->o->op != OP_add && l->o->op != OP_sub) return false;
    if (is_made_by(l, 1, OP_neg, &l->r->x[1])) return l->o->op = l->o->op == OP_add ? OP_sub : OP_add, true;
    if (l->o->op == OP_sub || !is_made_by(l, 0, OP_neg, &l->r->x[0])) return false;
    swap(l->r->x);
    l->o->op = OP_sub;
    return true;
}

/* (-x) * (-y) and (-x) / (-y). */
static bool turn_product(const look *l) {
    uint32_t x, y;
    if (l->o->op != OP_mul && l->o->op != OP_div) return false;
    if (!is_made_by(l, 0, OP_neg, &x) || !is_made_by(l, 1, OP_neg, &y)) return false;
    l->r->x[0] = x;
    l->r->x[1] = y;
    return true;
}

/* x / 2^k. The dtype in which it is computed has normal numbers from 2^-126 on at least. */
static bool multiply_instead(const look *l) {
    int    exponent;
    double number;
    if (l->o->op != OP_div || l->o->x[1] != COT__NO_VALUE) return false;
    number = l->o->number;
    if (!isfinite(number) || fabs(frexp(number, &exponent)) != 0.5 || exponent < -120 || exponent > 120) return false;
    l->o->op = OP_mul;
    l->o->number = 1 / number;
    return true;
}

static bool simpler(const look *l) {
    if (!is_float(l)) return false;
    return l->o->n == 1 ? drop_sign(l)
                        : l->o->n == 2 && (turn_sum(l) || turn_product(l) || multiply_instead(l));
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* The dtype of the first operand that is no number and no condition. */
static cot_dtype dtype_of(const cot__rewrite *r, const cot__append *o) {
    int i = o->n == 3 || o->x[0] == COT__NO_VALUE;
    return cot__value_view(r->to.p, o->x[i]).dtype;
}

static void edit_operation(cot__rewrite *r, uint32_t k) {
    cot__type   asked;
    cot__append o = cot__rewrite_operation(r, k, &asked);
    if (o.op < OP_structural) {
        look     l = {r, k, &o, dtype_of(r, &o)};
        uint32_t v = value_of(&l);
        if (can_stand_for(&l, v)) {
            cot__rewrite_replace(r, k, v);
            return;
        }
        r->changes += simpler(&l);
    }
    cot__rewrite_put(r, k, &o);
}

cot__program *cot__pass_identities(const cot__program *p, const cot__pass_options *o) {
    cot__uniform  u;
    cot__edit     how = {.state = &u, .operation = edit_operation};
    cot__program *made = cot__uniform_open(&u, p, o) ? cot__rewrite_run(p, o, &how) : NULL;
    cot__uniform_close(&u, o);
    return made;
}
