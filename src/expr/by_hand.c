/* by_hand.c: functions whose arguments must be changed before a call in C. Arguments are in the
 * order of spelling.def. */
#include "expr/by_hand.h"

#include "tape/tape.h"

#include <string.h>

#define A c->arg

cot_dtype cot__dtype_or(const cot__invocation *c, cot_dtype given) {
    return given != COT_DTYPE_COUNT ? given : c->whole ? COT_I64 : COT_F64;
}

static void one(cot__invocation *c, cot_var x) {
    c->result[0] = x;
    c->results = 1;
}

void cot__by_hand_transpose(cot__invocation *c) {
    one(c, A[1].axes.n < 0 ? (cot_transpose)(A[0].var) : (cot_permute)(A[0].var, A[1].axes));
}

/* NumPy's pad widths: one number for all sides, a pair (before, after) for all axes, or a pair for
 * each axis. */
void cot__by_hand_pad(cot__invocation *c) {
    const cot__table *w = &A[1].table;
    cot_shape         before = {.ndim = cot_shape_of(A[0].var).ndim}, after = before;
    bool              pairs = w->ndim == 2 && w->dim[1] == 2 && (w->dim[0] == before.ndim || w->dim[0] == 1);
    if (strcmp(A[2].text, "constant")) {
        one(c, cot__fail(c->tape, COT_VALUE, "[pad] mode '%.40s'; 'constant' is the one there is", A[2].text));
        return;
    }
    if (w->ndim > 0 && !pairs && !(w->ndim == 1 && w->dim[0] == 2)) {
        one(c,
            cot__fail(c->tape, COT_SHAPE,
                      "[pad] widths do not fit %d axes; give one number, (before, after), or such a pair for each axis",
                      before.ndim));
        return;
    }
    for (int k = 0; k < before.ndim; k++) {
        const int64_t *pair = &w->at[pairs && w->dim[0] > 1 ? 2 * k : 0];
        before.dim[k] = pair[0];
        after.dim[k] = w->ndim ? pair[1] : pair[0];
    }
    one(c, (cot_pad)(A[0].var, before, after, A[3].number));
}

/* NumPy's axes: an integer n means the last n of a and the first n of b. Otherwise one or several
 * axes of each are given. */
void cot__by_hand_tensordot(cot__invocation *c) {
    const cot__table *w = &A[2].table;
    cot_axes          a = {.n = 0}, b = a;
    int               ndim = cot_shape_of(A[0].var).ndim;
    int64_t           n = w->ndim == 2 ? w->dim[1] : w->ndim == 1 ? 1 : w->at[0];
    if ((w->ndim > 0 && w->dim[0] != 2) || n < 0 || n > COT_MAX_NDIM) {
        one(c, cot__fail(c->tape, COT_VALUE,
                         "[tensordot] axes must be a number of axes, or two lists: those of a and those of b"));
        return;
    }
    if (w->ndim == 0 && n > ndim) {
        one(c, cot__fail(c->tape, COT_SHAPE, "[tensordot] the last %d axes of an array that has %d", (int)n, ndim));
        return;
    }
    for (int k = 0; k < n; k++) {
        a.axis[a.n++] = w->ndim ? (int)w->at[k] : ndim - (int)n + k;
        b.axis[b.n++] = w->ndim ? (int)w->at[n + k] : k;
    }
    one(c, (cot_tensordot)(A[0].var, A[1].var, a, b));
}

void cot__by_hand_split(cot__invocation *c) {
    int64_t parts = A[1].integer;
    if (parts < 1 || parts > COT__MOST_RESULTS) {
        one(c, cot__fail(c->tape, COT_VALUE, "[split] into %lld parts; 1 to %d are possible", (long long)parts,
                         COT__MOST_RESULTS));
        return;
    }
    c->results = (cot_split)(A[0].var, (int)parts, (int)A[2].integer, c->result) == COT_OK ? (int)parts : 0;
}

static cot_dtype like(const cot__invocation *c, int at) {
    return A[at].dtype == COT_DTYPE_COUNT ? cot_dtype_of(A[0].var) : A[at].dtype;
}

void cot__by_hand_array(cot__invocation *c) {
    one(c, like(c, 1) == cot_dtype_of(A[0].var) ? A[0].var : cot_cast(A[0].var, like(c, 1)));
}
void cot__by_hand_to_dense(cot__invocation *c) { one(c, A[0].var); }
void cot__by_hand_zeros_like(cot__invocation *c) { one(c, cot_zeros(c->tape, like(c, 1), cot_shape_of(A[0].var))); }
void cot__by_hand_ones_like(cot__invocation *c) { one(c, cot_ones(c->tape, like(c, 1), cot_shape_of(A[0].var))); }
void cot__by_hand_full_like(cot__invocation *c) {
    one(c, cot_full(c->tape, like(c, 2), cot_shape_of(A[0].var), A[1].number));
}

static bool is_float(cot_var x) {
    return cot__is_number(x) ? x.tape == cot_number(0).tape : cot__dtype_is_float(cot_dtype_of(x));
}

/* whole / y, where y divides whole. A float has 53 bits of the 64, so the rest is divided once
 * more. The rest is all of it only where y is 0: there the quotient is 0, as in NumPy. */
static cot_var divide_exactly(cot_var whole, cot_var y) {
    cot_dtype type = cot_dtype_of(whole);
    cot_var   q = (cot_cast)((cot_round)((cot_div)(whole, y)), type), missed = (cot_sub)(whole, (cot_mul)(q, y));
    q = (cot_add)(q, (cot_cast)((cot_round)((cot_div)(missed, y)), type));
    return (cot_mul)(q, (cot_not_equal)(missed, whole));
}

/* (x - fmod(x, y)) / y is an integer but for rounding, so rounding finds it where floor(x / y)
 * would miss: 1 // 0.1 is 9. The quotient is one less where the remainder has the other sign, also
 * for an infinite divisor: -3 // inf is -1. */
cot_var cot__floor_divide(cot_var x, cot_var y) {
    cot_var left = (cot_fmod)(x, y), whole = (cot_sub)(x, left);
    cot_var q = is_float(x) || is_float(y) ? (cot_round)((cot_div)(whole, y)) : divide_exactly(whole, y);
    return (cot_sub)(q, (cot_not_equal)((cot_remainder)(x, y), left));
}
void cot__by_hand_floor_divide(cot__invocation *c) { one(c, cot__floor_divide(A[0].var, A[1].var)); }

void cot__by_hand_arange(cot__invocation *c) {
    bool one_given = A[1].number == (double)COT_END;
    one(c, cot_arange(c->tape, cot__dtype_or(c, A[3].dtype), one_given ? 0 : A[0].number,
                      one_given ? A[0].number : A[1].number, A[2].number));
}

void cot__by_hand_eye(cot__invocation *c) {
    one(c,
        cot_eye(c->tape, cot__dtype_or(c, A[2].dtype), A[0].integer, A[1].integer < 0 ? A[0].integer : A[1].integer));
}

/* axis=None: rolls the elements as one vector, and keeps the shape. */
void cot__by_hand_roll(cot__invocation *c) {
    cot_var x = A[0].var;
    if (A[2].integer != COT_END) {
        one(c, cot_roll(x, A[1].integer, (int)A[2].integer));
        return;
    }
    one(c, cot_reshape(cot_roll(cot_reshape(x, COT_SHAPE(-1)), A[1].integer, 0), cot_shape_of(x)));
}

/* For a matrix NumPy's ord means a norm of the linear map, not of the elements. Orders that cannot
 * mean the same here are refused. */
void cot__by_hand_norm(cot__invocation *c) {
    cot_axes   axes = A[2].axes;
    cot__order order = A[1].order;
    int        ndim = axes.n < 0 ? cot_shape_of(A[0].var).ndim : axes.n;
    if (order.kind == ORDER_GIVEN && ndim > 1) {
        one(c, cot__fail(c->tape, COT_VALUE,
                         "[norm] ord=%g over %d axes is ambiguous: NumPy's is a norm of matrices, not of their "
                         "elements; norm(x) or ord='fro' is "
                         "sqrt(sum(x**2)), axis=k takes vectors, norm(reshape(x, -1), ord) all elements, and the "
                         "spectral norm is max(svdvals(x))",
                         order.p, ndim));
        return;
    }
    axes.keepdims = A[3].flag;
    one(c, (cot_norm)(A[0].var, order.p, axes));
}

/* NumPy's matrices lie along the first two axes, the library's along the last two. */
void cot__by_hand_trace(cot__invocation *c) {
    cot_axes order = {.n = cot_shape_of(A[0].var).ndim};
    for (int k = 0; k < order.n; k++) order.axis[k] = (k + 2) % order.n;
    one(c, cot_trace(order.n > 2 ? (cot_permute)(A[0].var, order) : A[0].var, A[1].integer));
}

/* axis=None: takes the elements in order, as one vector. */
void cot__by_hand_compress(cot__invocation *c) {
    bool flat = A[2].integer == COT_END;
    one(c,
        cot_compress(flat ? cot_reshape(A[1].var, COT_SHAPE(-1)) : A[1].var, A[0].var, flat ? 0 : (int)A[2].integer));
}

void cot__by_hand_dot_of(cot__invocation *c) {
    if (A[0].list.n != A[1].list.n)
        one(c, cot__fail(c->tape, COT_SHAPE, "[dot_of] %d and %d operands; both lists have as many", A[0].list.n,
                         A[1].list.n));
    else
        one(c, cot_dot_of(A[0].list.n, A[0].list.xs, A[1].list.xs));
}
