/* test_sweeps.c: special cases of the drivers: inactive values, inputs that are listed twice or
 * depend on each other, large numbers of inputs and outputs. */
#include <float.h>
#include "support/tape_test.h"

static void finish(cot_tape *t) {
    char why[256] = "";
    assert_ok(t);
    cot_tape_check(t, why, sizeof why);
    assert_string_equal(why, "");
    cot_tape_destroy(t);
}

/* ---- inactive operands ----------------------------------------------------------------------- */

/* Scalar runs push to operands without asking whether they are active, so a sweep must pass over
 * inactive nodes of any kind. */
static void inactive_sums_and_dots_are_passed_over(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 3), c[2] = {cot_constant(t, 2), cot_constant(t, 5)};
    cot_var   y = cot_mul(cot_mul(x, cot_sum_of(2, c)), cot_dot_of(2, c, c));
    y = cot_sub(y, cot_mul(0.0, cot_mul(x, cot_logsumexp_of(2, c))));
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

/* ---- kept gradients -------------------------------------------------------------------------- */

/* An adjoint that is a part of a larger one does not keep all of it alive as a gradient. */
static void a_gradient_has_the_size_of_its_leaf(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   ab[2] = {cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}),
                       cot_tensor(t, COT_F64, COT_SHAPE(3), NULL)};
    double    g[2];
    cot_backward(cot_sum(cot_square(cot_concat(2, ab, 0)), COT_ALL));
    cot_read_grad(ab[0], g, 2);
    assert_true(g[0] == 2 && g[1] == 4);
    finish(t);
}

static void a_gradient_has_the_dtype_of_its_value(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar_of(t, COT_F16, 1.0 / 3), u = cot_retain_grad(cot_mul(x, x));
    cot_backward(cot_sin(u));
    assert_true(cot_grad_value(u) == cot_value(cot_grad(u)) && cot_grad_value(x) == cot_value(cot_grad(x)));
    assert_true(cot_grad_value(u) == 0.99365234375);
    finish(t);
}

/* ---- the same Jacobian from both sides ------------------------------------------------------- */

/* Inputs listed twice and inputs that depend on each other: the columns are the same in every mode,
 * for one lane and for many. */
static void check_modes(int m, const cot_var *ys, int n, const cot_var *xs, int rows, int columns, const double *want) {
    double out[64], unit[64] = {0};
    for (cot_mode mode = COT_AUTO; mode <= COT_FORWARD; mode++) {
        cot_jacobian(m, ys, n, xs, mode, out);
        for (int i = 0; i < rows * columns; i++) assert_near(out[i], want[i], 1e-14);
    }
    for (int i = 0; i < columns; i++) { /* one lane at a time */
        unit[i] = 1;
        cot_jvps(1, n, xs, unit, m, ys, out);
        for (int r = 0; r < rows; r++) assert_near(out[r], want[r * columns + i], 1e-14);
        unit[i] = 0;
    }
}

static void inputs_listed_twice(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 3), u = cot_scalar(t, 2), ys[2] = {cot_mul(cot_mul(x, x), u), cot_mul(x, u)},
            xs[3] = {x, x, u};
    check_modes(2, ys, 3, xs, 2, 3, (double[]){12, 12, 9, 2, 2, 3});
    cot_var dy = cot_jvp(ys[0], 3, xs, (cot_var[]){cot_number(1), cot_number(10), cot_number(0)});
    assert_near(cot_value(dy), 132, 0);
    double h[9], hv[3], want_h[9] = {4, 4, 6, 4, 4, 6, 6, 6, 0}, want_hv[3] = {44, 44, 66};
    cot_hessian(ys[0], 3, xs, h);
    for (int i = 0; i < 9; i++) assert_near(h[i], want_h[i], 0);
    cot_hvp(ys[0], 3, xs, (double[]){1, 10, 0}, hv);
    for (int i = 0; i < 3; i++) assert_near(hv[i], want_hv[i], 0);
    cot_var v = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), twice[2] = {v, v}, s = cot_square(v);
    check_modes(1, &s, 2, twice, 2, 4, (double[]){2, 0, 2, 0, 0, 4, 0, 4});
    finish(t);
}

static void inputs_that_depend_on_each_other(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var x = cot_scalar(t, 3), u = cot_mul(x, x), ys[3] = {cot_mul(u, 3.0), cot_mul(u, x), u}, xs[2] = {x, u}, g[2];
    check_modes(3, ys, 2, xs, 3, 2, (double[]){18, 3, 27, 3, 6, 1});
    cot_grad_of(ys[1], 2, xs, g);
    assert_true(cot_value(g[0]) == 27 && cot_value(g[1]) == 3);
    cot_var dy = cot_jvp(ys[1], 2, xs, (cot_var[]){cot_number(1), cot_number(100)});
    assert_true(cot_value(dy) == 327);
    double hv[2];
    cot_hvp(ys[1], 2, xs, (double[]){1, 0}, hv); /* d/dx of (3 x², x) */
    assert_true(hv[0] == 18 && hv[1] == 1);
    cot_var f = cot_scalar_of(t, COT_F32, 3), fu = cot_mul(f, f), fy[2] = {cot_mul(fu, f), fu}, fx[2] = {f, fu};
    check_modes(2, fy, 2, fx, 2, 2, (double[]){27, 3, 6, 1});
    cot_var v = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), w = cot_square(v), sum = cot_sum(w, COT_ALL);
    cot_var vy[2] = {cot_mul(w, v), cot_mul(sum, 2.0)}, vx[3] = {v, w, sum};
    check_modes(2, vy, 3, vx, 3, 5, (double[]){3, 0, 1, 0, 0, 0, 12, 0, 2, 0, 4, 8, 2, 2, 2});
    cot_var end = cot_sum(cot_mul(w, v), COT_ALL), ends[2] = {v, w};
    double  dir[4] = {1, 0, 0, 0}, out[4];
    cot_hvp(end, 2, ends, dir, out);
    assert_true(out[0] == 6 && out[1] == 0 && out[2] == 1 && out[3] == 0);
    finish(t);
}

/* A result that is an input beside its own operand moves by itself, and the weights of a
 * log-sum-exp move with its operands alone. */
static void hessian_products_through_a_result_that_is_an_input(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.3), w = cot_scalar(t, -0.7), z = cot_logsumexp_of(2, (cot_var[]){x, w});
    cot_var   y = cot_mul(z, z), xs[2] = {z, x};
    double    hessian[4], product[2];
    assert_int_equal(cot_hessian(y, 2, xs, hessian), COT_OK);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(cot_hvp(y, 2, xs, (double[]){k == 0, k == 1}, product), COT_OK);
        for (int i = 0; i < 2; i++) assert_near(product[i], hessian[2 * i + k], 8 * DBL_EPSILON);
    }
    finish(t);
}

static int double_value(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    *(double *)y->data = 2 * *(double *)xs[0].data;
    return 0;
}

/* An input that y does not need is not asked for a tangent that it cannot have. */
static void an_input_that_is_not_needed_may_lack_a_derivative(void **state) {
    (void)state;
    const cot_custom op = {.name = "double", .value = double_value};
    cot_tape        *t = cot_tape_create(NULL);
    cot_var          x = cot_scalar(t, 3), u = cot_call(&op, 1, &x, NULL), y = cot_mul(x, x);
    cot_var          dy = cot_jvp(y, 2, (cot_var[]){x, u}, (cot_var[]){cot_number(1), cot_number(1)});
    assert_true(cot_value(dy) == 6);
    finish(t);
}

/* ---- many of everything ---------------------------------------------------------------------- */

/* Many inputs, adjoints that wait at the same time, retained values: each of these took the square
 * of their number once, which at this size is minutes, beyond the time limit of a test. */
static void many_inputs_take_linear_time(void **state) {
    (void)state;
    int       n = test_small() ? 2000 : 400000;
    cot_tape *t = cot_tape_create(NULL);
    cot_var  *xs = malloc((size_t)n * sizeof *xs);
    double   *out = malloc(3 * (size_t)n * sizeof *out);
    for (int i = 0; i < n; i++) xs[i] = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2});
    cot_var sum = xs[0];
    for (int i = 1; i < n; i++) sum = cot_add(cot_mul(sum, 0.5), cot_mul(xs[i], xs[i]));
    cot_backward(cot_sum(sum, COT_ALL));
    cot_read_grad(xs[n - 1], out, 2);
    assert_true(out[0] == 2 && out[1] == 4);
    cot_tape_zero_grads(t);
    for (int i = 0; i < n; i++) xs[i] = cot_retain_grad(cot_mul(cot_scalar(t, i), 2.0));
    cot_var ys[3] = {xs[0], xs[0], xs[0]};
    for (int k = 0; k < 3; k++)
        for (int i = 1; i < n; i++) ys[k] = cot_add(ys[k], cot_mul(xs[i], k + 1));
    cot_vjps(3, 3, ys, (double[]){1, 0, 0, 0, 1, 0, 0, 0, 1}, n, xs, out);
    for (int k = 0; k < 3; k++) assert_true(out[k * n] == 1 && out[k * n + 1] == k + 1 && out[k * n + n - 1] == k + 1);
    cot_backward(ys[2]);
    for (int i = 1; i < n; i++) assert_true(cot_grad_value(xs[i]) == 3);
    cot_tape_zero_grads(t);
    assert_true(cot_grad_value(xs[1]) == 0);
    free(xs);
    free(out);
    finish(t);
}

/* Tensors beside the way from the xs to the ys, even ones whose values are gone, do not concern the
 * lanes. */
static void lanes_pass_over_what_the_outputs_do_not_need(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x[3], y[3], v = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2});
    double    J[2][9];
    for (int i = 0; i < 3; i++) x[i] = cot_scalar(t, i + 1);
    for (int i = 0; i < 3; i++) {
        cot_var aside = cot_exp(cot_mul(v, x[i]));
        cot_sum(cot_square(aside), COT_ALL);
        cot_mul_into(&aside, 2.0);
        y[i] = cot_mul(cot_sin(x[i]), x[(i + 1) % 3]);
    }
    assert_int_equal(cot_jacobian(3, y, 3, x, COT_REVERSE, J[0]), COT_OK);
    assert_int_equal(cot_jacobian(3, y, 3, x, COT_FORWARD, J[1]), COT_OK);
    for (int i = 0; i < 9; i++) assert_true(J[0][i] == J[1][i]);
    assert_true(J[0][0] == cos(1) * 2 && J[0][1] == sin(1) && J[0][2] == 0);
    finish(t);
}

/* They never ended there: the sweep over f64 scalars stood still before a scalar of another
 * dtype. */
static void lanes_pass_over_scalars_of_other_dtypes(void **state) {
    (void)state;
    for (int d = COT_F32; d <= COT_F16; d++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_scalar(t, 0.5), h = cot_scalar_of(t, (cot_dtype)d, 0.75);
        cot_var   beside = cot_square(h), y = cot_mul(x, x);
        double    out[2] = {0};
        (void)beside;
        assert_int_equal(cot_jvps(2, 1, &x, (double[]){1, 2}, 1, &y, out), COT_OK);
        assert_true(out[0] == 1 && out[1] == 2);
        assert_int_equal(cot_vjps(2, 1, &y, (double[]){1, 2}, 1, &x, out), COT_OK);
        assert_true(out[0] == 1 && out[1] == 2);
        assert_int_equal(cot_hessian(y, 1, &x, out), COT_OK);
        assert_true(out[0] == 2);
        finish(t);
    }
}

/* Two elements, one and none are three inputs with three elements in all, which were taken for
 * three scalars. */
static void an_empty_input_moves_no_column(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   two = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), x = cot_scalar(t, 3),
            none    = cot_tensor(t, COT_F64, COT_SHAPE(0), NULL);
    cot_var   xs[3] = {two, x, none}, y = cot_square(x);
    double    out[9];
    for (int mode = COT_AUTO; mode <= COT_FORWARD; mode++) {
        assert_int_equal(cot_jacobian(1, &y, 3, xs, (cot_mode)mode, out), COT_OK);
        assert_true(out[0] == 0 && out[1] == 0 && out[2] == 6);
    }
    assert_int_equal(cot_jvps(2, 3, xs, (double[]){5, 7, 1, 0, 0, 2}, 1, &y, out), COT_OK);
    assert_true(out[0] == 6 && out[1] == 12);
    assert_int_equal(cot_vjps(2, 1, &y, (double[]){1, 2}, 3, xs, out), COT_OK);
    assert_true(out[0] == 0 && out[1] == 0 && out[2] == 6 && out[3] == 0 && out[4] == 0 && out[5] == 12);
    assert_int_equal(cot_hvp(y, 3, xs, (double[]){5, 7, 1}, out), COT_OK);
    assert_true(out[0] == 0 && out[1] == 0 && out[2] == 2);
    assert_int_equal(cot_hessian(y, 3, xs, out), COT_OK);
    for (int i = 0; i < 9; i++) assert_true(out[i] == (i == 8 ? 2 : 0));
    finish(t);
}

/* The nodes between an input and an output when many directions are asked for; each is the
 * identity. */
static cot_var through_f32(cot_var x) {
    return cot_cast(cot_mul(cot_cast(x, COT_F32), cot_scalar_of(x.tape, COT_F32, 1)), COT_F64);
}
static cot_var through_f32_alone(cot_var x) { return cot_cast(cot_relu(cot_cast(x, COT_F32)), COT_F64); }
static cot_var through_a_tensor(cot_var x) { return cot_sum(cot_stack(1, &x, 0), COT_ALL); }
static cot_var through_a_detour(cot_var x) {
    cot_var many[2] = {x, cot_sub(x, x)};
    return cot_sum(cot_stack(2, many, 0), COT_ALL);
}
static cot_var through_scalars(cot_var x) { return cot_mul(x, 1.0); }

/* The tape remembers from which node on it holds only f64 scalars. It must notice every other node,
 * and a rewind must not make it forget a node that is still there. */
static void lanes_notice_what_is_no_scalar(void **state) {
    (void)state;
    cot_var (*const between[])(cot_var) = {through_f32, through_f32_alone, through_a_tensor, through_a_detour,
                                           through_scalars};
    const int count = (int)(sizeof between / sizeof *between);
    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x = cot_scalar(t, 3), u = between[a](x);
            cot_mark  m = cot_tape_mark(t);
            for (int again = 0; again < 2; again++) {
                cot_var y = cot_square(again ? u : between[b](u));
                double  out[2] = {0};
                assert_int_equal(cot_vjps(2, 1, &y, (double[]){1, 2}, 1, &x, out), COT_OK);
                assert_true(out[0] == 6 && out[1] == 12);
                assert_int_equal(cot_jvps(2, 1, &x, (double[]){1, 2}, 1, &y, out), COT_OK);
                assert_true(out[0] == 6 && out[1] == 12);
                assert_int_equal(cot_hessian(y, 1, &x, out), COT_OK);
                assert_true(out[0] == 2);
                cot_tape_rewind(t, m);
            }
            finish(t);
        }
}

/* 0 times anything is 0, in each lane for itself: beside an infinite factor, and where an infinite
 * adjoint meets a factor of 0. */
static void lanes_keep_zeros_beside_infinities(void **state) {
    (void)state;
    const double huge[] = {INFINITY, -INFINITY, NAN, 0, -0.0, 2};
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            for (int lanes = 2; lanes <= 7; lanes++) {
                cot_tape *t = cot_tape_create(NULL);
                cot_var   x = cot_scalar(t, 1.5), y = cot_mul(cot_mul(x, huge[i]), cot_constant(t, huge[j]));
                double    seeds[7] = {0, 1, 0, -2, 0, 0, 3}, out[7], one;
                assert_int_equal(cot_vjps(lanes, 1, &y, seeds, 1, &x, out), COT_OK);
                for (int lane = 0; lane < lanes; lane++) {
                    assert_int_equal(cot_vjps(1, 1, &y, seeds + lane, 1, &x, &one), COT_OK);
                    assert_true(isnan(one) ? isnan(out[lane]) : one == out[lane]);
                    assert_true(out[lane] == 0 || (seeds[lane] != 0 && huge[i] != 0 && huge[j] != 0));
                }
                assert_int_equal(cot_jvps(lanes, 1, &x, seeds, 1, &y, out), COT_OK);
                for (int lane = 0; lane < lanes; lane++) assert_true(out[lane] == 0 || seeds[lane] != 0);
                finish(t);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inactive_sums_and_dots_are_passed_over),
        cmocka_unit_test(a_leaf_made_without_gradients_gets_none),
        cmocka_unit_test(a_gradient_has_the_size_of_its_leaf),
        cmocka_unit_test(a_gradient_has_the_dtype_of_its_value),
        cmocka_unit_test(inputs_listed_twice),
        cmocka_unit_test(inputs_that_depend_on_each_other),
        cmocka_unit_test(hessian_products_through_a_result_that_is_an_input),
        cmocka_unit_test(an_input_that_is_not_needed_may_lack_a_derivative),
        cmocka_unit_test(many_inputs_take_linear_time),
        cmocka_unit_test(lanes_pass_over_what_the_outputs_do_not_need),
        cmocka_unit_test(lanes_pass_over_scalars_of_other_dtypes),
        cmocka_unit_test(an_empty_input_moves_no_column),
        cmocka_unit_test(lanes_notice_what_is_no_scalar),
        cmocka_unit_test(lanes_keep_zeros_beside_infinities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
