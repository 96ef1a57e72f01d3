/* recipe.h: makes elements of arrays that are not written (backend/recipe.h), on the CPU. */
#ifndef COT_CPU_RECIPE_H
#define COT_CPU_RECIPE_H

#include "backend/cpu/elementwise/blocks.h"

/* Kernels of products, of the type of the recipe. A row is f·y[k] + 0; a product that is -0 becomes
 * 0, as in cot__gemm.
 *   row     to[k] = s (f·y[k] + 0), or that added to to[k]
 *   leaves  folds of COT__BLOCK elements each, of f[k] times the row at y[k], or of its squares */
typedef struct cot__row_kernels {
    void (*row)(const void *f, const void *y, const void *s, int n, void *to, bool add);
    void (*leaves)(const void *const *f, const void *const *y, int count, bool squared, void *sums);
} cot__row_kernels;
const cot__row_kernels *cot__row_kernels_of(cot_dtype dtype);

/* Prepares a recipe for the functions below: as few axes as possible, strides in bytes. `ready`
 * must not move. */
void cot__recipe_ready(const cot__recipe *r, cot__recipe *ready);
/* Makes elements first … first + n - 1; n <= COT__BLOCK, or any n if there is one step. */
void cot__recipe_load(const cot__recipe *r, int64_t first, int n, void *to);
/* Writes all elements to r->data, on the pool's threads. r need not be prepared. */
void cot__recipe_write(const cot__recipe *r);

/* Sums of products, of their squares and of their multiples, where a faster way is known than
 * adding up what cot__recipe_load makes.
 *   sums  leaves of sums (see reduce_template.h), COT__BLOCK elements each, `count` of them from
 *         element `first` on, COT__RECIPE_SUMS at most; returns how many were done, perhaps none
 *   add   sums[k] = element first + k, or that added to sums[k], k < n; false: not done */
enum { COT__RECIPE_SUMS = 64 };
int  cot__recipe_sums(const cot__recipe *r, int64_t first, int count, void *sums);
bool cot__recipe_add(const cot__recipe *r, int64_t first, int n, void *sums, bool add);

#endif
