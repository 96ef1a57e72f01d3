/* optim.h: writing to leaves: assignment and the steps of optimisers.
 *
 * May call: base, rules, backend, tape, ops, diff. Must not touch: nodes that are computed. */
#ifndef COT_OPTIM_H
#define COT_OPTIM_H

#include "ops/array/array.h"

/* Notes that source i was written for good. Values that were computed from its old numbers are
 * recognised by the time at which they were recorded. */
void cot__note_assign(cot_tape *t, uint32_t i, cot__assigner who);
/* Is v valid as a rate or a decay of an optimiser? */
static inline bool cot__is_rate(double v) { return v >= 0 && isfinite(v); }

#endif
