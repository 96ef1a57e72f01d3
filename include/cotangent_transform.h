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

/* ==== Taylor series ============================================================================================== */

/* The derivatives of y by s, at s = 0, where the xs move along a curve: xs[k](s) has there the derivatives curve[k], curve[n + k], …
 * up to `degree`, and none above. degree 1 is a line, and curve[0..n) its direction: out[m] is then the m-th derivative of y along
 * it, m = 0 … order (up to 60). One sweep for all orders: an operation costs O(order²), against 2^order for nested cot_jvp
 * (O(order³) where the derivative of an operation has ever new ones: pow, digamma, solving and factorising; the derivative of a loop
 * carries twice as much as the loop, at each order). Vars on the tape, to be differentiated again. A curve has the shapes of the xs;
 * plain numbers do for scalars, COT_NONE is zero. xs may be leaves or intermediate values, as for cot_jvp.
 *
 * Tests and choices (where, comparisons, floor, relu, maximum, sort, …) look at the values alone: what is differentiated is the
 * branch that was taken, and at kinks what docs/nonsmooth.md says. Infinities and NaN are those that nested cot_jvp gives. */
COT_API cot_status cot_taylor(cot_var y, int n, const cot_var *xs, int degree, const cot_var *curve, int order, cot_var *out);
/* The same, numbers only: curve (degree, N), out (order + 1, M), where the xs hold N elements in all and y M. Nothing stays on the tape,
 * and of each series no more than `order` times the value is kept, until its last use. After a failure `out` holds NaN. */
COT_API cot_status cot_taylor_values(cot_var y, int n, const cot_var *xs, int degree, const double *curve, int order,
                                     double *out);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
