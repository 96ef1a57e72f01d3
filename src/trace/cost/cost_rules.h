/* cost_rules.h: the cost of one node in a sweep, counted from its own rule. */
#ifndef COT_COST_RULES_H
#define COT_COST_RULES_H

#include "ops/elementwise/elementwise.h"

/* The number of operations in a formula: its words. */
int64_t cot__cost_of_tree(const cot__tree *tree);

/* The values that the backward rule of a node reads: cot__saved_mask, and the operands that are not
 * checked for overwriting. */
uint32_t cot__values_read(const cot_tape *t, uint32_t node);

/* Does the value of a node lie in the memory of one of its operands? */
bool cot__shares_storage(const cot_tape *t, uint32_t node, uint32_t *with);

/* One byte for each node: does its adjoint (tangent) matter? And, in reverse: has anything been
 * added to it? */
typedef struct cot__cost_sweep {
    cot_tape      *t;
    const uint8_t *matters;
    uint8_t       *arrived; /* reverse: 1 if something has arrived, else 0 */
    double         operations;
} cot__cost_sweep;

/* Adds the cost of the backward (forward) rule of a node. A structural rule runs and records
 * operations, which are counted and forgotten. False when an error is on the tape. */
bool cot__cost_backward(cot__cost_sweep *s, uint32_t node);
bool cot__cost_forward(cot__cost_sweep *s, uint32_t node);

#endif
