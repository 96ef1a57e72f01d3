/* linalg.h: what the files of linear algebra share: entering matrices, notes about single matrices,
 * triangles, broadcast batches.
 *
 * A factorisation is one operation whose factors are its results. Its rule sees all adjoints at
 * once; those of results that nobody used are 0.
 *
 * May call: base, rules, backend, tape, elementwise and array operations. Must not touch:
 * sweeps, slots and adjoints. */
#ifndef COT_LINALG_H
#define COT_LINALG_H

#include "ops/structural.h"

/* Enters a batch of matrices, in f64 or f32; square: the last two axes must be equal. *dtype is the
 * one that results get back (cot_cast): a's, or f64 for integers. NULL after a failure. */
cot_tape *cot__enter_matrix(const char *op, cot_var a, bool square, uint32_t *index, cot_dtype *dtype);
/* Enters two in one such dtype: square a, or any. b may be a vector, and becomes a column
 * (*vector); its rows must be those that fit: a's rows, or (right) b's columns a's rows. Leading
 * axes are left as they are. */
cot_tape *cot__enter_system(const char *op, cot_var *a, cot_var *b, bool square, bool right, bool *vector,
                            cot_dtype *dtype);
/* Both with the leading axes that they have in common. False after setting the error. */
bool cot__broadcast_batches(cot_tape *t, const char *op, cot_var *a, cot_var *b);
/* x with other leading axes, n of them; the last `tail` stay. */
cot_var cot__with_leading(cot_var x, int tail, int n, const int64_t *leading);

/* s with its last two extents replaced; s itself where it has no two axes, as that of a var that
 * failed. */
static inline cot_shape cot__matrices(cot_shape s, int64_t rows, int64_t columns) {
    if (s.ndim < 2) return s;
    s.dim[s.ndim - 2] = rows;
    s.dim[s.ndim - 1] = columns;
    return s;
}
static inline int64_t cot__rows_of(const cot_shape *s) { return cot__extent_back(s, 2); }
static inline int64_t cot__columns_of(const cot_shape *s) { return cot__extent_back(s, 1); }

/* For `infer`: is operand k a batch of matrices, f64 or f32? */
bool cot__job_matrix(const cot__job *j, int k, bool square);
/* Has operand k the leading axes of the matrices `of`, and then these extents, `tail` of them? */
bool cot__job_beside(const cot__job *j, int k, int of, int tail, const int64_t *extent);

/* What is said of matrices of a batch, found[0] of them, the first of which is number found[1]:
 * "[op] matrix [2] of 5 <is what>; <consequence>". The second is what a `tell` is made of. */
void    cot__note_matrices(const cot__caller *c, const cot_shape *batch, const int64_t found[2], const char *what,
                           const char *consequence);
void    cot__tell_matrices(const cot__job *j, const int64_t found[2], const char *what, const char *consequence);
cot_var cot__lin_no_memory(cot_tape *t, const char *op);

/* x with zeros outside a triangle of its last two axes: elements [i,j] with j <= i + offset stay
 * (lower), or j >= i + offset. */
cot_var cot__lower(cot_var x, int offset);
cot_var cot__upper(cot_var x, int offset);
/* Zeros but for x (…,n) on the diagonal of (…,n,n). */
cot_var cot__diagonal(cot_var x);
/* (x + xᵀ)/2 */
cot_var cot__symmetrised(cot_var x);

/* The derivative of det a (…,n,n), also where that is 0; its own derivative needs a⁻¹. */
cot_var cot__cofactors(cot_var a);

/* Matrices among whose values (…,n), the second result of eigh or svd, neighbours are equal or
 * (zero) one is 0: how many, and the first. */
int64_t cot__count_ties(const cot__backend *b, const cot__view *values, bool zero, double slack, int64_t *first);
/* Leaves a note if node i has any. */
void cot__note_ties(cot_tape *t, const char *op, uint32_t i, bool zero);

#endif
