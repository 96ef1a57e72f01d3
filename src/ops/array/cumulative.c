/* cumulative.c: running sums, products and extremes along one axis.
 *
 * cumsum is linear, and its transpose is cumsum from the other end. cumprod is a first-order
 * recurrence, z[k] = b[k] + a[k] z[k-1], whose derivatives are recurrences again: no division, so
 * zeros are right at every order, and every order takes time in proportion to n. cummax and cummin
 * take elements from the places that cumargmax finds, the first of equals. */
#include "rules/structural_ids.h"
#include "ops/kinks.h"
#include "ops/structural.h"

enum { AXIS, REVERSE, STRONG, RECURRENCE_INTS };

/* Integers are counted in i64, as by sum. */
static cot_dtype sum_dtype(cot_dtype d) { return cot__dtype_is_float(d) ? d : COT_I64; }

static int axis_in(const cot__job *j) { return (int)cot__job_int(j, AXIS); }

static cot_var flipped(cot_var x, int axis) { return cot_flip(x, (cot_axes){1, false, {axis}}); }

/* ---- cumsum ---------------------------------------------------------------------------------- */

static bool cumsum_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, REVERSE + 1) || !cot__job_axis(j, AXIS, j->x[0].ndim)) return false;
    cot__type_like(z, sum_dtype(j->x[0].dtype), &j->x[0]);
    return true;
}

static void cumsum_run(const cot__job *j) {
    j->backend->cumsum(&j->x[0], axis_in(j), cot__job_int(j, REVERSE) != 0, &j->z);
}

cot_var cot_cumsum(cot_var x, int axis, bool reverse) {
    uint32_t  i;
    cot_tape *t = cot__enter_axis("cumsum", x, &axis, &i);
    if (!t) return cot__invalid(1, &x);
    cot__attr *attr = cot__attr_make(t, "cumsum", 2, (int64_t[]){axis, reverse}, 0, NULL);
    return attr ? cot__record(t, "cumsum", OP_cumsum, 1, &i, attr, NULL) : INVALID(t);
}

static void cumsum_vjp(cot__rule *r) {
    const int64_t *a = cot__rule_attr(r)->ints;
    cot__give(r, 0, cot_cumsum(r->g, (int)a[AXIS], !a[REVERSE]));
}

const cot__op cot__op_cumsum = {.name     = "cumsum",
                                .batch    = cot__batch_shift,
                                .attrs    = "axis:a reverse:f",
                                .kind     = KIND_LINEAR,
                                .formula  = "z[k] = x[0] + … + x[k]; x̄[k] += z̄[k] + z̄[k+1] + …",
                                .vjp      = cumsum_vjp,
                                .infer    = cumsum_infer,
                                .run      = cumsum_run,
                                .cost     = {.each_x = 1},
                                .operands = "x"};

/* ---- recurrence ------------------------------------------------------------------------------ */

enum { COEFFICIENTS, TERMS };

/* z[k] = b[k] + a[k] z[k-1]; reverse: z[k] = b[k] + a[k+1] z[k+1]. a[0] is not used. a and b have
 * one shape and dtype. */
static bool recurrence_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 2, 2, RECURRENCE_INTS) || !cot__job_axis(j, AXIS, j->x[TERMS].ndim)) return false;
    const cot__view *b = &j->x[TERMS];
    cot__type_like(z, b->dtype, b);
    return cot__job_dtype(j, COEFFICIENTS, b->dtype) && cot__job_shape(j, COEFFICIENTS, b->ndim, b->shape);
}

static void recurrence_run(const cot__job *j) {
    j->backend->recurrence(&j->x[COEFFICIENTS], &j->x[TERMS], axis_in(j), cot__job_int(j, REVERSE) != 0,
                           cot__job_int(j, STRONG) != 0, &j->z);
}

static cot_var recurrence(cot_var a, cot_var b, int axis, bool reverse, bool strong) {
    uint32_t  index[2];
    cot_tape *t = cot__enter(NULL, a, "recurrence", "first", &index[COEFFICIENTS]);
    if (!t || !cot__enter(t, b, "recurrence", "second", &index[TERMS])) return cot__invalid(1, &a);
    cot__attr *attr = cot__attr_make(t, "recurrence", RECURRENCE_INTS, (int64_t[]){axis, reverse, strong}, 0, NULL);
    return attr ? cot__record(t, "recurrence", OP_recurrence, 2, index, attr, NULL) : INVALID(t);
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

const cot__op cot__op_recurrence = {
    .name     = "recurrence",
    .batch    = cot__batch_shift,
    .attrs    = "axis:a reverse:f strong:f",
    .kind     = KIND_GENERIC,
    .infer    = recurrence_infer,
    .run      = recurrence_run,
    .saves    = 1u << COEFFICIENTS | COT__SAVES_Z,
    .formula  = "z[k] = b[k] + a[k] z[k-1]; b̄[k] += s[k] = z̄[k] + a[k+1] s[k+1], ā[k] += s[k] z[k-1]",
    .vjp      = recurrence_vjp,
    .jvp      = recurrence_jvp,
    .cost     = {.each_z = 2},
    .linear   = 1u << TERMS,
    /* rare beside elementwise work over arrays that cache does not hold */
    .rows     = COT__BY_ITSELF,
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

static bool cumargmax_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, SMALLEST + 1) || !cot__job_axis(j, AXIS, j->x[0].ndim)) return false;
    cot__type_like(z, place_dtype(j->x[0].shape[axis_in(j)]), &j->x[0]);
    return true;
}

static void cumargmax_run(const cot__job *j) {
    j->backend->cumargmax(&j->x[0], axis_in(j), cot__job_int(j, SMALLEST) != 0, &j->z);
}

static cot_var push_places(const char *op, cot_tape *t, cot_var x, int axis, bool smallest) {
    uint32_t i;
    if (!cot__enter(t, x, op, "", &i)) return INVALID(t);
    cot__attr *attr = cot__attr_make(t, op, 2, (int64_t[]){axis, smallest}, 0, NULL);
    return attr ? cot__record(t, op, OP_cumargmax, 1, &i, attr, NULL) : INVALID(t);
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

const cot__op cot__op_cumargmax = {.name     = "cumargmax",
                                   .batch    = cot__batch_shift,
                                   .attrs    = "axis:a smallest:f",
                                   .kind     = KIND_NONE,
                                   .infer    = cumargmax_infer,
                                   .run      = cumargmax_run,
                                   .formula  = "z[k] = the first i with x[i] = max(x[0], …, x[k])",
                                   .cost     = {.each_x = 1},
                                   .operands = "x",
                                   .kinks    = cot__order_kinks};
