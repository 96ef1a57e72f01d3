/* inplace.c: in-place operations: functional nodes on a donated storage.
 *
 * A write records a new node on x's storage and bumps the storage's version; every older value on
 * that storage is stale from then on. Whether a rule had saved the old value is known from the
 * storage's saver: strict tapes refuse the write, others report at backward. 0-d values share
 * memory with nothing and are simply replaced. */
#include "rules/structural_ids.h"
#include "rules/elementwise_ids.h"
#include "backend/elements.h"
#include "ops/array/array.h"
#include "ops/costs.h"
#include "ops/elementwise/elementwise.h"
#include "pending/pending.h"
#include "ops/structural.h"
#include "tape/scope.h"

#include <string.h>

void cot__bump(cot__storage *s, uint32_t writer) {
    s->version++;
    s->writer = writer;
}

cot__view cot__slice_view(const cot__view *v, const int64_t slice[4], int64_t *shape, int64_t *stride) {
    int axis = (int)slice[0];
    for (int k = 0; k < v->ndim; k++) shape[k] = v->shape[k], stride[k] = v->stride[k];
    char *data = (char *)v->data + slice[1] * v->stride[axis] * cot__dtype_size(v->dtype);
    shape[axis] = slice[2];
    stride[axis] *= slice[3];
    return (cot__view){data, v->dtype, v->ndim, shape, stride};
}

/* ---- what every write checks ----------------------------------------------------------------- */

/* Do two different indices reach the same element? Broadcast axes do; so may hand-made overlaps,
 * which our views never have. */
static bool repeats_elements(const cot__view *v) {
    for (int k = 0; k < v->ndim; k++)
        if (v->shape[k] > 1 && v->stride[k] == 0) return true;
    return false;
}

static bool may_write(cot_tape *t, const char *op, uint32_t x) {
    cot__view     v = cot__layout_at(t, x);
    cot__storage *s = t->nodes[x].value.tensor->storage;
    char          a[160], b[160];
    if (repeats_elements(&v)) {
        cot__fail(t, COT_VALUE,
                  "[%s] the target %s is a broadcast view: one element stands for many; copy it before writing", op,
                  cot__describe(t, x, a, sizeof a));
        return false;
    }
    if (t->options.strict && cot__has_saver(t, s, s->version)) {
        cot__fail(t, COT_STALE, "[%s] this write would spoil the value of %s, which %s saved for its derivative", op,
                  cot__describe(t, x, a, sizeof a), cot__describe(t, s->saver, b, sizeof b));
        return false;
    }
    return true;
}

/* The operand that node i has its storage from, as a view or by a write in place; COT__NONE: it has
 * one of its own. */
static uint32_t storage_from(const cot_tape *t, uint32_t i) {
    const cot__node *n = &t->nodes[i];
    uint32_t         a = cot__nargs(n) ? cot__arg(n, 0) : COT__NONE;
    bool             same = a != COT__NONE && cot__is_tensor(n) && cot__is_tensor(&t->nodes[a]) &&
                t->nodes[a].value.tensor->storage == n->value.tensor->storage;
    return same ? a : COT__NONE;
}

/* The source, a constant or an input of a body, or the value from outside the body, whose storage
 * node i lies on; COT__NONE: an operation of the body made it. */
static uint32_t source_of(const cot_tape *t, uint32_t i) {
    while (i != COT__NONE && i >= t->mode.body_from && cot__op_of(t->nodes[i].op)->kind != KIND_SOURCE)
        i = storage_from(t, i);
    return i;
}

/* A copy of the source was written: what the body has of it, itself and views, is stale. */
static void source_was_written(cot_tape *t, uint32_t source) {
    for (uint32_t i = source < t->mode.body_from ? t->mode.body_from : source; i < t->count; i++) {
        uint32_t a = i == source ? COT__NONE : storage_from(t, i);
        bool     on_it = i == source || a == source ||
                     (a != COT__NONE && a > source && t->nodes[a].value.tensor->version == COT__WRITTEN_ON_COPY);
        if (on_it) t->nodes[i].value.tensor->version = COT__WRITTEN_ON_COPY;
    }
}

/* What is written to; where it is missing, y may be on a tape, which is told. */
static cot_tape *enter_target(const char *op, const cot_var *x, cot_var y, uint32_t *xi) {
    cot_tape *t = cot__tape_beside(op, "the target", 1, x ? x : &COT_NONE, 1, &y);
    return t ? cot__enter(t, *x, op, "target", xi) : NULL;
}

/* The target of a write and the value y shaped and typed like it (or like `part` of it). A body's
 * constants are read again when it is played, and its inputs are somebody else's: there xi is a
 * copy, and commit_write is told of the source. */
static cot_tape *enter_write(const char *op, const cot_var *x, cot_var y, uint32_t *xi, uint32_t *source) {
    cot_tape *t = enter_target(op, x, y, xi);
    *source = COT__NONE;
    if (!t) return NULL;
    if (!cot__has_axes(&t->nodes[*xi])) return t;
    if (t->mode.body && *xi < t->mode.body_from) {
        cot__fail(t, COT_VALUE,
                  "[%s] the target is older than the body of [%s], which is recorded once and would write it then "
                  "only; copy it first",
                  op, t->mode.body);
        return NULL;
    }
    if (t->mode.body && (*source = source_of(t, *xi)) != COT__NONE) {
        cot_var copy = cot__copy_var(t, *xi);
        if (cot__failed(copy)) return NULL;
        *xi = cot__index(copy);
    }
    return may_write(t, op, *xi) ? t : NULL;
}

static uint32_t fit(cot_tape *t, const char *op, cot_var y, cot_dtype dtype, const cot_shape *shape) {
    uint32_t i;
    if ((uintptr_t)y.tape == 2) { /* a whole number takes the target's dtype, exactly */
        cot__result r;
        if (!cot__result_open(t, &r, op, dtype, 0, NULL)) return COT__NONE;
        cot__set_i64(t->backend, &r.view, (int64_t)y.id);
        y = cot__result_push(t, &r, OP_constant, 0, NULL, NULL);
    }
    if (!cot__enter(t, y, op, "new", &i)) return COT__NONE;
    if (cot__dtype_is_float(cot__dtype_at(&t->nodes[i])) && !cot__dtype_is_float(dtype)) {
        cot__fail(t, COT_DTYPE, "[%s] a value of dtype %s does not fit into a target of dtype %s; cast it first", op,
                  cot__dtype_name(cot__dtype_at(&t->nodes[i])), cot__dtype_name(dtype));
        return COT__NONE;
    }
    if ((i = cot__as(t, i, dtype)) == COT__NONE) return i;
    cot_shape s = cot__shape_at(t, i);
    if (!cot__same_shape(&s, shape)) {
        cot_var b = cot__broadcast_as(op, VAR(t, i), *shape);
        if (b.id == UINT64_MAX) return COT__NONE;
        i = cot__index(b);
    }
    return i;
}

/* Pushes a node on x's own storage; what is written there is computed by the caller, with elements
 * that it holds. x may be the copy of a source of a body. */
static cot_status commit_write(cot_tape *t, int op, cot_var *x, uint32_t xi, uint32_t source, int n,
                               const uint32_t *args, cot__attr *attr) {
    cot__tensor  *v = t->nodes[xi].value.tensor;
    cot__storage *s = v->storage;
    if (!cot__memory_before_write(t, s)) return t->status;
    t->memory.holds++;
    cot_var z = cot__push_storage(t, op, s, cot__dtype_at(&t->nodes[xi]), v->ndim, v->dims, v->dims + v->ndim,
                                  v->offset, n, args);
    t->memory.holds--;
    if (z.id == UINT64_MAX) return t->status;
    cot__node *node = &t->nodes[cot__index(z)];
    node->flags |= COT__IN_PLACE;
    if (attr) node->extra.attr = attr;
    cot__bump(s, cot__index(z));
    node->value.tensor->version = s->version;
    if (source != COT__NONE) source_was_written(t, source);
    /* again: its result has this version now */
    if (node->flags & COT__ACTIVE) cot__note_saves(t, cot__index(z));
    *x = z;
    return COT_OK;
}

/* ---- x op= y --------------------------------------------------------------------------------- */

/* Does the derivative of op read the old x? Then it needs a copy: the write itself would spoil
 * it. */
static bool reads_target(cot_tape *t, int op, uint32_t x, uint32_t y) {
    const cot__elementwise_info *e = &cot__elementwise_table[op];
    bool active_x = t->nodes[x].flags & COT__ACTIVE, active_y = t->nodes[y].flags & COT__ACTIVE;
    return t->active_mask && ((active_x && (e->saves[0] & 1)) || (active_y && (e->saves[1] & 1)));
}

/* Nothing else sees the memory of a scalar: the new value is a node of its own, in the target's
 * dtype. A number stays an immediate where it can. */
static cot_status replace_scalar(cot_tape *t, int op, const char *name, cot_var *x, cot_var y, cot_dtype dtype) {
    if (cot_shape_of(y).ndim != 0) {
        cot__fail(t, COT_SHAPE, "[%s] a scalar target cannot take the shape of the other operand", name);
        return t->status;
    }
    if (!cot__is_number(y) || !cot__dtype_is_float(dtype)) {
        uint32_t yi = fit(t, name, y, dtype, &(cot_shape){0});
        if (yi == COT__NONE) return t->status;
        y = VAR(t, yi);
    }
    cot_var z = cot__elementwise(op, 2, (cot_var[]){*x, y});
    /* bools are counted as i64 */
    if (t->status == COT_OK && cot_dtype_of(z) != dtype) z = cot_cast(z, dtype);
    if (t->status == COT_OK) *x = z;
    return t->status;
}

cot_status cot__elementwise_into(int op, cot_var *x, cot_var y) {
    char name[32];
    snprintf(name, sizeof name, "%s_into", cot__elementwise_table[op].name);
    uint32_t  xi, yi, source;
    cot_tape *t = enter_write(name, x, y, &xi, &source);
    if (!t) return cot__status_of(x ? 1 : 0, x);
    cot_dtype dtype = cot__dtype_at(&t->nodes[xi]);
    cot_shape shape = cot__shape_at(t, xi);
    if (cot__elementwise_table[op].class == REAL && !cot__dtype_is_float(dtype)) {
        cot__fail(t, COT_DTYPE, "[%s] the result is a fraction and does not fit into a target of dtype %s", name,
                  cot__dtype_name(dtype));
        return t->status;
    }
    if (!cot__has_axes(&t->nodes[xi])) return replace_scalar(t, op, name, x, y, dtype);
    if ((yi = fit(t, name, y, dtype, &shape)) == COT__NONE) return t->status;
    uint32_t old = xi;
    if (reads_target(t, op, xi, yi)) {
        cot_var copy = cot__copy_var(t, xi);
        if (copy.id == UINT64_MAX) return t->status;
        old = cot__index(copy);
    }
    /* y on the same storage: elements would be read after they were written unless the views are
     * one and the same. */
    if (cot__is_tensor(&t->nodes[yi]) && t->nodes[yi].value.tensor->storage == t->nodes[xi].value.tensor->storage) {
        cot_var copy = cot__copy_var(t, yi);
        if (copy.id == UINT64_MAX) return t->status;
        yi = cot__index(copy);
    }
    if (!cot__room(t, name)) return t->status;
    cot__bound pair[2] = {cot__bound_at(t, xi), cot__bound_at(t, yi)}, z = pair[0];
    uint32_t   args[2] = {old, yi};
    cot_status st = commit_write(t, op, x, xi, source, 2, args, NULL);
    if (st == COT_OK) cot__pending_value(t, op, cot__dtype_compute(dtype), 2, pair, &z);
    return st;
}

cot_status(cot_add_into)(cot_var *x, cot_var y) { return cot__elementwise_into(OP_add, x, y); }
cot_status(cot_sub_into)(cot_var *x, cot_var y) { return cot__elementwise_into(OP_sub, x, y); }
cot_status(cot_mul_into)(cot_var *x, cot_var y) { return cot__elementwise_into(OP_mul, x, y); }
cot_status(cot_div_into)(cot_var *x, cot_var y) { return cot__elementwise_into(OP_div, x, y); }

/* ---- writes of whole values and of slices ---------------------------------------------------- */

/* Slice attributes: axis, first, length, step; no attributes: the whole. */
static cot_status write_part(int op, cot_var *x, cot_var y, const char *name, const int64_t *slice) {
    uint32_t  xi, yi, source;
    cot_tape *t = enter_write(name, x, y, &xi, &source);
    if (!t) return cot__status_of(x ? 1 : 0, x);
    cot_dtype  dtype = cot__dtype_at(&t->nodes[xi]);
    cot_shape  shape = cot__shape_at(t, xi);
    cot__attr *attr = NULL;
    if (slice && !(attr = cot__attr_make(t, name, 4, slice, 0, NULL))) return t->status;
    if (slice) shape.dim[slice[0]] = slice[2];
    if ((yi = fit(t, name, y, dtype, &shape)) == COT__NONE) return t->status;
    if (!cot__has_axes(&t->nodes[xi])) {
        /* replaced by a copy of y: another value, with a derivative of its own */
        bool    fitted = cot__is_number(y) || cot__index(y) != yi;
        cot_var z = fitted ? VAR(t, yi) : cot__copy_var(t, yi);
        if (t->status == COT_OK) *x = z;
        return t->status;
    }
    if (cot__is_tensor(&t->nodes[yi]) && t->nodes[yi].value.tensor->storage == t->nodes[xi].value.tensor->storage) {
        cot_var copy = cot__copy_var(t, yi);
        if (copy.id == UINT64_MAX) return t->status;
        yi = cot__index(copy);
    }
    if (!cot__room(t, name)) return t->status;
    int64_t    part_shape[COT_MAX_NDIM], part_stride[COT_MAX_NDIM];
    cot__bound to = cot__bound_at(t, xi), from = cot__bound_at(t, yi);
    if (slice) to.view = cot__slice_view(&to.view, slice, part_shape, part_stride);
    uint32_t   args[2] = {xi, yi};
    cot_status st = commit_write(t, op, x, xi, source, 2, args, attr);
    if (st != COT_OK) return st;
    if (op == OP_add_slice) {
        cot__bound pair[2] = {to, from};
        cot__pending_value(t, OP_add, cot__dtype_compute(dtype), 2, pair, &to);
    } else
        cot__pending_copy(t, &to, &from);
    return COT_OK;
}

cot_status cot__add_slice(cot_var *x, cot_var v, const int64_t slice[4]) {
    return write_part(OP_add_slice, x, v, "add_slice", slice);
}

cot_status(cot_copy_into)(cot_var *x, cot_var y) { return write_part(OP_copy_into, x, y, "copy_into", NULL); }

cot_status(cot_update_slice)(cot_var *x, int axis, int64_t start, int64_t stop, int64_t step, cot_var y) {
    uint32_t  xi;
    int64_t   slice[4];
    int       at;
    cot_tape *t = enter_target("update_slice", x, y, &xi);
    if (!t) return cot__status_of(x ? 1 : 0, x);
    cot_shape shape = cot__shape_at(t, xi);
    if (!cot__check_axis(t, "update_slice", axis, shape.ndim, &at)) return t->status;
    if (!cot__check_slice(t, "update_slice", shape.dim[at], start, stop, &step, &slice[1], &slice[2])) return t->status;
    slice[0] = at;
    slice[3] = step;
    return write_part(OP_update_slice, x, y, "update_slice", slice);
}

void cot_touch(cot_var *x) {
    uint32_t  i;
    cot_tape *t = x ? cot__enter(NULL, *x, "touch", "", &i) : NULL;
    char      text[160];
    if (!t) return;
    if (!cot__is_tensor(&t->nodes[i]) || !t->nodes[i].value.tensor->storage->borrowed) {
        cot__fail(t, COT_VALUE,
                  "[touch] %s does not lie in borrowed memory (cot_wrap): nothing can change it from outside",
                  cot__describe(t, i, text, sizeof text));
        return;
    }
    cot__view v = cot__look(t, i);
    cot_var z = cot__push_storage(t, OP_constant, t->nodes[i].value.tensor->storage, v.dtype, v.ndim, v.shape, v.stride,
                                  t->nodes[i].value.tensor->offset, 0, NULL);
    if (z.id == UINT64_MAX) return;
    cot__bump(t->nodes[i].value.tensor->storage, COT__NONE);
    t->nodes[cot__index(z)].value.tensor->version = t->nodes[i].value.tensor->storage->version;
    *x = z;
}

/* ---- running without a tape ------------------------------------------------------------------ */

enum { AXIS, FIRST, LENGTH, STEP, SLICE_INTS };

static bool copy_into_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 2, 2, 0)) return false;
    const cot__view *x = &j->x[0];
    cot__type_like(z, x->dtype, x);
    return cot__job_dtype(j, 1, x->dtype) && cot__job_shape(j, 1, x->ndim, x->shape);
}

static void copy_into_run(const cot__job *j) { j->backend->copy(&j->z, &j->x[1]); }

/* y has x's dtype, and the shape of the slice. */
static bool slice_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 2, 2, SLICE_INTS) || !cot__job_axis(j, AXIS, j->x[0].ndim)) return false;
    const cot__view *x = &j->x[0];
    const int64_t   *s = j->attr->ints;
    if (!cot__slice_is_inside(x->shape[s[AXIS]], s[FIRST], s[LENGTH], s[STEP]))
        return cot__job_illegal(j, "a slice that is not inside the axis");
    cot__type_like(z, x->dtype, x);
    cot_shape part = z->shape;
    part.dim[s[AXIS]] = s[LENGTH];
    return cot__job_dtype(j, 1, x->dtype) && cot__job_shape(j, 1, part.ndim, part.dim);
}

static void update_slice_run(const cot__job *j) {
    int64_t   shape[COT_MAX_NDIM], stride[COT_MAX_NDIM];
    cot__view part = cot__slice_view(&j->z, j->attr->ints, shape, stride);
    j->backend->copy(&part, &j->x[1]);
}

static void add_slice_run(const cot__job *j) {
    int64_t   shape[COT_MAX_NDIM], stride[COT_MAX_NDIM];
    cot__view part = cot__slice_view(&j->z, j->attr->ints, shape, stride), pair[2] = {part, j->x[1]};
    cot__run_value(j->backend, OP_add, cot__dtype_compute(part.dtype), 2, pair, &part);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static const int64_t *slice_of(cot__rule *r) { return cot__rule_attr(r)->ints; }
static cot_var        cut(cot__rule *r, cot_var v) {
    const int64_t *s = slice_of(r);
    int64_t        end = s[1] + s[2] * s[3];
    return cot_slice(v, (int)s[0], s[1], s[2] && s[3] < 0 && end < 0 ? COT_END : end, s[3]);
}

static void add_slice_vjp(cot__rule *r) {
    cot__give(r, 0, r->g);
    if (cot__rule_wants(r, 1)) cot__give(r, 1, cut(r, r->g));
}

/* z = x outside the slice, y inside: x̄ = g with the slice zeroed, ȳ = g[slice]. */
static void update_slice_vjp(cot__rule *r) {
    if (cot__rule_wants(r, 0)) {
        cot_var rest = cot__copy_var(r->t, cot__index(r->g));
        write_part(OP_update_slice, &rest, cot_number(0), "update_slice", slice_of(r));
        cot__give(r, 0, rest);
    }
    if (cot__rule_wants(r, 1)) cot__give(r, 1, cut(r, r->g));
}

/* In place, but on a copy. */
static cot_var write_apply(cot__rule *r, const cot_var *xs) {
    cot_var z = xs[0].id == UINT64_MAX ? xs[0] : cot__copy_var(r->t, cot__index(xs[0]));
    write_part(cot__rule_node(r)->op, &z, xs[1], r->op->name, slice_of(r));
    return z;
}

/* Nothing is left of the old x but its shape, which y has. */
static cot_var copy_into_apply(cot__rule *r, const cot_var *xs) { return (void)r, cot_copy(xs[1]); }

static void copy_into_vjp(cot__rule *r) { cot__give(r, 1, r->g); }
/* written out: the old x must not be read */
static void copy_into_jvp(cot__rule *r) { r->tangent = r->tangents[1]; }

static double add_slice_cost(const cot_tape *t, uint32_t node) { return cot__operand_size(t, node, 1); }

const cot__op cot__op_add_slice    = {.name     = "add_slice",
                                      .batch    = cot__batch_shift,
                                      .attrs    = "axis:a first:d length:d step:u",
                                      .kind     = KIND_LINEAR,
                                      .formula  = "z = x with x[slice] += y, in place; x̄ += z̄, ȳ += z̄[slice]",
                                      .vjp      = add_slice_vjp,
                                      .apply    = write_apply,
                                      .infer    = slice_infer,
                                      .run      = add_slice_run,
                                      .in_place = true,
                                      .cost     = {.more = add_slice_cost},
                                      .operands = "x y",
                                      .writes   = COT__ADDS_SLICE};
const cot__op cot__op_update_slice = {.name     = "update_slice",
                                      .batch    = cot__batch_shift,
                                      .attrs    = "axis:a first:d length:d step:u",
                                      .kind     = KIND_LINEAR,
                                      .formula =
                                          "z = x with x[slice] = y, in place; x̄ += z̄ with z̄[slice] = 0, ȳ += z̄[slice]",
                                      .vjp      = update_slice_vjp,
                                      .apply    = write_apply,
                                      .infer    = slice_infer,
                                      .run      = update_slice_run,
                                      .in_place = true,
                                      .cost     = {.none = "moves data"},
                                      .operands = "x y",
                                      .writes   = COT__SETS_SLICE};
/* Not KIND_LINEAR, whose forward mode reads passive operands: the old x is gone. */
const cot__op cot__op_copy_into = {.name = "copy_into", .batch = cot__batch_shift, .kind = KIND_GENERIC, .inactive = 1,
                                   .formula = "z = y, in x's memory; ȳ += z̄",
                                   .vjp = copy_into_vjp, .jvp = copy_into_jvp, .apply = copy_into_apply,
                                   .infer = copy_into_infer, .run = copy_into_run, .in_place = true,
                                   .cost = {.none = "moves data"},
                                   .linear = 2u,
                                   .operands = "x y",
                                   .same = 2};
