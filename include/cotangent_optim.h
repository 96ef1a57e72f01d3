/* cotangent_optim.h: training parameters: optimisers, rates that change, gradients between backward
 * and step; and minimising to the last digits: L-BFGS, least squares.
 *
 *     cot_schedule s = {.kind = COT_RATE_COSINE, .rate = 3e-4, .warmup = 100, .steps = 900};
 *     cot_optim   *o = cot_optim_create(p, &(cot_optim_options){.kind = COT_ADAMW, .decay = 0.1,
 *                                                               .schedule = &s, .average = 0.999});
 *     cot_mark start = cot_tape_mark(t);
 *     for (int step = 0; step < 1000; step++) {
 *         cot_backward(cot_softmax_cross_entropy(net(p, x), labels));
 *         cot_clip_grad_norm(p, 1.0);
 *         if (cot_optim_step(o) != COT_OK) break;     a rewind would clear the error
 *         cot_tape_zero_grads(t);
 *         cot_tape_rewind(t, start);
 *     }
 *     cot_optim_destroy(o);
 *
 * Weights are f32 or f64: keep those, and cast them for a computation in bf16 or f16. (Of all steps
 * only cot_sgd_step takes leaves of 16 bits.) Results have the same bits for every number of
 * threads, and in a program (cot_optim_record) those of cot_optim_step; docs/bits.md says in which
 * order numbers are rounded. */
#ifndef COTANGENT_H
/* This file is a part of it, which it includes where the turn is: after the parts that this one
 * needs. */
#include <cotangent.h>
#elif !defined(COTANGENT_OPTIM_H)
#define COTANGENT_OPTIM_H

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Rates that change
 * ========================================================================================== */

/* The rate of a step is a function of its number t, counted from 0. The first `warmup` steps rise
 * in a line, rate · (start + (1 - start) t / warmup); then, with t counted from there: */
typedef enum cot_schedule_kind {
    COT_RATE_CONSTANT, /* rate */
    COT_RATE_STAIRS,   /* rate · factor^⌊t / steps⌋ */
    COT_RATE_LINEAR,   /* rate + (end - rate) t / steps, from t = steps on: end */
    COT_RATE_COSINE,   /* end + (rate - end) (1 + cos(π t / steps)) / 2, from t = steps on: end */
    /* two half waves of the cosine: from rate / divide up to rate at t = rise · steps - 1, and from
     * there down to rate / divide / divide_end at t = steps - 1, where it stays */
    COT_RATE_ONE_CYCLE
} cot_schedule_kind;
typedef struct cot_schedule {
    cot_schedule_kind kind COT__OR_0;
    double            rate COT__OR_0;
    int64_t           steps COT__OR_0;  /* at least 1, but for COT_RATE_CONSTANT */
    double            end COT__OR_0;    /* the last rate */
    double            factor COT__OR_0; /* 0: 0.1 */
    int64_t           warmup COT__OR_0; /* 0: none */
    double            start COT__OR_0;  /* the first rate in parts of `rate` */
    /* of COT_RATE_ONE_CYCLE, 0: 0.3, 25 and 1e4 */
    double            rise COT__OR_0, divide COT__OR_0, divide_end COT__OR_0;
} cot_schedule;
/* A pure function. NaN where a number of the schedule is out of its range, or s is NULL. */
COT_API double cot_schedule_rate(const cot_schedule *s, int64_t step);

/* ==== Optimisers
 * ============================================================================================= */

/* The step of a weight w with the gradient g, where m, v, u (all zero at first) are kept beside it.
 * First, but for COT_ADAMW, g = g + decay · w, if there is a decay. Then
 *
 *     COT_SGD       u = momentum · u + g
 *                   w = w - rate · u                       nesterov: w - rate · (g + momentum · u)
 *                   (w - rate · g where momentum is 0, which keeps no u)
 *     COT_RMSPROP   v = alpha · v + (1 - alpha) g²
 *                   centered: m = alpha · m + (1 - alpha) g, and v - m² (0 where rounding made that
 *                   negative) in the place of v in
 *                   d = g / (sqrt(v) + eps)
 *                   u = momentum · u + d;  w = w - rate · u      (momentum 0: w - rate · d)
 *     COT_ADAM      m = beta1 · m + (1 - beta1) g
 *                   v = beta2 · v + (1 - beta2) g²
 *                   w = w - rate · m' / (sqrt(v') + eps), where m' = m / (1 - beta1^step) and
 *                   v' = v / (1 - beta2^step); eps_hat: sqrt(v') + eps / sqrt(1 - beta2^step) in
 *                   the place of sqrt(v') + eps
 *     COT_ADAMW     the same with (1 - rate · decay) w in the place of w
 *
 * and at the end, if averages are kept, a = average · a + (1 - average) w. These are PyTorch's (SGD
 * with a dampening of 0), but for the roundings; with eps_hat, which adds eps to sqrt(v) before it
 * is corrected, TensorFlow's Adam. */
typedef enum cot_optim_kind { COT_SGD, COT_RMSPROP, COT_ADAM, COT_ADAMW } cot_optim_kind;

/* What differs between groups of parameters (cot_params_group). */
typedef struct cot_optim_group {
    double scale COT__OR_0; /* the rate in parts of the optimiser's; 0: 1 */
    double decay COT__OR_0; /* as it stands: 0 is none */
} cot_optim_group;

typedef struct cot_optim_options {
    cot_optim_kind         kind COT__OR_0;
    /* not read where there is a schedule; 0, also when it is left out, moves nothing */
    double                 rate COT__OR_0;
    double                 decay COT__OR_0;
    double                 momentum COT__OR_0; /* COT_SGD, COT_RMSPROP; of others an error */
    bool                   nesterov COT__OR_0; /* COT_SGD; needs a momentum */
    bool                   centered COT__OR_0; /* COT_RMSPROP */
    double                 alpha COT__OR_0;    /* 0: 0.99 */
    double                 beta1 COT__OR_0, beta2 COT__OR_0; /* 0: 0.9, 0.999 */
    double                 eps COT__OR_0;     /* 0: 1e-8 */
    bool                   eps_hat COT__OR_0; /* COT_ADAM, COT_ADAMW */
    /* of averages of weights, below 1; 0: none are kept */
    double                 average COT__OR_0;
    const cot_schedule    *schedule COT__OR_0; /* copied; NULL: the rate is `rate` */
    /* copied: groups[k] has scale and decay of group k; NULL: all are like group 0, scale 1 and
     * the decay above */
    const cot_optim_group *groups COT__OR_0;
    int                    group_count COT__OR_0;
} cot_optim_options;

typedef struct cot_optim cot_optim;

/* An optimiser of the parameters that are trained. It takes the memory of its states now (for those
 * that are thawed or made later, at their first step), and the averages of weights start as the
 * weights. p outlives it. NULL after a failure, which stands on the tape of p: numbers out of their
 * range, a group that is not there, weights of 16 bits. NULL options are an error. */
COT_API cot_optim *cot_optim_create(cot_params *p, const cot_optim_options *options);
COT_API void       cot_optim_destroy(cot_optim *o); /* NULL is fine */
/* One step of all parameters that are neither frozen nor statistics and have a gradient; one
 * without a gradient stays as it is. A pass over weight, gradient and states, without allocation.
 * All are checked before any is written. Afterwards the weights count as assigned: see cot_assign.
 * Gradients stay until they are zeroed. */
COT_API cot_status cot_optim_step(cot_optim *o);
/* The rate of the next step, before the scale of a group. NaN for NULL. */
COT_API double cot_optim_rate(const cot_optim *o);
/* This rate from now on, and no schedule. */
COT_API cot_status cot_optim_set_rate(cot_optim *o, double rate);

/* Exchanges all weights and their averages: once before an evaluation, and once after it. In
 * between a step is an error. Without averages an error. After a failure none is exchanged. */
COT_API cot_status cot_optim_swap(cot_optim *o);
COT_API bool       cot_optim_swapped(const cot_optim *o); /* false for NULL */

/* What a checkpoint must hold beside the parameters to go on to the bit: arrays, writable in place,
 * and the number of steps done. name (which may be NULL) gets "fc1.weight.m": m, v, momentum (u),
 * average. It lives as long as o, and so does the memory. All zero beyond the end and for NULL. */
COT_API int       cot_optim_states(const cot_optim *o);
COT_API cot_array cot_optim_state(const cot_optim *o, int k, const char **name);
COT_API int64_t   cot_optim_steps(const cot_optim *o);
/* A negative number counts as 0. */
COT_API void      cot_optim_set_steps(cot_optim *o, int64_t steps);

/* ---- in programs ----------------------------------------------------------------------------- */

/* How many arrays are kept beside each weight, 0 … 4, in the order m, v, momentum, average. */
COT_API int cot_optim_kept(const cot_optim_options *options);
/* The step as a function: xs are n weights, then the first array beside each of them, then the
 * second, … n · (1 + cot_optim_kept) in all; ys gets what they are after a step with the gradients
 * gs. The rate (cot_schedule_rate) and the number of the step, which counts from 1, are numbers
 * (cot_number) or 0-d vars of f64 and i64, so that one program does all steps; group[k] is that of
 * weight k (NULL: all 0). options: rate and schedule are not read. Compiled (cot_compile), with
 * weights and states donated, it has the bits of cot_optim_step, and writes them where they are:
 *
 *     static int step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
 *         cot_var g[N];                            xs: weights, m, v, rate, step, data
 *         if (cot_value_and_grad(loss, user, N, xs, &ys[0], g) != COT_OK) return 1;
 *         return cot_optim_record(&adam, xs[3 * N], xs[3 * N + 1], N, g, xs, NULL, ys + 1);
 *     } */
COT_API cot_status cot_optim_record(const cot_optim_options *options, cot_var rate, cot_var step, int n,
                                    const cot_var *gs, const cot_var *xs, const int *group, cot_var *ys);

/* ==== Gradients between backward and step
 * =========================================================================== */

/* Of a leaf x: its gradient becomes factor · gradient, value, gradient + value. (cot_grad and
 * cot_read_grad read it.) The value has x's shape, or is a plain number for every element; it is
 * rounded to x's dtype. A leaf without a gradient stays without one when it is scaled. Anything but
 * a leaf is an error. Nothing is recorded. */
COT_API cot_status cot_grad_scale(cot_var x, double factor);
COT_API cot_status cot_grad_set(cot_var x, cot_var value);
COT_API cot_status cot_grad_add(cot_var x, cot_var value);
/* The norm of all gradients of the trained parameters together, as it was; then, if that is more
 * than about `most`, they are scaled to the norm `most`: by min(1, most / (norm + 1e-6)), as
 * PyTorch's clip_grad_norm_ does. A norm that is infinite makes gradients 0, and those that are
 * infinite NaN; a norm of NaN makes all of them NaN. So look at what is returned before a step.
 * `most` is positive, or INFINITY, which only measures. NaN after a failure. */
COT_API double cot_clip_grad_norm(cot_params *p, double most);

/* Losses times a number: gradients that would be below the least numbers of f16 are not lost then.
 * The number is found by trying: it halves when a gradient is not finite, and doubles after so many
 * steps without. {0} is a good start.
 *
 *     cot_loss_scale s = {0};
 *     …
 *     cot_backward(cot_loss_scaled(&s, loss));
 *     if (cot_unscale_grads(p, &s) && cot_optim_step(o) != COT_OK) break;
 *
 * bf16 has the range of f32 and needs none of this. */
typedef struct cot_loss_scale {
    double  scale COT__OR_0;    /* 0: 65536; doubles up to 2^24, halves to 1 */
    int64_t interval COT__OR_0; /* steps until it doubles; 0: 2000 */
    int64_t good COT__OR_0;     /* how many were done since it changed */
    int64_t skipped COT__OR_0;  /* how many had gradients that were not finite, in all */
} cot_loss_scale;
/* loss · scale: a var as the loss is. */
COT_API cot_var cot_loss_scaled(cot_loss_scale *s, cot_var loss);
/* Divides the gradients of the parameters that are trained by the scale. False: one of them was not
 * finite, and the step is to be left out: then gradients are as they were, and the scale is halved.
 * (False after an error too.) Once for a backward: called again it divides again. Clip after. */
COT_API bool cot_unscale_grads(cot_params *p, cot_loss_scale *s);

/* ==== Minimising
 * ============================================================================================= */

/* Both find leaves xs at which a function of theirs is least, and leave the best point in them. f
 * records its value from xs and reads what else it needs; it is called for each evaluation, and
 * what it recorded is forgotten afterwards. Gradients of leaves are not touched. The parameters of
 * a model are minimised over like this:
 *
 *     int            n;
 *     const cot_var *w = cot_params_vars(p, &n);
 *     cot_lbfgs_minimize(n, w, loss, &data, NULL, &report);
 *
 * They return the status of the tape: COT_OK where the function could be evaluated, and the report
 * says how it ended. Where the report is NULL, any other end than COT_FIT_CONVERGED is an error.
 * After a failure of the function the leaves hold the point at which it failed. */
typedef enum cot_fit_end {
    COT_FIT_CONVERGED,
    COT_FIT_LIMIT,     /* as many iterations as were allowed were done */
    COT_FIT_STALLED,   /* no step makes it smaller, but the point is no minimum */
    COT_FIT_SINGULAR,  /* least squares: stationary, but some parameters can move without effect */
    COT_FIT_BAD_START, /* the function, or its derivative, is not finite at the start */
    COT_FIT_BAD_SLOPE, /* derivatives are not finite at the present point */
    COT_FIT_ABANDONED, /* the function failed: the tape says why */
    COT_FIT_MEMORY
} cot_fit_end;

/* A function of one value, by L-BFGS: the last steps and changes of the gradient stand for its
 * second derivative, and a step along the direction that they give satisfies the strong Wolfe
 * conditions, f(x + a d) <= f + 1e-4 a f' and |f'(x + a d)| <= 0.9 |f'|, where f' is the slope
 * along d; found by bracketing and cubic interpolation. It has converged where no element of the
 * gradient is larger than the tolerance, or where the decrease to come is lost in the rounding of
 * f. Leaves are f64 or f32 (which end where f32 does). NULL options for the defaults. */
typedef struct cot_lbfgs_options {
    int     history COT__OR_0;    /* steps that are remembered; 0: 10 */
    int64_t iterations COT__OR_0; /* 0: 1000 */
    double  tolerance COT__OR_0;  /* 0: 1e-8 */
} cot_lbfgs_options;
typedef struct cot_lbfgs_report {
    cot_fit_end end;
    double      value;
    double      slope; /* the largest element of the gradient, by magnitude */
    int64_t     iterations, evaluations;
} cot_lbfgs_report;
COT_API cot_status cot_lbfgs_minimize(int n, const cot_var *xs, cot_function f, void *user,
                                      const cot_lbfgs_options *options, cot_lbfgs_report *report);

/* The sum of the squares of f, which gives M residuals (of any shape), by Levenberg-Marquardt:
 * damped Gauss-Newton steps by orthogonal transformations, to the last digits. The leaves are f64
 * and hold N <= M elements, 10000 at most, since the Jacobian (M, N) is dense; forward sweeps
 * compute it. NULL options for the defaults. */
typedef struct cot_least_squares_options {
    int64_t iterations COT__OR_0; /* steps tried; 0: 1000 */
    /* relative error of the parameters that is enough; 0, and up to 1e-10: it goes on to the last
     * digit */
    double  tolerance COT__OR_0;
    /* the norm of the data: differences far smaller are rounding; 0: that of the residuals at the
     * start */
    double  size COT__OR_0;
} cot_least_squares_options;
typedef struct cot_least_squares_report {
    cot_fit_end end COT__OR_0;
    double      rss COT__OR_0; /* the sum of squares */
    /* sqrt(rss / (M - N)), the standard deviation of the residuals; NaN where M = N */
    double      sd COT__OR_0;
    double      change COT__OR_0; /* by one more step, relative; NaN if there is none */
    int64_t     iterations COT__OR_0;
    /* Arrays of yours, N elements each, or NULL: standard errors of the parameters (NaN where there
     * are none), and which can move without effect where it ended as COT_FIT_SINGULAR. */
    double     *errors COT__OR_0;
    bool       *undetermined COT__OR_0;
} cot_least_squares_report;
COT_API cot_status cot_least_squares(int n, const cot_var *xs, cot_function f, void *user,
                                     const cot_least_squares_options *options, cot_least_squares_report *report);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
