/* rules.h: the door of src/rules: what an operation is.
 *
 * This folder has the tables (rules.def, ops.def, functions.def, kinks.def) and their meanings:
 * numbers of operations, trees, formulas, save masks, the words that kernels are made of, and the
 * record that every operation fills in. Nothing here knows tapes, memory or devices.
 *
 * May call: base. Must not touch: elements, nodes, anything that runs. */
#ifndef COT_RULES_H
#define COT_RULES_H

#include "rules/elementwise_table.h"
#include "rules/op_numbers.h"
#include "rules/record.h"

#endif
