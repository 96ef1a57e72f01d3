/* The pass same: of two operations, or constants, that are the same, the second goes. */
#include "pass_test.h"

static const cot_shape VECTOR = {1, {4}}, MATRIX = {2, {2, 4}};

/* (x + y) (y + x), with a sum of each kind twice and equal constants */
static void draft_sample(draft *d) {
    draft_open(d, NULL);
    uint32_t x = input(d, COT_F32, MATRIX), y = input(d, COT_F32, MATRIX);
    uint32_t c = constant(d, COT_F32, MATRIX, 1, 2), e = constant(d, COT_F32, MATRIX, 1, 2);
    uint32_t a = op(d, OP_add, X(x, y)), b = op(d, OP_add, X(y, x));
    uint32_t f = op(d, OP_add, X(c, a)), g = op(d, OP_add, X(b, e));
    output(d, op(d, OP_sum, X(op(d, OP_mul, X(f, g))), .ints = 2, .at = {1, 0}));
    output(d, op(d, OP_sum, X(op(d, OP_mul, X(g, f))), .ints = 2, .at = {1, 0}));
}

static void of_two_that_are_the_same_the_second_goes(void **state) {
    draft d;
    (void)state;
    draft_sample(&d);
    becomes(&d, cot__pass_same, "%0 = input 0 f32(2,4)\n"
                                "%1 = input 1 f32(2,4)\n"
                                "%2 = constant 0 f32(2,4)\n"
                                "%3 = add(%0, %1) f32(2,4)\n"
                                "%4 = add(%2, %3) f32(2,4)\n"
                                "%5 = mul(%4, %4) f32(2,4)\n"
                                "%6 = sum(%5) [1 0] f32(4,)\n"
                                "gives %6, %6\n");
}

/* Everything by which two operations can differ. */
static void what_differs_in_anything_stays(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(4, 4)), y = input(&d, COT_F32, SHAPE(4, 4));
    op(&d, OP_sub, X(x, y)), op(&d, OP_sub, X(y, x));
    op(&d, OP_maximum, X(x, y)), op(&d, OP_maximum, X(y, x)); /* of -0 and 0 it takes the second */
    op(&d, OP_mul, X(x, NUM), .number = 0.0), op(&d, OP_mul, X(x, NUM), .number = -0.0);
    op(&d, OP_div, X(x, NUM), .number = 2), op(&d, OP_div, X(NUM, x), .number = 2);
    op(&d, OP_sum, X(x), .ints = 2, .at = {1, 0}), op(&d, OP_sum, X(x), .ints = 2, .at = {2, 0});
    op(&d, OP_cast, X(x), .asked = {COT_F64, {0}}), op(&d, OP_cast, X(x), .asked = {COT_F16, {0}});
    op(&d, OP_reshape, X(x), .asked = {COT_F64, SHAPE(16)});
    op(&d, OP_reshape, X(x), .asked = {COT_F64, SHAPE(2, 8)});
    op(&d, OP_neg, X(x)), op(&d, OP_abs, X(x));
    op(&d, OP_norm, X(x), .ints = 2, .at = {1, 0}, .attr_number = 1);
    op(&d, OP_norm, X(x), .ints = 2, .at = {1, 0}, .attr_number = 2);
    stays(&d, cot__pass_same);
}

static void constants_of_other_bits_or_types_stay(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    constant(&d, COT_F32, VECTOR, 0.0), constant(&d, COT_F32, VECTOR, -0.0);
    constant(&d, COT_I32, VECTOR, 0.0), constant(&d, COT_F32, SHAPE(2, 2), 0.0);
    constant(&d, COT_F32, VECTOR, 1, 1, 1, 2), constant(&d, COT_F32, VECTOR, 1, 1, 1, 1);
    constant(&d, COT_F32, SHAPE(0), 1), constant(&d, COT_F32, SHAPE(0, 2), 1);
    stays(&d, cot__pass_same);
}

static void an_effect_happens_once(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, VECTOR), at = input(&d, COT_I64, SHAPE(2));
    uint32_t a = op(&d, OP_take, X(x, at), .ints = 1, .at = {0}), b = op(&d, OP_take, X(x, at), .ints = 1, .at = {0});
    output(&d, op(&d, OP_mul, X(a, b)));
    becomes(&d, cot__pass_same, "%0 = input 0 f32(4,)\n"
                                "%1 = input 1 i64(2,)\n"
                                "%2 = take(%0, %1) [0] f32(2,)\n"
                                "%3 = mul(%2, %2) f32(2,)\n"
                                "gives %3\n");
}

/* Chains that are the same meet at each link; a million operations become half of them. */
static void long_chains_meet(void **state) {
    draft d;
    int   n = test_small() ? 5000 : 500000;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, NO_AXES), a = x, b = x;
    for (int k = 0; k < n; k++) {
        a = op(&d, OP_mul, X(a, NUM), .number = k);
        b = op(&d, OP_mul, X(NUM, b), .number = k);
    }
    output(&d, op(&d, OP_add, X(a, b)));
    cot__program     *p = draft_close(&d);
    heard             h;
    cot__caller       caller;
    cot__pass_options o = options_of(&h, &caller, NULL);
    cot__program     *q = cot__pass_same(p, &o);
    assert_int_equal(q->operations, n + 1);
    cot__program_release(p);
    cot__program_release(q);
}

static void any_allocation_may_fail(void **state) {
    draft d;
    (void)state;
    draft_sample(&d);
    survives_no_memory(&d, cot__pass_same);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_two_that_are_the_same_the_second_goes),
        cmocka_unit_test(what_differs_in_anything_stays),
        cmocka_unit_test(constants_of_other_bits_or_types_stay),
        cmocka_unit_test(an_effect_happens_once),
        cmocka_unit_test(long_chains_meet),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
