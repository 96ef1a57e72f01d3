/* The software fma against the processor's, or libm's, to the bit: random numbers of every size,
 * and sums chosen to be hard: near cancellation, near ties, subnormal, overflowing. */
#include "support/support.h"

#include "base/math/software_fma.h"

#include <math.h>

enum { TRIALS = 3000000 };

static double from_bits(uint64_t u) { return ((union { uint64_t u; double d; }){.u = u}).d; }
static uint64_t to_bits(double d) { return ((union { double d; uint64_t u; }){.d = d}).u; }
static float from_bits_f32(uint32_t u) { return ((union { uint32_t u; float f; }){.u = u}).f; }
static uint32_t to_bits_f32(float f) { return ((union { float f; uint32_t u; }){.f = f}).u; }

static uint64_t state = 88172645463325252u;
static uint64_t bits(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}
static int between(int low, int high) { return low + (int)(bits() % (uint64_t)(high - low + 1)); }
static double sign(void) { return bits() >> 40 & 1 ? 1 : -1; }

static const double specials[] = {0, -0.0, 1, -1, 0x1p-1074, 0x1p-1022, 0x1p-537, (double)INFINITY, -(double)INFINITY,
                                  (double)NAN, 0x1.fffffffffffffp1023, 0x1.0000001p0, 3, 0.5, 0x1.fffffffffffffp-1};

/* A number whose exponent lies between two, with all bits or few. */
static double number_with(int low, int high, uint64_t mask) {
    return from_bits((bits() & (UINT64_C(1) << 63 | mask)) | (uint64_t)between(low, high) << 52);
}
static double number(void) {
    const uint64_t all = (UINT64_C(1) << 52) - 1, few = all << 30 & all;
    switch (between(0, 6)) {
    case 0: return from_bits(bits());
    case 1: return number_with(960, 1080, all);
    case 2: return number_with(960, 1080, few);
    case 3: return number_with(0, 2046, 0);
    case 4: return number_with(0, 120, all);
    case 5: return number_with(1930, 2046, all);
    default: return specials[bits() % TEST_COUNT(specials)];
    }
}

/* A third operand for which a b + c is hard to round. */
static double hard(double a, double b) {
    double p = a * b;
    switch (between(0, 5)) {
    case 0: return -p;
    case 1: return from_bits(to_bits(-p) + (uint64_t)between(-2, 2));
    case 2: return sign() * p * ldexp(1 + between(0, 2) * 0x1p-52, between(-110, 110));
    case 3: return sign() * fma(a, b, -p) * ldexp(1, between(-2, 2));
    default: return number();
    }
}
static float hard_f32(float a, float b) {
    float p = a * b;
    switch (between(0, 5)) {
    case 0: return -p;
    case 1: return from_bits_f32(to_bits_f32(-p) + (uint32_t)between(-2, 2));
    case 2: return (float)sign() * p * ldexpf(1, between(-50, 50));
    case 3: return (float)sign() * fmaf(a, b, -p) * ldexpf(1, between(-2, 2));
    default: return from_bits_f32((uint32_t)bits());
    }
}

static bool same_f32(float a, float b) { return to_bits_f32(a) == to_bits_f32(b) || (a != a && b != b); }

static void check(double a, double b, double c) {
    double exact = fma(a, b, c), ours = cot__software_fma(a, b, c), slow = cot__fma_by_integers(a, b, c);
    if (!test_same(exact, ours) || !test_same(exact, slow))
        fail_msg("fma(%a, %a, %a) is %a, not %a, by integers %a", a, b, c, exact, ours, slow);
}

static void in_double_it_has_the_bits_of_the_instruction(void **unused) {
    (void)unused;
    for (int i = 0; i < TRIALS; i++) {
        double a = number(), b = number();
        check(a, b, hard(a, b));
    }
    for (int i = 0; i < TEST_COUNT(specials); i++)
        for (int j = 0; j < TEST_COUNT(specials); j++)
            for (int k = 0; k < TEST_COUNT(specials); k++) check(specials[i], specials[j], -specials[k]);
}

static void in_float_it_has_the_bits_of_the_instruction(void **unused) {
    (void)unused;
    for (int i = 0; i < TRIALS; i++) {
        bool  any = bits() & 1;
        float a = any ? from_bits_f32((uint32_t)bits()) : (float)number();
        float b = any ? from_bits_f32((uint32_t)bits()) : (float)number(), c = hard_f32(a, b);
        float exact = fmaf(a, b, c), ours = cot__software_fmaf(a, b, c);
        if (!same_f32(exact, ours))
            fail_msg("fmaf(%a, %a, %a) is %a, not %a", (double)a, (double)b, (double)c, (double)exact, (double)ours);
    }
}

static void called_and_inlined_it_is_the_same(void **unused) {
    (void)unused;
    for (int i = 0; i < 100000; i++) {
        double a = number(), b = number(), c = hard(a, b);
        assert_true(test_same(cot__fma_called(a, b, c), cot__software_fma(a, b, c)));
        float x = (float)a, y = (float)b, z = hard_f32(x, y);
        assert_true(same_f32(cot__fmaf_called(x, y, z), cot__software_fmaf(x, y, z)));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_double_it_has_the_bits_of_the_instruction),
        cmocka_unit_test(in_float_it_has_the_bits_of_the_instruction),
        cmocka_unit_test(called_and_inlined_it_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
