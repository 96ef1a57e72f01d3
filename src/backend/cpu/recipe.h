/* recipe.h: arrays that are not written: how to make any of their elements from smaller arrays.
 *
 * A recipe is a few elementwise steps over leaves: arrays, mostly small, that are repeated along axes (stride 0) to one common shape. Element i of
 * what it makes depends on element i of the leaves alone, so any range can be made by itself, with the same bits. */
#ifndef COT_RECIPE_H
#define COT_RECIPE_H

#include "base/base.h"

enum { COT__RECIPE_AXES = 6, COT__RECIPE_LEAVES = 6, COT__RECIPE_STEPS = 6, COT__RECIPE_NONE = ~COT__RECIPE_LEAVES };

typedef void cot__step_fn(int n, const void *x, const void *y, const void *w, void *z);

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
} cot__recipe;

/* The same with as few axes as possible, which is what the functions below are fast on. */
cot__recipe cot__recipe_merged(const cot__recipe *r);
/* Elements first … first + n - 1; n <= COT__BLOCK. */
void cot__recipe_load(const cot__recipe *r, int64_t first, int n, void *to);
/* All elements, to r->data, on the pool's threads. */
void cot__recipe_write(const cot__recipe *r);

/* Leaves of sums (see reduce_template.h), COT__BLOCK elements each, as many as `count` from element `first` on, where a faster way than adding up what
 * cot__recipe_load makes is known: how many, perhaps none. */
int cot__recipe_sums_f64(const cot__recipe *r, int64_t first, int count, double *sums);
int cot__recipe_sums_f32(const cot__recipe *r, int64_t first, int count, float *sums);
/* One such leaf: of f·y[0] … f·y[COT__BLOCK - 1], or of their squares. */
typedef double cot__leaf_f64(double f, const double *y);
typedef float  cot__leaf_f32(float f, const float *y);
cot__leaf_f64 *cot__leaf_sum_f64(bool squared);
cot__leaf_f32 *cot__leaf_sum_f32(bool squared);

#endif
