/* second.h: second derivatives: Hessian-vector products over scalars, inputs that can be moved
 * alone, and dead values of a recorded gradient.
 *
 * May call: base, rules, backend, tape, ops, the engine. Must not touch: how a sweep runs. */
#ifndef COT_SECOND_H
#define COT_SECOND_H

#include "diff/engine/sweep.h"
#include "pending/pending.h"

/* Can each of the xs, which are valid, be moved alone, as second derivatives need? Otherwise sets
 * the error. (second_order_inputs.c) */
bool cot__check_second_order_inputs(cot_tape *t, const char *op, int n, const cot_var *xs);

/* Hessian-vector products in numbers. They apply if every active node from lo to y is an f64
 * scalar. */
bool cot__hvp_applies(const cot_tape *t, uint32_t lo, uint32_t y);
bool cot__hvp_scalars(cot_tape *t, uint32_t y, int n, const uint32_t *xs, uint32_t lo, const double *v, double *out);
/* The same for `used` directions, at most four: v and out are (used, n). Applies to fewer
 * operations: elementwise ones, sum_of and dot_of. */
bool cot__hvp_lanes_apply(const cot_tape *t, uint32_t lo, uint32_t y);
bool cot__hvp_lanes(cot_tape *t, uint32_t y, int n, const uint32_t *xs, uint32_t lo, int used, const double *v,
                    double *out);

/* Waiting work that computes values which tangents in numbers do not read is not done. It is meant
 * for a gradient that was recorded between cot__pending_open and _close, that will be
 * differentiated and rewound; since, from: the tape's counts of storages and of nodes before it. */
void cot__drop_dead_values(cot_tape *t, uint32_t since, uint32_t from);

#endif
