/* optim.h: writing to leaves: assignment, and the steps of optimisers; and minimising.
 *
 * May call: base, rules, backend, tape, ops, diff, parameters by their public functions. Must not
 * touch: nodes that are computed. */
#ifndef COT_OPTIM_H
#define COT_OPTIM_H

#include "ops/array/array.h"

/* Notes that source i was written for good. Values that were computed from its old numbers are
 * recognised by the time at which they were recorded. */
void cot__note_assign(cot_tape *t, uint32_t i, cot__assigner who);
/* The same for a source whose storage was told already. */
void cot__note_time(cot_tape *t, uint32_t i, cot__assigner who);
/* Sets source i to these numbers, row-major, rounded to its dtype. */
cot_status cot__assign_doubles(cot_tape *t, uint32_t i, const double *x);
/* Is v valid as a rate or a decay of an optimiser? */
static inline bool cot__is_rate(double v) { return v >= 0 && isfinite(v); }

/* ---- what an optimiser is told --------------------------------------------------------------- */

/* The options with what was left out. */
cot_optim_options cot__optim_defaults(cot_optim_options o);
/* Are the numbers in their ranges? Otherwise sets the error of `op`. The rate and the schedule are
 * not looked at. */
bool cot__optim_check(cot_tape *t, const char *op, const cot_optim_options *o);
/* Which states there are beside each weight: bit k for COT__MEAN and so on. */
unsigned cot__optim_keeps(const cot_optim_options *o);
/* Scale and decay of a group; sets the error of `op` if there is no such. */
bool cot__optim_group(cot_tape *t, const char *op, const cot_optim_options *o, int group, cot_optim_group *out);
/* "m", "v", "momentum", "average" */
extern const char *const cot__state_names[COT__STATES];

/* ---- steps ----------------------------------------------------------------------------------- */

/* The factors of a step; the caller adds states. `rate` has the scale of the group in it. */
cot__update cot__update_of(const cot_optim_options *o, double rate, double decay, int64_t step);
/* Is x a leaf of f32 or f64 on t? Otherwise sets the error of `op`, where "WHAT[k]" or, with k
 * below 0, WHAT is the leaf. */
bool cot__weight(cot_tape *t, const char *op, const char *what, int k, cot_var x, uint32_t *i);
/* Does the step of leaf i by u, whose states are memory of the host; without a gradient only the
 * average follows. False after a failure. */
bool cot__update_leaf(cot_tape *t, const char *op, uint32_t i, cot__update *u, cot__assigner who);
/* w - rate · g, recorded. */
cot_var cot__descended(cot_var w, double rate, cot_var g);

#endif
