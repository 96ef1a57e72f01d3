/* The pass identities: arithmetic that does nothing goes, to the bit, and nothing else does. */
#include "pass_test.h"

static const cot_shape VECTOR = {1, {4}};

/* The program is one operation on inputs, and becomes its operand x. */
static void is_x(cot_dtype dtype, int op, double number, bool first) {
    draft d;
    draft_open(&d, NULL);
    uint32_t x = input(&d, dtype, VECTOR);
    output(&d, first ? op(&d, op, X(NUM, x), .number = number) : op(&d, op, X(x, NUM), .number = number));
    cot__program *p = draft_close(&d), *q = after(p, cot__pass_identities);
    TEST_CHECK(q->operations == 0, "%s: %s with %g stays", cot__dtype_name(dtype), cot__op_of(op)->name, number);
    cot__program_release(p);
    cot__program_release(q);
}

static void is_not_x(cot_dtype dtype, int op, double number, bool first) {
    draft d;
    draft_open(&d, NULL);
    uint32_t x = input(&d, dtype, VECTOR);
    output(&d, first ? op(&d, op, X(NUM, x), .number = number) : op(&d, op, X(x, NUM), .number = number));
    cot__program *p = draft_close(&d), *q = after(p, cot__pass_identities);
    TEST_CHECK(q == p, "%s: %s with %g goes", cot__dtype_name(dtype), cot__op_of(op)->name, number);
    cot__program_release(p);
    cot__program_release(q);
}

static const cot_dtype all[] = {COT_F64, COT_F32, COT_BF16, COT_F16, COT_I64, COT_I32, COT_U8, COT_BOOL};

static void neutral_numbers_go(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(all); i++) {
        bool real = cot__dtype_is_float(all[i]);
        for (int first = 0; first < 2; first++) {
            is_x(all[i], OP_mul, 1, first);
            is_x(all[i], OP_smul, 1, first);
            is_x(all[i], OP_add, -0.0, first);
            if (!real) is_x(all[i], OP_add, 0, first);
        }
        is_x(all[i], OP_sub, 0, false);
        if (real) is_x(all[i], OP_div, 1, false);
        if (real) is_x(all[i], OP_sdiv, 1, false);
    }
    test_verdict();
}

static void numbers_that_change_a_zero_or_nan_stay(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(all) && cot__dtype_is_float(all[i]); i++) {
        is_not_x(all[i], OP_add, 0, false); /* -0 + 0 = 0 */
        is_not_x(all[i], OP_add, 0, true);
        is_not_x(all[i], OP_sub, -0.0, false);
        is_not_x(all[i], OP_sub, 0, true);
        is_not_x(all[i], OP_mul, 0, false);
        is_not_x(all[i], OP_mul, -1, false);
        is_not_x(all[i], OP_div, 1, true);
        is_not_x(all[i], OP_pow, 1, false);
    }
    test_verdict();
}

static void a_constant_of_one_number_is_that_number(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(2, 4)), one = constant(&d, COT_F32, SHAPE(1), 1);
    uint32_t wide = op(&d, OP_broadcast_to, X(one), .asked = {COT_F32, SHAPE(2, 4)});
    uint32_t turned = op(&d, OP_reshape, X(op(&d, OP_broadcast_to, X(one), .asked = {COT_F32, SHAPE(8)})),
                         .asked = {COT_F32, SHAPE(2, 4)});
    uint32_t zeros = constant(&d, COT_F32, SHAPE(2, 4), -0.0);
    output(&d, op(&d, OP_mul, X(op(&d, OP_div, X(wide, op(&d, OP_mul, X(turned, x)))), wide)));
    output(&d, op(&d, OP_add, X(zeros, x)));
    becomes(&d, cot__pass_identities, "%0 = input 0 f32(2,4)\n"
                                      "%1 = constant 0 f32(1,)\n"
                                      "%2 = broadcast_to(%1) f32(2,4)\n"
                                      "%3 = broadcast_to(%1) f32(8,)\n"
                                      "%4 = reshape(%3) f32(2,4)\n"
                                      "%5 = constant 1 f32(2,4)\n"
                                      "%6 = div(%2, %0) f32(2,4)\n"
                                      "gives %6, %0\n");
}

static void constants_of_several_numbers_stay(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, VECTOR);
    output(&d, op(&d, OP_mul, X(x, constant(&d, COT_F32, VECTOR, 1, 1, 1, 2))));
    output(&d, op(&d, OP_mul, X(x, constant(&d, COT_F32, VECTOR, 2))));
    stays(&d, cot__pass_identities);
}

/* ones * x has the shape of ones. */
static void what_would_change_the_shape_stays(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, NO_AXES);
    output(&d, op(&d, OP_mul, X(x, constant(&d, COT_F32, VECTOR, 1))));
    stays(&d, cot__pass_identities);
}

static void signs_meet(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, VECTOR), y = input(&d, COT_F64, VECTOR);
    uint32_t a = op(&d, OP_neg, X(x)), b = op(&d, OP_neg, X(y));
    output(&d, op(&d, OP_neg, X(op(&d, OP_neg, X(op(&d, OP_neg, X(a)))))));
    output(&d, op(&d, OP_add, X(x, b)));
    output(&d, op(&d, OP_add, X(a, y)));
    output(&d, op(&d, OP_add, X(a, NUM), .number = 3));
    output(&d, op(&d, OP_sub, X(x, b)));
    output(&d, op(&d, OP_sub, X(a, y))); /* stays */
    output(&d, op(&d, OP_mul, X(a, b)));
    output(&d, op(&d, OP_div, X(a, b)));
    output(&d, op(&d, OP_abs, X(a)));
    output(&d, op(&d, OP_square, X(b)));
    becomes(&d, cot__pass_identities, "%0 = input 0 f64(4,)\n"
                                      "%1 = input 1 f64(4,)\n"
                                      "%2 = neg(%0) f64(4,)\n"
                                      "%3 = neg(%1) f64(4,)\n"
                                      "%4 = neg(%0) f64(4,)\n"
                                      "%5 = sub(%0, %1) f64(4,)\n"
                                      "%6 = sub(%1, %0) f64(4,)\n"
                                      "%7 = sub(3, %0) f64(4,)\n"
                                      "%8 = add(%0, %1) f64(4,)\n"
                                      "%9 = sub(%2, %1) f64(4,)\n"
                                      "%10 = mul(%0, %1) f64(4,)\n"
                                      "%11 = div(%0, %1) f64(4,)\n"
                                      "%12 = abs(%0) f64(4,)\n"
                                      "%13 = square(%1) f64(4,)\n"
                                      "gives %0, %5, %6, %7, %8, %9, %10, %11, %12, %13\n");
}

/* -(-128) of 8 bits is not what 64 bits make of it. */
static void signs_of_integers_stay(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_U8, VECTOR), a = op(&d, OP_neg, X(x));
    output(&d, op(&d, OP_neg, X(a)));
    output(&d, op(&d, OP_add, X(x, a)));
    stays(&d, cot__pass_identities);
}

static void what_is_done_is_not_done_again(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, VECTOR), c = input(&d, COT_BOOL, VECTOR), y = input(&d, COT_F32, VECTOR);
    uint32_t yes = constant(&d, COT_BOOL, VECTOR, 1), no = constant(&d, COT_BOOL, NO_AXES, 0);
    uint32_t f = op(&d, OP_floor, X(x)), e = op(&d, OP_relu, X(x));
    output(&d, op(&d, OP_round, X(op(&d, OP_trunc, X(f)))));
    output(&d, op(&d, OP_relu, X(e)));
    output(&d, op(&d, OP_maximum, X(x, x)));
    output(&d, op(&d, OP_minimum, X(x, x)));
    output(&d, op(&d, OP_where, X(c, x, x)));
    output(&d, op(&d, OP_where, X(yes, y, x)));
    output(&d, op(&d, OP_where, X(no, y, x)));
    output(&d, op(&d, OP_logical_not, X(op(&d, OP_logical_not, X(c)))));
    output(&d, op(&d, OP_logical_not, X(op(&d, OP_logical_not, X(x))))); /* a bool: stays */
    becomes(&d, cot__pass_identities, "%0 = input 0 f32(4,)\n"
                                      "%1 = input 1 bool(4,)\n"
                                      "%2 = input 2 f32(4,)\n"
                                      "%3 = constant 0 bool(4,)\n"
                                      "%4 = constant 1 bool\n"
                                      "%5 = floor(%0) f32(4,)\n"
                                      "%6 = relu(%0) f32(4,)\n"
                                      "%7 = logical_not(%1) bool(4,)\n"
                                      "%8 = logical_not(%0) bool(4,)\n"
                                      "%9 = logical_not(%8) bool(4,)\n"
                                      "gives %5, %6, %0, %0, %0, %2, %0, %1, %9\n");
}

static void division_by_a_power_of_two_is_a_product(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, VECTOR);
    output(&d, op(&d, OP_div, X(x, NUM), .number = -8));
    output(&d, op(&d, OP_div, X(x, NUM), .number = 3));
    output(&d, op(&d, OP_div, X(x, NUM), .number = 0x1p130)); /* no normal f32 */
    output(&d, op(&d, OP_div, X(x, NUM), .number = 0));
    output(&d, op(&d, OP_div, X(x, NUM), .number = INFINITY));
    output(&d, op(&d, OP_div, X(NUM, x), .number = 2));
    becomes(&d, cot__pass_identities, "%0 = input 0 f32(4,)\n"
                                      "%1 = mul(%0, -0.125) f32(4,)\n"
                                      "%2 = div(%0, 3) f32(4,)\n"
                                      "%3 = div(%0, 1.36113e+39) f32(4,)\n"
                                      "%4 = div(%0, 0) f32(4,)\n"
                                      "%5 = div(%0, inf) f32(4,)\n"
                                      "%6 = div(2, %0) f32(4,)\n"
                                      "gives %1, %2, %3, %4, %5, %6\n");
}

static void any_allocation_may_fail(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, VECTOR), one = constant(&d, COT_F32, VECTOR, 1);
    output(&d, op(&d, OP_neg, X(op(&d, OP_neg, X(op(&d, OP_mul, X(x, one)))))));
    survives_no_memory(&d, cot__pass_identities);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neutral_numbers_go),
        cmocka_unit_test(numbers_that_change_a_zero_or_nan_stay),
        cmocka_unit_test(a_constant_of_one_number_is_that_number),
        cmocka_unit_test(constants_of_several_numbers_stay),
        cmocka_unit_test(what_would_change_the_shape_stays),
        cmocka_unit_test(signs_meet),
        cmocka_unit_test(signs_of_integers_stay),
        cmocka_unit_test(what_is_done_is_not_done_again),
        cmocka_unit_test(division_by_a_power_of_two_is_a_product),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
