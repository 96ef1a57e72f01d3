/* cotangent_transform.h: functions of functions: derivatives of C functions, batches, loops,
 * conditions, checkpoints.
 *
 * Each takes a C function on vars, runs or records it on the tape of its inputs, and gives vars on
 * that tape: so they compose, and are differentiated like anything else. An error stands on the
 * tape of the first input that is on one; where all are plain numbers there is none, and the status
 * that is returned is all there is. */
#ifndef COTANGENT_H
/* This file is a part of it, which it includes where the turn is: after the parts that this one
 * needs. */
#include <cotangent.h>
#elif !defined(COTANGENT_TRANSFORM_H)
#define COTANGENT_TRANSFORM_H

#ifdef __cplusplus
extern "C" {
#endif

/* Reads n inputs, writes m outputs, all of them. Returns 0; anything else is failure (COT_CUSTOM).
 * It is called during the call that it is given to and never after, whatever is derived from what
 * was recorded later: so `user`, and what it points to, may be gone by then. Two things are asked
 * later, and must live as long as what was recorded: the rules of cot_custom_fn and a cot_solver,
 * with their user data.
 *
 * Where a function of this header fails, its results are invalid and the tape has a sentence. It
 * finds its tape in the vars that it is given; with plain numbers alone, or with nothing, there is
 * no tape to say it on, and all there is is the status that it returns, COT_VAR: put a number on a
 * tape with cot_constant. */
typedef int (*cot_fn)(int n, const cot_var *xs, int m, cot_var *ys, void *user);

/* ==== Derivatives of functions
 * =================================================================================== */

/* Each runs f once, on the tape of its inputs, and records derivatives with respect to exactly
 * these inputs, constants too (integers have none: invalid). What comes out can be differentiated
 * again, batched and looped over: nest them as you like. Seeds and tangents have the shape of what
 * they belong to, or are numbers that stand for every element; a tangent of an integer is
 * COT_NONE. */

/* y = f(xs), one float, and its gradient. y may be NULL. */
COT_API cot_status cot_value_and_grad(cot_fn f, void *user, int n, const cot_var *xs, cot_var *y, cot_var *grads);
/* ys = f(xs) and Σ <seeds[k], ∂ys[k]/∂x>. A seed of COT_NONE is zero. */
COT_API cot_status cot_fn_vjp(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys, const cot_var *seeds,
                              cot_var *grads);
/* ys = f(xs) and how they move when the xs move by the tangents; COT_NONE: that input does not. */
COT_API cot_status cot_fn_jvp(cot_fn f, void *user, int n, const cot_var *xs, const cot_var *tangents, int m,
                              cot_var *ys, cot_var *dys);

/* ys = f(xs), recorded once, and its derivative at xs as a thing to multiply with as often as
 * wanted. It belongs to the tape, and is forgotten by a rewind to before it: do not use it after
 * that. */
typedef struct cot_linear cot_linear;
COT_API cot_status        cot_linearize(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys,
                                        cot_linear **linear);
/* Where linear is NULL, they do nothing and return COT_VAR. */
COT_API cot_status cot_linear_jvp(cot_linear *linear, const cot_var *tangents, cot_var *dys);
COT_API cot_status cot_linear_vjp(cot_linear *linear, const cot_var *seeds, cot_var *grads);

/* ys = f(xs) and all its derivatives, as vars: jacobians[k * n + j] is that of ys[k] by xs[j]. It
 * has the shape of ys[k] followed by that of xs[j], and the dtype of xs[j]; invalid where one of
 * them is no float. One batch (cot_vmap) of reverse sweeps for each result, or of forward sweeps
 * for each input: COT_AUTO takes the mode with fewer directions. ys may be NULL. Numbers alone come
 * cheaper from cot_jacobian, sparse ones from cot_sparse_jacobian_of. */
COT_API cot_status cot_fn_jacobian(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys, cot_mode mode,
                                   cot_var *jacobians);
/* y = f(xs), one float, and its second derivatives: hessians[k * n + j] is that by xs[k] and xs[j],
 * of the shapes of both. y may be NULL. */
COT_API cot_status cot_fn_hessian(cot_fn f, void *user, int n, const cot_var *xs, cot_var *y, cot_var *hessians);

/* x, with no gradient through it: cot_detach under the name that people of JAX know. */
COT_API cot_var cot_stop_gradient(cot_var x);

/* ==== Loops and conditions
 * ======================================================================================= */

/* Control flow as one operation on the tape. A body is a cot_fn that is recorded once, on the first
 * values, and then played for every step; it may use any value from outside, which gets its
 * gradient too. While it is recorded it has no values: reading one is an error, and so are
 * derivatives as numbers (cot_jacobian and the like: record them, with cot_fn_jacobian); choose
 * with cot_where or cot_cond. Nothing of its inside can be used outside but its results; what it
 * looks at in the data (positions, labels) is refused though no result needs it. All are
 * differentiable in forward and reverse mode, to every order, and nest. Carried values keep their
 * shape and dtype. A key is a constant of the body: every step draws the same random numbers from
 * it. For other ones at each step, give cot_key_at(key, i).
 *
 * Reverse mode needs the state before each step. cot_backward keeps at most `states` of them
 * (besides the first and, where the length is known, the last) and runs steps again: for a loop of
 * known length as few as can be (binomial checkpointing); for cot_while no step more than r times
 * in all, up to C(states + r, states) steps. What records a gradient (cot_grad_of,
 * cot_value_and_grad, …) keeps that bound where `states` or `spill` are set, and all states where
 * they are not; so does a function that is compiled. Inside another body it keeps all, and there
 * the cure is a cot_checkpoint around an inner loop; but those of a cot_while in a body, which is
 * as long as it turns out to be each time that body is played, stay under the bound. A vjp of a
 * cot_call in the body may read values under cot_backward, and where such a bound is kept outside
 * of bodies; where all states are kept, or in a compiled function, its operations are recorded as a
 * body, and it may not. NULL options for the defaults, all 0. */
typedef struct cot_loop_options {
    /* 0: 100, or all of a loop of known length if they take no more than 1 MiB together. More than
     * there are steps cost nothing */
    int         states COT__OR_0;
    /* a folder: states are kept in a file without a name there, not in memory (Linux), each with a
     * checksum. Must live as long as what was recorded. A state is its carried values, each rounded
     * up to 64 bytes, or to 8 if it has fewer than 64. Unless all are kept, 64 to 128 bytes for
     * each kept state are in memory beside it, with and without `spill` (without, and above 2 KB
     * each, some 150 more). A compiled function keeps its states in the memory of a run, whatever
     * stands here: `states` bounds them there */
    const char *spill COT__OR_0;
    bool        reverse COT__OR_0; /* cot_scan, cot_fori: from the last step to the first */
    /* cot_while: an error after so many steps; 0: none. Others look only that it is not negative */
    int64_t     limit COT__OR_0;
} cot_loop_options;

/* Steps along the first axis of the xs. The body reads `carry` carried values and a slice of each
 * xs; it gives the next carried values and nys results, which ys stacks along a new first axis.
 * length: -1 where there are xs. */
COT_API cot_status cot_scan(cot_fn body, void *user, int64_t length, int carry, const cot_var *init, int nxs,
                            const cot_var *xs, cot_var *final, int nys, cot_var *ys, const cot_loop_options *options);
/* for (i = lower; i < upper; i++): the body reads i (an i64 scalar) and the carried values, and
 * gives those. */
COT_API cot_status cot_fori(cot_fn body, void *user, int64_t lower, int64_t upper, int carry, const cot_var *init,
                            cot_var *final, const cot_loop_options *options);
/* while (test): test reads the carried values and gives one number, true to go on; the body gives
 * the next ones. */
COT_API cot_status cot_while(cot_fn test, cot_fn body, void *user, int carry, const cot_var *init, cot_var *final,
                             const cot_loop_options *options);
/* choice ? then(xs) : otherwise(xs). The choice may be a plain number where xs are on a tape. Both
 * are recorded and must give the same shapes and dtypes; one runs. */
COT_API cot_status cot_cond(cot_var choice, cot_fn then, cot_fn otherwise, void *user, int n, const cot_var *xs, int m,
                            cot_var *ys);
/* f(xs), of which nothing is kept but the results: reverse mode runs it again. Gradients have the
 * bits that they have without it; only what is read inside and outside too, or by several
 * checkpoints, has its sum added up in each of them first. A checkpoint inside of another one is
 * made again with it and then once more by itself: less memory, more work. */
COT_API cot_status cot_checkpoint(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys);
/* Layer `layer` of many: reads n carried values and writes as many. Returns 0; anything else is
 * failure (COT_CUSTOM). What else is said of cot_fn holds for it. */
typedef int (*cot_layer_fn)(int64_t layer, int n, const cot_var *xs, cot_var *ys, void *user);
/* Layers 0 … layers - 1 one after the other, from n values xs to n values ys (which may be the same
 * memory), in segments of the same length or one less, each a cot_checkpoint: so what lies between
 * segments is kept, and one segment at a time is made again on the way back. With √layers segments,
 * which is what 0 means (rounded up), that is memory for some 2 √layers layers instead of all, for
 * the time of one more forward. More segments than layers count as that many; without layers ys are
 * xs. Layers may differ, in shapes too. An error: no function, a negative number, no xs. */
COT_API cot_status cot_checkpoint_sequential(cot_layer_fn layer, void *user, int64_t layers, int64_t segments, int n,
                                             const cot_var *xs, cot_var *ys);

/* ==== Batches
 *
 *
 * ============================================================================================== */

/* f for all elements of a batch at once, as if it were called for each and its results stacked:
 * written for one example, run on many. f is recorded once, on the first element, and every
 * operation it recorded is then done for the whole batch; nothing runs element by element but
 * custom operations, cot_custom_fn and a few that are rare. A cot_while goes on while any element's
 * test holds; those that have ended keep their values, and their bodies see those of one that has
 * not, so each step costs as much as all of them would. Inside f no value can be read (as in the
 * bodies of loops), and values from outside are the same for all elements, random numbers too. It
 * nests, it may be differentiated, and f may differentiate: cot_vmap of a function with cot_grad_of
 * inside gives the gradients of each example. Those of matrices, large ones, are written when their
 * elements are looked at; norms and sums of them make them as they go, in a fraction of the time
 * and memory: reductions over axes of f32 and f64 gradients as they come, or after a few of
 * scaling, squaring, adding and the like. After cot_concat, cot_stack, slices, transposes, pow or
 * exp they are written, and products with other arrays, as cot_einsum makes, write them, too: take
 * the norms of each array by itself, and add those. Compiled (cot_compile), sums of them, of their
 * squares and of their products with a number for each example need no arrays where these have
 * 1 MiB or more and rows of a multiple of 256 elements, and other reductions from 64 MiB on;
 * cot_program_report says which. A batch of which no derivative can be asked for runs as a program
 * if it is large, or if its like was met before on the tape, which then holds its results alone.
 *
 * A cot_cond whose choice has the batch does both branches for all elements, and takes of each what
 * its choice says: so a branch looks at the data of elements that do not take it, and refuses or
 * notes them, a cot_while in it may not end for them, and where it gives 0 · ∞ or 0 · NaN on the
 * way back, a gradient that elements share is NaN. Make such operands harmless before the branch
 * (cot_where, cot_clamp).
 *
 *     in_axes[k]   the axis of xs[k] along which the elements lie, negative ones from the end, or
 *                  COT_NOT_BATCHED: every element sees all of xs[k]. NULL: axis 0 of all
 *     out_axes[k]  the axis of ys[k] along which the elements shall lie. A result that does not
 *                  depend on the batch is repeated; with COT_NOT_BATCHED it has no such axis. NULL:
 *                  axis 0 of all
 *
 * A batch may be empty; f is then recorded on zeros. */
#define COT_NOT_BATCHED (-2147483647 - 1)
COT_API cot_status cot_vmap(cot_fn f, void *user, int n, const cot_var *xs, const int *in_axes, int m, cot_var *ys,
                            const int *out_axes);

/* ==== Derivatives of one's own
 * =================================================================================== */

/* Derivatives for a function that is written in recorded operations: more stable, cheaper, or
 * another one on purpose. One of the two is enough; the other direction is its transpose, and an
 * error where what was given is not linear: a vjp that clips ybars, say, serves reverse mode as it
 * is, and forward mode needs a jvp. (Elementwise operations, products, norms, maxima and softmax
 * that bend are seen, and that something is added, where it is not 0: a rule gives zeros for zeros.
 * Other operations in a rule are believed, and in the direction for which it was given a rule is
 * not looked at.) They are recorded, so they have derivatives themselves. What f uses from outside
 * gets no gradient: give it as an input. For a function in plain C numbers there is cot_call. */
typedef struct cot_fn_rules {
    const char *name COT__OR_0; /* for printing and messages; NULL: "custom_fn" */
    /* xbars[k] starts invalid, which means zero. Linear in ybars. */
    int (*vjp)(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
               void *user) COT__OR_0;
    /* dxs[k] is invalid where an input does not move; dys[k] starts invalid: zero. It has the shape
     * of ys[k], or is a number that stands everywhere; of an integer result it is ignored. Linear
     * in dxs. */
    int (*jvp)(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *dxs, cot_var *dys,
               void *user) COT__OR_0;
} cot_fn_rules;
/* ys = f(xs), recorded once as a body (see cot_scan: it reads no values), with these derivatives.
 * rules and user must live as long as what was recorded. */
COT_API cot_status cot_custom_fn(const cot_fn_rules *rules, cot_fn f, void *user, int n, const cot_var *xs, int m,
                                 cot_var *ys);

/* ==== Sparse Jacobians and Hessians
 * ============================================================================== */

/* Where most entries of a Jacobian (M, N) or a Hessian (N, N) are zero whatever the numbers are, a
 * few sweeps give all the others: columns that share no row are moved together (or rows that share
 * no column, or, in a Hessian, columns that its symmetry keeps apart), and their entries are read
 * off one product. A plan knows which entries there are and which columns go together. It is made
 * once, from a tape, and used for any number of evaluations at other points:
 *
 *     cot_sparse_plan *plan = cot_sparse_jacobian_plan(m, ys, n, xs, COT_AUTO);
 *     cot_sparse_info  info = cot_sparse_plan_info(plan);               rows, columns, where
 *                                                                       entries stand, colours
 *     double          *values = malloc(info.nnz * sizeof *values);      in the order of info.col
 *     cot_sparse_jacobian(plan, m, ys, n, xs, values);                  again with vars recorded at
 *                                                                       another point
 *     cot_sparse_plan_destroy(plan);
 *
 * The pattern covers every entry that could be other than zero for the operations that are on the
 * tape, so both sides of a cot_where or cot_cond, any number of steps of a cot_while, none where
 * the plan was made included, and wherever positions computed from the xs (cot_sort,
 * cot_max_pool1d, a cot_take at an argmax) may fall; it is exact for elementwise operations,
 * shapes, gathers at given positions, sums and matrix products, follows the bodies of loops and
 * checkpoints, and is dense over what other operations mix: solvers among them. It does not know of
 * what was not recorded: a C `if` on a value, or positions that the program itself computed, can
 * bring entries that the plan lacks, and then values are wrong without notice (so can another
 * length of a cot_scan or cot_fori); cot_sparse_check compares with a random product. A plan is not
 * changed once made: threads may share it, each with its own tape. */
typedef struct cot_sparse_plan cot_sparse_plan;

typedef struct cot_sparse_info {
    int64_t        rows, cols, nnz; /* nnz: entries */
    /* rows + 1 numbers: the entries of row i are row_start[i] … row_start[i + 1] - 1 */
    const int64_t *row_start;
    const int32_t *col;             /* their columns, ascending. Both lists belong to the plan */
    int            colours;         /* sweeps that an evaluation takes */
    cot_mode       mode;            /* COT_FORWARD: colours of columns; COT_REVERSE: of rows */
    bool           hessian;
} cot_sparse_info;

/* Plans. ys hold M elements in all and xs N, each var row-major, vars in order, as for
 * cot_jacobian. COT_AUTO takes the mode with fewer colours. NULL after a failure, which stands on
 * the tape. The plan takes memory from the tape's allocator, which must outlive it; the tape need
 * not. */
COT_API cot_sparse_plan *cot_sparse_jacobian_plan(int m, const cot_var *ys, int n, const cot_var *xs, cot_mode mode);
COT_API cot_sparse_plan *cot_sparse_hessian_plan(cot_var y, int n, const cot_var *xs);
/* A plan takes some 40 bytes an entry while it is made. One with more entries than this is an error
 * (COT_LIMIT), before memory is taken for it, as where the function mixes everything with
 * everything. Below 1, and before it is called: 2^26. */
COT_API void             cot_sparse_plan_limit(cot_tape *t, int64_t entries);
COT_API void             cot_sparse_plan_destroy(cot_sparse_plan *plan); /* NULL is fine */
COT_API cot_sparse_info  cot_sparse_plan_info(const cot_sparse_plan *plan); /* all zero for NULL */

/* Evaluations: values (nnz) at the point at which ys and xs were recorded; NaN after a failure. A
 * plan for other sizes is an error. A Hessian has both halves, equal to the bit. */
COT_API cot_status cot_sparse_jacobian(const cot_sparse_plan *plan, int m, const cot_var *ys, int n, const cot_var *xs,
                                       double *values);
COT_API cot_status cot_sparse_hessian(const cot_sparse_plan *plan, cot_var y, int n, const cot_var *xs, double *values);

/* Does the matrix with these values give the function's derivative along a random direction (of the
 * seed)? COT_GRAD and a sentence if not: then the pattern lacks an entry. Half the digits of a row
 * count as rounding. Costs one sweep. Of a Hessian: m is 1. */
COT_API cot_status cot_sparse_check(const cot_sparse_plan *plan, int m, const cot_var *ys, int n, const cot_var *xs,
                                    const double *values, uint64_t seed);

/* The same for functions, as the forms above take them: f runs on inputs of its own with the values
 * of xs, which may be constants, and in a no-grad scope too; other uses of the xs do not count.
 * What it recorded is forgotten afterwards, also after a failure. */
COT_API cot_sparse_plan *cot_sparse_jacobian_plan_of(cot_fn f, void *user, int n, const cot_var *xs, int m,
                                                     cot_mode mode);
COT_API cot_sparse_plan *cot_sparse_hessian_plan_of(cot_fn f, void *user, int n, const cot_var *xs);
COT_API cot_status cot_sparse_jacobian_of(const cot_sparse_plan *plan, cot_fn f, void *user, int n, const cot_var *xs,
                                          int m, double *values);
COT_API cot_status cot_sparse_hessian_of(const cot_sparse_plan *plan, cot_fn f, void *user, int n, const cot_var *xs,
                                         double *values);

/* ys = f(xs) and the entries, recorded, in the order of the plan: one var (nnz) in the widest dtype
 * of the xs. All colours are one batch (cot_vmap) of sweeps. This is how a program (cot_compile)
 * and exported C have sparse derivatives; they can be differentiated again. ys, and y, may be
 * NULL. */
COT_API cot_status cot_fn_sparse_jacobian(const cot_sparse_plan *plan, cot_fn f, void *user, int n, const cot_var *xs,
                                          int m, cot_var *ys, cot_var *values);
COT_API cot_status cot_fn_sparse_hessian(const cot_sparse_plan *plan, cot_fn f, void *user, int n, const cot_var *xs,
                                         cot_var *y, cot_var *values);

/* A plan in a file, the same bytes on every machine. Saving fails (COT_VALUE) when the file does
 * not take it. Loading believes nothing: a file that is cut short, altered, or whose colours would
 * mix entries is refused with a sentence on the tape t, whose allocator the plan uses; then
 * NULL. */
COT_API cot_status       cot_sparse_plan_save(const cot_sparse_plan *plan, FILE *file);
COT_API cot_sparse_plan *cot_sparse_plan_load(cot_tape *t, FILE *file);

/* ==== Values that solve an equation
 * ============================================================================== */

/* Their derivatives solve the transposed linear system at the solution, and do not go through the
 * way it was found; to every order. Functions are recorded once as bodies (see cot_scan); what they
 * use from outside gets its gradient too. A solver that does not converge is an error with its
 * residual. NULL options for the defaults, all 0. */
typedef struct cot_solve_options {
    /* of the residual |F|, relative to |b| (linear) or to 1 + |F| at the start; 0: 1e-12 (linear)
     * or 1e-10 for f64, 1e-5 or 1e-4 for f32, 5e-2 below. A linear system of up to 64 unknowns is
     * eliminated, which leaves more where x is large against b: there 0 takes as many parts of |b|
     * + |A||x|, but no more than the third of the digits below, in parts of |b|: past that the
     * system counts as singular. What a solver of yours found is held to the tolerance, too; 0
     * asks of it a third of the digits: at most 2^-17 (f64), 2^-8 (f32), 2^-3 (f16), 2^-2 (bf16)
     * of |F| at the start + |∂F/∂x x|, which is how large the terms are that cancel at x.
     * INFINITY: whatever it found, as long as F has a value there */
    double tolerance COT__OR_0;
    /* at most; 0: 1000 (linear) or 100. Each linear system inside cot_root and cot_fixed_point,
     * for a step or for a derivative (of cot_minimize, too), has 1000 of its own, or as many as
     * this where it is more, to come to its 1e-12 */
    int    iterations COT__OR_0;
    /* of cot_linear_solve and cot_csr_solve: the function is symmetric and positive definite, so it
     * is solved by conjugate gradients, at any number of unknowns: three vectors of memory, and one
     * call for each step. Symmetry is looked at where linearity is; a direction p with p·a(p) <= 0
     * that a step meets is an error. Derivatives solve with the transposed function by the same
     * method: it is the same one, but recorded as its transpose, so that second derivatives by
     * entries that move alone are right, too. */
    bool   positive_definite COT__OR_0;
} cot_solve_options;

/* x with a(x) = b, where a is linear and keeps shape and dtype; no matrix is made (but for up to 64
 * unknowns): GMRES, or conjugate gradients. That a is linear is looked at once, at the first
 * solution and a vector of its size: a(u + v) = a(u) + a(v) to half the digits. */
COT_API cot_var cot_linear_solve(cot_fn a, void *user, cot_var b, const cot_solve_options *options);

/* Finds x, which arrives as the start, for these parameters, in numbers and however it likes.
 * Returns 0, or a code for failure. Called whenever the equation is solved again: at each step of a
 * loop around it, and on its way back. The residual is looked at afterwards
 * (cot_solve_options.tolerance). */
typedef int (*cot_solver)(int n, const cot_array *theta, cot_array *x, void *user);

/* f reads x and then theta, and gives: root: as many values as x has, to be zero; fixed_point: the
 * next x; minimize: one number, to be least around x (its second derivative shall not be singular
 * there). solver NULL: from x0 by Newton's method, of minimize within a radius that is trusted,
 * which leaves maxima and saddles. What a solver of yours found for minimize is refused where the
 * function bends down. (Looked for by 2 n + 10 products with its second derivative, 200 at most:
 * among many variables a direction that bends down little may stay unseen.) x0 gets no gradient. */
COT_API cot_var cot_root(cot_fn f, void *user, cot_solver solver, cot_var x0, int n, const cot_var *theta,
                         const cot_solve_options *options);
COT_API cot_var cot_fixed_point(cot_fn g, void *user, cot_solver solver, cot_var x0, int n, const cot_var *theta,
                                const cot_solve_options *options);
/* (cot_argmin is the position of the least element.) */
COT_API cot_var cot_minimize(cot_fn f, void *user, cot_solver solver, cot_var x0, int n, const cot_var *theta,
                             const cot_solve_options *options);

/* ==== Taylor series
 * ============================================================================================== */

/* The derivatives of y by s, at s = 0, where the xs move along a curve: xs[k](s) has there the
 * derivatives curve[k], curve[n + k], … up to `degree`, and none above. degree 1 is a line, and
 * curve[0..n) its direction: out[m] is then the m-th derivative of y along it, m = 0 … order (up to
 * 60). After a failure they are invalid, but of an order that is refused nothing is written. One
 * sweep for all orders: an operation costs O(order²), against 2^order for nested cot_jvp (O(order³)
 * where the derivative of an operation has ever new ones: pow, digamma, solving and factorising;
 * the derivative of a loop carries twice as much as the loop, at each order). Vars on the tape, to
 * be differentiated again. A curve has the shapes of the xs; plain numbers stand for every element,
 * COT_NONE is zero. xs may be leaves or intermediate values, as for cot_jvp.
 *
 * Tests and choices (where, comparisons, floor, relu, maximum, sort, …) look at the values alone:
 * what is differentiated is the branch that was taken, and at kinks what docs/nonsmooth.md says.
 * Infinities and NaN are those that nested cot_jvp gives, where nothing overflows on the way to
 * them. */
COT_API cot_status cot_taylor(cot_var y, int n, const cot_var *xs, int degree, const cot_var *curve, int order,
                              cot_var *out);
/* The same, numbers only: curve (degree, N), out (order + 1, M), where the xs hold N elements in
 * all and y M. Nothing stays on the tape, and of each series no more than `order` times the value
 * is kept, until its last use. After a failure `out` holds NaN (of an order that is refused, what
 * it held). */
COT_API cot_status cot_taylor_values(cot_var y, int n, const cot_var *xs, int degree, const double *curve, int order,
                                     double *out);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
