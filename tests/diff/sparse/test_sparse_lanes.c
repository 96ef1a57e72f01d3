/* Directions that are swept before any result is read (diff/products/products.c), in groups of any
 * size. Sparse entries equal those of the dense matrices, whether they are read from the sweep's
 * own arrays or from copied rows. Neither deferring nor threads show in the results. */
/* ctest: labels=threads timeout=300 */
#include "support/support.h"

#include "base/parallel.h"
#include "pending/pending.h"

#include <stdlib.h>
#include <string.h>

enum { N = 40, MOST = 23 };

/* Every entry equals the dense one exactly, because a seed of zeros adds nothing. Entries of dense
 * (rows, cols) that the plan leaves out are zero. */
static void same_as_dense(const char *what, const cot_sparse_plan *p, const double *values, const double *dense) {
    cot_sparse_info in = cot_sparse_plan_info(p);
    double         *left = malloc((size_t)(in.rows * in.cols) * sizeof *left);
    memcpy(left, dense, (size_t)(in.rows * in.cols) * sizeof *left);
    for (int64_t i = 0; i < in.rows; i++)
        for (int64_t e = in.row_start[i]; e < in.row_start[i + 1]; e++) {
            double *d = &left[i * in.cols + in.col[e]];
            TEST_CHECK(values[e] == *d, "%s, %d colours: entry (%d,%d) is %.17g, dense %.17g", what, (int)in.colours,
                       (int)i, (int)in.col[e], values[e], *d);
            *d = 0;
        }
    for (int64_t k = 0; k < in.rows * in.cols; k++)
        TEST_CHECK(left[k] == 0, "%s: an entry that the plan lacks is %g", what, left[k]);
    free(left);
}

static void jacobian(const char *what, int m, const cot_var *ys, int n, const cot_var *xs, cot_mode mode, int colours) {
    static double    values[8 * N * N], dense[8 * N * N];
    cot_sparse_plan *p = cot_sparse_jacobian_plan(m, ys, n, xs, mode);
    test_tape_ok(ys[0].tape, what);
    if (colours)
        TEST_CHECK(cot_sparse_plan_info(p).colours == colours, "%s: %d colours, not %d", what,
                   (int)cot_sparse_plan_info(p).colours, colours);
    cot_sparse_jacobian(p, m, ys, n, xs, values);
    cot_jacobian(m, ys, n, xs, mode, dense);
    test_tape_ok(ys[0].tape, what);
    same_as_dense(what, p, values, dense);
    cot_sparse_plan_destroy(p);
}

/* y[i] = (Σ c[k] x[i + k])² over k < width: as many colours as the band is wide. */
static cot_var band(cot_var x, int width) {
    cot_var sum = cot_mul(cot_slice(x, 0, 0, N - width + 1, 1), 0.5);
    for (int k = 1; k < width; k++) sum = cot_add(sum, cot_mul(cot_slice(x, 0, k, N - width + 1 + k, 1), 0.25 * k - 1));
    return cot_square(sum);
}

static cot_var leaf(cot_tape *t, cot_dtype dtype, int n) {
    double x[N];
    float  narrow[N];
    for (int i = 0; i < n; i++) narrow[i] = (float)(x[i] = (double)(i * 7 % 11) / 8 - 0.5);
    return cot_tensor(t, dtype, COT_SHAPE(n), dtype == COT_F32 ? (void *)narrow : (void *)x);
}

static void groups(void) {
    static double values[N * N], dense[N * N];
    for (int width = 1; width <= MOST; width++)
        for (int d = COT_F64; d <= COT_F32; d++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x = leaf(t, (cot_dtype)d, N), y = band(x, width);
            jacobian("a band, forward", 1, &y, 1, &x, COT_FORWARD, width);
            jacobian("a band, reverse", 1, &y, 1, &x, COT_REVERSE, 0);
            cot_var          f = cot_sum(cot_square(y), COT_ALL);
            cot_sparse_plan *h = cot_sparse_hessian_plan(f, 1, &x);
            cot_sparse_hessian(h, f, 1, &x, values);
            cot_hessian(f, 1, &x, dense);
            cot_sparse_info in = cot_sparse_plan_info(h);
            /* both halves of a sparse one are the same number, of the dense one they may differ by
             * rounding */
            for (int64_t i = 0; i < N; i++)
                for (int64_t e = in.row_start[i]; e < in.row_start[i + 1]; e++) {
                    double a = dense[i * N + in.col[e]], b = dense[in.col[e] * N + i];
                    TEST_CHECK(values[e] == a || values[e] == b,
                               "width %d: entry (%d,%d) is %.17g, dense %.17g or %.17g", width, (int)i, (int)in.col[e],
                               values[e], a, b);
                }
            cot_sparse_plan_destroy(h);
            test_tape_ok(t, "bands");
            cot_tape_destroy(t);
        }
}

/* Results of all sorts side by side: several, 0-d, of another dtype, turned round, an input itself,
 * one that does not move, none of any element. */
static void sides(void) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[4] = {leaf(t, COT_F64, 12), leaf(t, COT_F32, 5), cot_scalar(t, 0.75),
                       cot_tensor(t, COT_F64, COT_SHAPE(0), NULL)};
    cot_var   wide = cot_cast(xs[1], COT_F64), turned = cot_transpose(cot_reshape(cot_square(xs[0]), COT_SHAPE(3, 4)));
    cot_var   back = cot_slice(cot_mul(xs[0], xs[2]), 0, COT_END, COT_END, -1);
    cot_var   ys[7] = {turned,
                       cot_mul(xs[1], cot_cast(xs[2], COT_F32)),
                       cot_mul(xs[2], xs[2]),
                       xs[0],
                       back,
                       cot_ones(t, COT_F64, COT_SHAPE(2)),
                       xs[3]};
    jacobian("sides, forward", 7, ys, 4, xs, COT_FORWARD, 0);
    jacobian("sides, reverse", 7, ys, 4, xs, COT_REVERSE, 0);
    jacobian("turned, forward", 1, &turned, 1, xs, COT_FORWARD, 1);
    jacobian("turned, reverse", 1, &turned, 1, xs, COT_REVERSE, 1);
    jacobian("backwards, forward", 1, &back, 1, xs, COT_FORWARD, 1);
    jacobian("the input itself", 1, xs, 1, xs, COT_FORWARD, 1);
    jacobian("the input itself, reverse", 1, xs, 1, xs, COT_REVERSE, 1);
    cot_var sum = cot_add(wide, 1.0);
    jacobian("two dtypes", 1, &sum, 1, &xs[1], COT_FORWARD, 1);
    cot_var many[41]; /* more results than are held for several directions */
    for (int k = 0; k < 40; k++) many[k] = xs[3];
    many[40] = band(leaf(t, COT_F64, N), 3);
    cot_var x = leaf(t, COT_F64, N);
    many[40] = band(x, 3);
    jacobian("one result among empty ones", 41, many, 1, &x, COT_FORWARD, 3);
    test_tape_ok(t, "sides");
    cot_tape_destroy(t);
}

/* An input that is listed twice moves by both tangents, in every lane; a sum of slices adds 0 to -0
 * as it does to any number. */
static void twice_and_zeros(void) {
    enum { LANES = 12 };
    static double two[LANES * 2 * N], one[LANES * N], a[LANES * N], b[LANES * N];
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       x = leaf(t, COT_F64, N), xx[2] = {x, x}, y = band(x, 2), g;
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < N; i++) {
            two[l * 2 * N + i] = 0.5 * (i % 3) + l;
            two[l * 2 * N + N + i] = 0.25 * (i % 5);
            one[l * N + i] = two[l * 2 * N + i] + two[l * 2 * N + N + i];
        }
    cot_jvps(LANES, 2, xx, two, 1, &y, a);
    cot_jvps(LANES, 1, &x, one, 1, &y, b);
    test_same_array("listed twice", "jvps", LANES * (N - 1), a, b);
    /* zeros around a slice */
    cot_grad_of(cot_sum(cot_square(cot_slice(x, 0, 3, N - 4, 1)), COT_ALL), 1, &x, &g);
    for (int i = 0; i < LANES * N; i++) one[i] = i % 2 ? -0.0 : i;
    cot_jvps(LANES, 1, &x, one, 1, &g, a);
    for (int i = 0; i < LANES * N; i++) {
        double want = i % N < 3 || i % N >= N - 4 ? 0 : 2 * one[i] + 0.0;
        TEST_CHECK(a[i] == want && !signbit(a[i]), "tangent %d of the gradient of a slice is %g, not %g", i, a[i],
                   want);
    }
    test_tape_ok(t, "twice");
    cot_tape_destroy(t);
}

static void everything(void **state) {
    (void)state;
    int64_t grain = cot__grain, from = cot__pending_from, bytes = cot__pending_bytes;
    for (int k = 0; k < 3; k++) {
        cot__pending_from = k == 0 ? INT64_MAX : 1;
        cot__grain = k == 2 ? 1 : grain;
        cot__pending_bytes = k == 2 ? 1 : bytes;
        cot_set_threads(k == 2 ? 3 : 1);
        groups();
        sides();
        twice_and_zeros();
    }
    cot__pending_from = from, cot__grain = grain, cot__pending_bytes = bytes;
    cot_set_threads(0);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
