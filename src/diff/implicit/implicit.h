/* implicit.h: values that are given by an equation: linear systems without a matrix, roots.
 *
 * May call: base, rules, backend, tape, ops, the engine, functions, loops. Must not touch: slots
 * and adjoints. */
#ifndef COT_IMPLICIT_H
#define COT_IMPLICIT_H

#include "diff/engine/sweep.h"
#include "tape/region.h"

typedef struct cot__linsolve {
    const char        *name;
    /* what the solution is to something that solves an equation; NULL: a solution */
    const char        *wanted;
    const cot__region *a; /* one input, one result, shaped alike */
    cot_solve_options  options;
    /* that a is linear: by how it was made, or by a look at the first solution */
    bool               proven;
} cot__linsolve;

/* cot_linear_solve under the name of what needs it, and for what it does: "the derivative of the
 * solution", say. Then A is ∂F/∂x. */
cot_var cot__linear_solve(const char *name, const char *wanted, cot_fn a, void *user, cot_var b,
                          const cot_solve_options *options);

/* Are they options? Otherwise sets the error. */
bool cot__solve_options_fit(cot_tape *t, const char *name, const cot_solve_options *options);
/* The tolerance asked for, or what is usual for a dtype: 16 bits are good for little. */
/* About ∛eps: what is off by more than that part of its terms has been solved for nothing. */
static inline double cot__third_of_digits(cot_dtype dtype) {
    return dtype == COT_F64 ? 0x1p-17 : dtype == COT_F32 ? 0x1p-8 : dtype == COT_F16 ? 0x1p-3 : 0x1p-2;
}
double cot__solve_tolerance(const cot_solve_options *options, cot_dtype dtype, double for_f64, double for_f32);

/* ---- x with F(x, θ) = 0 ---- */

typedef struct cot__root {
    const char        *name;
    /* inputs x, θ; a result like x, and for a minimum the value whose gradient that is */
    const cot__region *f;
    bool               least; /* a minimum is asked for */
    cot_solver         solver;
    void              *user;
    cot_solve_options  options;
} cot__root;

/* x0, θ, captures: the places of the player. */
static inline int cot__root_operands(const cot__root *q) { return q->f->n + q->f->captures; }
/* F at operands, and, unless NULL, the value whose gradient it is. */
cot_var cot__root_play(cot_tape *t, const cot__root *q, const cot_var *values, cot_var *value);

/* A linear system with ∂F/∂x: its iterations, and more where more steps were asked for; its
 * tolerance is its own. */
static inline cot_solve_options cot__root_linear(const cot__root *q) {
    return (cot_solve_options){.iterations = q->options.iterations > 1000 ? q->options.iterations : 0};
}

/* F near a point, as a linear function (a cot_fn): v -> ∂F/∂x v. */
typedef struct cot__near { cot_tape *t; const cot__root *q; cot_var x; const cot_var *values; } cot__near;
int cot__root_forth(int n, const cot_var *xs, int m, cot_var *ys, void *near);

/* x, which is where to start, becomes what solves F for the operands args. Sets the error
 * otherwise. */
bool cot__root_find(cot_tape *t, const cot__root *q, const uint32_t *args, cot_array *x);

#endif
