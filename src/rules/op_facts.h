/* op_facts.h: the facts that the record of an operation (cot__op in record.h) states beside its
 * rules. Without them other files would keep lists of single operations. */
#ifndef COT_OP_FACTS_H
#define COT_OP_FACTS_H

#include "base/base.h"

/* The cost of the value of a structural operation, in operations (trace/cost/cost.h says what
 * counts as one). It is the sum of these parts. */
typedef struct cot__op_cost {
    const char *none;   /* why it costs nothing: "moves data"; the others are then 0 */
    double      each_x; /* for each element of the first operand */
    double      each_z; /* for each element of the result */
    /* for each element of the result, times the last extent of the first operand: matrix
     * products */
    double      each_inner;
    /* for rows · columns · the smaller of both, of each matrix of the first operand:
     * factorisations */
    double      each_cube;
    double (*more)(const cot_tape *t, uint32_t node); /* all that the other parts cannot express */
    /* all of it, of an operation that no tape has */
    double (*planned)(const struct cot__attr *a);
} cot__op_cost;

enum { COT__CHOOSES_NOTHING, COT__CHOOSES_ON_AXIS, COT__CHOOSES_IN_WINDOW };

/* For a linear operation that takes elements from positions, or adds them to positions, that are
 * one of its operands; and for a generic one that finds them itself, and is linear once they stand.
 * At other inputs the positions may differ. */
typedef struct cot__op_choice {
    /* NOTHING: no positions; ON_AXIS: the axis is the first attribute; IN_WINDOW: as in
     * ops/nn/pool.c */
    uint8_t from;
    bool along; /* on an axis: each row has its own positions, as in take_along_axis */
    bool puts;  /* adds elements at the positions, instead of taking them */
} cot__op_choice;

/* An operation in place has its result in the memory of operand 0. A slice of it (attributes axis,
 * first, length, step) gets operand 1 added, or is set to it. */
typedef enum cot__op_write { COT__WRITES_NOTHING, COT__ADDS_SLICE, COT__SETS_SLICE } cot__op_write;

#endif
