/* select.c: elements chosen by several coordinates (gather), assigned by position (scatter), or
 * kept by a mask of bools (compress).
 *
 * Each is one operation on integers that finds places, then take and where, which have the
 * derivatives: they only move elements, so what was not chosen gets a zero, also beside
 * infinities. */
#include "rules/structural_ids.h"
#include "ops/structural.h"

/* ---- gather ---------------------------------------------------------------------------------- */

/* Are the d coordinates of each position within the first d extents of x? */
static bool check_coordinates(cot_tape *t, uint32_t indices, int d, const cot_shape *x) {
    cot_dtype dtype = cot__dtype_at(&t->nodes[indices]);
    char      what[40];
    if (dtype != COT_I64 && dtype != COT_I32 && dtype != COT_U8) {
        cot__fail(t, COT_DTYPE, "[gather] indices have dtype %s; they must be integers", cot__dtype_name(dtype));
        return false;
    }
    cot_mark m = cot__mark(t);
    for (int k = 0; k < d; k++) {
        cot_var column = cot_index(VAR(t, indices), -1, k);
        snprintf(what, sizeof what, "coordinate %d of indices", k);
        if (cot__failed(column) || !cot__check_positions(t, "gather", what, cot__index(column), x->dim[k], true))
            return false;
    }
    cot__rewind(t, m);
    return true;
}

/* Positions in the first d axes of x, flattened: indices.shape[:-1]. */
static cot_var push_ravel(cot_tape *t, uint32_t indices, int d, const cot_shape *x) {
    cot_shape   shape = cot__shape_at(t, indices);
    cot__result r;
    cot__attr  *attr = cot__attr_make(t, "gather", d, x->dim, 0, NULL);
    if (!attr || !cot__result_open(t, &r, "gather", COT_I64, shape.ndim - 1, shape.dim)) return INVALID(t);
    cot__view v = cot__view_read(t, indices);
    t->backend->ravel_index(&v, d, x->dim, &r.view);
    return cot__result_push(t, &r, OP_ravel_index, 1, &indices, attr);
}

cot_var cot_gather(cot_var x, cot_var indices) {
    uint32_t  xi, ii;
    cot_tape *t = cot__tape_of(2, (cot_var[]){x, indices});
    if (!t || !cot__enter(t, x, "gather", "first", &xi) || !cot__enter(t, indices, "gather", "index", &ii))
        return cot__invalid(1, &x);
    cot_shape shape = cot__shape_at(t, xi), p = cot__shape_at(t, ii), flat = {1, {1}};
    if (p.ndim == 0)
        return cot__fail(t, COT_SHAPE,
                         "[gather] the indices are a scalar; their last axis lists the coordinates of a position");
    int64_t d = p.dim[p.ndim - 1];
    if (d > shape.ndim)
        return cot__fail(
            t, COT_SHAPE,
            "[gather] the indices have %lld coordinates, x has rank %d; there is at most one for each axis of x",
            (long long)d, shape.ndim);
    cot_shape z = {p.ndim - 1 + shape.ndim - (int)d, {0}};
    if (z.ndim <= COT_MAX_NDIM)
        for (int k = 0; k < z.ndim; k++) z.dim[k] = k < p.ndim - 1 ? p.dim[k] : shape.dim[k - (p.ndim - 1) + d];
    if (!cot__check_shape(t, "gather", &z) || !check_coordinates(t, ii, (int)d, &shape)) return INVALID(t);
    /* positions without coordinates: x at each */
    if (d == 0 && shape.ndim == COT_MAX_NDIM) return cot_broadcast_to(x, z);
    for (int k = 0; k < d; k++) flat.dim[0] *= shape.dim[k];
    for (int k = (int)d; k < shape.ndim; k++) flat.dim[flat.ndim++] = shape.dim[k];
    return cot_take(cot_reshape(x, flat), push_ravel(t, ii, (int)d, &shape), 0);
}

static cot_var ravel_apply(cot__rule *r, const cot_var *xs) {
    const cot__attr *a = cot__rule_attr(r);
    cot_shape        x = {(int)a->nints, {0}};
    uint32_t         i;
    for (int k = 0; k < x.ndim; k++) x.dim[k] = a->ints[k];
    if (!cot__enter(r->t, xs[0], "gather", "index", &i) || !check_coordinates(r->t, i, x.ndim, &x))
        return INVALID(r->t);
    return push_ravel(r->t, i, x.ndim, &x);
}

const cot__op cot__op_ravel_index = {
    .name     = "ravel_index",
    .batch    = cot__batch_shift,
    .attrs    = "extents:l",
    .kind     = KIND_NONE,
    .apply    = ravel_apply,
    .formula  = "z[..] = the place of x[indices[..,0], indices[..,1], …] among the elements of x",
    .cost     = {.none = "finds positions"},
    .operands = "x"};

/* ---- scatter --------------------------------------------------------------------------------- */

/* For each of the extent positions: the last update that goes there, -1: none. */
static cot_var push_last_writer(cot_tape *t, uint32_t indices, int64_t extent) {
    cot__result r;
    cot__attr  *attr = cot__attr_make(t, "scatter", 1, &extent, 0, NULL);
    if (!attr || !cot__result_open(t, &r, "scatter", COT_I64, 1, &extent)) return INVALID(t);
    cot__view v = cot__view_read(t, indices);
    t->backend->last_writer(&v, &r.view);
    return cot__result_push(t, &r, OP_last_writer, 1, &indices, attr);
}

cot_var cot_scatter(cot_var x, cot_var indices, cot_var updates, int axis) {
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    uint32_t  xi, ii, ui;
    cot_tape *t = cot__tape_of(3, (cot_var[]){x, indices, updates});
    if (!t || !cot__enter(t, x, "scatter", "first", &xi) || !cot__enter(t, indices, "scatter", "index", &ii) ||
        !cot__enter(t, updates, "scatter", "updates", &ui))
        return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, xi), u = cot__shape_at(t, ui), row = s, z;
    if (!cot__check_axis(t, "scatter", axis, s.ndim, &axis)) return INVALID(t);
    int64_t extent = s.dim[axis], n = cot__size_at(t, ii);
    if (!cot__taken_shape(t, "scatter", xi, ii, axis, &z) ||
        !cot__check_positions(t, "scatter", "indices", ii, extent, true))
        return INVALID(t);
    if (u.ndim > 0 && !cot__same_shape(&u, &z))
        return cot__fail(t, COT_SHAPE, "[scatter] the updates have shape %s; the positions ask for %s",
                         cot__shape_text(u.ndim, u.dim, a), cot__shape_text(z.ndim, z.dim, b));
    cot_var   owner = push_last_writer(t, ii, extent);
    cot_shape column = {s.ndim - axis, {extent}}; /* broadcasts over the axes after this one */
    for (int k = 1; k < column.ndim; k++) column.dim[k] = 1;
    cot_var written = cot_reshape(cot_greater_equal(owner, 0), column);
    if (u.ndim > 0 && n > 0) { /* a number goes everywhere as it is */
        row.dim[axis] = n;
        updates = cot_take(cot_reshape(updates, row), cot_maximum(owner, 0), axis);
    } else if (u.ndim > 0) { /* nothing is written, but the dtypes mix */
        updates = cot_zeros(t, cot__dtype_at(&t->nodes[ui]), COT_SCALAR);
    }
    return cot_where(written, updates, x);
}

static cot_var last_writer_apply(cot__rule *r, const cot_var *xs) {
    int64_t  extent = cot__rule_attr(r)->ints[0];
    uint32_t i;
    if (!cot__enter(r->t, xs[0], "scatter", "index", &i) ||
        !cot__check_positions(r->t, "scatter", "indices", i, extent, true))
        return INVALID(r->t);
    return push_last_writer(r->t, i, extent);
}

const cot__op cot__op_last_writer = {.name = "last_writer", .batch = cot__batch_last_writer, .attrs = "extent:d",
                                     .kind = KIND_NONE, .apply = last_writer_apply,
                                     .formula = "z[p] = the last i with indices[i] = p, else -1",
                                     .cost = {.none = "finds positions"},
                                     .operands = "x"};

/* ---- masks ----------------------------------------------------------------------------------- */

static cot_tape *enter_mask(const char *op, cot_var x, cot_var mask, uint32_t *xi, uint32_t *mi) {
    cot_tape *t = cot__tape_of(2, (cot_var[]){x, mask});
    if (!t || !cot__enter(t, x, op, "first", xi) || !cot__enter(t, mask, op, "mask", mi)) return NULL;
    cot_dtype d = cot__dtype_at(&t->nodes[*mi]);
    if (d == COT_BOOL) return t;
    cot__fail(t, COT_DTYPE, "[%s] the mask has dtype %s; a mask is made of bools, as comparisons give them", op,
              cot__dtype_name(d));
    return NULL;
}

/* As enter_mask, for a mask along one axis. */
static cot_tape *enter_compress(const char *op, cot_var x, cot_var mask, int *axis, uint32_t *xi, uint32_t *mi) {
    char      text[COT__SHAPE_TEXT];
    cot_tape *t = enter_mask(op, x, mask, xi, mi);
    if (!t || !cot__check_axis(t, op, *axis, cot__ndim_at(t, *xi), axis)) return NULL;
    int64_t extent = cot__view_read(t, *xi).shape[*axis];
    if (cot__ndim_at(t, *mi) == 1 && cot__size_at(t, *mi) == extent) return t;
    cot__fail(
        t, COT_SHAPE,
        "[%s] the mask has shape %s, axis %d of x has extent %lld; a mask is a vector with one bool for each position",
        op, cot__shape_text_at(t, *mi, text), *axis, (long long)extent);
    return NULL;
}

/* The places of true in a vector: as many as there are, or the first `size`, filled up with -1. */
static cot_var push_nonzero(const char *op, cot_tape *t, uint32_t mask, int64_t size) {
    if (size < 0 && t->mode.body)
        return cot__fail(t, COT_SHAPE,
                         "[%s] in the body of [%s], which is recorded once, the extent of the result would depend on "
                         "values; use cot_where, or "
                         "cot_compress_to with a given size",
                         op, t->mode.body);
    cot__result r;
    cot__view   v = cot__view_read(t, mask);
    int64_t     room = size < 0 ? t->backend->nonzero(&v, NULL) : size;
    cot__attr *attr = cot__attr_make(t, op, 1, &size, 0, NULL);
    if (!attr || !cot__result_open(t, &r, op, COT_I64, 1, &room)) return INVALID(t);
    t->backend->nonzero(&v, &r.view);
    return cot__result_push(t, &r, OP_nonzero, 1, &mask, attr);
}

cot_var cot_compress(cot_var x, cot_var mask, int axis) {
    uint32_t  xi, mi;
    cot_tape *t = enter_compress("compress", x, mask, &axis, &xi, &mi);
    return t ? cot_take(x, push_nonzero("compress", t, mi, -1), axis) : cot__invalid(1, &x);
}

cot_var cot_compress_to(cot_var x, cot_var mask, int axis, int64_t size, double fill) {
    uint32_t  xi, mi;
    cot_tape *t = enter_compress("compress_to", x, mask, &axis, &xi, &mi);
    if (!t) return cot__invalid(1, &x);
    cot_shape shape = cot__shape_at(t, xi), column = {shape.ndim - axis, {size}};
    int64_t   extent = shape.dim[axis];
    cot_dtype dtype = cot__dtype_at(&t->nodes[xi]);
    shape.dim[axis] = size;
    if (!cot__check_shape(t, "compress_to", &shape)) return INVALID(t);
    if (extent == 0) return cot_full(t, dtype, shape, fill);
    for (int k = 1; k < column.ndim; k++) column.dim[k] = 1;
    cot_var places = push_nonzero("compress_to", t, mi, size);
    cot_var there = cot_reshape(cot_greater_equal(places, 0), column);
    return cot_where(there, cot_take(x, cot_maximum(places, 0), axis), cot_full(t, dtype, COT_SCALAR, fill));
}

cot_var cot_masked_select(cot_var x, cot_var mask) {
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    uint32_t  xi, mi;
    cot_tape *t = enter_mask("masked_select", x, mask, &xi, &mi);
    if (!t) return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, xi), m = cot__shape_at(t, mi), flat = {1, {cot__size_at(t, mi)}};
    bool      fits = m.ndim <= s.ndim;
    for (int k = 0; fits && k < m.ndim; k++) fits = m.dim[k] == s.dim[k];
    if (!fits)
        return cot__fail(t, COT_SHAPE,
                         "[masked_select] the mask has shape %s, x %s; a mask has the extents of x's leading axes",
                         cot__shape_text(m.ndim, m.dim, a), cot__shape_text(s.ndim, s.dim, b));
    if (m.ndim == 0 && s.ndim == COT_MAX_NDIM)
        return cot__fail(
            t, COT_LIMIT,
            "[masked_select] the operand has %d axes already; a scalar mask adds one, and there are at most %d", s.ndim,
            COT_MAX_NDIM);
    for (int k = m.ndim; k < s.ndim; k++) flat.dim[flat.ndim++] = s.dim[k];
    cot_var rows = cot_reshape(x, flat), kept = cot_reshape(mask, COT_SHAPE(flat.dim[0]));
    if (cot__failed(kept)) return kept;
    return cot_take(rows, push_nonzero("masked_select", t, cot__index(kept), -1), 0);
}

static cot_var nonzero_apply(cot__rule *r, const cot_var *xs) {
    uint32_t i;
    return cot__enter(r->t, xs[0], "nonzero", "mask", &i) ? push_nonzero("nonzero", r->t, i, cot__rule_attr(r)->ints[0])
                                                          : INVALID(r->t);
}

const cot__op cot__op_nonzero = {
    .name     = "nonzero",
    .attrs    = "size:d",
    .kind     = KIND_NONE,
    .apply    = nonzero_apply,
    .formula  = "z = every i with x[i] true, in order; with a size: the first ones, filled up with -1",
    .cost     = {.none = "finds positions"},
    .operands = "x"};
