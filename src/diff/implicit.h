/* implicit.h: values that are given by an equation: linear systems without a matrix, roots. */
#ifndef COT_IMPLICIT_H
#define COT_IMPLICIT_H

#include "diff/sweep.h"
#include "tape/region.h"

typedef struct cot__linsolve {
    const char        *name;
    const cot__region *a; /* one input, one result, shaped alike */
    cot_solve_options  options;
    bool               proven; /* that a is linear: by how it was made, or by a look at the first solution */
} cot__linsolve;

/* cot_linear_solve under the name of what needs it. */
cot_var cot__linear_solve(const char *name, cot_fn a, void *user, cot_var b, const cot_solve_options *options);

/* The tolerance asked for, or what is usual for a dtype: 16 bits are good for little. */
double cot__solve_tolerance(const cot_solve_options *options, cot_dtype dtype, double for_f64, double for_f32);

#endif
