/* test_guarded_positions.c: a condition may guard a position, and a loop without steps may hold an
 * invalid one. A body is recorded on examples, which need not be valid positions. Positions must be
 * valid when the body is played. Positions that are constants of the body, and so the same in every
 * step, must always be valid. */
#include "support/support.h"
#include "support/tape_test.h"

#define BODY(name) static int name(int n, const cot_var *xs, int m, cot_var *ys, void *user)
#define UNUSED (void)n, (void)m, (void)user, (void)xs, (void)ys

static cot_var whole(cot_tape *t, int64_t value) { return cot_data(t, COT_I64, COT_SCALAR, &value); }

/* ---- x (3) at position i, as each operation has it ------------------------------------------- */

static cot_var column(cot_var i) { return cot_reshape(i, COT_SHAPE(1)); }

BODY(take) { UNUSED; ys[0] = cot_take(xs[0], xs[1], 0); return 0; }
BODY(take_list) {
    UNUSED;
    ys[0] = cot_sum(cot_take(xs[0], cot_sub(column(cot_add(xs[1], 1)), 1), 0), COT_ALL);
    return 0;
}
BODY(along) { UNUSED; ys[0] = cot_sum(cot_take_along_axis(xs[0], column(xs[1]), 0), COT_ALL); return 0; }
BODY(gather) { UNUSED; ys[0] = cot_sum(cot_gather(xs[0], cot_reshape(xs[1], COT_SHAPE(1, 1))), COT_ALL); return 0; }
BODY(one_hot) { UNUSED; ys[0] = cot_dot(xs[0], cot_one_hot(xs[1], 3, COT_F64)); return 0; }
BODY(scatter_add) {
    UNUSED;
    ys[0] =
        cot_dot(cot_scatter_add(cot_zeros(xs[0].tape, COT_F64, COT_SHAPE(3)), column(xs[1]), cot_number(1), 0), xs[0]);
    return 0;
}
BODY(scatter) {
    UNUSED;
    ys[0] = cot_dot(cot_scatter(cot_zeros(xs[0].tape, COT_F64, COT_SHAPE(3)), column(xs[1]), cot_number(1), 0), xs[0]);
    return 0;
}
BODY(label) { UNUSED; ys[0] = cot_neg(cot_nll(cot_reshape(xs[0], COT_SHAPE(1, 3)), column(xs[1]))); return 0; }
BODY(derived) { /* the rules of a derivative read positions too */
    UNUSED;
    cot_var y = cot_take(cot_square(xs[0]), column(xs[1]), 0), g;
    cot_grad_of(cot_mul(0.5, cot_sum(y, COT_ALL)), 1, xs, &g);
    ys[0] = cot_sum(g, COT_ALL);
    return 0;
}
static const struct { const char *name; cot_fn at; } forms[] = {
    {"take", take}, {"take of a list", take_list}, {"take_along_axis", along}, {"gather", gather}, {"one_hot", one_hot},
    {"scatter_add", scatter_add}, {"scatter", scatter}, {"nll", label}, {"a derivative of take", derived},
};

/* ---- conditions ------------------------------------------------------------------------------ */

BODY(nothing) { UNUSED; ys[0] = cot_mul(-1.0, cot_sum(xs[0], COT_ALL)); return 0; }
BODY(guarded) {
    (void)n;
    return cot_cond(cot_less(xs[1], 3), *(const cot_fn *)user, nothing, NULL, 2, xs, m, ys) != COT_OK;
}

static void conditions_guard_positions(void **state) {
    (void)state;
    for (int f = 0; f < TEST_COUNT(forms); f++)
        for (int64_t i = 0; i < 5; i++) {
            cot_tape *t = cot_tape_create(NULL);
            double    g[3];
            cot_var   xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){5, 7, 11}), whole(t, i)}, y;
            assert_int_equal(guarded(2, xs, 1, &y, (void *)(uintptr_t)&forms[f].at), 0);
            assert_int_equal(cot_backward(y), COT_OK);
            if (cot_value(y) != (i < 3 ? (double[]){5, 7, 11}[i] : -23))
                test_note("%s at %d: %g", forms[f].name, (int)i, cot_value(y));
            cot_read_grad(xs[0], g, 3);
            for (int k = 0; k < 3; k++)
                if (g[k] != (i < 3 ? k == i : -1))
                    test_note("%s at %d: derivative %d is %g", forms[f].name, (int)i, k, g[k]);
            char why[200];
            if (cot_tape_check(t, why, sizeof why)) test_note("%s: %s", forms[f].name, why);
            cot_tape_destroy(t);
        }
    test_verdict();
}

/* ---- loops ----------------------------------------------------------------------------------- */

BODY(before_end) { UNUSED; ys[0] = cot_less(xs[1], 3); return 0; }
BODY(add_element) {
    UNUSED;
    cot_fn  at = *(const cot_fn *)user;
    cot_var in[2] = {xs[0], xs[1]}, y;
    if (at(2, in, 1, &y, NULL)) return 1;
    ys[0] = xs[0], ys[1] = cot_add(xs[1], 1), ys[2] = cot_add(xs[2], y);
    return 0;
}

static void loops_of_no_step_have_no_positions(void **state) {
    (void)state;
    for (int f = 0; f < TEST_COUNT(forms); f++)
        for (int64_t i = 1; i < 5; i++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x     = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){5, 7, 11}),
                    init[3] = {x, whole(t, i), cot_scalar(t, 2)}, end[3];
            double    g[3];
            cot_while(before_end, add_element, (void *)(uintptr_t)&forms[f].at, 3, init, end, NULL);
            cot_backward(cot_add(end[2], cot_sum(x, COT_ALL)));
            if (cot_tape_status(t)) test_note("%s from %d: %s", forms[f].name, (int)i, cot_tape_message(t));
            else if (cot_value(end[2]) != (double[]){0, 20, 13, 2, 2}[i])
                test_note("%s from %d: %g", forms[f].name, (int)i, cot_value(end[2]));
            cot_read_grad(x, g, 3);
            for (int k = 0; k < 3; k++)
                if (g[k] != 1 + (k >= i)) test_note("%s from %d: derivative %d is %g", forms[f].name, (int)i, k, g[k]);
            cot_tape_destroy(t);
        }
    test_verdict();
}

/* ---- what stays an error --------------------------------------------------------------------- */

BODY(constant_seven) { UNUSED; ys[0] = cot_take(xs[0], cot_add(whole(xs[0].tape, 6), 1), 0); return 0; }

static void what_is_played_or_holds_for_every_step_is_looked_at(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){5, 7, 11}), whole(t, 3)}, y;
    cot_cond(cot_less(xs[1], 4), take, nothing, NULL, 2, xs, 1, &y);
    assert_string_equal(
        cot_tape_message(t),
        "[take] indices is 3, out of range for extent 3; values run from -3 to 2 (in the then branch of [cond])");
    cot_tape_clear_error(t);
    cot_cond(cot_number(0), constant_seven, nothing, NULL, 2, xs, 1, &y);
    assert_string_equal(
        cot_tape_message(t),
        "[take] indices is 7, out of range for extent 3; values run from -3 to 2 (in the then branch of [cond])");
    cot_tape_destroy(t);
}

/* ---- without memory -------------------------------------------------------------------------- */

/* A position so far away that reading there would end the process. */
static void guard_a_far_position(cot_tape *t, void *user) {
    cot_var xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){5, 7, 11}), whole(t, (int64_t)1 << 40)}, y;
    guarded(2, xs, 1, &y, user);
}

static void no_position_is_read_when_there_is_no_memory_to_excuse_it(void **state) {
    static const cot_fn at = take_list;
    (void)state;
    assert_survives_no_memory(guard_a_far_position, (void *)(uintptr_t)&at, 1,
                              (const char *const[]){"[take] out of memory for looking at a body"});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_guard_positions),
        cmocka_unit_test(loops_of_no_step_have_no_positions),
        cmocka_unit_test(what_is_played_or_holds_for_every_step_is_looked_at),
        cmocka_unit_test(no_position_is_read_when_there_is_no_memory_to_excuse_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
