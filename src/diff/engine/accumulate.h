/* accumulate.h: the slots of a sweep, the accumulators of tensors behind them, and what arrives at
 * leaves (accumulate.c, leaf_gradients.c). sweep.h says what a slot holds. */
#ifndef COT_ACCUMULATE_H
#define COT_ACCUMULATE_H

#include "diff/engine/sweep.h"

/* Slots for nodes 0 … top, `lanes` wide; zeroed. False after setting the error. */
bool cot__slots(cot_tape *t, uint32_t top, int lanes, const char *op);
typedef uint64_t cot__slot_bits __attribute__((may_alias)); /* slots are seen with several types */
typedef double   cot__slot_number __attribute__((may_alias));
static inline cot__slot_bits   *cot__slot(cot_tape *t, uint32_t i) {
    return (cot__slot_bits *)t->sweep.adjoints.data + i;
}
static inline cot__slot_number *cot__slot_f64(cot_tape *t, uint32_t i) {
    return (cot__slot_number *)t->sweep.adjoints.data + i;
}
/* The number in a scalar node's slot, and adding to it, whatever its dtype. */
double cot__slot_get(cot_tape *t, uint32_t i);
void   cot__slot_add(cot_tape *t, uint32_t i, double v);

/* Accumulators (numbers, tensors). What is bound is valid until the next push. */
cot__bound cot__acc_bound(cot__sweep *s, uint32_t node, int64_t *stride_buffer);
bool       cot__acc_share(cot__sweep *s, uint32_t node, cot__storage *storage, int64_t offset, const int64_t *stride);
/* row-major memory of its own */
bool       cot__acc_own(cot__sweep *s, uint32_t node, bool zeros_if_empty);
/* += v, which is shaped like the node */
bool       cot__acc_add(cot__sweep *s, uint32_t node, const cot__bound *v);
void       cot__acc_drop(cot__sweep *s, uint32_t node);
/* the adjoint in the slot arrives, and stays there (a reference for tensors) */
bool       cot__arrive(cot__sweep *s, uint32_t node);
/* the arrival at a node; NULL: none */
cot__arrival *cot__arrival_at(const cot__sweep *s, uint32_t node);
/* Every tensor that arrived gets memory of its own first, so that adding to gradients cannot fail
 * half way. */
bool cot__own_arrivals(cot__sweep *s);
/* Adds what arrived to the gradients of leaves and retained values. */
void cot__commit_arrivals(cot__sweep *s);
/* Frees all; zeroes the slots lo … top unless the sweep has consumed them already. */
void cot__sweep_close(cot__sweep *s, bool consumed);

#endif
