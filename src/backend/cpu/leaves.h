/* leaves.h: the inner loops of sums and of products of two vectors, by instruction set. Each gives
 * the same bits: the lanes of a leaf are part of the definition. */
#ifndef COT_LEAVES_H
#define COT_LEAVES_H

#include "backend/cpu/kernels.h"

/* Leaves have COT__BLOCK terms, the last one 1 <= n <= COT__BLOCK. Elements lie side by side. */
typedef struct cot__leaves {
    void (*sums)(const void *x, int64_t count, void *sums);
    void (*sum)(const void *x, int n, void *sum);
    void (*dots)(const void *x, const void *y, int64_t count, void *sums);
    void (*dot)(const void *x, const void *y, int n, void *sum);
    void (*add)(void *a, const void *b, int n); /* a[i] += b[i] */
    /* A leaf of each of w columns: n rows, `rs` elements apart. False: w is too small. */
    bool (*columns)(const void *x, int64_t rs, int n, int w, void *sums);
} cot__leaves;

const cot__leaves *cot__leaves_of(cot_dtype d); /* f64 or f32 */

#endif
