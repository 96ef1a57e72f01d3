/* partials.h: members of a group that together are the partial of one operation.
 *
 * A derivative is recorded word by word, as its rule is written (rules.def), so the partial of a
 * GELU is fourteen operations; a sweep has one kernel for it. Where all of them stand in a group
 * one after the other, and nobody else reads what they make on the way, that kernel does them at
 * once. It computes the same words in the same order, so the bits are the same. */
#ifndef COT_PROGRAM_PARTIALS_H
#define COT_PROGRAM_PARTIALS_H

#include "program/plan.h"

/* What a partial may read: the operands of the operation, its result, and what it is multiplied
 * with. */
enum { COT__PARTIAL_Z = 3, COT__PARTIAL_G, COT__PARTIAL_READS };
/* Members of the shortest, and how many a group has at most. */
enum { COT__SHORTEST_PARTIAL = 3, COT__MOST_PARTIALS = COT__STAGE_RUNS / COT__SHORTEST_PARTIAL };

/* Partial k of `op` at x, instead of the members from `first` to `last`, whose result it gives. */
typedef struct cot__partial {
    uint32_t first, last;
    int      op, k;
    uint32_t x[COT__PARTIAL_READS]; /* values; COT__NO_VALUE: not read */
} cot__partial;

/* All of a group, the last one first. Returns how many there are. */
int cot__find_partials(const cot__plan *plan, const cot__group *g, cot__partial *found);

#endif
