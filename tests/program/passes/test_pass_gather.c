/* The pass gather: elementwise operations that could run together stand together. */
#include "random_program.h"

#include "program/fusion.h"

static const cot_shape MATRIX = {2, {4, 4}};

/* Two products, and elementwise work on both that does not need the other; then all of it. */
static void draft_sample(draft *d) {
    draft_open(d, NULL);
    uint32_t x = input(d, COT_F32, MATRIX), v = input(d, COT_F32, SHAPE(4));
    uint32_t a = op(d, OP_exp, X(x));
    uint32_t s = op(d, OP_sum, X(v), .ints = 2, .at = {1, 0});
    uint32_t flat = op(d, OP_reshape, X(a), .asked = {COT_F32, SHAPE(16)}), w = op(d, OP_neg, X(v));
    uint32_t b = op(d, OP_mul, X(flat, s)), e = op(d, OP_square, X(w));
    uint32_t m = op(d, OP_matmul, X(x, x)); /* needs nothing that waits */
    uint32_t c = op(d, OP_cumsum, X(b), .ints = 2, .at = {0, 0});
    output(d, c), output(d, m), output(d, e);
}

static void what_may_wait_stands_before_its_reader(void **state) {
    draft d;
    (void)state;
    draft_sample(&d);
    becomes(&d, cot__pass_gather, "%0 = input 0 f32(4,4)\n"
                                  "%1 = input 1 f32(4,)\n"
                                  "%2 = sum(%1) [1 0] f32\n"
                                  "%3 = matmul(%0, %0) f32(4,4)\n"
                                  "%4 = exp(%0) f32(4,4)\n"
                                  "%5 = reshape(%4) f32(16,)\n"
                                  "%6 = mul(%5, %2) f32(16,)\n"
                                  "%7 = cumsum(%6) [0 0] f32(16,)\n"
                                  "%8 = neg(%1) f32(4,)\n"
                                  "%9 = square(%8) f32(4,)\n"
                                  "gives %7, %3, %9\n");
}

/* An operation that reads another order, or an element, cannot wait with it. */
static void other_orders_wait_for_the_first(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, MATRIX), a = op(&d, OP_exp, X(x));
    uint32_t t = op(&d, OP_permute, X(a), .ints = 2, .at = {1, 0}), b = op(&d, OP_add, X(t, a));
    uint32_t row = op(&d, OP_slice, X(a), .ints = 5, .at = {0, 1, 1, 1, 1});
    uint32_t one = op(&d, OP_slice, X(row), .ints = 5, .at = {0, 1, 1, 1, 1});
    output(&d, op(&d, OP_mul, X(b, one)));
    becomes(&d, cot__pass_gather, "%0 = input 0 f32(4,4)\n"
                                  "%1 = exp(%0) f32(4,4)\n"
                                  "%2 = permute(%1) [1 0] f32(4,4)\n"
                                  "%3 = slice(%1) [0 1 1 1 1] f32(4,)\n"
                                  "%4 = slice(%3) [0 1 1 1 1] f32\n"
                                  "%5 = add(%2, %1) f32(4,4)\n"
                                  "%6 = mul(%5, %4) f32(4,4)\n"
                                  "gives %6\n");
}

/* ---- ends of products ------------------------------------------------------------------------ */

/* Two layers and a step of both. What reads a product stands behind it, though a truth that it
 * needs, or the step of a parameter, was recorded later; the first parameter is still read when its
 * own product is there, so its step stays behind that. */
static void what_reads_a_product_stands_behind_it(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, MATRIX), w = input(&d, COT_F32, MATRIX), y = input(&d, COT_F32, MATRIX);
    uint32_t a = op(&d, OP_matmul, X(x, w)), b = op(&d, OP_matmul, X(a, y)); /* %3 %4 */
    uint32_t s = op(&d, OP_cumsum, X(x), .ints = 2, .at = {0, 0});
    uint32_t mask = op(&d, OP_greater, X(x, NUM), .number = 0), m = op(&d, OP_where, X(mask, a, y));
    uint32_t c = op(&d, OP_cumsum, X(w), .ints = 2, .at = {0, 0});
    output(&d, op(&d, OP_sub, X(w, a)));
    output(&d, op(&d, OP_sub, X(y, b)));
    output(&d, m), output(&d, s), output(&d, c);
    becomes(&d, cot__pass_gather, "%0 = input 0 f32(4,4)\n"
                                  "%1 = input 1 f32(4,4)\n"
                                  "%2 = input 2 f32(4,4)\n"
                                  "%3 = matmul(%0, %1) f32(4,4)\n"
                                  "%4 = matmul(%3, %2) f32(4,4)\n"
                                  "%5 = sub(%2, %4) f32(4,4)\n"
                                  "%6 = cumsum(%0) [0 0] f32(4,4)\n"
                                  "%7 = cumsum(%1) [0 0] f32(4,4)\n"
                                  "%8 = greater(%0, 0) bool(4,4)\n"
                                  "%9 = where(%8, %3, %2) f32(4,4)\n"
                                  "%10 = sub(%1, %3) f32(4,4)\n"
                                  "gives %10, %5, %9, %6, %7\n");
}

/* The factor of a step is made of a number that was recorded later; it comes before the product. */
static void numbers_that_an_end_reads_stand_before_the_product(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, MATRIX), w = input(&d, COT_F32, MATRIX), i = input(&d, COT_I64, COT_SCALAR);
    uint32_t a = op(&d, OP_matmul, X(x, x)), s = op(&d, OP_cumsum, X(x), .ints = 2, .at = {0, 0});
    uint32_t one = op(&d, OP_sum, X(x), .ints = 2, .at = {3, 0}), late = op(&d, OP_neg, X(one));
    uint32_t n = op(&d, OP_cast, X(i), .asked = {COT_F32, COT_SCALAR});
    uint32_t r = op(&d, OP_mul, X(n, NUM), .number = 0.5), m = op(&d, OP_mul, X(a, r));
    output(&d, op(&d, OP_sub, X(w, m)));
    output(&d, s), output(&d, late);
    becomes(&d, cot__pass_gather, "%0 = input 0 f32(4,4)\n"
                                  "%1 = input 1 f32(4,4)\n"
                                  "%2 = input 2 i64\n"
                                  "%3 = cast(%2) f32\n"
                                  "%4 = mul(%3, 0.5) f32\n"
                                  "%5 = matmul(%0, %0) f32(4,4)\n"
                                  "%6 = mul(%5, %4) f32(4,4)\n"
                                  "%7 = sub(%1, %6) f32(4,4)\n"
                                  "%8 = cumsum(%0) [0 0] f32(4,4)\n"
                                  "%9 = sum(%0) [3 0] f32\n"
                                  "%10 = neg(%9) f32\n"
                                  "gives %7, %8, %10\n");
}

static void effects_keep_their_order(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(4)), i = input(&d, COT_I64, SHAPE(2)), j = input(&d, COT_I64, SHAPE(2));
    uint32_t a = op(&d, OP_add, X(i, NUM), .number = 1); /* waits, and so must not the first take */
    uint32_t first = op(&d, OP_take, X(x, a), .ints = 1, .at = {0});
    uint32_t b = op(&d, OP_exp, X(x)), c = op(&d, OP_neg, X(first));
    uint32_t second = op(&d, OP_take, X(x, j), .ints = 1, .at = {0});
    output(&d, op(&d, OP_mul, X(c, second))), output(&d, b);
    becomes(&d, cot__pass_gather, "%0 = input 0 f32(4,)\n"
                                  "%1 = input 1 i64(2,)\n"
                                  "%2 = input 2 i64(2,)\n"
                                  "%3 = add(%1, 1) i64(2,)\n"
                                  "%4 = take(%0, %3) [0] f32(2,)\n"
                                  "%5 = take(%0, %2) [0] f32(2,)\n"
                                  "%6 = exp(%0) f32(4,)\n"
                                  "%7 = neg(%4) f32(2,)\n"
                                  "%8 = mul(%7, %5) f32(2,)\n"
                                  "gives %8, %6\n");
}

/* Members of groups, of all elementwise operations: not fewer than before. */
static uint32_t steps_of(const cot__program *p) {
    cot__fusion f;
    heard       h = {0};
    cot__caller caller = {"test", &h, hear_error, hear_note, NULL};
    uint32_t    steps = 0;
    assert_true(cot__fusion_open(&f, p, NULL, NULL, &caller));
    for (uint32_t k = 0; k < p->operations; k++)
        steps += cot__is_fusable(p, k) && (f.of[k] == COT__NO_VALUE || f.group[f.of[k]].first == k);
    cot__fusion_close(&f);
    return steps;
}

static void random_programs_have_fewer_steps(void **state) {
    uint32_t before = 0, later = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        cot__program *p = random_program(seed, false, NULL), *q = after(p, cot__pass_gather);
        before += steps_of(p);
        later += steps_of(q);
        cot__program_release(p);
        cot__program_release(q);
    }
    assert_true(later < before);
}

/* However many sizes there are, what waits is found at once. */
static void many_operations_are_gathered_in_one_walk(void **state) {
    draft d;
    int   n = test_small() ? 1000 : 100000;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x[10];
    for (int k = 0; k < 10; k++) x[k] = input(&d, COT_F32, SHAPE(k + 1));
    for (int k = 0; k < n; k++) x[k % 10] = op(&d, OP_mul, X(x[k % 10], NUM), .number = 2);
    for (int k = 0; k < 10; k++) output(&d, x[k]);
    cot__program     *p = draft_close(&d);
    heard             h;
    cot__caller       caller;
    cot__pass_options o = options_of(&h, &caller, NULL);
    cot__program     *q = cot__pass_gather(p, &o);
    assert_int_equal(q->operations, p->operations);
    cot__program_release(p);
    cot__program_release(q);
}

static void any_allocation_may_fail(void **state) {
    draft d;
    (void)state;
    draft_sample(&d);
    survives_no_memory(&d, cot__pass_gather);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_wait_stands_before_its_reader),
        cmocka_unit_test(other_orders_wait_for_the_first),
        cmocka_unit_test(what_reads_a_product_stands_behind_it),
        cmocka_unit_test(numbers_that_an_end_reads_stand_before_the_product),
        cmocka_unit_test(effects_keep_their_order),
        cmocka_unit_test(random_programs_have_fewer_steps),
        cmocka_unit_test(many_operations_are_gathered_in_one_walk),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
