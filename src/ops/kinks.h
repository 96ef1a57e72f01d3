/* kinks.h: sentences about operations that sit exactly where they have no derivative; and the
 * `kinks` functions for records of structural operations. */
#ifndef COT_OPS_KINKS_H
#define COT_OPS_KINKS_H

#include "base/text.h"
#include "tape/tape.h"

typedef struct cot__findings {
    cot__text x;
    cot_tape *t;
    char      where[80]; /* put before each sentence: "", or the loop and its step */
    int       found;
} cot__findings;

/* Begins a new sentence, about node i; and adds " at [0,1] and 2 more of 4 elements". */
void cot__finding_begin(cot__findings *r, uint32_t i);
void cot__finding_where(cot__findings *r, const cot__view *v, int64_t first, int64_t count);

/* For records:
 *   _norm      a norm of 0
 *   _extreme   extremes that several elements reach
 *   _order     places along an axis that were chosen between equals, by argsort and cumargmax
 *   _pool      windows of a pool with several largest elements */
void cot__norm_kinks(cot__findings *r, uint32_t i);
void cot__extreme_kinks(cot__findings *r, uint32_t i);
void cot__order_kinks(cot__findings *r, uint32_t i);
void cot__pool_kinks(cot__findings *r, uint32_t i);

#endif
