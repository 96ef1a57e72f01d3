/* cost_rules.h: what one node costs in a sweep, counted from its own rule. */
#ifndef COT_COST_RULES_H
#define COT_COST_RULES_H

#include "ops/elementwise/elementwise.h"

/* Operations of a formula: its words. */
int64_t cot__cost_of_tree(const cot__tree *tree);

/* The values that the backward rule of a node reads: cot__saved_mask, and the operands that need no
 * watch. */
uint32_t cot__values_read(const cot_tape *t, uint32_t node);

/* Does a node lie in the memory of one of its operands? */
bool cot__shares_storage(const cot_tape *t, uint32_t node, uint32_t *with);

/* A byte a node: does its adjoint (tangent) matter? And, in reverse, how often something has been
 * added to it. */
typedef struct cot__cost_sweep {
    cot_tape      *t;
    const uint8_t *matters;
    uint8_t       *arrived; /* reverse: 0, or 1 when something has */
    double         operations;
} cot__cost_sweep;

/* Adds what the backward (forward) rule of a node costs. A structural rule runs, in recorded
 * operations that are counted and forgotten. False when an error is on the tape. */
bool cot__cost_backward(cot__cost_sweep *s, uint32_t node);
bool cot__cost_forward(cot__cost_sweep *s, uint32_t node);

#endif
