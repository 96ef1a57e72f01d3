/* structural.c: the checks and small tools that all families of structural operations share.
 *
 * One place for each message, so that axes, shapes and positions are refused in the same words
 * everywhere. */
#include "ops/structural.h"
#include "backend/elements.h"
#include "ops/precision.h"
#include "tape/flow.h"

#include <string.h>

/* ---- checks ---------------------------------------------------------------------------------- */

bool cot__check_dtype(cot_tape *t, const char *op, cot_dtype dtype) {
    cot__caller c = cot__tape_caller(t, op);
    return cot__legal_dtype(&c, dtype);
}

bool cot__check_shape(cot_tape *t, const char *op, const cot_shape *shape) {
    cot__caller c = cot__tape_caller(t, op);
    return cot__legal_shape(&c, shape);
}

bool cot__check_axis(cot_tape *t, const char *op, int axis, int ndim, int *out) {
    *out = axis < 0 ? axis + ndim : axis;
    if (axis >= -ndim && axis < ndim) return true;
    if (ndim == 0) cot__fail(t, COT_SHAPE, "[%s] axis %d is out of range for rank 0; a scalar has no axes", op, axis);
    else
        cot__fail(t, COT_SHAPE, "[%s] axis %d is out of range for rank %d; axes run from %d to %d", op, axis, ndim,
                  -ndim, ndim - 1);
    return false;
}

bool cot__check_axes(cot_tape *t, const char *op, cot_axes axes, int ndim, uint32_t *mask) {
    *mask = 0;
    if (axes.n < 0) {
        *mask = (1u << ndim) - 1;
        return true;
    }
    if (axes.n > COT_MAX_NDIM) {
        cot__fail(t, COT_LIMIT, "[%s] %d axes are listed; there are at most %d", op, axes.n, COT_MAX_NDIM);
        return false;
    }
    for (int k = 0; k < axes.n; k++) {
        int a;
        if (!cot__check_axis(t, op, axes.axis[k], ndim, &a)) return false;
        if (*mask >> a & 1) {
            cot__fail(t, COT_SHAPE, "[%s] axis %d is listed twice; each axis may appear once", op, a);
            return false;
        }
        *mask |= 1u << a;
    }
    return true;
}

static int64_t clip(int64_t i, int64_t extent, int64_t low, int64_t high) {
    if (i < 0) i = i < -extent ? low : i + extent;
    return i < low ? low : i > high ? high : i;
}

bool cot__check_slice(cot_tape *t, const char *op, int64_t extent, int64_t start, int64_t stop, int64_t *step,
                      int64_t *first, int64_t *length) {
    if (*step == 0) {
        cot__fail(t, COT_VALUE, "[%s] the step is 0; steps are positive or negative", op);
        return false;
    }
    if (*step > 0) {
        start = clip(start, extent, 0, extent);
        stop = clip(stop, extent, 0, extent);
        *length = stop > start ? (stop - start - 1) / *step + 1 : 0;
    } else { /* backward: from start down to, not including, stop */
        start = clip(start, extent, -1, extent - 1);
        stop = stop == COT_END ? -1 : clip(stop, extent, -1, extent - 1);
        uint64_t size = (uint64_t)0 - (uint64_t)*step;
        *length = start > stop ? (int64_t)((uint64_t)(start - stop - 1) / size) + 1 : 0;
    }
    *first = *length > 0 ? start : 0;
    if (*length <= 1) *step = 1; /* any step will do: one that cannot overflow a stride */
    return true;
}

/* ---- operands -------------------------------------------------------------------------------- */

cot_tape *cot__enter_axis(const char *op, cot_var x, int *axis, uint32_t *index) {
    cot_tape *t = cot__enter(NULL, x, op, "", index);
    return t && cot__check_axis(t, op, *axis, cot__ndim_at(t, *index), axis) ? t : NULL;
}

uint32_t cot__as(cot_tape *t, uint32_t i, cot_dtype dtype) {
    if (cot__dtype_at(&t->nodes[i]) == dtype) return i;
    cot_var z = cot_cast(VAR(t, i), dtype);
    return cot__failed(z) ? COT__NONE : cot__index(z);
}

uint32_t cot__dense(cot_tape *t, uint32_t i) {
    cot__view v = cot__layout_at(t, i);
    if (cot__is_contiguous(v.ndim, v.shape, v.stride)) return i;
    cot_var z = cot__copy_var(t, i);
    return cot__failed(z) ? COT__NONE : cot__index(z);
}

/* "xs[12]": written by hand because stacks of many thousand scalars pass here. */
static const char *element_name(int k, char buf[16]) {
    char *p = buf + 15;
    *p = 0;
    *--p = ']';
    do *--p = (char)('0' + k % 10);
    while (k /= 10);
    return memcpy(p - 3, "xs[", 3);
}

cot_tape *cot__enter_all(const char *op, const char *const *names, int n, const cot_var *xs, bool real,
                         uint32_t *index) {
    cot_tape *t = cot__tape_of(n, xs);
    char      name[16];
    bool      strong = false, fraction = false, mixed = false;
    cot_dtype dtype = COT_I64;
    for (int k = 0; k < n; k++) {
        if (!cot__enter(t, xs[k], op, names ? names[k] : element_name(k, name), &index[k])) return NULL;
        if (cot__is_number(xs[k])) {
            /* weak: only a floating-point number next to integers counts */
            fraction |= (uintptr_t)xs[k].tape == 1;
            mixed = true;
            continue;
        }
        cot_dtype d = cot__dtype_at(&t->nodes[index[k]]);
        mixed |= strong && d != dtype;
        dtype = strong ? cot__dtype_promote(dtype, d) : d;
        strong = true;
    }
    if (!strong) return NULL;
    if ((real || fraction) && !cot__dtype_is_float(dtype)) dtype = COT_F64, mixed = true;
    cot_dtype asked = cot__precision_of(t, op, dtype);
    if (asked != dtype) dtype = asked, mixed = true;
    for (int k = 0; mixed && k < n; k++)
        if ((index[k] = cot__as(t, index[k], dtype)) == COT__NONE) return NULL;
    return t;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

void cot__reduced_shape(cot_shape *z, int ndim, const int64_t *shape, uint32_t mask, bool keep) {
    z->ndim = 0;
    for (int k = 0; k < ndim; k++) {
        bool goes = mask >> k & 1;
        if (!goes || keep) z->dim[z->ndim++] = goes ? 1 : shape[k];
    }
}

cot_shape cot__kept_shape(cot_shape x, uint32_t mask) {
    cot_shape z;
    cot__reduced_shape(&z, x.ndim, x.dim, mask, true);
    return z;
}

bool cot__same_shape(const cot_shape *a, const cot_shape *b) {
    return a->ndim == b->ndim && memcmp(a->dim, b->dim, (size_t)a->ndim * sizeof *a->dim) == 0;
}

cot_shape cot__taken_shape(const cot__view *x, const cot__view *p, int axis) {
    cot_shape z;
    z.ndim = x->ndim - 1 + p->ndim;
    for (int k = 0; z.ndim <= COT_MAX_NDIM && k < z.ndim; k++)
        z.dim[k] = k < axis ? x->shape[k] : k < axis + p->ndim ? p->shape[k - axis] : x->shape[k - p->ndim + 1];
    return z;
}

cot_var cot__rule_adjoint(cot__rule *r, int k) {
    cot_var  g = cot__rule_g(r, k);
    uint32_t z = r->node + (uint32_t)k;
    if (!cot__failed(g) || r->t->status != COT_OK) return g;
    return cot_zeros(r->t, cot__dtype_at(&r->t->nodes[z]), cot__shape_at(r->t, z));
}
