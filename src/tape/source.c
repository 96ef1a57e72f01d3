/* source.c: makes sources: leaves, constants, borrowed memory; and detach. */
#include "rules/structural_ids.h"
#include "backend/elements.h"
#include "tape/record_job.h"
#include "tape/tape.h"

#include <string.h>

const cot__op cot__op_leaf = {
    .name = "leaf", .kind = KIND_SOURCE, .formula = "a value that gradients are taken with respect to",
    .cost = {.none = "is given"}};
const cot__op cot__op_constant = {.name = "constant", .kind = KIND_SOURCE, .formula = "given numbers",
                                  .cost = {.none = "is given"}};

const cot__op cot__op_detach = {.name     = "detach",
                                .batch    = cot__batch_shift,
                                .kind     = KIND_NONE,
                                .formula  = "x, with no gradient through it",
                                .infer    = cot__infer_same,
                                .view     = cot__view_same,
                                .cost     = {.none = "moves data"},
                                .operands = "x"};

static bool valid_shape(cot_tape *t, const char *op, const cot_shape *s) {
    if (s->ndim >= 0 && s->ndim <= COT_MAX_NDIM) return true;
    cot__fail(t, COT_LIMIT, "[%s] %d axes; between 0 and %d are possible", op, s->ndim, COT_MAX_NDIM);
    return false;
}

static bool valid_dtype(cot_tape *t, const char *op, cot_dtype d) {
    if ((unsigned)d < COT_DTYPE_COUNT) return true;
    cot__fail(t, COT_DTYPE, "[%s] %d is not a dtype", op, (int)d);
    return false;
}

/* Tensor leaves own a gradient: they are listed, so that a rewind can free it. */
static cot_var push_source(cot_tape *t, cot__result *r, int op) {
    if (op == OP_leaf && r->tensor) {
        void *list = t->leaves.list;
        if (!cot__grow(t, &list, &t->leaves.capacity, t->leaves.count, sizeof *t->leaves.list, "leaf"))
            return INVALID(t);
        t->leaves.list = list;
    }
    cot_var x = cot__result_push(t, r, op, 0, NULL, NULL);
    if (x.id == UINT64_MAX || op != OP_leaf) return x;
    cot__node *n = &t->nodes[cot__index(x)];
    n->a = n->b = 0; /* the time of the last cot_assign: never */
    if (r->tensor)
        n->extra.grad = NULL, t->leaves.list[t->leaves.count++] = cot__index(x);
    else
        n->extra.number = 0;
    return x;
}

static cot_var make_source(cot_tape *t, int op, const char *name, cot_dtype dtype, cot_shape shape, const void *data) {
    cot__result r;
    if (!cot__usable(t)) return INVALID(t);
    if (!valid_shape(t, name, &shape) || !valid_dtype(t, name, dtype)) return INVALID(t);
    if (op == OP_leaf && !cot__dtype_is_float(dtype))
        return cot__fail(t, COT_DTYPE,
                         "[%s] a leaf of dtype %s; only f64, f32, bf16 and f16 have gradients, use cot_data for others",
                         name, cot__dtype_name(dtype));
    t->mode.leaf = op == OP_leaf;
    bool opened = cot__result_open(t, &r, name, dtype, shape.ndim, shape.dim);
    t->mode.leaf = false;
    if (!opened) return INVALID(t);
    if (!r.tensor && data)
        memcpy(&r.scalar, data, (size_t)cot__dtype_size(dtype));
    else if (data && r.tensor->size)
        t->backend->copy_in(&r.view,
                            &(cot__view){(void *)(uintptr_t)data, dtype, shape.ndim, shape.dim, r.view.stride});
    else if (r.tensor && r.tensor->size)
        t->backend->fill(&r.view, 0);
    return push_source(t, &r, op);
}

cot_var cot_scalar_of(cot_tape *t, cot_dtype dtype, double value) {
    cot__value v = {0};
    if ((unsigned)dtype < COT_DTYPE_COUNT) cot__store_f64(&v, dtype, value);
    return make_source(t, OP_leaf, "scalar_of", dtype, (cot_shape){0}, &v);
}

cot_var cot_scalar(cot_tape *t, double value) {
    if (UNLIKELY(!t || t->count >= t->fast_limit))
        return make_source(t, OP_leaf, "scalar", COT_F64, (cot_shape){0}, &value);
    uint32_t i = t->count++;
    t->nodes[i] = (cot__node){
        .op = OP_leaf, .kind = COT_F64, .flags = (uint8_t)t->active_mask, .stamp = t->stamp, .value.f64 = value};
    return (cot_var){t, (uint64_t)t->stamp << 32 | i};
}

cot_var cot_constant(cot_tape *t, double value) {
    if (UNLIKELY(!t || t->count >= t->fast_limit))
        return make_source(t, OP_constant, "constant", COT_F64, (cot_shape){0}, &value);
    uint32_t i = t->count++;
    t->nodes[i] = (cot__node){
        .op = OP_constant, .kind = COT_F64, .stamp = t->stamp, .a = COT__NONE, .b = COT__NONE, .value.f64 = value};
    return (cot_var){t, (uint64_t)t->stamp << 32 | i};
}

cot_var cot_tensor(cot_tape *t, cot_dtype dtype, cot_shape shape, const void *data) {
    return make_source(t, OP_leaf, "tensor", dtype, shape, data);
}

cot_var cot_data(cot_tape *t, cot_dtype dtype, cot_shape shape, const void *data) {
    return make_source(t, OP_constant, "data", dtype, shape, data);
}

cot_var cot_wrap(cot_tape *t, cot_dtype dtype, cot_shape shape, void *memory) {
    if (!cot__usable(t)) return INVALID(t);
    if (!valid_shape(t, "wrap", &shape) || !valid_dtype(t, "wrap", dtype)) return INVALID(t);
    if (t->mode.compiling)
        return cot__fail(t, COT_VALUE,
                         "[wrap] called in a function that is compiled; a program holds no address: pass the array as "
                         "an input, or copy it with cot_data");
    if (!cot__on_host(t->backend))
        return cot__fail(t, COT_VALUE,
                         "[wrap] the device of this tape, %s, cannot borrow memory of the host; use cot_data, which "
                         "copies",
                         t->backend->name);
    if (shape.ndim == 0)
        return cot__fail(t, COT_SHAPE, "[wrap] a scalar lives in the tape and cannot be borrowed; use cot_data");
    int64_t size = cot__checked_size(t, "wrap", dtype, shape.ndim, shape.dim);
    if (size < 0) return INVALID(t);
    if (!memory && size > 0)
        return cot__fail(t, COT_VALUE, "[wrap] the memory is NULL; it must hold %lld elements", (long long)size);
    cot__storage *s = cot__storage_wrap(t, memory, (size_t)(size * cot__dtype_size(dtype)), "wrap");
    if (!s || !cot__storage_keep(t, s, "wrap")) return INVALID(t);
    return cot__push_storage(t, OP_constant, s, dtype, shape.ndim, shape.dim, NULL, 0, 0, NULL);
}

cot_var cot__detach(const char *op, cot_var x) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, op, "", &i);
    return t ? cot__record(t, op, OP_detach, 1, &i, NULL, NULL) : cot__invalid(1, &x);
}

cot_var cot_detach(cot_var x) { return cot__detach("detach", x); }
