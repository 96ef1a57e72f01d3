/* join.c: several values in one array: concat and stack (one n-ary node, also for thousands of
 * scalars), and pad. */
#include "rules/structural_ids.h"
#include "backend/elements.h"
#include "ops/structural.h"

#include <string.h>

/* ---- concat and stack ------------------------------------------------------------------------ */

enum { FEW = 64 };           /* operands whose indices fit on the stack */
enum { AXIS, NEW, JOIN_INTS }; /* NEW: the axis is new, each operand one index of it */

static void copy_parts(const cot_tape *t, const cot__view *z, int n, const uint32_t *xs, int axis, bool new_axis) {
    int64_t at = 0, size = cot__dtype_size(z->dtype);
    for (int k = 0; k < n; k++) {
        cot__view x = cot__view_read(t, xs[k]);
        char     *data = (char *)z->data + at * z->stride[axis] * size;
        int64_t   stride[COT_MAX_NDIM];
        at += new_axis ? 1 : x.shape[axis];
        if (x.ndim == 0) {
            cot__copy_element(t->backend, data, x.data, z->dtype);
            continue;
        }
        for (int i = 0; i < x.ndim; i++) stride[i] = z->stride[i + (new_axis && i >= axis)];
        cot__view part = {data, z->dtype, x.ndim, x.shape, stride};
        t->backend->copy(&part, &x);
    }
}

/* The shape of the result; operands agree in all extents but, in a concat, the one along the
 * axis. */
static bool joined_shape(cot_tape *t, const char *op, int n, const uint32_t *xs, int *axis, bool new_axis,
                         cot_shape *z) {
    char a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    *z = cot__shape_at(t, xs[0]);
    if (!new_axis && z->ndim == 0) {
        cot__fail(t, COT_SHAPE, "[concat] the operands are scalars, which have no axis; cot_stack joins scalars");
        return false;
    }
    if (new_axis && z->ndim == COT_MAX_NDIM) {
        cot__fail(t, COT_LIMIT, "[stack] the operands have %d axes already; there are at most %d", z->ndim,
                  COT_MAX_NDIM);
        return false;
    }
    if (!cot__check_axis(t, op, *axis, z->ndim + new_axis, axis)) return false;
    int64_t total = new_axis ? n : z->dim[*axis];
    for (int k = 1; k < n; k++) {
        cot__view x = cot__view_read(t, xs[k]);
        bool      same = x.ndim == z->ndim;
        for (int i = 0; same && i < x.ndim; i++) same = x.shape[i] == z->dim[i] || (!new_axis && i == *axis);
        if (!same) {
            cot__fail(t, COT_SHAPE, "[%s] xs[0] has shape %s, xs[%d] has %s; %s", op,
                      cot__shape_text(z->ndim, z->dim, a), k, cot__shape_text(x.ndim, x.shape, b),
                      new_axis ? "all shapes must be equal" : "all extents but the one along the axis must be equal");
            return false;
        }
        if (!new_axis) total = cot__size_add(total, x.shape[*axis]);
    }
    if (new_axis) {
        memmove(z->dim + *axis + 1, z->dim + *axis, (size_t)(z->ndim - *axis) * sizeof *z->dim);
        z->ndim++;
    }
    z->dim[*axis] = total;
    return cot__check_shape(t, op, z);
}

static cot_var join(const char *op, int n, const cot_var *xs, int axis, bool new_axis) {
    cot_tape   *t = n > 0 ? cot__tape_of(n, xs) : NULL;
    uint32_t    few[FEW], *index = few;
    cot_shape   shape;
    cot__result r;
    if (!t) return cot__invalid(n, xs);
    if (n > FEW && !(index = cot__arena(t, (size_t)n * sizeof *index, op))) return INVALID(t);
    if (!cot__enter_all(op, NULL, n, xs, false, index)) return INVALID(t);
    if (!joined_shape(t, op, n, index, &axis, new_axis, &shape)) return INVALID(t);
    cot__attr *attr =
        cot__attr_make(t, op, JOIN_INTS, (int64_t[]){axis, new_axis}, n > 2 ? n : 0, n > 2 ? index : NULL);
    if (!attr || !cot__result_open(t, &r, op, cot__dtype_at(&t->nodes[index[0]]), shape.ndim, shape.dim))
        return INVALID(t);
    copy_parts(t, &r.view, n, index, axis, new_axis);
    return cot__result_push(t, &r, OP_concat, n, index, attr);
}

cot_var cot_concat(int n, const cot_var *xs, int axis) { return join("concat", n, xs, axis, false); }
cot_var cot_stack(int n, const cot_var *xs, int axis) { return join("stack", n, xs, axis, true); }

/* x̄[k] += the part of z̄ where x[k] went */
static void concat_vjp(cot__rule *r) {
    const cot__attr *a = cot__rule_attr(r);
    int              n = cot__nargs(cot__rule_node(r)), axis = (int)a->ints[AXIS];
    int64_t          at = 0;
    for (int k = 0; k < n; k++) {
        int64_t length = a->ints[NEW] ? 1 : cot__view_read(r->t, cot__rule_arg(r, k)).shape[axis];
        if (cot__rule_wants(r, k))
            cot__give(r, k, a->ints[NEW] ? cot_index(r->g, axis, at) : cot_slice(r->g, axis, at, at + length, 1));
        at += length;
    }
}

static cot_var concat_apply(cot__rule *r, const cot_var *xs) {
    const cot__attr *a = cot__rule_attr(r);
    return join(a->ints[NEW] ? "stack" : "concat", cot__nargs(cot__rule_node(r)), xs, (int)a->ints[AXIS],
                a->ints[NEW] != 0);
}

const cot__op cot__op_concat = {.name      = "concat",
                                .batch     = cot__batch_shift,
                                .attrs     = "axis:a new:f",
                                .kind      = KIND_LINEAR,
                                .formula   = "z = x[0], x[1], … along an axis; x̄[k] += its part of z̄",
                                .vjp       = concat_vjp,
                                .apply     = concat_apply,
                                .cost      = {.none = "moves data"},
                                .operands  = "x*",
                                .functions = "stack"};

/* ---- pad ------------------------------------------------------------------------------------- */

/* Affine rather than linear when the border is not 0: the tangent's border is. ints: before, after,
 * for each axis. */
static bool padded_shape(cot_tape *t, const cot_shape *before, const cot_shape *after, cot_shape *z) {
    if (before->ndim != z->ndim || after->ndim != z->ndim) {
        cot__fail(t, COT_SHAPE, "[pad] %d extents before and %d after for rank %d; one of each for every axis",
                  before->ndim, after->ndim, z->ndim);
        return false;
    }
    for (int k = 0; k < z->ndim; k++) {
        if (before->dim[k] < 0 || after->dim[k] < 0) {
            cot__fail(t, COT_VALUE, "[pad] %lld before and %lld after on axis %d; a border is not negative",
                      (long long)before->dim[k], (long long)after->dim[k], k);
            return false;
        }
        z->dim[k] = cot__size_add(cot__size_add(z->dim[k], before->dim[k]), after->dim[k]);
    }
    return cot__check_shape(t, "pad", z);
}

cot_var cot_pad(cot_var x, cot_shape before, cot_shape after, double value) {
    uint32_t    i;
    cot_tape   *t = cot__enter(NULL, x, "pad", "", &i);
    int64_t     ints[2 * COT_MAX_NDIM], offset = 0;
    cot__result r;
    if (!t) return cot__invalid(1, &x);
    cot_shape shape = cot__shape_at(t, i);
    if (!padded_shape(t, &before, &after, &shape)) return INVALID(t);
    if (shape.ndim == 0) return x;
    for (int k = 0; k < shape.ndim; k++) ints[2 * k] = before.dim[k], ints[2 * k + 1] = after.dim[k];
    cot__attr *attr = cot__attr_make(t, "pad", 2 * shape.ndim, ints, 0, NULL);
    cot__view  v = cot__view_read(t, i);
    if (!attr || !cot__result_open(t, &r, "pad", v.dtype, shape.ndim, shape.dim)) return INVALID(t);
    attr->number = value;
    t->backend->fill(&r.view, value);
    for (int k = 0; k < shape.ndim; k++) offset += before.dim[k] * r.view.stride[k];
    cot__view inside = {(char *)r.view.data + offset * cot__dtype_size(v.dtype), v.dtype, v.ndim, v.shape,
                        r.view.stride};
    t->backend->copy(&inside, &v);
    return cot__result_push(t, &r, OP_pad, 1, &i, attr);
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

static cot_var pad_apply(cot__rule *r, const cot_var *xs) {
    const cot__attr *a = cot__rule_attr(r);
    cot_shape        before = {(int)a->nints / 2, {0}}, after = before;
    for (int k = 0; k < before.ndim; k++) before.dim[k] = a->ints[2 * k], after.dim[k] = a->ints[2 * k + 1];
    return cot_pad(xs[0], before, after, a->number);
}

const cot__op cot__op_pad = {
    .name = "pad", .batch = cot__batch_shift, .attrs = "border:b value:n", .kind = KIND_GENERIC,
    .formula = "z = x with a border; x̄ += the inside of z̄",
    .vjp = pad_vjp, .jvp = pad_jvp, .apply = pad_apply,
    .cost = {.none = "moves data"},
    .linear = 1u,
    .operands = "x"};
