/* sparse.h: sparse matrices in compressed rows. Their public functions are declared in
 * cotangent_sparse.h; here stand the operations that they record.
 *
 * All take the pattern of a matrix as their last operand, a vector of i32:
 *
 *     starts (rows + 1), columns (entries), and of the transposed matrix
 *     starts (columns + 1), columns (entries), order (entries): which entry of this one each is
 *
 * Products and samples are each other's derivatives, so every order is one of the two again, and
 * nothing but arrays of entries and dense operands is ever made.
 *
 * May call: base, rules, backend, tape, the other operations. Must not touch: sweeps. */
#ifndef COT_SPARSE_MATRICES_H
#define COT_SPARSE_MATRICES_H

#include "ops/structural.h"

/* a x or aᵀ x for values (…, entries) and x (…, columns or rows, k), with equal leading axes and
 * dtypes. */
cot_var cot__csr_product(const char *op, cot_var values, cot_var x, cot_var pattern, bool transposed);
/* (…, entries): x yᵀ at the places of the pattern. */
cot_var cot__csr_samples(const char *op, cot_var x, cot_var y, cot_var pattern);
/* Softmax over rows, of which there are so many. */
cot_var cot__csr_weights(const char *op, cot_var values, cot_var pattern, int64_t rows);
/* One column of ones, n rows, behind the leading axes of `like` (all but its last `drop`); no
 * memory. */
cot_var cot__csr_ones(cot_var like, int drop, int64_t n);

#endif
