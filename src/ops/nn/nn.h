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
/* Are there labels for all rows along the last axis, and in range, or floats shaped like the
 * predictions? */
bool cot__check_targets(cot_tape *t, const char *op, const uint32_t xs[2]);

#endif
