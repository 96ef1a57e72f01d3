/* op_facts.h: what the record of an operation (cot__op in record.h) states besides its rules: facts
 * about one operation that others would otherwise keep in lists of their own. */
#ifndef COT_OP_FACTS_H
#define COT_OP_FACTS_H

#include "base/base.h"

/* What the value of a structural operation costs, in operations (trace/cost/cost.h says what counts
 * as one): the sum of these parts. */
typedef struct cot__op_cost {
    const char *none;   /* why it costs nothing: "moves data"; the others are then 0 */
    double      each_x; /* for each element of the first operand */
    double      each_z; /* … of the result */
    /* … of the result, times the last extent of the first operand: products with matrices */
    double      each_inner;
    /* for rows · columns · the smaller of both, of each matrix of the first operand:
     * factorisations */
    double      each_cube;
    double (*more)(const cot_tape *t, uint32_t node); /* what the others cannot say */
} cot__op_cost;

/* Where a linear operation takes elements from, or puts them to, by positions that are one of its
 * operands: at other inputs these may be others. */
typedef struct cot__op_choice {
    /* nowhere; on the axis that is its first attribute; in windows as in ops/nn/pool.c */
    enum { COT__CHOOSES_NOTHING, COT__CHOOSES_ON_AXIS, COT__CHOOSES_IN_WINDOW } from;
    bool along; /* on an axis: each row by positions of its own, as take_along_axis does */
    bool puts;  /* adds elements there, instead of taking them from there */
} cot__op_choice;

/* What becomes of the memory of operand 0, in which an operation in place has its result: a slice
 * of it (attributes axis, first, length, step) gets operand 1 added, or is set to it. */
typedef enum cot__op_write { COT__WRITES_NOTHING, COT__ADDS_SLICE, COT__SETS_SLICE } cot__op_write;

#endif
