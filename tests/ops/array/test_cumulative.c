/* Running sums, products and extremes: against a plain loop over every layout and dtype, at zeros,
 * ties, NaNs and infinities. */
#include "support/tape_test.h"

#define VALUES(y, ...)                                                                                                 \
    do {                                                                                                               \
        const double want_[] = {__VA_ARGS__};                                                                          \
        values_are(y, (int)(sizeof want_ / sizeof *want_), want_);                                                     \
    } while (0)

static void values_are(cot_var y, int n, const double *want) {
    double got[64];
    assert_int_equal(cot_size(y), n);
    assert_int_equal(cot_read(y, got, n), COT_OK);
    for (int i = 0; i < n; i++) {
        assert_near(got[i], want[i], 0);
        assert_int_equal(signbit(got[i]) != 0, signbit(want[i]) != 0);
    }
}

static void grads_are(cot_var x, int n, const double *want) {
    double got[64];
    assert_int_equal(cot_read_grad(x, got, n), COT_OK);
    for (int i = 0; i < n; i++) assert_near(got[i], want[i], 0);
}

static double noise(uint64_t *s) {
    *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int64_t)(*s >> 11) * 0x1p-53 * 2 - 1;
}

/* ---- against a loop -------------------------------------------------------------------------- */

enum { MOST = 40 * 600 };
static double in[MOST], out[MOST], want[MOST];

/* (rows, n, columns), scanned along the middle. kind: 0 sum, 1 product, 2 max, 3 min. */
static void by_hand(int kind, int rows, int n, int columns, bool reverse) {
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            double s = 0;
            for (int j = 0; j < n; j++) {
                int    at = (r * n + (reverse ? n - 1 - j : j)) * columns + c;
                double x = in[at];
                s = j == 0 ? x : kind == 0 ? s + x : kind == 1 ? s * x : kind == 2 ? (x > s ? x : s) : x < s ? x : s;
                want[at] = s;
            }
        }
}

static cot_var scan(int kind, cot_var x, int axis, bool reverse) {
    return kind == 0 ? cot_cumsum(x, axis, reverse) : kind == 1 ? cot_cumprod(x, axis, reverse)
           : kind == 2 ? cot_cummax(x, axis, reverse) : cot_cummin(x, axis, reverse);
}

/* The same elements, contiguous or as a view whose axes lie the other way round, or backward. */
static cot_var laid_out(cot_var x, int layout) {
    if (layout == 0) return x;
    if (layout == 1) return cot_transpose(cot_copy(cot_transpose(x)));
    return cot_flip(cot_copy(cot_flip(x, COT_AXES(1, 2))), COT_AXES(1, 2));
}

static void every_layout_equals_a_plain_loop(void **state) {
    (void)state;
    static const int extents[][3] = {{1, 1, 1}, {1, 600, 1}, {3, 257, 1}, {2, 5, 33}, {1, 3, 64}, {7, 2, 31},
                                     {1, 256, 2}, {33, 4, 1}, {2, 64, 32}};
    cot_tape        *t = cot_tape_create(NULL);
    cot_mark         m = cot_tape_mark(t);
    uint64_t         seed = 1;
    for (size_t e = 0; e < sizeof extents / sizeof *extents; e++) {
        int rows = extents[e][0], n = extents[e][1], columns = extents[e][2], size = rows * n * columns;
        /* products neither vanish nor explode */
        for (int i = 0; i < size; i++) in[i] = 1.0 + 0.1 * noise(&seed);
        for (int k = 0; k < 24; k++) {
            int     kind = k / 6, layout = k / 2 % 3;
            bool    reverse = k % 2;
            cot_var x       = laid_out(cot_data(t, COT_F64, COT_SHAPE(rows, n, columns), in), layout),
                    y       = scan(kind, x, 1, reverse);
            assert_int_equal(cot_read(y, out, size), COT_OK);
            by_hand(kind, rows, n, columns, reverse);
            /* the same chain: the same bits */
            assert_memory_equal(out, want, (size_t)size * sizeof *out);
            cot_tape_rewind(t, m);
        }
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

static void every_dtype_counts_right(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    for (int d = 0; d < COT_DTYPE_COUNT; d++) {
        cot_var   x = cot_cast(cot_data(t, COT_F64, COT_SHAPE(5), (double[]){1, 1, 0, 1, 1}), (cot_dtype)d);
        cot_var   sum = cot_cumsum(x, 0, false), product = cot_cumprod(x, 0, false);
        cot_var   most = cot_cummax(x, 0, true), least = cot_cummin(x, 0, false);
        cot_dtype counts = d <= COT_F16 ? (cot_dtype)d : COT_I64;
        assert_int_equal(cot_dtype_of(sum), counts);
        assert_int_equal(cot_dtype_of(product), counts);
        assert_int_equal(cot_dtype_of(most), d);
        VALUES(sum, 1, 2, 2, 3, 4);
        VALUES(product, 1, 1, 0, 0, 0);
        VALUES(most, 1, 1, 1, 1, 1);
        VALUES(least, 1, 1, 0, 0, 0);
    }
    int64_t big = INT64_MAX;
    cot_var wraps = cot_cumsum(cot_data(t, COT_I64, COT_SHAPE(2), (int64_t[]){big, 1}), 0, false);
    int64_t got[2];
    assert_int_equal(cot_read_as(wraps, COT_I64, got, 2), COT_OK);
    assert_true(got[1] == INT64_MIN);
    /* equal as doubles */
    cot_var close = cot_cummax(cot_data(t, COT_I64, COT_SHAPE(2), (int64_t[]){big - 1, big}), 0, false);
    assert_int_equal(cot_read_as(close, COT_I64, got, 2), COT_OK);
    assert_true(got[1] == big);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* Summed in their own precision, f16 ones would stop at 2048 and a million f32 tenths would be off
 * by hundreds. */
static void long_sums_of_narrow_floats_do_not_stall(void **state) {
    (void)state;
    enum { N = 1000000 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var   ones = cot_cumsum(cot_ones(t, COT_F16, COT_SHAPE(4096)), 0, false);
    cot_var   tenths = cot_cumsum(cot_full(t, COT_F32, COT_SHAPE(N), 0.1), 0, false);
    assert_near(cot_value(cot_index(ones, 0, -1)), 4096, 0);
    assert_near(cot_value(cot_index(tenths, 0, -1)), (double)(float)((double)0.1f * N), 0);
    cot_tape_destroy(t);
}

/* ---- derivatives ----------------------------------------------------------------------------- */

/* Σ w[k] Π x[0..k], term by term. */
static cot_var products(cot_var x, const double *w, int n, bool composed) {
    cot_var wv = cot_data(x.tape, COT_F64, COT_SHAPE(n), w), z;
    if (!composed) return cot_sum(cot_mul(cot_cumprod(x, 0, false), wv), COT_ALL);
    cot_var terms[8];
    for (int k = 0; k < n; k++) terms[k] = cot_prod(cot_slice(x, 0, 0, k + 1, 1), COT_ALL);
    z = cot_stack(n, terms, 0);
    return cot_sum(cot_mul(z, wv), COT_ALL);
}

static void cumprod_at_zeros_has_the_derivatives_of_the_products(void **state) {
    (void)state;
    static const double w[6] = {0.5, -2, 3, 0.25, 1, -1.5};
    static const double at[4][6] = {{2, 0, 3, -1, 0.5, 4}, {0, 2, 0, 1, 3, 2}, {0, 0, 0, 1, 2, 3}, {1, 2, 3, 4, 5, 0}};
    for (int p = 0; p < 4; p++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(6), at[p]), g[2], third[2];
        cot_var   y[2] = {products(x, w, 6, false), products(x, w, 6, true)};
        double    h[2][36], grad[2][6], v[6] = {1, -1, 2, 0.5, -0.5, 3}, last[2][6];
        cot_var   dv = cot_data(t, COT_F64, COT_SHAPE(6), v);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(cot_grad_of(y[k], 1, &x, &g[k]), COT_OK);
            assert_int_equal(cot_read(g[k], grad[k], 6), COT_OK);
            assert_int_equal(cot_hessian(y[k], 1, &x, h[k]), COT_OK);
            third[k] = cot_jvp(cot_jvp(g[k], 1, &x, &dv), 1, &x, &dv);
            assert_int_equal(cot_read(third[k], last[k], 6), COT_OK);
        }
        double size = 0;
        for (int i = 0; i < 6; i++)
            assert_near(grad[0][i], grad[1][i], 1e-14), assert_near(last[0][i], last[1][i], 1e-13);
        for (int i = 0; i < 36; i++) assert_near(h[0][i], h[1][i], 1e-14), size += fabs(h[0][i]);
        assert_true(size > 1);
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

static void a_zero_adjoint_passes_infinite_factors(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(4), (double[]){2, INFINITY, NAN, 3});
    cot_backward(cot_index(cot_cumprod(x, 0, false), 0, 0));
    grads_are(x, 4, (double[]){1, 0, 0, 0});
    cot_var g;
    cot_grad_of(cot_index(cot_cumprod(x, 0, true), 0, 3), 1, &x, &g);
    VALUES(g, 0, 0, 0, 1);
    cot_tape_destroy(t);
}

static void signs_of_zero_and_special_values_are_kept(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    VALUES(cot_cumprod(cot_data(t, COT_F64, COT_SHAPE(3), (double[]){-1, 0, 5}), 0, false), -1, -0.0, -0.0);
    VALUES(cot_cumsum(cot_data(t, COT_F64, COT_SHAPE(2), (double[]){-0.0, -0.0}), 0, false), -0.0, -0.0);
    double p[4], s[4], m[4], l[4];
    cot_var x = cot_data(t, COT_F64, COT_SHAPE(4), (double[]){0, INFINITY, 1, NAN});
    cot_read(cot_cumprod(x, 0, false), p, 4), cot_read(cot_cumsum(x, 0, false), s, 4);
    cot_read(cot_cummax(x, 0, false), m, 4), cot_read(cot_cummin(x, 0, true), l, 4);
    assert_true(p[0] == 0 && isnan(p[1]) && isnan(p[2]));
    assert_true(s[0] == 0 && s[1] == INFINITY && s[2] == INFINITY && isnan(s[3]));
    assert_true(m[0] == 0 && m[1] == INFINITY && m[2] == INFINITY && isnan(m[3]));
    assert_true(isnan(l[0]) && isnan(l[3]));
    cot_tape_destroy(t);
}

static void of_equal_extremes_the_first_met_gets_the_gradient(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    at[5] = {1, 3, 3, 2, 3};
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(5), at), y = cot_tensor(t, COT_F64, COT_SHAPE(5), at);
    cot_var   z = cot_tensor(t, COT_F64, COT_SHAPE(5), at);
    cot_backward(cot_sum(cot_cummax(x, 0, false), COT_ALL));
    grads_are(x, 5, (double[]){1, 4, 0, 0, 0});
    /* from the end: the last of them is met first */
    cot_backward(cot_sum(cot_cummax(y, 0, true), COT_ALL));
    grads_are(y, 5, (double[]){0, 0, 0, 0, 5});
    cot_backward(cot_sum(cot_cummin(z, 0, true), COT_ALL));
    grads_are(z, 5, (double[]){1, 0, 0, 3, 1});
    cot_tape_destroy(t);
}

static void empty_and_single_elements(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    for (int kind = 0; kind < 4; kind++) {
        cot_var empty = cot_tensor(t, COT_F64, COT_SHAPE(3, 0, 2), NULL),
                one   = cot_tensor(t, COT_F64, COT_SHAPE(1), (double[]){7});
        for (int axis = -3; axis < 3; axis++) assert_int_equal(cot_size(scan(kind, empty, axis, axis % 2)), 0);
        cot_backward(cot_sum(scan(kind, empty, 0, false), COT_ALL));
        cot_var y = scan(kind, one, -1, true);
        VALUES(y, 7);
        cot_backward(cot_sum(y, COT_ALL));
        grads_are(one, 1, (double[]){1});
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

static void errors(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), NULL), s = cot_scalar(t, 1);
    cot_mark  m = cot_tape_mark(t);
#define FAILS(call, text)                                                                                              \
    do {                                                                                                               \
        call;                                                                                                          \
        assert_error(t, COT_SHAPE, text);                                                                              \
        cot_tape_rewind(t, m);                                                                                         \
    } while (0)
    FAILS(cot_cumsum(x, 2, false), "[cumsum] axis 2 is out of range for rank 2; axes run from -2 to 1");
    FAILS(cot_cumprod(x, -3, false), "[cumprod] axis -3 is out of range for rank 2; axes run from -2 to 1");
    FAILS(cot_cummax(s, 0, false), "[cummax] axis 0 is out of range for rank 0; a scalar has no axes");
    FAILS(cot_cummin(s, -1, true), "[cummin] axis -1 is out of range for rank 0; a scalar has no axes");
    assert_ok(t);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_equals_a_plain_loop),
        cmocka_unit_test(every_dtype_counts_right),
        cmocka_unit_test(long_sums_of_narrow_floats_do_not_stall),
        cmocka_unit_test(cumprod_at_zeros_has_the_derivatives_of_the_products),
        cmocka_unit_test(a_zero_adjoint_passes_infinite_factors),
        cmocka_unit_test(signs_of_zero_and_special_values_are_kept),
        cmocka_unit_test(of_equal_extremes_the_first_met_gets_the_gradient),
        cmocka_unit_test(empty_and_single_elements),
        cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
