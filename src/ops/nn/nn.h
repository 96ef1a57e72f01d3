/* nn.h: what neural networks need: convolution, pooling, normalisation, attention, losses. Their
 * public functions are declared in cotangent_ops.h; here stands what the files share.
 *
 * May call: base, rules, backend, tape, the other operations. Must not touch: sweeps. */
#ifndef COT_NN_H
#define COT_NN_H

#include "tape/tape.h"

/* Predictions and targets of a loss: integer labels, or floats, which get the predictions' dtype.
 * NULL after a failure. */
cot_tape *cot__enter_targets(const char *op, cot_var prediction, cot_var target, uint32_t xs[2]);
/* Are there labels for all rows along the last axis, or floats shaped like the predictions? */
bool cot__check_targets(cot_tape *t, const char *op, const uint32_t xs[2]);

/* An operand that was left out. */
static inline bool cot__is_absent(cot_var x) { return !x.tape; }
/* The extents from `axis` on. */
static inline cot_shape cot__shape_from(cot_shape x, int axis) {
    cot_shape s = {x.ndim - axis, {0}};
    for (int k = axis; k < x.ndim; k++) s.dim[k - axis] = x.dim[k];
    return s;
}
/* Is eps finite and not negative? */
bool cot__check_eps(cot_tape *t, const char *op, double eps);
/* layer_norm or rms_norm of x over `axis` (counted from the front) and all after it. All are f64,
 * or f32, and have the shapes that they must have; weight and bias may be absent, one alone too. */
cot_var cot__normalized(cot_var x, cot_var weight, cot_var bias, int axis, bool rms, double eps);

#endif
