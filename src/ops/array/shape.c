/* shape.c: the same elements seen through another shape: reshape, permute, broadcast_to, slice and
 * what is made of them.
 *
 * All are linear and all but some reshapes are views: no element moves. A slice of one index with
 * its axis dropped, x[i], is one node too. What is a no-op (the same shape, the same order) records
 * nothing and returns x; what users get of a leaf then, nothing.h says. */
#include "rules/structural_ids.h"
#include "ops/structural.h"

#include <string.h>

/* ---- reshape --------------------------------------------------------------------------------- */

/* From the back, maximal runs of axes of v
 * that lie as one are cut into new axes; a new axis must not reach over the end of a run. */
bool cot__view_strides(const cot__view *v, const cot_shape *shape, int64_t *stride) {
    int64_t left = 1, step = 1; /* elements of the current run not yet used, and their stride */
    int     o = v->ndim - 1;
    if (cot__count(v->ndim, v->shape) == 0) {
        cot__strides(shape->ndim, shape->dim, stride);
        return true;
    }
    for (int k = shape->ndim - 1; k >= 0; k--) {
        stride[k] = step;
        if (shape->dim[k] == 1) continue;
        if (left == 1) {
            while (v->shape[o] == 1) o--;
            left = v->shape[o], step = v->stride[o], o--;
            for (; o >= 0 && (v->shape[o] == 1 || v->stride[o] == step * left); o--) left *= v->shape[o];
            stride[k] = step;
        }
        if (left % shape->dim[k] != 0) return false;
        left /= shape->dim[k];
        step *= shape->dim[k];
    }
    return true;
}

static cot_var push_reshape(cot_tape *t, uint32_t x, const cot_shape *shape) {
    cot__view   v = cot__view_shape(t, x);
    int64_t     stride[COT_MAX_NDIM], rows[COT_MAX_NDIM];
    cot__result r;
    if (cot__view_strides(&v, shape, stride))
        return cot__push_view(t, OP_reshape, x, shape->ndim, shape->dim, stride, 0, NULL);
    if (!cot__result_open(t, &r, "reshape", v.dtype, shape->ndim, shape->dim)) return INVALID(t);
    cot__strides(v.ndim, v.shape, rows);
    /* the new memory in the old shape */
    cot__view old = {r.view.data, v.dtype, v.ndim, v.shape, rows};
    v = cot__view_read(t, x);
    t->backend->copy(&old, &v);
    return cot__result_push(t, &r, OP_reshape, 1, &x, NULL);
}

/* Replaces an extent of -1 by what is left over. */
static bool infer_extent(cot_tape *t, uint32_t x, cot_shape *shape) {
    char    text[COT__SHAPE_TEXT], from[COT__SHAPE_TEXT];
    int64_t known = 1, size = cot__size_at(t, x);
    int     open = -1;
    for (int k = 0; k < shape->ndim && k < COT_MAX_NDIM; k++)
        if (shape->dim[k] == -1) {
            if (open >= 0) {
                cot__fail(t, COT_SHAPE, "[reshape] axes %d and %d both have extent -1; one extent may be left open",
                          open, k);
                return false;
            }
            open = k;
        }
    if (open >= 0) shape->dim[open] = 1;
    if (!cot__check_shape(t, "reshape", shape)) return false;
    known = cot__count(shape->ndim, shape->dim);
    if (open >= 0) shape->dim[open] = -1;
    if (open < 0 ? known == size : known > 0 && size % known == 0) {
        if (open >= 0) shape->dim[open] = size / known;
        return true;
    }
    cot__fail(t, COT_SHAPE, "[reshape] %s has %lld elements and does not fit %s; the number of elements stays the same",
              cot__shape_text_at(t, x, from), (long long)size, cot__shape_text(shape->ndim, shape->dim, text));
    return false;
}

cot_var cot_reshape(cot_var x, cot_shape shape) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "reshape", "", &i);
    if (!t) return cot__invalid(1, &x);
    if (!infer_extent(t, i, &shape)) return INVALID(t);
    cot_shape old = cot__shape_at(t, i);
    return cot__same_shape(&old, &shape) ? x : push_reshape(t, i, &shape);
}

cot_var cot_expand_dims(cot_var x, int axis) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "expand_dims", "", &i);
    if (!t) return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, i);
    if (s.ndim == COT_MAX_NDIM)
        return cot__fail(t, COT_LIMIT, "[expand_dims] the operand has %d axes already; there are at most %d", s.ndim,
                         COT_MAX_NDIM);
    if (!cot__check_axis(t, "expand_dims", axis, s.ndim + 1, &axis)) return INVALID(t);
    for (int k = s.ndim; k > axis; k--) s.dim[k] = s.dim[k - 1];
    s.dim[axis] = 1;
    s.ndim++;
    return push_reshape(t, i, &s);
}

cot_var cot_squeeze(cot_var x, cot_axes axes) {
    uint32_t  i, mask;
    cot_tape *t = cot__enter(NULL, x, "squeeze", "", &i);
    if (!t) return cot__invalid(1, &x);
    cot_shape old = cot__shape_at(t, i), s = {0, {0}};
    if (!cot__check_axes(t, "squeeze", axes, old.ndim, &mask)) return INVALID(t);
    for (int k = 0; k < old.ndim; k++) {
        bool goes = mask >> k & 1;
        if (goes && old.dim[k] != 1 && axes.n >= 0)
            return cot__fail(t, COT_SHAPE, "[squeeze] axis %d has extent %lld; only axes of extent 1 can go", k,
                             (long long)old.dim[k]);
        if (!goes || old.dim[k] != 1) s.dim[s.ndim++] = old.dim[k];
    }
    return s.ndim == old.ndim ? x : push_reshape(t, i, &s);
}

static void    reshape_vjp(cot__rule *r) { cot__give(r, 0, cot_reshape(r->g, cot__rule_shape(r, 0))); }
static cot_var reshape_apply(cot__rule *r, const cot_var *xs) { return cot_reshape(xs[0], cot__rule_result(r)); }

const cot__op cot__op_reshape = {.name = "reshape", .batch = cot__batch_shift, .kind = KIND_LINEAR,
                                 .formula = "z = x in another shape; x̄ += z̄ in x's shape",
                                 .vjp = reshape_vjp, .apply = reshape_apply,
                                 .cost = {.none = "moves data"},
                                 .operands = "x",
                                 .functions = "expand_dims squeeze"};

/* ---- permute --------------------------------------------------------------------------------- */

/* Axis k of the result is axis order[k] of x. */
static cot_var push_permute(cot_tape *t, uint32_t x, const int64_t *order) {
    cot__view v = cot__view_shape(t, x);
    int64_t   shape[COT_MAX_NDIM], stride[COT_MAX_NDIM];
    bool      moves = false;
    for (int k = 0; k < v.ndim; k++) {
        shape[k] = v.shape[order[k]];
        stride[k] = v.stride[order[k]];
        moves |= order[k] != k;
    }
    if (!moves) return VAR(t, x);
    cot__attr *attr = cot__attr_make(t, "permute", v.ndim, order, 0, NULL);
    return attr ? cot__push_view(t, OP_permute, x, v.ndim, shape, stride, 0, attr) : INVALID(t);
}

cot_var cot_transpose(cot_var x) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "transpose", "", &i);
    int64_t   order[COT_MAX_NDIM];
    if (!t) return cot__invalid(1, &x);
    int n = cot__ndim_at(t, i);
    for (int k = 0; k < n; k++) order[k] = n - 1 - k;
    return push_permute(t, i, order);
}

cot_var cot_permute(cot_var x, cot_axes axes) {
    uint32_t  i, mask;
    cot_tape *t = cot__enter(NULL, x, "permute", "", &i);
    int64_t   order[COT_MAX_NDIM];
    if (!t) return cot__invalid(1, &x);
    int n = cot__ndim_at(t, i);
    if (axes.n >= 0 && axes.n != n)
        return cot__fail(t, COT_SHAPE, "[permute] %d axes are listed for rank %d; the order lists every axis once",
                         axes.n, n);
    if (!cot__check_axes(t, "permute", axes, n, &mask)) return INVALID(t);
    for (int k = 0; k < n; k++) order[k] = axes.n < 0 ? k : axes.axis[k] < 0 ? axes.axis[k] + n : axes.axis[k];
    return push_permute(t, i, order);
}

cot_var cot__swap_last(cot_var x) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "permute", "", &i);
    int64_t   order[COT_MAX_NDIM];
    if (!t) return cot__invalid(1, &x);
    int n = cot__ndim_at(t, i);
    for (int k = 0; k < n; k++) order[k] = k < n - 2 ? k : 2 * n - 3 - k;
    return push_permute(t, i, order);
}

static cot_var permute_by(cot_var x, const cot__attr *a, bool back) {
    cot_axes order = {(int)a->nints, false, {0}};
    for (int k = 0; k < order.n; k++)
        if (back) order.axis[a->ints[k]] = k;
        else order.axis[k] = (int)a->ints[k];
    return cot_permute(x, order);
}

static void    permute_vjp(cot__rule *r) { cot__give(r, 0, permute_by(r->g, cot__rule_attr(r), true)); }
static cot_var permute_apply(cot__rule *r, const cot_var *xs) { return permute_by(xs[0], cot__rule_attr(r), false); }

const cot__op cot__op_permute = {.name = "permute", .batch = cot__batch_shift, .attrs = "order:p", .kind = KIND_LINEAR,
                                 .formula = "axis i of z is axis order[i] of x; x̄ += z̄ permuted back",
                                 .vjp = permute_vjp, .apply = permute_apply,
                                 .cost = {.none = "moves data"},
                                 .operands = "x",
                                 .functions = "transpose"};

/* ---- broadcast_to ---------------------------------------------------------------------------- */

cot_var cot__broadcast_as(const char *op, cot_var x, cot_shape shape) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, op, "", &i);
    int64_t   stride[COT_MAX_NDIM] = {0};
    char      from[COT__SHAPE_TEXT], to[COT__SHAPE_TEXT];
    if (!t) return cot__invalid(1, &x);
    if (!cot__check_shape(t, op, &shape)) return INVALID(t);
    cot__view v = cot__view_shape(t, i);
    int       extra = shape.ndim - v.ndim;
    bool      repeats = extra != 0, fits = extra >= 0;
    for (int k = 0; fits && k < v.ndim; k++) {
        bool same = v.shape[k] == shape.dim[extra + k];
        fits = same || v.shape[k] == 1;
        repeats |= !same;
        stride[extra + k] = same ? v.stride[k] : 0;
    }
    if (!fits)
        return cot__fail(t, COT_SHAPE,
                         "[%s] %s does not broadcast to %s; aligned at the last axis, extents are equal or 1", op,
                         cot__shape_text(v.ndim, v.shape, from), cot__shape_text(shape.ndim, shape.dim, to));
    return repeats ? cot__push_view(t, OP_broadcast_to, i, shape.ndim, shape.dim, stride, 0, NULL) : x;
}

cot_var cot_broadcast_to(cot_var x, cot_shape shape) { return cot__broadcast_as("broadcast_to", x, shape); }

/* x̄ += Σ z̄ over the repeated axes */
static void broadcast_to_vjp(cot__rule *r) {
    cot_shape x = cot__rule_shape(r, 0), z = cot__shape_at(r->t, r->node);
    cot_axes  repeated = {0, true, {0}};
    for (int k = 0; k < z.ndim; k++) {
        int of = k - (z.ndim - x.ndim);
        if (of < 0 || x.dim[of] != z.dim[k]) repeated.axis[repeated.n++] = k;
    }
    cot__give(r, 0, cot_reshape(cot_sum(r->g, repeated), x));
}

static cot_var broadcast_to_apply(cot__rule *r, const cot_var *xs) {
    return cot_broadcast_to(xs[0], cot__rule_result(r));
}

const cot__op cot__op_broadcast_to = {.name = "broadcast_to", .batch = cot__batch_broadcast, .kind = KIND_LINEAR,
                                      .formula = "z = x repeated; x̄ += Σ z̄ over the repeated axes",
                                      .vjp = broadcast_to_vjp, .apply = broadcast_to_apply,
                                      .cost = {.none = "moves data"},
                                      .operands = "x"};

/* ---- slice ----------------------------------------------------------------------------------- */

enum { AXIS, FIRST, LENGTH, STEP, DROP, SLICE_INTS };

static cot_var push_slice(cot_tape *t, uint32_t x, const int64_t s[SLICE_INTS]) {
    cot__view  v = cot__view_shape(t, x);
    int64_t    shape[COT_MAX_NDIM], stride[COT_MAX_NDIM];
    int        n = 0;
    cot__attr *attr = cot__attr_make(t, "slice", SLICE_INTS, s, 0, NULL);
    if (!attr) return INVALID(t);
    for (int k = 0; k < v.ndim; k++) {
        if (k == s[AXIS] && s[DROP]) continue;
        shape[n] = k == s[AXIS] ? s[LENGTH] : v.shape[k];
        stride[n] = k == s[AXIS] ? v.stride[k] * s[STEP] : v.stride[k];
        n++;
    }
    return cot__push_view(t, OP_slice, x, n, shape, stride, s[FIRST] * v.stride[s[AXIS]], attr);
}

cot_var cot_slice(cot_var x, int axis, int64_t start, int64_t stop, int64_t step) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "slice", "", &i);
    int64_t   first, length;
    if (!t) return cot__invalid(1, &x);
    if (!cot__check_axis(t, "slice", axis, cot__ndim_at(t, i), &axis)) return INVALID(t);
    int64_t extent = cot__view_shape(t, i).shape[axis];
    if (!cot__check_slice(t, "slice", extent, start, stop, &step, &first, &length)) return INVALID(t);
    if (first == 0 && length == extent && step == 1) return x;
    return push_slice(t, i, (int64_t[]){axis, first, length, step, 0});
}

cot_var cot_index(cot_var x, int axis, int64_t at) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "index", "", &i);
    if (!t) return cot__invalid(1, &x);
    if (!cot__check_axis(t, "index", axis, cot__ndim_at(t, i), &axis)) return INVALID(t);
    int64_t extent = cot__view_shape(t, i).shape[axis];
    if (at < -extent || at >= extent)
        return cot__fail(t, COT_VALUE, "[index] position %lld is out of range for axis %d of extent %lld",
                         (long long)at, axis, (long long)extent);
    return push_slice(t, i, (int64_t[]){axis, at < 0 ? at + extent : at, 1, 1, 1});
}

cot_var cot_flip(cot_var x, cot_axes axes) {
    uint32_t  i, mask;
    cot_tape *t = cot__enter(NULL, x, "flip", "", &i);
    if (!t) return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, i);
    if (!cot__check_axes(t, "flip", axes, s.ndim, &mask)) return INVALID(t);
    for (int k = 0; k < s.ndim && !cot__failed(x); k++)
        if ((mask >> k & 1) && s.dim[k] > 1)
            x = push_slice(t, cot__index(x), (int64_t[]){k, s.dim[k] - 1, s.dim[k], -1, 0});
    return x;
}

cot_status cot_split(cot_var x, int parts, int axis, cot_var *out) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "split", "", &i);
    if (t && !cot__list_given(t, "split", "parts", parts, out)) return t->status;
    for (int k = 0; out && k < parts; k++) out[k] = cot__invalid(1, &x);
    if (!t) return cot_tape_status(cot__invalid(1, &x).tape);
    if (!cot__check_axis(t, "split", axis, cot__ndim_at(t, i), &axis)) return t->status;
    int64_t extent = cot__view_shape(t, i).shape[axis];
    if (parts <= 0 || extent % parts != 0) {
        cot__fail(t, COT_SHAPE, "[split] axis %d of extent %lld does not split into %d equal parts", axis,
                  (long long)extent, parts);
        return t->status;
    }
    int64_t length = extent / parts;
    for (int k = 0; k < parts && t->status == COT_OK; k++)
        out[k] = push_slice(t, i, (int64_t[]){axis, length > 0 ? k * length : 0, length, 1, 0});
    return t->status;
}

/* x̄[first : : step] += z̄, added where it belongs: no padding is made */
static void slice_vjp(cot__rule *r) {
    const int64_t *s = cot__rule_attr(r)->ints;
    cot_var        g = s[DROP] ? cot_expand_dims(r->g, (int)s[AXIS]) : r->g;
    cot__give_slice(r, 0, g, s);
}

static cot_var slice_apply(cot__rule *r, const cot_var *xs) {
    uint32_t i;
    return cot__enter(r->t, xs[0], "slice", "", &i) ? push_slice(r->t, i, cot__rule_attr(r)->ints) : INVALID(r->t);
}

const cot__op cot__op_slice = {.name      = "slice",
                               .batch     = cot__batch_shift,
                               .attrs     = "axis:a first:d length:d step:u drop:f",
                               .kind      = KIND_LINEAR,
                               .formula   = "z = x[first : : step] along one axis; x̄[first : : step] += z̄",
                               .vjp       = slice_vjp,
                               .apply     = slice_apply,
                               .cost      = {.none = "moves data"},
                               .operands  = "x",
                               .functions = "index flip"};

cot_var cot__first_slice(cot_tape *t, cot_var x) {
    cot_shape shape = cot_shape_of(x), one = {shape.ndim - 1, {0}};
    if (t->status != COT_OK || shape.dim[0] > 0) return cot_index(x, 0, 0);
    for (int k = 0; k < one.ndim; k++) one.dim[k] = shape.dim[k + 1];
    return cot_zeros(t, cot_dtype_of(x), one);
}
