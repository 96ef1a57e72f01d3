/* Sparse Jacobians and Hessians: equal to the dense ones, with as many sweeps as the structure
 * needs; plans that are reused, saved and loaded; and the errors when they do not fit. */
/* ctest: timeout=120 */
#include "rules/elementwise_ids.h"
#include "support/support.h"

#include "base/random.h"
#include "diff/sparse/sparse.h"
#include "ops/structural.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "samples/samples.h"

#define assert_error(t, code, text)                                                                                    \
    do {                                                                                                               \
        assert_string_equal(cot_tape_message(t), text);                                                                \
        assert_int_equal(cot_tape_status(t), code);                                                                    \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)

enum { MOST = 4096 };

/* ---- equal to dense -------------------------------------------------------------------------- */

/* Values in their places, and zeros elsewhere, as a dense matrix. */
static void spread(const cot_sparse_plan *p, const double *values, double *out) {
    cot_sparse_info i = cot_sparse_plan_info(p);
    assert_true(i.rows * i.cols <= MOST);
    memset(out, 0, (size_t)(i.rows * i.cols) * sizeof *out);
    for (int64_t r = 0; r < i.rows; r++)
        for (int64_t e = i.row_start[r]; e < i.row_start[r + 1]; e++) out[r * i.cols + i.col[e]] = values[e];
}

/* The sums that a compressed sweep and a dense one make are the same but for columns that are 0:
 * rounding apart they agree. */
static void near_dense(const char *name, const cot_sparse_plan *p, const double *values, const double *dense,
                       double tolerance) {
    static double have[MOST];
    cot_sparse_info i = cot_sparse_plan_info(p);
    double          size = 0;
    spread(p, values, have);
    for (int64_t k = 0; k < i.rows * i.cols; k++) size = fmax(size, isfinite(dense[k]) ? fabs(dense[k]) : 0);
    for (int64_t k = 0; k < i.rows * i.cols; k++)
        TEST_CHECK(fabs(have[k] - dense[k]) <= tolerance * size || have[k] == dense[k] ||
                       (isnan(have[k]) && isnan(dense[k])),
                   "%s: (%lld,%lld) is %.17g, dense %.17g", name, (long long)(k / i.cols), (long long)(k % i.cols),
                   have[k], dense[k]);
}

static void check_jacobian(const char *name, int m, const cot_var *ys, int n, const cot_var *xs, double tolerance) {
    static double values[MOST], dense[MOST];
    for (int mode = COT_AUTO; mode <= COT_FORWARD; mode++) {
        cot_sparse_plan *p = cot_sparse_jacobian_plan(m, ys, n, xs, (cot_mode)mode);
        if (!p) {
            test_note("%s: no plan: %s", name, cot_tape_message(xs[0].tape));
            return;
        }
        cot_sparse_info i = cot_sparse_plan_info(p);
        TEST_CHECK(mode == COT_AUTO || i.nnz == 0 || i.mode == (cot_mode)mode, "%s: mode %d", name, mode);
        TEST_CHECK(i.colours <= (i.mode == COT_FORWARD ? i.cols : i.rows), "%s: %d colours", name, i.colours);
        cot_jacobian(m, ys, n, xs, i.mode, dense);
        cot_sparse_jacobian(p, m, ys, n, xs, values);
        cot_sparse_check(p, m, ys, n, xs, values, 7);
        if (test_tape_ok(xs[0].tape, name)) near_dense(name, p, values, dense, tolerance);
        cot_sparse_plan_destroy(p);
    }
}

static void check_hessian(const char *name, cot_var y, int n, const cot_var *xs, double tolerance) {
    static double    values[MOST], dense[MOST];
    cot_sparse_plan *p = cot_sparse_hessian_plan(y, n, xs);
    if (!p) {
        test_note("%s: no plan: %s", name, cot_tape_message(y.tape));
        return;
    }
    cot_hessian(y, n, xs, dense);
    cot_sparse_hessian(p, y, n, xs, values);
    cot_sparse_check(p, 1, &y, n, xs, values, 7);
    if (test_tape_ok(y.tape, name)) near_dense(name, p, values, dense, tolerance);
    cot_sparse_info i = cot_sparse_plan_info(p);
    spread(p, values, dense);
    for (int64_t r = 0; r < i.rows; r++)
        for (int64_t c = 0; c < r; c++)
            TEST_CHECK(test_same(dense[r * i.cols + c], dense[c * i.cols + r]), "%s: not symmetric", name);
    cot_sparse_plan_destroy(p);
}

static void leaves_of(cot_tape *t, const test_function *f, cot_dtype dtype, cot_var *xs) {
    for (int k = 0; k < f->n; k++) {
        cot_var x = f->in[k].shape.ndim ? cot_tensor(t, COT_F64, f->in[k].shape, f->in[k].data)
                                        : cot_scalar(t, f->in[k].data[0]);
        xs[k] = dtype == COT_F64 ? x : cot_leaf(cot_cast(x, dtype));
    }
}

/* Tolerances: both sides are sums of a few dozen rounded terms, in the same order but for zeros
 * between. */
static void every_sample_equals_its_dense_matrices(void **state) {
    (void)state;
    for (int dtype = COT_F64; dtype <= COT_F32; dtype++)
        for (int i = 0; i < TEST_COUNT(samples); i++) {
            test_function f = function_of(&samples[i], i, 0);
            cot_tape     *t = cot_tape_create(NULL);
            cot_var       xs[TEST_MAX_INPUTS];
            leaves_of(t, &f, (cot_dtype)dtype, xs);
            cot_var y = f.f(f.n, xs, f.user);
            check_jacobian(f.name, 1, &y, f.n, xs, dtype == COT_F64 ? 1e-13 : 1e-4);
            /* by hundreds of recorded steps for some, in which f32 may lose half its digits; the
             * symmetry to the bit is promised for both */
            check_hessian(f.name, cot_sum(cot_sin(y), COT_ALL), f.n, xs, dtype == COT_F64 ? 1e-10 : 5e-2);
            test_tape_ok(t, f.name);
            cot_tape_destroy(t);
        }
    test_verdict();
}

/* Between scalars no gradient is recorded: the walk of dual_lanes.c, for every operation with a
 * second operand of each sort (a var, the same var, a number), against the dense Hessian. Several
 * colours, so that several lanes are used. Both take a few rounded steps more than the other for
 * some rules. */
static void hessians_over_scalars_equal_dense_ones(void **state) {
    (void)state;
    for (int op = 0; op < OP_elementwise_count; op++)
        for (int round = 0; round < 20; round++) {
            const cot__elementwise_info *e = &cot__elementwise_table[op];
            test_random                  random = test_random_of(e->name, round);
            cot_tape                    *t = cot_tape_create(NULL);
            double                       at[3];
            cot_var                      xs[4], args[3];
            test_sample(op, &random, at);
            for (int k = 0; k < 3; k++) args[k] = xs[k] = cot_scalar(t, at[k]);
            xs[3] = cot_scalar(t, 0.7);
            if (round % 4 == 1 && e->arity == 2) args[1] = cot_number(at[1]);
            if (round % 4 == 2 && e->arity == 2) args[0] = cot_number(at[0]);
            if (round % 4 == 3 && e->arity == 2) args[1] = args[0];
            cot_var z = test_call(op, args);
            if (cot_dtype_of(z) == COT_F64) {
                cot_var y = cot_mul(cot_add(cot_sin(z), cot_dot_of(3, xs, (cot_var[]){xs[1], xs[3], xs[2]})),
                                    cot_sum_of(4, xs));
                check_hessian(e->name, y, 4, xs, 1e-12);
            }
            test_tape_ok(t, e->name);
            cot_tape_destroy(t);
        }
    test_verdict();
}

/* Strong zeros survive the sharing of partials between lanes. */
static void a_zero_wins_over_infinite_partials_in_lanes(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[2] = {cot_scalar(t, 0), cot_scalar(t, 2)};
    cot_var   safe = cot_where(cot_greater(xs[0], 0.0), cot_log(xs[0]), 0.0);
    check_hessian("where(x > 0, log x, 0)", cot_add(cot_mul(xs[0], xs[1]), cot_mul(safe, xs[1])), 2, xs, 0);
    check_hessian("sqrt", cot_add(cot_mul(xs[0], xs[1]), cot_mul(0.0, cot_sqrt(xs[0]))), 2, xs, 0);
    cot_tape_destroy(t);
    test_verdict();
}

/* Its tangents and adjoints lie in the slots of all sweeps, and are gone afterwards: those of
 * leaves that were not asked for, of constants, and of inputs that are themselves computed. */
static void a_hessian_over_scalars_leaves_nothing_to_the_next_sweep(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_scalar(t, 0.6), b = cot_scalar(t, -1.3), c = cot_scalar(t, 2.1);
    cot_var   two = cot_constant(t, 2), u = cot_mul(a, b), xs[3] = {a, u, b};
    cot_var   y = cot_add(cot_mul(cot_exp(u), cot_mul(two, c)), cot_div(cot_square(a), cot_add(b, cot_sin(c))));
    double    values[9], first[9], seeds[4] = {1, 2, 3, 4}, before[12], after[12];
    cot_vjps(4, 1, &y, seeds, 3, xs, before);
    cot_sparse_plan *plan = cot_sparse_hessian_plan(y, 3, xs);
    assert_int_equal(cot_sparse_plan_info(plan).colours, 3);
    cot_sparse_hessian(plan, y, 3, xs, first);
    cot_sparse_hessian(plan, y, 3, xs, values);
    assert_memory_equal(values, first, (size_t)cot_sparse_plan_info(plan).nnz * sizeof *values);
    cot_vjps(4, 1, &y, seeds, 3, xs, after);
    assert_memory_equal(after, before, sizeof before);
    cot_jvps(4, 3, xs, before, 1, &y, first);
    cot_tape *other = cot_tape_create(NULL); /* the same without a Hessian before */
    a = cot_scalar(other, 0.6), b = cot_scalar(other, -1.3), c = cot_scalar(other, 2.1);
    two = cot_constant(other, 2), u = cot_mul(a, b), xs[0] = a, xs[1] = u, xs[2] = b;
    y = cot_add(cot_mul(cot_exp(u), cot_mul(two, c)), cot_div(cot_square(a), cot_add(b, cot_sin(c))));
    cot_jvps(4, 3, xs, before, 1, &y, values);
    assert_memory_equal(values, first, 4 * sizeof *values);
    test_tape_ok(t, "the Hessian first");
    test_tape_ok(other, "no Hessian");
    cot_sparse_plan_destroy(plan);
    cot_tape_destroy(t);
    cot_tape_destroy(other);
    test_verdict();
}

/* ---- known structures ------------------------------------------------------------------------ */

static double uniform(uint64_t i) { return (double)(cot__mixed(i) >> 11) * 0x1p-53 + 0.25; }

/* y[i] = x[i-half] … x[i+half] in a product-free mix, as tensors: a band of 2 half + 1. */
static cot_var band_of_tensor(cot_var x, int half) {
    int64_t n = cot_size(x);
    cot_var y = cot_sin(x);
    for (int k = 1; k <= half; k++)
        for (int side = -1; side <= 1; side += 2) {
            cot_var part = side < 0 ? cot_slice(x, 0, 0, n - k, 1) : cot_slice(x, 0, k, n, 1);
            y            = cot_add(y, cot_mul((double)k, cot_pad(cot_square(part), COT_SHAPE(side < 0 ? k : 0),
                                                                 COT_SHAPE(side < 0 ? 0 : k), 0)));
        }
    return y;
}

/* d y[i] / d x[j] of that. */
static double band_entry(const double *x, int64_t i, int64_t j) {
    return i == j ? cos(x[i]) : 2 * (double)llabs(i - j) * x[j];
}

static void check_band(cot_sparse_info i, const double *values, const double *x, int half) {
    for (int64_t r = 0; r < i.rows; r++) {
        int64_t first = r > half ? r - half : 0, last = r + half < i.cols ? r + half : i.cols - 1;
        assert_int_equal(i.row_start[r + 1] - i.row_start[r], last - first + 1);
        for (int64_t e = i.row_start[r]; e < i.row_start[r + 1]; e++) {
            assert_int_equal(i.col[e], first + e - i.row_start[r]);
            double want = band_entry(x, r, i.col[e]);
            if (fabs(values[e] - want) > 1e-15 * 8)
                fail_msg("(%lld,%d): %.17g, not %.17g", (long long)r, i.col[e], values[e], want);
        }
    }
}

/* The promise of linear time, in counts: the colours are the bandwidth whatever n is, and so are
 * the bytes that a plan and its making take of each element. */
static void a_banded_jacobian_takes_as_many_sweeps_as_the_band_is_wide(void **state) {
    (void)state;
    int64_t bytes[2];
    int64_t sizes[2] = {test_small() ? 1000 : 20000, test_small() ? 5000 : 100000};
    for (int half = 1; half <= 3; half++)
        for (int k = 0; k < 2; k++) {
            int64_t   n = sizes[k];
            cot_tape *t = cot_tape_create(NULL);
            double   *at = malloc((size_t)n * sizeof *at);
            for (int64_t i = 0; i < n; i++) at[i] = uniform((uint64_t)i);
            cot_var          x = cot_tensor(t, COT_F64, COT_SHAPE(n), at), y = band_of_tensor(x, half);
            cot_sparse_plan *p = cot_sparse_jacobian_plan(1, &y, 1, &x, COT_AUTO);
            assert_non_null(p);
            cot_sparse_info i = cot_sparse_plan_info(p);
            assert_int_equal(i.colours, 2 * half + 1);
            double *values = malloc((size_t)i.nnz * sizeof *values);
            assert_int_equal(cot_sparse_jacobian(p, 1, &y, 1, &x, values), COT_OK);
            check_band(i, values, at, half);
            bytes[k] = cot_tape_bytes(t);
            cot_sparse_plan_destroy(p);
            cot_tape_destroy(t);
            free(values);
            free(at);
            if (k) assert_true(bytes[1] < 2 * bytes[0] * sizes[1] / sizes[0]);
        }
}

static int scalar_band(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)user;
    for (int i = 0; i < m; i++) {
        ys[i] = cot_sin(xs[i]);
        if (i > 0) ys[i] = cot_add(ys[i], cot_square(xs[i - 1]));
        if (i + 1 < n) ys[i] = cot_add(ys[i], cot_square(xs[i + 1]));
    }
    return 0;
}

static void a_banded_function_of_scalars(void **state) {
    (void)state;
    int       n = test_small() ? 2000 : 100000;
    cot_tape *t = cot_tape_create(NULL);
    cot_var  *xs = malloc((size_t)n * sizeof *xs);
    double   *at = malloc((size_t)n * sizeof *at), *values = malloc(3 * (size_t)n * sizeof *values);
    for (int i = 0; i < n; i++) xs[i] = cot_scalar(t, at[i] = uniform((uint64_t)i));
    cot_sparse_plan *p = cot_sparse_jacobian_plan_of(scalar_band, NULL, n, xs, n, COT_AUTO);
    assert_non_null(p);
    assert_int_equal(cot_sparse_plan_info(p).colours, 3);
    int64_t length = cot_tape_length(t);
    assert_int_equal(cot_sparse_jacobian_of(p, scalar_band, NULL, n, xs, n, values), COT_OK);
    assert_int_equal(cot_tape_length(t), length); /* forgotten */
    check_band(cot_sparse_plan_info(p), values, at, 1);
    cot_sparse_plan_destroy(p);
    cot_tape_destroy(t);
    free(xs);
    free(at);
    free(values);
}

/* Σ sin(x[i] x[i+1]): a tridiagonal Hessian. */
static int chain(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)m, (void)user;
    cot_var f = cot_sin(cot_mul(xs[0], xs[1]));
    for (int i = 1; i + 1 < n; i++) f = cot_add(f, cot_sin(cot_mul(xs[i], xs[i + 1])));
    ys[0] = f;
    return 0;
}

static void a_tridiagonal_hessian_takes_three_sweeps(void **state) {
    (void)state;
    int       n = test_small() ? 2000 : 100000;
    cot_tape *t = cot_tape_create(NULL);
    cot_var  *xs = malloc((size_t)n * sizeof *xs);
    double   *x = malloc((size_t)n * sizeof *x), *values = malloc(3 * (size_t)n * sizeof *values);
    for (int i = 0; i < n; i++) xs[i] = cot_scalar(t, x[i] = uniform((uint64_t)i));
    cot_sparse_plan *p = cot_sparse_hessian_plan_of(chain, NULL, n, xs);
    assert_non_null(p);
    cot_sparse_info info = cot_sparse_plan_info(p);
    assert_int_equal(info.colours, 3);
    assert_int_equal(info.nnz, 3 * (int64_t)n - 2);
    assert_true(info.hessian);
    assert_int_equal(cot_sparse_hessian_of(p, chain, NULL, n, xs, values), COT_OK);
    for (int64_t i = 0; i < n; i++)
        for (int64_t e = info.row_start[i]; e < info.row_start[i + 1]; e++) {
            int64_t j = info.col[e], low = i < j ? i : j;
            double  left = i > 0 ? x[i - 1] : 0, right = i + 1 < n ? x[i + 1] : 0;
            double  want = i == j ? -left * left * sin(left * x[i]) - right * right * sin(right * x[i])
                                  : cos(x[low] * x[low + 1]) - x[low] * x[low + 1] * sin(x[low] * x[low + 1]);
            if (fabs(values[e] - want) > 1e-14)
                fail_msg("(%lld,%lld): %.17g, not %.17g", (long long)i, (long long)j, values[e], want);
        }
    cot_sparse_plan_destroy(p);
    cot_tape_destroy(t);
    free(xs);
    free(x);
    free(values);
}

/* f = x[0] Σ x[i]²: everything meets x[0], nothing else meets. */
static void an_arrow_takes_two_sweeps(void **state) {
    (void)state;
    enum { N = 40 };
    cot_tape *t = cot_tape_create(NULL);
    double    at[N], values[3 * N];
    for (int i = 0; i < N; i++) at[i] = uniform((uint64_t)i);
    cot_var x          = cot_tensor(t, COT_F64, COT_SHAPE(N), at),
            y          = cot_mul(cot_index(x, 0, 0), cot_sum(cot_square(x), COT_ALL));
    cot_sparse_plan *p = cot_sparse_hessian_plan(y, 1, &x);
    assert_non_null(p);
    cot_sparse_info i = cot_sparse_plan_info(p);
    assert_int_equal(i.nnz, 3 * N - 2);
    assert_int_equal(i.colours, 2);
    assert_int_equal(cot_sparse_hessian(p, y, 1, &x, values), COT_OK);
    for (int64_t r = 0; r < N; r++)
        for (int64_t e = i.row_start[r]; e < i.row_start[r + 1]; e++) {
            double want = r == 0 && i.col[e] == 0 ? 6 * at[0]
                          : r == i.col[e]         ? 2 * at[0]
                                                  : 2 * at[r > 0 ? r : i.col[e]];
            assert_true(fabs(values[e] - want) < 1e-14);
        }
    check_hessian("arrow", y, 1, &x, 1e-14);
    cot_sparse_plan_destroy(p);
    cot_tape_destroy(t);
    test_verdict();
}

static void the_mode_with_fewer_colours_is_taken(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(8), (double[]){1, 2, 3, 4, 5, 6, 7, 8}), s = cot_scalar(t, 3);
    cot_var   row = cot_sum(cot_square(x), COT_ALL), column = cot_mul(s, cot_constant(t, 2));
    cot_sparse_plan *p = cot_sparse_jacobian_plan(1, &row, 1, &x, COT_AUTO);
    assert_int_equal(cot_sparse_plan_info(p).mode, COT_REVERSE);
    assert_int_equal(cot_sparse_plan_info(p).colours, 1);
    cot_sparse_plan_destroy(p);
    column = cot_mul(cot_data(t, COT_F64, COT_SHAPE(5), (double[]){1, 2, 3, 4, 5}), s);
    p = cot_sparse_jacobian_plan(1, &column, 1, &s, COT_AUTO);
    assert_int_equal(cot_sparse_plan_info(p).mode, COT_FORWARD);
    assert_int_equal(cot_sparse_plan_info(p).colours, 1);
    cot_sparse_plan_destroy(p);
    p = cot_sparse_jacobian_plan(1, &column, 1, &s, COT_REVERSE);
    assert_int_equal(cot_sparse_plan_info(p).mode, COT_REVERSE);
    assert_int_equal(cot_sparse_plan_info(p).colours, 5);
    cot_sparse_plan_destroy(p);
    cot_tape_destroy(t);
}

/* ---- edges ----------------------------------------------------------------------------------- */

static void nothing_zero_sizes_and_constants(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_scalar(t, 1), b = cot_scalar(t, 2), empty = cot_tensor(t, COT_F64, COT_SHAPE(0, 3), NULL);
    cot_var   cases[][2] = {
          {cot_constant(t, 3), a}, {cot_sin(b), a}, {cot_sin(empty), a}, {cot_sin(a), empty}, {cot_exp(empty), empty}};
    for (int k = 0; k < TEST_COUNT(cases); k++) {
        for (int mode = COT_AUTO; mode <= COT_FORWARD; mode++) {
            cot_sparse_plan *p = cot_sparse_jacobian_plan(1, &cases[k][0], 1, &cases[k][1], (cot_mode)mode);
            assert_non_null(p);
            assert_int_equal(cot_sparse_plan_info(p).nnz, 0);
            assert_int_equal(cot_sparse_plan_info(p).colours, 0);
            assert_int_equal(cot_sparse_jacobian(p, 1, &cases[k][0], 1, &cases[k][1], NULL), COT_OK);
            assert_int_equal(cot_sparse_check(p, 1, &cases[k][0], 1, &cases[k][1], NULL, 1), COT_OK);
            cot_sparse_plan_destroy(p);
        }
    }
    cot_var          linear = cot_add(cot_mul(3.0, a), b), xs[2] = {a, b};
    cot_sparse_plan *p = cot_sparse_hessian_plan(linear, 2, xs);
    assert_non_null(p);
    assert_int_equal(cot_sparse_plan_info(p).nnz, 0);
    assert_int_equal(cot_sparse_hessian(p, linear, 2, xs, NULL), COT_OK);
    cot_sparse_plan_destroy(p);
    check_jacobian("duplicates", 2, (cot_var[]){linear, linear}, 3, (cot_var[]){a, a, b}, 0);
    check_hessian("duplicates", cot_mul(a, cot_mul(a, b)), 3, (cot_var[]){a, a, b}, 0);
    cot_sparse_plan_destroy(NULL);
    assert_int_equal(cot_sparse_plan_info(NULL).nnz, 0);
    test_tape_ok(t, "edges");
    cot_tape_destroy(t);
    test_verdict();
}

static void nan_and_infinity_stay_where_they_belong(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(4), (double[]){NAN, 0, INFINITY, 2});
    check_jacobian("log", 1, (cot_var[]){cot_log(x)}, 1, &x, 1e-15);
    check_jacobian("sqrt", 1, (cot_var[]){cot_sqrt(x)}, 1, &x, 1e-15);
    check_hessian("squares", cot_sum(cot_mul(x, cot_square(x)), COT_ALL), 1, &x, 1e-15);
    test_tape_ok(t, "nan");
    cot_tape_destroy(t);
    test_verdict();
}

static void a_plan_serves_other_points(void **state) {
    (void)state;
    cot_tape        *t = cot_tape_create(NULL);
    cot_mark         start = cot_tape_mark(t);
    cot_sparse_plan *p = NULL;
    for (int round = 0; round < 5; round++) {
        double at[12], values[64];
        for (int i = 0; i < 12; i++) at[i] = uniform((uint64_t)(12 * round + i));
        cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(12), at), y = band_of_tensor(x, 2);
        if (!p) p = cot_sparse_jacobian_plan(1, &y, 1, &x, COT_AUTO);
        assert_int_equal(cot_sparse_jacobian(p, 1, &y, 1, &x, values), COT_OK);
        check_band(cot_sparse_plan_info(p), values, at, 2);
        assert_int_equal(cot_sparse_check(p, 1, &y, 1, &x, values, (uint64_t)round), COT_OK);
        cot_tape_rewind(t, start);
    }
    cot_tape_destroy(t); /* the plan outlives it */
    assert_int_equal(cot_sparse_plan_info(p).colours, 5);
    cot_sparse_plan_destroy(p);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static int fails(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)xs, (void)m, (void)ys, (void)user;
    return 3;
}
static int gives_nothing(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)xs, (void)m, (void)ys, (void)user;
    return 0;
}
static int gives(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)xs;
    for (int k = 0; k < m; k++) ys[k] = *(const cot_var *)user;
    return 0;
}
static int sines(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sin(xs[0]);
    return 0;
}
static int adds_shapes(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_add(xs[0], cot_zeros(xs[0].tape, COT_F64, COT_SHAPE(5)));
    return 0;
}

static void plans_that_cannot_be_made_say_why(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL), *other = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), y = cot_sin(x), c = cot_constant(t, 1),
            i         = cot_argmax(x, COT_ALL);
    cot_var   foreign = cot_scalar(other, 1);
    assert_null(cot_sparse_jacobian_plan(1, &y, 1, &x, (cot_mode)9));
    assert_error(t, COT_VALUE, "[sparse_jacobian_plan] 9 is not a mode; COT_AUTO, COT_REVERSE and COT_FORWARD are");
    assert_null(cot_sparse_jacobian_plan(1, &y, 1, &c, COT_AUTO));
    assert_error(t, COT_GRAD,
                 "[sparse_jacobian_plan] xs[0], constant (1), does not require a gradient: it is a constant, "
                 "detached, an integer, or was "
                 "recorded without gradients");
    assert_null(cot_sparse_jacobian_plan(1, &i, 1, &x, COT_AUTO));
    assert_error(t, COT_DTYPE, "[sparse_jacobian_plan] ys[0] has dtype i64; only floats have derivatives");
    assert_null(cot_sparse_jacobian_plan(1, &y, 1, &foreign, COT_AUTO));
    assert_error(
        t, COT_VAR,
        "[sparse_jacobian_plan] the xs[0] operand belongs to another tape; operands of one operation share a tape");
    assert_null(cot_sparse_jacobian_plan(1, &y, -1, &x, COT_AUTO));
    assert_error(t, COT_VALUE, "[sparse_jacobian_plan] a negative number of vars: -1");
    assert_null(cot_sparse_jacobian_plan(0, NULL, 1, &x, COT_AUTO));
    assert_error(t, COT_VAR, "[sparse_jacobian_plan] there are no ys");
    assert_null(cot_sparse_jacobian_plan(-1, NULL, 1, &x, COT_AUTO));
    assert_error(t, COT_VALUE, "[sparse_jacobian_plan] a negative number of ys: -1");
    assert_null(cot_sparse_hessian_plan(y, 1, &x));
    /* cot_grad_of's words: the output is no scalar */
    assert_int_equal(cot_tape_status(t), COT_SHAPE);
    assert_non_null(strstr(cot_tape_message(t), "[sparse_hessian_plan] "));
    assert_null(cot_sparse_hessian_plan(y, 1, &x)); /* the error stands */
    cot_tape_clear_error(t);
    assert_null(cot_sparse_hessian_plan(COT_NONE, 1, &x));
    assert_error(t, COT_VAR, "[sparse_hessian_plan] y is not a value on a tape");
    cot_var wide = cot_broadcast_to(cot_index(x, 0, 0), COT_SHAPE((int64_t)1 << 31));
    assert_null(cot_sparse_jacobian_plan(1, &wide, 1, &x, COT_AUTO));
    assert_error(t, COT_LIMIT,
                 "[sparse_jacobian_plan] a matrix of 2147483648 rows and 2 columns; sparse ones have at most "
                 "2147483647 of each");
    cot_tape_destroy(t);
    cot_tape_destroy(other);
}

static void plans_that_do_not_fit_say_so(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), y = cot_sin(x),
            s = cot_sum(cot_square(x), COT_ALL), x3 = cot_tensor(t, COT_F64, COT_SHAPE(3), NULL);
    cot_var   y3 = cot_sin(x3), s3 = cot_sum(cot_square(x3), COT_ALL);
    double    values[4] = {1, 2, 3, 4};
    cot_sparse_plan *j = cot_sparse_jacobian_plan(1, &y, 1, &x, COT_AUTO), *h = cot_sparse_hessian_plan(s, 1, &x);
    assert_true(j && h);
    assert_int_equal(cot_sparse_jacobian(j, 1, &y3, 1, &x3, values), COT_SHAPE);
    assert_true(isnan(values[0]) && isnan(values[1]) && values[2] == 3);
    assert_error(
        t, COT_SHAPE,
        "[sparse_jacobian] the plan is for (2,2), the matrix is (3,3); make a plan for these outputs and inputs");
    assert_int_equal(cot_sparse_hessian(h, s3, 1, &x3, values), COT_SHAPE);
    assert_error(
        t, COT_SHAPE,
        "[sparse_hessian] the plan is for (2,2), the matrix is (3,3); make a plan for these outputs and inputs");
    cot_sparse_jacobian(h, 1, &y, 1, &x, values);
    assert_error(t, COT_VALUE, "[sparse_jacobian] the plan is for a Hessian; make one for a Jacobian");
    cot_sparse_hessian(j, s, 1, &x, values);
    assert_error(t, COT_VALUE, "[sparse_hessian] the plan is for a Jacobian; make one for a Hessian");
    cot_sparse_jacobian(NULL, 1, &y, 1, &x, values);
    assert_error(t, COT_VALUE, "[sparse_jacobian] the plan is NULL; make one first");
    cot_sparse_hessian(NULL, s, 1, &x, values);
    assert_error(t, COT_VALUE, "[sparse_hessian] the plan is NULL; make one first");
    cot_sparse_check(NULL, 1, &y, 1, &x, values, 1);
    assert_error(t, COT_VALUE, "[sparse_check] the plan is NULL; make one first");
    assert_int_equal(cot_sparse_jacobian(j, 1, (cot_var[]){COT_NONE}, 1, &x, values), COT_VAR);
    assert_int_equal(cot_sparse_hessian(h, COT_NONE, 1, &x, values), COT_VAR);
    assert_int_equal(cot_sparse_check(j, 0, NULL, 1, &x, values, 1), COT_VAR);
    cot_sparse_plan_destroy(j);
    cot_sparse_plan_destroy(h);
    cot_tape_destroy(t);
}

static void functions_that_fail_say_so(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL), *other = cot_tape_create(NULL);
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), foreign = cot_scalar(other, 1), y = cot_sin(x);
    double    values[4] = {0};
    cot_sparse_plan *p = cot_sparse_jacobian_plan(1, &y, 1, &x, COT_AUTO);
    assert_null(cot_sparse_jacobian_plan_of(fails, NULL, 1, &x, 1, COT_AUTO));
    assert_error(t, COT_CUSTOM, "[sparse_jacobian_plan_of] the function failed with code 3");
    assert_null(cot_sparse_hessian_plan_of(gives_nothing, NULL, 1, &x));
    assert_error(t, COT_VAR,
                 "[sparse_hessian_plan_of] the function did not set ys[0]; it gives 1 result and must set each");
    assert_int_equal(cot_sparse_jacobian_of(p, gives, &foreign, 1, &x, 1, values), COT_VAR);
    assert_true(isnan(values[0]) && isnan(values[1]));
    assert_error(t, COT_VAR,
                 "[sparse_jacobian_of] the function's result ys[0] as operand belongs to another tape; operands of one "
                 "operation share a tape");
    assert_int_equal(cot_sparse_hessian_of(p, NULL, NULL, 1, &x, values), COT_VALUE);
    assert_error(t, COT_VALUE, "[sparse_hessian_of] the function is NULL");
    assert_null(cot_sparse_jacobian_plan_of(gives, &y, 1, &x, -2, COT_AUTO));
    assert_error(t, COT_VALUE, "[sparse_jacobian_plan_of] a negative number of values: -2");
    /* an error inside stays as it was said */
    assert_null(cot_sparse_jacobian_plan_of(adds_shapes, NULL, 1, &x, 1, COT_AUTO));
    assert_non_null(strstr(cot_tape_message(t), "[add] "));
    cot_tape_clear_error(t);
    assert_null(cot_sparse_jacobian_plan_of(gives, &y, 0, NULL, 1, COT_AUTO));
    assert_int_equal(cot_sparse_jacobian_of(p, sines, NULL, 1, &x, 1, values), COT_OK);
    assert_true(values[0] == cos(1.0) || fabs(values[0] - cos(1.0)) < 1e-15);
    cot_sparse_plan_destroy(p);
    cot_tape_destroy(t);
    cot_tape_destroy(other);
}

/* ---- functions as every form takes them ------------------------------------------------------ */

static int exponentials(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sum(cot_exp(xs[0]), COT_ALL);
    return 0;
}
static int times_captured(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_mul(xs[0], *(const cot_var *)user);
    return 0;
}
static int a_number(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)xs, (void)m, (void)user;
    ys[0] = cot_number(3);
    return 0;
}
static int records_and_fails(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    ys[0] = cot_sin(xs[0]);
    return fails(n, xs, m, ys, user);
}

/* In a no-grad scope, at constants, with a captured use of x, with a number for a result. */
static void functions_are_differentiated_as_other_forms_do(void **state) {
    (void)state;
    const double at[2] = {0.5, 1};
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      x = cot_tensor(t, COT_F64, COT_SHAPE(2), at), c = cot_data(t, COT_F64, COT_SHAPE(2), at);
    double       values[4];
    int64_t      length = cot_tape_length(t);
    for (int scope = 0; scope < 2; scope++)
        for (int constant = 0; constant < 2; constant++) {
            if (scope) cot_no_grad_open(t);
            const cot_var   *point = constant ? &c : &x;
            cot_sparse_plan *j     = cot_sparse_jacobian_plan_of(exponentials, NULL, 1, point, 1, COT_AUTO),
                            *h     = cot_sparse_hessian_plan_of(exponentials, NULL, 1, point);
            assert_error(t, COT_OK, "");
            assert_int_equal(cot_sparse_plan_info(j).nnz, 2);
            assert_int_equal(cot_sparse_plan_info(h).nnz, 2);
            assert_int_equal(cot_sparse_jacobian_of(j, exponentials, NULL, 1, point, 1, values), COT_OK);
            assert_int_equal(cot_sparse_hessian_of(h, exponentials, NULL, 1, point, values + 2), COT_OK);
            for (int k = 0; k < 4; k++) assert_true(test_ulps(values[k], expl((long double)at[k % 2]), 53) <= 2);
            cot_sparse_plan_destroy(j);
            cot_sparse_plan_destroy(h);
            if (scope) cot_no_grad_close(t);
        }
    cot_sparse_plan *p = cot_sparse_jacobian_plan_of(times_captured, &x, 1, &x, 1, COT_AUTO);
    assert_int_equal(cot_sparse_jacobian_of(p, times_captured, &x, 1, &x, 1, values), COT_OK);
    assert_true(values[0] == 0.5 && values[1] == 1);
    cot_sparse_plan_destroy(p);
    p = cot_sparse_jacobian_plan_of(a_number, NULL, 1, &x, 1, COT_AUTO);
    assert_non_null(p);
    assert_int_equal(cot_sparse_plan_info(p).nnz, 0);
    cot_sparse_plan_destroy(p);
    assert_null(cot_sparse_jacobian_plan_of(records_and_fails, NULL, 1, &x, 1, COT_AUTO));
    cot_tape_clear_error(t);
    assert_int_equal(cot_tape_length(t), length); /* nothing stays, after a failure neither */
    cot_tape_destroy(t);
}

/* The Hessian of active values is right in a no-grad scope. A value that was recorded in such a
 * scope has no derivative, and that is an error. */
static void no_grad_scopes_give_no_zeros(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){0.5, 1}), y, z, f;
    double    values[4], h[4];
    exponentials(1, &x, 1, &y, NULL);
    cot_sparse_plan *p = cot_sparse_hessian_plan(y, 1, &x);
    cot_no_grad_open(t);
    exponentials(1, &x, 1, &z, NULL);
    f = cot_cast(cot_argmax(x, COT_ALL), COT_F64);
    assert_int_equal(cot_sparse_hessian(p, y, 1, &x, values), COT_OK);
    assert_int_equal(cot_hessian(y, 1, &x, h), COT_OK);
    assert_true(values[0] > 1 && values[0] == h[0] && values[1] == h[3] && h[1] == 0);
    cot_no_grad_close(t);
    assert_int_equal(cot_jacobian(1, &z, 1, &x, COT_AUTO, h), COT_GRAD);
    assert_true(isnan(h[0]));
    assert_error(t, COT_GRAD,
                 "[jacobian] ys[0], sum (v₄), was computed from the xs without recording gradients (in a no-grad "
                 "scope); its derivative is lost, "
                 "record it outside");
    assert_null(cot_sparse_jacobian_plan(1, &z, 1, &x, COT_AUTO));
    assert_int_equal(cot_tape_status(t), COT_GRAD);
    cot_tape_clear_error(t);
    assert_int_equal(cot_jacobian(1, &f, 1, &x, COT_AUTO, h), COT_OK); /* has none to lose */
    assert_true(h[0] == 0 && h[1] == 0);
    y = cot_detach(cot_exp(x));
    assert_int_equal(cot_jacobian(1, &y, 1, &x, COT_AUTO, h), COT_OK); /* gave it up on purpose */
    cot_sparse_plan_destroy(p);
    cot_tape_destroy(t);
}

/* A C `if` changes which entries there are: the plan cannot know, the check does. */
static void the_check_finds_what_the_pattern_lacks(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_scalar(t, 2), b = cot_scalar(t, 3), xs[2] = {a, b}, now = cot_square(a), later = cot_mul(a, b);
    double    values[4];
    cot_sparse_plan *p = cot_sparse_jacobian_plan(1, &now, 2, xs, COT_AUTO), *h = cot_sparse_hessian_plan(now, 2, xs);
    assert_int_equal(cot_sparse_jacobian(p, 1, &now, 2, xs, values), COT_OK);
    assert_int_equal(cot_sparse_check(p, 1, &now, 2, xs, values, 3), COT_OK);
    assert_int_equal(cot_sparse_jacobian(p, 1, &later, 2, xs, values), COT_OK);
    assert_int_equal(cot_sparse_check(p, 1, &later, 2, xs, values, 3), COT_GRAD);
    assert_non_null(
        strstr(cot_tape_message(t), "[sparse_check] along a random direction row 0 of the sparse matrix gives "));
    assert_non_null(strstr(cot_tape_message(t),
                           "; the pattern lacks an entry (other control flow or positions?), make a plan here"));
    cot_tape_clear_error(t);
    assert_int_equal(cot_sparse_hessian(h, later, 2, xs, values), COT_OK);
    assert_int_equal(cot_sparse_check(h, 1, &later, 2, xs, values, 3), COT_GRAD);
    cot_tape_clear_error(t);
    assert_int_equal(cot_sparse_hessian(h, now, 2, xs, values), COT_OK);
    assert_int_equal(cot_sparse_check(h, 1, &now, 2, xs, values, 3), COT_OK);
    cot_sparse_plan_destroy(p);
    cot_sparse_plan_destroy(h);
    cot_tape_destroy(t);
}

/* sin(2x), written to its input, which is its own. */
static int doubles_in_place(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    cot_var x = xs[0];
    cot_mul_into(&x, 2.0);
    ys[0] = cot_sin(x);
    return 0;
}
static int sum_in_place(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var y;
    doubles_in_place(n, xs, m, &y, user);
    ys[0] = cot_sum(y, COT_ALL);
    return 0;
}

static void functions_may_write_to_their_inputs(void **state) {
    (void)state;
    const double     at[3] = {0.1, 0.2, 0.3};
    double           got[3];
    cot_tape        *t = cot_tape_create(NULL);
    cot_var          x = cot_tensor(t, COT_F64, COT_SHAPE(3), at);
    cot_sparse_plan *p = cot_sparse_jacobian_plan_of(doubles_in_place, NULL, 1, &x, 1, COT_AUTO);
    cot_sparse_plan *h = cot_sparse_hessian_plan_of(sum_in_place, NULL, 1, &x);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(cot_sparse_jacobian_of(p, doubles_in_place, NULL, 1, &x, 1, got), COT_OK);
        for (int k = 0; k < 3; k++) assert_true(fabs(got[k] - 2 * cos(2 * at[k])) < 1e-15);
        assert_int_equal(cot_sparse_hessian_of(h, sum_in_place, NULL, 1, &x, got), COT_OK);
        for (int k = 0; k < 3; k++) assert_true(fabs(got[k] + 4 * sin(2 * at[k])) < 1e-15);
    }
    assert_int_equal(cot_read(x, got, 3), COT_OK);
    assert_memory_equal(got, at, sizeof at);
    cot_sparse_plan_destroy(p);
    cot_sparse_plan_destroy(h);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_may_write_to_their_inputs),
        cmocka_unit_test(every_sample_equals_its_dense_matrices),
        cmocka_unit_test(hessians_over_scalars_equal_dense_ones),
        cmocka_unit_test(a_zero_wins_over_infinite_partials_in_lanes),
        cmocka_unit_test(a_banded_jacobian_takes_as_many_sweeps_as_the_band_is_wide),
        cmocka_unit_test(a_hessian_over_scalars_leaves_nothing_to_the_next_sweep),
        cmocka_unit_test(a_banded_function_of_scalars),
        cmocka_unit_test(a_tridiagonal_hessian_takes_three_sweeps),
        cmocka_unit_test(an_arrow_takes_two_sweeps),
        cmocka_unit_test(the_mode_with_fewer_colours_is_taken),
        cmocka_unit_test(nothing_zero_sizes_and_constants),
        cmocka_unit_test(nan_and_infinity_stay_where_they_belong),
        cmocka_unit_test(a_plan_serves_other_points),
        cmocka_unit_test(plans_that_cannot_be_made_say_why),
        cmocka_unit_test(plans_that_do_not_fit_say_so),
        cmocka_unit_test(functions_that_fail_say_so),
        cmocka_unit_test(functions_are_differentiated_as_other_forms_do),
        cmocka_unit_test(no_grad_scopes_give_no_zeros),
        cmocka_unit_test(the_check_finds_what_the_pattern_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
