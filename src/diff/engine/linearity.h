/* linearity.h: is what was recorded linear in some of its nodes? Told from the records of its
 * operations and the bodies of its loops, not from values. */
#ifndef COT_LINEARITY_H
#define COT_LINEARITY_H

#include "diff/engine/sweep.h"
#include "tape/region.h"

/* Does node y depend linearly on the nodes `from`, of which there is at least one? *curved becomes
 * a node that does not, or COT__NONE. What functions of the user's make of their operands counts as
 * linear, unless a record looks closer. False: out of memory; no error is set. */
bool cot__find_curved(const cot_tape *t, int n, const uint32_t *from, uint32_t y, uint32_t *curved);

/* ---- for records that look closer (cot__op.depends) ------------------------------------------ */

enum { COT__DEPENDS_NOT, COT__DEPENDS_LINEARLY, COT__DEPENDS_OTHERWISE };

/* Where it is found how the operands of a node depend: among the nodes from `first` on, or, in a
 * body, by the refs of its program. */
typedef struct cot__places {
    const cot_tape *t;
    const uint8_t  *how;
    uint32_t        first;
    const uint64_t *ref;    /* NULL: not in a body */
    bool           *failed; /* set where memory is short */
} cot__places;
uint8_t cot__operand_depends(const cot__places *p, const cot__node *n, int k);
uint8_t cot__node_depends(const cot__places *p, uint32_t node);

#endif
