/* Reductions, matrix products and softmax: values against plain loops, results for halves and
 * integers, conventions at kinks. */
#include "support/structural_test.h"


static void reductions_equal_plain_loops(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = iota(t, S(2, 3));
    VALUES(cot_sum(x, COT_ALL), O, 15);
    VALUES(cot_sum(x, COT_AXES(0)), S(3), 3, 5, 7);
    VALUES(cot_sum(x, COT_KEEP(1)), S(2, 1), 3, 12);
    VALUES(cot_sum(x, COT_KEEP_ALL), S(1, 1), 15);
    VALUES(cot_mean(x, COT_AXES(1)), S(2), 1, 4);
    VALUES(cot_prod(cot_add(x, 1.0), COT_ALL), O, 720);
    VALUES(cot_prod(cot_add(x, 1.0), COT_AXES(0)), S(3), 4, 10, 18);
    VALUES(cot_prod(cot_arange(t, COT_F64, 1, 16, 1), COT_ALL), O, 1307674368000.0);
    VALUES(cot_prod(cot_add(iota(t, S(7, 1)), 1.0), COT_AXES(0)), S(1), 5040);
    VALUES(cot_max(x, COT_AXES(0)), S(3), 3, 4, 5);
    VALUES(cot_min(x, COT_KEEP(-1)), S(2, 1), 0, 3);
    VALUES(cot_variance(x, COT_ALL), O, 35.0 / 12);
    VALUES(cot_std(x, COT_AXES(1)), S(2), sqrt(2.0 / 3), sqrt(2.0 / 3));
    VALUES(cot_logsumexp(x, COT_ALL), O, log(exp(0) + exp(1) + exp(2) + exp(3) + exp(4) + exp(5)));
    VALUES(cot_norm(x, 2, COT_ALL), O, sqrt(55));
    VALUES(cot_norm(x, 1, COT_AXES(0)), S(3), 3, 5, 7);
    VALUES(cot_norm(x, 0, COT_AXES(0)), S(3), 1, 2, 2);
    VALUES(cot_norm(x, INFINITY, COT_AXES(1)), S(2), 2, 5);
    VALUES(cot_norm(x, -INFINITY, COT_AXES(1)), S(2), 0, 3);
    VALUES(cot_norm(x, 3, COT_ALL), O, cbrt(225));
    VALUES(cot_norm(REALS(S(2), 3e200, 4e200), 2, COT_ALL), O, 5e200);
    VALUES(cot_norm(REALS(S(2), -3e200, 6e200), 3, COT_KEEP(0)), S(1), 3e200 * cbrt(9));
    VALUES(cot_norm(REALS(S(2, 2), 3e200, 6e200, 0, 0), 3, COT_AXES(1)), S(2), 3e200 * cbrt(9), 0);
    VALUES(cot_mul(cot_norm(REALS(S(2), 3e200, 6e-200), -3, COT_ALL), 1e200), O, 6);
    VALUES(cot_norm(REALS(S(2), INFINITY, 1), 3, COT_ALL), O, INFINITY);
    VALUES(cot_norm(cot_zeros(t, COT_F64, S(0)), 3, COT_ALL), O, 0);
    VALUES(cot_kron(2, REALS(S(2), 3, 4)), S(2), 6, 8);
    VALUES(cot_any(x, COT_AXES(1)), S(2), 1, 1);
    VALUES(cot_all(x, COT_AXES(1)), S(2), 0, 1);
    VALUES(cot_all(x, COT_ALL), O, 0);
    cot_var y = REALS(S(2, 3), 3, 9, 9, 7, 1, 1);
    VALUES(cot_argmax(y, COT_AXES(1)), S(2), 1, 0);
    VALUES(cot_argmin(y, COT_KEEP(1)), S(2, 1), 0, 1);
    VALUES(cot_argmax(y, COT_ALL), O, 1);
    VALUES(cot_argmin(cot_transpose(y), COT_ALL), O, 3); /* 3 7 9 1 9 1 */
    VALUES(cot_argmax(y, COT_KEEP_ALL), S(1, 1), 1);
    VALUES(cot_logsumexp(REALS(S(2), -INFINITY, -INFINITY), COT_ALL), O, -INFINITY);
    cot_tape_destroy(t);
}

/* Squares and powers of these are 0 or infinite in a double; the results are not. */
static void norms_and_deviations_of_far_away_numbers_have_gradients(void **state) {
    (void)state;
    static const double scales[] = {1e-300, 1e-200, 1, 1e200, 1e300};
    for (int i = 0; i < 5; i++) {
        double    s = scales[i], g[3];
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, S(3), (double[]){1 * s, 3 * s, 5 * s}), std = cot_std(x, COT_ALL),
                norm = cot_norm(x, 3, COT_ALL);
        assert_true(near(cot_value(std) / s, sqrt(8.0 / 3), 4e-16 * 8));
        cot_backward(std);
        cot_read_grad(x, g, 3); /* (x - 3) / (3 std) */
        for (int k = 0; k < 3; k++) assert_true(near(g[k], (2 * k - 2) / (3 * sqrt(8.0 / 3)), 1e-15));
        cot_tape_zero_grads(t);
        assert_true(near(cot_value(norm) / s, cbrt(153), 4e-16 * 16));
        cot_backward(norm);
        cot_read_grad(x, g, 3); /* (x / norm)² */
        for (int k = 0; k < 3; k++) assert_true(near(g[k], (2 * k + 1) * (2 * k + 1) / pow(153, 2.0 / 3), 2e-15));
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

/* cot_logsumexp_of is cot_logsumexp of the same numbers in a line, to the last place or so; where
 * something is infinite or NaN, exactly, and so is the gradient. Recorded and swept derivatives
 * have the same bits. */
static void logsumexp_over_scalars_is_that_over_a_tensor(void **state) {
    (void)state;
    static const double    lists[][3] = {{1, 2, 3},
                                         {-800, -801, -900},
                                         {1e308, 0, -1e308},
                                         {INFINITY, 1, 2},
                                         {NAN, 1, 2},
                                         {1, NAN, -INFINITY},
                                         {-INFINITY, 5, 4},
                                         {INFINITY, NAN, 1},
                                         {0, -0.0, 0},
                                         {-INFINITY, -INFINITY, -INFINITY},
                                         {INFINITY, -INFINITY, INFINITY}};
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16, COT_F16};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (size_t j = 0; j < sizeof dtypes / sizeof *dtypes; j++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x[3], g[3];
            for (int k = 0; k < 3; k++) x[k] = cot_scalar_of(t, dtypes[j], lists[i][k]);
            cot_var line = cot_detach(cot_stack(3, x, 0)), z = cot_logsumexp_of(3, x);
            cot_var leaf = cot_cast(line, COT_F64); /* the numbers as they were rounded */
            double  numbers[3];
            cot_read(leaf, numbers, 3);
            leaf = cot_tensor(t, COT_F64, S(3), numbers);
            cot_var want = cot_logsumexp(leaf, COT_ALL);
            double  eps = (double[]){2.3e-16, 1.2e-7, 8e-3, 1e-3}[j], w = cot_value(want), v = cot_value(z), grad[3];
            assert_int_equal(cot_dtype_of(z), dtypes[j]);
            assert_true(isfinite(w) ? fabs(v - w) <= 4 * eps * (1 + fabs(w)) : isnan(w) ? isnan(v) : v == w);
            cot_grad_of(z, 3, x, g);
            cot_backward(z);
            cot_backward(want);
            cot_read_grad(leaf, grad, 3);
            for (int k = 0; k < 3; k++) {
                double swept = cot_grad_value(x[k]), recorded = cot_value(g[k]);
                assert_true(isnan(grad[k]) ? isnan(swept) && isnan(recorded) : fabs(swept - grad[k]) <= 4 * eps);
                if (dtypes[j] == COT_F64 || dtypes[j] == COT_F32) assert_memory_equal(&swept, &recorded, sizeof swept);
            }
            assert_int_equal(cot_tape_status(t), COT_OK);
            cot_tape_destroy(t);
        }
}

static int logsumexp_of_three(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)m, (void)user;
    ys[0] = cot_logsumexp_of(n, xs);
    return 0;
}

/* In a body the rule was exp(x - z), which of three numbers 1e308 makes three times as much, and of
 * infinite ones NaN. */
static void logsumexp_over_scalars_in_a_body_has_the_gradient_it_has_outside(void **state) {
    (void)state;
    static const double lists[][3] = {
        {1, 2, 3},  {1e308, 1e308, 1e308}, {-1e17, -1e17, -1e17}, {-INFINITY, -INFINITY, -INFINITY}, {-INFINITY, 5, 4},
        {NAN, 1, 2}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (int d = COT_F64; d <= COT_F32; d++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x[3], z, outside[3], inside[3];
            for (int k = 0; k < 3; k++) x[k] = cot_scalar_of(t, (cot_dtype)d, lists[i][k]);
            cot_grad_of(cot_logsumexp_of(3, x), 3, x, outside);
            assert_int_equal(cot_checkpoint(logsumexp_of_three, NULL, 3, x, 1, &z), COT_OK);
            cot_grad_of(z, 3, x, inside);
            for (int k = 0; k < 3; k++) {
                double a = cot_value(outside[k]), b = cot_value(inside[k]);
                assert_true(isnan(a) ? isnan(b) : a == b);
            }
            assert_int_equal(cot_tape_status(t), COT_OK);
            cot_tape_destroy(t);
        }
}

static void scalars_reduce_to_themselves(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, -3);
    VALUES(cot_sum(x, COT_ALL), O, -3);
    VALUES(cot_mean(x, COT_KEEP_ALL), O, -3);
    VALUES(cot_prod(x, COT_ALL), O, -3);
    VALUES(cot_max(x, COT_ALL), O, -3);
    VALUES(cot_min(x, COT_ALL), O, -3);
    VALUES(cot_argmax(x, COT_ALL), O, 0);
    VALUES(cot_argmin(x, COT_KEEP_ALL), O, 0);
    VALUES(cot_variance(x, COT_ALL), O, 0);
    VALUES(cot_std(x, COT_ALL), O, 0);
    VALUES(cot_logsumexp(x, COT_ALL), O, -3);
    VALUES(cot_norm(x, 2, COT_ALL), O, 3);
    VALUES(cot_norm(x, INFINITY, COT_ALL), O, 3);
    VALUES(cot_any(x, COT_ALL), O, 1);
    VALUES(cot_all(cot_mul(0.0, x), COT_ALL), O, 0);
    VALUES(cot_transpose(x), O, -3);
    VALUES(cot_squeeze(x, COT_ALL), O, -3);
    VALUES(cot_flip(x, COT_ALL), O, -3);
    VALUES(cot_pad(x, O, O, 1), O, -3);
    VALUES(cot_expand_dims(x, 0), S(1), -3);
    VALUES(cot_one_hot(cot_cast(cot_constant(t, 1), COT_I64), 3, COT_F32), S(3), 0, 1, 0);
    cot_tape_destroy(t);
}

static void integers_reduce_as_in_numpy(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    int32_t   big[] = {INT32_MAX, 1, 2};
    uint8_t   small[] = {200, 100, 0};
    cot_var   i = cot_data(t, COT_I32, S(3), big), u = cot_data(t, COT_U8, S(3), small), b = cot_cast(u, COT_BOOL);
    VALUES(cot_sum(i, COT_ALL), O, 2147483650.0);
    VALUES(cot_sum(u, COT_ALL), O, 300);
    VALUES(cot_sum(b, COT_ALL), O, 2);
    assert_int_equal(cot_dtype_of(cot_sum(u, COT_ALL)), COT_I64);
    assert_int_equal(cot_dtype_of(cot_sum(cot_cast(cot_constant(t, 1), COT_BOOL), COT_ALL)), COT_I64);
    VALUES(cot_mean(u, COT_ALL), O, 100);
    assert_int_equal(cot_dtype_of(cot_mean(u, COT_ALL)), COT_F64);
    VALUES(cot_prod(cot_slice(u, 0, 0, 2, 1), COT_ALL), O, 20000);
    assert_int_equal(cot_dtype_of(cot_max(u, COT_ALL)), COT_U8);
    VALUES(cot_max(u, COT_ALL), O, 200);
    VALUES(cot_min(b, COT_ALL), O, 0);
    assert_int_equal(cot_dtype_of(cot_min(b, COT_ALL)), COT_BOOL);
    VALUES(cot_variance(INTS(S(2), 1, 3), COT_ALL), O, 1);
    VALUES(cot_norm(INTS(S(2), 3, 4), 2, COT_ALL), O, 5);
    VALUES(cot_matmul(INTS(S(2), 3, 4), INTS(S(2), 3, 4)), O, 25);
    assert_int_equal(cot_dtype_of(cot_matmul(b, b)), COT_I64);
    VALUES(cot_matmul(b, b), O, 2);
    VALUES(cot_matmul(INTS(S(2), 3, 4), REALS(S(2), 0.5, 0.5)), O, 3.5);
    VALUES(cot_softmax(INTS(S(2), 3, 3), 0), S(2), 0.5, 0.5);
    cot_tape_destroy(t);
}

static void halves_average_without_overflow(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_full(t, COT_F16, S(1000), 1024);
    assert_int_equal(cot_dtype_of(cot_mean(x, COT_ALL)), COT_F16);
    assert_true(cot_value(cot_mean(x, COT_ALL)) == 1024);
    assert_true(cot_value(cot_std(x, COT_ALL)) == 0);
    cot_var y = cot_full(t, COT_BF16, S(1000), 3);
    assert_true(cot_value(cot_mean(y, COT_ALL)) == 3);
    assert_int_equal(cot_dtype_of(cot_variance(y, COT_ALL)), COT_BF16);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void norms_and_products_of_halves_do_not_overflow_on_the_way(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_full(t, COT_F16, S(8), 64); /* 64³ is no f16, the norm 64·8^(1/3) = 128 is */
    assert_int_equal(cot_dtype_of(cot_norm(x, 3, COT_ALL)), COT_F16);
    assert_true(cot_value(cot_norm(x, 3, COT_ALL)) == 128);
    /* 512² is no f16 */
    cot_var y = cot_cast(REALS(S(2, 2), 512, 0.0078125, 512, 0.0078125), COT_F16), p = cot_prod(y, COT_ALL);
    assert_int_equal(cot_dtype_of(p), COT_F16);
    assert_true(cot_value(p) == 16);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* More ties than the largest f16: a share is still g / ties, and the tangent of the maximum their
 * mean. */
static void halves_share_among_many_ties(void **state) {
    (void)state;
    enum { N = 1 << 17 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F16, S(N), NULL), z = cot_max(x, COT_ALL), g;
    assert_int_equal(cot_vjp(z, 32768.0, 1, &x, &g), COT_OK);
    assert_int_equal(cot_dtype_of(g), COT_F16);
    assert_true(cot_value(cot_index(g, 0, N - 1)) == 0.25);
    cot_var ones = cot_ones(t, COT_F16, S(N)), dz = cot_jvp(z, 1, &x, &ones);
    assert_int_equal(cot_dtype_of(dz), COT_F16);
    assert_true(cot_value(dz) == 1);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* Σ z̄ is 2^17, which no f16 holds; the adjoint 1 - exp(z) Σ z̄ is small. The remaining error is the
 * rounding of z: relative to 1 at most 2^-11 · |z|. */
static void softmax_of_halves_sums_wide(void **state) {
    (void)state;
    enum { N = 1 << 17 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F16, S(N), NULL), g, ones = cot_ones(t, COT_F16, S(N));
    assert_int_equal(cot_vjp(cot_log_softmax(x, 0), 1.0, 1, &x, &g), COT_OK);
    assert_int_equal(cot_dtype_of(g), COT_F16);
    assert_true(fabs(cot_value(cot_index(g, 0, 0))) <= 17 * log(2) / 2048);
    cot_var dz = cot_jvp(cot_log_softmax(x, 0), 1, &x, &ones);
    assert_int_equal(cot_dtype_of(dz), COT_F16);
    assert_true(fabs(cot_value(cot_index(dz, 0, 0))) <= 17 * log(2) / 2048);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void matmul_equals_three_loops(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    for (int m = 0; m < 4; m++)
        for (int k = 0; k < 4; k++)
            for (int n = 0; n < 4; n++) {
                double a[16], b[16], want[16];
                for (int i = 0; i < m * k; i++) a[i] = sin(i + 7 * m);
                for (int i = 0; i < k * n; i++) b[i] = cos(3 * i + n);
                for (int i = 0; i < m; i++)
                    for (int j = 0; j < n; j++) {
                        want[i * n + j] = 0;
                        for (int l = 0; l < k; l++) want[i * n + j] += a[i * k + l] * b[l * n + j];
                    }
                assert_values(cot_matmul(cot_data(t, COT_F64, S(m, k), a), cot_data(t, COT_F64, S(k, n), b)), S(m, n),
                              want);
            }
    VALUES(cot_matmul(iota(t, S(2, 1, 2)), iota(t, S(2, 2, 1))), S(2, 1, 1), 1, 13);
    VALUES(cot_matmul(iota(t, S(2, 1, 1, 2)), iota(t, S(2, 2, 1))), S(2, 2, 1, 1), 1, 3, 3, 13);
    VALUES(cot_matmul(iota(t, S(2)), iota(t, S(2, 2, 1))), S(2, 1), 1, 3);
    VALUES(cot_matmul(iota(t, S(2, 1, 2)), iota(t, S(2))), S(2, 1), 1, 3);
    VALUES(cot_outer(iota(t, S(2)), iota(t, S(3))), S(2, 3), 0, 0, 0, 0, 1, 2);
    VALUES(cot_dot(iota(t, S(3)), iota(t, S(3))), O, 5);
    cot_tape_destroy(t);
}

/* A weight shared by a batch gets its gradient from one product: nothing of the size batch times
 * weight is made. */
static void a_shared_matrix_is_not_broadcast(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_ones(t, COT_F64, S(100, 1, 50)), w = cot_tensor(t, COT_F64, S(50, 50), NULL);
    int64_t   before = cot_tape_storage_bytes(t);
    cot_var   y = cot_matmul(x, w);
    cot_var   g;
    cot_grad_of(cot_sum(y, COT_ALL), 1, &w, &g);
    assert_ok(t);
    assert_true(cot_tape_storage_bytes(t) - before < 4 * 100 * 50 * 8);
    cot_tape_destroy(t);
}

static void gradient_is(cot_tape *t, cot_var y, cot_var x, const double *want) {
    double  g[MAX_SIZE];
    cot_var gx;
    cot_grad_of(y, 1, &x, &gx);
    assert_ok(t);
    cot_read(gx, g, cot_size(x));
    for (int64_t i = 0; i < cot_size(x); i++)
        if (!(g[i] == want[i])) fail_msg("gradient element %d is %g, not %g", (int)i, g[i], want[i]);
}
#define GRADIENT(y, x, ...) gradient_is(t, y, x, (const double[]){__VA_ARGS__})

static void kinks_follow_the_written_conventions(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   ties = cot_tensor(t, COT_F64, S(4), (double[]){1, 3, 3, 2}), zero = cot_tensor(t, COT_F64, S(2), NULL);
    GRADIENT(cot_max(ties, COT_ALL), ties, 0, 0.5, 0.5, 0);
    GRADIENT(cot_min(cot_neg(ties), COT_ALL), ties, 0, -0.5, -0.5, 0);
    GRADIENT(cot_norm(zero, 2, COT_ALL), zero, 0, 0);
    GRADIENT(cot_norm(zero, 3, COT_ALL), zero, 0, 0);
    GRADIENT(cot_std(zero, COT_ALL), zero, 0, 0);
    cot_var dark = cot_tensor(t, COT_F64, S(2), (double[]){-INFINITY, -INFINITY});
    GRADIENT(cot_logsumexp(dark, COT_ALL), dark, 0, 0);
    cot_var half_dark = cot_tensor(t, COT_F64, S(2), (double[]){-INFINITY, 1});
    GRADIENT(cot_logsumexp(half_dark, COT_ALL), half_dark, 0, 1);
    cot_var v = cot_tensor(t, COT_F64, S(4), (double[]){0, 2, 0, 3});
    GRADIENT(cot_prod(v, COT_ALL), v, 0, 0, 0, 0);
    cot_var one_zero = cot_tensor(t, COT_F64, S(3), (double[]){0, 2, 3});
    GRADIENT(cot_prod(one_zero, COT_ALL), one_zero, 6, 0, 0);
    cot_var p = cot_tensor(t, COT_F64, S(1, 2), (double[]){1, 0});
    GRADIENT(cot_cross_entropy(p, REALS(S(1, 2), 1, 0)), p, -1, 0);
    cot_tape_destroy(t);
}

/* With two zeros the product's gradient is 0 and its second derivative is not. */
static void products_with_zeros_keep_second_derivatives(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, S(4), (double[]){0, 2, 0, 3});
    double    h[16];
    assert_int_equal(cot_hessian(cot_prod(x, COT_ALL), 1, &x, h), COT_OK);
    for (int i = 0; i < 16; i++) assert_true(h[i] == (i == 2 || i == 8 ? 6 : 0));
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_equal_plain_loops),
        cmocka_unit_test(norms_and_deviations_of_far_away_numbers_have_gradients),
        cmocka_unit_test(logsumexp_over_scalars_is_that_over_a_tensor),
        cmocka_unit_test(logsumexp_over_scalars_in_a_body_has_the_gradient_it_has_outside),
        cmocka_unit_test(scalars_reduce_to_themselves),
        cmocka_unit_test(integers_reduce_as_in_numpy),
        cmocka_unit_test(halves_average_without_overflow),
        cmocka_unit_test(norms_and_products_of_halves_do_not_overflow_on_the_way),
        cmocka_unit_test(halves_share_among_many_ties),
        cmocka_unit_test(softmax_of_halves_sums_wide),
        cmocka_unit_test(matmul_equals_three_loops),
        cmocka_unit_test(a_shared_matrix_is_not_broadcast),
        cmocka_unit_test(kinks_follow_the_written_conventions),
        cmocka_unit_test(products_with_zeros_keep_second_derivatives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
