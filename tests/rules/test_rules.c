/* Properties of every elementwise operation: loops over the table made from rules.def, so a new row
 * is covered at once. A new row needs only an independent reference for its value (for integers in
 * test_integer_rules.c). Without one the tests fail. */
/* ctest: timeout=120 */
#include "rules/elementwise_ids.h"
#include "support/support.h"

#include "backend/cpu/elementwise/blocks.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

#define EACH_OP(op) for (int op = 0; op < OP_elementwise_count; op++)
#define INFO(op) (&cot__elementwise_table[op])

static bool differentiable(int op) { return INFO(op)->partial[0] || INFO(op)->partial[1] || INFO(op)->partial[2]; }

/* ---- references: long double formulas that share nothing with the library -------------------- */

typedef long double real;
#define PI_L 3.14159265358979323846264338327950288L
#define R1(name, value) static real r_##name(real x, real y, real w) { (void)x, (void)y, (void)w; return (value); }

static real sign_l(real x) { return isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : x; }
static real sigmoid_l(real x) { return 1 / (1 + expl(-x)); }
static real log1pexp_l(real x) { return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)); }
static real max_l(real x, real y) { return isnan(x) ? x : isnan(y) ? y : x > y ? x : y; }
static real min_l(real x, real y) { return -max_l(-x, -y); }
static real times_l(real x, real y) { return x == 0 || y == 0 ? 0 : x * y; }

/* x · s(x) with s → 0 faster than x → -∞ */
static real gate_l(real x, real s) { return x == -(real)INFINITY ? -0.0L : x * s; }

static real gelu_tanh_l(real x) {
    real u = sqrtl(2 / PI_L) * (x + 0.044715L * x * x * x);
    return gate_l(x, sigmoid_l(2 * u));
}

static real mish_l(real x) { return gate_l(x, tanhl(log1pexp_l(x))); }

static real erfinv_l(real p) {
    if (!(fabsl(p) < 1)) return fabsl(p) == 1 ? copysignl((real)INFINITY, p) : (real)NAN;
    if (fabsl(p) < 1e-15L) return p * sqrtl(PI_L) / 2;
    real x = 0;
    for (int i = 0; i < 60; i++) { /* Newton; erfc keeps the tail's digits */
        real f = p > 0.5L ? (1 - p) - erfcl(x) : p < -0.5L ? erfcl(-x) - (1 + p) : erfl(x) - p;
        real step = f * sqrtl(PI_L) / 2 * expl(x * x);
        x -= p > 0.5L || p < -0.5L ? fminl(fmaxl(step, -0.5L), 0.5L) : step;
    }
    return x;
}

/* ψ⁽ⁿ⁾ by recurrence to x >= 30 + 2n and the asymptotic series there; x > 0 */
static real polygamma_l(int n, real x) {
    static const real bernoulli[] = {1 / 6.0L,       -1 / 30.0L, 1 / 42.0L,      -1 / 30.0L,     5 / 66.0L,
                                     -691 / 2730.0L, 7 / 6.0L,   -3617 / 510.0L, 43867 / 798.0L, -174611 / 330.0L};
    real sum = 0, sign = n % 2 ? 1 : -1, factorial = 1;
    for (int i = 2; i <= n; i++) factorial *= i;
    real head = 0;
    for (; x < 30 + 2 * n; x += 1) head += factorial / powl(x, n + 1);
    real coefficient = factorial; /* (2k + n - 1)! / (2k)! */
    for (int k = 1; k <= 10; k++) {
        coefficient =
            k == 1 ? tgammal(n + 2) / 2 : coefficient * (2 * k + n - 1) * (2 * k + n - 2) / ((2.0L * k) * (2 * k - 1));
        sum += bernoulli[k - 1] * coefficient / powl(x, 2 * k + n);
    }
    sum += factorial / (2 * powl(x, n + 1));
    if (n == 0) return logl(x) - sum - head;
    return sign * (sum + factorial / (n * powl(x, n)) + head);
}

static real polygamma_any(real n, real x) {
    if (isnan(n) || isnan(x)) return (real)NAN;
    if (n < 0 || n != floorl(n) || n > 100000) return (real)NAN;
    if (x == (real)INFINITY) return n == 0 ? x : fmodl(n, 2) == 1 ? 0 : -0.0L;
    if (x == 0)
        return n == 0             ? copysignl((real)INFINITY, -x)
               : fmodl(n, 2) == 1 ? (real)INFINITY
                                  : copysignl((real)INFINITY, -x);
    if (x == -(real)INFINITY) return (real)NAN;
    if (x < 0) { /* reflection would be the library's own way; here: down the recurrence */
        if (x == floorl(x)) return fmodl(n, 2) == 1 ? (real)INFINITY : (real)NAN;
        real sum = 0, at = x, factorial = tgammal(n + 1);
        for (; at < 0; at += 1) sum += factorial / powl(at, n + 1);
        return n == 0 ? polygamma_l(0, at) - sum : polygamma_l((int)n, at) + (fmodl(n, 2) == 1 ? sum : -sum);
    }
    if (x > 1e8L) { /* the first terms do */
        real f = tgammal(n + 1);
        return n == 0 ? logl(x) - 1 / (2 * x)
                      : (fmodl(n, 2) == 1 ? 1 : -1) * (f / (n * powl(x, n)) + f / (2 * powl(x, n + 1)));
    }
    return polygamma_l((int)n, x);
}

static real logaddexp_l(real x, real y) {
    if (isnan(x) || isnan(y)) return (real)NAN;
    if (x == y) return x + logl(2);
    return max_l(x, y) + log1pl(expl(-fabsl(x - y)));
}

static real remainder_l(real x, real y) {
    real r = fmodl(x, y);
    if (isnan(r)) return r;
    if (r == 0) return copysignl(0, y);
    return (r < 0) != (y < 0) ? (isinf(y) ? y : r + y) : r;
}

R1(neg, -x) R1(abs, fabsl(x)) R1(sign, sign_l(x)) R1(sqrt, sqrtl(x)) R1(rsqrt, 1 / sqrtl(x)) R1(cbrt, cbrtl(x))
R1(square, x * x)
R1(reciprocal, 1 / x) R1(exp, expl(x)) R1(exp2, exp2l(x)) R1(expm1, expm1l(x)) R1(log, logl(x)) R1(log2, log2l(x))
R1(log10, log10l(x)) R1(log1p, log1pl(x)) R1(sin, sinl(x)) R1(cos, cosl(x)) R1(tan, tanl(x)) R1(asin, asinl(x))
R1(acos, acosl(x))
R1(atan, atanl(x)) R1(sinh, sinhl(x)) R1(cosh, coshl(x)) R1(tanh, tanhl(x)) R1(asinh, asinhl(x)) R1(acosh, acoshl(x))
R1(atanh, atanhl(x)) R1(sigmoid, sigmoid_l(x)) R1(log_sigmoid, -log1pexp_l(-x)) R1(softplus, log1pexp_l(x))
R1(relu, max_l(x, 0))
R1(selu, 1.0507009873554804934193L * (x > 0 ? x : 1.6732632423543772848170L * expm1l(x)))
R1(gelu, gate_l(x, erfcl(-x / sqrtl(2)) / 2)) R1(gelu_tanh, gelu_tanh_l(x)) R1(silu, gate_l(x, sigmoid_l(x)))
R1(mish, mish_l(x))
R1(hard_sigmoid, isnan(x) ? x : fmaxl(0, fminl(1, (x + 3) / 6))) R1(erf, erfl(x)) R1(erfc, erfcl(x))
R1(erfinv, erfinv_l(x))
R1(lgamma, isinf(x) ? (real)INFINITY : lgammal(x)) R1(digamma, polygamma_any(0, x)) R1(floor, floorl(x))
R1(ceil, ceill(x))
R1(round, rintl(x)) R1(trunc, truncl(x)) R1(isnan, isnan(x) != 0) R1(isinf, isinf(x) != 0)
R1(isfinite, isfinite(x) != 0)
R1(logical_not, x == 0) R1(add, x + y) R1(sub, x - y) R1(mul, x * y) R1(div, x / y) R1(smul, times_l(x, y))
R1(sdiv, x == 0 ? 0 : x / y) R1(pow, powl(x, y)) R1(atan2, atan2l(x, y)) R1(hypot, hypotl(x, y))
R1(maximum, max_l(x, y))
R1(minimum, min_l(x, y)) R1(fmod, fmodl(x, y)) R1(remainder, remainder_l(x, y)) R1(logaddexp, logaddexp_l(x, y))
R1(leaky_relu, x > 0 ? x : x * y) R1(elu, x > 0 ? x : y * expm1l(x)) R1(polygamma, polygamma_any(x, y))
R1(equal, x == y)
R1(not_equal, x != y) R1(less, x < y) R1(less_equal, x <= y) R1(greater, x > y) R1(greater_equal, x >= y)
R1(logical_and, x != 0 && y != 0) R1(logical_or, x != 0 || y != 0) R1(where, x != 0 ? y : w)
R1(clamp, min_l(max_l(x, y), w))
R1(fma, fmal(x, y, w)) R1(lerp, x + w * (y - x))

/* Ulps:
 *   one correctly rounded operation    0.5 and a little, because the reference is rounded itself
 *   a function                         as in glibc's manual or special.h
 *   a product of functions             the sum
 * SCALE: ulps of the operands count too, because the result may cancel. SCALE_BELOW: only below
 * zero. */
enum { EXACT_SIGN = 1, SCALE = 2, NO_SPECIALS = 4, SCALE_BELOW = 8 };
#define ROUNDED 0.51
static const struct reference {
    const char *name;
    real (*value)(real x, real y, real w);
    double ulps;
    /* EXACT_SIGN: the sign of a zero result is NumPy's. NO_SPECIALS: intermediate overflow is
     * allowed */
    int    flags;
} references[] = {
    {"neg", r_neg, 0, EXACT_SIGN},
    {"abs", r_abs, 0, EXACT_SIGN},
    {"sign", r_sign, 0, EXACT_SIGN},
    {"sqrt", r_sqrt, ROUNDED, EXACT_SIGN},
    {"rsqrt", r_rsqrt, 1.5, EXACT_SIGN},
    {"cbrt", r_cbrt, 1, EXACT_SIGN},
    {"square", r_square, ROUNDED, EXACT_SIGN},
    {"reciprocal", r_reciprocal, ROUNDED, EXACT_SIGN},
    {"exp", r_exp, 1, EXACT_SIGN},
    {"exp2", r_exp2, 1, EXACT_SIGN},
    {"expm1", r_expm1, 1.5, EXACT_SIGN},
    {"log", r_log, 1, EXACT_SIGN},
    {"log2", r_log2, 1.5, EXACT_SIGN},
    {"log10", r_log10, 2, EXACT_SIGN},
    {"log1p", r_log1p, 1.5, EXACT_SIGN},
    {"sin", r_sin, 1, EXACT_SIGN},
    {"cos", r_cos, 1, EXACT_SIGN},
    {"tan", r_tan, 1, EXACT_SIGN},
    {"asin", r_asin, 1, EXACT_SIGN},
    {"acos", r_acos, 1, EXACT_SIGN},
    {"atan", r_atan, 1, EXACT_SIGN},
    {"sinh", r_sinh, 2, EXACT_SIGN},
    {"cosh", r_cosh, 2, EXACT_SIGN},
    {"tanh", r_tanh, 2, EXACT_SIGN},
    {"asinh", r_asinh, 2, EXACT_SIGN},
    {"acosh", r_acosh, 2, EXACT_SIGN},
    {"atanh", r_atanh, 2, EXACT_SIGN},
    {"sigmoid", r_sigmoid, 2, 0},
    {"log_sigmoid", r_log_sigmoid, 2, 0},
    {"softplus", r_softplus, 2, 0},
    {"relu", r_relu, 0, 0},
    {"selu", r_selu, 2, 0},
    {"gelu", r_gelu, 2, 0},
    {"gelu_tanh", r_gelu_tanh, 2, 0},
    {"silu", r_silu, 2, 0},
    {"mish", r_mish, 2, 0},
    {"hard_sigmoid", r_hard_sigmoid, 1.01, 0},
    {"erf", r_erf, 1.5, EXACT_SIGN},
    {"erfc", r_erfc, 2, 0},
    {"erfinv", r_erfinv, 2, EXACT_SIGN},
    {"lgamma", r_lgamma, 4, 0},
    {"digamma", r_digamma, 5, SCALE_BELOW},
    {"floor", r_floor, 0, EXACT_SIGN},
    {"ceil", r_ceil, 0, EXACT_SIGN},
    {"round", r_round, 0, EXACT_SIGN},
    {"trunc", r_trunc, 0, EXACT_SIGN},
    {"isnan", r_isnan, 0, 0},
    {"isinf", r_isinf, 0, 0},
    {"isfinite", r_isfinite, 0, 0},
    {"logical_not", r_logical_not, 0, 0},
    {"add", r_add, ROUNDED, EXACT_SIGN},
    {"sub", r_sub, ROUNDED, EXACT_SIGN},
    {"mul", r_mul, ROUNDED, EXACT_SIGN},
    {"div", r_div, ROUNDED, EXACT_SIGN},
    {"smul", r_smul, ROUNDED, 0},
    {"sdiv", r_sdiv, ROUNDED, 0},
    {"pow", r_pow, 1, EXACT_SIGN},
    {"atan2", r_atan2, 1, EXACT_SIGN},
    {"hypot", r_hypot, 1, EXACT_SIGN},
    {"maximum", r_maximum, 0, 0},
    {"minimum", r_minimum, 0, 0},
    {"fmod", r_fmod, 0, EXACT_SIGN},
    {"remainder", r_remainder, ROUNDED, EXACT_SIGN},
    {"logaddexp", r_logaddexp, 2, SCALE},
    {"leaky_relu", r_leaky_relu, ROUNDED, 0},
    {"elu", r_elu, 2, 0},
    {"polygamma", r_polygamma, 5.5, SCALE_BELOW},
    {"equal", r_equal, 0, 0},
    {"not_equal", r_not_equal, 0, 0},
    {"less", r_less, 0, 0},
    {"less_equal", r_less_equal, 0, 0},
    {"greater", r_greater, 0, 0},
    {"greater_equal", r_greater_equal, 0, 0},
    {"logical_and", r_logical_and, 0, 0},
    {"logical_or", r_logical_or, 0, 0},
    {"where", r_where, 0, EXACT_SIGN},
    {"clamp", r_clamp, 0, 0},
    {"fma", r_fma, ROUNDED, EXACT_SIGN},
    {"lerp", r_lerp, 2, SCALE | NO_SPECIALS},
};

static const struct reference *reference_of(int op) {
    for (int i = 0; i < TEST_COUNT(references); i++)
        if (strcmp(references[i].name, INFO(op)->name) == 0) return &references[i];
    test_note(
        "%s has no reference: add an independent formula for its value to `references` in tests/rules/test_rules.c",
        INFO(op)->name);
    return NULL;
}

/* Wide enough for the worst of x + w (y - x) and its like. */
static double operand_scale(const double *x, int n) {
    double s = 1, m = 0;
    for (int k = 0; k < n; k++) m = fmax(m, fabs(x[k]));
    if (n == 3) s = fmax(1, 2 * fabs(x[2]) + 1);
    return isfinite(m) ? 2 * m * s : 0;
}

/* The error that cancellation is allowed, in ulps of a format with this epsilon. */
static double slack_of(const struct reference *r, int op, const double *x, double epsilon) {
    int    n = INFO(op)->arity;
    double least = n == 1 ? x[0] : fmin(x[0], x[1]);
    return (r->flags & SCALE) || ((r->flags & SCALE_BELOW) && least < 0) ? r->ulps * epsilon * operand_scale(x, n) : 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Records op on f64 scalars and gives the value. */
static double value_of(cot_tape *t, int op, const double *x) {
    cot_mark m = cot_tape_mark(t);
    cot_var  xs[3];
    for (int k = 0; k < INFO(op)->arity; k++) xs[k] = cot_constant(t, x[k]);
    cot_var z = test_call(op, xs);
    double  v = cot_value(z);
    TEST_CHECK(cot_dtype_of(z) == (INFO(op)->class == TEST ? COT_BOOL : COT_F64), "%s: result has dtype %s",
               INFO(op)->name, cot_dtype_name(cot_dtype_of(z)));
    test_tape_ok(t, INFO(op)->name);
    cot_tape_rewind(t, m);
    return v;
}

static void values_match_an_independent_formula(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    int       samples = test_small() ? 50 : 1000;
    EACH_OP(op) {
        const struct reference *r = reference_of(op);
        test_random             random = test_random_of(INFO(op)->name, 1);
        for (int i = 0; r && i < samples; i++) {
            double x[3];
            test_sample(op, &random, x);
            double v = value_of(t, op, x);
            real   want = r->value(x[0], x[1], x[2]);
            double slack = slack_of(r, op, x, DBL_EPSILON);
            double error = test_ulps(v, want, 53);
            TEST_CHECK(error <= r->ulps || fabsl(v - want) <= slack,
                       "%s(%.17g, %.17g, %.17g) = %.17g, reference %.20Lg: %.2f ulp", r->name, x[0], x[1], x[2], v,
                       want, error);
        }
    }
    cot_tape_destroy(t);
    test_verdict();
}

static const double specials[] = {0.0,  -0.0, 1,    -1,   0.5,    -0.5,    2,   3,    INFINITY, -INFINITY, NAN,
                                  1e300, -1e300, 1e-310, -1e-310, 700, -700, 4.5, -2.5,     2.5};

/* Every combination of special operands, by number. */
static int combinations(int arity) {
    int n = 1;
    for (int k = 0; k < arity; k++) n *= TEST_COUNT(specials);
    return n;
}
static void combination(int i, double x[3]) {
    for (int k = 0; k < 3; k++, i /= TEST_COUNT(specials)) x[k] = specials[i % TEST_COUNT(specials)];
}

static void special_values_match_c_and_numpy(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    EACH_OP(op) {
        const struct reference *r = reference_of(op);
        if (!r || (r->flags & NO_SPECIALS)) continue;
        for (int i = 0; i < combinations(INFO(op)->arity); i++) {
            double x[3];
            combination(i, x);
            double v = value_of(t, op, x);
            real   want = r->value(x[0], x[1], x[2]);
            /* Near the top of the range and among subnormals a product of parts is allowed its
             * parts' errors. */
            double slack = slack_of(r, op, x, DBL_EPSILON);
            /* beyond the promise of special.h and the range of the reference */
            if (op == OP_polygamma && x[0] > 100 && x[1] < 0) continue;
            bool   near = test_ulps(v, want, 53) <= r->ulps || fabsl(v - want) <= slack;
            TEST_CHECK(near, "%s(%g, %g, %g) = %.17g, reference %.17Lg", r->name, x[0], x[1], x[2], v, want);
            bool zero = v == 0 && want == 0 && (r->flags & EXACT_SIGN);
            TEST_CHECK(!zero || signbit(v) == signbit((double)want),
                       "%s(%g, %g, %g) = %g, reference %Lg: the sign of zero", r->name, x[0], x[1], x[2], v, want);
        }
    }
    cot_tape_destroy(t);
    test_verdict();
}

/* ---- partials as kernels --------------------------------------------------------------------- */

static double partial64(int op, int k, double g, const double *x) {
    double z, out;
    cot__blocks(op, COT_F64)->value(1, &x[0], &x[1], &x[2], &z);
    cot__blocks(op, COT_F64)->partial[k](1, &g, &x[0], &x[1], &x[2], &z, &out);
    return out;
}

static float partial32(int op, int k, float g, const float *x) {
    float z, out;
    cot__blocks(op, COT_F32)->value(1, &x[0], &x[1], &x[2], &z);
    cot__blocks(op, COT_F32)->partial[k](1, &g, &x[0], &x[1], &x[2], &z, &out);
    return out;
}

static void partials_are_linear(void **state) {
    (void)state;
    int samples = test_small() ? 20 : 200;
    EACH_OP(op) {
        test_random random = test_random_of(INFO(op)->name, 2);
        for (int i = 0; i < samples; i++) {
            double x[3];
            test_sample(op, &random, x);
            double a = test_uniform(&random, -2, 2), b = test_uniform(&random, -2, 2);
            double g1 = test_uniform(&random, -2, 2), g2 = test_uniform(&random, -2, 2);
            for (int k = 0; k < INFO(op)->arity; k++) {
                double p1 = a * partial64(op, k, g1, x), p2 = b * partial64(op, k, g2, x),
                       p = partial64(op, k, a * g1 + b * g2, x);
                /* G itself: a partial may be G - w G */
                double size = fabs(p1) + fabs(p2) + fabs(a * g1) + fabs(b * g2);
                TEST_CHECK(fabs(p - p1 - p2) <= 8 * DBL_EPSILON * size,
                           "%s: partial %d is not linear at (%g, %g, %g): %.17g and %.17g", INFO(op)->name, k, x[0],
                           x[1], x[2], p, p1 + p2);
                TEST_CHECK(INFO(op)->partial[k] || p == 0, "%s: partial %d is NONE but not 0", INFO(op)->name, k);
            }
        }
    }
    test_verdict();
}

static void zero_tangents_win_over_anything(void **state) {
    (void)state;
    EACH_OP(op) for (int i = 0; i < combinations(INFO(op)->arity); i++) {
        double x[3];
        combination(i, x);
        float xf[3] = {(float)x[0], (float)x[1], (float)x[2]};
        for (int k = 0; k < INFO(op)->arity; k++) {
            TEST_CHECK(partial64(op, k, 0, x) == 0 && partial64(op, k, -0.0, x) == 0,
                       "%s: partial %d of 0 at (%g, %g, %g) is %g", INFO(op)->name, k, x[0], x[1], x[2],
                       partial64(op, k, 0, x));
            TEST_CHECK(partial32(op, k, 0, xf) == 0, "%s: f32 partial %d of 0 at (%g, %g, %g) is %g", INFO(op)->name, k,
                       x[0], x[1], x[2], (double)partial32(op, k, 0, xf));
        }
    }
    test_verdict();
}

/* The same through the sweeps: a zero seed or tangent in one lane, a one beside it. */
static void zero_lanes_stay_zero(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    EACH_OP(op) for (int i = 0; differentiable(op) && i < combinations(INFO(op)->arity); i++) {
        int      n = INFO(op)->arity;
        cot_mark m = cot_tape_mark(t);
        double   x[3], seeds[2] = {0, 1}, tangents[6] = {0, 0, 0, 0, 0, 0}, out[6], dy[2];
        cot_var  xs[3];
        combination(i, x);
        for (int k = 0; k < n; k++) xs[k] = cot_scalar(t, x[k]);
        for (int k = 0; k < n; k++) tangents[n + k] = 1;
        cot_var z = test_call(op, xs);
        cot_vjps(2, 1, &z, seeds, n, xs, out);
        cot_jvps(2, n, xs, tangents, 1, &z, dy);
        for (int k = 0; k < n; k++)
            TEST_CHECK(out[k] == 0, "%s: vjp of 0 at (%g, %g, %g) is %g", INFO(op)->name, x[0], x[1], x[2], out[k]);
        TEST_CHECK(dy[0] == 0, "%s: jvp of 0 at (%g, %g, %g) is %g", INFO(op)->name, x[0], x[1], x[2], dy[0]);
        for (int k = 0; k < n; k++) { /* and the lane with 1 is the plain partial */
            double p = INFO(op)->partial[k] ? partial64(op, k, 1, x) : 0;
            TEST_CHECK(test_equal(out[n + k], p), "%s: vjp %d of 1 at (%g, %g, %g) is %g, the partial %g",
                       INFO(op)->name, k, x[0], x[1], x[2], out[n + k], p);
        }
        test_tape_ok(t, INFO(op)->name);
        cot_tape_rewind(t, m);
    }
    cot_tape_destroy(t);
    test_verdict();
}

/* ---- derivatives on the tape ----------------------------------------------------------------- */

static cot_var call_user(int n, const cot_var *xs, void *user) {
    (void)n;
    return test_call(*(const int *)user, xs);
}

/* The operation on operands of this shape, sampled on its domain; operands without derivative are
 * constants. */
static test_function function_of(int *op, cot_shape shape, test_random *random) {
    const cot__elementwise_info *e = INFO(*op);
    test_function f = {.name = e->name, .f = call_user, .user = op, .n = e->arity};
    test_fill(&f, random, -1, 1);
    for (int i = 0; i < TEST_MAX_SIZE; i++) {
        double x[3];
        test_sample(*op, random, x);
        for (int k = 0; k < f.n; k++) f.in[k].data[i] = x[k];
    }
    for (int k = 0; k < f.n; k++) {
        f.in[k].shape = shape;
        f.in[k].fixed = !e->partial[k];
    }
    return f;
}

/* Runs the check on `samples` points; points with a kink within the step are replaced, but few may
 * be. */
static void differences_of(int op, cot_shape shape, int order, int samples) {
    test_random random = test_random_of(INFO(op)->name, 10 + order);
    int         smooth = 0, tries = 0;
    for (; smooth < samples && tries < 4 * samples + 20; tries++) {
        test_function f = function_of(&op, shape, &random);
        smooth += test_differences(&f, order);
    }
    TEST_CHECK(smooth == samples, "%s: order %d: only %d of %d points look smooth", INFO(op)->name, order, smooth,
               tries);
}

static void jvps_match_differences(void **state) {
    (void)state;
    EACH_OP(op) if (differentiable(op)) differences_of(op, COT_SCALAR, 1, test_small() ? 4 : 30);
    EACH_OP(op) if (differentiable(op)) differences_of(op, COT_SHAPE(3), 1, test_small() ? 1 : 10);
    test_verdict();
}

static void second_derivatives_match_differences_of_the_gradient(void **state) {
    (void)state;
    EACH_OP(op) if (differentiable(op)) differences_of(op, COT_SCALAR, 2, test_small() ? 2 : 15);
    EACH_OP(op) if (differentiable(op)) differences_of(op, COT_SHAPE(2), 2, test_small() ? 1 : 5);
    test_verdict();
}

static void third_derivatives_match_differences(void **state) {
    (void)state;
    EACH_OP(op) if (differentiable(op)) differences_of(op, COT_SCALAR, 3, test_small() ? 1 : 5);
    test_verdict();
}

static void each_point(void (*check)(const test_function *), int stream, int samples) {
    const cot_shape shapes[] = {COT_SCALAR, COT_SHAPE(5), COT_SHAPE(2, 3)};
    EACH_OP(op) for (int s = 0; differentiable(op) && s < TEST_COUNT(shapes); s++) {
        test_random random = test_random_of(INFO(op)->name, stream + s);
        for (int i = 0; i < samples; i++) {
            test_function f = function_of(&op, shapes[s], &random);
            check(&f);
        }
    }
    test_verdict();
}

static void vjp_is_the_transpose_of_jvp(void **state) {
    (void)state;
    each_point(test_transpose, 20, test_small() ? 2 : 10);
}
static void forward_over_reverse_is_reverse_over_reverse(void **state) {
    (void)state;
    each_point(test_second_order, 30, test_small() ? 2 : 10);
}
static void backward_is_grad_of_to_the_bit(void **state) {
    (void)state;
    each_point(test_numbers_as_recorded, 40, test_small() ? 2 : 10);
}

/* Products with many seeds or tangents have the bits of products with one. */
static void lanes_equal_single_sweeps(void **state) {
    (void)state;
    static const int counts[] = {1, 2, 3, 8, 9};
    static const cot_dtype dtypes[] = {COT_F64, COT_F32};
    cot_tape        *t = cot_tape_create(NULL);
    EACH_OP(op) for (int c = 0; differentiable(op) && c < 2 * TEST_COUNT(counts); c++) {
        int         lanes = counts[c / 2], n = INFO(op)->arity;
        cot_mark    m = cot_tape_mark(t);
        test_random random = test_random_of(INFO(op)->name, 50 + c);
        double      x[3], seeds[9], tangents[27], back[27], forward[9], one[3];
        cot_var     xs[3];
        test_sample(op, &random, x);
        for (int k = 0; k < n; k++) xs[k] = cot_scalar_of(t, dtypes[c % 2], x[k]);
        for (int i = 0; i < 9; i++) seeds[i] = test_uniform(&random, -2, 2);
        for (int i = 0; i < 27; i++) tangents[i] = test_uniform(&random, -2, 2);
        cot_var z = test_call(op, xs);
        cot_vjps(lanes, 1, &z, seeds, n, xs, back);
        cot_jvps(lanes, n, xs, tangents, 1, &z, forward);
        for (int l = 0; l < lanes; l++) {
            cot_vjps(1, 1, &z, seeds + l, n, xs, one);
            for (int k = 0; k < n; k++)
                TEST_CHECK(test_equal(back[l * n + k], one[k]),
                           "%s: %d lanes: vjp lane %d operand %d: %.17g, alone %.17g", INFO(op)->name, lanes, l, k,
                           back[l * n + k], one[k]);
            cot_jvps(1, n, xs, tangents + l * n, 1, &z, one);
            TEST_CHECK(test_equal(forward[l], one[0]), "%s: %d lanes: jvp lane %d: %.17g, alone %.17g", INFO(op)->name,
                       lanes, l, forward[l], one[0]);
        }
        /* and the single sweeps are cot_jvp and cot_vjp */
        cot_var g[3], moves[3], ds[3];
        int     moving = 0;
        for (int k = 0; k < n; k++) {
            if (!INFO(op)->partial[k]) continue;
            moves[moving] = xs[k];
            ds[moving++] = cot_full(t, dtypes[c % 2], COT_SCALAR, tangents[k]);
        }
        cot_var dz = cot_jvp(z, moving, moves, ds);
        TEST_CHECK(test_equal(forward[0], cot_value(dz)), "%s: jvps %.17g, jvp %.17g", INFO(op)->name, forward[0],
                   cot_value(dz));
        (cot_vjp)(z, cot_number(seeds[0]), n, xs, g);
        for (int k = 0; k < n; k++)
            TEST_CHECK(test_equal(back[k], cot_value(g[k])), "%s: vjps %.17g, vjp %.17g", INFO(op)->name, back[k],
                       cot_value(g[k]));
        test_tape_ok(t, INFO(op)->name);
        cot_tape_rewind(t, m);
    }
    cot_tape_destroy(t);
    test_verdict();
}

/* ---- dtypes ---------------------------------------------------------------------------------- */

static void f32_is_near_f64(void **state) {
    (void)state;
    int samples = test_small() ? 20 : 300;
    EACH_OP(op) {
        const struct reference *r = reference_of(op);
        test_random             random = test_random_of(INFO(op)->name, 60);
        for (int i = 0; r && i < samples; i++) {
            double x[3], z;
            float  xf[3], zf;
            test_sample(op, &random, x);
            for (int k = 0; k < 3; k++) x[k] = test_f32(x[k]), xf[k] = (float)x[k];
            cot__blocks(op, COT_F64)->value(1, &x[0], &x[1], &x[2], &z);
            cot__blocks(op, COT_F32)->value(1, &xf[0], &xf[1], &xf[2], &zf);
            double slack = slack_of(r, op, x, (double)FLT_EPSILON);
            TEST_CHECK(test_ulps((double)zf, z, 24) <= r->ulps + 0.5 || fabs((double)zf - z) <= slack,
                       "%s(%.9g, %.9g, %.9g): f32 %.9g, f64 %.17g", r->name, x[0], x[1], x[2], (double)zf, z);
            /* Partials read the rounded Z and are products of some factors: relative to their own
             * size and to G. */
            double g = test_f32(test_uniform(&random, -2, 2));
            for (int k = 0; k < INFO(op)->arity; k++) {
                double p = partial64(op, k, g, x), pf = (double)partial32(op, k, (float)g, xf);
                TEST_CHECK(fabs(pf - p) <= 16 * (double)FLT_EPSILON * (fabs(p) + fabs(g)),
                           "%s: partial %d at (%.9g, %.9g, %.9g): f32 %.9g, f64 %.17g", r->name, k, x[0], x[1], x[2],
                           pf, p);
            }
        }
    }
    test_verdict();
}

static double round_to(cot_dtype d, double x) {
    float f = (float)test_f32(x);
    return d == COT_BF16  ? (double)cot__f32_from_bf16(cot__bf16_from_f32(f))
           : d == COT_F16 ? (double)cot__f32_from_f16(cot__f16_from_f32(f))
           : d == COT_F32 ? (double)f
                          : x;
}

/* Leaves of a dtype holding x[k][i]; fixed size tensors, or scalars when n is 0. */
static cot_var leaf_of(cot_tape *t, cot_dtype d, int64_t n, const double *x) {
    if (n < 0) return cot_scalar_of(t, d, x[0]);
    cot_var data = cot_cast(cot_data(t, COT_F64, COT_SHAPE(n), x), d), leaf = cot_tensor(t, d, COT_SHAPE(n), NULL);
    cot_assign(leaf, data);
    return leaf;
}

static void values_of_halves_are_f32_rounded(void **state) {
    (void)state;
    static const cot_dtype halves[] = {COT_BF16, COT_F16};
    enum { N = 40 };
    cot_tape *t = cot_tape_create(NULL);
    EACH_OP(op) for (int d = 0; d < 2; d++) for (int scalar = 0; scalar < 2; scalar++) {
        int         n = INFO(op)->arity, size = scalar ? 1 : N;
        cot_mark    m = cot_tape_mark(t);
        test_random random = test_random_of(INFO(op)->name, 70 + d);
        double      x[3][N], a[N], b[N];
        cot_var     h[3], s[3];
        for (int i = 0; i < N; i++) {
            double p[3];
            test_sample(op, &random, p);
            for (int k = 0; k < 3; k++) x[k][i] = round_to(halves[d], p[k]);
        }
        for (int k = 0; k < n; k++)
            h[k] = leaf_of(t, halves[d], scalar ? -1 : N, x[k]), s[k] = leaf_of(t, COT_F32, scalar ? -1 : N, x[k]);
        cot_var zh = test_call(op, h), zs = test_call(op, s);
        cot_read(zh, a, size);
        cot_read(zs, b, size);
        for (int i = 0; i < size; i++)
            TEST_CHECK(test_same(a[i], INFO(op)->class == TEST ? b[i] : round_to(halves[d], b[i])),
                       "%s: %s %.9g, f32 %.9g", INFO(op)->name, cot_dtype_name(halves[d]), a[i], b[i]);
        test_tape_ok(t, INFO(op)->name);
        cot_tape_rewind(t, m);
    }
    cot_tape_destroy(t);
    test_verdict();
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void tensors_equal_scalars_to_the_bit(void **state) {
    (void)state;
    static const int64_t   sizes[] = {0, 1, 255, 256, 257, 1000};
    static const cot_dtype dtypes[] = {COT_F64, COT_F32};
    enum { MAX = 1000 };
    static double x[3][MAX], seed[MAX], z[MAX], g[3][MAX];
    cot_tape     *t = cot_tape_create(NULL);
    EACH_OP(op) for (int s = 0; s < TEST_COUNT(sizes); s++) for (int d = 0; d < 2; d++) {
        if (test_small() && sizes[s] > 257) continue;
        int         n = INFO(op)->arity, size = (int)sizes[s];
        cot_mark    m = cot_tape_mark(t);
        test_random random = test_random_of(INFO(op)->name, 80);
        cot_var     xs[3];
        for (int i = 0; i < size; i++) {
            double p[3];
            test_sample(op, &random, p);
            for (int k = 0; k < 3; k++) x[k][i] = p[k];
            seed[i] = test_uniform(&random, -2, 2);
        }
        for (int k = 0; k < n; k++) xs[k] = leaf_of(t, dtypes[d], size, x[k]);
        cot_var y = test_call(op, xs);
        cot_read(y, z, size);
        if (differentiable(op)) cot_backward_seeded(y, leaf_of(t, dtypes[d], size, seed));
        for (int k = 0; k < n; k++) cot_read_grad(xs[k], g[k], size);
        test_tape_ok(t, INFO(op)->name);
        for (int i = 0; i < size; i++) {
            cot_mark inner = cot_tape_mark(t);
            for (int k = 0; k < n; k++) xs[k] = cot_scalar_of(t, dtypes[d], x[k][i]);
            cot_var w = test_call(op, xs);
            TEST_CHECK(test_same(cot_value(w), z[i]), "%s: %s: size %d, element %d: scalar %.17g, tensor %.17g",
                       INFO(op)->name, cot_dtype_name(dtypes[d]), size, i, cot_value(w), z[i]);
            if (differentiable(op)) cot_backward_seeded(w, cot_scalar_of(t, dtypes[d], seed[i]));
            for (int k = 0; k < n && differentiable(op); k++)
                TEST_CHECK(test_equal(cot_grad_value(xs[k]), g[k][i]),
                           "%s: %s: size %d, element %d: gradient %d: scalar %.17g, tensor %.17g", INFO(op)->name,
                           cot_dtype_name(dtypes[d]), size, i, k, cot_grad_value(xs[k]), g[k][i]);
            test_tape_ok(t, INFO(op)->name);
            cot_tape_rewind(t, inner);
        }
        cot_tape_rewind(t, m);
    }
    cot_tape_destroy(t);
    test_verdict();
}

/* Views of shape (20, 30) of a base: none is contiguous. */
enum { ROWS = 20, COLUMNS = 30, AREA = ROWS * COLUMNS };
static cot_var view_transposed(cot_var b) { return cot_transpose(cot_reshape(b, COT_SHAPE(COLUMNS, ROWS))); }
static cot_var view_stepped(cot_var b) {
    return cot_slice(cot_slice(cot_reshape(b, COT_SHAPE(2 * ROWS, 2 * COLUMNS)), 0, 1, COT_END, 2), 1, 0, COT_END, 2);
}
static cot_var view_flipped(cot_var b) { return cot_flip(cot_reshape(b, COT_SHAPE(ROWS, COLUMNS)), COT_AXES(0, 1)); }
static cot_var view_backward(cot_var b) {
    return cot_slice(cot_reshape(b, COT_SHAPE(ROWS, 2 * COLUMNS)), 1, -1, -2 * COLUMNS - 1, -2);
}
static cot_var view_row(cot_var b) { return cot_broadcast_to(b, COT_SHAPE(ROWS, COLUMNS)); }
static cot_var view_column(cot_var b) {
    return cot_broadcast_to(cot_reshape(b, COT_SHAPE(ROWS, 1)), COT_SHAPE(ROWS, COLUMNS));
}
static const struct { const char *name; int64_t base; cot_var (*view)(cot_var); } views[] = {
    {"transposed", AREA, view_transposed}, {"stepped", 4 * AREA, view_stepped}, {"flipped", AREA, view_flipped},
    {"backward", 2 * AREA, view_backward}, {"row", COLUMNS, view_row}, {"column", ROWS, view_column},
};

static void strided_equals_contiguous_to_the_bit(void **state) {
    (void)state;
    static double base[4 * AREA], x[3][AREA], seed[AREA], a[AREA], b[AREA];
    cot_tape     *t = cot_tape_create(NULL);
    EACH_OP(op) for (int v = 0; v < TEST_COUNT(views); v++) {
        int         n = INFO(op)->arity;
        cot_mark    m = cot_tape_mark(t);
        test_random random = test_random_of(INFO(op)->name, 90 + v);
        cot_var     xs[3], plain[3], gs[3], gp[3];
        for (int k = 0; k < n; k++) { /* operand k is view v + k */
            int w = (v + k) % TEST_COUNT(views);
            for (int i = 0; i < views[w].base; i++) {
                double p[3];
                test_sample(op, &random, p);
                base[i] = p[k];
            }
            xs[k] = views[w].view(cot_tensor(t, COT_F64, COT_SHAPE(views[w].base), base));
            cot_read(xs[k], x[k], AREA);
            plain[k] = cot_tensor(t, COT_F64, COT_SHAPE(ROWS, COLUMNS), x[k]);
        }
        for (int i = 0; i < AREA; i++) seed[i] = test_uniform(&random, -2, 2);
        cot_var zs = test_call(op, xs), zp = test_call(op, plain),
                g = cot_data(t, COT_F64, COT_SHAPE(ROWS, COLUMNS), seed);
        cot_read(zs, a, AREA);
        cot_read(zp, b, AREA);
        if (!test_tape_ok(t, INFO(op)->name)) break;
        test_same_array(views[v].name, INFO(op)->name, AREA, a, b);
        if (differentiable(op)) {
            cot_vjp(zs, cot_transpose(cot_transpose(g)), n, xs, gs);
            cot_vjp(zp, g, n, plain, gp);
            for (int k = 0; k < n; k++) {
                cot_read(gs[k], a, AREA);
                cot_read(gp[k], b, AREA);
                if (!test_tape_ok(t, INFO(op)->name)) break;
                test_same_array("gradient", INFO(op)->name, AREA, a, b);
            }
        }
        cot_tape_rewind(t, m);
    }
    cot_tape_destroy(t);
    test_verdict();
}

/* One operand a scalar, the others tensors: as if it had been broadcast by hand. */
static void mixed_operands_equal_explicit_broadcasting(void **state) {
    (void)state;
    enum { N = 12 };
    cot_tape *t = cot_tape_create(NULL);
    EACH_OP(op)
    for (int at = 0; INFO(op)->arity > 1 && at < INFO(op)->arity; at++) for (int leaf = 0; leaf < 2; leaf++) {
        int           n = INFO(op)->arity;
        cot_mark      m = cot_tape_mark(t);
        test_random   random = test_random_of(INFO(op)->name, 100 + at);
        cot_shape     shape = COT_SHAPE(3, 4);
        test_function f = function_of(&op, shape, &random);
        cot_var       xs[3], full[3], g, h;
        double        a[N], b[N];
        for (int k = 0; k < n; k++) xs[k] = full[k] = cot_tensor(t, COT_F64, shape, f.in[k].data);
        xs[at] = leaf ? cot_scalar(t, f.in[at].data[0]) : cot_constant(t, f.in[at].data[0]);
        full[at] = cot_broadcast_to(xs[at], shape);
        cot_var z = test_call(op, xs), y = test_call(op, full);
        cot_read(z, a, N);
        cot_read(y, b, N);
        if (!test_tape_ok(t, INFO(op)->name)) break;
        test_same_array("scalar operand", INFO(op)->name, N, a, b);
        cot_var seed = cot_data(t, COT_F64, shape, f.in[0].direction);
        for (int k = 0; k < n && differentiable(op); k++) {
            int64_t size = cot_size(xs[k]);
            if (!cot_requires_grad(xs[k]) || cot_vjp(z, seed, 1, &xs[k], &g) != COT_OK ||
                cot_vjp(y, seed, 1, &xs[k], &h) != COT_OK)
                continue;
            cot_read(g, a, size);
            cot_read(h, b, size);
            test_same_array("gradient with a scalar operand", INFO(op)->name, size, a, b);
        }
        test_tape_ok(t, INFO(op)->name);
        cot_tape_rewind(t, m);
    }
    cot_tape_destroy(t);
    test_verdict();
}

/* A plain number is a 0-d constant. */
static void numbers_equal_constants_to_the_bit(void **state) {
    (void)state;
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16};
    cot_tape              *t = cot_tape_create(NULL);
    EACH_OP(op)
    for (int at = 0; INFO(op)->arity > 1 && at < INFO(op)->arity; at++) for (int d = 0; d < 3;
                                                                             d++) for (int64_t n = -1; n <= 3; n += 4) {
        cot_mark      m = cot_tape_mark(t);
        test_random   random = test_random_of(INFO(op)->name, 110 + at);
        test_function f = function_of(&op, COT_SCALAR, &random);
        cot_var       xs[3], ys[3];
        double        c = f.in[at].data[0], a[3], b[3];
        for (int k = 0; k < f.n; k++) xs[k] = ys[k] = leaf_of(t, dtypes[d], n, f.in[k].data);
        xs[at] = cot_number(c);
        ys[at] = cot_full(t, dtypes[d], COT_SCALAR, c);
        if (op == OP_where && at == 0)
            xs[0] = cot_number(round_to(COT_BF16, c)), ys[0] = cot_full(t, COT_BOOL, COT_SCALAR, c);
        cot_var z = test_call(op, xs), y = test_call(op, ys);
        int64_t size = n < 0 ? 1 : n;
        /* In the halves arithmetic is in f32: an immediate is not rounded to the half first. */
        if (dtypes[d] != COT_BF16 || round_to(COT_BF16, c) == c) {
            cot_read(z, a, size);
            cot_read(y, b, size);
            test_same_array("a number", INFO(op)->name, size, a, b);
            for (int k = 0; k < f.n && differentiable(op); k++) {
                if (k == at || !INFO(op)->partial[k]) continue;
                cot_var g, h, seed = leaf_of(t, dtypes[d], n, f.in[0].direction);
                cot_vjp(z, seed, 1, &xs[k], &g);
                cot_vjp(y, seed, 1, &ys[k], &h);
                cot_read(g, a, size);
                cot_read(h, b, size);
                test_same_array("gradient beside a number", INFO(op)->name, size, a, b);
                cot_zero_grad(xs[k]);
                cot_backward_seeded(z, seed);
                cot_read_grad(xs[k], b, size);
                for (int64_t i = 0; i < size; i++)
                    TEST_CHECK(test_equal(a[i], b[i]),
                               "%s: %s beside a number: cot_vjp %.17g, cot_backward_seeded %.17g", INFO(op)->name,
                               cot_dtype_name(dtypes[d]), a[i], b[i]);
            }
        }
        TEST_CHECK(cot_dtype_of(z) == cot_dtype_of(y), "%s: a number next to %s gives %s", INFO(op)->name,
                   cot_dtype_name(dtypes[d]), cot_dtype_name(cot_dtype_of(z)));
        test_tape_ok(t, INFO(op)->name);
        cot_tape_rewind(t, m);
    }
    cot_tape_destroy(t);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_match_an_independent_formula),
        cmocka_unit_test(special_values_match_c_and_numpy),
        cmocka_unit_test(partials_are_linear),
        cmocka_unit_test(zero_tangents_win_over_anything),
        cmocka_unit_test(zero_lanes_stay_zero),
        cmocka_unit_test(jvps_match_differences),
        cmocka_unit_test(second_derivatives_match_differences_of_the_gradient),
        cmocka_unit_test(third_derivatives_match_differences),
        cmocka_unit_test(vjp_is_the_transpose_of_jvp),
        cmocka_unit_test(forward_over_reverse_is_reverse_over_reverse),
        cmocka_unit_test(backward_is_grad_of_to_the_bit),
        cmocka_unit_test(lanes_equal_single_sweeps),
        cmocka_unit_test(f32_is_near_f64),
        cmocka_unit_test(values_of_halves_are_f32_rounded),
        cmocka_unit_test(tensors_equal_scalars_to_the_bit),
        cmocka_unit_test(strided_equals_contiguous_to_the_bit),
        cmocka_unit_test(mixed_operands_equal_explicit_broadcasting),
        cmocka_unit_test(numbers_equal_constants_to_the_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
