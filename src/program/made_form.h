/* made_form.h: what the reduction of an array that is not written (the operation fold_made) is as
 * an operation: its operands are the leaves of a recipe (backend/recipe.h), and its attributes tell
 * the rest of it. */
#ifndef COT_PROGRAM_MADE_FORM_H
#define COT_PROGRAM_MADE_FORM_H

#include "backend/backend.h"

typedef struct cot__made_form {
    cot__reduction what;
    int64_t        mask, keep; /* the axes that go, of the shape in which the array is reduced */
    cot_shape      reduced, made; /* that shape, and the one in which the leaves are */
    int            numbers, steps;
    const int64_t *number, *step; /* bits of leaves behind the operands; four words for each step */
} cot__made_form;

/* The attributes, of which there are at most so many. Leaves of the recipe with data are operands,
 * in their order; the others are numbers, and stand behind all of them. Returns their count. */
enum { COT__MADE_INTS = 6 + COT_MAX_NDIM + COT__RECIPE_AXES + COT__RECIPE_LEAVES + 4 * COT__RECIPE_STEPS };
int cot__made_ints(const cot__made_form *f, const cot__recipe *r, int64_t ints[COT__MADE_INTS]);

/* Takes attributes apart, which may hold anything. False: they are none of such an operation. What
 * the steps mean is not looked at. */
bool cot__made_form_of(const cot__attr *a, cot__made_form *f);

#endif
