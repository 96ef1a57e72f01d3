/* by_tiers.h: what differentiates, in place of the library's functions, in the examples: each does
 * what the library's does, and has what led to its result run by every tier (by_tiers.c). An
 * example finds it in what it includes as cotangent.h. */
#ifndef BY_TIERS_H
#define BY_TIERS_H

#include <cotangent.h>

cot_status tiers_backward(cot_var y, int line);
cot_status tiers_backward_seeded(cot_var y, cot_var seed, int line);
cot_status tiers_grad_of(cot_var y, int n, const cot_var *xs, cot_var *grads, int line);
cot_status tiers_value_and_grad(cot_fn f, void *user, int n, const cot_var *xs, cot_var *y, cot_var *grads, int line);
cot_status tiers_hvp(cot_var y, int n, const cot_var *xs, const double *v, double *out, int line);
cot_status tiers_sparse_jacobian(const cot_sparse_plan *plan, int m, const cot_var *ys, int n, const cot_var *xs,
                                 double *values, int line);
cot_status tiers_least_squares(int n, const cot_var *xs, cot_function f, void *user,
                               const cot_least_squares_options *options, cot_least_squares_report *report, int line);
cot_program *tiers_compile(cot_fn f, void *user, int n, const cot_type *types, int m,
                           const cot_compile_options *options);
cot_status tiers_program_run(cot_run *r, const void *const *inputs, void *const *outputs, int line);

#ifdef COT_EXAMPLE /* its main has another name */
#undef cot_backward_seeded
#undef cot_grad_of
#undef cot_value_and_grad
#define cot_backward(y) tiers_backward(y, __LINE__)
#define cot_backward_seeded(y, seed) tiers_backward_seeded(y, COT__MIX(seed), __LINE__)
#define cot_grad_of(y, n, xs, grads) tiers_grad_of(y, n, xs, grads, __LINE__)
#define cot_value_and_grad(f, user, n, xs, y, grads) tiers_value_and_grad(f, user, n, xs, y, grads, __LINE__)
#define cot_hvp(y, n, xs, v, out) tiers_hvp(y, n, xs, v, out, __LINE__)
#define cot_sparse_jacobian(plan, m, ys, n, xs, values) tiers_sparse_jacobian(plan, m, ys, n, xs, values, __LINE__)
/* literals among the arguments have commas */
#define cot_least_squares(...) tiers_least_squares(__VA_ARGS__, __LINE__)
#define cot_program_run(...) tiers_program_run(__VA_ARGS__, __LINE__)
#define cot_compile tiers_compile
#endif

#endif
