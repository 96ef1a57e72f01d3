/* sparse.h: the inside of a plan for sparse derivatives. A plan does not change after
 * cot__plan_finish.
 *
 * May call: base, rules, backend, tape, ops, the engine, second derivatives, products, functions,
 * loops. Must not touch: the inside of a sweep. */
#ifndef COT_SPARSE_H
#define COT_SPARSE_H

#include "diff/sparse/colour.h"

struct cot_sparse_plan {
    cot_allocator al;
    bool          hessian, forward;
    cot__csr      pattern;
    int32_t       colours;
    int32_t      *colour; /* of columns (forward) or of rows (reverse) */
    /* The lists that say which entry is read off which product. Colours are taken in groups of
     * `lanes`; the last group may have fewer. Group g has the numbers k = entry_start[g] …
     * entry_start[g + 1] - 1:
     *
     *     values[entry[k]] = element source[k] of product lane[k] of the group
     *
     * With one group entry[k] is k, and `entry` is NULL. */
    int32_t   lanes;
    int64_t  *entry_start;
    uint32_t *entry;
    int32_t  *source;
    uint8_t  *lane;
};

static inline int32_t cot__plan_groups(const cot_sparse_plan *p) {
    return p->lanes ? (p->colours + p->lanes - 1) / p->lanes : 0;
}
static inline int64_t cot__plan_coloured(const cot_sparse_plan *p) {
    return p->forward ? p->pattern.cols : p->pattern.rows;
}

/* Makes an empty plan with an allocator. NULL when memory is short. */
cot_sparse_plan *cot__plan_create(const cot_allocator *al);

typedef enum cot__plan_verdict { COT__PLAN_FINE, COT__PLAN_MEMORY, COT__PLAN_MIXES } cot__plan_verdict;
/* Makes the lists from pattern and colours. MIXES: two entries would fall on the same element of a
 * product, and neither could be read. */
cot__plan_verdict cot__plan_finish(cot_sparse_plan *p);

/* Does the plan fit a matrix of this size, and is there an array for the result? Otherwise sets the
 * error. */
bool cot__sparse_fits(const char *op, cot_tape *t, const cot_sparse_plan *p, bool hessian, int64_t rows, int64_t cols,
                      const void *values);

/* The public functions without the prefix. `op` is the public function that the user called, for
 * messages (sparse_plan.c). */
cot_sparse_plan *cot__sparse_jacobian_plan(const char *op, int m, const cot_var *ys, int n, const cot_var *xs,
                                           cot_mode mode);
cot_sparse_plan *cot__sparse_hessian_plan(const char *op, cot_var y, int n, const cot_var *xs);
cot_status       cot__sparse_jacobian(const char *op, const cot_sparse_plan *p, int m, const cot_var *ys, int n,
                                      const cot_var *xs, double *values);
cot_status       cot__sparse_hessian(const char *op, const cot_sparse_plan *p, cot_var y, int n, const cot_var *xs,
                                     double *values);

/* _entries computes all entries of the derivative of ys by xs, for which the plan was made.
 * _collect reads the entries of group g off its products (sparse_sweep.c). */
void cot__sparse_entries(const char *op, cot_tape *t, const cot_sparse_plan *p, int m, const cot_var *ys, int n,
                         const cot_var *xs, double *values);
void cot__sparse_seed(const cot_tape *t, const cot_sparse_plan *p, int32_t colour, int64_t from, const cot__view *to);
void cot__sparse_collect(const cot_tape *t, const cot_sparse_plan *p, int32_t g, const double *const *products,
                         double *values);

#endif
