/* The pass fast: algebra of real numbers, where it is asked for; what stays within the rounding of
 * its own operations, and which zeros stay strong. */
#include "random_program.h"

#include "base/cpu.h"

#include <float.h>

static const cot_shape VECTOR = {1, {4}};

static cot__program *fast_pass(const cot__program *p, const cot__pass_options *o) {
    cot__pass_options with = *o;
    with.fast = true;
    return cot__pass_fast(p, &with);
}

static cot__program *pass_within(const cot__program *p, const cot__pass_options *o) {
    cot__pass_options with = *o;
    with.fast = with.within = true;
    return cot__pass_fast(p, &with);
}

static cot__program *all_passes(const cot__program *p, const cot__pass_options *o) {
    cot__pass_options with = *o;
    with.fast = true;
    return cot__optimise(p, &with);
}

static void it_does_nothing_unless_asked(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, VECTOR);
    output(&d, op(&d, OP_add, X(x, NUM), .number = 0));
    output(&d, op(&d, OP_sub, X(x, x)));
    stays(&d, cot__pass_fast);
}

static void a_bit_leaves_it_out(void **state) {
    draft             d;
    heard             h;
    cot__caller       caller;
    cot__pass_options o = options_of(&h, &caller, NULL);
    (void)state;
    o.fast = true;
    o.without = 1u << COT__PASS_fast;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, VECTOR);
    output(&d, op(&d, OP_sub, X(x, x)));
    cot__program *p = draft_close(&d), *q = cot__optimise(p, &o);
    assert_ptr_equal(p, q);
    cot__program_release(p);
    cot__program_release(q);
}

/* ---- what becomes of what -------------------------------------------------------------------- */

static void zeros_and_ones_are_known(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, VECTOR), s = input(&d, COT_F64, NO_AXES);
    output(&d, op(&d, OP_add, X(x, NUM), .number = 0));
    output(&d, op(&d, OP_mul, X(NUM, x), .number = 0));
    output(&d, op(&d, OP_sub, X(x, x)));
    output(&d, op(&d, OP_sdiv, X(x, x)));
    output(&d, op(&d, OP_div, X(s, s)));
    output(&d, op(&d, OP_div, X(NUM, s), .number = 0));
    becomes(&d, all_passes, "%0 = input 0 f32(4,)\n"
                            "%1 = input 1 f64\n"
                            "%2 = constant 0 f32\n"
                            "%3 = broadcast_to(%2) f32(4,)\n"
                            "%4 = constant 1 f32\n"
                            "%5 = broadcast_to(%4) f32(4,)\n"
                            "%6 = constant 2 f64\n"
                            "%7 = constant 3 f64\n"
                            "gives %0, %3, %3, %5, %6, %7\n");
}

static void numbers_meet(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, VECTOR);
    uint32_t high = op(&d, OP_add, X(x, NUM), .number = 3), less = op(&d, OP_sub, X(NUM, high), .number = 1);
    output(&d, less);                                            /* 1 - (x + 3) */
    output(&d, op(&d, OP_sub, X(less, NUM), .number = 5));       /* (-2 - x) - 5 */
    output(&d, op(&d, OP_neg, X(less)));
    uint32_t third = op(&d, OP_div, X(x, NUM), .number = 3);
    output(&d, op(&d, OP_mul, X(third, NUM), .number = 6));
    output(&d, op(&d, OP_div, X(NUM, op(&d, OP_mul, X(x, NUM), .number = 4)), .number = 2));
    becomes(&d, all_passes, "%0 = input 0 f64(4,)\n"
                            "%1 = sub(-2, %0) f64(4,)\n"
                            "%2 = sub(-7, %0) f64(4,)\n"
                            "%3 = add(%0, 2) f64(4,)\n"
                            "%4 = mul(%0, 2) f64(4,)\n"
                            "%5 = div(0.5, %0) f64(4,)\n"
                            "gives %1, %2, %3, %4, %5\n");
}

static void equal_factors_are_taken_out(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, VECTOR), a = input(&d, COT_F64, VECTOR), b = input(&d, COT_F64, NO_AXES);
    uint32_t c = input(&d, COT_F64, VECTOR);
    output(&d, op(&d, OP_add, X(op(&d, OP_mul, X(x, NUM), .number = 3), x)));
    output(&d, op(&d, OP_sub, X(op(&d, OP_smul, X(a, x)), op(&d, OP_mul, X(x, c)))));
    output(&d, op(&d, OP_sub, X(op(&d, OP_mul, X(a, x)), op(&d, OP_mul, X(b, x))))); /* two types */
    becomes(&d, fast_pass, "%0 = input 0 f64(4,)\n"
                           "%1 = input 1 f64(4,)\n"
                           "%2 = input 2 f64\n"
                           "%3 = input 3 f64(4,)\n"
                           "%4 = mul(%0, 3) f64(4,)\n"
                           "%5 = mul(%0, 4) f64(4,)\n"
                           "%6 = mul(%1, %0) f64(4,)\n"
                           "%7 = mul(%0, %3) f64(4,)\n"
                           "%8 = sub(%1, %3) f64(4,)\n"
                           "%9 = mul(%8, %0) f64(4,)\n"
                           "%10 = mul(%1, %0) f64(4,)\n"
                           "%11 = mul(%2, %0) f64(4,)\n"
                           "%12 = sub(%10, %11) f64(4,)\n"
                           "gives %5, %9, %12\n");
}

static void functions_that_undo_each_other_go(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, VECTOR), root = op(&d, OP_sqrt, X(x));
    output(&d, op(&d, OP_exp, X(op(&d, OP_log, X(x)))));
    output(&d, op(&d, OP_log, X(op(&d, OP_exp, X(x)))));
    output(&d, op(&d, OP_square, X(root)));
    output(&d, op(&d, OP_mul, X(root, root)));
    output(&d, op(&d, OP_sqrt, X(op(&d, OP_square, X(x)))));
    becomes(&d, all_passes, "%0 = input 0 f64(4,)\n"
                            "%1 = abs(%0) f64(4,)\n"
                            "gives %0, %0, %0, %0, %1\n");
}

static void powers_are_products(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, VECTOR);
    output(&d, op(&d, OP_pow, X(x, NUM), .number = 0));
    output(&d, op(&d, OP_pow, X(x, NUM), .number = 1));
    output(&d, op(&d, OP_pow, X(x, NUM), .number = 3));
    output(&d, op(&d, OP_pow, X(x, NUM), .number = -2));
    output(&d, op(&d, OP_pow, X(x, NUM), .number = 1.5));
    output(&d, op(&d, OP_pow, X(x, NUM), .number = -0.5));
    output(&d, op(&d, OP_pow, X(x, NUM), .number = 17));
    output(&d, op(&d, OP_pow, X(x, NUM), .number = 0.3));
    output(&d, op(&d, OP_pow, X(NUM, x), .number = 2));
    becomes(&d, all_passes, "%0 = input 0 f32(4,)\n"
                            "%1 = constant 0 f32\n"
                            "%2 = broadcast_to(%1) f32(4,)\n"
                            "%3 = square(%0) f32(4,)\n"
                            "%4 = mul(%0, %3) f32(4,)\n"
                            "%5 = reciprocal(%3) f32(4,)\n"
                            "%6 = sqrt(%0) f32(4,)\n"
                            "%7 = mul(%6, %0) f32(4,)\n"
                            "%8 = rsqrt(%0) f32(4,)\n"
                            "%9 = pow(%0, 17) f32(4,)\n"
                            "%10 = pow(%0, 0.3) f32(4,)\n"
                            "%11 = pow(2, %0) f32(4,)\n"
                            "gives %2, %0, %4, %5, %7, %8, %9, %10, %11\n");
}

static void one_reciprocal_serves_several_quotients(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, VECTOR), y = input(&d, COT_F64, VECTOR), s = input(&d, COT_F64, NO_AXES);
    uint32_t z = input(&d, COT_F64, VECTOR);
    output(&d, op(&d, OP_div, X(x, y)));
    output(&d, op(&d, OP_sdiv, X(z, y)));
    output(&d, op(&d, OP_div, X(x, s)));
    output(&d, op(&d, OP_div, X(x, z)));                                      /* only one by z */
    output(&d, op(&d, OP_div, X(s, op(&d, OP_add, X(s, NUM), .number = 1)))); /* of scalars */
    becomes(&d, all_passes, "%0 = input 0 f64(4,)\n"
                            "%1 = input 1 f64(4,)\n"
                            "%2 = input 2 f64\n"
                            "%3 = input 3 f64(4,)\n"
                            "%4 = reciprocal(%2) f64\n"
                            "%5 = add(%2, 1) f64\n"
                            "%6 = div(%2, %5) f64\n"
                            "%7 = reciprocal(%1) f64(4,)\n"
                            "%8 = mul(%0, %7) f64(4,)\n"
                            "%9 = smul(%3, %7) f64(4,)\n"
                            "%10 = mul(%0, %4) f64(4,)\n"
                            "%11 = div(%0, %3) f64(4,)\n"
                            "gives %8, %9, %10, %11, %6\n");
}

static void zeros_stay_strong_beside_poles(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t g = input(&d, COT_F64, VECTOR), x = input(&d, COT_F64, VECTOR);
    uint32_t c = constant(&d, COT_F64, VECTOR, 1, INFINITY);
    output(&d, op(&d, OP_smul, X(g, op(&d, OP_cos, X(x)))));
    output(&d, op(&d, OP_smul, X(g, op(&d, OP_log, X(x)))));
    output(&d, op(&d, OP_smul, X(g, op(&d, OP_square, X(op(&d, OP_rsqrt, X(x)))))));
    output(&d, op(&d, OP_smul, X(g, c)));
    output(&d, op(&d, OP_sdiv, X(g, x)));
    becomes(&d, fast_pass, "%0 = input 0 f64(4,)\n"
                           "%1 = input 1 f64(4,)\n"
                           "%2 = constant 0 f64(4,)\n"
                           "%3 = cos(%1) f64(4,)\n"
                           "%4 = mul(%0, %3) f64(4,)\n"
                           "%5 = log(%1) f64(4,)\n"
                           "%6 = smul(%0, %5) f64(4,)\n"
                           "%7 = rsqrt(%1) f64(4,)\n"
                           "%8 = square(%7) f64(4,)\n"
                           "%9 = smul(%0, %8) f64(4,)\n"
                           "%10 = smul(%0, %2) f64(4,)\n"
                           "%11 = sdiv(%0, %1) f64(4,)\n"
                           "gives %4, %6, %9, %10, %11\n");
}

/* What another program has computed may be anything. */
static void zeros_stay_strong_beside_inputs_from_within(void **state) {
    (void)state;
    for (int within = 0; within < 2; within++) {
        draft d;
        draft_open(&d, NULL);
        uint32_t g = input(&d, COT_F64, VECTOR), x = input(&d, COT_F64, VECTOR);
        output(&d, op(&d, OP_smul, X(g, x)));
        if (within) stays(&d, pass_within);
        else becomes(&d, fast_pass, "%0 = input 0 f64(4,)\n"
                                    "%1 = input 1 f64(4,)\n"
                                    "%2 = mul(%0, %1) f64(4,)\n"
                                    "gives %2\n");
    }
}

static void sums_take_products_unrounded(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, VECTOR), y = input(&d, COT_F64, VECTOR), s = input(&d, COT_F64, NO_AXES);
    uint32_t twice = op(&d, OP_mul, X(x, y));
    output(&d, op(&d, OP_add, X(y, op(&d, OP_mul, X(x, s)))));
    output(&d, op(&d, OP_add, X(twice, s))); /* the product is an output, too */
    output(&d, twice);
    output(&d, op(&d, OP_add, X(op(&d, OP_mul, X(s, s)), x))); /* one number for all elements */
    const char *fused = "%0 = input 0 f64(4,)\n"
                        "%1 = input 1 f64(4,)\n"
                        "%2 = input 2 f64\n"
                        "%3 = mul(%2, %2) f64\n"
                        "%4 = mul(%0, %1) f64(4,)\n"
                        "%5 = fma(%0, %2, %1) f64(4,)\n"
                        "%6 = add(%4, %2) f64(4,)\n"
                        "%7 = add(%3, %0) f64(4,)\n"
                        "gives %5, %6, %4, %7\n";
    if (cot__cpu_fuses()) becomes(&d, all_passes, fused);
    else cot__program_release(draft_close(&d));
}

static void integers_stay(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_I32, VECTOR);
    output(&d, op(&d, OP_add, X(op(&d, OP_add, X(x, NUM), .number = 3), NUM), .number = 4));
    output(&d, op(&d, OP_pow, X(x, NUM), .number = 3));
    output(&d, op(&d, OP_greater, X(x, x)));
    stays(&d, fast_pass);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* All operands are positive and nothing is subtracted, so each operation adds at most a unit of
 * rounding (elementary functions: two), or what its operands have. */
enum { NUMBERS = 64, ROUNDINGS = 40 };

static void sums_and_products_of_positive_numbers_are_close(void **state) {
    (void)state;
    for (int f = 0; f < 2; f++) {
        cot_dtype dtype = f ? COT_F32 : COT_F64;
        draft     d;
        char      in[2][NUMBERS * 8];
        draft_open(&d, NULL);
        uint32_t x = input(&d, dtype, SHAPE(NUMBERS)), y = input(&d, dtype, SHAPE(NUMBERS));
        uint32_t a = op(&d, OP_div, X(x, y)), b = op(&d, OP_sdiv, X(op(&d, OP_add, X(x, y)), y));
        uint32_t c = op(&d, OP_pow, X(y, NUM), .number = 3.5), e = op(&d, OP_pow, X(x, NUM), .number = -5);
        uint32_t z = op(&d, OP_add, X(op(&d, OP_mul, X(a, c)), op(&d, OP_smul, X(b, c))));
        output(&d, op(&d, OP_add, X(op(&d, OP_div, X(op(&d, OP_mul, X(z, NUM), .number = 0.3), NUM), .number = 7), e)));
        cot__program *p = draft_close(&d), *q = after(p, all_passes);
        dice          r = {5};
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < NUMBERS; i++)
                cot__store_f64(in[k] + i * cot__dtype_size(dtype), dtype, 0.25 + below(&r, 1000) / 250.0);
        void  *inputs[2] = {in[0], in[1]};
        result want = run_program(p, inputs, false), got = run_program(q, inputs, false);
        bool   differs = false;
        for (int i = 0; i < NUMBERS; i++) {
            double g = cot__load_f64((char *)got.out[0] + i * cot__dtype_size(dtype), dtype);
            double w = cot__load_f64((char *)want.out[0] + i * cot__dtype_size(dtype), dtype);
            assert_true(fabs(g - w) <= ROUNDINGS * (f ? FLT_EPSILON : DBL_EPSILON) * w);
            differs |= g != w;
        }
        assert_true(differs);
        free_result(&want);
        free_result(&got);
        cot__program_release(p);
        cot__program_release(q);
    }
}

/* Legal programs come of any, and they run. */
static void random_programs_stay_legal(void **state) {
    int found = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        void         *in[4];
        cot__program *p = random_program(seed, seed % 4 == 3, NULL);
        cot__program *q = after(p, all_passes), *s = after(p, cot__optimise);
        fill_inputs(p, seed, in);
        result got = run_program(q, in, true);
        found += q->operations < s->operations;
        free_result(&got);
        for (uint32_t k = 0; k < p->inputs; k++) free(in[k]);
        cot__program_release(p);
        cot__program_release(q);
        cot__program_release(s);
    }
    assert_true(found > 20);
}

static void any_allocation_may_fail(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, VECTOR), s = input(&d, COT_F32, NO_AXES);
    output(&d, op(&d, OP_div, X(op(&d, OP_pow, X(x, NUM), .number = -3.5), s)));
    output(&d, op(&d, OP_add, X(op(&d, OP_mul, X(x, s)), op(&d, OP_sub, X(x, x)))));
    survives_no_memory(&d, fast_pass);
    for (uint64_t seed = 0; seed < 4; seed++) {
        cot__program *p = random_program(seed, false, NULL);
        never_spoils(p, all_passes);
        cot__program_release(p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_does_nothing_unless_asked),
        cmocka_unit_test(a_bit_leaves_it_out),
        cmocka_unit_test(zeros_and_ones_are_known),
        cmocka_unit_test(numbers_meet),
        cmocka_unit_test(equal_factors_are_taken_out),
        cmocka_unit_test(functions_that_undo_each_other_go),
        cmocka_unit_test(powers_are_products),
        cmocka_unit_test(one_reciprocal_serves_several_quotients),
        cmocka_unit_test(zeros_stay_strong_beside_poles),
        cmocka_unit_test(zeros_stay_strong_beside_inputs_from_within),
        cmocka_unit_test(sums_take_products_unrounded),
        cmocka_unit_test(integers_stay),
        cmocka_unit_test(sums_and_products_of_positive_numbers_are_close),
        cmocka_unit_test(random_programs_stay_legal),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
