/* sparsity.h: which inputs each element of a value depends on, found from the tape by the kinds of its operations. */
#ifndef COT_SPARSITY_H
#define COT_SPARSITY_H

#include "diff/sets.h"
#include "diff/sweep.h"

/* Sets of the elements of a tensor. */
typedef struct cot__set_array {
    cot__set *sets;
    int64_t   size;
} cot__set_array;

typedef struct cot__patterns {
    cot_tape       *t;
    const char     *op; /* who asks, for messages */
    cot__sets       sets;
    uint32_t        lo, count; /* nodes lo … lo + count - 1 */
    uint8_t        *needed;    /* by node: do the results depend on it? */
    uint32_t       *of; /* of a scalar node: its set; of a tensor: 1 + its place in arrays, 0: no element depends on anything */
    cot__set_array *arrays;
    int64_t         array_count, array_capacity;
    /* Tensors of element numbers and of random numbers that operations are run on; `probes` elements each, growing. */
    cot_var numbers, noise;
    int64_t probes;
    double *buffer[2];
    int64_t buffer_capacity[2];
} cot__patterns;

/* The set of one element; of an operand that does not depend on the inputs, or is too old to: empty. */
static inline cot__set cot__set_at(const cot__patterns *p, uint32_t node, int64_t element) {
    if (node == COT__NONE || node < p->lo || p->of[node - p->lo] == 0) return 0;
    uint32_t of = p->of[node - p->lo];
    return cot__is_tensor(&p->t->nodes[node]) ? p->arrays[of - 1].sets[element] : of;
}
static inline bool cot__depends(const cot__patterns *p, uint32_t node) {
    return node != COT__NONE && node >= p->lo && p->of[node - p->lo] != 0;
}
/* Does operand k of a structural node carry a derivative, and depend on the inputs? */
static inline bool cot__moves(const cot__patterns *p, uint32_t node, int k) {
    const cot__node *n = &p->t->nodes[node];
    return !(k < 32 && cot__op_of(n->op)->inactive >> k & 1) && cot__depends(p, cot__arg(n, k));
}

/* The sets of a node's elements, empty at first; NULL after setting the error. For a scalar: its place in `of`. */
cot__set *cot__sets_at(cot__patterns *p, uint32_t node);
static inline void cot__set_add(cot__patterns *p, cot__set *to, cot__set from) {
    if (from) *to = cot__set_union(&p->sets, *to, from);
}

/* z's sets |= the union of x's over all axes but the shared ones: axis x_axis[k] of operand x is axis z_axis[k] of node z. */
bool cot__contract(cot__patterns *p, uint32_t z, uint32_t x, int shared, const int *x_axis, const int *z_axis);
/* A node whose derivative does not depend on values, or of kind bilinear: what goes where is found by running it. False after
 * setting the error. */
bool cot__linear_pattern(cot__patterns *p, uint32_t node);

/* The pattern of the elements of ys (all of them in order, row-major) with respect to those of xs: compressed rows in the memory
 * of `al`, columns ascending. False after setting the error; then nothing is kept. */
typedef struct cot__csr {
    int64_t  rows, cols, nnz;
    int64_t *row_start; /* rows + 1 */
    int32_t *col;       /* nnz */
} cot__csr;
bool cot__sparsity(const char *op, cot_tape *t, const cot_allocator *al, int m, const cot_var *ys, int n, const cot_var *xs,
                   cot__csr *out);
void cot__csr_free(const cot_allocator *al, cot__csr *c);

#endif
