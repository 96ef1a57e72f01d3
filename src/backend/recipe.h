/* recipe.h: arrays that are not written: how to make any of their elements from smaller arrays.
 *
 * A recipe is a few elementwise steps over leaves: arrays, mostly small, that are repeated along
 * axes (stride 0) to one common shape. Element i of the result depends on element i of the leaves
 * alone, so any range can be made by itself, with the same bits. */
#ifndef COT_RECIPE_H
#define COT_RECIPE_H

#include "backend/runs.h"

enum { COT__RECIPE_AXES = 6, COT__RECIPE_LEAVES = 6, COT__RECIPE_STEPS = 6, COT__RECIPE_NONE = ~COT__RECIPE_LEAVES };

/* in place of an operation: x·y + 0, the product of depth 1, of two leaves */
enum { COT__RECIPE_PRODUCT = -1 };

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
        int               op;     /* or COT__RECIPE_PRODUCT */
        int8_t            arg[3]; /* k >= 0: the result of step k; ~k: leaf k; COT__RECIPE_NONE */
        cot__value_kernel kernel; /* the CPU's note; NULL: a product */
    } step[COT__RECIPE_STEPS];
    bool squares; /* two steps: a product, and its square */
    /* two steps: a product, and its product with this leaf; -1: the recipe is not of this form */
    int  scale;
    /* the CPU's notes */
    int                            bytes; /* of an element */
    const struct cot__row_kernels *row;
} cot__recipe;

#endif
