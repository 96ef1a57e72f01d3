/* strip.h: shared by the CPU kernels: converting one strided run of elements, and walking over
 * axes.
 *
 * A strip is n >= 1 elements a fixed stride apart. A walk enumerates the indices of a shape in
 * row-major order and keeps one element offset for each operand. It is plain state, so no kernel
 * recurses over axes. */
#ifndef COT_STRIP_H
#define COT_STRIP_H

#include "backend/cpu/kernels.h"

#include <stdlib.h>

/* dst[i * ds] = convert(src[i * ss]) for i < n; n >= 1; strides in elements. */
typedef void cot__strip_fn(void *dst, int64_t ds, const void *src, int64_t ss, int64_t n);
cot__strip_fn *cot__strip(cot_dtype to, cot_dtype from);

/* dst[i * ds] += src[i * ss], added in dst's compute type; places that repeat (ds == 0) add up in
 * order. */
void cot__strip_add(void *dst, cot_dtype to, int64_t ds, const void *src, cot_dtype from, int64_t ss, int64_t n);

static inline void *cot__at(const cot__view *v, int64_t offset) {
    return (char *)v->data + offset * cot__dtype_size(v->dtype);
}

enum { COT__WALK_MAX = 3 };

typedef struct cot__walk {
    int     ndim, operands;
    int64_t shape[COT_MAX_NDIM], index[COT_MAX_NDIM];
    int64_t stride[COT__WALK_MAX][COT_MAX_NDIM];
    int64_t offset[COT__WALK_MAX];
} cot__walk;

static inline void cot__walk_start(cot__walk *w, int operands) {
    w->ndim     = 0;
    w->operands = operands;
    for (int o = 0; o < operands; o++) w->offset[o] = 0;
}

/* Appends an axis inside the others. Axes of extent 1 are dropped and an axis that continues the
 * previous one in every operand is merged into it, which changes neither the order of the walk nor
 * the offsets it meets. */
static inline void cot__walk_axis(cot__walk *w, int64_t extent, int64_t s0, int64_t s1, int64_t s2) {
    if (extent == 1) return;
    const int64_t s[COT__WALK_MAX] = {s0, s1, s2};
    bool          merge            = w->ndim > 0;
    for (int o = 0; merge && o < w->operands; o++) merge = w->stride[o][w->ndim - 1] == s[o] * extent;
    int i = merge ? w->ndim - 1 : w->ndim++;
    w->shape[i] = merge ? w->shape[i] * extent : extent;
    w->index[i] = 0;
    for (int o = 0; o < w->operands; o++) w->stride[o][i] = s[o];
}

static inline int64_t cot__walk_count(const cot__walk *w) { return cot__count(w->ndim, w->shape); }

/* To the next index; false, back at the start, after the last. */
static inline bool cot__walk_next(cot__walk *w) {
    for (int i = w->ndim - 1; i >= 0; i--) {
        for (int o = 0; o < w->operands; o++) w->offset[o] += w->stride[o][i];
        if (++w->index[i] < w->shape[i]) return true;
        for (int o = 0; o < w->operands; o++) w->offset[o] -= w->stride[o][i] * w->shape[i];
        w->index[i] = 0;
    }
    return false;
}

/* To the index of that number. */
static inline void cot__walk_seek(cot__walk *w, int64_t at) {
    for (int i = w->ndim - 1; i >= 0; i--) {
        w->index[i] = at % w->shape[i];
        for (int o = 0; o < w->operands; o++) w->offset[o] += w->index[i] * w->stride[o][i];
        at /= w->shape[i];
    }
}

/* Orders the axes so that the strides of operand `o` fall from the outside in. Only for walks whose
 * order is free. */
static inline void cot__walk_swap(cot__walk *w, int i, int j) {
    int64_t t = w->shape[i];
    w->shape[i] = w->shape[j];
    w->shape[j] = t;
    for (int o = 0; o < w->operands; o++) {
        t               = w->stride[o][i];
        w->stride[o][i] = w->stride[o][j];
        w->stride[o][j] = t;
    }
}

static inline void cot__walk_sort(cot__walk *w, int o) {
    for (int i = 1; i < w->ndim; i++)
        for (int j = i; j > 0 && llabs(w->stride[o][j - 1]) < llabs(w->stride[o][j]); j--) cot__walk_swap(w, j - 1, j);
}

/* Merges axes that have become adjacent. */
static inline void cot__walk_merge(cot__walk *w) {
    int n   = w->ndim;
    w->ndim = 0;
    for (int i = 0; i < n; i++)
        cot__walk_axis(w, w->shape[i], w->stride[0][i], w->operands > 1 ? w->stride[1][i] : 0,
                       w->operands > 2 ? w->stride[2][i] : 0);
}

/* Takes the innermost axis out of the walk. Its extent (1 if there is none) and strides become the
 * caller's loop. */
static inline int64_t cot__walk_pop(cot__walk *w, int64_t *stride) {
    int i = w->ndim - 1;
    for (int o = 0; o < w->operands; o++) stride[o] = i >= 0 ? w->stride[o][i] : 0;
    if (i < 0) return 1;
    w->ndim = i;
    return w->shape[i];
}

#endif
