/* pool.h: windows over planes: the largest element of each, its mean, and the transposes of both.
 * backend/backend.h says what each computes. */
#ifndef COT_POOL_H
#define COT_POOL_H

#include "backend/cpu/kernels.h"

void cot__max_pool(const cot__pool *g, cot_dtype dtype, const void *x, void *z, int32_t *index);
void cot__pool_take(const cot__pool *g, int size, const void *x, const int32_t *index, void *z);
void cot__pool_put(const cot__pool *g, cot_dtype dtype, const void *z, const int32_t *index, void *x);
void cot__avg_pool(const cot__pool *g, cot_dtype dtype, bool exclude, const void *x, void *z);
void cot__avg_unpool(const cot__pool *g, cot_dtype dtype, bool exclude, const void *z, void *x);

#endif
