/* pool.h: windows over planes: the largest element of each, its mean, and the transposes of both.
 *
 * Arrays are contiguous, `planes` times three spatial axes (leading ones may be 1). Every window
 * holds at least one element. */
#ifndef COT_POOL_H
#define COT_POOL_H

#include "backend/cpu/kernels.h"

typedef struct cot__pool {
    int64_t planes;
    /* before: padding on either side, which holds no elements */
    int64_t x[3], z[3], window[3], stride[3], before[3];
} cot__pool;

/* Of dtype F64, F32 or any integers: z[q] = the largest element of window q (a NaN counts as
 * larger), index[q] = which one, the first of equals, counted row-major over the whole window. */
void cot__max_pool(const cot__pool *g, cot_dtype dtype, const void *x, void *z, int32_t *index);
/* z[q] = the element of window q that index[q] names; elements of any `size`. */
void cot__pool_take(const cot__pool *g, int size, const void *x, const int32_t *index, void *z);
/* Its transpose, F64 or F32: x = 0, then the named element += z[q]. */
void cot__pool_put(const cot__pool *g, cot_dtype dtype, const void *z, const int32_t *index, void *x);
/* F64 or F32. z[q] = Σ window q / count, where count is the window's size with its padding, or only
 * the elements it has; and the transpose. */
void cot__avg_pool(const cot__pool *g, cot_dtype dtype, bool exclude, const void *x, void *z);
void cot__avg_unpool(const cot__pool *g, cot_dtype dtype, bool exclude, const void *z, void *x);

#endif
