/* recipe.h: arrays that are not written: how to make any of their elements from smaller arrays.
 *
 * A recipe is a few elementwise steps over leaves: arrays, mostly small, that are repeated along
 * axes (stride 0) to one common shape. Element i of the result depends on element i of the leaves
 * alone, so any range can be made by itself, with the same bits. Work that waits on a tape has
 * recipes (pending/patient.c), and so have programs (the operation fold_made). */
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

/* Recipes are begun with dtype, ndim, shape and data, get leaves and steps, and are closed. A leaf
 * or step that is there already is used again. They return what a step calls it by, or
 * COT__RECIPE_NONE: there is no room. */
int cot__recipe_leaf(cot__recipe *r, const void *data, uint64_t number, const int64_t *stride);
int cot__recipe_step(cot__recipe *r, int op, const int8_t arg[3]);
/* False: it is none, since it does not begin with a product. */
bool cot__recipe_close(cot__recipe *r);

/* May the elementwise operation be a step? Additions and the like: what takes longer is better done
 * once. */
bool cot__recipe_may_hold(int op);
/* Is an array of so many bytes, made from arrays of so many, better made again than written? */
bool cot__recipe_pays(size_t made, size_t read);
/* A product of fewer bytes is written, and so is one of fewer times the bytes it is made from.
 * Variables only for the tests. */
extern size_t cot__product_from, cot__product_times;

#endif
