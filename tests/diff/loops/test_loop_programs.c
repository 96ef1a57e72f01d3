/* Steps of loops as runs of a program: the bits of the steps written out, the same errors and
 * notes, no memory asked for in a step, and programs that are forgotten with what they were made
 * from. */
#include "diff/loops/loop.h"
#include "support/body_test.h"
#include "support/support.h"
#include "support/tape_test.h"

/* Was some body lowered since? Otherwise these tests test nothing. */
static void assert_lowered(const cot_tape *t, uint32_t programs) { assert_int_equal(t->kept.count, programs); }

static void assert_same(cot_var a, cot_var b, const char *what) {
    double  x[64], y[64];
    int64_t n = cot_size(a);
    assert_true(cot_dtype_of(a) == cot_dtype_of(b) && n == cot_size(b) && n <= 64);
    assert_int_equal(cot_read(a, x, n), COT_OK);
    assert_int_equal(cot_read(b, y, n), COT_OK);
    for (int64_t k = 0; k < n; k++)
        if (!test_same(x[k], y[k])) fail_msg("%s[%d]: %.17g is not %.17g", what, (int)k, x[k], y[k]);
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* Carried: a matrix, its transpose in turn, a scalar and a count. A slice, the number of the step
 * and a captured weight that is a view. */
BODY(mixed) {
    UNUSED;
    cot_var w = *(cot_var *)user, i = cot_cast(xs[0], cot_dtype_of(xs[1]));
    ys[0] = xs[2];
    ys[1] = cot_tanh(cot_add(cot_matmul(cot_transpose(xs[1]), w), cot_mul(i, 0.1)));
    ys[2] = cot_add(xs[3], cot_mul(cot_sin(xs[3]), cot_sum(xs[1], COT_ALL)));
    ys[3] = cot_add(xs[4], 3);
    return 0;
}

static void loops_have_the_bits_of_their_steps(void **state) {
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16};
    (void)state;
    for (int d = 0; d < TEST_COUNT(dtypes); d++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_cast(cot_mul(cot_arange(t, COT_F64, 0, 9, 1), 0.1), dtypes[d]),
                w = cot_transpose(cot_reshape(x, COT_SHAPE(3, 3)));
        cot_var init[4] = {cot_reshape(cot_sin(x), COT_SHAPE(3, 3)), cot_reshape(cot_cos(x), COT_SHAPE(3, 3)),
                           cot_cast(cot_scalar(t, 0.3), dtypes[d]), cot_data(t, COT_I64, COT_SCALAR, (int64_t[]){5})};
        cot_var final[4], now[4];
        assert_int_equal(cot_fori(mixed, &w, 2, 7, 4, init, final, NULL), COT_OK);
        assert_lowered(t, 1);
        memcpy(now, init, sizeof now);
        for (int64_t k = 2; k < 7; k++) {
            cot_var next[4], in[5] = {cot_data(t, COT_I64, COT_SCALAR, &k), now[0], now[1], now[2], now[3]};
            mixed(5, in, 4, next, &w);
            memcpy(now, next, sizeof now);
        }
        for (int k = 0; k < 4; k++) assert_same(final[k], now[k], cot__dtype_name(dtypes[d]));
        cot_tape_destroy(t);
    }
}

/* ---- watched for kinks ----------------------------------------------------------------------- */

BODY(kinked) { UNUSED; ys[0] = cot_sum(cot_square(cot_relu(xs[0])), COT_ALL); return 0; }
BODY(downhill) {
    cot_var slope;
    (void)user;
    if (cot_value_and_grad(kinked, NULL, n, xs, NULL, &slope) != COT_OK) return 1;
    ys[m - 1] = cot_sub(xs[0], cot_mul(slope, 0.25));
    return 0;
}
/* Steps down by 1. */
BODY(counted_down) {
    cot_var slope;
    (void)user, (void)m;
    if (cot_value_and_grad(kinked, NULL, n, xs, NULL, &slope) != COT_OK) return 1;
    ys[0] = cot_sub(cot_sub(xs[0], 1.0), cot_mul(slope, 0.0));
    return 0;
}

static void a_body_that_is_watched_for_kinks_is_a_program(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.smooth = true}), *plain = cot_tape_create(NULL);
    double    at[3] = {1, -0.5, 2};
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), at), y = cot_tensor(plain, COT_F64, COT_SHAPE(3), at), last[2];
    assert_int_equal(cot_scan(downhill, NULL, 4, 1, &x, 0, NULL, &last[0], 0, NULL, NULL), COT_OK);
    assert_lowered(t, 1);
    assert_int_equal(cot_scan(downhill, NULL, 4, 1, &y, 0, NULL, &last[1], 0, NULL, NULL), COT_OK);
    assert_same(last[0], last[1], "downhill");
    cot_tape_destroy(plain);
    cot_tape_destroy(t);
}

/* The step that meets the kink is the third; before it the run goes on. */
static void a_program_refuses_at_the_kink_it_meets(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.smooth = true});
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){5, 2}), last;
    assert_int_equal(cot_scan(counted_down, NULL, 2, 1, &x, 0, NULL, &last, 0, NULL, NULL), COT_OK);
    assert_lowered(t, 1);
    assert_int_equal(cot_scan(counted_down, NULL, 3, 1, &x, 0, NULL, &last, 0, NULL, NULL), COT_GRAD);
    static const char want[] = "[scan] a derivative at a point without one was refused, as this tape was asked to: In "
                               "a body of [scan]: relu sits on its kink x = 0 at [1]; its derivative there: 0, as on "
                               "the left.";
    assert_memory_equal(cot_tape_message(t), want, sizeof want - 1);
    cot_tape_destroy(t);
}

BODY(halve) {
    UNUSED;
    ys[0] = cot_mul(xs[0], 0.5);
    ys[1] = cot_add(xs[1], 1);
    return 0;
}
BODY(is_large) {
    UNUSED;
    ys[0] = cot_greater(cot_sum(xs[0], COT_ALL), 1.0);
    return 0;
}

static void tests_run_as_programs_too(void **state) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   init[2] = {cot_full(t, COT_F64, COT_SHAPE(4), 100), cot_data(t, COT_I64, COT_SCALAR, (int64_t[]){0})};
    cot_var   final[2];
    int64_t   steps;
    (void)state;
    assert_int_equal(cot_while(is_large, halve, NULL, 2, init, final, NULL), COT_OK);
    assert_lowered(t, 2);
    steps = cot_value_i64(final[1]);
    assert_int_equal(steps, 9);
    cot_tape_destroy(t);
}

/* ---- the way back ---------------------------------------------------------------------------- */

/* (h, c, n), x -> tanh(W h + x), c sin(c) + sum h², n + 1; out: h², of which some steps are zero,
 * and W, which does not depend on the state */
BODY(recurrent) {
    UNUSED;
    cot_var w = *(cot_var *)user;
    ys[0] = cot_tanh(cot_add(cot_matmul(w, xs[0]), xs[3]));
    ys[1] = cot_add(cot_mul(xs[1], cot_sin(xs[1])), cot_sum(cot_square(xs[0]), COT_ALL));
    ys[2] = cot_add(xs[2], 1);
    ys[3] = cot_mul(cot_square(ys[0]), cot_cast(xs[2], cot_dtype_of(xs[0])));
    ys[4] = cot_index(w, 0, 1);
    return 0;
}

enum { STEPS = 20, GRADIENTS = 4 };

/* Gradients by W, h, c and x of a loop that is run on a smooth tape, whose steps back are recorded
 * and swept, or on another, where they are a program. */
static cot_tape *differentiate(bool smooth, cot_dtype dtype, bool reverse, cot_var *leaf) {
    static double numbers[STEPS * 3 + 16];
    cot_tape     *t = cot_tape_create(&(cot_options){.smooth = smooth});
    for (int k = 0; k < TEST_COUNT(numbers); k++) numbers[k] = 0.3 * sin(1.7 * k + 0.2);
    const cot_shape shapes[GRADIENTS] = {COT_SHAPE(3, 3), COT_SHAPE(3), COT_SCALAR, COT_SHAPE(STEPS, 3)};
    cot_var         xs[GRADIENTS], final[3], ys[2];
    for (int k = 0, at = 0; k < GRADIENTS; k++) {
        leaf[k] = cot_tensor(t, COT_F64, shapes[k], numbers + at);
        xs[k] = cot_cast(leaf[k], dtype);
        at += (int)cot_size(leaf[k]);
    }
    cot_var init[3] = {xs[1], xs[2], cot_data(t, COT_I64, COT_SCALAR, (int64_t[]){0})};
    const cot_loop_options options = {.reverse = reverse, .states = 3};
    cot_scan(recurrent, &xs[0], -1, 3, init, 1, &xs[3], final, 2, ys, &options);
    cot_var y = cot_add(cot_sum(cot_sin(final[0]), COT_ALL), final[1]);
    cot_backward(cot_add(y, cot_sum(cot_mul(ys[0], cot_exp(ys[0])), COT_ALL)));
    assert_ok(t);
    return t;
}

static void steps_back_have_the_bits_of_sweeps(void **state) {
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16};
    (void)state;
    for (int d = 0; d < 2 * TEST_COUNT(dtypes); d++) {
        cot_var   a[GRADIENTS], b[GRADIENTS];
        cot_tape *s = differentiate(true, dtypes[d / 2], d % 2, a), *t = differentiate(false, dtypes[d / 2], d % 2, b);
        for (int k = 0; k < GRADIENTS; k++) {
            double  x[STEPS * 3], y[STEPS * 3];
            int64_t n = cot_size(a[k]);
            cot_read_grad(a[k], x, n);
            cot_read_grad(b[k], y, n);
            for (int64_t e = 0; e < n; e++)
                if (!test_same(x[e], y[e])) fail_msg("gradient %d[%d]: %.17g is not %.17g", k, (int)e, x[e], y[e]);
        }
        cot_tape_destroy(s);
        cot_tape_destroy(t);
    }
}

/* Recorded, then found again and made smaller, then with runs that are left over. */
static void a_loop_that_is_met_again_has_the_same_bits(void **state) {
    double    first[2] = {0}, numbers[9];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.3), w;
    (void)state;
    for (int k = 0; k < 9; k++) numbers[k] = 0.1 * k;
    w = cot_tensor(t, COT_F64, COT_SHAPE(3, 3), numbers);
    for (int round = 0; round < 4; round++) {
        cot_mark m = cot_tape_mark(t);
        cot_var  i = cot_data(t, COT_I64, COT_SCALAR, (int64_t[]){5}), init[4] = {w, w, x, i}, final[4];
        double   now[2], of_w[9];
        cot_fori(mixed, &w, 0, 20, 4, init, final, NULL);
        cot_backward(final[2]);
        now[0] = cot_value(final[2]);
        cot_read_grad(x, &now[1], 1);
        cot_read_grad(w, of_w, 9);
        for (int k = 0; k < 9; k++) now[1] += of_w[k];
        if (round == 0) memcpy(first, now, sizeof now);
        assert_memory_equal(first, now, sizeof now);
        cot_tape_zero_grads(t);
        cot_tape_rewind(t, m);
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

BODY(multiplied) {
    UNUSED;
    ys[0] = cot_mul(xs[1], *(double *)user);
    return 0;
}

/* Loops of one form, but with other bodies: each has its own way back. */
static void loops_do_not_take_the_way_back_of_others(void **state) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 1.5), y;
    (void)state;
    for (int round = 0; round < 6; round++) {
        double by = round % 2 ? 0.9 : 1.1, slope = 1, found;
        cot_fori(multiplied, &by, 0, 20, 1, &x, &y, NULL);
        cot_backward(y);
        for (int k = 0; k < 20; k++) slope *= by;
        cot_read_grad(x, &found, 1);
        assert_true(found == slope);
        cot_tape_zero_grads(t);
    }
    cot_tape_destroy(t);
}

BODY(scaled) {
    UNUSED;
    ys[0] = cot_add(cot_mul(xs[0], *(double *)user), cot_sum(cot_full(cot_tape_of(xs[0]), COT_F64, COT_SHAPE(2),
                                                                      *(double *)user), COT_ALL));
    return 0;
}

static uint64_t number_of(cot_tape *t, cot_fn f, double by, cot_var x) {
    cot__region *r = cot__region_record(t, "test", f, &by, 1, &x, 1);
    assert_non_null(cot__region_program(t, r));
    assert_true(r->known > 0);
    return r->known;
}

static void bodies_are_known_by_all_that_they_are(void **state) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2), row = cot_full(t, COT_F64, COT_SHAPE(2), 1);
    uint64_t  number = number_of(t, scaled, 3, x);
    (void)state;
    assert_true(number_of(t, scaled, 3, cot_scalar(t, 1)) == number);
    assert_true(number_of(t, scaled, 4, x) != number);
    assert_true(number_of(t, scaled, 3, row) != number);
    assert_true(number_of(t, scaled, 3, cot_cast(x, COT_F32)) != number);
    cot_tape_destroy(t);
}

/* ---- errors and notes ------------------------------------------------------------------------ */

BODY(look_up) {
    UNUSED;
    ys[0] = cot_take(*(cot_var *)user, xs[0], 0);
    return 0;
}

static void an_error_names_its_step(void **state) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   next = cot_data(t, COT_I64, COT_SHAPE(4), (int64_t[]){1, 2, 7, 0}), final,
            init = cot_data(t, COT_I64, COT_SHAPE(1), (int64_t[]){0});
    (void)state;
    assert_int_equal(cot_scan(look_up, &next, 5, 1, &init, 0, NULL, &final, 0, NULL, NULL), COT_VALUE);
    assert_error(t, COT_VALUE,
                 "[take] indices[0] is 7, out of range for extent 4; values run from -4 to 3 (in step 3 of [scan])");
    cot_tape_destroy(t);
}

BODY(factor) {
    UNUSED;
    ys[0] = cot_sub(xs[0], 1.0);
    ys[1] = cot_cholesky(xs[0]);
    return 0;
}

static void a_note_of_a_step_is_on_the_tape(void **state) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   init = cot_full(t, COT_F64, COT_SHAPE(1, 1), 2.5), final, ys;
    (void)state;
    assert_int_equal(cot_scan(factor, NULL, 5, 1, &init, 0, NULL, &final, 1, &ys, NULL), COT_OK);
    assert_lowered(t, 1);
    assert_non_null(strstr(cot_tape_note(t), "[cholesky] "));
    cot_tape_destroy(t);
}

/* ---- what is played -------------------------------------------------------------------------- */

BODY(inner) {
    UNUSED;
    ys[0] = cot_mul(xs[1], cot_add(cot_cast(xs[0], COT_F64), 1.0));
    return 0;
}
BODY(outer) {
    UNUSED;
    cot_fori(inner, NULL, 0, 3, 1, xs + 1, ys, NULL);
    return 0;
}

/* The body that holds it is a program, of which the inner loop is an operation. */
static void a_loop_in_a_loop_is_run(void **state) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   init = cot_scalar(t, 2), final;
    double    value;
    (void)state;
    assert_int_equal(cot_fori(outer, NULL, 0, 2, 1, &init, &final, NULL), COT_OK);
    cot_read(final, &value, 1);
    assert_true(value == 72);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static long requests_of(int64_t steps) {
    counting  c = {0};
    cot_tape *t = counted_tape(&c, false);
    cot_var   x = cot_mul(cot_arange(t, COT_F64, 0, 9, 1), 0.1), w = cot_reshape(x, COT_SHAPE(3, 3));
    cot_var   init[4] = {w, w, cot_mul(cot_scalar(t, 0.3), 1.0), cot_data(t, COT_I64, COT_SCALAR, (int64_t[]){5})};
    cot_var   final[4];
    assert_int_equal(cot_fori(mixed, &w, 0, steps, 4, init, final, &(cot_loop_options){.states = 1}), COT_OK);
    cot_tape_destroy(t);
    assert_true(c.live == 0 && !c.wrong_size);
    return c.requests;
}

static void a_step_asks_for_no_memory(void **state) {
    (void)state;
    assert_int_equal(requests_of(3), requests_of(1000));
}

static void programs_are_forgotten_with_their_bodies(void **state) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   init = cot_scalar(t, 2), final;
    (void)state;
    cot_fori(inner, NULL, 0, 2, 1, &init, &final, NULL);
    assert_lowered(t, 1);
    cot_mark m = cot_tape_mark(t);
    cot_fori(inner, NULL, 0, 2, 1, &init, &final, NULL);
    assert_lowered(t, 2);
    cot_tape_rewind(t, m);
    assert_lowered(t, 1);
    cot_tape_destroy(t);
}

/* A program that a rewind forgets, of a body that it does not, is made again. */
static void a_body_outlives_its_program(void **state) {
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      x[2] = {cot_data(t, COT_I64, COT_SCALAR, (int64_t[]){0}), cot_scalar(t, 2)};
    cot__region *r = cot__region_record(t, "test", inner, NULL, 2, x, 1);
    cot_mark     m = cot_tape_mark(t);
    (void)state;
    const cot__program *p = cot__region_program(t, r);
    assert_non_null(p);
    assert_true(cot__region_program(t, r) == p);
    cot_tape_rewind(t, m);
    assert_null(r->program);
    assert_non_null(cot__region_program(t, r));
    assert_lowered(t, 1);
    cot_tape_destroy(t);
}

static void run_loop(cot_tape *t, void *user) {
    cot_var x = cot_mul(cot_arange(t, COT_F64, 0, 9, 1), 0.1), w = cot_reshape(x, COT_SHAPE(3, 3));
    cot_var init[4] = {w, w, cot_scalar(t, 0.3), cot_data(t, COT_I64, COT_SCALAR, (int64_t[]){5})}, final[4];
    (void)user;
    cot_fori(mixed, &w, 0, 3, 4, init, final, NULL);
    cot_while(is_large, halve, NULL, 2, (cot_var[]){w, init[3]}, final, NULL);
    for (int k = 0; k < 3; k++) {
        cot_fori(inner, NULL, 0, 20, 1, &init[2], final, NULL);
        cot_backward(final[0]);
    }
}

static void any_allocation_may_fail(void **state) {
    static const char *const sentences[] = {"bytes of a program", "the plan of", "to run a program"};
    (void)state;
    assert_survives_no_memory(run_loop, NULL, TEST_COUNT(sentences), sentences);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_have_the_bits_of_their_steps),
        cmocka_unit_test(tests_run_as_programs_too),
        cmocka_unit_test(a_body_that_is_watched_for_kinks_is_a_program),
        cmocka_unit_test(a_program_refuses_at_the_kink_it_meets),
        cmocka_unit_test(steps_back_have_the_bits_of_sweeps),
        cmocka_unit_test(a_loop_that_is_met_again_has_the_same_bits),
        cmocka_unit_test(loops_do_not_take_the_way_back_of_others),
        cmocka_unit_test(bodies_are_known_by_all_that_they_are),
        cmocka_unit_test(an_error_names_its_step),
        cmocka_unit_test(a_note_of_a_step_is_on_the_tape),
        cmocka_unit_test(a_loop_in_a_loop_is_run),
        cmocka_unit_test(a_step_asks_for_no_memory),
        cmocka_unit_test(programs_are_forgotten_with_their_bodies),
        cmocka_unit_test(a_body_outlives_its_program),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
