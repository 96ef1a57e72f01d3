/* recipe.h: arrays that are not written: how to make any of their elements from smaller arrays.
 *
 * A recipe is a few elementwise steps over leaves: arrays, mostly small, that are repeated along
 * axes (stride 0) to one common shape. Element i of what it makes depends on element i of the
 * leaves alone, so any range can be made by itself, with the same bits. */
#ifndef COT_RECIPE_H
#define COT_RECIPE_H

#include "base/base.h"

enum { COT__RECIPE_AXES = 6, COT__RECIPE_LEAVES = 6, COT__RECIPE_STEPS = 6, COT__RECIPE_NONE = ~COT__RECIPE_LEAVES };

typedef void cot__step_fn(int n, const void *x, const void *y, const void *w, void *z);

/* Kernels of products, of the type of the recipe. A row is f·y[k] + 0; a product that is -0 becomes
 * 0, as in cot__gemm.
 *   row     to[k] = s (f·y[k] + 0), or that added to to[k]
 *   leaves  folds of COT__BLOCK elements each, or of their squares, one after the other */
typedef struct cot__row_kernels {
    void (*row)(const void *f, const void *y, const void *s, int n, void *to, bool add);
    void (*leaves)(const void *f, const void *y, int count, bool squared, void *sums);
} cot__row_kernels;
const cot__row_kernels *cot__row_kernels_of(cot_dtype dtype);

typedef struct cot__recipe {
    cot_dtype dtype; /* of everything: F64 or F32 */
    int       ndim, leaves, steps;
    int64_t   shape[COT__RECIPE_AXES];
    void     *data; /* where element 0 would be written; the others follow it without gaps */
    struct {
        const void *data; /* NULL: the number */
        uint64_t    number;
        int64_t     stride[COT__RECIPE_AXES];
    } leaf[COT__RECIPE_LEAVES];
    struct {
        cot__step_fn *kernel; /* NULL: x·y + 0, the product of depth 1, of two leaves */
        int8_t        arg[3]; /* k >= 0: what step k made; ~k: leaf k; COT__RECIPE_NONE */
    } step[COT__RECIPE_STEPS];
    bool squares; /* two steps: a product, and its square */
    int  scale;   /* two steps: a product, and its product with this leaf; -1: it is not that */
    int                     bytes; /* when it is ready: of an element */
    const cot__row_kernels *row;
} cot__recipe;

/* The same made ready for the functions below: as few axes as possible, strides in bytes. It must
 * not move. */
void cot__recipe_ready(const cot__recipe *r, cot__recipe *ready);
/* Elements first … first + n - 1; n <= COT__BLOCK, or any where there is one step. */
void cot__recipe_load(const cot__recipe *r, int64_t first, int n, void *to);
/* All elements, to r->data, on the pool's threads; r need not be ready. */
void cot__recipe_write(const cot__recipe *r);

/* Sums of products, of their squares and of their multiples, where a faster way is known than
 * adding up what cot__recipe_load makes.
 *   sums  leaves of sums (see reduce_template.h), COT__BLOCK elements each, `count` of them from
 *         element `first` on; returns how many were done, perhaps none
 *   add   sums[k] = element first + k, or that added to sums[k], k < n; false: not done */
int  cot__recipe_sums(const cot__recipe *r, int64_t first, int count, void *sums);
bool cot__recipe_add(const cot__recipe *r, int64_t first, int n, void *sums, bool add);

#endif
