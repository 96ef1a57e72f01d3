/* The pass dead: what nobody reads goes, and what has an effect stays. */
#include "pass_test.h"

static const cot_shape VECTOR = {1, {4}};

/* A chain that is read, and one that is not, with a constant of its own. */
static void draft_sample(draft *d) {
    draft_open(d, NULL);
    uint32_t x = input(d, COT_F32, VECTOR), unread = input(d, COT_F32, VECTOR);
    uint32_t c = constant(d, COT_F32, VECTOR, 1, 2), e = constant(d, COT_F32, VECTOR, 3);
    uint32_t dead = op(d, OP_mul, X(x, e));
    op(d, OP_add, X(dead, unread));
    output(d, op(d, OP_exp, X(op(d, OP_add, X(x, c)))));
}

static const char WITHOUT_DEAD[] = "%0 = input 0 f32(4,)\n"
                                   "%1 = input 1 f32(4,)\n"
                                   "%2 = constant 0 f32(4,)\n"
                                   "%3 = add(%0, %2) f32(4,)\n"
                                   "%4 = exp(%3) f32(4,)\n"
                                   "gives %4\n";

static void what_nobody_reads_goes(void **state) {
    draft d;
    (void)state;
    draft_sample(&d);
    becomes(&d, cot__pass_dead, WITHOUT_DEAD);
}

static void effects_stay_with_what_they_read(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, VECTOR), at = input(&d, COT_I64, SHAPE(2));
    op(&d, OP_take, X(x, op(&d, OP_add, X(at, NUM), .number = 1)), .ints = 2, .at = {0, 0});
    output(&d, x);
    stays(&d, cot__pass_dead);
}

static void where_all_is_read_the_program_stays(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, VECTOR);
    output(&d, op(&d, OP_exp, X(x)));
    output(&d, x);
    output(&d, constant(&d, COT_F32, VECTOR, 1));
    stays(&d, cot__pass_dead);
    draft_open(&d, NULL); /* nothing at all */
    stays(&d, cot__pass_dead);
}

/* All but the first of a million are dead; nothing recurses over them. */
static void long_chains_go_at_once(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, NO_AXES);
    output(&d, op(&d, OP_exp, X(x)));
    for (int k = 0; k < (test_small() ? 10000 : 1000000); k++) x = op(&d, OP_mul, X(x, NUM), .number = k);
    cot__program     *p = draft_close(&d);
    heard             h;
    cot__caller       caller;
    cot__pass_options o = options_of(&h, &caller, NULL);
    cot__program     *q = cot__pass_dead(p, &o);
    assert_int_equal(q->operations, 1);
    cot__program_release(p);
    cot__program_release(q);
}

static void any_allocation_may_fail(void **state) {
    draft d;
    (void)state;
    draft_sample(&d);
    survives_no_memory(&d, cot__pass_dead);
}

static void all_passes_together_survive_no_memory(void **state) {
    draft d;
    (void)state;
    draft_sample(&d);
    survives_no_memory(&d, cot__optimise);
}

static cot__program *without_any(const cot__program *p, const cot__pass_options *o) {
    cot__pass_options without = *o;
    without.without = (1u << COT__PASS_COUNT) - 1;
    return cot__optimise(p, &without);
}

static cot__program *dead_alone(const cot__program *p, const cot__pass_options *o) {
    cot__pass_options without = *o;
    without.without = ((1u << COT__PASS_COUNT) - 1) ^ 1u << COT__PASS_dead;
    return cot__optimise(p, &without);
}

static void passes_can_be_left_out(void **state) {
    draft d;
    (void)state;
    draft_sample(&d);
    stays(&d, without_any);
    draft_sample(&d);
    becomes(&d, dead_alone, WITHOUT_DEAD);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_reads_goes),
        cmocka_unit_test(effects_stay_with_what_they_read),
        cmocka_unit_test(where_all_is_read_the_program_stays),
        cmocka_unit_test(long_chains_go_at_once),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(all_passes_together_survive_no_memory),
        cmocka_unit_test(passes_can_be_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
