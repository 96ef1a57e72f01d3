/* nn.h: what neural networks need: convolution, pooling, normalisation, attention, losses. Their
 * public functions are declared in cotangent_ops.h; here stands what the files share.
 *
 * May call: base, rules, backend, tape, the other operations. Must not touch: sweeps. */
#ifndef COT_NN_H
#define COT_NN_H

#include "tape/tape.h"

/* Predictions and targets of a loss: integer labels, one for each row along the last axis and in
 * range, or floats shaped like the predictions, which get their dtype. NULL after a failure. */
cot_tape *cot__enter_targets(const char *op, cot_var prediction, cot_var target, uint32_t xs[2]);

#endif
