/* sparse.h: the inside of a plan for sparse derivatives. Nothing in it changes after cot__plan_finish. */
#ifndef COT_SPARSE_H
#define COT_SPARSE_H

#include "diff/colour.h"

struct cot_sparse_plan {
    cot_allocator al;
    bool          hessian, forward;
    cot__csr      pattern;
    int32_t       colours;
    int32_t      *colour; /* of columns (forward) or rows */
    /* Which entry is read off which product: those of colour c are entry_start[c] … entry_start[c + 1] - 1; values[entry[k]] =
     * element source[k] of product c. */
    int64_t *entry_start;
    int64_t *entry;
    int32_t *source;
};

static inline int64_t cot__plan_coloured(const cot_sparse_plan *p) { return p->forward ? p->pattern.cols : p->pattern.rows; }

/* An empty plan on an allocator; NULL when memory is short. */
cot_sparse_plan *cot__plan_create(const cot_allocator *al);

typedef enum cot__plan_verdict { COT__PLAN_FINE, COT__PLAN_MEMORY, COT__PLAN_MIXES } cot__plan_verdict;
/* Fills the lists from pattern and colours. MIXES: two entries of one product would fall on one element, and neither could be
 * read. */
cot__plan_verdict cot__plan_finish(cot_sparse_plan *p);

#endif
