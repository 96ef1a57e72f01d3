/* ctest: labels=vmath timeout=300 */
/* Compares elementwise functions with exact values, in ulp: the plain kernels, which are those of
 * elementary.h and special.h, and the vector kernels of every instruction set. The table below is the
 * promise; it is printed in docs/accuracy.md.
 *
 * COT_TEST_EXHAUSTIVE=1 goes through all 2^32 floats, some minutes for each function and
 * instruction set, and through 2^24 doubles. COT_TEST_ONLY names one function, and COT_TEST_SLICE=0
 * … 15 takes only floats with these uppermost four bits. */
#include "rules/elementwise_ids.h"
#include "support/support.h"

#include "backend/cpu/elementwise/blocks.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "ops/elementwise/elementwise.h"

/* The exact values: in 113 bits with gcc's libquadmath; elsewhere in long double, whose own error
 * of the functions put together here counts. */
#ifdef COT_HAS_QUADMATH
#include <quadmath.h>
__extension__ typedef __float128 real;
#define R(name) name##q
#define OWN_ERROR 0.0
#else
typedef long double real;
#define R(name) name##l
#define OWN_ERROR 0.5
#endif

#define INFO(op) (&cot__elementwise_table[op])
#define EACH_ISA(isa) for (cot__isa isa = COT__ISA_PLAIN; isa <= cot__cpu_best(); isa = (cot__isa)(isa + 1))
#define MINUS_INF (-(double)INFINITY)

static real pi(void) { return R(acos)(-1); }
static real sigmoid_r(real x) { return x >= 0 ? 1 / (1 + R(exp)(-x)) : R(exp)(x) / (1 + R(exp)(x)); }
static real softplus_r(real x) { return x > 0 ? x + R(log1p)(R(exp)(-x)) : R(log1p)(R(exp)(x)); }
static real log_sigmoid_r(real x) { return -softplus_r(-x); }
static real silu_r(real x) { return x == MINUS_INF ? -0.0 : x * sigmoid_r(x); }
static real mish_r(real x) {
    real e = R(exp)(x < 60 ? x : 60), m = e * (e + 2);
    return x == MINUS_INF ? -0.0 : x < 60 ? x * (m / (m + 2)) : x;
}
static real gelu_r(real x) { return x == MINUS_INF ? -0.0 : x * R(erfc)(-x / R(sqrt)(2)) / 2; }
static real gelu_tanh_r(real x) {
    real u = 2 * R(sqrt)(2 / pi()) * (x + 44715 * x * x * x / 1000000);
    return x == MINUS_INF ? -0.0 : x * sigmoid_r(u);
}
/* The two numbers of selu are exact in their first 33 digits: 16 and 17 of them as integers. */
static real selu_r(real x) {
    real scale = (real)10507009873554804LL / 10000000000000000LL + (real)9341933498529467LL / 1e16L / 1e16L;
    real alpha = (real)16732632423543772LL / 10000000000000000LL + (real)8481704299167170LL / 1e16L / 1e16L;
    return scale * (x > 0 ? x : alpha * R(expm1)(x));
}
static real hard_sigmoid_r(real x) { return x != x ? x : x <= -3 ? 0 : x >= 3 ? 1 : (x + 3) / 6; }
static real rsqrt_r(real x) { return 1 / R(sqrt)(x); }
static real lgamma_r_(real x) { return x == MINUS_INF ? -x : R(lgamma)(x); }

/* By Newton's method from a start good to a few digits (Winitzki); near 1 on the complement. */
static real erfinv_r(real x) {
    real a = R(fabs)(x), rest = 1 - a;
    if (!(a < 1)) return a == 1 ? x / 0.0L : (real)NAN;
    if (x == 0) return x;
    double l = log((double)rest) + log1p((double)a), b = 4.3307 + l / 2;
    real   y = sqrt(sqrt(b * b - l / 0.147) - b);
    for (int i = 0; i < 6; i++) {
        real d = (a < 0.5 ? R(erf)(y) - a : rest - R(erfc)(y)) * R(sqrt)(pi()) / 2 * R(exp)(y * y);
        y -= d / (1 + y * d);
    }
    return x < 0 ? -y : y;
}

static real digamma_right(real x) {
    static const double up[] = {1, -1, 1, -1, 1, -691, 1, -3617, 43867, -174611, 77683, -236364091, 657931};
    static const double down[] = {12, 120, 252, 240, 132, 32760, 12, 8160, 14364, 6600, 276, 65520, 12};
    real                sum = 0, tail = 0;
    for (; x < 40; x += 1) sum -= 1 / x;
    for (int i = TEST_COUNT(up) - 1; i >= 0; i--) tail = tail / (x * x) + (real)up[i] / (real)down[i];
    return sum + R(log)(x) - 1 / (2 * x) - tail / (x * x);
}
static real digamma_r(real x) {
    real r = x - R(rint)(x);
    if (x == 0) return -1 / x;
    if (x > 0) return x > DBL_MAX ? x : digamma_right(x);
    return r == 0 || x != x || x == MINUS_INF ? (real)NAN : digamma_right(1 - x) - pi() / R(tan)(pi() * r);
}

/* The same in double, good to 1e-14, for floats. */
static double sigmoid_d(double x) { return 1 / (1 + exp(-x)); }
static double softplus_d(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }
static double log_sigmoid_d(double x) { return -softplus_d(-x); }
static double silu_d(double x) { return x == MINUS_INF ? -0.0 : x / (1 + exp(-x)); }
static double mish_d(double x) {
    double e = exp(x < 40 ? x : 40), m = e * (e + 2);
    return x == MINUS_INF ? -0.0 : x < 40 ? x * (m / (m + 2)) : x;
}
static double gelu_d(double x) { return x == MINUS_INF ? -0.0 : x * (0.5 * erfc(-x * 0.70710678118654752440)); }
static double gelu_tanh_d(double x) {
    return x < -1000 ? -0.0 : x > 1000 ? x : x / (1 + exp(-x * (1.5957691216057307117 + 0.071354816272600248 * x * x)));
}
static double selu_d(double x) { return x > 0 ? 1.0507009873554804934 * x : 1.7580993408473768599 * expm1(x); }
static double rsqrt_d(double x) { return 1 / sqrt(x); }

#define BOTH(name, ulps) {OP_##name, R(name), name, ulps}
#define OURS(name, ulps) {OP_##name, name##_r, name##_d, ulps}
static const struct function {
    int op;
    real (*exact)(real);
    double (*quick)(double); /* for float, NULL where double is not enough */
    double f64;              /* promised ulps in double; in float all have 2 */
} functions[] = {
    BOTH(exp, 2),
    BOTH(exp2, 2),
    BOTH(expm1, 2),
    BOTH(log, 2),
    BOTH(log2, 2),
    BOTH(log10, 2),
    BOTH(log1p, 2),
    BOTH(sin, 2),
    BOTH(cos, 2),
    BOTH(tan, 2),
    BOTH(asin, 2),
    BOTH(acos, 2),
    BOTH(atan, 2),
    BOTH(sinh, 2),
    BOTH(cosh, 2),
    BOTH(tanh, 2),
    BOTH(asinh, 2),
    BOTH(acosh, 2),
    BOTH(atanh, 2),
    BOTH(erf, 2),
    BOTH(erfc, 2),
    BOTH(sqrt, 0.51),
    BOTH(cbrt, 1),
    OURS(rsqrt, 1.51),
    OURS(sigmoid, 2),
    OURS(softplus, 2),
    OURS(log_sigmoid, 2),
    OURS(silu, 2),
    OURS(selu, 2),
    OURS(gelu, 2),
    OURS(gelu_tanh, 2),
    OURS(mish, 2),
    {OP_hard_sigmoid, hard_sigmoid_r, NULL, 1.01},
    {OP_erfinv, erfinv_r, NULL, 2},
    {OP_lgamma, lgamma_r_, NULL, 5},
    {OP_digamma, digamma_r, NULL, 5},
};

static bool wanted(int op) {
    const char *only = getenv("COT_TEST_ONLY");
    return !only || strcmp(only, INFO(op)->name) == 0;
}

/* Ulps of the exact value, an infinite v counting as the number after the largest; infinitely many
 * where one is not a number, or the signs of zeros differ. */
static double ulps(double v, real want, int digits, int least) {
    double near = digits == 24 ? (double)(float)want : (double)want;
    int    e, most = digits == 24 ? 128 : 1024;
    if (v != v || want != want) return v != v && want != want ? 0 : (double)INFINITY;
    if (v == near && (v != 0 || want != 0 || !signbit(v) == !signbit((double)want))) return 0.5;
    if ((v == 0 && want == 0) || want - want != 0 || (isinf(v) && isinf(near))) return (double)INFINITY;
    real d = (isinf(v) ? (real)copysign(ldexp(1, most - 1), v) * 2 : (real)v) - want;
    frexp((double)want, &e);
    if (isinf((double)want)) e = most;
    return ldexp((double)(d < 0 ? -d : d), -((double)want == 0 || e - digits < least ? least : e - digits));
}

enum { BATCH = 4096 };

/* ---- float ----------------------------------------------------------------------------------- */

static float float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static double check_floats(const struct function *f, uint64_t first, uint64_t last, uint64_t stride) {
    static float      x[BATCH], z[BATCH];
    double            worst = 0;
    cot__value_kernel kernel = cot__blocks(f->op, COT_F32)->value;
    for (uint64_t u = first; u <= last;) {
        int n = 0;
        for (; n < BATCH && u <= last; u += stride) x[n++] = float_of((uint32_t)u);
        kernel(n, x, NULL, NULL, z);
        for (int i = 0; i < n; i++) {
            double e;
            if (f->quick) {
                double want = f->quick((double)x[i]);
                if (z[i] == (float)want && z[i] != 0) continue;
                e = ulps((double)z[i], (real)want, 24, -149);
            } else
                e = ulps((double)z[i], f->exact((real)x[i]), 24, -149);
            if (e > worst) worst = e;
            TEST_CHECK(e <= 2, "%s: f32 %s(%a) = %a, exactly %.17g: %.3f ulp", cot__isa_name(cot__cpu_isa()),
                       INFO(f->op)->name, (double)x[i], (double)z[i], (double)f->exact((real)x[i]), e);
        }
    }
    return worst;
}

static void floats_are_within_2_ulp(void **state) {
    (void)state;
    bool        all = getenv("COT_TEST_EXHAUSTIVE") != NULL;
    const char *slice = getenv("COT_TEST_SLICE");
    uint64_t    first = slice ? strtoull(slice, NULL, 10) << 28 : 0, last = slice ? first + 0xfffffff : UINT32_MAX;
    EACH_ISA(isa) {
        /* the others have the same bits, see test_vmath */
        if (all && isa != COT__ISA_PLAIN && isa != cot__cpu_best()) continue;
        assert_true(cot__cpu_use(isa));
        for (int i = 0; i < TEST_COUNT(functions); i++) {
            if (!wanted(functions[i].op)) continue;
            bool   slow = !functions[i].quick;
            double worst = check_floats(&functions[i], first, last, all ? 1 : test_small() || slow ? 2000003 : 100003);
            if (all)
                fprintf(stderr, "%s %s: f32 within %.3f ulp\n", cot__isa_name(isa), INFO(functions[i].op)->name,
                        worst < 0.5 ? 0.5 : worst);
        }
    }
    test_verdict();
}

/* ---- double ---------------------------------------------------------------------------------- */

/* Of the exact value itself, in ulp of a double. The one of digamma is a sum of some forty terms,
 * most of size 1 and less, each rounded, which cancel near its zero: nothing in 113 bits, but seen
 * in the 64 of a long double. */
static double own_error(int op, real exact) {
    if (OWN_ERROR == 0 || op != OP_digamma) return OWN_ERROR;
    return OWN_ERROR + 32 * (double)LDBL_EPSILON / (DBL_EPSILON * fabs((double)exact));
}

/* Uniform near 0 and up to 50, over all exponents, near multiples of pi/4 and log(2)/2, near points
 * where a formula gives way to another, and integers. */
static double sample64(test_random *r) {
    static const double ends[] = {0.4142, 0.5,    0.625, 0.7071, 0.75, 1,    1.0625, 1.4142, 1.4616321449683623,
                                  2.125,  2.4142, 3,     10,     20,   38.5, 40,     600,    709,
                                  745,    1048576};
    double u = test_uniform(r, -1, 1), pick = test_uniform(r, 0, 8);
    if (pick < 1) return 2 * u;
    if (pick < 2) return 50 * u;
    if (pick < 3) return ldexp(u, (int)test_uniform(r, -1074, 1024));
    if (pick < 4) return floor(test_uniform(r, -99, 99)) * 0.78539816339744830962 * (1 + 0x1p-50 * floor(4 * u));
    if (pick < 5) return floor(test_uniform(r, -99, 99)) * 0.34657359027997265471 * (1 + 0x1p-50 * floor(4 * u));
    if (pick < 6) return 1 + ldexp(u, (int)test_uniform(r, -52, 0));
    if (pick < 7)
        return copysign(ends[(int)test_uniform(r, 0, TEST_COUNT(ends) - 0.001)], u) *
               (1 + ldexp(u, (int)test_uniform(r, -52, -1)));
    return 800 * u;
}

static int batches(void) { return getenv("COT_TEST_EXHAUSTIVE") ? 4096 : test_small() ? 1 : 5; }

static void doubles_are_within_their_promise(void **state) {
    (void)state;
    static double x[BATCH], z[BATCH];
    for (int i = 0; i < TEST_COUNT(functions); i++) {
        const struct function *f = &functions[i];
        if (!wanted(f->op)) continue;
        EACH_ISA(isa) {
            if (isa != COT__ISA_PLAIN && isa != cot__cpu_best()) continue;
            test_random r = test_random_of(INFO(f->op)->name, 1);
            double      worst = 0;
            assert_true(cot__cpu_use(isa));
            for (int b = 0; b < batches(); b++) {
                for (int k = 0; k < BATCH; k++) {
                    x[k] = sample64(&r);
                    /* below 0 test_special measures in other units */
                    if (f->op == OP_digamma || f->op == OP_lgamma) x[k] = fabs(x[k]);
                }
                cot__blocks(f->op, COT_F64)->value(BATCH, x, NULL, NULL, z);
                for (int k = 0; k < BATCH; k++) {
                    real   want = f->exact((real)x[k]);
                    double e = ulps(z[k], want, 53, -1074);
                    if (e > worst) worst = e;
                    TEST_CHECK(e <= f->f64 + own_error(f->op, want), "%s: f64 %s(%a) = %a, exactly %.17g: %.3f ulp",
                               cot__isa_name(isa), INFO(f->op)->name, x[k], z[k], (double)want, e);
                }
            }
            if (batches() > 100)
                fprintf(stderr, "%s %s: f64 within %.3f ulp\n", cot__isa_name(isa), INFO(f->op)->name, worst);
        }
    }
    test_verdict();
}

/* ---- two operands ---------------------------------------------------------------------------- */

static real logaddexp_r(real x, real y) {
    real most = x > y ? x : y;
    return most == MINUS_INF || most > DBL_MAX ? most : most + R(log1p)(R(exp)(-R(fabs)(x - y)));
}
static real elu_r(real x, real y) { return x > 0 ? x : y * R(expm1)(x); }

static const struct function2 {
    int op;
    real (*exact)(real, real);
    bool operands; /* ulps of the larger operand count too, as the result may have cancelled */
} functions2[] = {{OP_pow, R(pow), false},
                  {OP_atan2, R(atan2), false},
                  {OP_hypot, R(hypot), false},
                  {OP_elu, elu_r, false},
                  {OP_logaddexp, logaddexp_r, true}};

/* Uniform, over all exponents, and near the lines where a formula changes; for powers also near 1
 * with the exponent that leads far. */
static void sample_pair(int op, test_random *r, double *x, double *y) {
    double u = test_uniform(r, -1, 1), pick = test_uniform(r, 0, 6);
    *x = test_uniform(r, -3, 3), *y = test_uniform(r, -3, 3);
    if (pick < 1) *x = ldexp(u, (int)test_uniform(r, -1074, 1024)), *y = ldexp(*y, (int)test_uniform(r, -1074, 1024));
    else if (pick < 2) *x = ldexp(u, (int)test_uniform(r, -60, 60)), *y = ldexp(*y, (int)test_uniform(r, -20, 20));
    if (pick < 3) return;
    if (op != OP_pow)
        *y = *x *
             (pick < 4   ? 1
              : pick < 5 ? 0.41421356237309505
                         : -2.414213562373095) *
             (1 + ldexp(u, (int)test_uniform(r, -52, -1)));
    else if (pick < 4) *x = 50 * u, *y = floor(15 * *y);
    else
        *x = pick < 5 ? 1 + ldexp(u, (int)test_uniform(r, -50, -1)) : exp(700 * u),
        *y = test_uniform(r, -745, 710) / log(*x);
}

static void functions_of_two_are_within_2_ulp(void **state) {
    (void)state;
    static double x[BATCH], y[BATCH], z[BATCH];
    static float  xf[BATCH], yf[BATCH], zf[BATCH];
    for (int i = 0; i < TEST_COUNT(functions2); i++)
        for (int f64 = 0; f64 < 2; f64++) EACH_ISA(isa) {
            const struct function2 *f = &functions2[i];
            test_random             r = test_random_of(INFO(f->op)->name, 2);
            double                  worst = 0;
            if (!wanted(f->op)) continue;
            assert_true(cot__cpu_use(isa));
            for (int b = 0; b < batches(); b++) {
                for (int k = 0; k < BATCH; k++) {
                    sample_pair(f->op, &r, &x[k], &y[k]);
                    if (!f64)
                        xf[k] = (float)x[k], yf[k] = (float)(f->op == OP_pow ? y[k] * 0.12 : y[k]),
                        x[k] = (double)xf[k], y[k] = (double)yf[k];
                }
                if (f64) cot__blocks(f->op, COT_F64)->value(BATCH, x, y, NULL, z);
                else cot__blocks(f->op, COT_F32)->value(BATCH, xf, yf, NULL, zf);
                for (int k = 0; k < BATCH; k++) {
                    real   want = f->exact((real)x[k], (real)y[k]);
                    double v = f64 ? z[k] : (double)zf[k], e = ulps(v, want, f64 ? 53 : 24, f64 ? -1074 : -149);
                    if (f->operands && isfinite(v)) {
                        int p;
                        frexp(fmax(fabs(x[k]), fabs(y[k])), &p);
                        e = fmin(e, ldexp(fabs((double)((real)v - want)), (f64 ? 53 : 24) - p));
                    }
                    if (e > worst) worst = e;
                    TEST_CHECK(e <= (f->operands ? 2.5 : 2) + OWN_ERROR,
                               "%s: %s %s(%a, %a) = %a, exactly %.17g: %.3f ulp", cot__isa_name(isa),
                               f64 ? "f64" : "f32", INFO(f->op)->name, x[k], y[k], v, (double)want, e);
                }
            }
            if (batches() > 100)
                fprintf(stderr, "%s %s: %s within %.3f ulp\n", cot__isa_name(isa), INFO(f->op)->name,
                        f64 ? "f64" : "f32", worst);
        }
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_are_within_2_ulp),
        cmocka_unit_test(doubles_are_within_their_promise),
        cmocka_unit_test(functions_of_two_are_within_2_ulp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
