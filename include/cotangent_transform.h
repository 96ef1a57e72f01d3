/* cotangent_transform.h: transformations of whole functions. Included by <cotangent.h>. */
#ifndef COTANGENT_TRANSFORM_H
#define COTANGENT_TRANSFORM_H

#ifndef COTANGENT_H
#error "include <cotangent.h>, which includes this header"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A function to transform: reads n inputs, writes m outputs, all vars of one tape; `user` is yours. Returns 0; anything else is
 * failure. */
typedef int (*cot_fn)(int n, const cot_var *xs, int m, cot_var *ys, void *user);

/* ==== Sparse Jacobians and Hessians ============================================================================== */

/* Where most entries of a Jacobian (M, N) or a Hessian (N, N) are zero whatever the numbers are, a few sweeps give all the
 * others: columns that share no row are moved together (or rows that share no column, or, in a Hessian, what its symmetry lets
 * apart), and their entries read off one product. A plan knows which entries there are and who goes with whom. It is made once,
 * from a tape, and used for any number of evaluations at other points:
 *
 *     cot_sparse_plan *plan = cot_sparse_jacobian_plan(m, ys, n, xs, COT_AUTO);
 *     cot_sparse_info  info = cot_sparse_plan_info(plan);               rows, columns, where entries stand, colours
 *     double          *values = malloc(info.nnz * sizeof *values);      in the order of info.col
 *     cot_sparse_jacobian(plan, m, ys, n, xs, values);                  again with vars recorded at another point
 *     cot_sparse_plan_destroy(plan);
 *
 * The pattern covers every entry that could be other than zero for the operations that are on the tape, so both sides of a
 * cot_where; it is exact for elementwise operations, shapes, gathers, sums and matrix products, and dense over what other
 * operations mix. It does not know of what was not recorded: a C `if` on a value, or other positions in a cot_take, can bring
 * entries that the plan lacks, and then values are wrong without notice; cot_sparse_check compares with a random product. A plan
 * is not changed once made: threads may share it, each with its own tape. */
typedef struct cot_sparse_plan cot_sparse_plan;

typedef struct cot_sparse_info {
    int64_t        rows, cols, nnz; /* nnz: entries */
    const int64_t *row_start;       /* rows + 1: the entries of row i are row_start[i] … row_start[i + 1] - 1, … */
    const int32_t *col;             /* … in these columns, ascending. Both belong to the plan. */
    int            colours;         /* sweeps that an evaluation takes */
    cot_mode       mode;            /* COT_FORWARD: colours of columns; COT_REVERSE: of rows */
    bool           hessian;
} cot_sparse_info;

/* Plans. ys hold M elements in all and xs N, each var row-major, vars in order, as for cot_jacobian. COT_AUTO takes the mode with
 * fewer colours. NULL after a failure, which stands on the tape. The plan takes memory from the tape's allocator, which must
 * outlive it; the tape need not. */
COT_API cot_sparse_plan *cot_sparse_jacobian_plan(int m, const cot_var *ys, int n, const cot_var *xs, cot_mode mode);
COT_API cot_sparse_plan *cot_sparse_hessian_plan(cot_var y, int n, const cot_var *xs);
COT_API void             cot_sparse_plan_destroy(cot_sparse_plan *plan); /* NULL is fine */
COT_API cot_sparse_info  cot_sparse_plan_info(const cot_sparse_plan *plan); /* all zero for NULL */

/* Evaluations: values (nnz) at the point at which ys and xs were recorded; NaN after a failure. A plan for other sizes is an
 * error. A Hessian has both halves, equal to the bit. */
COT_API cot_status cot_sparse_jacobian(const cot_sparse_plan *plan, int m, const cot_var *ys, int n, const cot_var *xs,
                                       double *values);
COT_API cot_status cot_sparse_hessian(const cot_sparse_plan *plan, cot_var y, int n, const cot_var *xs, double *values);

/* Does the matrix with these values give the function's derivative along a random direction (of the seed)? COT_GRAD and a
 * sentence if not: then the pattern lacks an entry. Half the digits of a row count as rounding. Costs one sweep. Of a Hessian: m
 * is 1. */
COT_API cot_status cot_sparse_check(const cot_sparse_plan *plan, int m, const cot_var *ys, int n, const cot_var *xs,
                                    const double *values, uint64_t seed);

/* The same for functions: f is called on xs, its outputs are checked, and what it recorded is forgotten afterwards. */
COT_API cot_sparse_plan *cot_sparse_jacobian_plan_of(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_mode mode);
COT_API cot_sparse_plan *cot_sparse_hessian_plan_of(cot_fn f, void *user, int n, const cot_var *xs);
COT_API cot_status       cot_sparse_jacobian_of(const cot_sparse_plan *plan, cot_fn f, void *user, int n, const cot_var *xs, int m,
                                                double *values);
COT_API cot_status       cot_sparse_hessian_of(const cot_sparse_plan *plan, cot_fn f, void *user, int n, const cot_var *xs,
                                               double *values);

/* A plan in a file, the same bytes on every machine. Saving fails (COT_VALUE) when the file does not take it. Loading believes
 * nothing: a file that is cut short, altered, or whose colours would mix entries is refused with a sentence on the tape t, whose
 * allocator the plan uses; then NULL. */
COT_API cot_status       cot_sparse_plan_save(const cot_sparse_plan *plan, FILE *file);
COT_API cot_sparse_plan *cot_sparse_plan_load(cot_tape *t, FILE *file);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
