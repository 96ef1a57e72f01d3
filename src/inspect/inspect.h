/* inspect.h: looking at tapes and derivatives: checks against differences, explanations, reports,
 * printed sweeps; the parts of an explanation.
 *
 * May call: base, rules, backend, tape, ops, diff. Must not touch: anything for good. Code that
 * looks at a tape leaves it as it was. */
#ifndef COT_EXPLAIN_H
#define COT_EXPLAIN_H

#include "diff/engine/kept_adjoints.h"
#include "tape/show.h"

/* Tells why the value of y is not finite. Returns 0 when it is finite. */
int cot__explain_value(cot__text *x, cot_tape *t, uint32_t y);
/* Tells which leaves get a gradient from y that is zero or not finite, and why. */
int cot__explain_gradient(cot__text *x, cot_tape *t, uint32_t y);

/* Writes the values that a rule reads (a save mask) with their names: "x = -1, %4 = 0". They are
 * read at one element or, with index < 0, as whole values. `before` is written before the first, if
 * there is one. */
void cot__show_reads(cot__text *x, const cot_tape *t, uint32_t node, uint32_t mask, const char *before, int64_t index);

#endif
