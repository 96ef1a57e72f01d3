/* split.h: shares a kernel out to threads by cutting its operands along one axis.
 *
 * A kernel whose results along an axis do not depend on each other runs on sub-views. The cuts
 * depend on shapes only. */
#ifndef COT_SPLIT_H
#define COT_SPLIT_H

#include "base/parallel.h"

enum { COT__MOST_PARTS = 64 };

/* The axis to cut: the outermost of those allowed (a bit mask) with enough extent for all, else the
 * longest; -1 for none. */
static inline int cot__split_axis(int ndim, const int64_t *shape, uint32_t allowed) {
    int best = -1;
    for (int i = 0; i < ndim; i++) {
        if (!(allowed >> i & 1) || shape[i] < 2) continue;
        if (shape[i] >= 16) return i;
        if (best < 0 || shape[i] > shape[best]) best = i;
    }
    return best;
}

/* v between start and stop of one axis; `shape` is room for COT_MAX_NDIM extents. */
static inline cot__view cot__split_view(const cot__view *v, int axis, int64_t start, int64_t stop, int64_t *shape) {
    cot__view z = *v;
    for (int i = 0; i < v->ndim; i++) shape[i] = v->shape[i];
    shape[axis] = stop - start;
    z.shape = shape;
    z.data = (char *)v->data + start * v->stride[axis] * cot__dtype_size(v->dtype);
    return z;
}

#endif
