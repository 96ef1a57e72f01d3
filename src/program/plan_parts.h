/* plan_parts.h: the inside of planning, which plan.c and plan_groups.c share, and what is found in
 * the groups of a plan. */
#ifndef COT_PROGRAM_PLAN_PARTS_H
#define COT_PROGRAM_PLAN_PARTS_H

#include "backend/runs.h"
#include "program/plan.h"
#include "program/memory/ranges.h"

/* Values that a group makes and that may live within its blocks. */
enum { COT__GROUP_PIECES = COT__STAGE_RUNS + COT__STAGE_FOLDS + 1 };

typedef struct cot__planner {
    cot__plan         *plan;
    const cot__program *p;
    const cot__caller *caller;
    cot__view         *x;    /* of the operands of one operation */
    uint32_t           most; /* operands of an operation */
    /* For each root, the last operation that reads it, or p->operations if it is given out. After
     * its memory was given back or taken over: COT__NO_VALUE. */
    uint32_t          *last;
    cot__ranges        ranges;
    cot__lent          lent;
    uint32_t           at; /* the operation that is placed */
    uint32_t          *free_slot; /* slots that can be used again */
    uint32_t           free_slots, free_room, slots;
    /* For each value: 1 + the last group that reads it in another order than its own. */
    uint32_t          *scattered;
    /* Memory of values that live within the blocks of the group that is placed. home: the result
     * that will lie there, or COT__NO_VALUE. whole: every element has its own place there, as it
     * has at home. taken: the bytes of the range, of which threads use a few blocks. */
    struct { int64_t at, bytes, taken; uint32_t home; int element; bool free, whole; } piece[COT__GROUP_PIECES];
    int                pieces;
    /* Bytes in front of a piece, where a part that begins at its first element does elements before
     * its later blocks. */
    int64_t            lead;
    int64_t            room; /* elements of a piece that are enough; 0: all */
    uint32_t           read[COT__STAGE_RUNS]; /* values that members of it have read last */
    int                reads;
} cot__planner;

/* Places the further results of an operation that has several; gives them all back. */
bool cot__plan_take_more(cot__planner *q, uint32_t k);
bool cot__plan_let_results_go(cot__planner *q, uint32_t k);

/* Does the value lie in a slot? */
bool cot__in_slot(const cot__plan *plan, uint32_t v);
/* Has the view all elements of its root, in their order? */
bool cot__plan_is_whole(const cot__planner *q, uint32_t v);
/* Bytes of its elements. */
int64_t cot__planned_bytes(const cot__program *p, uint32_t value);

/* These are false after telling the caller that there is no memory. */
bool cot__plan_take_range(cot__planner *q, int64_t bytes, int64_t *at);
bool cot__plan_give_range(cot__planner *q, int64_t at, int64_t bytes);
bool cot__plan_take_memory(cot__planner *q, uint32_t v);
/* Gives back the memory of a root that operation k reads last, once; of all its operands. */
bool cot__plan_let_go(cot__planner *q, uint32_t root, uint32_t k);
bool cot__plan_let_operands_go(cot__planner *q, uint32_t k);

/* Does a direct output lie in the caller's memory alone? */
bool cot__plan_is_callers(const cot__planner *q, uint32_t v);

/* The result of operation k lies where its operand i lies, if it may. */
bool cot__plan_take_over(cot__planner *q, uint32_t k, int i);

/* Does member k of a group make, or read, more of its arrays for a block than the block? */
bool cot__plan_does_more(const cot__planner *q, uint32_t k);
/* Does it read more of them, as a product does? */
bool cot__plan_reads_more(const cot__planner *q, uint32_t k);
/* Elements of which a group has those that live within its blocks; 0: of all. */
int64_t cot__group_room(const cot__plan *plan, const cot__group *g);
/* Places the results of a group (plan_groups.c). */
bool cot__plan_group(cot__planner *q, uint32_t group);

/* ---- partials (partials.c) ------------------------------------------------------------------- */

/* What a partial may read: the operands of the operation, its result, and what it is multiplied
 * with. */
enum { COT__PARTIAL_Z = 3, COT__PARTIAL_G, COT__PARTIAL_READS };
/* Members of the shortest, and how many a group has at most. */
enum { COT__SHORTEST_PARTIAL = 2, COT__MOST_PARTIALS = COT__STAGE_RUNS / COT__SHORTEST_PARTIAL };

/* Partial k of `op` at x, instead of the members from `first` to `last`, whose result it gives. */
typedef struct cot__partial {
    uint32_t first, last;
    int      op, k;
    uint32_t x[COT__PARTIAL_READS]; /* values; COT__NO_VALUE: not read */
} cot__partial;

/* All of a group, the last one first. Returns how many there are. */
int cot__find_partials(const cot__plan *plan, const cot__group *g, cot__partial *found);

#endif
