/* elementwise.h: recording elementwise operations: from vars, from numbers, from trees, in place.
 *
 * May call: base, rules, backend, tape, the checks of structural.h. Must not touch: sweeps,
 * slots and adjoints. */
#ifndef COT_ELEMENTWISE_H
#define COT_ELEMENTWISE_H

#include "backend/backend.h"
#include "rules/elementwise_table.h"
#include "tape/tape.h"

/* The operation on plain numbers alone, done in a compute type (I64: all are integers). */
cot_var cot__fold(int op, cot_dtype compute, int n, const cot_var *xs);
/* The public function of an operation, by number. */
cot_var cot__call(int op, const cot_var *xs);
/* Records the tree on the tape with these operands; numbers fold into numbers. */
cot_var cot__tree_record(cot_tape *t, const cot__tree *tree, const cot_var *xs, cot_var z, cot_var g);

/* Does x op y into x's own storage; see cot_add_into. */
cot_status cot__elementwise_into(int op, cot_var *x, cot_var y);

#endif
