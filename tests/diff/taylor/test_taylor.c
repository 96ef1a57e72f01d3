/* cot_taylor: closed forms to order 10, matrices, recursions, cost as a number of operations,
 * kinks, errors, memory, threads. */
/* ctest: timeout=300 labels=threads */
#include "support/tape_test.h"

#include <float.h>
#include <pthread.h>

#include "tape/tape.h"

enum { K = 10 };

static double factorial(int k) { return k < 2 ? 1 : k * factorial(k - 1); }

/* The derivatives 0 … K of y along x, recorded and in numbers: to the bit the same. */
static void derivatives(cot_var y, cot_var x, double *out) {
    double  one = 1;
    cot_var zs[K + 1], direction = cot_number(1);
    assert_int_equal(cot_taylor_values(y, 1, &x, 1, &one, K, out), COT_OK);
    assert_int_equal(cot_taylor(y, 1, &x, 1, &direction, K, zs), COT_OK);
    for (int m = 0; m <= K; m++) assert_near(cot_value(zs[m]), out[m], 0);
}

/* ---- closed forms ---------------------------------------------------------------------------- */

typedef cot_var (*function)(cot_var x);
#define F(name, expression) static cot_var name(cot_var x) { return expression; }
F(f_exp, cot_exp(x)) F(f_expm1, cot_expm1(x)) F(f_log, cot_log(x)) F(f_log1p, cot_log1p(cot_sub(x, 1.0)))
F(f_sin, cot_sin(x)) F(f_cos, cot_cos(x))
F(f_tan, cot_tan(x)) F(f_tanh, cot_tanh(x)) F(f_atan, cot_atan(x)) F(f_asin, cot_asin(x)) F(f_sqrt, cot_sqrt(x))
F(f_pow_half, cot_pow(x, 0.5))
F(f_rsqrt, cot_rsqrt(x)) F(f_inverse, cot_div(1.0, x)) F(f_reciprocal, cot_reciprocal(x))
F(f_pow_minus, cot_pow(x, -1.0)) F(f_cube, cot_pow(x, 3.0))
F(f_cube_of_product, cot_mul(x, cot_mul(x, x))) F(f_cube_of_squares, cot_mul(cot_square(x), x)) F(f_erf, cot_erf(x))
F(f_erfc, cot_sub(1.0, cot_erfc(x)))
F(f_sigmoid, cot_sigmoid(x)) F(f_lgamma, cot_lgamma(x)) F(f_exp_sin, cot_exp(cot_sin(x)))
F(f_bell, cot_exp(cot_sub(cot_exp(x), 1.0)))
F(f_secant, cot_div(1.0, cot_cos(x))) F(f_x_exp, cot_mul(x, cot_exp(x)))
F(f_fibonacci, cot_div(1.0, cot_sub(1.0, cot_add(x, cot_square(x)))))
F(f_sinc, cot_sub(cot_div(cot_sin(cot_add(x, 1.0)), cot_add(x, 1.0)), 0.0))
F(f_one, cot_add(cot_square(cot_sin(x)), cot_square(cot_cos(x))))
F(f_identity, cot_log(cot_exp(x))) F(f_tan_atan, cot_tan(cot_atan(x))) F(f_square_of_root, cot_square(cot_sqrt(x)))
F(f_power, cot_pow(2.0, x))
F(f_power_exp, cot_exp2(x)) F(f_x_to_x, cot_pow(x, x)) F(f_x_log_x, cot_exp(cot_mul(x, cot_log(x))))
F(f_softplus, cot_softplus(x))
F(f_fma, cot_fma(x, x, cot_mul(x, 2.0))) F(f_quotient, cot_div(cot_add(x, 1.0), cot_sub(2.0, x))) F(f_cosh, cot_cosh(x))
F(f_hypot, cot_hypot(x, 1.0))
F(f_root_of_square, cot_sqrt(cot_add(cot_square(x), 1.0)))
static cot_var f_logsumexp(cot_var x) {
    return cot_logsumexp(cot_stack(2, (cot_var[]){x, cot_constant(x.tape, 0)}, 0), COT_ALL);
}

/* x(x-1)…: the derivatives of x^a. */
static double power(double a, double x, int k) {
    double p = pow(x, a - k);
    for (int i = 0; i < k; i++) p *= a - i;
    return p;
}

typedef struct closed { const char *name; function f; double x; double want[K + 1]; } closed;

/* The first derivatives that every function of analysis has at a nice point. */
static const closed tabled[] = {
    {"tan", f_tan, 0, {0, 1, 0, 2, 0, 16, 0, 272, 0, 7936, 0}},
    {"tanh", f_tanh, 0, {0, 1, 0, -2, 0, 16, 0, -272, 0, 7936, 0}},
    {"atan", f_atan, 0, {0, 1, 0, -2, 0, 24, 0, -720, 0, 40320, 0}},
    {"asin", f_asin, 0, {0, 1, 0, 1, 0, 9, 0, 225, 0, 11025, 0}},
    {"x^3", f_cube, 0, {0, 0, 0, 6}},
    {"x^3", f_cube, 2, {8, 12, 12, 6}},
    {"x*x*x", f_cube_of_product, 0, {0, 0, 0, 6}},
    {"x^2*x", f_cube_of_squares, 0, {0, 0, 0, 6}},
    {"sigmoid", f_sigmoid, 0, {0.5, 0.25, 0, -0.125, 0, 0.25, 0, -17. / 16, 0, 7.75, 0}},
    {"softplus", f_softplus, 0, {0.693147180559945309417, 0.5, 0.25, 0, -0.125, 0, 0.25, 0, -17. / 16, 0, 7.75}},
    {"logsumexp", f_logsumexp, 0, {0.693147180559945309417, 0.5, 0.25, 0, -0.125, 0, 0.25, 0, -17. / 16, 0, 7.75}},
    {"exp(sin x)", f_exp_sin, 0, {1, 1, 1, 0, -3, -8, -3, 56, 217, 64, -2951}},
    {"exp(exp x - 1)", f_bell, 0, {1, 1, 2, 5, 15, 52, 203, 877, 4140, 21147, 115975}},
    {"1/cos x", f_secant, 0, {1, 0, 1, 0, 5, 0, 61, 0, 1385, 0, 50521}},
    {"x exp x", f_x_exp, 0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
    {"sin^2 + cos^2", f_one, 0.7, {1}},
    {"log exp x", f_identity, 0.7, {0.7, 1}},
    {"tan atan x", f_tan_atan, 0.7, {0.7, 1}},
    {"sqrt(x)^2", f_square_of_root, 0.7, {0.7, 1}},
    {"fma(x, x, 2x)", f_fma, 3, {15, 8, 2}},
};

/* ζ(2) … ζ(10) */
static const double zeta[] = {1.6449340668482264365, 1.2020569031595942854, 1.0823232337111381915,
                              1.0369277551433699263, 1.0173430619844491397, 1.0083492773819228268,
                              1.0040773561979443394, 1.0020083928260822144, 1.0009945751278180853};

static double want(function f, double x, int k) {
    double s = k & 1 ? -1 : 1;
    if (f == f_exp || f == f_cosh) return f == f_exp ? exp(x) : k & 1 ? sinh(x) : cosh(x);
    if (f == f_expm1) return k ? exp(x) : expm1(x);
    if (f == f_power || f == f_power_exp) return exp2(x) * pow(0.693147180559945309417, k);
    if (f == f_log || f == f_log1p) return k ? -s * factorial(k - 1) / pow(x, k) : log(x);
    if (f == f_sin || f == f_cos)
        return (k / 2 & 1 ? -1 : 1) * (f == f_sin ? (k & 1 ? cos(x) : sin(x)) : k & 1 ? -sin(x) : cos(x));
    if (f == f_sqrt || f == f_pow_half) return power(0.5, x, k);
    if (f == f_rsqrt) return power(-0.5, x, k);
    if (f == f_inverse || f == f_reciprocal || f == f_pow_minus) return power(-1, x, k);
    if (f == f_fibonacci) { /* at 0 */
        double a = 0, b = 1;
        for (int i = 0; i < k; i++) { double c = a + b; a = b; b = c; }
        return b * factorial(k);
    }
    /* at 0 */
    if (f == f_erf || f == f_erfc)
        return k & 1 ? 1.1283791670955125739 * (k / 2 & 1 ? -1 : 1) * factorial(k - 1) / factorial(k / 2) : 0;
    if (f == f_quotient) return k ? 3 * factorial(k) / pow(2 - x, k + 1) : (x + 1) / (2 - x);
    assert_true(f == f_lgamma && x == 1);
    return k == 0 ? 0 : k == 1 ? -0.57721566490153286061 : s * factorial(k - 1) * zeta[k - 2];
}

static const struct { const char *name; function f; double x;
} formulas[] = {
    {"exp", f_exp, 0.3},
    {"expm1", f_expm1, 0.3},
    {"2^x", f_power, 0.3},
    {"exp2", f_power_exp, 0.3},
    {"log", f_log, 0.6},
    {"log1p", f_log1p, 1.6},
    {"sin", f_sin, 0.4},
    {"cos", f_cos, 0.4},
    {"sqrt", f_sqrt, 1.7},
    {"x^0.5", f_pow_half, 1.7},
    {"rsqrt", f_rsqrt, 1.7},
    {"1/x", f_inverse, 1.3},
    {"reciprocal", f_reciprocal, -1.3},
    {"x^-1", f_pow_minus, 1.3},
    {"fibonacci", f_fibonacci, 0},
    {"erf", f_erf, 0},
    {"1 - erfc", f_erfc, 0},
    {"(x+1)/(2-x)", f_quotient, 0.5},
    {"lgamma", f_lgamma, 1},
    {"cosh", f_cosh, 0.8},
};

/* |a - b| within a few thousand roundings of numbers as large as b, or as the derivatives grow:
 * k! */
static void near(const char *name, int k, double a, double b) {
    double scale = fabs(b) > factorial(k) ? fabs(b) : factorial(k);
    if (a == b || fabs(a - b) <= 64 * (k + 1) * DBL_EPSILON * scale) return;
    fail_msg("%s: derivative %d is %.17g, not %.17g", name, k, a, b);
}

static void closed_forms(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof tabled / sizeof *tabled; i++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_scalar(t, tabled[i].x);
        double    out[K + 1];
        derivatives(tabled[i].f(x), x, out);
        for (int k = 0; k <= K; k++) near(tabled[i].name, k, out[k], tabled[i].want[k]);
        cot_tape_destroy(t);
    }
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_scalar(t, formulas[i].x);
        double    out[K + 1];
        derivatives(formulas[i].f(x), x, out);
        for (int k = 0; k <= K; k++) near(formulas[i].name, k, out[k], want(formulas[i].f, formulas[i].x, k));
        cot_tape_destroy(t);
    }
}

/* The same function in two ways. */
static void pairs(void **state) {
    (void)state;
    const function two[][2] = {{f_x_to_x, f_x_log_x}, {f_hypot, f_root_of_square}, {f_cube, f_cube_of_squares}};
    for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_scalar(t, 1.25);
        double    a[K + 1], b[K + 1];
        derivatives(two[i][0](x), x, a);
        derivatives(two[i][1](x), x, b);
        for (int k = 0; k <= K; k++) near("pair", k, a[k], b[k]);
        cot_tape_destroy(t);
    }
    /* sin(1)/1 from the derivatives at x + 1 = 1.5, half a step away */
    double    out[K + 1], taylor = 0;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5);
    derivatives(f_sinc(x), x, out);
    for (int k = K; k >= 0; k--) taylor += out[k] * pow(-0.5, k) / factorial(k);
    assert_near(taylor, sin(1), 1e-11); /* the 11-th derivative is below 1/12: 0.5^11/11!/12 */
    cot_tape_destroy(t);
}

/* ---- kinks and poles ------------------------------------------------------------------------- */

static void check_at(function f, double at, int n, const double *want_these) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, at);
    double    out[K + 1];
    derivatives(f(x), x, out);
    for (int k = 0; k < n; k++) assert_near(out[k], want_these[k], 0);
    cot_tape_destroy(t);
}
F(k_abs, cot_abs(x)) F(k_relu, cot_relu(x)) F(k_floor, cot_floor(x))
F(k_where, cot_where(cot_greater(x, 0.0), cot_log(x), 0.0))
F(k_log_square, cot_square(cot_log(x))) F(k_pow0, cot_pow(x, 0.0)) F(k_max, cot_maximum(x, cot_mul(x, -3.0)))
F(k_pole, cot_div(cot_add(x, 1.0), x)) F(k_branch, cot_where(cot_less(x, 1.0), cot_exp(x), x))

static void kinks_and_poles(void **state) {
    (void)state;
    check_at(k_abs, 0, 4, (double[]){0, 0, 0, 0});
    check_at(k_abs, -2, 4, (double[]){2, -1, 0, 0});
    check_at(k_relu, 0, 3, (double[]){0, 0, 0});
    check_at(k_floor, 1.5, 3, (double[]){1, 0, 0});
    check_at(k_where, 0, 4, (double[]){0, 0, 0, 0});
    check_at(k_log_square, 1, 4, (double[]){0, 0, 2, -6});
    check_at(k_pow0, 0, 4, (double[]){1, 0, 0, 0});
    check_at(k_max, 0, 3, (double[]){0, -1, 0}); /* halves of 1 and -3 */
    check_at(k_branch, 0, 4, (double[]){1, 1, 1, 1});
    check_at(f_sqrt, 0, 2, (double[]){0, INFINITY});
    check_at(f_log, 0, 2, (double[]){-INFINITY, INFINITY});
    /* both move at a pole: 1/0 - inf/0, as the rule says, and no infinity of either sign */
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0), y = k_pole(x), one = cot_number(1);
    double    out[K + 1];
    derivatives(y, x, out);
    assert_near(out[0], INFINITY, 0);
    assert_true(isnan(out[1]) && isnan(cot_value(cot_jvp(y, 1, &x, &one))));
    cot_tape_destroy(t);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static const double A[9] = {0.2, -0.5, 0.3, 0.7, 0.1, -0.4, -0.2, 0.6, 0.5};

static void times(double *c, const double *a, const double *b) {
    double r[9];
    for (int i = 0; i < 9; i++)
        r[i] = a[i / 3 * 3] * b[i % 3] + a[i / 3 * 3 + 1] * b[3 + i % 3] + a[i / 3 * 3 + 2] * b[6 + i % 3];
    memcpy(c, r, sizeof r);
}

/* det(I + sA), (I - sA)^-1, (I - sA)^-1 b, exp(sA), (I + sA)^3. */
static void matrices(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   s = cot_scalar(t, 0), a = cot_data(t, COT_F64, COT_SHAPE(3, 3), A), id = cot_eye(t, COT_F64, 3, 3);
    cot_var   up = cot_add(id, cot_mul(s, a)), down = cot_sub(id, cot_mul(s, a)),
            b     = cot_data(t, COT_F64, COT_SHAPE(3), A);
    double    one = 1, out[9 * (K + 1)], square[9], p[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    times(square, A, A);
    double trace = A[0] + A[4] + A[8], second = (trace * trace - square[0] - square[4] - square[8]) / 2;
    double det =
        A[0] * (A[4] * A[8] - A[5] * A[7]) - A[1] * (A[3] * A[8] - A[5] * A[6]) + A[2] * (A[3] * A[7] - A[4] * A[6]);
    assert_int_equal(cot_taylor_values(cot_det(up), 1, &s, 1, &one, K, out), COT_OK);
    for (int k = 0; k <= K; k++)
        near("det", k, out[k], k == 0 ? 1 : k == 1 ? trace : k == 2 ? 2 * second : k == 3 ? 6 * det : 0);

    double inverse[9 * (K + 1)], solved[3 * (K + 1)], exponential[9 * (K + 1)], cube[9 * (K + 1)],
        binomial[] = {1, 3, 6, 6};
    assert_int_equal(cot_taylor_values(cot_inv(down), 1, &s, 1, &one, K, inverse), COT_OK);
    assert_int_equal(cot_taylor_values(cot_solve(down, b), 1, &s, 1, &one, K, solved), COT_OK);
    assert_int_equal(cot_taylor_values(cot_matrix_exp(cot_mul(s, a)), 1, &s, 1, &one, K, exponential), COT_OK);
    assert_int_equal(cot_taylor_values(cot_matmul(up, cot_matmul(up, up)), 1, &s, 1, &one, K, cube), COT_OK);
    for (int k = 0; k <= K; k++) {
        for (int i = 0; i < 9; i++) {
            near("inv", k, inverse[9 * k + i], factorial(k) * p[i]);
            near("matrix_exp", k, exponential[9 * k + i], p[i]);
            near("cube", k, cube[9 * k + i], k > 3 ? 0 : binomial[k] * p[i]);
        }
        for (int i = 0; i < 3; i++)
            near("solve", k, solved[3 * k + i],
                 factorial(k) * (p[3 * i] * A[0] + p[3 * i + 1] * A[1] + p[3 * i + 2] * A[2]));
        times(p, p, A);
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

/* Elements of a tensor are independent; f32 follows f64. */
static void elements(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double points[3] = {0.3, 1.1, 2}, directions[3] = {1, -2, 0.5}, out[3 * (K + 1)], single[3 * (K + 1)], alone[K + 1];
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), points), low = cot_leaf(cot_cast(x, COT_F32));
    assert_int_equal(cot_taylor_values(f_exp_sin(x), 1, &x, 1, directions, K, out), COT_OK);
    assert_int_equal(cot_taylor_values(f_exp_sin(low), 1, &low, 1, directions, K, single), COT_OK);
    for (int i = 0; i < 3; i++) {
        cot_var s = cot_scalar(t, points[i]);
        assert_int_equal(cot_taylor_values(f_exp_sin(s), 1, &s, 1, &directions[i], K, alone), COT_OK);
        for (int k = 0; k <= K; k++) {
            double scale = factorial(k) * pow(fabs(directions[i]), k);
            assert_true(fabs(out[3 * k + i] - alone[k]) <=
                        64 * DBL_EPSILON * scale + 64 * DBL_EPSILON * fabs(alone[k]));
            assert_true(fabs(single[3 * k + i] - alone[k]) <= 64 * (double)FLT_EPSILON * (scale + fabs(alone[k])));
        }
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- what is asked --------------------------------------------------------------------------- */

static void inputs_and_orders(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2), u = cot_square(x), y = cot_mul(u, x), zs[4], one = cot_number(1);
    double    out[4], ones[2] = {1, 1};
    assert_int_equal(cot_taylor_values(y, 1, &x, 1, ones, 0, out), COT_OK); /* order 0: the value */
    assert_near(out[0], 8, 0);
    assert_int_equal(cot_taylor(y, 1, &x, 1, &one, 0, zs), COT_OK);
    assert_true(zs[0].id == y.id);
    assert_int_equal(cot_taylor_values(x, 1, &x, 1, ones, 3, out), COT_OK); /* y is x */
    assert_true(out[0] == 2 && out[1] == 1 && out[2] == 0 && out[3] == 0);
    assert_int_equal(cot_taylor_values(y, 0, NULL, 1, ones, 2, out), COT_OK); /* nothing moves */
    assert_true(out[0] == 8 && out[1] == 0 && out[2] == 0);
    assert_int_equal(cot_taylor_values(y, 1, &x, 0, NULL, 2, out), COT_OK);
    assert_true(out[0] == 8 && out[1] == 0 && out[2] == 0);
    cot_var late = cot_scalar(t, 1); /* y does not depend on it */
    assert_int_equal(cot_taylor(y, 1, &late, 1, &one, 2, zs), COT_OK);
    assert_near(cot_value(zs[1]), 0, 0);
    /* An input that is computed moves by its own on top: u = x² + s, so y = ((2 + s)² + s)(2 + s) =
     * 8 + 14 s + 7 s² + s³ */
    assert_int_equal(cot_taylor_values(y, 2, (cot_var[]){x, u}, 1, ones, 3, out), COT_OK);
    assert_true(out[0] == 8 && out[1] == 14 && out[2] == 14 && out[3] == 6);
    /* Listed twice: by both. */
    assert_int_equal(cot_taylor_values(y, 2, (cot_var[]){x, x}, 1, ones, 3, out), COT_OK);
    assert_true(out[1] == 24 && out[2] == 48 && out[3] == 48);
    /* A curve: x = 2 + s²: y = (2 + s²)³; and one with no first derivative. */
    assert_int_equal(cot_taylor(y, 1, &x, 2, (cot_var[]){COT_NONE, cot_number(2)}, 3, zs), COT_OK);
    assert_true(cot_value(zs[1]) == 0 && cot_value(zs[2]) == 24 && cot_value(zs[3]) == 0);
    assert_int_equal(cot_taylor_values(cot_exp(y), 1, &x, 2, (double[]){0, 2}, 2, out), COT_OK);
    assert_near(out[2], 24 * exp(8), 4 * DBL_EPSILON);
    /* An empty tensor. */
    cot_var none = cot_tensor(t, COT_F64, COT_SHAPE(0, 3), NULL);
    assert_int_equal(cot_taylor(cot_softmax(cot_exp(none), 1), 1, &none, 1, &none, 3, zs), COT_OK);
    assert_int_equal(cot_size(zs[3]), 0);
    assert_int_equal(cot_taylor_values(cot_sum(cot_sin(none), COT_ALL), 1, &none, 1, ones, 3, out), COT_OK);
    assert_true(out[0] == 0 && out[3] == 0);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* The rule of the cosine records a sine, whose rule records the cosine again: that is on the tape
 * already, but overwritten, so its value is no help. It counts where the operand moves on a
 * curve. */
static void overwritten_values_are_not_found_again(void **state) {
    (void)state;
    enum { ORDER = 5 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x       = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){0.3, 1.1}),
            direction = cot_ones(t, COT_F64, COT_SHAPE(2)), zs[ORDER + 1];
    cot_var   u = cot_exp(x), c, plain = cot_add(cot_cos(u), 2.0);
    double    want[2 * (ORDER + 1)], got[2 * (ORDER + 1)], one[2];
    assert_int_equal(cot_taylor_values(cot_mul(cot_sin(u), plain), 1, &x, 1, (double[]){1, 1}, ORDER, want), COT_OK);
    c = cot_cos(u);
    cot_add_into(&c, 2.0);
    cot_var y = cot_mul(cot_sin(u), c);
    assert_int_equal(cot_taylor_values(y, 1, &x, 1, (double[]){1, 1}, ORDER, got), COT_OK);
    assert_int_equal(cot_taylor(y, 1, &x, 1, &direction, ORDER, zs), COT_OK);
    assert_ok(t);
    for (int k = 0; k <= ORDER; k++) {
        cot_read(zs[k], one, 2);
        for (int i = 0; i < 2; i++) {
            assert_near(got[2 * k + i], want[2 * k + i], 4 * DBL_EPSILON);
            assert_near(one[i], want[2 * k + i], 4 * DBL_EPSILON);
        }
    }
    cot_tape_destroy(t);
}

/* Recorded coefficients have derivatives: d/dx of the second one along x is the third; the same
 * holds for the derivative by a direction. */
static void recorded(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.4), d = cot_scalar(t, 1), y = cot_tanh(cot_exp(x)), zs[4], deeper[3], g[2];
    double    one = 1, out[6];
    assert_int_equal(cot_taylor_values(y, 1, &x, 1, &one, 5, out), COT_OK);
    assert_int_equal(cot_taylor(y, 1, &x, 1, &d, 3, zs), COT_OK);
    assert_int_equal(cot_grad_of(zs[3], 2, (cot_var[]){x, d}, g), COT_OK);
    assert_near(cot_value(g[0]), out[4], 1e-13);
    assert_near(cot_value(g[1]), 3 * out[3], 1e-13); /* d³ times the third */
    /* and a series of that */
    assert_int_equal(cot_taylor(zs[3], 1, &x, 1, (cot_var[]){cot_number(1)}, 2, deeper), COT_OK);
    assert_near(cot_value(deeper[2]), out[5], 1e-12);
    cot_no_grad_open(t);
    assert_int_equal(cot_taylor(y, 1, &x, 1, &d, 2, deeper), COT_OK);
    cot_no_grad_close(t);
    assert_false(cot_requires_grad(deeper[2]));
    assert_near(cot_value(deeper[2]), out[2], 1e-14);
    assert_true(cot_requires_grad(cot_exp(x)));
    char why[200];
    assert_int_equal(cot_tape_check(t, why, sizeof why), COT_OK);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* In a body, where nothing has a value yet, along a curve of constants: of sin(x + s + s²) the
 * second derivative by s at 0. */
static int second(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    cot_var curve[2] = {cot_number(1), cot_number(2)}, zs[3];
    if (cot_taylor(cot_sin(xs[0]), 1, xs, 2, curve, 2, zs) != COT_OK) return 1;
    ys[0] = zs[2];
    return 0;
}

static double second_at(double x) { return 2 * cos(x) - sin(x); }

static void in_bodies(void **state) {
    (void)state;
    const double at[3] = {0.3, -0.7, 1.1};
    double       got[3];
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      x = cot_tensor(t, COT_F64, COT_SHAPE(3), at), y, J;
    cot_scan(second, NULL, 1, 1, &x, 0, NULL, &y, 0, NULL, NULL);
    assert_ok(t);
    cot_read(y, got, 3);
    for (int k = 0; k < 3; k++) assert_near(got[k], second_at(at[k]), 1e-15);
    cot_vmap(second, NULL, 1, &x, NULL, 1, &y, NULL);
    assert_ok(t);
    cot_read(y, got, 3);
    for (int k = 0; k < 3; k++) assert_near(got[k], second_at(at[k]), 1e-15);
    cot_fn_jvp(second, NULL, 1, &x, (cot_var[]){cot_number(1)}, 1, &y, &J);
    cot_read(J, got, 3);
    for (int k = 0; k < 3; k++) assert_near(got[k], -2 * sin(at[k]) - cos(at[k]), 1e-15);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- custom operations and halves ------------------------------------------------------------ */

static int cube_value(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    double x = *(double *)xs[0].data;
    *(double *)y->data = x * x * x;
    return 0;
}
static int cube_vjp(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    (void)n, (void)y, (void)user;
    xbars[0] = cot_mul(ybar, cot_mul(3.0, cot_square(xs[0])));
    return 0;
}
static int cube_jvp(int n, const cot_array *xs, const cot_array *y, const cot_array *dxs, cot_array *dy, void *user) {
    (void)n, (void)y, (void)user;
    double x = *(double *)xs[0].data;
    *(double *)dy->data = 3 * x * x * *(double *)dxs[0].data;
    return 0;
}

/* A rule in recorded operations will do to every order, one in numbers to the first. */
static void custom_operations(void **state) {
    (void)state;
    const cot_custom by_rule = {.name = "cube", .value = cube_value, .vjp = cube_vjp};
    const cot_custom in_numbers = {.name = "dice", .value = cube_value, .jvp_numbers = cube_jvp};
    cot_tape        *t = cot_tape_create(NULL);
    cot_var          x = cot_scalar(t, 2), y = cot_call(&by_rule, 1, &x, NULL), z = cot_call(&in_numbers, 1, &x, NULL);
    double           out[5], one = 1;
    assert_int_equal(cot_taylor_values(y, 1, &x, 1, &one, 4, out), COT_OK);
    assert_true(out[0] == 8 && out[1] == 12 && out[2] == 12 && out[3] == 6 && out[4] == 0);
    assert_int_equal(cot_taylor_values(z, 1, &x, 1, &one, 1, out), COT_OK);
    assert_true(out[0] == 8 && out[1] == 12);
    assert_int_equal(cot_taylor_values(z, 1, &x, 1, &one, 2, out), COT_GRAD);
    assert_non_null(strstr(cot_tape_message(t), "[dice]"));
    cot_tape_destroy(t);
}

static void halves(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    at[2] = {0.5, 1}, d[2] = {1, 1}, out[8];
    for (cot_dtype dtype = COT_BF16; dtype <= COT_F16; dtype++) {
        cot_var x = cot_leaf(cot_cast(cot_data(t, COT_F64, COT_SHAPE(2), at), dtype)), s = cot_leaf(cot_index(x, 0, 0));
        double  unit = dtype == COT_BF16 ? 1. / 128 : 1. / 1024;
        assert_int_equal(cot_taylor_values(cot_exp(x), 1, &x, 1, d, 3, out), COT_OK);
        for (int k = 0; k < 8; k++) assert_near(out[k], exp(at[k % 2]), 4 * unit);
        assert_int_equal(cot_taylor_values(cot_exp(s), 1, &s, 1, d, 3, out), COT_OK);
        for (int k = 0; k < 4; k++) assert_near(out[k], exp(0.5), 4 * unit);
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- cost ------------------------------------------------------------------------------------ */

/* Operations recorded for all derivatives up to `order` of f, where its argument moves at every
 * order. */
static double cost(function f, int order) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.6), y = f(x), curve[64], zs[64];
    for (int k = 0; k < order; k++) curve[k] = cot_constant(t, 1);
    uint32_t before = t->count;
    assert_int_equal(cot_taylor(y, 1, &x, order, curve, order, zs), COT_OK);
    double n = t->count - before;
    cot_tape_destroy(t);
    return n;
}

static cot_var c_gelu(cot_var x) { return cot_gelu(x); }
static cot_var c_log_softmax(cot_var x) {
    return cot_sum(cot_square(cot_log_softmax(cot_stack(2, (cot_var[]){x, cot_square(x)}, 0), 0)), COT_ALL);
}

static void cost_is_quadratic(void **state) {
    (void)state;
    const function square[] = {f_exp,     f_log,     f_sin,        f_tan,      f_tanh,
                               f_atan,    f_asin,    f_sqrt,       f_inverse,  f_erf,
                               f_sigmoid, f_exp_sin, f_bell,       f_quotient, f_cube_of_product,
                               f_hypot,   c_gelu,    c_log_softmax};
    for (size_t i = 0; i < sizeof square / sizeof *square; i++) {
        double ratio = cost(square[i], 56) / cost(square[i], 28);
        /* a k² + b k: below 4 */
        if (ratio > 4) fail_msg("function %zu: twice the order costs %g times as much", i, ratio);
    }
    const function cubic[] = {f_pow_half, f_lgamma}; /* ever new operations: k of them */
    for (size_t i = 0; i < sizeof cubic / sizeof *cubic; i++) assert_true(cost(cubic[i], 56) / cost(cubic[i], 28) <= 8);
}

/* ---- recursions ------------------------------------------------------------------------------ */

/* y <- y + h sin(y) f(x): a step of an equation; the polynomial must give the value at another
 * start. */
static cot_var solve_equation(cot_var y) {
    cot_var start = y;
    for (int i = 0; i < 100; i++)
        y = cot_add(y, cot_mul(0.01, cot_mul(cot_sin(y), cot_exp(cot_neg(cot_square(start))))));
    return y;
}

static void recursion(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5);
    double    out[K + 1], h = 0.03125, polynomial = 0;
    derivatives(solve_equation(x), x, out);
    for (int k = K; k >= 0; k--) polynomial += out[k] * pow(h, k) / factorial(k);
    /* the rest is of the size of h^11 = 3e-17 */
    assert_near(polynomial, cot_value(solve_equation(cot_constant(t, 0.5 + h))), 1e-13);
    cot_tape_destroy(t);
}

/* A million nodes on a small stack: n steps of y/(1 + c y) are x/(1 + n c x). */
static void *million(void *failed) {
    counting  c = {0};
    cot_tape *t = counted_tape(&c, false);
    cot_var   x = cot_scalar(t, 0.5), y = x;
    int       steps = 333334;
    for (int i = 0; i < steps; i++) y = cot_div(y, cot_add(1.0, cot_mul(y, 1.0 / steps)));
    size_t before = c.live;
    double out[6], one = 1;
    *(bool *)failed = cot_taylor_values(y, 1, &x, 1, &one, 5, out) != COT_OK || t->count < 1000000;
    for (int k = 1; k <= 5; k++) {
        double exact = (k & 1 ? 1 : -1) * factorial(k) / pow(1.5, k + 1);
        *(bool *)failed |= !(fabs(out[k] - exact) <= 1e-9 * fabs(exact)); /* a million roundings */
    }
    /* the tape keeps freed memory for the next sweep: 40 bytes a node, whatever the order */
    *(bool *)failed |= c.live > before + 40 * (size_t)t->count;
    cot_tape_destroy(t);
    *(bool *)failed |= c.live != 0;
    return NULL;
}

static void *deepest(void *failed) { /* as many rules in each other as orders */
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 1);
    double    out[61], one = 1;
    *(bool *)failed = cot_taylor_values(cot_lgamma(x), 1, &x, 1, &one, 60, out) != COT_OK;
    *(bool *)failed |= !(fabs(out[60] / factorial(59) - 1) < 1e-12);
    cot_tape_destroy(t);
    return NULL;
}

static bool on_small_stack(void *(*f)(void *), size_t stack) {
    bool           failed = true;
    pthread_attr_t attr;
    pthread_t      thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, stack), 0);
    assert_int_equal(pthread_create(&thread, &attr, f, &failed), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    return !failed;
}

static void long_tapes_and_deep_rules(void **state) {
    (void)state;
    /* sanitizers need room of their own */
    size_t stack = getenv("COT_TEST_SMALL") ? 1 << 20 : 1 << 16;
    assert_true(on_small_stack(million, stack));
    assert_true(on_small_stack(deepest, stack));
}

/* ---- errors ---------------------------------------------------------------------------------- */

#define expect(call, code, text)                                                                                       \
    do {                                                                                                               \
        assert_int_equal(call, code);                                                                                  \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)

static void errors(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL), *other = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 1), v = cot_tensor(t, COT_F64, COT_SHAPE(3), A),
            y = cot_mul(x, cot_sum(cot_square(v), COT_ALL)), c = cot_constant(t, 1);
    cot_var   one = cot_number(1), zs[3], k = cot_data(t, COT_I64, COT_SCALAR, (int64_t[]){3});
    double    out[100], d[3] = {1, 1, 1};
    expect(cot_taylor(y, 1, &x, 1, &one, -1, zs), COT_VALUE, "[taylor] order -1; orders run from 0 to 60");
    /* an order that is refused gives no length of the list, so nothing is written */
    zs[0] = zs[1] = zs[2] = y;
    expect(cot_taylor(y, 1, &x, 1, &one, 61, zs), COT_VALUE, "[taylor] order 61; orders run from 0 to 60");
    out[0] = 7;
    expect(cot_taylor_values(y, 1, &x, 1, d, 61, out), COT_VALUE, "[taylor_values] order 61; orders run from 0 to 60");
    for (int m = 0; m < 3; m++) assert_memory_equal(&zs[m], &y, sizeof y);
    assert_near(out[0], 7, 0);
    expect(cot_taylor(y, 1, &x, -1, &one, 2, zs), COT_VALUE,
           "[taylor] a curve of degree -1; degrees run from 0 to 60, and 1 is a line");
    expect(cot_taylor(y, 1, &x, 1, NULL, 2, zs), COT_VALUE,
           "[taylor] the curve is NULL; it holds a derivative of each input for each of its 1 orders");
    expect(cot_taylor(y, 1, &x, 1, &one, 2, NULL), COT_VALUE,
           "[taylor] the place for the derivatives is NULL; there are 3 of them");
    expect(cot_taylor(y, 1, &v, 1, &x, 2, zs), COT_SHAPE,
           "[taylor] curve[0] has shape (), xs[0] has (3,); they must be equal");
    assert_false(cot_is_valid(zs[0]));
    expect(cot_taylor(y, 2, (cot_var[]){x, v}, 2, (cot_var[]){one, v, one, x}, 2, zs), COT_SHAPE,
           "[taylor] curve[3] has shape (), xs[1] has (3,); they must be equal");
    expect(cot_taylor(y, 1, &c, 1, &one, 2, zs), COT_GRAD,
           "[taylor] xs[0], constant (1), does not require a gradient: it is a constant, detached, an integer, or was "
           "recorded without gradients");
    expect(cot_taylor(k, 1, &x, 1, &one, 2, zs), COT_DTYPE,
           "[taylor] constant (3) has dtype i64; only floats have derivatives");
    expect(cot_taylor(y, -1, &x, 1, &one, 2, zs), COT_VALUE, "[taylor] a negative number of vars: -1");
    cot_var far = cot_scalar(other, 1);
    assert_int_equal(cot_taylor(y, 1, &x, 1, &far, 2, zs), COT_VAR);
    cot_tape_clear_error(t);
    /* A value that a rule needs was overwritten: found, and after it NaN. */
    cot_var a = cot_mul(v, 1.0), z = cot_sum(cot_mul(a, a), COT_ALL);
    cot_add_into(&a, 1.0);
    assert_int_equal(cot_taylor_values(z, 1, &v, 1, d, 2, out), COT_STALE);
    for (int m = 0; m < 3; m++) assert_true(isnan(out[m]));
    cot_tape_clear_error(t);
    cot_var w = cot_scalar(t, 2), q = cot_exp(cot_mul(w, w));
    cot_assign(w, 3.0);
    assert_int_equal(cot_taylor_values(q, 1, &w, 1, d, 2, out), COT_STALE);
    /* On a failed tape nothing happens; on none there is nothing. */
    out[2] = 1;
    assert_int_equal(cot_taylor_values(q, 1, &w, 1, d, 2, out), COT_STALE);
    assert_true(isnan(out[2]));
    assert_int_equal(cot_taylor(q, 1, &w, 1, &one, 2, zs), COT_STALE);
    assert_int_not_equal(cot_taylor((cot_var){NULL, 0}, 1, &w, 1, &one, 2, zs), COT_OK);
    cot_tape_destroy(t);
    cot_tape_destroy(other);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void every_allocation_may_fail(void **state) {
    (void)state;
    long seen = 0;
    for (long n = 0;; n++) {
        counting  c = {0};
        cot_tape *t = counted_tape(&c, false);
        cot_var   m = cot_tensor(t, COT_F64, COT_SHAPE(3, 3), A), s = cot_scalar(t, 0.5), zs[4];
        cot_var   y =
            cot_add(cot_logsumexp(cot_solve(cot_add(m, cot_eye(t, COT_F64, 3, 3)), cot_tanh(m)), COT_ALL), cot_sin(s));
        cot_var   many[12], total;
        for (int k = 0; k < 12; k++) many[k] = cot_mul(s, cot_mul(s, k));
        total = cot_add(y, cot_sum_of(12, many));
        assert_ok(t);
        double direction[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1}, out[4] = {0};
        /* otherwise the tape would use memory that it had kept */
        cot_tape_trim(t);
        let_succeed(&c, n);
        cot_status a = cot_taylor_values(total, 2, (cot_var[]){m, s}, 1, direction, 3, out);
        if (a != COT_OK) assert_true(a == COT_MEMORY && strstr(cot_tape_message(t), "out of memory") && isnan(out[3]));
        if (strstr(cot_tape_message(t), "[taylor_values] out of memory: ")) seen++;
        cot_tape_clear_error(t);
        cot_status b = cot_taylor(total, 2, (cot_var[]){m, s}, 1, (cot_var[]){m, cot_number(1)}, 3, zs);
        if (b != COT_OK) assert_true(b == COT_MEMORY && !cot_is_valid(zs[3]));
        bool over = c.failed == 0;
        cot_tape_clear_error(t);
        let_succeed(&c, -1);
        /* all is well again */
        assert_int_equal(cot_taylor_values(total, 2, (cot_var[]){m, s}, 1, direction, 3, out), COT_OK);
        cot_tape_destroy(t);
        assert_true(c.blocks == 0 && c.live == 0 && !c.wrong_size);
        if (over) break;
    }
    assert_true(seen >= 3);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *in_thread(void *to) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3, 3), A);
    double    direction[9] = {1, -1, 2, 0.5, 0, 1, 1, 1, -2};
    cot_taylor_values(cot_logsumexp(cot_matmul(cot_tanh(x), x), COT_ALL), 1, &x, 1, direction, K, to);
    cot_tape_destroy(t);
    return NULL;
}

static void threads(void **state) {
    (void)state;
    double    out[5][K + 1];
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&thread[i], NULL, in_thread, out[i]), 0);
    in_thread(out[4]);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 4; i++) assert_memory_equal(out[i], out[4], sizeof out[4]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_forms),
        cmocka_unit_test(pairs),
        cmocka_unit_test(kinks_and_poles),
        cmocka_unit_test(matrices),
        cmocka_unit_test(elements),
        cmocka_unit_test(inputs_and_orders),
        cmocka_unit_test(overwritten_values_are_not_found_again),
        cmocka_unit_test(recorded),
        cmocka_unit_test(in_bodies),
        cmocka_unit_test(custom_operations),
        cmocka_unit_test(halves),
        cmocka_unit_test(cost_is_quadratic),
        cmocka_unit_test(recursion),
        cmocka_unit_test(long_tapes_and_deep_rules),
        cmocka_unit_test(errors),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
