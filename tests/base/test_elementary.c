/* The elementary and special functions of single numbers have the same bits on every machine: one
 * hash of many results is written down here. It changes when a function does, on purpose. */
#include "support/support.h"

#include "base/cpu.h"
#include "base/math/special.h"

enum { POINTS = 20000 };
#define EXPECTED UINT64_C(0xd31f9ee2f415792b)

static uint64_t state, hash;

static uint64_t bits(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}
static double from_bits(uint64_t u) { return ((union { uint64_t u; double d; }){.u = u}).d; }
static float  from_bits_f32(uint32_t u) { return ((union { uint32_t u; float f; }){.u = u}).f; }

/* All NaNs count as one. */
static void take(double x) {
    uint64_t u = x != x ? 1 : ((union { double d; uint64_t u; }){.d = x}).u;
    hash = (hash ^ u) * UINT64_C(1099511628211);
    hash ^= hash >> 29;
}

/* Any bits, small and large numbers, and hard ones. */
static double argument(void) {
    static const double hard[] = {
        0, -0.0, 1, -1, 2, (double)INFINITY, -(double)INFINITY, (double)NAN, 0x1p-1074, 1e300, 1e22, 710.2, -745, -700,
        89.1, 3e38};
    switch (bits() % 5) {
    case 0: return from_bits(bits());
    case 1: return (double)(int64_t)bits() * 0x1p-60;
    case 2: return (double)(int64_t)bits() * 0x1p-53;
    case 3: return (double)(int64_t)bits() * 0x1p-43;
    default: return hard[bits() % TEST_COUNT(hard)];
    }
}

static uint64_t hash_of_all(void) {
    state = UINT64_C(88172645463325252), hash = UINT64_C(1469598103934665603);
    for (int i = 0; i < POINTS; i++) {
        double x = argument(), y = argument();
        float  p = i & 1 ? from_bits_f32((uint32_t)bits()) : (float)x, q = (float)y;
#define UNARY(name) take(cot__##name(x)), take((double)cot__##name##f(p));
#define BINARY(name) take(cot__##name(x, y)), take((double)cot__##name##f(p, q));
        COT__ELEMENTARY_UNARY(UNARY) COT__ELEMENTARY_TRIG(UNARY) COT__ELEMENTARY_BINARY(BINARY)
        BINARY(fmod) BINARY(remainder) UNARY(erfinv) UNARY(lgamma) UNARY(digamma)
        take(cot__polygamma(i % 7, x));
    }
    return hash;
}

static void every_machine_has_these_bits(void **unused) {
    (void)unused;
    for (cot__isa isa = COT__ISA_PLAIN; isa <= cot__cpu_best(); isa = (cot__isa)(isa + 1)) {
        assert_true(cot__cpu_use(isa));
        assert_int_equal(hash_of_all(), EXPECTED);
    }
}

/* 6381956970095103 2^797 is the double next to a multiple of pi/2. */
static void the_hardest_argument_of_a_sine_is_right(void **unused) {
    (void)unused;
    double x = 0x1.6ac5b262ca1ffp+849;
    assert_true(cot__sin(x) == 1 && cot__sin(-x) == -1);
    assert_true(test_ulps(cot__cos(x), -4.6871659242546276111e-19L, 53) <= 2);
    assert_true(test_ulps(cot__cos(-x), -4.6871659242546276111e-19L, 53) <= 2);
    assert_true(test_ulps(cot__tan(x), -2.133485385753703843674853e18L, 53) <= 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_machine_has_these_bits),
        cmocka_unit_test(the_hardest_argument_of_a_sine_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
