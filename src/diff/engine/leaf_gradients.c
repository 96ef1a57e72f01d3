/* leaf_gradients.c: gradients that values keep, leaves always and others on request: adding what a
 * sweep brought, reading, zeroing. */
#include "rules/elementwise_ids.h"
#include "backend/elements.h"
#include "diff/engine/sweep.h"
#include "ops/structural.h"

#include <string.h>

/* ---- after a sweep --------------------------------------------------------------------------- */

/* Most programs retain values in the order in which they record them: look there first. */
static cot__retained *retained_of(cot_tape *t, uint32_t node) {
    uint32_t lo = 0, hi = t->retained.count;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (t->retained.list[mid].node < node)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < t->retained.count && t->retained.list[lo].node == node) return &t->retained.list[lo];
    for (uint32_t i = t->retained.count; i-- > 0;)
        if (t->retained.list[i].node == node) return &t->retained.list[i];
    return NULL;
}

bool cot__own_arrivals(cot__sweep *s) {
    cot_tape *t = s->t;
    for (uint32_t i = 0; i < s->arrival_count; i++) {
        cot__arrival *a = &s->arrivals[i];
        if (!a->tensor.storage) continue;
        cot__view v = cot__look(t, a->node);
        size_t    bytes = (size_t)(cot__count(v.ndim, v.shape) * cot__dtype_size(v.dtype));
        if (a->tensor.storage->refs == 1 && !a->tensor.storage->borrowed &&
            cot__is_contiguous(v.ndim, v.shape, a->tensor.stride) && a->tensor.storage->bytes == bytes)
            continue;
        cot__storage *fresh = cot__storage_create_aside(t, bytes, "backward");
        if (!fresh) return false;
        int64_t stride[COT_MAX_NDIM];
        cot__strides(v.ndim, v.shape, stride);
        cot__view to = {fresh->data, v.dtype, v.ndim, v.shape, stride};
        cot__view from = {(char *)a->tensor.storage->data + a->tensor.offset * cot__dtype_size(v.dtype), v.dtype,
                          v.ndim, v.shape, a->tensor.stride};
        t->backend->copy(&to, &from);
        if (a->tensor.gradient) a->tensor.storage->gradients--;
        a->tensor.gradient = false;
        cot__storage_release(t, a->tensor.storage);
        a->tensor.storage = fresh;
        a->tensor.offset = 0;
        memcpy(a->tensor.stride, stride, sizeof stride);
    }
    return true;
}

/* grad += what arrived; the first time, what arrived becomes the gradient. */
static void commit_tensor(cot_tape *t, cot__arrival *a, cot__storage **grad) {
    if (!*grad) {
        *grad = a->tensor.storage;
        (*grad)->gradients = 0;
        a->tensor.storage = NULL;
        return;
    }
    cot__view v = cot__look(t, a->node);
    cot__view to = {(*grad)->data, v.dtype, v.ndim, v.shape, a->tensor.stride}, pair[2] = {to, to};
    pair[1].data = a->tensor.storage->data;
    cot__run_value(t->backend, OP_add, cot__dtype_compute(v.dtype), 2, pair, &to);
}

/* grad += adjoint, in the node's dtype. */
static void commit_scalar(cot__node *n, double adjoint, double *grad) {
    cot__value v;
    n->flags |= COT__HAS_GRAD;
    *grad += adjoint;
    if (LIKELY(n->kind == COT_F64)) return;
    cot__store_f64(&v, cot__dtype_at(n), *grad);
    *grad = cot__load_f64(&v, cot__dtype_at(n));
}

void cot__commit_arrivals(cot__sweep *s) {
    cot_tape *t = s->t;
    for (int64_t i = 0, end; i < t->sweep.arrived_count; cot__lists_leave(t)) {
        end = i + cot__window(t) < t->sweep.arrived_count ? i + cot__window(t) : t->sweep.arrived_count;
        for (; i < end; i++) {
            uint32_t   leaf = t->sweep.arrived[i];
            cot__node *n = &t->nodes[leaf];
            commit_scalar(n, n->kind == COT_F64 ? *cot__slot_f64(t, leaf) : cot__slot_get(t, leaf), &n->extra.number);
            *cot__slot(t, leaf) = 0;
        }
    }
    for (uint32_t i = 0; i < s->arrival_count; i++) {
        cot__arrival  *a = &s->arrivals[i];
        cot__node     *n = &t->nodes[a->node];
        cot__retained *kept = n->op == OP_leaf ? NULL : retained_of(t, a->node);
        n->flags |= COT__HAS_GRAD;
        if (cot__is_tensor(n))
            commit_tensor(t, a, kept ? &kept->tensor : &n->extra.grad);
        else
            commit_scalar(n, a->scalar, kept ? &kept->scalar : &n->extra.number);
    }
}

/* ---- gradients of leaves --------------------------------------------------------------------- */

/* Where the gradient of x is kept; NULL after a failure. */
static bool find_gradient(cot_var x, const char *op, cot_tape **t, uint32_t *i, double **scalar,
                          cot__storage ***tensor) {
    if (!cot_is_valid(x)) {
        if (x.tape && !cot__is_number(x)) cot__operand(x.tape, x, op, "", i);
        return false;
    }
    *t = x.tape;
    *i = cot__index(x);
    cot__node *n = &x.tape->nodes[*i];
    char       text[160];
    if (n->op == OP_leaf) {
        *scalar = &n->extra.number;
        *tensor = &n->extra.grad;
        return true;
    }
    cot__retained *kept = retained_of(x.tape, *i);
    if (!kept) {
        cot__fail(x.tape, COT_GRAD,
                  "[%s] %s keeps no gradient; only leaves do, and values marked with cot_retain_grad before backward",
                  op, cot__describe(x.tape, *i, text, sizeof text));
        return false;
    }
    *scalar = &kept->scalar;
    *tensor = &kept->tensor;
    return true;
}

double cot_grad_value(cot_var x) {
    cot_tape      *t;
    uint32_t       i;
    double        *scalar;
    cot__storage **tensor;
    if (!find_gradient(x, "grad_value", &t, &i, &scalar, &tensor)) return (double)NAN;
    if (!cot__is_tensor(&t->nodes[i])) return *scalar;
    if (cot__size_at(t, i) == 1) {
        cot__view one = {*tensor ? (*tensor)->data : NULL, cot__dtype_at(&t->nodes[i]), 0, NULL, NULL};
        return *tensor ? cot__element_f64(t->backend, &one, 0) : 0;
    }
    cot__fail(t, COT_SHAPE, "[grad_value] the gradient has %lld elements; use cot_read_grad",
              (long long)cot__size_at(t, i));
    return (double)NAN;
}

cot_status cot_read_grad(cot_var x, double *out, int64_t n) {
    cot_tape      *t;
    uint32_t       i;
    double        *scalar;
    cot__storage **tensor;
    if (!find_gradient(x, "read_grad", &t, &i, &scalar, &tensor)) return cot__status_of(1, &x);
    cot__view v = cot__look(t, i);
    int64_t   stride[COT_MAX_NDIM] = {0};
    if (!cot__is_tensor(&t->nodes[i])) {
        v.dtype = COT_F64;
        v.data = scalar;
    } else if (*tensor) {
        cot__strides(v.ndim, v.shape, stride);
        v.data = (*tensor)->data;
        v.stride = stride;
    }
    cot_status status = cot__read_view(t, "read_grad", &v, COT_F64, out, n);
    /* none yet: zeros */
    if (status == COT_OK && n && cot__is_tensor(&t->nodes[i]) && !*tensor) memset(out, 0, (size_t)n * sizeof *out);
    return status;
}

cot_var cot_grad(cot_var x) {
    cot_tape      *t;
    uint32_t       i;
    double        *scalar;
    cot__storage **tensor;
    if (!find_gradient(x, "grad", &t, &i, &scalar, &tensor)) return INVALID(cot__is_number(x) ? NULL : x.tape);
    cot_shape shape = cot__shape_at(t, i);
    cot_dtype dtype = cot__dtype_at(&t->nodes[i]);
    if (!cot__is_tensor(&t->nodes[i])) return cot_full(t, dtype, shape, *scalar);
    cot__result r;
    if (!cot__constant_open(t, &r, "data", dtype, &shape)) return INVALID(t);
    cot__view from = r.view;
    from.data = *tensor ? (*tensor)->data : NULL;
    if (*tensor) t->backend->copy(&r.view, &from);
    else t->backend->fill(&r.view, 0);
    return cot__constant_push(t, &r);
}

void cot_zero_grad(cot_var x) {
    cot_tape      *t;
    uint32_t       i;
    double        *scalar;
    cot__storage **tensor;
    if (!find_gradient(x, "zero_grad", &t, &i, &scalar, &tensor)) return;
    if (cot__is_tensor(&t->nodes[i])) {
        cot__storage_release(t, *tensor);
        *tensor = NULL;
    } else
        *scalar = 0;
    t->nodes[i].flags &= (uint8_t)~COT__HAS_GRAD;
}

void cot_tape_zero_grads(cot_tape *t) {
    if (!t) return;
    uint32_t last = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        cot__windows_up(t, i, t->count, &last);
        const cot__node *n = &t->nodes[i];
        if (n->flags & COT__HAS_GRAD && (n->op == OP_leaf || n->flags & COT__RETAIN)) cot_zero_grad(VAR(t, i));
    }
}

cot_var cot_retain_grad(cot_var x) {
    uint32_t i;
    if (cot__is_number(x) || !x.tape) return INVALID(NULL);
    cot_tape *t = x.tape;
    if (!cot__check_inputs(t, "retain_grad", 1, &x, &i)) return INVALID(t);
    if (t->nodes[i].op == OP_leaf || (t->nodes[i].flags & COT__RETAIN)) return x;
    void *list = t->retained.list;
    if (!cot__grow(t, &list, &t->retained.capacity, t->retained.count, sizeof *t->retained.list, "retain_grad"))
        return INVALID(t);
    t->retained.list = list;
    t->retained.list[t->retained.count++] = (cot__retained){.node = i};
    t->nodes[i].flags &= (uint8_t)~COT__REPEATS; /* the same bit says from now on that it has one */
    t->nodes[i].flags |= COT__RETAIN;
    return x;
}
