/* join.c: several values in one array: concat and stack (one n-ary node, also for thousands of
 * scalars), and pad. */
#include "rules/structural_ids.h"
#include "backend/elements.h"
#include "ops/structural.h"

#include <limits.h>
#include <string.h>

/* ---- concat and stack ------------------------------------------------------------------------ */

enum { FEW = 64 };           /* operands whose indices fit on the stack */
enum { AXIS, NEW, JOIN_INTS }; /* NEW: the axis is new, each operand one index of it */

/* Have operands of this rank the axis, or room for a new one? */
static bool has_axis(const cot__caller *c, int ndim, bool new_axis) {
    if (!new_axis && ndim == 0)
        return cot__refuse(c, COT_SHAPE, "the operands are scalars, which have no axis; cot_stack joins scalars");
    return !new_axis || ndim < COT_MAX_NDIM ||
           cot__refuse(c, COT_LIMIT, "the operands have %d axes already; there are at most %d", ndim, COT_MAX_NDIM);
}

/* Operand k agrees with the first in dtype and all extents but, in a concat, the one along the
 * axis. */
static bool joins(const cot__job *j, int k, int axis, bool new_axis) {
    char             a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    const cot__view *first = &j->x[0], *x = &j->x[k];
    bool             same = x->ndim == first->ndim;
    for (int i = 0; same && i < x->ndim; i++) same = x->shape[i] == first->shape[i] || (!new_axis && i == axis);
    if (!same)
        return cot__refuse(j->caller, COT_SHAPE, "xs[0] has shape %s, xs[%d] has %s; %s",
                           cot__shape_text(first->ndim, first->shape, a), k, cot__shape_text(x->ndim, x->shape, b),
                           new_axis ? "all shapes must be equal"
                                    : "all extents but the one along the axis must be equal");
    return cot__job_dtype(j, k, first->dtype);
}

static bool concat_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, INT_MAX, JOIN_INTS)) return false;
    bool             new_axis = cot__job_int(j, NEW) != 0;
    const cot__view *first = &j->x[0];
    if (!has_axis(j->caller, first->ndim, new_axis) || !cot__job_axis(j, AXIS, first->ndim + new_axis)) return false;
    int     axis = (int)cot__job_int(j, AXIS);
    int64_t total = new_axis ? j->n : first->shape[axis];
    for (int k = 1; k < j->n; k++) {
        if (!joins(j, k, axis, new_axis)) return false;
        if (!new_axis) total = cot__size_add(total, j->x[k].shape[axis]);
    }
    cot__type_like(z, first->dtype, first);
    if (new_axis) {
        memmove(z->shape.dim + axis + 1, z->shape.dim + axis, (size_t)(first->ndim - axis) * sizeof *z->shape.dim);
        z->shape.ndim++;
    }
    z->shape.dim[axis] = total;
    return true;
}

static void concat_run(const cot__job *j) {
    int64_t axis = cot__job_int(j, AXIS), at = 0, size = cot__dtype_size(j->z.dtype), stride[COT_MAX_NDIM];
    bool    new_axis = cot__job_int(j, NEW) != 0;
    for (int k = 0; k < j->n; k++) {
        const cot__view *x = &j->x[k];
        char            *data = (char *)j->z.data + at * j->z.stride[axis] * size;
        at += new_axis ? 1 : x->shape[axis];
        if (x->ndim == 0) {
            cot__copy_element(j->backend, data, x->data, j->z.dtype);
            continue;
        }
        for (int i = 0; i < x->ndim; i++) stride[i] = j->z.stride[i + (new_axis && i >= axis)];
        j->backend->copy(&(cot__view){data, j->z.dtype, x->ndim, x->shape, stride}, x);
    }
}

static cot_var join(const char *op, int n, const cot_var *xs, int axis, bool new_axis) {
    cot_tape *t = n > 0 ? cot__tape_of(n, xs) : NULL;
    uint32_t  few[FEW], *index = few;
    if (!t) return cot__invalid(n, xs);
    if (n > FEW && !(index = cot__arena(t, (size_t)n * sizeof *index, op))) return INVALID(t);
    if (!cot__enter_all(op, NULL, n, xs, false, index)) return INVALID(t);
    cot__caller caller = cot__tape_caller(t, op);
    int         ndim = cot__ndim_at(t, index[0]);
    if (!has_axis(&caller, ndim, new_axis) || !cot__check_axis(t, op, axis, ndim + new_axis, &axis)) return INVALID(t);
    cot__attr *attr =
        cot__attr_make(t, op, JOIN_INTS, (int64_t[]){axis, new_axis}, n > 2 ? n : 0, n > 2 ? index : NULL);
    return attr ? cot__record(t, op, OP_concat, n, index, attr, NULL) : INVALID(t);
}

cot_var cot_concat(int n, const cot_var *xs, int axis) { return join("concat", n, xs, axis, false); }
cot_var cot_stack(int n, const cot_var *xs, int axis) { return join("stack", n, xs, axis, true); }

/* x̄[k] += the part of z̄ where x[k] went */
static void concat_vjp(cot__rule *r) {
    const cot__attr *a = cot__rule_attr(r);
    int              n = cot__nargs(cot__rule_node(r)), axis = (int)a->ints[AXIS];
    int64_t          at = 0;
    for (int k = 0; k < n; k++) {
        int64_t length = a->ints[NEW] ? 1 : cot__look(r->t, cot__rule_arg(r, k)).shape[axis];
        if (cot__rule_wants(r, k))
            cot__give(r, k, a->ints[NEW] ? cot_index(r->g, axis, at) : cot_slice(r->g, axis, at, at + length, 1));
        at += length;
    }
}

const cot__op cot__op_concat = {.name      = "concat",
                                .batch     = cot__batch_shift,
                                .attrs     = "axis:a new:f",
                                .kind      = KIND_LINEAR,
                                .formula   = "z = x[0], x[1], … along an axis; x̄[k] += its part of z̄",
                                .vjp       = concat_vjp,
                                .infer     = concat_infer,
                                .run       = concat_run,
                                .cost      = {.none = "moves data"},
                                .operands  = "x*",
                                .functions = "stack"};

/* ---- pad ------------------------------------------------------------------------------------- */

/* Affine rather than linear when the border is not 0: the tangent's border is. ints: before, after,
 * for each axis. */
static bool pad_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, j->n == 1 ? 2 * j->x[0].ndim : 0)) return false;
    if (j->x[0].ndim == 0) return cot__job_illegal(j, "a border around a scalar");
    cot__type_like(z, j->x[0].dtype, &j->x[0]);
    for (int k = 0; k < z->shape.ndim; k++) {
        int64_t before = cot__job_int(j, 2 * k), after = cot__job_int(j, 2 * k + 1);
        if (before < 0 || after < 0)
            return cot__refuse(j->caller, COT_VALUE,
                               "%lld before and %lld after on axis %d; a border is not negative", (long long)before,
                               (long long)after, k);
        z->shape.dim[k] = cot__size_add(cot__size_add(z->shape.dim[k], before), after);
    }
    return true;
}

static void pad_run(const cot__job *j) {
    const cot__view *x = &j->x[0];
    int64_t          offset = 0;
    j->backend->fill(&j->z, j->attr->number);
    for (int k = 0; k < x->ndim; k++) offset += cot__job_int(j, 2 * k) * j->z.stride[k];
    cot__view inside = {(char *)j->z.data + offset * cot__dtype_size(x->dtype), x->dtype, x->ndim, x->shape,
                        j->z.stride};
    j->backend->copy(&inside, x);
}

cot_var cot_pad(cot_var x, cot_shape before, cot_shape after, double value) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "pad", "", &i);
    int64_t   ints[2 * COT_MAX_NDIM];
    if (!t) return cot__invalid(1, &x);
    int ndim = cot__ndim_at(t, i);
    if (before.ndim != ndim || after.ndim != ndim)
        return cot__fail(t, COT_SHAPE, "[pad] %d extents before and %d after for rank %d; one of each for every axis",
                         before.ndim, after.ndim, ndim);
    if (ndim == 0) return x;
    for (int k = 0; k < ndim; k++) ints[2 * k] = before.dim[k], ints[2 * k + 1] = after.dim[k];
    cot__attr *attr = cot__attr_make(t, "pad", 2 * ndim, ints, 0, NULL);
    if (!attr) return INVALID(t);
    attr->number = value;
    return cot__record(t, "pad", OP_pad, 1, &i, attr, NULL);
}

/* x̄ += the inside of z̄ */
static void pad_vjp(cot__rule *r) {
    const int64_t *ints = cot__rule_attr(r)->ints;
    cot_shape      x = cot__rule_shape(r, 0);
    cot_var        g = r->g;
    for (int k = 0; k < x.ndim; k++) g = cot_slice(g, k, ints[2 * k], ints[2 * k] + x.dim[k], 1);
    cot__give(r, 0, g);
}

static void pad_jvp(cot__rule *r) {
    const int64_t *ints = cot__rule_attr(r)->ints;
    cot_shape      before = cot__rule_shape(r, 0), after = before;
    for (int k = 0; k < before.ndim; k++) before.dim[k] = ints[2 * k], after.dim[k] = ints[2 * k + 1];
    r->tangent = cot_pad(r->tangents[0], before, after, 0);
}

const cot__op cot__op_pad = {
    .name = "pad", .batch = cot__batch_shift, .attrs = "border:b value:n", .kind = KIND_GENERIC,
    .formula = "z = x with a border; x̄ += the inside of z̄",
    .vjp = pad_vjp, .jvp = pad_jvp, .infer = pad_infer, .run = pad_run,
    .cost = {.none = "moves data"},
    .linear = 1u,
    .operands = "x"};
