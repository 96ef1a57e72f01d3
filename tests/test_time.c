/* Derivatives and time: what was recorded before a write is differentiated as it was recorded, or said to be stale, whatever bodies,
 * failures, marks and rewinds lie between; nothing else is refused; and the error names the function that was called, the operation
 * that needs the value and the write. test_time_model.c looks for such cases, this file keeps those that were found. */
#include "body_test.h"
#include "tape_test.h"

static cot_tape *open_tape(void) { return cot_tape_create(NULL); }
static cot_var   leaf(cot_tape *t, int n, const double *v) { return cot_tensor(t, COT_F64, COT_SHAPE(n), v); }

static const double start[3] = {1.5, -2.0, 0.75}, other[3] = {0.5, 4.0, -1.25}, ones[3] = {1, 1, 1};

BODY(square) { UNUSED; ys[0] = cot_square(xs[0]); return 0; }
BODY(curved) { UNUSED; ys[0] = cot_sub(cot_mul(xs[0], cot_add(cot_square(xs[1]), 2.0)), 1.0); return 0; }

/* A leaf is written to in place, gets numbers again, and is used again: both uses count. */
static void a_leaf_that_has_numbers_again_moves_again(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 3, start), z = x, u, y;
    double    forward[9], reverse[9], values[9], v[3];
    cot_update_slice(&z, 0, 0, 1, 1, 7.0);
    u = cot_mul(z, 1.0);
    cot_assign_data(x, other);
    y = cot_add(u, cot_mul(2.0, x));
    assert_int_equal(cot_jacobian(1, &y, 1, &x, COT_REVERSE, reverse), COT_OK);
    assert_int_equal(cot_jacobian(1, &y, 1, &x, COT_FORWARD, forward), COT_OK);
    for (int i = 0; i < 9; i++) assert_near(forward[i], i == 0 ? 2 : i % 4 == 0 ? 3 : 0, 0);
    for (int i = 0; i < 9; i++) assert_near(forward[i], reverse[i], 0);
    assert_int_equal(cot_jvps(1, 1, &x, ones, 1, &x, v), COT_OK); /* as a result, too */
    assert_near(v[0], 1, 0);
    cot_sparse_plan *plan = cot_sparse_jacobian_plan(1, &y, 1, &x, COT_AUTO);
    assert_int_equal(cot_sparse_plan_info(plan).nnz, 3);
    assert_int_equal(cot_sparse_jacobian(plan, 1, &y, 1, &x, values), COT_OK);
    for (int i = 0; i < 3; i++) assert_near(values[i], i ? 3 : 2, 0);
    cot_sparse_plan_destroy(plan);
    cot_tape_destroy(t);
}

/* x · s, with s spread over x, where s becomes 1 afterwards: the derivative is the s that was. */
static void a_factor_that_becomes_one_was_not_one(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 3, start), s = cot_scalar(t, 3), y = cot_mul(x, s);
    double    j[9];
    cot_assign(s, 1.0);
    assert_int_equal(cot_jacobian(1, &y, 1, &x, COT_FORWARD, j), COT_OK);
    for (int i = 0; i < 9; i++) assert_near(j[i], i % 4 == 0 ? 3 : 0, 0);
    cot_tape_destroy(t);
}

/* Two tangents at once go over f64 scalars; others that lie between are passed over. */
static void scalars_of_another_dtype_are_passed_over(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = cot_scalar(t, 3), narrow = cot_scalar_of(t, COT_F32, 2), y;
    double    dy[2];
    cot_square(narrow);
    y = cot_square(x);
    assert_int_equal(cot_jvps(2, 1, &x, (double[]){1, 2}, 1, &y, dy), COT_OK);
    assert_true(dy[0] == 6 && dy[1] == 12);
    cot_tape_destroy(t);
}

/* A scalar has no memory to be written to: the target is replaced by a value that is not y itself. */
static void a_scalar_copied_in_place_is_another_value(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   a = cot_scalar(t, 3), y = cot_square(a), x = cot_scalar(t, 1), z, g;
    cot_copy_into(&x, y);
    z = cot_mul(y, 5.0);
    cot_grad_of(z, 1, &x, &g);
    assert_near(cot_value(g), 0, 0);
    cot_no_grad_open(t);
    cot_copy_into(&x, y);
    cot_no_grad_close(t);
    assert_near(cot_value(x), 9, 0);
    assert_false(cot_requires_grad(x));
    cot_tape_destroy(t);
}

/* Where a rule differentiates a body, too. */
static void a_derivative_recorded_without_gradients_has_none(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   a = cot_scalar(t, 3), y = cot_root(curved, NULL, NULL, cot_constant(t, 1), 1, &a, NULL), g, d, v, one = cot_number(1);
    cot_no_grad_open(t);
    cot_grad_of(y, 1, &a, &g);
    d = cot_jvp(y, 1, &a, &one);
    cot_value_and_grad(square, NULL, 1, &a, &y, &v);
    cot_no_grad_close(t);
    assert_near(cot_value(g), -6.0 / 121, 1e-12); /* of 1 / (a² + 2) */
    assert_false(cot_requires_grad(g) || cot_requires_grad(d) || cot_requires_grad(v));
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_that_has_numbers_again_moves_again),
        cmocka_unit_test(a_factor_that_becomes_one_was_not_one),
        cmocka_unit_test(scalars_of_another_dtype_are_passed_over),
        cmocka_unit_test(a_scalar_copied_in_place_is_another_value),
        cmocka_unit_test(a_derivative_recorded_without_gradients_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
