/* test_functions.c: Jacobians and Hessians of C functions as recorded vars: closed forms, the
 * numbers of cot_jacobian, nesting, dtypes, shapes, errors. */
#include "support/body_test.h"
#include "support/tape_test.h"

#define expect(t, code, text)                                                                                          \
    do {                                                                                                               \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)

static const cot_mode modes[] = {COT_AUTO, COT_REVERSE, COT_FORWARD};

static void assert_shape(cot_var x, cot_shape shape) {
    cot_shape have = cot_shape_of(x);
    assert_true(cot_is_valid(x));
    assert_int_equal(have.ndim, shape.ndim);
    for (int k = 0; k < shape.ndim; k++) assert_int_equal(have.dim[k], shape.dim[k]);
}

static void assert_values(cot_var x, const double *wanted, double tolerance) {
    double have[256];
    assert_true(cot_size(x) <= 256);
    assert_int_equal(cot_read(x, have, cot_size(x)), COT_OK);
    for (int64_t k = 0; k < cot_size(x); k++) assert_near(have[k], wanted[k], tolerance);
}

/* ---- closed forms ---------------------------------------------------------------------------- */

/* (W x, sum of W²) of W (2, 3) and x (3). */
BODY(product_and_square) {
    UNUSED;
    ys[0] = cot_matmul(xs[0], xs[1]);
    ys[1] = cot_sum(cot_square(xs[0]), COT_ALL);
    return 0;
}

static void jacobians_have_their_closed_forms(void **state) {
    (void)state;
    const double w[6] = {1, 2, 3, 4, 5, 6}, x[3] = {7, 8, 9}, zeros[3] = {0};
    const double by_w[12] = {7, 8, 9, 0, 0, 0, 0, 0, 0, 7, 8, 9}, of_square[6] = {2, 4, 6, 8, 10, 12};
    for (int k = 0; k < 3; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(2, 3), w), cot_data(t, COT_F64, COT_SHAPE(3), x)}, ys[2],
                j[4];
        assert_int_equal(cot_fn_jacobian(product_and_square, NULL, 2, xs, 2, ys, modes[k], j), COT_OK);
        assert_values(ys[0], (double[]){50, 122}, 0);
        assert_near(cot_value(ys[1]), 91, 0);
        assert_shape(j[0], COT_SHAPE(2, 2, 3));
        assert_shape(j[1], COT_SHAPE(2, 3));
        assert_shape(j[2], COT_SHAPE(2, 3));
        assert_shape(j[3], COT_SHAPE(3));
        assert_values(j[0], by_w, 0);
        assert_values(j[1], w, 0);
        assert_values(j[2], of_square, 0);
        assert_values(j[3], zeros, 0); /* does not depend on it */
        /* without the values */
        assert_int_equal(cot_fn_jacobian(product_and_square, NULL, 2, xs, 2, NULL, modes[k], j), COT_OK);
        assert_values(j[0], by_w, 0);
        cot_tape_destroy(t);
    }
}

/* ---- against the numbers --------------------------------------------------------------------- */

BODY(mixture) { /* shape, contraction, elementwise, index, and the input itself */
    UNUSED;
    cot_var h = cot_tanh(cot_matmul(xs[0], xs[1]));
    ys[0] = cot_mul(cot_softmax(h, -1), cot_sum(xs[1], COT_ALL));
    ys[1] = cot_transpose(xs[0]);
    ys[2] = cot_mul(cot_index(h, 0, 0), cot_cumsum(xs[2], 0, false));
    ys[3] = xs[2];
    return 0;
}

static void blocks_equal_cot_jacobian(void **state) {
    (void)state;
    double a[6] = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6}, b[6] = {1, -0.5, 0.25, 0.3, 0.2, 0.9}, c[2] = {2, -3},
           whole[14 * 14], one[14 * 14];
    for (int k = 0; k < 3; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   xs[3] = {cot_tensor(t, COT_F64, COT_SHAPE(2, 3), a), cot_tensor(t, COT_F64, COT_SHAPE(3, 2), b),
                           cot_tensor(t, COT_F64, COT_SHAPE(2), c)};
        cot_var   ys[4], j[12], plain[4];
        assert_int_equal(cot_fn_jacobian(mixture, NULL, 3, xs, 4, ys, modes[k], j), COT_OK);
        mixture(3, xs, 4, plain, NULL);
        assert_int_equal(cot_jacobian(4, plain, 3, xs, COT_REVERSE, whole), COT_OK);
        for (int64_t row = 0, r = 0; r < 4; row += cot_size(ys[r++]))
            for (int64_t left = 0, q = 0; q < 3; left += cot_size(xs[q++])) {
                assert_int_equal(cot_read(j[r * 3 + q], one, cot_size(j[r * 3 + q])), COT_OK);
                for (int64_t i = 0; i < cot_size(ys[r]); i++)
                    /* sums in another order: a few roundings */
                    for (int64_t l = 0; l < cot_size(xs[q]); l++)
                        assert_near(one[i * cot_size(xs[q]) + l], whole[(row + i) * 14 + left + l], 1e-15);
            }
        cot_tape_destroy(t);
    }
}

static void the_tape_does_not_grow_with_the_size(void **state) {
    (void)state;
    int64_t length[2];
    for (int k = 0; k < 2; k++) {
        cot_tape *t = cot_tape_create(NULL);
        int64_t   n = k ? 50 : 5;
        cot_var   xs[3] = {cot_ones(t, COT_F64, COT_SHAPE(n, 3)), cot_ones(t, COT_F64, COT_SHAPE(3, n)),
                           cot_ones(t, COT_F64, COT_SHAPE(n))},
                j[12];
        assert_int_equal(cot_fn_jacobian(mixture, NULL, 3, xs, 4, NULL, COT_REVERSE, j), COT_OK);
        length[k] = cot_tape_length(t);
        cot_tape_destroy(t);
    }
    assert_int_equal(length[0], length[1]);
}

/* ---- Hessians -------------------------------------------------------------------------------- */

/* Σ x³ · y. */
BODY(cubes) { UNUSED; ys[0] = cot_mul(cot_sum(cot_mul(xs[0], cot_square(xs[0])), COT_ALL), xs[1]); return 0; }
BODY(gradient_of_cubes) { UNUSED; cot_value_and_grad(cubes, NULL, 2, xs, NULL, ys); return 0; }
BODY(jacobian_of_cubes) { UNUSED; cot_fn_jacobian(cubes, NULL, 2, xs, 1, NULL, *(cot_mode *)user, ys); return 0; }

static void hessians_are_jacobians_of_gradients(void **state) {
    (void)state;
    const double xx[4] = {12, 0, 0, 24}, xy[2] = {3, 12};
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), cot_scalar(t, 2)}, y, h[4], j[4];
    assert_int_equal(cot_fn_hessian(cubes, NULL, 2, xs, &y, h), COT_OK);
    assert_near(cot_value(y), 18, 0);
    assert_shape(h[0], COT_SHAPE(2, 2));
    assert_shape(h[3], cot_shape_of(xs[1]));
    for (int inner = 0; inner < 3; inner++)
        for (int outer = 0; outer < 6; outer++) {
            cot_mode mode = modes[inner];
            cot_fn   f = outer < 3 ? gradient_of_cubes : jacobian_of_cubes;
            assert_int_equal(cot_fn_jacobian(f, &mode, 2, xs, 2, NULL, modes[outer % 3], j), COT_OK);
            for (int k = 0; k < 2; k++) {
                const cot_var *g = k ? h : j;
                assert_values(g[0], xx, 0);
                assert_values(g[1], xy, 0);
                assert_values(g[2], xy, 0);
                assert_near(cot_value(g[3]), 0, 0);
            }
        }
    cot_tape_destroy(t);
}

/* ---- composed -------------------------------------------------------------------------------- */

BODY(sines) { UNUSED; ys[0] = cot_mul(cot_sin(xs[0]), cot_sum(xs[0], COT_ALL)); return 0; }
BODY(trace_of_jacobian) { /* Σ cos(x_i)·S + sin(x_i) */
    UNUSED;
    cot_var j;
    cot_fn_jacobian(sines, NULL, 1, xs, 1, NULL, *(cot_mode *)user, &j);
    ys[0] = cot_sum(cot_mul(j, cot_eye(xs[0].tape, COT_F64, 3, 3)), COT_ALL);
    return 0;
}
/* Newton's step for a fixed point would do as well: x − 0.1 · J x, with J recorded in the body. */
BODY(step_with_jacobian) {
    UNUSED;
    cot_var j;
    cot_fn_jacobian(sines, NULL, 1, xs, 1, NULL, *(cot_mode *)user, &j);
    ys[0] = cot_sub(xs[0], cot_mul(0.1, cot_matmul(j, xs[0])));
    return 0;
}
BODY(hessian_trace) {
    UNUSED;
    cot_var h;
    cot_fn_hessian(trace_of_jacobian, user, 1, xs, NULL, &h);
    ys[0] = cot_sum(h, COT_ALL);
    return 0;
}

static void jacobians_have_derivatives(void **state) {
    (void)state;
    const double v[3] = {0.3, -0.7, 1.1};
    double       total = v[0] + v[1] + v[2], cosines = cos(v[0]) + cos(v[1]) + cos(v[2]), wanted[3];
    for (int i = 0; i < 3; i++) wanted[i] = -sin(v[i]) * total + cosines + cos(v[i]);
    for (int k = 0; k < 3; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_mode  mode = modes[k];
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), v), y, g;
        assert_int_equal(cot_value_and_grad(trace_of_jacobian, &mode, 1, &x, &y, &g), COT_OK);
        assert_values(g, wanted, 1e-14); /* a few roundings */
        trace_of_jacobian(1, &x, 1, &y, &mode);
        assert_int_equal(cot_backward(y), COT_OK); /* numbers too */
        double grad[3];
        cot_read_grad(x, grad, 3);
        for (int i = 0; i < 3; i++) assert_near(grad[i], wanted[i], 1e-14);
        assert_int_equal(cot_fn_jvp(trace_of_jacobian, &mode, 1, &x, (cot_var[]){cot_number(1)}, 1, &y, &g), COT_OK);
        assert_near(cot_value(g), wanted[0] + wanted[1] + wanted[2], 1e-14);
        cot_tape_destroy(t);
    }
}

static void jacobians_stand_in_loops_and_batches(void **state) {
    (void)state;
    const double v[6] = {0.3, -0.7, 1.1, 0.2, 0.5, -0.4};
    for (int k = 0; k < 3; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_mode  mode = modes[k];
        cot_var   batch = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), v), x = cot_index(batch, 0, 0), last, plain = x, ys,
                one, g[2];
        double    numbers[2][6];
        assert_int_equal(cot_scan(step_with_jacobian, &mode, 3, 1, &x, 0, NULL, &last, 0, NULL, NULL), COT_OK);
        for (int i = 0; i < 3; i++) step_with_jacobian(1, &plain, 1, &plain, &mode);
        cot_read(plain, numbers[0], 3);
        assert_values(last, numbers[0], 1e-15);
        /* and back through the loop */
        cot_grad_of(cot_sum(cot_square(last), COT_ALL), 1, &batch, &g[0]);
        cot_grad_of(cot_sum(cot_square(plain), COT_ALL), 1, &batch, &g[1]);
        cot_read(g[1], numbers[1], 6);
        assert_values(g[0], numbers[1], 1e-14);
        assert_int_equal(cot_vmap(step_with_jacobian, &mode, 1, &batch, NULL, 1, &ys, NULL), COT_OK);
        assert_int_equal(cot_vmap(hessian_trace, &mode, 1, &batch, NULL, 1, &last, NULL), COT_OK);
        for (int i = 0; i < 2; i++) {
            cot_var row = cot_index(batch, 0, i);
            step_with_jacobian(1, &row, 1, &one, &mode);
            cot_read(one, numbers[0], 3);
            assert_values(cot_index(ys, 0, i), numbers[0], 1e-15);
            hessian_trace(1, &row, 1, &one, &mode);
            assert_near(cot_value(cot_index(last, 0, i)), cot_value(one), 1e-14);
        }
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

/* ---- dtypes and shapes ----------------------------------------------------------------------- */

BODY(widens) { UNUSED; ys[0] = cot_mul(cot_cast(xs[0], COT_F64), xs[1]); ys[1] = cot_cast(xs[0], COT_I64); return 0; }
BODY(picks) { UNUSED; ys[0] = cot_sum(cot_square(cot_take(xs[0], xs[1], 0)), COT_ALL); return 0; }
BODY(square) { UNUSED; ys[0] = cot_square(xs[0]); return 0; }
BODY(times) { UNUSED; ys[0] = cot_mul(xs[0], xs[1]); return 0; }
BODY(outside) { UNUSED; ys[0] = *(cot_var *)user; return 0; }
BODY(chooses) { UNUSED; ys[0] = cot_value(xs[0]) > 0 ? cot_square(xs[0]) : cot_neg(xs[0]); return 0; }

static void dtypes_follow_the_inputs(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   xs[2] = {cot_tensor(t, COT_F32, COT_SHAPE(2), (float[]){1, 2}), cot_scalar(t, 3)}, j[4], h[4];
        assert_int_equal(cot_fn_jacobian(square, NULL, 1, xs, 1, NULL, modes[k], j), COT_OK);
        assert_int_equal(cot_dtype_of(j[0]), COT_F32);
        assert_values(j[0], (double[]){2, 0, 0, 4}, 0);
        assert_int_equal(cot_fn_jacobian(widens, NULL, 2, xs, 2, NULL, modes[k], j), COT_OK);
        assert_int_equal(cot_dtype_of(j[0]), COT_F32);
        assert_int_equal(cot_dtype_of(j[1]), COT_F64);
        assert_values(j[0], (double[]){3, 0, 0, 3}, 0);
        assert_values(j[1], (double[]){1, 2}, 0);
        assert_false(cot_is_valid(j[2]) || cot_is_valid(j[3])); /* of integers */
        cot_var ints[2] = {xs[0], cot_data(t, COT_I64, COT_SHAPE(2), (int64_t[]){1, 1})};
        assert_int_equal(cot_fn_jacobian(picks, NULL, 2, ints, 1, NULL, modes[k], j), COT_OK);
        assert_values(j[0], (double[]){0, 8}, 0);
        assert_false(cot_is_valid(j[1]));
        assert_int_equal(cot_fn_hessian(picks, NULL, 2, ints, NULL, h), COT_OK);
        assert_int_equal(cot_dtype_of(h[0]), COT_F32);
        assert_values(h[0], (double[]){0, 0, 0, 4}, 0);
        assert_false(cot_is_valid(h[1]) || cot_is_valid(h[2]) || cot_is_valid(h[3]));
        cot_tape_destroy(t);
    }
}

static void scalars_numbers_and_nothing(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_scalar(t, 3), j[2], h[4], empty = cot_zeros(t, COT_F64, COT_SHAPE(0, 2)), y;
        assert_int_equal(cot_fn_jacobian(square, NULL, 1, &x, 1, NULL, modes[k], j), COT_OK);
        assert_shape(j[0], cot_shape_of(x));
        assert_near(cot_value(j[0]), 6, 0);
        /* the function runs with values */
        assert_int_equal(cot_fn_hessian(chooses, NULL, 1, &x, &y, h), COT_OK);
        assert_near(cot_value(h[0]), 2, 0);
        assert_near(cot_value(y), 9, 0);
        cot_var pair[2] = {x, cot_number(5)};
        assert_int_equal(cot_fn_hessian(times, NULL, 2, pair, NULL, h), COT_OK);
        assert_near(cot_value(h[0]), 0, 0);
        assert_near(cot_value(h[1]), 1, 0);
        pair[1] = cot_integer(5); /* no float */
        assert_int_equal(cot_fn_hessian(times, NULL, 2, pair, NULL, h), COT_OK);
        assert_near(cot_value(h[0]), 0, 0);
        assert_false(cot_is_valid(h[1]) || cot_is_valid(h[2]) || cot_is_valid(h[3]));
        /* its value, not its input */
        assert_int_equal(cot_fn_jacobian(outside, &x, 1, &x, 1, NULL, modes[k], j), COT_OK);
        assert_near(cot_value(j[0]), 0, 0);
        assert_int_equal(cot_fn_jacobian(square, NULL, 1, &empty, 1, NULL, modes[k], j), COT_OK);
        assert_shape(j[0], COT_SHAPE(0, 2, 0, 2));
        cot_var some[2] = {empty, x};
        assert_int_equal(cot_fn_jacobian(times, NULL, 2, some, 1, NULL, modes[k], j), COT_OK);
        assert_shape(j[0], COT_SHAPE(0, 2, 0, 2));
        assert_shape(j[1], COT_SHAPE(0, 2));
        assert_int_equal(cot_fn_jacobian(square, NULL, 1, &x, 0, NULL, modes[k], NULL), COT_OK);
        cot_tape_destroy(t);
    }
}

/* ---- errors ---------------------------------------------------------------------------------- */

BODY(fails) { UNUSED; return 7; }
BODY(is_integer) { UNUSED; ys[0] = cot_cast(xs[0], COT_I32); return 0; }

static void errors_say_what_is_wrong(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL), *other = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), NULL), s = cot_scalar(t, 1), pair[2] = {x, x}, y, j[4],
            foreign = cot_scalar(other, 1);
    cot_fn_jacobian(square, NULL, 1, &x, 1, &y, (cot_mode)3, j);
    expect(t, COT_VALUE, "[fn_jacobian] 3 is not a mode; COT_AUTO, COT_REVERSE and COT_FORWARD are");
    cot_fn_jacobian(NULL, NULL, 1, &x, 1, &y, COT_AUTO, j);
    expect(t, COT_VALUE, "[fn_jacobian] the function is NULL");
    cot_fn_jacobian(square, NULL, 1, &x, 1, &y, COT_AUTO, NULL);
    expect(t, COT_VALUE, "[fn_jacobian] a list of 1 values is NULL");
    cot_fn_jacobian(square, NULL, 1, &x, -2, &y, COT_AUTO, j);
    expect(t, COT_VALUE, "[fn_jacobian] a negative number of values: -2");
    cot_fn_jacobian(square, NULL, 2, pair, INT32_MAX, NULL, COT_AUTO, j);
    expect(t, COT_VALUE, "[fn_jacobian] 2147483647 results by 2 inputs; at most 2147483647 blocks");
    cot_fn_jacobian(fails, NULL, 1, &x, 1, &y, COT_AUTO, j);
    expect(t, COT_CUSTOM, "[fn_jacobian] the function failed with code 7");
    assert_false(cot_is_valid(j[0]) || cot_is_valid(y));
    cot_fn_jacobian(outside, &foreign, 1, &x, 1, &y, COT_AUTO, j);
    expect(t, COT_VAR,
           "[fn_jacobian] the function's result ys[0] as operand belongs to another tape; operands of one operation "
           "share a tape");
    cot_var wide = cot_ones(t, COT_F64, COT_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1));
    cot_fn_jacobian(square, NULL, 1, &wide, 1, &y, COT_AUTO, j);
    expect(t, COT_SHAPE,
           "[fn_jacobian] the derivative of a value of shape (1,1,1,1,1,1,1,1,1) by one of shape (1,1,1,1,1,1,1,1,1) "
           "has 18 axes, where a scalar counts as one; at most 16");
    assert_false(cot_is_valid(j[0]));
    cot_fn_hessian(NULL, NULL, 1, &x, &y, j);
    expect(t, COT_VALUE, "[fn_hessian] the function is NULL");
    cot_fn_hessian(square, NULL, 1, &s, &y, NULL);
    expect(t, COT_VALUE, "[fn_hessian] a list of 1 values is NULL");
    cot_fn_hessian(square, NULL, 1, &x, &y, j);
    expect(t, COT_SHAPE,
           "[fn_hessian] the function gives f64 of shape (3,); a Hessian is of one float, use cot_fn_jacobian twice");
    assert_false(cot_is_valid(j[0]) || cot_is_valid(y));
    cot_fn_hessian(is_integer, NULL, 1, &s, &y, j);
    expect(t, COT_SHAPE,
           "[fn_hessian] the function gives i32 of shape (); a Hessian is of one float, use cot_fn_jacobian twice");
    cot_fn_hessian(fails, NULL, 1, &s, &y, j);
    expect(t, COT_CUSTOM, "[fn_hessian] the function failed with code 7");
    cot_tape_destroy(t);
    cot_tape_destroy(other);
}

static void differentiate(cot_tape *t, void *user) {
    (void)user;
    cot_var  xs[2] = {cot_ones(t, COT_F64, COT_SHAPE(2)), cot_scalar(t, 2)}, h[4];
    cot_mode mode = COT_REVERSE;
    cot_fn_jacobian(jacobian_of_cubes, &mode, 2, xs, 2, NULL, COT_FORWARD, h);
    cot_fn_hessian(cubes, NULL, 2, xs, NULL, h);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    assert_survives_no_memory(differentiate, NULL, 0, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jacobians_have_their_closed_forms),
        cmocka_unit_test(blocks_equal_cot_jacobian),
        cmocka_unit_test(the_tape_does_not_grow_with_the_size),
        cmocka_unit_test(hessians_are_jacobians_of_gradients),
        cmocka_unit_test(jacobians_have_derivatives),
        cmocka_unit_test(jacobians_stand_in_loops_and_batches),
        cmocka_unit_test(dtypes_follow_the_inputs),
        cmocka_unit_test(scalars_numbers_and_nothing),
        cmocka_unit_test(errors_say_what_is_wrong),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
