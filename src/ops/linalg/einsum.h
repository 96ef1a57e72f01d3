/* einsum.h: a sum of products as data: which label each axis of each operand has, and which labels
 * the result keeps.
 *
 * einsum_parse.c makes it from subscripts, einsum_plan.c says which two terms to multiply next,
 * einsum.c does it in recorded operations. */
#ifndef COT_EINSUM_H
#define COT_EINSUM_H

#include "ops/structural.h"

enum { COT__MAX_LABELS = 64 }; /* so that a set of labels is one word */

/* A factor: an operand, or the product of some. After its preparation no label repeats within
 * it. */
typedef struct cot__einsum_term {
    cot_var  x;
    int      ndim;
    uint8_t  label[COT_MAX_NDIM]; /* of each axis */
    uint64_t set;                 /* the labels it has */
} cot__einsum_term;

typedef struct cot__einsum {
    cot_tape   *t;
    const char *op;                      /* for messages */
    int         n;                       /* terms left to multiply */
    cot__einsum_term  *terms;
    int         labels;
    char        name[COT__MAX_LABELS];   /* the letter, or '.' for an axis under "..." */
    int64_t     extent[COT__MAX_LABELS]; /* over all operands; the one that is not 1 */
    cot__einsum_term   out;                     /* x unused: the axes of the result */
} cot__einsum;

/* Fills labels, extents and out from subscripts; terms have their x and ndim already. False after
 * setting the error. */
bool cot__einsum_parse(cot__einsum *e, const char *subscripts);

/* The two terms, i < j, to multiply next. */
void cot__einsum_pick(const cot__einsum *e, int *i, int *j);

/* Multiplies all terms and sums over every label that out does not have. */
cot_var cot__einsum_run(cot__einsum *e);

static inline uint64_t cot__label_bit(int label) { return UINT64_C(1) << label; }

#endif
