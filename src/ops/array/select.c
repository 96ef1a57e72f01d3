/* select.c: elements chosen by several coordinates (gather), assigned by position (scatter), or
 * kept by a mask of bools (compress).
 *
 * Each is one operation on integers that finds places, then take and where, which have the
 * derivatives: they only move elements, so what was not chosen gets a zero, also beside
 * infinities. */
#include "rules/structural_ids.h"
#include "ops/structural.h"
#include "tape/examples.h"

/* ---- gather ---------------------------------------------------------------------------------- */

/* Positions in axes of these extents, flattened: indices.shape[:-1]. Of another asker they are on
 * one axis, and no coordinates: indices.shape. */
static bool ravel_infer(const cot__job *j, cot__type *z) {
    int d = j->attr ? (int)j->attr->nints : 0;
    if (!cot__job_has(j, 1, 1, 0) || !cot__job_integers(j, 0, "indices")) return false;
    const cot__view *x = &j->x[0];
    bool whole = j->attr && cot__asker_of(j->attr) != COT__FOR_ITSELF;
    if (whole ? d != 1 : x->ndim == 0 || x->shape[x->ndim - 1] != d)
        return cot__job_illegal(j, "not one coordinate for each extent");
    cot__type all = {COT_I64, {d, {0}}};
    for (int k = 0; d <= COT_MAX_NDIM && k < d; k++) all.shape.dim[k] = cot__job_int(j, k);
    cot__type_like(z, COT_I64, x);
    z->shape.ndim -= !whole;
    return cot__job_check_type(j, &all);
}

/* Are the coordinates of each position within the extents? */
static bool ravel_check(const cot__job *j) {
    char       what[40];
    cot__asker who = cot__asker_of(j->attr);
    if (who != COT__FOR_ITSELF)
        return cot__job_positions(j, 0, cot__asker_what(who), cot__job_int(j, 0), cot__asker_wraps(who));
    for (int k = 0, d = (int)j->attr->nints; k < d; k++) {
        snprintf(what, sizeof what, "coordinate %d of indices", k);
        if (!cot__job_positions_in(j, 0, k, what, cot__job_int(j, k), true)) return false;
    }
    return true;
}

static void ravel_run(const cot__job *j) {
    j->backend->ravel_index(&j->x[0], (int)j->attr->nints, j->attr->ints, &j->z);
}

static cot_var push_ravel(cot_tape *t, cot__asker who, uint32_t indices, int d, const int64_t *extents) {
    cot__attr *attr = cot__attr_make(t, cot__asker_name(who), d, extents, 0, NULL);
    if (!attr) return INVALID(t);
    attr->number = who == COT__FOR_GATHER ? COT__FOR_ITSELF : who;
    return cot__record(t, cot__asker_name(who), OP_ravel_index, 1, &indices, attr, NULL);
}

cot_var cot__places_for(cot__asker who, cot_var indices, int64_t extent) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, indices, cot__asker_name(who), "index", &i);
    return t ? push_ravel(t, who, i, 1, &extent) : cot__invalid(1, &indices);
}

static bool are_integers(cot_tape *t, uint32_t indices) {
    cot__recording r;
    return cot__recording_begin(&r, t, "gather", 1, &indices) && cot__job_integers(&r.job, 0, "indices");
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
    if (!cot__check_shape(t, "gather", &z)) return INVALID(t);
    /* positions without coordinates: x at each */
    if (d == 0 && shape.ndim == COT_MAX_NDIM)
        return are_integers(t, ii) ? cot_broadcast_to(x, z) : INVALID(t);
    for (int k = 0; k < d; k++) flat.dim[0] *= shape.dim[k];
    for (int k = (int)d; k < shape.ndim; k++) flat.dim[flat.ndim++] = shape.dim[k];
    cot_var at = push_ravel(t, COT__FOR_GATHER, ii, (int)d, shape.dim);
    return cot__failed(at) ? at : cot_take(cot_reshape(x, flat), at, 0);
}

const cot__op cot__op_ravel_index = {
    .name     = "ravel_index",
    .batch    = cot__batch_shift,
    .attrs    = "extents:l",
    .kind     = KIND_NONE,
    .asker    = COT__FOR_GATHER,
    .infer    = ravel_infer,
    .check    = ravel_check,
    .run      = ravel_run,
    .formula  = "z[..] = the place of x[indices[..,0], indices[..,1], …] among the elements of x",
    .cost     = {.none = "finds positions"},
    .operands = "x"};

/* ---- scatter --------------------------------------------------------------------------------- */

/* For each of the extent positions: the last update that goes there, -1: none. */
static bool last_writer_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, 1) || !cot__job_integers(j, 0, "indices")) return false;
    *z = (cot__type){COT_I64, {1, {cot__job_int(j, 0)}}};
    return true;
}

static bool last_writer_check(const cot__job *j) {
    return cot__job_positions(j, 0, "indices", cot__job_int(j, 0), true);
}

static void last_writer_run(const cot__job *j) { j->backend->last_writer(&j->x[0], &j->z); }

static cot_var push_last_writer(cot_tape *t, uint32_t indices, int64_t extent) {
    cot__attr *attr = cot__attr_make(t, "scatter", 1, &extent, 0, NULL);
    return attr ? cot__record(t, "scatter", OP_last_writer, 1, &indices, attr, NULL) : INVALID(t);
}

cot_var cot_scatter(cot_var x, cot_var indices, cot_var updates, int axis) {
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    uint32_t  xi, ii, ui;
    cot_tape *t = cot__tape_of(3, (cot_var[]){x, indices, updates});
    if (!t || !cot__enter(t, x, "scatter", "first", &xi) || !cot__enter(t, indices, "scatter", "index", &ii) ||
        !cot__enter(t, updates, "scatter", "updates", &ui))
        return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, xi), u = cot__shape_at(t, ui), row = s;
    if (!cot__check_axis(t, "scatter", axis, s.ndim, &axis)) return INVALID(t);
    cot__view v = cot__layout_at(t, xi), p = cot__layout_at(t, ii);
    cot_shape z = cot__taken_shape(&v, &p, axis);
    int64_t   extent = s.dim[axis], n = cot__view_size(&p);
    if (!cot__check_shape(t, "scatter", &z)) return INVALID(t);
    if (u.ndim > 0 && !cot__same_shape(&u, &z))
        return cot__fail(t, COT_SHAPE, "[scatter] the updates have shape %s; the positions ask for %s",
                         cot__shape_text(u.ndim, u.dim, a), cot__shape_text(z.ndim, z.dim, b));
    cot_var   owner = push_last_writer(t, ii, extent);
    if (cot__failed(owner)) return owner;
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

const cot__op cot__op_last_writer = {.name = "last_writer", .batch = cot__batch_last_writer, .attrs = "extent:d",
                                     .kind = KIND_NONE, .asker = COT__FOR_SCATTER,
                                     .infer = last_writer_infer, .check = last_writer_check, .run = last_writer_run,
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
    int64_t extent = cot__layout_at(t, *xi).shape[*axis];
    if (cot__ndim_at(t, *mi) == 1 && cot__size_at(t, *mi) == extent) return t;
    cot__fail(
        t, COT_SHAPE,
        "[%s] the mask has shape %s, axis %d of x has extent %lld; a mask is a vector with one bool for each position",
        op, cot__shape_text_at(t, *mi, text), *axis, (long long)extent);
    return NULL;
}

/* The places of true in a vector: as many as there are, or the first `size`, filled up with -1. How
 * many there are is the extent that is asked for. */
static bool nonzero_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, 1)) return false;
    int64_t size = cot__job_int(j, 0);
    if (j->x[0].ndim != 1) return cot__job_illegal(j, "the mask is no vector");
    if (size >= 0) z->shape = (cot_shape){1, {size}};
    z->dtype = COT_I64;
    return z->shape.ndim == 1 || cot__job_illegal(j, "the places are no vector");
}

static void nonzero_run(const cot__job *j) { j->backend->nonzero(&j->x[0], &j->z, j->status); }

/* How many of the elements of node i are true; negative after setting the error. Of an example
 * outside of a body, which is recorded for its shapes, it is all. */
static void    count_run(const cot__job *j) { j->backend->nonzero(&j->x[0], NULL, j->status); }
static int64_t count_true(const char *op, cot_tape *t, uint32_t i) {
    cot__recording r;
    int64_t        found[2];
    if (t->mode.compiling && cot__is_example(t, i)) return cot__size_at(t, i);
    return cot__recording_begin(&r, t, op, 1, &i) && cot__recording_look(&r, count_run, found) ? found[0] : -1;
}

static cot_var push_nonzero(const char *op, cot_tape *t, uint32_t mask, int64_t size) {
    if (size < 0 && t->mode.body)
        return cot__fail(t, COT_SHAPE,
                         "[%s] in the body of [%s], which is recorded once, the extent of the result would depend on "
                         "values; use cot_where, or "
                         "cot_compress_to with a given size",
                         op, t->mode.body);
    cot__type  asked = {COT_I64, {1, {size < 0 ? count_true(op, t, mask) : size}}};
    cot__attr *attr = t->status == COT_OK ? cot__attr_make(t, op, 1, &size, 0, NULL) : NULL;
    return attr ? cot__record(t, op, OP_nonzero, 1, &mask, attr, &asked) : INVALID(t);
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

/* Of other masks there may be more or fewer, which are counted again. */
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
    .infer    = nonzero_infer,
    .asks     = COT__ASKS_SHAPE,
    .run      = nonzero_run,
    .formula  = "z = every i with x[i] true, in order; with a size: the first ones, filled up with -1",
    .cost     = {.none = "finds positions"},
    .operands = "x"};
