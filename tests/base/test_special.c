/* Special functions and 16-bit conversions: ulp errors, special values, rounding. */
/* ctest: timeout=60 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"
#include "base/math/special.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* The unit of error for a result of size v. */
static double ulp_of(double v) {
    int e;
    frexp(v, &e);
    return ldexp(1, e - 53 < -1074 ? -1074 : e - 53);
}

/* Under "absolute" in special.h: the quantity whose ulps count where it exceeds the result. */
static double no_scale(double n, double x) {
    (void)n, (void)x;
    return 0;
}

static double digamma_scale(double n, double x) {
    (void)n;
    return x < 0 ? fabs(3.14159265358979 / tan(3.14159265358979 * (x - rint(x)))) + fabs(cot__digamma(1 - x)) : 0;
}

static double lgamma_scale(double n, double x) {
    (void)n;
    double s = fabs(sin(3.14159265358979 * (x - rint(x))));
    return x < -0.25 ? fabs(log(3.14159265358979 / (-x * s))) + fabs(cot__lgamma(-x)) : 0;
}

static double polygamma_scale(double n, double x) {
    if (x > 0 || (int)n % 2)
        return 0;
    double d = fabs(x - rint(x));
    return exp(lgamma(n + 1) - (n + 1) * log(d)); /* rough, which may cost one binade at its edge */
}

static double logaddexp_scale(double b, double a) { return fmax(fabs(a), fabs(b)); }

static double polygamma2(double n, double x) { return cot__polygamma((int)n, x); }

static float polygamma2f(float n, float x) { return cot__polygammaf((int)n, x); }

/* What special.h promises, per function; the order or b is the second argument.
 * `below` is the promise for x < 0 where it differs. */
static const struct {
    const char *name;
    double (*one)(double);
    double (*two)(double, double);
    float (*onef)(float);
    float (*twof)(float, float);
    double (*scale)(double, double);
    double limit, below;
} functions[] = {
    {"erfinv", cot__erfinv, NULL, cot__erfinvf, NULL, no_scale, 2, 2},
    {"lgamma", cot__lgamma, NULL, cot__lgammaf, NULL, lgamma_scale, 5, 5},
    {"digamma", cot__digamma, NULL, cot__digammaf, NULL, digamma_scale, 4, 4},
    {"polygamma", NULL, polygamma2, NULL, polygamma2f, polygamma_scale, 5, 5},
    {"log1pexp", cot__log1pexp, NULL, NULL, NULL, no_scale, 2, 2},
    {"sigmoid", cot__sigmoid, NULL, NULL, NULL, no_scale, 2, 2},
    {"log_sigmoid", cot__log_sigmoid, NULL, NULL, NULL, no_scale, 2, 2},
    {"logaddexp", NULL, cot__logaddexp, NULL, NULL, logaddexp_scale, 2, 2},
    {"erfc", cot__erfc, NULL, NULL, NULL, no_scale, 2, 2},
    {"gelu", cot__gelu, NULL, NULL, NULL, no_scale, 2, 2},
    {"silu", cot__silu, NULL, NULL, NULL, no_scale, 2, 2},
    {"mish", cot__mish, NULL, NULL, NULL, no_scale, 2, 2},
    {"gelu_tanh", cot__gelu_tanh, NULL, NULL, NULL, no_scale, 2, 2},
    {"cbrt", cot__cbrt, NULL, NULL, NULL, no_scale, 1, 1},
};

/* The reference values lie next to this source; COT_TEST_SPECIAL names another file,
 * for a denser sample made with data/make_special.py. */
static FILE *open_references(void) {
    const char *other = getenv("COT_TEST_SPECIAL");
    if (other)
        return fopen(other, "r");
    return fopen(COT_SOURCE_FOLDER "/tests/data/special.txt", "r");
}

static void test_ulps(void **state) {
    (void)state;
    struct {
        double err, x, second;
        int n;
    } worst[COUNT(functions)][2];
    memset(worst, 0, sizeof worst);
    FILE *f = open_references();
    assert_non_null(f);
    char name[32], tok[4][64];
    int failures = 0;
    while (fscanf(f, "%31s %63s %63s %63s %63s", name, tok[0], tok[1], tok[2], tok[3]) == 5) {
        double second = strtod(tok[0], NULL), x = strtod(tok[1], NULL);
        double hi = strtod(tok[2], NULL), lo = strtod(tok[3], NULL);
        int i = 0;
        while (i < COUNT(functions) && strcmp(functions[i].name, name) != 0)
            i++;
        assert_in_range(i, 0, COUNT(functions) - 1);
        double y = functions[i].one ? functions[i].one(x) : functions[i].two(second, x);
        double scale = functions[i].scale(second, x), err;
        if (isinf(hi))
            err = y == hi ? 0 : INFINITY;
        else
            err = fabs((y - hi) - lo) / ulp_of(fmax(fabs(hi), scale));
        int below = x < 0;
        if (!(err <= (below ? functions[i].below : functions[i].limit))) {
            failures++;
            if (failures < 40)
                printf("%s(%a%s%s) = %a, exact %a: %.2f ulp\n", name, x, functions[i].two ? "; " : "",
                       functions[i].two ? tok[0] : "", y, hi, err);
        }
        worst[i][below].n++;
        if (err > worst[i][below].err) {
            worst[i][below].err = err;
            worst[i][below].x = x;
            worst[i][below].second = second;
        }
        /* The float twin at a float: the same value, rounded. Those of elementary.h are
         * functions of their own, which test_ulps.c measures. */
        if (!functions[i].onef && !functions[i].twof)
            continue;
        float xf = (float)x, sf = (float)second;
        float yf = functions[i].onef ? functions[i].onef(xf) : functions[i].twof(sf, xf);
        double yd = functions[i].one ? functions[i].one((double)xf) : functions[i].two((double)sf, (double)xf);
        assert_true(yf == (float)yd || (isnan(yf) && isnan(yd)));
    }
    fclose(f);
    for (int i = 0; i < COUNT(functions); i++) {
        assert_true(worst[i][0].n > 20);
        for (int b = 0; b < 2; b++)
            printf("%-12s %s max %5.2f ulp of %6d at %.17g (%g)\n", functions[i].name, b ? "x < 0" : "x > 0",
                   worst[i][b].err, worst[i][b].n, worst[i][b].x, worst[i][b].second);
    }
    assert_int_equal(failures, 0);
}

/* Equal as values, and in the sign of zero; NaN equals NaN. */
static void check(double got, double want, int line) {
    int same = isnan(want) ? isnan(got) : got == want && !signbit(got) == !signbit(want);
    if (!same)
        fail_msg("line %d: got %a, want %a", line, got, want);
}
#define CHECK(got, want) check((got), (want), __LINE__)

static void test_special_values(void **state) {
    (void)state;
    const double inf = INFINITY, nan_ = NAN, ln2 = 0x1.62e42fefa39efp-1;
    for (int i = 0; i < COUNT(functions); i++) {
        CHECK(functions[i].one ? functions[i].one(nan_) : functions[i].two(1, nan_), nan_);
        if (functions[i].onef || functions[i].twof)
            CHECK(functions[i].onef ? functions[i].onef(NAN) : functions[i].twof(1, NAN), nan_);
    }
    CHECK(cot__erfinv(0.0), 0.0);
    CHECK(cot__erfinv(-0.0), -0.0);
    CHECK(cot__erfinv(1), inf);
    CHECK(cot__erfinv(-1), -inf);
    CHECK(cot__erfinv(nextafter(1, 2)), nan_);
    CHECK(cot__erfinv(-inf), nan_);

    CHECK(cot__lgamma(0.0), inf);
    CHECK(cot__lgamma(-0.0), inf);
    CHECK(cot__lgamma(-3), inf);
    CHECK(cot__lgamma(1), 0.0);
    CHECK(cot__lgamma(2), 0.0);
    CHECK(cot__lgamma(inf), inf);
    CHECK(cot__lgamma(-inf), inf);

    CHECK(cot__digamma(0.0), -inf);
    CHECK(cot__digamma(-0.0), inf);
    CHECK(cot__digamma(-1), nan_);
    CHECK(cot__digamma(-0x1p60), nan_);
    CHECK(cot__digamma(inf), inf);
    CHECK(cot__digamma(-inf), nan_);
    CHECK(cot__digamma(0x1p-1074), -inf);
    CHECK(cot__digamma(-0x1p-1074), inf);

    CHECK(cot__polygamma(-1, 2), nan_);
    CHECK(cot__polygamma(0, 3.5), cot__digamma(3.5));
    CHECK(cot__polygamma(1, 0.0), inf);
    CHECK(cot__polygamma(1, -0.0), inf);
    CHECK(cot__polygamma(2, 0.0), -inf);
    CHECK(cot__polygamma(2, -0.0), inf);
    CHECK(cot__polygamma(3, -2), inf);
    CHECK(cot__polygamma(4, -2), nan_);
    CHECK(cot__polygamma(1, inf), 0.0);
    CHECK(cot__polygamma(2, inf), -0.0);
    CHECK(cot__polygamma(1, -inf), nan_);
    CHECK(cot__polygamma(60, 1e-9), -inf);
    CHECK(cot__polygamma(60, 1e200), -0.0);
    CHECK(cot__polygamma(1000, 0.25), -inf);
    /* Beyond 1000, through logarithms. */
    assert_true(fabs(cot__polygamma(2000, 750) / -3.5839456557428425e-18 - 1) < 4e-12);
    assert_true(fabs(cot__polygamma(1001, 500.25) / 1.2098559369919328e-134 - 1) < 2e-12);
    CHECK(cot__polygamma(INT32_MAX, 0.25), inf);
    CHECK(cot__polygamma(INT32_MAX, 1e300), 0.0);
    CHECK(cot__polygamma(INT32_MAX, -2.25), inf);

    CHECK(cot__log1pexp(inf), inf);
    CHECK(cot__log1pexp(-inf), 0.0);
    CHECK(cot__log1pexp(0), ln2);
    CHECK(cot__log1pexp(1e300), 1e300);
    CHECK(cot__sigmoid(inf), 1);
    CHECK(cot__sigmoid(-inf), 0.0);
    CHECK(cot__sigmoid(0), 0.5);
    CHECK(cot__log_sigmoid(inf), -0.0);
    CHECK(cot__log_sigmoid(-inf), -inf);
    CHECK(cot__log_sigmoid(-1e300), -1e300);
    CHECK(cot__logaddexp(inf, inf), inf);
    CHECK(cot__logaddexp(-inf, -inf), -inf);
    CHECK(cot__logaddexp(-inf, inf), inf);
    CHECK(cot__logaddexp(-inf, 2), 2);
    CHECK(cot__logaddexp(2, -inf), 2);
    CHECK(cot__logaddexp(inf, nan_), nan_);
    CHECK(cot__logaddexp(nan_, -inf), nan_);

    CHECK(cot__erfc(inf), 0.0);
    CHECK(cot__erfc(-inf), 2);
    CHECK(cot__erfc(-0.0), 1);
    CHECK(cot__gelu(inf), inf);
    CHECK(cot__gelu(-inf), -0.0);
    CHECK(cot__gelu(-0.0), -0.0);
    CHECK(cot__silu(inf), inf);
    CHECK(cot__silu(-inf), -0.0);
    CHECK(cot__silu(-1e300), -0.0);
    CHECK(cot__silu(-0.0), -0.0);
    CHECK(cot__cbrt(-inf), -inf);
    CHECK(cot__cbrt(-0.0), -0.0);
    CHECK(cot__cbrt(-27), -3);
    CHECK(cot__mish(inf), inf);
    CHECK(cot__mish(-inf), -0.0);
    CHECK(cot__mish(-0.0), -0.0);
    CHECK(cot__gelu_tanh(inf), inf);
    CHECK(cot__gelu_tanh(-inf), -0.0);
    CHECK(cot__gelu_tanh(1e300), 1e300);
    CHECK(cot__gelu_tanh(0.0), 0.0);
}

static void test_remainder(void **state) {
    (void)state;
    const double inf = INFINITY;
    CHECK(cot__remainder(5, 3), 2);
    CHECK(cot__remainder(-5, 3), 1);
    CHECK(cot__remainder(5, -3), -1);
    CHECK(cot__remainder(-5, -3), -2);
    CHECK(cot__remainder(6, -3), -0.0);
    CHECK(cot__remainder(-6, 3), 0.0);
    CHECK(cot__remainder(-0.0, 3), 0.0);
    CHECK(cot__remainder(1, 0), NAN);
    CHECK(cot__remainder(inf, 3), NAN);
    CHECK(cot__remainder(1, inf), 1);
    CHECK(cot__remainder(-1, inf), inf);
    CHECK(cot__remainder(1, -inf), -inf);
    CHECK(cot__remainder(-1e-20, 1), 1);
    CHECK(cot__remainder(NAN, 1), NAN);
    CHECK(cot__remainder(1, NAN), NAN);
    CHECK(cot__remainderf(-5.5f, 3), 0.5);

    for (int64_t x = -20; x <= 20; x++)
        for (int64_t y = -20; y <= 20; y++) {
            assert_int_equal(cot__iremainder(x, y), y ? (int64_t)cot__remainder((double)x, (double)y) : 0);
            assert_int_equal(cot__ifmod(x, y), y ? (int64_t)fmod((double)x, (double)y) : 0);
        }
    assert_int_equal(cot__iremainder(INT64_MIN, -1), 0);
    assert_int_equal(cot__ifmod(INT64_MIN, -1), 0);
    assert_true(cot__iremainder(INT64_MIN, INT64_MAX) == INT64_MAX - 1);
    assert_true(cot__iremainder(INT64_MAX, INT64_MIN) == -1);
    assert_true(cot__ifmod(INT64_MIN, INT64_MAX) == -1);
    assert_true(cot__ifmod(INT64_MAX, INT64_MIN) == INT64_MAX);
}

static void test_ipow(void **state) {
    (void)state;
    assert_true(cot__ipow(3, 4) == 81);
    assert_true(cot__ipow(-3, 3) == -27);
    assert_true(cot__ipow(0, 0) == 1);
    assert_true(cot__ipow(0, 5) == 0);
    assert_true(cot__ipow(2, 62) == (int64_t)1 << 62);
    assert_true(cot__ipow(2, 63) == INT64_MIN);
    assert_true(cot__ipow(2, 64) == 0);
    assert_true(cot__ipow(-2, 63) == INT64_MIN);
    assert_true(cot__ipow(10, 20) == 7766279631452241920);
    assert_true(cot__ipow(3, 41) == -420491770248316829); /* 3^41 - 2 * 2^64 */
    assert_true(cot__ipow(-1, INT64_MAX) == -1);
    assert_true(cot__ipow(INT64_MIN, 1) == INT64_MIN);
    assert_true(cot__ipow(INT64_MIN, 2) == 0);
    for (int64_t e = -5; e < 0; e++) {
        assert_true(cot__ipow(1, e) == 1);
        assert_true(cot__ipow(-1, e) == (e % 2 ? -1 : 1));
        assert_true(cot__ipow(0, e) == 0);
        assert_true(cot__ipow(2, e) == 0);
        assert_true(cot__ipow(INT64_MIN, e) == 0);
    }
    assert_true(cot__ipow(-1, INT64_MIN) == 1);
}

/* The formats once more, from their definition: value of a finite pattern. */
struct format {
    int fraction, bias; /* fraction bits; exponent bias */
    uint16_t inf;
};
static const struct format f16 = {10, 15, 0x7c00}, bf16 = {7, 127, 0x7f80};

static double value_of(struct format f, uint16_t h) {
    int a = h & 0x7fff, e = a >> f.fraction, m = a & ((1 << f.fraction) - 1);
    double v = e ? ldexp(m + (1 << f.fraction), e - f.bias - f.fraction) : ldexp(m, 1 - f.bias - f.fraction);
    return h & 0x8000 ? -v : v;
}

/* Rounding by search: the neighbours of |x| among all patterns, compared as exact
 * differences.  The pattern of infinity stands for the next power of two, as the
 * rounding rule has it. */
static uint16_t slow_round(struct format f, double x) {
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    double a = fabs(x);
    if (a >= value_of(f, f.inf))
        return sign | f.inf;
    int lo = 0, hi = f.inf; /* value(lo) <= a < value(hi) */
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (value_of(f, (uint16_t)mid) <= a)
            lo = mid;
        else
            hi = mid;
    }
    /* The tie point is exact in double; the differences need not be. */
    double tie = (value_of(f, (uint16_t)lo) + value_of(f, (uint16_t)hi)) / 2;
    int r = a > tie || (a == tie && lo % 2) ? hi : lo;
    return (uint16_t)(sign | r);
}

static void check_f32(float x) {
    assert_int_equal(cot__f16_from_f32(x), slow_round(f16, (double)x));
    assert_int_equal(cot__bf16_from_f32(x), slow_round(bf16, (double)x));
}

static void check_f64(double x) {
    assert_int_equal(cot__f16_from_f64(x), slow_round(f16, x));
    assert_int_equal(cot__bf16_from_f64(x), slow_round(bf16, x));
}

static void test_half_round_trip(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t h = (uint16_t)i, a = h & 0x7fff;
        float x = cot__f32_from_f16(h), y = cot__f32_from_bf16(h);
        if (a > f16.inf) {
            assert_true(isnan(x));
            assert_int_equal(cot__f16_from_f32(x), h | 0x200);
            assert_int_equal(cot__f16_from_f64((double)x), h | 0x200);
        } else {
            assert_true(a == f16.inf ? isinf(x) : (double)x == value_of(f16, h));
            assert_int_equal(cot__f16_from_f32(x), h);
            assert_int_equal(cot__f16_from_f64((double)x), h);
        }
        if (a > bf16.inf) {
            assert_true(isnan(y));
            assert_int_equal(cot__bf16_from_f32(y), h | 0x40);
            assert_int_equal(cot__bf16_from_f64((double)y), h | 0x40);
        } else {
            assert_true(a == bf16.inf ? isinf(y) : (double)y == value_of(bf16, h));
            assert_int_equal(cot__bf16_from_f32(y), h);
            assert_int_equal(cot__bf16_from_f64((double)y), h);
        }
    }
    /* A payload only in the bits that are dropped. */
    assert_int_equal(cot__f16_from_f32(cot__f32_from_bits(0xff800001)), 0xfe00);
    assert_int_equal(cot__bf16_from_f32(cot__f32_from_bits(0x7f800001)), 0x7fc0);
}

/* At every midpoint between neighbours (the last against infinity), and just beside it. */
static void test_half_ties(void **state) {
    (void)state;
    const struct format formats[] = {f16, bf16};
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < formats[k].inf; i++)
            for (int s = -1; s <= 1; s += 2) {
                double a = value_of(formats[k], (uint16_t)i), b = value_of(formats[k], (uint16_t)(i + 1));
                double mid = s * ((a + b) / 2);
                float m = (float)mid; /* exact */
                assert_true((double)m == mid);
                check_f32(m);
                check_f32(nextafterf(m, 0));
                check_f32(nextafterf(m, s * INFINITY));
                check_f64(mid);
                /* So near the tie that a detour over float would fall onto it. */
                check_f64(nextafter(mid, 0));
                check_f64(nextafter(mid, s * (double)INFINITY));
            }
    check_f64(DBL_MAX);
    check_f64(-DBL_MAX);
    check_f64(0x1p-1074);
    check_f64(-0.0);
    check_f32(FLT_MAX);
    check_f32(0x1p-149f);
}

static uint64_t next_random(uint64_t *s) {
    /* Weyl sequence through a multiply-shift mixer: plenty for bit patterns. */
    uint64_t z = *s += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 32) * 0xd6e8feb86659fd93;
    z = (z ^ z >> 32) * 0xd6e8feb86659fd93;
    return z ^ z >> 32;
}

static void test_half_random(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 400000; i++) {
        uint64_t u = next_random(&seed);
        float x = cot__f32_from_bits((uint32_t)u);
        if (isfinite(x))
            check_f32(x);
        /* And with an exponent in the range of f16 or a little beyond. */
        check_f32(cot__f32_from_bits((uint32_t)((u & 0x807fffff) | (100 + (u >> 40) % 45) << 23)));
        uint64_t v = (u & 0x800fffffffffffff) | (1023 - 152 + (u >> 20) % 285) << 52;
        double y;
        memcpy(&y, &v, sizeof y);
        check_f64(y);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ulps),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_remainder),
        cmocka_unit_test(test_ipow),
        cmocka_unit_test(test_half_round_trip),
        cmocka_unit_test(test_half_ties),
        cmocka_unit_test(test_half_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
