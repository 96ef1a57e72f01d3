/* recorded.h: derivatives that are recorded, so that they can be differentiated again (gradient.c,
 * forward.c). */
#ifndef COT_RECORDED_H
#define COT_RECORDED_H

#include "tape/tape.h"

/* Recorded reverse sweep: the gradients of Σ <seeds[k], ys[k]> with respect to xs, all of them
 * indices. A y that does not depend on any x counts for nothing. */
cot_status cot__vjp_recorded(cot_tape *t, const char *op, int m, const uint32_t *ys, const cot_var *seeds, int n,
                             const uint32_t *xs, cot_var *grads);
/* The same, telling which xs have no adjoint, and so zeros. */
cot_status cot__vjp_recorded_to(cot_tape *t, const char *op, int m, const uint32_t *ys, const cot_var *seeds, int n,
                                const uint32_t *xs, cot_var *grads, bool *absent);
/* Recorded forward sweep: the tangents of ys when xs (parameters, leaves, any values) move by dxs,
 * shaped like them. A tangent that is zero is recorded as zeros for float ys, and invalid for
 * others. */
cot_status cot__jvp_recorded(cot_tape *t, const char *op, int m, const uint32_t *ys, int n, const uint32_t *xs,
                             const uint32_t *dxs, cot_var *dys);
cot_status cot__grad_recorded(cot_tape *t, const char *op, uint32_t y, cot_var seed, int n, const uint32_t *xs,
                              cot_var *grads);

/* v, a derivative that was recorded, as the user gets it: not a seed or tangent itself, which are
 * older than node `from`, where the sweep began; and, in a no-grad scope, without a gradient: rules
 * that differentiate bodies record some even there. */
cot_var cot__as_recorded(cot_tape *t, uint32_t from, cot_var v);

/* cot_grad_of and cot_vjp (given: the seed, or NULL) under the name of the function that the user
 * called. */
cot_status cot__grad_of(const char *op, cot_var y, const cot_var *given, int n, const cot_var *xs, cot_var *grads);

/* cot_fn_vjp by floats, which tells what has no adjoint, too (functions/functions.c). */
cot_status cot__fn_vjp(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys, const cot_var *seeds,
                       cot_var *grads, bool *absent);

#endif
