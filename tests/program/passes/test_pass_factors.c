/* The pass factors: numbers that values are multiplied with meet, to the bit, and no others do. */
#include "random_program.h"

static const cot_shape VECTOR = {1, {4}};

static void strong_zeros_go_beside_ordinary_numbers(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, VECTOR);
    output(&d, op(&d, OP_smul, X(x, NUM), .number = 3));
    output(&d, op(&d, OP_smul, X(NUM, x), .number = -3));
    output(&d, op(&d, OP_sdiv, X(x, NUM), .number = 3));
    output(&d, op(&d, OP_sdiv, X(NUM, x), .number = 3));        /* 0 / 0 */
    output(&d, op(&d, OP_smul, X(x, NUM), .number = 0));
    output(&d, op(&d, OP_smul, X(x, NUM), .number = INFINITY));
    output(&d, op(&d, OP_smul, X(x, NUM), .number = 1e-60));    /* 0 in f32 */
    output(&d, op(&d, OP_smul, X(x, NUM), .number = 1e60));
    becomes(&d, cot__pass_factors, "%0 = input 0 f32(4,)\n"
                                   "%1 = mul(%0, 3) f32(4,)\n"
                                   "%2 = mul(-3, %0) f32(4,)\n"
                                   "%3 = div(%0, 3) f32(4,)\n"
                                   "%4 = sdiv(3, %0) f32(4,)\n"
                                   "%5 = smul(%0, 0) f32(4,)\n"
                                   "%6 = smul(%0, inf) f32(4,)\n"
                                   "%7 = smul(%0, 1e-60) f32(4,)\n"
                                   "%8 = smul(%0, 1e+60) f32(4,)\n"
                                   "gives %1, %2, %3, %4, %5, %6, %7, %8\n");
}

static void signs_join_factors(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, VECTOR);
    output(&d, op(&d, OP_neg, X(op(&d, OP_mul, X(x, NUM), .number = 3))));
    output(&d, op(&d, OP_mul, X(NUM, op(&d, OP_neg, X(x))), .number = 5));
    becomes(&d, cot__pass_factors, "%0 = input 0 f64(4,)\n"
                                   "%1 = mul(%0, 3) f64(4,)\n"
                                   "%2 = mul(%0, -3) f64(4,)\n"
                                   "%3 = neg(%0) f64(4,)\n"
                                   "%4 = mul(-5, %0) f64(4,)\n"
                                   "gives %2, %4\n");
}

/* 0.5 x may round in subnormals, 2 x may be infinite where x is not, 3 x rounds. */
static void powers_of_two_join_larger_factors(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, VECTOR), two = op(&d, OP_mul, X(x, NUM), .number = 2);
    uint32_t half = op(&d, OP_mul, X(x, NUM), .number = 0.5), three = op(&d, OP_mul, X(x, NUM), .number = 3);
    output(&d, op(&d, OP_mul, X(two, NUM), .number = -100));
    output(&d, op(&d, OP_mul, X(two, NUM), .number = 0.25));
    output(&d, op(&d, OP_mul, X(half, NUM), .number = 100));
    output(&d, op(&d, OP_mul, X(three, NUM), .number = 2));
    output(&d, op(&d, OP_mul, X(two, NUM), .number = 0x1p126));
    becomes(&d, cot__pass_factors, "%0 = input 0 f32(4,)\n"
                                   "%1 = mul(%0, 2) f32(4,)\n"
                                   "%2 = mul(%0, 0.5) f32(4,)\n"
                                   "%3 = mul(%0, 3) f32(4,)\n"
                                   "%4 = mul(%0, -200) f32(4,)\n"
                                   "%5 = mul(%1, 0.25) f32(4,)\n"
                                   "%6 = mul(%2, 100) f32(4,)\n"
                                   "%7 = mul(%3, 2) f32(4,)\n"
                                   "%8 = mul(%1, 8.50706e+37) f32(4,)\n"
                                   "gives %4, %5, %6, %7, %8\n");
}

static void sums_take_positive_factors_that_only_they_read(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, VECTOR), y = input(&d, COT_F64, VECTOR);
    uint32_t a = op(&d, OP_mul, X(y, NUM), .number = -2), b = op(&d, OP_mul, X(y, NUM), .number = -3);
    output(&d, op(&d, OP_sub, X(x, a)));
    output(&d, op(&d, OP_add, X(x, b))); /* b is read again */
    output(&d, op(&d, OP_exp, X(b)));
    becomes(&d, cot__pass_factors, "%0 = input 0 f64(4,)\n"
                                   "%1 = input 1 f64(4,)\n"
                                   "%2 = mul(%1, -2) f64(4,)\n"
                                   "%3 = mul(%1, -3) f64(4,)\n"
                                   "%4 = mul(%1, 2) f64(4,)\n"
                                   "%5 = add(%0, %4) f64(4,)\n"
                                   "%6 = add(%0, %3) f64(4,)\n"
                                   "%7 = exp(%3) f64(4,)\n"
                                   "gives %5, %6, %7\n");
}

static void integers_stay(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_I32, VECTOR);
    output(&d, op(&d, OP_smul, X(x, NUM), .number = 3));
    output(&d, op(&d, OP_neg, X(op(&d, OP_mul, X(x, NUM), .number = 3))));
    stays(&d, cot__pass_factors);
}

/* Every rule on every number at which it could go wrong. */
static void every_number_keeps_its_bits(void **state) {
    static const double odd[] = {0.0, -0.0, 1, -3, 1e-310, 4.9e-324, 1e-40, 1e308, -1.7e308, 3e38, INFINITY, -INFINITY,
                                 NAN, 0.1};
    (void)state;
    for (int f = 0; f < 2; f++) {
        draft d;
        char  in[TEST_COUNT(odd) * 8];
        draft_open(&d, NULL);
        cot_dtype dtype = f ? COT_F32 : COT_F64;
        uint32_t  x = input(&d, dtype, SHAPE(TEST_COUNT(odd))), two = op(&d, OP_mul, X(x, NUM), .number = 2);
        output(&d, op(&d, OP_smul, X(two, NUM), .number = -100));
        output(&d, op(&d, OP_neg, X(op(&d, OP_smul, X(x, NUM), .number = 0.3))));
        output(&d, op(&d, OP_sub, X(x, op(&d, OP_smul, X(op(&d, OP_neg, X(x)), NUM), .number = 3))));
        output(&d, op(&d, OP_sdiv, X(x, NUM), .number = -7));
        cot__program *p = draft_close(&d), *q = after(p, cot__pass_factors);
        for (int i = 0; i < TEST_COUNT(odd); i++) cot__store_f64(in + i * cot__dtype_size(dtype), dtype, odd[i]);
        result want = run_program(p, (void *[]){in}, false), got = run_program(q, (void *[]){in}, false);
        assert_true(p != q && same_result(&want, &got));
        free_result(&want);
        free_result(&got);
        cot__program_release(p);
        cot__program_release(q);
    }
}

static void any_allocation_may_fail(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, VECTOR);
    output(&d, op(&d, OP_sub, X(x, op(&d, OP_smul, X(x, NUM), .number = -2))));
    survives_no_memory(&d, cot__pass_factors);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strong_zeros_go_beside_ordinary_numbers),
        cmocka_unit_test(signs_join_factors),
        cmocka_unit_test(powers_of_two_join_larger_factors),
        cmocka_unit_test(sums_take_positive_factors_that_only_they_read),
        cmocka_unit_test(integers_stay),
        cmocka_unit_test(every_number_keeps_its_bits),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
