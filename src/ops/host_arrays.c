/* host_arrays.c: see host_arrays.h. */
#include "ops/host_arrays.h"

#include "backend/elements.h"

#include <string.h>

static size_t bytes_of(const cot_array *x) { return (size_t)x->size * (size_t)cot__dtype_size(x->dtype); }
static size_t list_bytes(int n) { return ((size_t)n + 1) * (sizeof(cot_array) + sizeof(void *)); }

static bool no_memory(const cot__job *j, int n) {
    return cot__refuse(j->caller, COT_MEMORY, "out of memory: arrays of %d operands", n);
}

bool cot__host_arrays_open(cot__host_arrays *h, const cot__job *j, int n, const cot_allocator *al) {
    *h = (cot__host_arrays){.al = *al, .n = n};
    h->x = cot__alloc(al, list_bytes(n));
    if (!h->x) return no_memory(j, n);
    memset(h->x, 0, list_bytes(n));
    h->copy = (void **)(void *)(h->x + n + 1);
    return true;
}

void cot__host_arrays_close(cot__host_arrays *h) {
    for (int k = 0; h->x && k < h->n; k++)
        if (h->copy[k]) cot__free(&h->al, h->copy[k], bytes_of(&h->x[k]));
    if (h->x) cot__free(&h->al, h->x, list_bytes(h->n));
}

void cot__host_array_described(cot__host_arrays *h, int k, const cot__view *v) {
    h->x[k] = (cot_array){.dtype = v->dtype, .shape = {.ndim = v->ndim}, .size = cot__view_size(v)};
    for (int i = 0; i < v->ndim; i++) h->x[k].shape.dim[i] = v->shape[i];
}

bool cot__host_array_apart(cot__host_arrays *h, const cot__job *j, int k, const cot__view *v) {
    cot__host_array_described(h, k, v);
    h->copy[k] = cot__alloc(&h->al, bytes_of(&h->x[k]));
    return h->copy[k] || no_memory(j, h->n);
}

bool cot__host_array_like(cot__host_arrays *h, const cot__job *j, int k, const cot__view *v) {
    bool dense = cot__on_host(j->backend) && cot__is_contiguous(v->ndim, v->shape, v->stride);
    if (!dense) return cot__host_array_apart(h, j, k, v);
    cot__host_array_described(h, k, v);
    return true;
}

/* The copy as a view. */
static cot__view host_view(const cot__host_arrays *h, int k, const cot__view *v, int64_t *stride) {
    cot__strides(v->ndim, v->shape, stride);
    return (cot__view){h->copy[k], v->dtype, v->ndim, v->shape, stride};
}

void cot__host_array_see(cot__host_arrays *h, const cot__job *j, int k, const cot__view *v) {
    int64_t   stride[COT_MAX_NDIM];
    cot__view host = host_view(h, k, v, stride);
    h->x[k].data = h->copy[k] ? h->copy[k] : v->data;
    if (h->copy[k]) j->backend->copy_out(&host, v);
}

void cot__host_array_clear(cot__host_arrays *h, int k, const cot__view *v) {
    h->x[k].data = h->copy[k] ? h->copy[k] : v->data;
    if (h->x[k].size) memset(h->x[k].data, 0, bytes_of(&h->x[k]));
}

void cot__host_array_give(const cot__host_arrays *h, const cot__job *j, int k, const cot__view *v) {
    int64_t   stride[COT_MAX_NDIM];
    cot__view host = host_view(h, k, v, stride);
    if (h->copy[k]) j->backend->copy_in(v, &host);
}
