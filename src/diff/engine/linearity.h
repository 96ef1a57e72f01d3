/* linearity.h: is what was recorded linear in some of its nodes? Told from the records of its
 * operations and the bodies of its loops, not from values. */
#ifndef COT_LINEARITY_H
#define COT_LINEARITY_H

#include "tape/tape.h"

/* Does node y depend linearly on the nodes `from`, of which there is at least one? *curved becomes a
 * node that does not, or COT__NONE. What other functions of the user's than the bodies of loops make
 * of their operands counts as linear. False: out of memory; no error is set. */
bool cot__find_curved(const cot_tape *t, int n, const uint32_t *from, uint32_t y, uint32_t *curved);

#endif
