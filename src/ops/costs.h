/* costs.h: what the values of structural operations cost, counted from their records and sizes. */
#ifndef COT_COSTS_H
#define COT_COSTS_H

#include "tape/tape.h"

/* Operations of the value of a structural node: the sum of what its record states. */
double cot__cost_of_value(const cot_tape *t, uint32_t node);

/* What a record's cost.more is made of. Elements of operand k, 0 when there is none; the extent of
 * an axis of it, from the end when negative, 1 when there is no such axis. */
double cot__operand_size(const cot_tape *t, uint32_t node, int k);
double cot__operand_extent(const cot_tape *t, uint32_t node, int k, int axis);
/* How often n things can be halved, at least once. */
double cot__halvings(double n);

#endif
