/* values.c: reads values and shapes from a tape. These functions accept any var; for a bad one they
 * give NaN, 0 or an empty shape. */
#include "backend/elements.h"
#include "tape/tape.h"

bool cot_is_valid(cot_var x) {
    if (!x.tape || cot__is_number(x) || x.id == UINT64_MAX) return false;
    uint32_t i = cot__index(x);
    return i < x.tape->count && x.tape->nodes[i].stamp == (uint32_t)(x.id >> 32);
}

cot_tape *cot_tape_of(cot_var x) { return cot__is_number(x) ? NULL : x.tape; }

bool cot__has_values(cot_tape *t, const char *op, uint32_t i, const char *instead) {
    if (!t->mode.body || i < t->mode.body_from) return true;
    if (t->mode.compiling)
        cot__fail(t, COT_VALUE, "[%s] asked for while a function is compiled, for all values that it may be run on; %s",
                  op, instead);
    else
        cot__fail(t, COT_VALUE,
                  "[%s] asked for while the body of [%s] is recorded, which stands for every step and has no values "
                  "yet; %s",
                  op, t->mode.body, instead);
    return false;
}

/* The tape and index of a readable value, or NULL; the reason is then on the tape. */
static cot_tape *readable(cot_var x, const char *op, uint32_t *i) {
    if (!x.tape || cot__is_number(x)) return NULL;
    cot_tape *t = x.tape;
    cot__memory_tick(t); /* what was read before is not being read any more */
    if (!cot__operand(t, x, op, "", i)) return NULL;
    return cot__has_values(t, op, *i, "choose by values with cot_where or cot_cond") ? t : NULL;
}

static cot_tape *single_element(cot_var x, const char *op, cot__view *v) {
    uint32_t  i;
    cot_tape *t = readable(x, op, &i);
    if (!t) return NULL;
    if (cot__size_at(t, i) != 1) {
        char text[COT__SHAPE_TEXT];
        cot__fail(t, COT_SHAPE,
                  "[%s] shape %s has %lld elements; only a single number has a value, use cot_read for more", op,
                  cot__shape_text_at(t, i, text), (long long)cot__size_at(t, i));
        return NULL;
    }
    *v = cot__look(t, i);
    return t;
}

double cot_value(cot_var x) {
    cot__view v;
    if (cot__is_number(x)) return cot__number_value(x);
    if (LIKELY(cot_is_valid(x))) { /* most often a scalar, whose value stands in its node */
        const cot__node *n = &x.tape->nodes[cot__index(x)];
        if (LIKELY(n->kind == COT_F64 && !x.tape->mode.body)) return n->value.f64;
    }
    cot_tape *t = single_element(x, "value", &v);
    return t ? cot__element_f64(t->backend, &v, 0) : (double)NAN;
}

int64_t cot_value_i64(cot_var x) {
    cot__view view;
    if ((uintptr_t)x.tape == 2) return (int64_t)x.id;
    if (cot__is_number(x)) {
        double v = cot__number_value(x);
        return cot__load_i64(&v, COT_F64);
    }
    cot_tape *t = single_element(x, "value_i64", &view);
    return t ? cot__element_i64(t->backend, &view, 0) : 0;
}

cot_dtype cot_dtype_of(cot_var x) { return cot_is_valid(x) ? cot__dtype_at(&x.tape->nodes[cot__index(x)]) : COT_F64; }
cot_shape cot_shape_of(cot_var x) { return cot_is_valid(x) ? cot__shape_at(x.tape, cot__index(x)) : (cot_shape){0}; }
int64_t   cot_size(cot_var x) { return cot_is_valid(x) ? cot__size_at(x.tape, cot__index(x)) : 0; }
bool      cot_requires_grad(cot_var x) { return cot_is_valid(x) && (x.tape->nodes[cot__index(x)].flags & COT__ACTIVE); }

const char *cot_dtype_name(cot_dtype dtype) { return (unsigned)dtype < COT_DTYPE_COUNT ? cot__dtype_name(dtype) : "?"; }

cot_status cot__read_view(cot_tape *t, const char *op, const cot__view *v, cot_dtype dtype, void *out, int64_t n) {
    int64_t size = cot__count(v->ndim, v->shape), stride[COT_MAX_NDIM];
    if (n != size) {
        char text[COT__SHAPE_TEXT];
        cot__fail(t, COT_SHAPE, "[%s] room for %lld element%s, but shape %s has %lld", op, (long long)n,
                  n == 1 ? "" : "s", cot__shape_text(v->ndim, v->shape, text), (long long)size);
        return t->status;
    }
    if (n > 0 && !out) {
        cot__fail(t, COT_VALUE, "[%s] the place for %lld element%s is NULL", op, (long long)n, n == 1 ? "" : "s");
        return t->status;
    }
    cot__strides(v->ndim, v->shape, stride);
    cot__view to = {out, dtype, v->ndim, v->shape, stride};
    if (n > 0) t->backend->copy_out(&to, v);
    return t->status;
}

static cot_status read_as(const char *op, cot_var x, cot_dtype dtype, void *out, int64_t n) {
    uint32_t  i;
    cot_tape *t = readable(x, op, &i);
    if (!t) return cot__status_of(1, &x);
    if ((unsigned)dtype >= COT_DTYPE_COUNT) {
        cot__fail(t, COT_DTYPE, "[%s] %d is not a dtype", op, (int)dtype);
        return t->status;
    }
    cot__view v = cot__look(t, i);
    return cot__read_view(t, op, &v, dtype, out, n);
}

cot_status cot_read_as(cot_var x, cot_dtype dtype, void *out, int64_t n) {
    return read_as("read_as", x, dtype, out, n);
}
cot_status cot_read(cot_var x, double *out, int64_t n) { return read_as("read", x, COT_F64, out, n); }
