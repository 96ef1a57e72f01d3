/* costs.h: the cost of values of structural operations, from their records and sizes. */
#ifndef COT_COSTS_H
#define COT_COSTS_H

#include "tape/tape.h"

/* The number of operations for the value of a structural node: the sum that its record states. */
double cot__cost_of_value(const cot_tape *t, uint32_t node);

/* For cost.more of records. The number of elements of operand k, 0 if there is none. The extent of
 * one of its axes, from the end if negative, 1 if there is no such axis. */
double cot__operand_size(const cot_tape *t, uint32_t node, int k);
double cot__operand_extent(const cot_tape *t, uint32_t node, int k, int axis);
/* How often n can be halved, at least once. */
double cot__halvings(double n);

#endif
