/* implicit.h: values that an equation defines: linear systems without a matrix, roots, minima.
 *
 * May call: base, rules, backend, tape, ops, the engine, functions, loops. Must not touch: slots
 * and adjoints. */
#ifndef COT_IMPLICIT_H
#define COT_IMPLICIT_H

#include "diff/engine/sweep.h"
#include "tape/region.h"

typedef struct cot__linsolve {
    const char        *name;
    /* what the solution is for the caller, for messages ("the derivative of the solution"). NULL: a
     * solution */
    const char        *wanted;
    const cot__region *a; /* the linear function: one input and one result of the same shape */
    cot_solve_options  options;
    /* a is known to be linear: by the way it was made, or by a test at the first solution */
    bool               proven;
} cot__linsolve;

/* cot_linear_solve for an operation called `name` that needs it. `wanted` says what the solution is
 * for the caller, such as "the derivative of the solution"; A is then ∂F/∂x. */
cot_var cot__linear_solve(const char *name, const char *wanted, cot_fn a, void *user, cot_var b,
                          const cot_solve_options *options);

/* Are the options valid? Otherwise sets the error. */
bool cot__solve_options_fit(cot_tape *t, const char *name, const cot_solve_options *options);
/* About ∛eps. A residual that is a larger part of the terms of the equation means that the solution
 * is worth nothing. */
static inline double cot__third_of_digits(cot_dtype dtype) {
    return dtype == COT_F64 ? 0x1p-17 : dtype == COT_F32 ? 0x1p-8 : dtype == COT_F16 ? 0x1p-3 : 0x1p-2;
}
double cot__solve_tolerance(const cot_solve_options *options, cot_dtype dtype, double for_f64, double for_f32);

/* ---- x with F(x, θ) = 0 ---- */

typedef struct cot__root {
    const char        *name;
    /* inputs x and θ; a result like x, and for a minimum also the value of which it is the
     * gradient */
    const cot__region *f;
    bool               least; /* a minimum is asked for */
    cot_solver         solver;
    void              *user;
    cot_solve_options  options;
} cot__root;

/* The operands are x0, θ and captures, in the order in which the player takes them. */
static inline int cot__root_operands(const cot__root *q) { return q->f->n + q->f->captures; }
/* Plays F on operands. For a minimum `value`, unless NULL, receives the value whose gradient F
 * is. */
cot_var cot__root_play(cot_tape *t, const cot__root *q, const cot_var *values, cot_var *value);

/* Options for a linear system with ∂F/∂x: more iterations where more steps were asked for, and the
 * usual tolerance of linear_solve. */
static inline cot_solve_options cot__root_linear(const cot__root *q) {
    return (cot_solve_options){.iterations = q->options.iterations > 1000 ? q->options.iterations : 0};
}

/* The derivative of F at a point, as a linear function (a cot_fn): v -> ∂F/∂x v. */
typedef struct cot__near { cot_tape *t; const cot__root *q; cot_var x; const cot_var *values; } cot__near;
int cot__root_forth(int n, const cot_var *xs, int m, cot_var *ys, void *near);

/* x holds the start of the search and receives the solution of F for the operands args. Otherwise
 * sets the error. */
bool cot__root_find(cot_tape *t, const cot__root *q, const uint32_t *args, cot_array *x);

#endif
