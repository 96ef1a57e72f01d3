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

static bool reshape_infer(const cot__job *j, cot__type *z) {
    char from[COT__SHAPE_TEXT], to[COT__SHAPE_TEXT];
    if (!cot__job_has(j, 1, 1, 0) || !cot__job_check_type(j, z)) return false;
    z->dtype = j->x[0].dtype;
    int64_t size = cot__view_size(&j->x[0]);
    return cot__count(z->shape.ndim, z->shape.dim) == size ||
           cot__refuse(j->caller, COT_SHAPE,
                       "%s has %lld element%s and does not fit %s; the number of elements stays the same",
                       cot__shape_text(j->x[0].ndim, j->x[0].shape, from), (long long)size, size == 1 ? "" : "s",
                       cot__shape_text(z->shape.ndim, z->shape.dim, to));
}

static bool reshape_view(const cot__job *j, const cot__type *z, int64_t *stride, int64_t *offset) {
    *offset = 0;
    return cot__view_strides(&j->x[0], &z->shape, stride);
}

/* The new memory in the old shape is a copy. */
static void reshape_run(const cot__job *j) {
    const cot__view *x = &j->x[0];
    int64_t          rows[COT_MAX_NDIM];
    cot__strides(x->ndim, x->shape, rows);
    j->backend->copy(&(cot__view){j->z.data, x->dtype, x->ndim, x->shape, rows}, x);
}

static cot_var push_reshape(cot_tape *t, const char *name, uint32_t x, const cot_shape *shape) {
    cot__type asked;
    return cot__record(t, name, OP_reshape, 1, &x, NULL, cot__ask_shape(&asked, shape));
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
    cot__fail(t, COT_SHAPE,
              "[reshape] %s has %lld element%s and does not fit %s; the number of elements stays the same",
              cot__shape_text_at(t, x, from), (long long)size, size == 1 ? "" : "s",
              cot__shape_text(shape->ndim, shape->dim, text));
    return false;
}

cot_var cot_reshape(cot_var x, cot_shape shape) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "reshape", "", &i);
    if (!t) return cot__invalid(1, &x);
    if (!infer_extent(t, i, &shape)) return INVALID(t);
    return cot__has_shape(t, i, &shape) ? x : push_reshape(t, "reshape", i, &shape);
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
    return push_reshape(t, "expand_dims", i, &s);
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
    return s.ndim == old.ndim ? x : push_reshape(t, "squeeze", i, &s);
}

static void    reshape_vjp(cot__rule *r) { cot__give(r, 0, cot_reshape(r->g, cot__rule_shape(r, 0))); }

const cot__op cot__op_reshape = {.name = "reshape", .batch = cot__batch_shift, .kind = KIND_LINEAR,
                                 .formula = "z = x in another shape; x̄ += z̄ in x's shape",
                                 .vjp = reshape_vjp, .infer = reshape_infer, .asks = COT__ASKS_SHAPE,
                                 .view = reshape_view, .run = reshape_run,
                                 .cost = {.none = "moves data"},
                                 .operands = "x",
                                 .functions = "expand_dims squeeze"};

/* ---- permute --------------------------------------------------------------------------------- */

/* Axis k of the result is axis order[k] of x. */
static bool permute_infer(const cot__job *j, cot__type *z) {
    uint32_t seen = 0;
    if (!cot__job_has(j, 1, 1, j->n == 1 ? j->x[0].ndim : 0)) return false;
    z->dtype = j->x[0].dtype;
    z->shape.ndim = j->x[0].ndim;
    for (int k = 0; k < z->shape.ndim; k++) {
        if (!cot__job_axis(j, k, z->shape.ndim)) return false;
        seen |= 1u << cot__job_int(j, k);
        z->shape.dim[k] = j->x[0].shape[cot__job_int(j, k)];
    }
    return seen == (1u << z->shape.ndim) - 1 || cot__job_illegal(j, "an order that lists an axis twice");
}

static bool permute_view(const cot__job *j, const cot__type *z, int64_t *stride, int64_t *offset) {
    for (int k = 0; k < z->shape.ndim; k++) stride[k] = j->x[0].stride[cot__job_int(j, k)];
    *offset = 0;
    return true;
}

static cot_var push_permute(cot_tape *t, uint32_t x, const int64_t *order) {
    int  n = cot__ndim_at(t, x);
    bool moves = false;
    for (int k = 0; k < n; k++) moves |= order[k] != k;
    if (!moves) return VAR(t, x);
    cot__attr *attr = cot__attr_make(t, "permute", n, order, 0, NULL);
    return attr ? cot__record(t, "permute", OP_permute, 1, &x, attr, NULL) : INVALID(t);
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

static void permute_vjp(cot__rule *r) {
    const cot__attr *a = cot__rule_attr(r);
    cot_axes         back = {(int)a->nints, false, {0}};
    for (int k = 0; k < back.n; k++) back.axis[a->ints[k]] = k;
    cot__give(r, 0, cot_permute(r->g, back));
}

const cot__op cot__op_permute = {.name = "permute", .batch = cot__batch_shift, .attrs = "order:p", .kind = KIND_LINEAR,
                                 .formula = "axis i of z is axis order[i] of x; x̄ += z̄ permuted back",
                                 .vjp = permute_vjp, .infer = permute_infer, .view = permute_view,
                                 .cost = {.none = "moves data"},
                                 .operands = "x",
                                 .functions = "transpose"};

/* ---- broadcast_to ---------------------------------------------------------------------------- */

static bool broadcast_to_infer(const cot__job *j, cot__type *z) {
    char from[COT__SHAPE_TEXT], to[COT__SHAPE_TEXT];
    if (!cot__job_has(j, 1, 1, 0) || !cot__job_check_type(j, z)) return false;
    const cot__view *x = &j->x[0];
    int              extra = z->shape.ndim - x->ndim;
    bool             fits = extra >= 0;
    for (int k = 0; fits && k < x->ndim; k++) fits = x->shape[k] == z->shape.dim[extra + k] || x->shape[k] == 1;
    z->dtype = x->dtype;
    return fits || cot__refuse(j->caller, COT_SHAPE,
                               "%s does not broadcast to %s; aligned at the last axis, extents are equal or 1",
                               cot__shape_text(x->ndim, x->shape, from),
                               cot__shape_text(z->shape.ndim, z->shape.dim, to));
}

static bool broadcast_to_view(const cot__job *j, const cot__type *z, int64_t *stride, int64_t *offset) {
    const cot__view *x = &j->x[0];
    int              extra = z->shape.ndim - x->ndim;
    *offset = 0;
    for (int k = 0; k < z->shape.ndim; k++) {
        bool same = k >= extra && x->shape[k - extra] == z->shape.dim[k];
        stride[k] = same ? x->stride[k - extra] : 0;
    }
    return true;
}

cot_var cot__broadcast_as(const char *op, cot_var x, cot_shape shape) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, op, "", &i);
    cot__type asked;
    if (!t) return cot__invalid(1, &x);
    if (cot__has_shape(t, i, &shape)) return x;
    return cot__record(t, op, OP_broadcast_to, 1, &i, NULL, cot__ask_shape(&asked, &shape));
}

cot_var cot_broadcast_to(cot_var x, cot_shape shape) { return cot__broadcast_as("broadcast_to", x, shape); }

/* x̄ += Σ z̄ over the repeated axes */
static void broadcast_to_vjp(cot__rule *r) {
    cot__view v = cot__layout_at(r->t, cot__rule_arg(r, 0)), z = cot__layout_at(r->t, r->node);
    cot_shape x = cot__view_extents(&v);
    /* new axes go, and so most sums have x's shape at once */
    cot_axes  repeated = {0, x.ndim == 0 || x.ndim == z.ndim, {0}};
    for (int k = 0; k < z.ndim; k++) {
        int of = k - (z.ndim - x.ndim);
        if (of < 0 || x.dim[of] != z.shape[k]) repeated.axis[repeated.n++] = k;
    }
    cot__give(r, 0, cot_reshape(cot_sum(r->g, repeated), x));
}

const cot__op cot__op_broadcast_to = {.name = "broadcast_to", .batch = cot__batch_broadcast, .kind = KIND_LINEAR,
                                      .formula = "z = x repeated; x̄ += Σ z̄ over the repeated axes",
                                      .vjp = broadcast_to_vjp, .infer = broadcast_to_infer,
                                      .asks = COT__ASKS_SHAPE, .view = broadcast_to_view,
                                      .cost = {.none = "moves data"},
                                      .operands = "x"};

/* ---- slice ----------------------------------------------------------------------------------- */

enum { AXIS, FIRST, LENGTH, STEP, DROP, SLICE_INTS };

static bool slice_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, SLICE_INTS) || !cot__job_axis(j, AXIS, j->x[0].ndim)) return false;
    const cot__view *x = &j->x[0];
    const int64_t   *s = j->attr->ints;
    if (!cot__slice_is_inside(x->shape[s[AXIS]], s[FIRST], s[LENGTH], s[STEP]) || (s[DROP] && s[LENGTH] != 1))
        return cot__job_illegal(j, "a slice that is not inside the axis");
    z->dtype = x->dtype;
    z->shape.ndim = 0;
    for (int k = 0; k < x->ndim; k++)
        if (k != s[AXIS] || !s[DROP]) z->shape.dim[z->shape.ndim++] = k == s[AXIS] ? s[LENGTH] : x->shape[k];
    return true;
}

static bool slice_view(const cot__job *j, const cot__type *z, int64_t *stride, int64_t *offset) {
    const cot__view *x = &j->x[0];
    const int64_t   *s = j->attr->ints;
    (void)z;
    for (int k = 0, n = 0; k < x->ndim; k++)
        if (k != s[AXIS] || !s[DROP]) stride[n++] = k == s[AXIS] ? x->stride[k] * s[STEP] : x->stride[k];
    *offset = s[FIRST] * x->stride[s[AXIS]];
    return true;
}

static cot_var push_slice(cot_tape *t, uint32_t x, const int64_t s[SLICE_INTS]) {
    cot__attr *attr = cot__attr_make(t, "slice", SLICE_INTS, s, 0, NULL);
    return attr ? cot__record(t, "slice", OP_slice, 1, &x, attr, NULL) : INVALID(t);
}

cot_var cot_slice(cot_var x, int axis, int64_t start, int64_t stop, int64_t step) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "slice", "", &i);
    int64_t   first, length;
    if (!t) return cot__invalid(1, &x);
    if (!cot__check_axis(t, "slice", axis, cot__ndim_at(t, i), &axis)) return INVALID(t);
    int64_t extent = cot__layout_at(t, i).shape[axis];
    if (!cot__check_slice(t, "slice", extent, start, stop, &step, &first, &length)) return INVALID(t);
    if (first == 0 && length == extent && step == 1) return x;
    return push_slice(t, i, (int64_t[]){axis, first, length, step, 0});
}

cot_var cot_index(cot_var x, int axis, int64_t at) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "index", "", &i);
    if (!t) return cot__invalid(1, &x);
    if (!cot__check_axis(t, "index", axis, cot__ndim_at(t, i), &axis)) return INVALID(t);
    int64_t extent = cot__layout_at(t, i).shape[axis];
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
    int64_t extent = cot__layout_at(t, i).shape[axis];
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

const cot__op cot__op_slice = {.name      = "slice",
                               .batch     = cot__batch_shift,
                               .attrs     = "axis:a first:d length:d step:u drop:f",
                               .kind      = KIND_LINEAR,
                               .formula   = "z = x[first : : step] along one axis; x̄[first : : step] += z̄",
                               .vjp       = slice_vjp,
                               .infer     = slice_infer,
                               .view      = slice_view,
                               .cost      = {.none = "moves data"},
                               .operands  = "x",
                               .functions = "index flip"};

cot_var cot__first_slice(cot_tape *t, cot_var x) {
    cot_shape shape = cot_shape_of(x), one = {shape.ndim - 1, {0}};
    if (t->status != COT_OK || shape.dim[0] > 0) return cot_index(x, 0, 0);
    for (int k = 0; k < one.ndim; k++) one.dim[k] = shape.dim[k + 1];
    return cot_zeros(t, cot_dtype_of(x), one);
}
