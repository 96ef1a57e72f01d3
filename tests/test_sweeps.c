/* test_sweeps.c: corners of the drivers: what is inactive, inputs that are listed twice or depend on each other, many of everything. */
#include "tape_test.h"

static void finish(cot_tape *t) {
    char why[256] = "";
    assert_ok(t);
    cot_tape_check(t, why, sizeof why);
    assert_string_equal(why, "");
    cot_tape_destroy(t);
}

/* ---- inactive operands --------------------------------------------------------------------------------------------- */

/* Scalar runs push to operands without asking whether they are active: what is not must be passed over, whatever it is. */
static void inactive_sums_and_dots_are_passed_over(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 3), c[2] = {cot_constant(t, 2), cot_constant(t, 5)};
    cot_var   y = cot_mul(cot_mul(x, cot_sum_of(2, c)), cot_dot_of(2, c, c));
    cot_backward(y);
    assert_true(cot_grad_value(x) == 7 * 29);
    double two[2] = {1, 2}, out[2];
    cot_vjps(2, 1, &y, two, 1, &x, out);
    assert_true(out[0] == 7 * 29 && out[1] == 14 * 29);
    finish(t);
}

static void a_leaf_made_without_gradients_gets_none(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 3);
    cot_no_grad_open(t);
    cot_var c = cot_scalar(t, 2);
    cot_no_grad_close(t);
    cot_backward(cot_mul(x, c));
    assert_true(cot_grad_value(x) == 2 && cot_grad_value(c) == 0);
    finish(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inactive_sums_and_dots_are_passed_over),
        cmocka_unit_test(a_leaf_made_without_gradients_gets_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
