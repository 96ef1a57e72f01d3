/* The pass constants: what depends on constants alone is computed once, with the bits of a run. */
#include "pass_test.h"

static const cot_shape VECTOR = {1, {4}};

/* x times something that is known, and something without an input at all */
static void draft_sample(draft *d) {
    draft_open(d, NULL);
    uint32_t x = input(d, COT_F32, VECTOR), c = constant(d, COT_F32, VECTOR, 1, 2, 3, 4);
    uint32_t e = op(d, OP_exp, X(op(d, OP_mul, X(c, NUM), .number = 0.5)));
    uint32_t s = op(d, OP_sum, X(e), .ints = 2, .at = {1, 0});
    output(d, op(d, OP_mul, X(x, op(d, OP_div, X(e, s)))));
    output(d, s);
}

static void what_is_known_is_computed(void **state) {
    draft d;
    (void)state;
    draft_sample(&d);
    becomes(&d, cot__pass_constants, "%0 = input 0 f32(4,)\n"
                                     "%1 = constant 0 f32(4,)\n"
                                     "%2 = constant 1 f32\n"
                                     "%3 = constant 2 f32(4,)\n"
                                     "%4 = mul(%0, %3) f32(4,)\n"
                                     "gives %4, %2\n");
}

static void a_constant_has_the_elements_of_the_result(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t c = constant(&d, COT_F32, SHAPE(2, 2), 1, 2, 3, 4);
    uint32_t t = op(&d, OP_permute, X(c), .ints = 2, .at = {1, 0});
    output(&d, op(&d, OP_sub, X(NUM, t), .number = 10));
    cot__program *p = draft_close(&d), *q = after(p, cot__pass_constants);
    assert_int_equal(q->operations, 0);
    const float *z = cot__constant_elements(q, cot__value_maker(q, q->output[0]));
    assert_true(z[0] == 9 && z[1] == 7 && z[2] == 8 && z[3] == 6);
    cot__program_release(p);
    cot__program_release(q);
}

static void views_stay_and_what_is_large_stays(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t c = constant(&d, COT_F64, SHAPE(1, 2), 1, 2), x = input(&d, COT_F64, SHAPE(100000, 2));
    uint32_t wide = op(&d, OP_broadcast_to, X(c), .asked = {COT_F64, SHAPE(100000, 2)});
    /* as large as its operands, and still too large */
    uint32_t both = op(&d, OP_concat, X(wide, wide), .ints = 2, .at = {0, 0});
    uint32_t turned = op(&d, OP_permute, X(c), .ints = 2, .at = {1, 0}), y = input(&d, COT_F64, SHAPE(2, 1));
    output(&d, op(&d, OP_mul, X(y, turned)));
    output(&d, op(&d, OP_mul, X(x, wide)));
    output(&d, both);
    stays(&d, cot__pass_constants);
}

static void what_depends_on_an_input_stays(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, VECTOR), c = constant(&d, COT_F64, VECTOR, 1, 2);
    output(&d, op(&d, OP_exp, X(op(&d, OP_add, X(c, x)))));
    stays(&d, cot__pass_constants);
}

static void draft_take(draft *d, double last) {
    draft_open(d, NULL);
    uint32_t c = constant(d, COT_F64, VECTOR, 1, 2, 3, 4), at = constant(d, COT_I64, SHAPE(2), 0, last);
    output(d, op(d, OP_take, X(c, at), .ints = 1, .at = {0}));
    output(d, op(d, OP_neg, X(c)));
}

static void a_check_that_passes_is_done_with(void **state) {
    draft d;
    (void)state;
    draft_take(&d, 3);
    becomes(&d, cot__pass_constants, "%0 = constant 0 f64(4,)\n"
                                     "%1 = constant 1 i64(2,)\n"
                                     "%2 = constant 2 f64(2,)\n"
                                     "%3 = constant 3 f64(4,)\n"
                                     "gives %2, %3\n");
}

/* Only a run may say so. */
static void a_check_that_refuses_stays(void **state) {
    draft d;
    (void)state;
    draft_take(&d, 4);
    becomes(&d, cot__pass_constants, "%0 = constant 0 f64(4,)\n"
                                     "%1 = constant 1 i64(2,)\n"
                                     "%2 = take(%0, %1) [0] f64(2,)\n"
                                     "%3 = constant 2 f64(4,)\n"
                                     "gives %2, %3\n");
}

static cot__program *without_backend(const cot__program *p, const cot__pass_options *o) {
    cot__pass_options without = *o;
    without.backend = NULL;
    return cot__pass_constants(p, &without);
}

static void without_a_backend_constants_stay(void **state) {
    draft d;
    (void)state;
    draft_sample(&d);
    stays(&d, without_backend);
}

/* However many results there are, the program grows by a bounded number of bytes. */
static void all_constants_together_are_bounded(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t c = constant(&d, COT_F64, SHAPE(1), 1);
    for (int k = 0; k < 1000; k++) {
        uint32_t wide = op(&d, OP_broadcast_to, X(c), .asked = {COT_F64, SHAPE(4096)});
        output(&d, op(&d, OP_add, X(wide, NUM), .number = k));
    }
    cot__program *p = draft_close(&d);
    heard             h;
    cot__caller       caller;
    cot__pass_options o = options_of(&h, &caller, NULL);
    cot__program *q = cot__pass_constants(p, &o);
    assert_true(q != p && q->data_bytes <= (1 << 20) + 2 * p->data_bytes + 64);
    cot__program_release(p);
    cot__program_release(q);
}

/* The second is folded; its operand, too large to be folded beside it, is an output and stays. */
static void what_stays_for_want_of_room_is_there_for_what_is_folded(void **state) {
    enum { N = 1 << 18 };
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t c = constant(&d, COT_F64, SHAPE(N), 1);
    uint32_t e = op(&d, OP_exp, X(c)), s = op(&d, OP_sin, X(e)), t = op(&d, OP_cos, X(s));
    output(&d, t), output(&d, s), output(&d, e);
    cot__program *p = draft_close(&d);
    heard             h;
    cot__caller       caller;
    cot__pass_options o = options_of(&h, &caller, NULL);
    cot__program *q = cot__pass_constants(p, &o);
    assert_non_null(q);
    assert_true(q->operations > 0 && q->operations < p->operations);
    cot__program_release(p);
    cot__program_release(q);
}

static void any_allocation_may_fail(void **state) {
    draft d;
    (void)state;
    draft_sample(&d);
    survives_no_memory(&d, cot__pass_constants);
    draft_take(&d, 4);
    survives_no_memory(&d, cot__pass_constants);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_known_is_computed),
        cmocka_unit_test(a_constant_has_the_elements_of_the_result),
        cmocka_unit_test(views_stay_and_what_is_large_stays),
        cmocka_unit_test(what_depends_on_an_input_stays),
        cmocka_unit_test(a_check_that_passes_is_done_with),
        cmocka_unit_test(a_check_that_refuses_stays),
        cmocka_unit_test(without_a_backend_constants_stay),
        cmocka_unit_test(all_constants_together_are_bounded),
        cmocka_unit_test(what_stays_for_want_of_room_is_there_for_what_is_folded),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
