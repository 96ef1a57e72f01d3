/* op_facts.h: what the record of an operation (cot__op in tape.h) states besides its rules: facts
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

#endif
