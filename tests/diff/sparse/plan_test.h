/* plan_test.h: a sparse plan of a function, made at one point, is held against the dense matrices
 * at others. */
#ifndef COT_PLAN_TEST_H
#define COT_PLAN_TEST_H

#include "support/body_test.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum { N = 6, POINTS = 4 }; /* N inputs */

/* A function, and the entries of its Jacobian and of the Hessian of sum_of_squares. */
typedef struct sample {
    const char *name;
    cot_fn      f;
    int64_t     nnz, hessian;
} sample; /* hessian 0: whatever it is; -1: there is none */

static inline void spread(cot_sparse_info i, const double *values, double *out) {
    memset(out, 0, (size_t)(i.rows * i.cols) * sizeof *out);
    for (int64_t r = 0; r < i.rows; r++)
        for (int64_t e = i.row_start[r]; e < i.row_start[r + 1]; e++) out[r * i.cols + i.col[e]] = values[e];
}

/* Sparse numbers come from the same rules as dense ones, added in another order: a few digits of
 * the largest. */
static inline void near(const char *name, const char *what, int point, int64_t n, const double *have,
                        const double *want) {
    double size = 1;
    for (int64_t k = 0; k < n; k++) size = fmax(size, fabs(want[k]));
    for (int64_t k = 0; k < n; k++)
        TEST_CHECK(fabs(have[k] - want[k]) <= 1e-12 * size || (isnan(have[k]) && isnan(want[k])),
                   "%s: %s at point %d, element %lld: %.17g, dense %.17g", name, what, point, (long long)k, have[k],
                   want[k]);
}

typedef struct summed {
    cot_fn f;
    void  *user;
} summed;

static inline int sum_of_squares(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    UNUSED;
    const summed *s = user;
    cot_var       z;
    if (s->f(1, xs, 1, &z, s->user)) return 1;
    ys[0] = cot_sum(cot_mul(z, cot_sin(z)), COT_ALL);
    return 0;
}

/* Plans made at the first of some points, compared at all; the numbers of their entries. */
static inline void serve(const char *name, cot_fn f, void *user, bool hessian, int stream, int64_t nnz[2]) {
    double      values[N * N * 4], have[N * N * 4], want[N * N * 4], at[N];
    cot_tape   *t = cot_tape_create(NULL);
    summed      s = {f, user};
    cot_var     xs[POINTS], y;
    test_random r = test_random_of(name, stream);
    for (int k = 0; k < POINTS; k++) {
        for (int i = 0; i < N; i++) at[i] = test_uniform(&r, -1.5, 1.5);
        if (k == 1)
            /* in order: positions that look like none */
            for (int i = 0; i < N; i++) at[i] = 0.1 * (i + 1);
        xs[k] = cot_tensor(t, COT_F64, COT_SHAPE(N), at);
    }
    cot_var swap   = xs[stream % 2];
    xs[stream % 2] = xs[0], xs[0] = swap;
    cot_sparse_plan *j = cot_sparse_jacobian_plan_of(f, user, 1, &xs[0], 1, COT_AUTO);
    cot_sparse_plan *h = hessian && j ? cot_sparse_hessian_plan_of(sum_of_squares, &s, 1, &xs[0]) : NULL;
    nnz[0] = cot_sparse_plan_info(j).nnz, nnz[1] = cot_sparse_plan_info(h).nnz;
    for (int k = 0; k < POINTS && j && (h || !hessian); k++) {
        cot_sparse_info i = cot_sparse_plan_info(j);
        if (cot_sparse_jacobian_of(j, f, user, 1, &xs[k], 1, values) != COT_OK || f(1, &xs[k], 1, &y, user) ||
            cot_jacobian(1, &y, 1, &xs[k], COT_AUTO, want) != COT_OK)
            break;
        spread(i, values, have);
        near(name, "Jacobian", k, i.rows * i.cols, have, want);
        if (!h) continue;
        if (cot_sparse_hessian_of(h, sum_of_squares, &s, 1, &xs[k], values) != COT_OK ||
            sum_of_squares(1, &xs[k], 1, &y, &s) || cot_hessian(y, 1, &xs[k], want) != COT_OK)
            break;
        spread(cot_sparse_plan_info(h), values, have);
        near(name, "Hessian", k, N * N, have, want);
    }
    test_tape_ok(t, name);
    cot_sparse_plan_destroy(j);
    cot_sparse_plan_destroy(h);
    cot_tape_destroy(t);
}

/* While the count in xs[1] is low: longer at some points than at others. */
static inline int few_steps(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    UNUSED;
    ys[0] = cot_less(xs[1], cot_add(1.0, cot_greater(cot_index(xs[0], 0, 0), 0.0)));
    return 0;
}

#endif
