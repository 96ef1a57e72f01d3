/* cumulative.c: running sums, products and extremes along one axis.
 *
 * cumsum is linear, and its transpose is cumsum from the other end. cumprod is a first-order
 * recurrence, z[k] = b[k] + a[k] z[k-1], whose derivatives are recurrences again: no division, so
 * zeros are right at every order, and every order takes time in proportion to n. cummax and cummin
 * take elements from the places that cumargmax finds, the first of equals. */
#include "rules/structural_ids.h"
#include "ops/kinks.h"
#include "ops/structural.h"

enum { AXIS, REVERSE, STRONG };

/* Integers are counted in i64, as by sum. */
static cot_dtype sum_dtype(cot_dtype d) { return cot__dtype_is_float(d) ? d : COT_I64; }

static cot_var flipped(cot_var x, int axis) { return cot_flip(x, (cot_axes){1, false, {axis}}); }

/* ---- cumsum ---------------------------------------------------------------------------------- */

cot_var cot_cumsum(cot_var x, int axis, bool reverse) {
    uint32_t    i;
    cot_tape   *t = cot__enter_axis("cumsum", x, &axis, &i);
    cot__result r;
    if (!t) return cot__invalid(1, &x);
    cot__view  v = cot__view_read(t, i);
    cot__attr *attr = cot__attr_make(t, "cumsum", 2, (int64_t[]){axis, reverse}, 0, NULL);
    if (!attr || !cot__result_open(t, &r, "cumsum", sum_dtype(v.dtype), v.ndim, v.shape)) return INVALID(t);
    t->backend->cumsum(&v, axis, reverse, &r.view);
    return cot__result_push(t, &r, OP_cumsum, 1, &i, attr);
}

static void cumsum_vjp(cot__rule *r) {
    const int64_t *a = cot__rule_attr(r)->ints;
    cot__give(r, 0, cot_cumsum(r->g, (int)a[AXIS], !a[REVERSE]));
}
static cot_var cumsum_apply(cot__rule *r, const cot_var *xs) {
    const int64_t *a = cot__rule_attr(r)->ints;
    return cot_cumsum(xs[0], (int)a[AXIS], a[REVERSE] != 0);
}

const cot__op cot__op_cumsum = {.name     = "cumsum",
                                .batch    = cot__batch_shift,
                                .attrs    = "axis:a reverse:f",
                                .kind     = KIND_LINEAR,
                                .formula  = "z[k] = x[0] + … + x[k]; x̄[k] += z̄[k] + z̄[k+1] + …",
                                .vjp      = cumsum_vjp,
                                .apply    = cumsum_apply,
                                .cost     = {.each_x = 1},
                                .operands = "x"};

/* ---- recurrence ------------------------------------------------------------------------------ */

enum { COEFFICIENTS, TERMS };

/* z[k] = b[k] + a[k] z[k-1]; reverse: z[k] = b[k] + a[k+1] z[k+1]. a[0] is not used. a and b have
 * one shape and dtype. */
static cot_var recurrence(cot_var a, cot_var b, int axis, bool reverse, bool strong) {
    uint32_t    index[2];
    cot_tape   *t = cot__enter(NULL, a, "recurrence", "first", &index[COEFFICIENTS]);
    cot__result r;
    if (!t || !cot__enter(t, b, "recurrence", "second", &index[TERMS])) return cot__invalid(1, &a);
    cot__view  va = cot__view_read(t, index[COEFFICIENTS]), vb = cot__view_read(t, index[TERMS]);
    cot__attr *attr = cot__attr_make(t, "recurrence", 3, (int64_t[]){axis, reverse, strong}, 0, NULL);
    if (!attr || !cot__result_open(t, &r, "recurrence", vb.dtype, vb.ndim, vb.shape)) return INVALID(t);
    t->backend->recurrence(&va, &vb, axis, reverse, strong, &r.view);
    return cot__result_push(t, &r, OP_recurrence, 2, index, attr);
}

/* x without its first (or last) element along the axis. */
static cot_var tail(cot_var x, int axis) { return cot_slice(x, axis, 1, COT_END, 1); }
static cot_var head(cot_var x, int axis) { return cot_slice(x, axis, 0, -1, 1); }

/* b̄ = the recurrence of z̄ from the other end, ā[k] = b̄[k] z[k-1]; the product of an adjoint: a zero
 * wins. */
static void recurrence_vjp(cot__rule *r) {
    const int64_t *s = cot__rule_attr(r)->ints;
    int            axis = (int)s[AXIS];
    int64_t        n = cot__rule_shape(r, TERMS).dim[axis];
    cot_var        terms = recurrence(cot__rule_x(r, COEFFICIENTS), r->g, axis, !s[REVERSE], true);
    cot__give(r, TERMS, terms);
    if (n < 2 || !cot__rule_wants(r, COEFFICIENTS)) return;
    cot_var z = cot__rule_z(r);
    cot_var given =
        s[REVERSE] ? cot_smul(head(terms, axis), tail(z, axis)) : cot_smul(tail(terms, axis), head(z, axis));
    cot__give_slice(r, COEFFICIENTS, given, (int64_t[]){axis, 1, n - 1, 1});
}

/* dz[k] = (db[k] + da[k] z[k-1]) + a[k] dz[k-1] */
static void recurrence_jvp(cot__rule *r) {
    const int64_t *s = cot__rule_attr(r)->ints;
    int            axis = (int)s[AXIS];
    cot_shape      x = cot__rule_shape(r, TERMS), before = x, after = x;
    cot_var        da = r->tangents[COEFFICIENTS], db = r->tangents[TERMS], z = cot__rule_z(r);
    if (!cot__failed(da) && x.dim[axis] > 0) {
        for (int k = 0; k < x.ndim; k++) before.dim[k] = after.dim[k] = 0;
        cot_var moved = cot_smul(tail(da, axis), s[REVERSE] ? tail(z, axis) : head(z, axis));
        (s[REVERSE] ? &after : &before)->dim[axis] = 1;
        moved = cot_pad(moved, before, after, 0);
        db = cot__failed(db) ? moved : cot_add(db, moved);
    }
    r->tangent = cot__failed(db) ? cot_zeros(r->t, cot__dtype_at(cot__rule_node(r)), x)
                                 : recurrence(cot__rule_x(r, COEFFICIENTS), db, axis, s[REVERSE] != 0, true);
}

static cot_var recurrence_apply(cot__rule *r, const cot_var *xs) {
    const int64_t *s = cot__rule_attr(r)->ints;
    return recurrence(xs[COEFFICIENTS], xs[TERMS], (int)s[AXIS], s[REVERSE] != 0, s[STRONG] != 0);
}

const cot__op cot__op_recurrence = {
    .name     = "recurrence",
    .batch    = cot__batch_shift,
    .attrs    = "axis:a reverse:f strong:f",
    .kind     = KIND_GENERIC,
    .apply    = recurrence_apply,
    .saves    = 1u << COEFFICIENTS | COT__SAVES_Z,
    .formula  = "z[k] = b[k] + a[k] z[k-1]; b̄[k] += s[k] = z̄[k] + a[k+1] s[k+1], ā[k] += s[k] z[k-1]",
    .vjp      = recurrence_vjp,
    .jvp      = recurrence_jvp,
    .cost     = {.each_z = 2},
    .linear   = 1u << TERMS,
    .operands = "a b"};

/* ---- cumprod --------------------------------------------------------------------------------- */

/* The recurrence with a = x and b = x[0], 0, 0, …: the zeros are negative, which changes no sum,
 * not even the sign of a zero. */
cot_var cot_cumprod(cot_var x, int axis, bool reverse) {
    uint32_t  i;
    cot_tape *t = cot__enter_axis("cumprod", x, &axis, &i);
    if (!t) return cot__invalid(1, &x);
    cot_shape before = cot__shape_at(t, i), after = before;
    int64_t   n = before.dim[axis];
    cot_var   v = cot_cast(VAR(t, i), sum_dtype(cot__dtype_at(&t->nodes[i])));
    if (n < 2 || cot__failed(v)) return v;
    if (reverse) v = flipped(v, axis);
    for (int k = 0; k < before.ndim; k++) before.dim[k] = after.dim[k] = 0;
    after.dim[axis] = n - 1;
    const char *asked = cot__ask(t, "cumprod");
    cot_var     z = recurrence(v, cot_pad(cot_slice(v, axis, 0, 1, 1), before, after, -0.0), axis, false, false);
    cot__asked(t, asked);
    return reverse ? flipped(z, axis) : z;
}

/* ---- cummax, cummin -------------------------------------------------------------------------- */

enum { SMALLEST = 1 };

/* Places are kept for the derivative, in the smallest integers that hold them. */
static cot_dtype place_dtype(int64_t extent) {
    return extent <= UINT8_MAX + 1 ? COT_U8 : extent <= (int64_t)INT32_MAX + 1 ? COT_I32 : COT_I64;
}

static cot_var push_places(const char *op, cot_tape *t, cot_var x, int axis, bool smallest) {
    uint32_t    i;
    cot__result r;
    if (!cot__enter(t, x, op, "", &i)) return INVALID(t);
    cot__view  v = cot__view_read(t, i);
    cot__attr *attr = cot__attr_make(t, op, 2, (int64_t[]){axis, smallest}, 0, NULL);
    if (!attr || !cot__result_open(t, &r, op, place_dtype(v.shape[axis]), v.ndim, v.shape)) return INVALID(t);
    t->backend->cumargmax(&v, axis, smallest, &r.view);
    return cot__result_push(t, &r, OP_cumargmax, 1, &i, attr);
}

static cot_var extreme(const char *op, cot_var x, int axis, bool reverse, bool smallest) {
    uint32_t  i;
    cot_tape *t = cot__enter_axis(op, x, &axis, &i);
    if (!t) return cot__invalid(1, &x);
    if (reverse) x = flipped(x, axis);
    cot_var z = cot_take_along_axis(x, push_places(op, t, x, axis, smallest), axis);
    return reverse ? flipped(z, axis) : z;
}

cot_var cot_cummax(cot_var x, int axis, bool reverse) { return extreme("cummax", x, axis, reverse, false); }
cot_var cot_cummin(cot_var x, int axis, bool reverse) { return extreme("cummin", x, axis, reverse, true); }

static cot_var cumargmax_apply(cot__rule *r, const cot_var *xs) {
    const int64_t *a = cot__rule_attr(r)->ints;
    return push_places("cumargmax", r->t, xs[0], (int)a[AXIS], a[SMALLEST] != 0);
}

const cot__op cot__op_cumargmax = {.name     = "cumargmax",
                                   .batch    = cot__batch_shift,
                                   .attrs    = "axis:a smallest:f",
                                   .kind     = KIND_NONE,
                                   .apply    = cumargmax_apply,
                                   .formula  = "z[k] = the first i with x[i] = max(x[0], …, x[k])",
                                   .cost     = {.each_x = 1},
                                   .operands = "x",
                                   .kinks    = cot__order_kinks};
