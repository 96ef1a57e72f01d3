/* kinks.h: sentences about operations that sit exactly where they have no derivative, and those of
 * structural operations: the `kinks` of their records. */
#ifndef COT_OPS_KINKS_H
#define COT_OPS_KINKS_H

#include "base/text.h"
#include "tape/tape.h"

typedef struct cot__findings {
    cot__text x;
    cot_tape *t;
    char      where[80]; /* said before each: "" or the loop whose step it is about */
    int       found;
} cot__findings;

/* A new sentence, about node i; and " at [0,1] and 2 more of 4 elements". */
void cot__finding_begin(cot__findings *r, uint32_t i);
void cot__finding_where(cot__findings *r, const cot__view *v, int64_t first, int64_t count);

/* For records: a norm of 0; extremes that several elements reach; places along an axis that were
 * chosen between equals, by argsort (in order) and cumargmax; windows of a pool with several
 * largest elements. */
void cot__norm_kinks(cot__findings *r, uint32_t i);
void cot__extreme_kinks(cot__findings *r, uint32_t i);
void cot__order_kinks(cot__findings *r, uint32_t i);
void cot__pool_kinks(cot__findings *r, uint32_t i);

#endif
