/* lin.h: kernels of linear algebra on batches of matrices, f64 and f32.
 *
 * A batch is a view whose last two axes are the matrix and whose leading axes count the matrices,
 * in row-major order. Operands that are only read may have any strides; results and what is worked
 * on in place are row-major. A matrix that cannot be factored is NaN in the result, and the others
 * are not touched by it; status[0] becomes how many there were, status[1] the number of the first.
 * scratch: what the function of that name with _workspace tells, negative when no memory could hold
 * it.
 *
 * Matrices of up to COT__LIN_BASE columns are shared out over threads, one matrix a part; larger
 * ones are done one after the other, and most of their work is in matrix products. Neither depends
 * on the number of threads, so neither do the bits.
 *
 * May call: base, the shared kernels, matrix products, a LAPACK if one is named. Must not touch:
 * tapes, nodes, vars. */
#ifndef COT_LIN_H
#define COT_LIN_H

#include "backend/cpu/kernels.h"

#include <string.h>

/* columns of a block; sweeps of rotations that are collected before they are applied */
enum { COT__LIN_BASE = 32, COT__LIN_SWEEPS = 16 };

/* a (m,n) becomes L below its diagonal and U from there up, L U = a[permutation]; permutation (…,
 * m) is i64. A singular matrix is fine. */
int64_t cot__lin_lu_workspace(const cot__view *a);
void    cot__lin_lu(const cot__view *a, const cot__view *permutation, void *scratch);
/* z = a⁻¹ b, or a⁻ᵀ b, from what cot__lin_lu made of a. An exact zero on U's diagonal is bad, and
 * so is what is no permutation. */
int64_t cot__lin_lu_solve_workspace(const cot__view *factors, const cot__view *b);
void    cot__lin_lu_solve(const cot__view *factors, const cot__view *permutation, const cot__view *b, bool transposed,
                          const cot__view *z, void *scratch, int64_t *status);
/* det a, or (log) log |det a|; z (…). */
void cot__lin_lu_det(const cot__view *factors, const cot__view *permutation, bool logarithm, const cot__view *z);
/* The sign of det a: 1, -1, or 0; NaN for NaN. */
void cot__lin_lu_sign(const cot__view *factors, const cot__view *permutation, const cot__view *z);
/* What lu made of a, apart: L (m,k) and U (k,n), k = min(m, n). */
void cot__lin_lu_split(const cot__view *factors, const cot__view *l, const cot__view *u);

/* b becomes a⁻¹ b (or b a⁻¹, …: flags), a triangular; the other half of a is not read. A zero on
 * the diagonal is bad, but the numbers are left as the divisions made them. */
int64_t cot__lin_triangular_workspace(const cot__view *a, const cot__view *b);
void    cot__lin_triangular(const cot__view *a, int flags, const cot__view *b, void *scratch, int64_t *status);

/* a becomes L, lower, L Lᵀ = a; only the lower half of a is read. bad: not positive definite. */
int64_t cot__lin_cholesky_workspace(const cot__view *a);
void    cot__lin_cholesky(const cot__view *a, void *scratch, int64_t *status);

/* a (m,n) = Q R, m >= n, Q (m,n), R (n,n). Signs as in LAPACK: each reflection sends a column to
 * minus the sign of its leading element. */
int64_t cot__lin_qr_workspace(const cot__view *a);
void    cot__lin_qr(const cot__view *a, const cot__view *q, const cot__view *r, void *scratch);

/* a (n,n), symmetric, = V diag(w) Vᵀ; w ascends. The sign of an eigenvector: its first element of
 * (to a thousandth) the largest magnitude is positive. bad: no convergence. NaN or infinities in a:
 * NaN. */
int64_t cot__lin_eigh_workspace(const cot__view *a);
void    cot__lin_eigh(const cot__view *a, const cot__view *v, const cot__view *w, void *scratch, int64_t *status);

/* a (m,n) = U diag(s) Vᵀ, U (m,k), Vᵀ (k,n), k = min(m, n); s descends. Signs: as above, by the
 * columns of U. */
int64_t cot__lin_svd_workspace(const cot__view *a);
void    cot__lin_svd(const cot__view *a, const cot__view *u, const cot__view *s, const cot__view *vt, void *scratch,
                     int64_t *status);

/* ---- shared by the files lin_*.c ------------------------------------------------------------- */

/* The number of matrices to be done: 0 if they have no elements. */
static inline int64_t cot__lin_count(const cot__view *v, int tail) {
    return cot__count(v->ndim, v->shape) == 0 ? 0 : cot__count(v->ndim - tail, v->shape);
}

/* Where matrix i begins; the last `tail` axes are the matrix. */
static inline void *cot__lin_at(const cot__view *v, int tail, int64_t i) {
    int64_t offset = 0;
    for (int k = v->ndim - tail - 1; k >= 0; k--) {
        offset += i % v->shape[k] * v->stride[k];
        i /= v->shape[k];
    }
    return (char *)v->data + offset * cot__dtype_size(v->dtype);
}

/* A kernel over a batch: `one` does matrix i with memory of its own. */
typedef struct cot__lin_job {
    const cot__view *a, *b, *z, *permutation;
    const cot__view *more[2]; /* further results */
    int              flags;
    uint8_t         *bad;  /* of cot__lin_run: a byte for each matrix; NULL without a status */
    cot__lent        room; /* the same: for matrix products, or LAPACK */
    void (*one)(const struct cot__lin_job *j, int64_t i, void *work);
} cot__lin_job;

/* How matrices are done, which their number and extents say: `count` of about `cost` operations
 * each, with `work` bytes each. shared: bytes for matrix products, which share out their work
 * themselves, so that matrices then go one by one; negative: there are none. */
typedef struct cot__lin_plan { int64_t count; double cost, work, shared; bool tells; } cot__lin_plan;

/* Bytes: bad, then work for each part, then `shared`; negative: more than there can be. */
int64_t cot__lin_bytes(const cot__lin_plan *p);
/* status: see above; NULL unless the plan `tells`. */
void cot__lin_run(cot__lin_job *j, const cot__lin_plan *p, void *scratch, int64_t *status);

/* Bytes for the matrix products of a triangular system of n rows and k right sides, either way
 * round, and for blocks of reflections of m rows and n columns. */
double cot__lin_system_room(cot_dtype d, int64_t n, int64_t k);
double cot__lin_block_room(cot_dtype d, int64_t m, int64_t n);

/* Elements of work that a block of reflections needs for `rows` rows and `columns` columns, and the
 * eigenvectors of n rows. */
static inline double cot__lin_block_work(double rows, double columns) {
    return COT__LIN_BASE * (rows + 2 * columns + 2 * COT__LIN_BASE);
}
/* blocks of the tridiagonal form, of reflections, or rotations: four rows a column of a block are
 * enough */
static inline double cot__lin_eigen_work(double n) {
    return n * n + 4 * n +
           (n > COT__LIN_BASE ? 4 * COT__LIN_BASE * n + cot__lin_block_work(n, n) : 2 * COT__LIN_SWEEPS * n);
}

/* ---- lapack.c -------------------------------------------------------------------------------- */

/* Is there a LAPACK that the user asked for, and does it take this matrix? See lapack.c. */
bool cot__lapack_takes(int64_t m, int64_t n);
/* Bytes of work for the two below. */
double cot__lapack_eigh_work(cot_dtype d, int64_t n);
double cot__lapack_svd_work(cot_dtype d, int64_t m, int64_t n);
/* a (n,n), symmetric, becomes its eigenvectors, a row each; w their values, ascending. False: no
 * convergence. */
bool cot__lapack_eigh(cot_dtype d, int64_t n, void *a, void *w, void *work);
/* a (m,n), row-major, is destroyed; u (m,k), s (k), vt (k,n), row-major. */
bool cot__lapack_svd(cot_dtype d, int64_t m, int64_t n, void *a, void *u, void *s, void *vt, void *work);
/* For tests: NULL gives up the loaded library; any other name loads it, or false is returned. */
bool cot__lapack_use(const char *library);

#endif
