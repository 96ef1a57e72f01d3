/* cotangent_transform.h: functions of functions: derivatives of C functions, batches, loops, conditions, checkpoints.
 *
 * Each takes a C function on vars, runs or records it on the tape of its inputs, and gives vars on that tape: so they compose, and
 * are differentiated like anything else. */
#ifndef COTANGENT_TRANSFORM_H
#define COTANGENT_TRANSFORM_H

#ifndef COTANGENT_H
#include <cotangent.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Reads n inputs, writes m outputs. Returns 0; anything else is failure (COT_CUSTOM). */
typedef int (*cot_fn)(int n, const cot_var *xs, int m, cot_var *ys, void *user);

/* ==== Derivatives of functions =================================================================================== */

/* Each runs f once, on the tape of its inputs, and records derivatives with respect to exactly these inputs, constants too (integers have none: invalid). What comes
 * out can be differentiated again, batched and looped over: nest them as you like. Seeds and tangents have the shape of what they belong
 * to, or are numbers that stand for every element. */

/* y = f(xs), one float, and its gradient. y may be NULL. */
COT_API cot_status cot_value_and_grad(cot_fn f, void *user, int n, const cot_var *xs, cot_var *y, cot_var *grads);
/* ys = f(xs) and Σ <seeds[k], ∂ys[k]/∂x>. */
COT_API cot_status cot_fn_vjp(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys, const cot_var *seeds, cot_var *grads);
/* ys = f(xs) and how they move when the xs move by the tangents; COT_NONE: that input does not. */
COT_API cot_status cot_fn_jvp(cot_fn f, void *user, int n, const cot_var *xs, const cot_var *tangents, int m, cot_var *ys, cot_var *dys);

/* ys = f(xs), recorded once, and its derivative at xs as a thing to multiply with as often as wanted. It belongs to the tape, and is forgotten by a
 * rewind to before it: do not use it after that. */
typedef struct cot_linear cot_linear;
COT_API cot_status cot_linearize(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys, cot_linear **linear);
COT_API cot_status cot_linear_jvp(cot_linear *linear, const cot_var *tangents, cot_var *dys);
COT_API cot_status cot_linear_vjp(cot_linear *linear, const cot_var *seeds, cot_var *grads);

/* x, with no gradient through it: cot_detach under the name that people of JAX know. */
COT_API cot_var cot_stop_gradient(cot_var x);

/* ==== Loops and conditions ======================================================================================= */

/* Control flow as one operation on the tape. A body is a cot_fn that is recorded once, on the first values, and then played for every step; it may use any
 * value from outside, which gets its gradient too. While it is recorded it has no values: reading one is an error, choose with
 * cot_where or cot_cond. Nothing of its inside can be used outside but its results. All are differentiable in forward and reverse mode, to every order, and nest.
 * Carried values keep their shape and dtype; results that are integers hold up to 2^53.
 *
 * Reverse mode needs the state before each step. cot_backward keeps at most `states` of them (besides the first) and runs steps again: for a loop of known
 * length as few as can be (binomial checkpointing); for cot_while no step more than r times in all, up to C(states + r, states) steps.
 * cot_grad_of, which records, keeps all states. A cot_while inside another body has no recorded derivative. */
typedef struct cot_loop_options {
    int         states;  /* 0: 100 */
    const char *spill;   /* a folder: states are kept in a file there, not in memory (Linux). Must live as long as what was recorded */
    bool        reverse; /* cot_scan: from the last step to the first */
    int64_t     limit;   /* cot_while: an error after so many steps; 0: none */
} cot_loop_options;

/* Steps along the first axis of the xs. The body reads `carry` carried values and a slice of each xs; it gives the next carried values and nys results,
 * which ys stacks along a new first axis. length: -1 where there are xs. */
COT_API cot_status cot_scan(cot_fn body, void *user, int64_t length, int carry, const cot_var *init, int nxs, const cot_var *xs, cot_var *final, int nys,
                            cot_var *ys, const cot_loop_options *options);
/* for (i = lower; i < upper; i++): the body reads i (an i64 scalar) and the carried values, and gives those. */
COT_API cot_status cot_fori(cot_fn body, void *user, int64_t lower, int64_t upper, int carry, const cot_var *init, cot_var *final,
                            const cot_loop_options *options);
/* while (test): test reads the carried values and gives one number, true to go on; the body gives the next ones. */
COT_API cot_status cot_while(cot_fn test, cot_fn body, void *user, int carry, const cot_var *init, cot_var *final, const cot_loop_options *options);
/* choice ? then(xs) : otherwise(xs). Both are recorded and must give the same shapes and dtypes; one runs. */
COT_API cot_status cot_cond(cot_var choice, cot_fn then, cot_fn otherwise, void *user, int n, const cot_var *xs, int m, cot_var *ys);
/* f(xs), of which nothing is kept but the results: reverse mode runs it again. */
COT_API cot_status cot_checkpoint(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys);


/* ==== Derivatives of one's own =================================================================================== */

/* Derivatives for a function that is written in recorded operations: more stable, cheaper, or another one on purpose. One of the two is enough; the other
 * direction is its transpose. They are recorded, so they have derivatives themselves. What f uses from outside gets no gradient: give it as an input. For a
 * function in plain C numbers there is cot_call. */
typedef struct cot_fn_rules {
    const char *name;
    /* xbars[k] starts invalid, which means zero. Linear in ybars. */
    int (*vjp)(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars, void *user);
    /* dxs[k] is invalid where an input does not move; dys[k] starts invalid: zero. Linear in dxs. */
    int (*jvp)(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *dxs, cot_var *dys, void *user);
} cot_fn_rules;
/* ys = f(xs), recorded once as a body (see cot_scan: it reads no values), with these derivatives. rules and user must live as long as what was recorded. */
COT_API cot_status cot_custom_fn(const cot_fn_rules *rules, cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys);


/* ==== Values that solve an equation ============================================================================== */

/* Their derivatives solve the transposed linear system at the solution, and do not go through the way it was found; to every order. Functions are recorded once as
 * bodies (see cot_scan); what they use from outside gets its gradient too. A solver that does not converge is an error with its residual. */
typedef struct cot_solve_options {
    double tolerance;  /* of the residual, relative to b (linear) or to 1 + where it began; 0: 1e-12 (linear) or 1e-10 for f64, 1e-5 or 1e-4 for f32, 5e-2
                        * below; and a solver of yours is not checked */
    int    iterations; /* at most; 0: 1000 (linear) or 100 */
} cot_solve_options;

/* x with a(x) = b, where a is linear and keeps shape and dtype; no matrix is made (but for up to 64 unknowns): GMRES. */
COT_API cot_var cot_linear_solve(cot_fn a, void *user, cot_var b, const cot_solve_options *options);

/* Finds x, which arrives as the start, for these parameters, in numbers and however it likes. Returns 0, or a code for failure. */
typedef int (*cot_solver)(int n, const cot_array *theta, cot_array *x, void *user);

/* f reads x and then theta, and gives: root: as many values as x has, to be zero; fixed_point: the next x; minimize: one number, to be least (its second
 * derivative shall not be singular there). solver NULL: Newton's method from x0. x0 gets no gradient. */
COT_API cot_var cot_root(cot_fn f, void *user, cot_solver solver, cot_var x0, int n, const cot_var *theta, const cot_solve_options *options);
COT_API cot_var cot_fixed_point(cot_fn g, void *user, cot_solver solver, cot_var x0, int n, const cot_var *theta, const cot_solve_options *options);
/* (cot_argmin is the position of the least element.) */
COT_API cot_var cot_minimize(cot_fn f, void *user, cot_solver solver, cot_var x0, int n, const cot_var *theta, const cot_solve_options *options);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
