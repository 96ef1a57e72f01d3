/* kinks.h: sentences about operations that sit exactly where they have no derivative; and the
 * `kinks` functions for records of structural operations. */
#ifndef COT_OPS_KINKS_H
#define COT_OPS_KINKS_H

#include "base/text.h"
#include "tape/tape.h"

typedef struct cot__findings {
    cot__text       x;
    cot_tape       *t;
    char            where[80]; /* put before each sentence: "", or the loop and its step */
    int             found;
    /* what is looked at: the operation on its operands and results, all with elements; and its
     * node, by which sentences call it, COT__NONE: it is in a program */
    const cot__job *j;
    uint32_t        node;
} cot__findings;

/* Begins a new sentence, about node i; and adds " at [0,1] and 2 more of 4 elements". */
void cot__finding_begin(cot__findings *r, uint32_t i);
void cot__finding_where(cot__findings *r, const cot__view *v, int64_t first, int64_t count);
/* Begins one about the operation that is looked at. */
void cot__kink_begin(cot__findings *r);

/* Are there kinks of this operation? */
bool cot__can_kink(int op);
/* The kinks that the operation r->j sits on. Results are row-major. */
enum { COT__KINK_OPERANDS = 3 }; /* of an operation that can kink, at most */
void cot__kinks_of(cot__findings *r);

/* For records:
 *   _norm      a norm of 0
 *   _extreme   extremes that several elements reach
 *   _order     places along an axis that were chosen between equals, by argsort and cumargmax
 *   _pool      windows of a pool with several largest elements */
void cot__norm_kinks(cot__findings *r);
void cot__extreme_kinks(cot__findings *r);
void cot__order_kinks(cot__findings *r);
void cot__pool_kinks(cot__findings *r);

/* ---- watched operations (watch.c) ------------------------------------------------------------ */

/* Records an operation that looks, whenever it runs, whether the operation of node i sits on a
 * kink, and refuses if so. It does not look now: the values are examples. */
bool cot__watch(cot_tape *t, const char *op, uint32_t i);
/* Records `watch` with these operands and attributes. In a body it does not look. */
cot_var cot__watch_again(cot_tape *t, const char *op, int n, const uint32_t *args, cot__attr *attr);
/* Which operand of a node `watch` is the first result of what it watches. */
int cot__watched_operand(const cot__node *watch);
/* The refusal, which goes on with what was found. */
#define COT__KINK_REFUSED "a derivative at a point without one was refused, as this tape was asked to: "

#endif
