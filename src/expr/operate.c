/* operate.c: operators. Plain numbers of the text are computed as in Python. Operations on values
 * of the tape are calls of the library, in which plain numbers are weak operands. Lists become
 * arrays. */
#include "base/math/elementary.h"
#include "expr/by_hand.h"
#include "expr/lex.h"
#include "expr/program.h"

#include <math.h>

bool cot__checked(cot__evaluation *r, cot_var x, cot__item *out) {
    if (!cot_is_valid(x)) return cot__evaluation_tape_failed(r);
    *out = cot__item_var(x);
    return true;
}

/* ---- numbers of the text --------------------------------------------------------------------- */

static bool zero_division(cot__evaluation *r) {
    return cot__evaluation_fail(r, "division by zero; for a limit write inf or nan");
}

/* Integers stay integers while they fit an int64; otherwise they become floating point. */
static bool integers(cot__evaluation *r, int what, int64_t x, int64_t y, cot__item *out) {
    int64_t z = 0;
    bool    over = false;
    switch (what) {
    case '+': over = __builtin_add_overflow(x, y, &z); break;
    case '-': over = __builtin_sub_overflow(x, y, &z); break;
    case '*': over = __builtin_mul_overflow(x, y, &z); break;
    case TOKEN_FLOOR_DIVIDE:
    case '%':
        if (y == 0) return zero_division(r);
        if (y == -1) { /* INT64_MIN / -1 does not fit */
            over = what == '%' ? false : __builtin_sub_overflow((int64_t)0, x, &z);
            break;
        }
        z = what == '%' ? x % y : x / y;
        if (x % y != 0 && (x % y < 0) != (y < 0)) z += what == '%' ? y : -1;
        break;
    case TOKEN_POWER: {
        int64_t base = x;
        if (y < 0) return x == 0 ? zero_division(r) : (*out = cot__item_number(cot__pow((double)x, (double)y)), true);
        z = 1;
        for (int64_t n = y; n > 0 && !over; n >>= 1) {
            if (n & 1) over = __builtin_mul_overflow(z, base, &z);
            if (n > 1 && !over) over = __builtin_mul_overflow(base, base, &base);
        }
        break;
    }
    default:
        if (y == 0) return zero_division(r);
        *out = cot__item_number((double)x / (double)y);
        return true;
    }
    if (!over) {
        *out = cot__item_integer(z);
        return true;
    }
    double a = (double)x, b = (double)y;
    *out = cot__item_number(what == '+'           ? a + b
                            : what == '-'         ? a - b
                            : what == '*'         ? a * b
                            : what == TOKEN_POWER ? cot__pow(a, b)
                                                  : floor(a / b));
    return true;
}

static bool reals(cot__evaluation *r, int what, double x, double y, cot__item *out) {
    double z;
    switch (what) {
    case '+': z = x + y; break;
    case '-': z = x - y; break;
    case '*': z = x * y; break;
    case '/':
        if (y == 0) return zero_division(r);
        z = x / y;
        break;
    case TOKEN_POWER:
        if (x == 0 && y < 0) return zero_division(r);
        z = cot__pow(x, y);
        break;
    default: {
        if (y == 0) return zero_division(r);
        /* q is an integer but for rounding */
        double m = cot__fmod(x, y), q = (x - m) / y;
        if (m != 0 && (m < 0) != (y < 0)) {
            m += y;
            q -= 1;
        }
        if (m == 0) m = copysign(0, y);
        z = what == '%' ? m : nearbyint(q);
    }
    }
    *out = cot__item_number(z);
    return true;
}

/* ---- operators ------------------------------------------------------------------------------- */

/* Python would join, repeat or compare two lists. An array would mean something else, so such
 * operations are refused. */
static bool ambiguous(const cot__item *x, const cot__item *y) {
    return x->kind != ITEM_VAR && y->kind != ITEM_VAR && (cot__is_sequence(x) || cot__is_sequence(y));
}

bool cot__operate_binary(cot__evaluation *r, int what, const cot__item *x, const cot__item *y, cot__item *out) {
    cot_var a, b;
    if (cot__is_plain(x) && cot__is_plain(y) && what != '@') {
        if (x->kind == ITEM_NUMBER || y->kind == ITEM_NUMBER)
            return reals(r, what, cot__plain_value(x), cot__plain_value(y), out);
        return integers(r, what, x->as.integer, y->as.integer, out);
    }
    if (x->kind == ITEM_SPARSE || y->kind == ITEM_SPARSE) return cot__operate_sparse_binary(r, what, x, y, out);
    if ((what == '+' || what == '*') && ambiguous(x, y))
        return cot__evaluation_fail(r, "in Python '%c' %s lists; write array([…]) for arithmetic on the elements", what,
                                    what == '+' ? "joins" : "repeats");
    if (what == '@') {
        if (!cot__to_var(r, x, &a) || !cot__to_var(r, y, &b)) return false;
        return cot__checked(r, (cot_matmul)(a, b), out);
    }
    if (!cot__to_operand(r, x, &a) || !cot__to_operand(r, y, &b)) return false;
    switch (what) {
    case '+': return cot__checked(r, (cot_add)(a, b), out);
    case '-': return cot__checked(r, (cot_sub)(a, b), out);
    case '*': return cot__checked(r, (cot_mul)(a, b), out);
    case '/': return cot__checked(r, (cot_div)(a, b), out);
    case '%': return cot__checked(r, (cot_remainder)(a, b), out);
    case TOKEN_POWER: return cot__checked(r, (cot_pow)(a, b), out);
    default: return cot__checked(r, cot__floor_divide(a, b), out);
    }
}

bool cot__operate_unary(cot__evaluation *r, int what, const cot__item *x, cot__item *out) {
    cot_var a;
    if (cot__is_plain(x)) {
        if (x->kind == ITEM_NUMBER)
            *out = cot__item_number(what == '-' ? -x->as.number : x->as.number);
        else if (what == '-' && x->as.integer == INT64_MIN)
            *out = cot__item_number(-(double)INT64_MIN);
        else
            *out = cot__item_integer(what == '-' ? -x->as.integer : x->as.integer);
        return true;
    }
    if (x->kind == ITEM_SPARSE) return cot__operate_sparse_unary(r, what, x, out);
    if (!cot__to_var(r, x, &a)) return false;
    return cot__checked(r, what == '-' ? (cot_neg)(a) : a, out);
}

bool cot__operate_compare(cot__evaluation *r, int what, const cot__item *x, const cot__item *y, cot__item *out) {
    cot_var a, b;
    if (cot__is_plain(x) && cot__is_plain(y)) {
        bool   whole = x->kind != ITEM_NUMBER && y->kind != ITEM_NUMBER;
        double u = cot__plain_value(x), v = cot__plain_value(y);
        bool   less    = whole ? x->as.integer < y->as.integer : u < v,
             equal     = whole ? x->as.integer == y->as.integer : u == v;
        bool   greater = whole ? x->as.integer > y->as.integer : u > v;
        *out = cot__item_bool(what == '<'                  ? less
                              : what == '>'                ? greater
                              : what == TOKEN_LESS_EQUAL   ? less || equal
                              : what == TOKEN_GREATER_EQUAL ? greater || equal
                              : what == TOKEN_EQUAL        ? equal
                                                           : !equal);
        return true;
    }
    if (ambiguous(x, y))
        return cot__evaluation_fail(r, "Python compares lists as a whole; write array([…]) to compare the elements");
    if (!cot__to_operand(r, x, &a) || !cot__to_operand(r, y, &b)) return false;
    switch (what) {
    case '<': return cot__checked(r, (cot_less)(a, b), out);
    case '>': return cot__checked(r, (cot_greater)(a, b), out);
    case TOKEN_LESS_EQUAL: return cot__checked(r, (cot_less_equal)(a, b), out);
    case TOKEN_GREATER_EQUAL: return cot__checked(r, (cot_greater_equal)(a, b), out);
    case TOKEN_EQUAL: return cot__checked(r, (cot_equal)(a, b), out);
    default: return cot__checked(r, (cot_not_equal)(a, b), out);
    }
}

/* Joins two links of a chain of comparisons. */
bool cot__operate_both(cot__evaluation *r, const cot__item *x, const cot__item *y, cot__item *out) {
    cot_var a, b;
    if (cot__is_plain(x) && cot__is_plain(y)) {
        *out = cot__item_bool(x->as.integer && y->as.integer);
        return true;
    }
    if (!cot__to_operand(r, x, &a) || !cot__to_operand(r, y, &b)) return false;
    return cot__checked(r, (cot_logical_and)(a, b), out);
}

bool cot__operate_truth(cot__evaluation *r, const char *where, const char *instead, const cot__item *x, bool *out) {
    char words[100];
    if (cot__is_plain(x)) {
        *out = x->kind == ITEM_NUMBER ? x->as.number != 0 : x->as.integer != 0;
        return true;
    }
    if (x->kind == ITEM_VAR && cot_size(x->as.var) == 1 && !cot__is_for_shapes(x->as.var)) {
        if (cot__is_compiled(x->as.var))
            return cot__evaluation_fail(r, "%s depends on the inputs, and a function is compiled for all values that "
                                           "they may have; write %s", where, instead);
        *out = cot_value(x->as.var) != 0;
        return cot_tape_status(r->t) == COT_OK || cot__evaluation_tape_failed(r);
    }
    return cot__evaluation_fail(r, "%s takes a single number, not %s; %s goes element by element", where,
                                cot__item_words(x, words, sizeof words), instead);
}
