/* cotangent_sparse.h: sparse matrices in compressed rows, and products with them.
 *
 * A cot_csr is a plain struct: a pattern, which stays, and values, which are a var like any other.
 * So a scaled matrix is the same pattern with other values,
 *
 *     cot_csr b = a;
 *     b.values = cot_mul(0.5, a.values);
 *
 * and cot_vmap runs over values, or dense operands, beside one pattern. Derivatives exist for the
 * values and for the dense operand, in both modes and to every order, in loops, batches and
 * compiled functions, and nothing is made dense on the way: a backward takes memory for the entries
 * and the dense operands. Positions have no derivative.
 *
 * Matrices are made from arrays of the host, which a function that is compiled or a body of a loop
 * may do as well: the pattern is then a constant of the program. Errors stick on the tape, and the
 * struct that is returned has vars that are invalid. The same bits at every number of threads and
 * on every processor. */
#ifndef COTANGENT_H
/* This file is a part of it, which it includes where the turn is: after the parts that this one
 * needs. */
#include <cotangent.h>
#elif !defined(COTANGENT_SPARSE_H)
#define COTANGENT_SPARSE_H

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix of this many rows and columns. Entries stand row by row, in each row by ascending
 * columns, no place twice; an entry may be 0. */
typedef struct cot_csr {
    int64_t rows, columns;
    /* (entries,), a float dtype; with leading axes a batch of matrices of one pattern */
    cot_var values;
    /* i32, made by the functions below: starts of rows, columns of entries, and the same of the
     * transposed matrix with the number that each of its entries has here */
    cot_var pattern;
} cot_csr;

/* ==== Making them
 *
 * ====================================================================================== */

/* n triplets (row[k], column[k], values[k]) in any order; equal places are summed, in the order in
 * which they are given. values (…, n): a leaf, a constant, or anything computed, whose gradient
 * goes back to where each came from. The lists are read now, and copied. Errors: a place outside of
 * the matrix; values that are not n. */
COT_API cot_csr cot_csr_from_triplets(cot_tape *t, int64_t rows, int64_t columns, int64_t n, const int64_t *row,
                                      const int64_t *column, cot_var values);
/* The arrays of SciPy's csr_matrix: starts (rows + 1 of them), indices and values, starts and
 * indices of dtype i32 or i64. Columns of a row may be in any order and repeat, as above. For its
 * csc_matrix take cot_csr_transpose of what this makes of them. */
COT_API cot_csr cot_csr_from_arrays(cot_tape *t, int64_t rows, int64_t columns, const cot_array *starts,
                                    const cot_array *indices, cot_var values);
/* The elements of a matrix that are not 0, as they are now: the pattern stays if they change. Their
 * gradient goes to their places in a. Refused where a has no value yet, in the body of a loop. */
COT_API cot_csr cot_csr_from_dense(cot_var a);
/* The adjacency matrix of a graph with loops, symmetrically normalised, as graph convolutions take
 * it: D^-1/2 (A + I) D^-1/2. Edge k joins nodes from[k] and to[k]; an edge counts once, whichever
 * way and however often it is listed. Values are constants of this float dtype. */
COT_API cot_csr cot_csr_gcn(cot_tape *t, cot_dtype dtype, int64_t nodes, int64_t n, const int64_t *from,
                            const int64_t *to);

/* A matrix that SciPy's save_npz wrote, csr, csc or coo, its entries in any order, equal places
 * summed. Values are constants of this float dtype (integers and bools become floats, each the same
 * number or an error). A compressed file, SciPy's default, needs zlib as cot_file_open does. Errors
 * are sentences with the path: no such file, one that is damaged, that holds something else, or
 * whose places lie outside of the matrix. */
COT_API cot_csr cot_csr_load(cot_tape *t, const char *path, cot_dtype dtype);

/* aᵀ, whose entries are those of a in another order. (Products with aᵀ need none of it.) */
COT_API cot_csr cot_csr_transpose(cot_csr a);
/* The whole matrix (…, rows, columns), zeros where there is no entry. */
COT_API cot_var cot_csr_to_dense(cot_csr a);
/* The row and the column of each entry, i64 and i32: with cot_take they bring what belongs to the
 * ends of each edge of a graph. */
COT_API cot_var cot_csr_entry_rows(cot_csr a);
COT_API cot_var cot_csr_entry_columns(cot_csr a);

/* ==== Products
 *
 * ====================================================================================== */

/* a x and aᵀ x: x is a vector, or (…, columns, k), for aᵀ (…, rows, k). Leading axes of the values
 * and of x are equal, or one has none. Dtypes are promoted. */
COT_API cot_var cot_csr_matmul(cot_csr a, cot_var x);
COT_API cot_var cot_csr_matmul_transposed(cot_csr a, cot_var x);
/* x a: x is a vector or (…, k, rows). */
COT_API cot_var cot_matmul_csr(cot_var x, cot_csr a);
/* x yᵀ at the places of a alone (SDDMM): x (…, rows, k), y (…, columns, k), or two vectors. The
 * values of a are not read. */
COT_API cot_csr cot_csr_sddmm(cot_csr a, cot_var x, cot_var y);
/* Sums of rows (…, rows) and of columns (…, columns). */
COT_API cot_var cot_csr_sum_rows(cot_csr a);
COT_API cot_var cot_csr_sum_columns(cot_csr a);
/* Softmax over the entries of each row, stable: what is no entry has no weight, and a row without
 * entries stays so. */
COT_API cot_csr cot_csr_softmax(cot_csr a);

/* x with a x = b, a square: cot_linear_solve by products with a, so that nothing but vectors is
 * made (but for up to 64 unknowns); derivatives by b and by the values solve with aᵀ. b is a
 * vector, or (rows, k). options as there, NULL options for the defaults; what does not converge is
 * an error with its residual. */
COT_API cot_var cot_csr_solve(cot_csr a, cot_var b, const cot_solve_options *options);

#ifdef __cplusplus
}
#endif

#endif
