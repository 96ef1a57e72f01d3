/* The promises of docs/architecture.md, "Semantics", one test each: derivatives where formulas
 * alone would give NaN, accumulation, control flow, detach, no-grad, and the cases where NumPy's
 * meaning differs from C's. */
/* ctest: timeout=60 */
#include "support/support.h"

#include <math.h>
#include <string.h>

static bool is_near(double a, double b) { return fabs(a - b) <= 1e-12 * (fabs(b) + 1); }
#define NEAR(a, b) assert_true(is_near(a, b))
#define FINE(t)                                                                                                        \
    do {                                                                                                               \
        if (cot_tape_status(t) != COT_OK) fail_msg("%s", cot_tape_message(t));                                         \
    } while (0)

/* y, y', y'', … at x by nested reverse mode (reverse[]) and by nested forward mode (forward[]):
 * order + 1 numbers each. */
typedef cot_var (*curve)(cot_var x);
static void derivatives(curve f, double at, int order, double *reverse, double *forward) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, at), r = f(x), d = r, one = cot_constant(t, 1);
    for (int k = 0; k <= order; k++) {
        reverse[k] = cot_value(r);
        forward[k] = cot_value(d);
        if (k == order) break;
        cot_grad_of(r, 1, &x, &r);
        d = cot_jvp(d, 1, &x, &one);
    }
    FINE(t);
    cot_tape_destroy(t);
}

static void check_derivatives(curve f, double at, int order, const double *want) {
    double reverse[8], forward[8];
    derivatives(f, at, order, reverse, forward);
    for (int k = 0; k <= order; k++) {
        if (!is_near(reverse[k], want[k]) || !is_near(forward[k], want[k]))
            fail_msg("derivative %d at %g: reverse %.17g, forward %.17g, expected %.17g", k, at, reverse[k], forward[k],
                     want[k]);
    }
}
#define DERIVATIVES(f, at, ...) check_derivatives(f, at, COT__COUNT(double, __VA_ARGS__) - 1, (double[]){__VA_ARGS__})

/* ---- zeros in derivatives -------------------------------------------------------------------- */

static cot_var log_squared(cot_var x) { return cot_square(cot_log(x)); }
static cot_var log_squared_pow(cot_var x) { return cot_pow(cot_log(x), 2.0); }
static cot_var log_times_log(cot_var x) { return cot_mul(cot_log(x), cot_log(x)); }

static void hessian_of_log_squared_at_its_minimum(void **state) {
    (void)state;
    /* (log x)²: 0, 0, 2, -6, 22 at 1 */
    DERIVATIVES(log_squared, 1, 0, 0, 2, -6, 22);
    DERIVATIVES(log_squared_pow, 1, 0, 0, 2, -6, 22);
    DERIVATIVES(log_times_log, 1, 0, 0, 2, -6, 22);
}

static cot_var rosenbrock(const cot_var *x) {
    cot_var a = cot_sub(1.0, x[0]), b = cot_sub(x[1], cot_square(x[0]));
    return cot_add(cot_square(a), cot_mul(100.0, cot_square(b)));
}

static void hessian_of_rosenbrock_at_its_minimum(void **state) {
    (void)state;
    static const double want[4] = {802, -400, -400, 200};
    cot_tape           *t = cot_tape_create(NULL);
    cot_var             x[2] = {cot_scalar(t, 1), cot_scalar(t, 1)}, g[2], h[2];
    double              full[4], hv[2];
    cot_var             y = rosenbrock(x);
    cot_hessian(y, 2, x, full);
    for (int i = 0; i < 4; i++) NEAR(full[i], want[i]);
    cot_hvp(y, 2, x, (double[]){1, 2}, hv);
    NEAR(hv[0], 2);
    NEAR(hv[1], 0);
    cot_grad_of(y, 2, x, g);
    for (int i = 0; i < 2; i++) {
        assert_true(cot_value(g[i]) == 0);
        cot_grad_of(g[i], 2, x, h);
        for (int j = 0; j < 2; j++) NEAR(cot_value(h[j]), want[2 * i + j]);
    }
    FINE(t);
    cot_tape_destroy(t);
}

static cot_var guarded_log(cot_var x) { return cot_where(cot_greater(x, 0.0), cot_log(x), cot_constant(x.tape, 0)); }
static cot_var guarded_sqrt(cot_var x) { return cot_where(cot_greater(x, 0.0), cot_sqrt(x), 0.0); }
static cot_var guarded_inverse(cot_var x) { return cot_where(cot_equal(x, 0.0), 1.0, cot_div(cot_sin(x), x)); }

static void the_branch_not_taken_leaves_no_nan(void **state) {
    (void)state;
    DERIVATIVES(guarded_log, 0, 0, 0, 0, 0);
    DERIVATIVES(guarded_sqrt, 0, 0, 0, 0, 0);
    DERIVATIVES(guarded_sqrt, -1, 0, 0, 0, 0);
    DERIVATIVES(guarded_inverse, 0, 1, 0, 0, 0);
    DERIVATIVES(guarded_log, 1, 0, 1, -1, 2);
}

static void the_branch_not_taken_leaves_no_nan_in_tensors(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){0, -1, 2}), g = guarded_log(x);
    double    out[3], want[3] = {0, 0, 0.5};
    for (int order = 0; order < 3; order++) {
        cot_grad_of(cot_sum(g, COT_ALL), 1, &x, &g);
        cot_read(g, out, 3);
        for (int i = 0; i < 3; i++) NEAR(out[i], want[i]);
        want[2] *= order == 0 ? -0.5 : -1; /* 1/x, -1/x², 2/x³ */
    }
    FINE(t);
    cot_tape_destroy(t);
}

static cot_var sin_squared(cot_var x) { return cot_square(cot_sin(x)); }
static cot_var sin_times_sin(cot_var x) { return cot_mul(cot_sin(x), cot_sin(x)); }
static cot_var cube(cot_var x) { return cot_mul(cot_mul(x, x), x); }
static cot_var cube_pow(cot_var x) { return cot_pow(x, 3.0); }
static cot_var cube_integer(cot_var x) { return cot_pow(x, 3); }

static void zero_factors_keep_higher_derivatives(void **state) {
    (void)state;
    DERIVATIVES(sin_squared, 0, 0, 0, 2, 0, -8);
    DERIVATIVES(sin_times_sin, 0, 0, 0, 2, 0, -8);
    DERIVATIVES(cube, 0, 0, 0, 0, 6, 0);
    DERIVATIVES(cube_pow, 0, 0, 0, 0, 6, 0);
    DERIVATIVES(cube_integer, 0, 0, 0, 0, 6, 0);
}

/* ---- powers ---------------------------------------------------------------------------------- */

static cot_var pow_number(cot_var x) { return cot_pow(x, 2.0); }
static cot_var pow_integer(cot_var x) { return cot_pow(x, 2); }
static cot_var pow_constant(cot_var x) { return cot_pow(x, cot_constant(x.tape, 2)); }
static cot_var pow_i64(cot_var x) { return cot_pow(x, cot_data(x.tape, COT_I64, COT_SCALAR, (int64_t[]){2})); }
static cot_var pow_leaf(cot_var x) { return cot_pow(x, cot_scalar(x.tape, 2)); }
static cot_var pow_zero(cot_var x) { return cot_pow(x, 0.0); }
static cot_var pow_one(cot_var x) { return cot_pow(x, 1.0); }

static void squares_by_pow_have_all_derivatives_at_zero(void **state) {
    (void)state;
    static const curve squares[] = {pow_number, pow_integer, pow_constant, pow_i64, pow_leaf};
    for (int i = 0; i < TEST_COUNT(squares); i++) {
        DERIVATIVES(squares[i], 0, 0, 0, 2, 0);
        DERIVATIVES(squares[i], -3, 9, -6, 2, 0); /* a negative base with a whole exponent */
        DERIVATIVES(squares[i], 1.5, 2.25, 3, 2, 0);
    }
    DERIVATIVES(cube_pow, -2, -8, 12, -12, 6, 0);
}

static void zero_to_the_zero_is_one(void **state) {
    (void)state;
    DERIVATIVES(pow_zero, 0, 1, 0, 0, 0);
    DERIVATIVES(pow_one, 0, 0, 1, 0, 0);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0), y = cot_scalar(t, 0), z = cot_pow(x, y);
    cot_backward(z);
    assert_true(cot_value(z) == 1);
    assert_true(cot_grad_value(x) == 0);
    assert_true(cot_grad_value(y) == 0); /* d/dy 0^y is 0 for y > 0, and taken so at 0 */
    FINE(t);
    cot_tape_destroy(t);
}

/* ---- accumulation ---------------------------------------------------------------------------- */

static cot_var x_times_x(cot_var x) { return cot_mul(x, x); }
static cot_var x2_plus_x(cot_var x) { return cot_add(cot_square(x), x); }
static cot_var x_over_x(cot_var x) { return cot_div(x, x); }

static void adjoints_accumulate_at_every_use(void **state) {
    (void)state;
    DERIVATIVES(x_times_x, 3, 9, 6, 2, 0);
    DERIVATIVES(x2_plus_x, 3, 12, 7, 2, 0);
    DERIVATIVES(x_over_x, 3, 1, 0, 0, 0);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){3, -1});
    cot_var   y = cot_sum(cot_add(cot_mul(x, x), cot_add(x, cot_flip(x, COT_ALL))), COT_ALL);
    double    g[2];
    cot_backward(y);
    cot_read_grad(x, g, 2);
    assert_true(g[0] == 8 && g[1] == 0);
    FINE(t);
    cot_tape_destroy(t);
}

static void leaf_gradients_accumulate_until_zeroed(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 3), v = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2});
    cot_var   y = cot_mul(cot_square(x), cot_sum(v, COT_ALL));
    double    g[2];
    cot_backward(y);
    assert_true(cot_grad_value(x) == 18);
    cot_backward(y); /* the same y again */
    assert_true(cot_grad_value(x) == 36);
    cot_backward(cot_mul(x, 2.0)); /* and another */
    assert_true(cot_grad_value(x) == 38);
    cot_read_grad(v, g, 2);
    assert_true(g[0] == 18 && g[1] == 18);
    cot_zero_grad(x);
    assert_true(cot_grad_value(x) == 0);
    cot_read_grad(v, g, 2);
    assert_true(g[0] == 18); /* the other leaf keeps its own */
    cot_tape_zero_grads(t);
    cot_read_grad(v, g, 2);
    assert_true(g[0] == 0 && g[1] == 0);
    cot_backward_seeded(y, 0.5);
    assert_true(cot_grad_value(x) == 9);
    FINE(t);
    cot_tape_destroy(t);
}

static void recorded_gradients_leave_leaf_gradients_alone(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 3), g;
    cot_backward(cot_square(x));
    cot_grad_of(cube(x), 1, &x, &g);
    double hv, one = 1;
    cot_hvp(cube(x), 1, &x, &one, &hv);
    assert_true(cot_value(g) == 27 && hv == 18 && cot_grad_value(x) == 6);
    FINE(t);
    cot_tape_destroy(t);
}

static void intermediate_gradients_are_kept_on_request(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2), u = cot_retain_grad(cot_square(x)), y = cot_mul(u, u);
    cot_var   v = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), w = cot_retain_grad(cot_mul(v, 3.0));
    double    g[2];
    cot_backward(cot_add(y, cot_sum(cot_square(w), COT_ALL)));
    assert_true(cot_grad_value(u) == 8 && cot_grad_value(x) == 32);
    cot_read_grad(w, g, 2);
    assert_true(g[0] == 6 && g[1] == 12);
    cot_backward(y);
    assert_true(cot_grad_value(u) == 16); /* they accumulate too */
    FINE(t);
    cot_tape_destroy(t);
}

static void gradients_with_respect_to_intermediate_values(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2), u = cot_square(x), y = cot_mul(cot_mul(u, u), x), g[2];
    cot_grad_of(y, 2, (cot_var[]){u, x}, g); /* y = u² x, u = x² */
    assert_true(cot_value(g[0]) == 16);
    assert_true(cot_value(g[1]) == 80); /* through u too: 5 x⁴ */
    cot_var du = cot_jvp(y, 1, &u, (cot_var[]){cot_constant(t, 1)});
    assert_true(cot_value(du) == 16);
    cot_grad_of(g[0], 1, &u, &g[0]); /* d(2ux)/du */
    assert_true(cot_value(g[0]) == 4);
    FINE(t);
    cot_tape_destroy(t);
}

static void what_y_does_not_depend_on_gets_zeros(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2), v = cot_tensor(t, COT_F64, COT_SHAPE(2, 2), NULL), y = cot_square(x), late, g[2];
    double    out[4] = {1, 1, 1, 1};
    cot_grad_of(y, 2, (cot_var[]){x, v}, g);
    assert_true(cot_value(g[0]) == 4);
    assert_int_equal(cot_shape_of(g[1]).ndim, 2);
    cot_read(g[1], out, 4);
    for (int i = 0; i < 4; i++) assert_true(out[i] == 0);
    late = cot_scalar(t, 1); /* newer than y */
    cot_grad_of(y, 1, &late, g);
    assert_true(cot_value(g[0]) == 0);
    cot_var dy = cot_jvp(y, 1, &v, (cot_var[]){cot_ones(t, COT_F64, COT_SHAPE(2, 2))});
    assert_true(cot_value(dy) == 0);
    cot_vjps(1, 1, &y, (double[]){1}, 1, &v, out);
    for (int i = 0; i < 4; i++) assert_true(out[i] == 0);
    FINE(t);
    cot_tape_destroy(t);
}

static void several_outputs_and_non_scalar_products(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), s = cot_scalar(t, 3);
    cot_var   ys[2] = {cot_mul(x, s), cot_sum(cot_square(x), COT_ALL)}, xs[2] = {x, s}, g[2];
    double    jacobian[9], out[3], want[9] = {3, 0, 1, 0, 3, 2, 2, 4, 0}, read[2];
    for (cot_mode mode = COT_AUTO; mode <= COT_FORWARD; mode++) {
        cot_jacobian(2, ys, 2, xs, mode, jacobian);
        for (int i = 0; i < 9; i++) NEAR(jacobian[i], want[i]);
    }
    cot_vjps(1, 2, ys, (double[]){1, 10, 100}, 2, xs, out);
    NEAR(out[0], 203);
    NEAR(out[1], 430);
    NEAR(out[2], 21);
    cot_jvps(1, 2, xs, (double[]){1, 10, 100}, 2, ys, out);
    NEAR(out[0], 103);
    NEAR(out[1], 230);
    NEAR(out[2], 42);
    cot_vjp(ys[0], cot_data(t, COT_F64, COT_SHAPE(2), (double[]){1, 10}), 2, xs, g);
    cot_read(g[0], read, 2);
    assert_true(read[0] == 3 && read[1] == 30 && cot_value(g[1]) == 21);
    cot_var dy =
        cot_jvp(ys[0], 2, xs, (cot_var[]){cot_data(t, COT_F64, COT_SHAPE(2), (double[]){1, 10}), cot_constant(t, 100)});
    cot_read(dy, read, 2);
    assert_true(read[0] == 103 && read[1] == 230);
    cot_backward(ys[1]);
    cot_backward_seeded(ys[0], cot_ones(t, COT_F64, COT_SHAPE(2)));
    cot_read_grad(x, read, 2);
    assert_true(read[0] == 5 && read[1] == 7 && cot_grad_value(s) == 3);
    FINE(t);
    cot_tape_destroy(t);
}

/* ---- what stops gradients, and control flow -------------------------------------------------- */

static cot_var detached_square(cot_var x) { return cot_mul(x, cot_detach(x)); }

static void detach_stops_gradients(void **state) {
    (void)state;
    DERIVATIVES(detached_square, 3, 9, 3);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 3), d = cot_detach(cot_square(x));
    assert_true(!cot_requires_grad(d) && cot_value(d) == 9 && cot_requires_grad(x));
    /* nothing to differentiate is an error, not a silent zero */
    assert_int_equal(cot_backward(d), COT_GRAD);
    cot_tape_destroy(t);
}

static void no_grad_scopes_nest(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 3);
    cot_no_grad_open(t);
    cot_no_grad_open(t);
    cot_var a = cot_square(x);
    cot_no_grad_close(t);
    cot_var b = cot_sum(cot_square(x), COT_ALL);
    cot_no_grad_close(t);
    cot_var c = cot_square(x);
    assert_true(!cot_requires_grad(a) && !cot_requires_grad(b) && cot_requires_grad(c));
    cot_backward(cot_add(cot_mul(a, x), c));
    assert_true(cot_grad_value(x) == 9 + 6);
    FINE(t);
    cot_tape_destroy(t);
}

static cot_var branching(cot_var x) { return cot_value(x) > 0 ? cot_square(x) : cot_neg(x); }
static cot_var looping(cot_var x) { /* x^(2^k) until it exceeds 100 */
    cot_var y = x;
    while (fabs(cot_value(y)) <= 100) y = cot_mul(y, y);
    return y;
}

static void control_flow_differentiates_what_ran(void **state) {
    (void)state;
    DERIVATIVES(branching, 2, 4, 4, 2, 0);
    DERIVATIVES(branching, -2, 2, -1);
    DERIVATIVES(looping, 2, 256, 8 * 128, 56 * 64, 336 * 32); /* x⁸ */
    DERIVATIVES(looping, 11, 121, 22, 2, 0);                  /* x² */
}

/* ---- high orders ----------------------------------------------------------------------------- */

static cot_var sine(cot_var x) { return cot_sin(x); }
static cot_var exponential(cot_var x) { return cot_exp(x); }
static cot_var inverse(cot_var x) { return cot_reciprocal(x); }
static cot_var inverse_div(cot_var x) { return cot_div(1.0, x); }

static void fifth_derivatives(void **state) {
    (void)state;
    double s = sin(0.7), c = cos(0.7), e = exp(0.7);
    DERIVATIVES(sine, 0.7, s, c, -s, -c, s, c);
    DERIVATIVES(exponential, 0.7, e, e, e, e, e, e);
    DERIVATIVES(inverse, 2, 0.5, -0.25, 0.25, -0.375, 0.75, -1.875);
    DERIVATIVES(inverse_div, 2, 0.5, -0.25, 0.25, -0.375, 0.75, -1.875);
}

/* ---- kinks ----------------------------------------------------------------------------------- */

static cot_var relu(cot_var x) { return cot_relu(x); }
static cot_var absolute(cot_var x) { return cot_abs(x); }
static cot_var clamped(cot_var x) { return cot_clamp(x, -1.0, 1.0); }
static cot_var tied(cot_var x) { return cot_maximum(x, cot_mul(x, 1.0)); }
static cot_var tied_half(cot_var x) { return cot_maximum(x, 0.0); }
static cot_var hypotenuse(cot_var x) { return cot_hypot(x, 0.0); }

static void kinks_follow_the_written_table(void **state) {
    (void)state;
    DERIVATIVES(relu, 0, 0, 0, 0);
    DERIVATIVES(absolute, 0, 0, 0, 0);
    DERIVATIVES(clamped, 1, 1, 0, 0);
    DERIVATIVES(clamped, -1, -1, 0, 0);
    DERIVATIVES(tied, 3, 3, 1, 0);
    DERIVATIVES(tied_half, 0, 0, 0.5, 0);
    DERIVATIVES(hypotenuse, 0, 0, 0);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(4), (double[]){2, 5, 5, 1}),
            z = cot_tensor(t, COT_F64, COT_SHAPE(2), NULL), s = cot_scalar(t, 0);
    double    g[4];
    cot_backward(cot_max(x, COT_ALL));
    cot_read_grad(x, g, 4);
    assert_true(g[0] == 0 && g[1] == 0.5 && g[2] == 0.5 && g[3] == 0);
    cot_backward(cot_norm(z, 2, COT_ALL));
    cot_read_grad(z, g, 2);
    assert_true(g[0] == 0 && g[1] == 0);
    cot_backward(cot_sqrt(s));
    assert_true(isinf(cot_grad_value(s)));
    FINE(t);
    cot_tape_destroy(t);
}

/* ---- NumPy's meaning ------------------------------------------------------------------------- */

static void round_goes_to_even(void **state) {
    (void)state;
    static const double x[] = {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.49}, want[] = {0, 2, 2, -0.0, -2, -2, 3};
    cot_tape           *t = cot_tape_create(NULL);
    double              out[7];
    cot_read(cot_round(cot_data(t, COT_F64, COT_SHAPE(7), x)), out, 7);
    for (int i = 0; i < 7; i++) assert_true(test_same(out[i], want[i]));
    FINE(t);
    cot_tape_destroy(t);
}

static void max_and_min_propagate_nan(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   one = cot_constant(t, 1), nan = cot_constant(t, (double)NAN);
    assert_true(isnan(cot_value(cot_maximum(one, nan))) && isnan(cot_value(cot_maximum(nan, one))));
    assert_true(isnan(cot_value(cot_minimum(one, nan))) && isnan(cot_value(cot_minimum(nan, one))));
    assert_true(isnan(cot_value(cot_relu(nan))) && isnan(cot_value(cot_clamp(nan, 0.0, 1.0))));
    for (int at = 0; at < 40; at += 13) { /* wherever it stands */
        double x[40];
        for (int i = 0; i < 40; i++) x[i] = i == at ? (double)NAN : i;
        cot_var v = cot_data(t, COT_F64, COT_SHAPE(40), x);
        assert_true(isnan(cot_value(cot_max(v, COT_ALL))) && isnan(cot_value(cot_min(v, COT_ALL))));
    }
    FINE(t);
    cot_tape_destroy(t);
}

static void casts_to_integers_saturate(void **state) {
    (void)state;
    static const double x[] = {1e30, -1e30, (double)NAN, 2.9, -2.9, (double)INFINITY, 300, -1};
    cot_tape           *t = cot_tape_create(NULL);
    int64_t             out[8];
    cot_var             v = cot_data(t, COT_F64, COT_SHAPE(8), x);
    cot_read_as(cot_cast(v, COT_I64), COT_I64, out, 8);
    assert_true(out[0] == INT64_MAX && out[1] == INT64_MIN && out[2] == 0 && out[3] == 2 && out[4] == -2 &&
                out[5] == INT64_MAX);
    cot_read_as(cot_cast(v, COT_I32), COT_I64, out, 8);
    assert_true(out[0] == INT32_MAX && out[1] == INT32_MIN && out[2] == 0 && out[3] == 2 && out[4] == -2 &&
                out[5] == INT32_MAX);
    cot_read_as(cot_cast(v, COT_U8), COT_I64, out, 8);
    assert_true(out[0] == 255 && out[1] == 0 && out[2] == 0 && out[3] == 2 && out[4] == 0 && out[6] == 255 &&
                out[7] == 0);
    for (int i = 0; i < 8; i++) { /* 0-d as well */
        int64_t v64 = cot_value_i64(cot_cast(cot_constant(t, x[i]), COT_U8));
        assert_int_equal(v64, out[i]);
    }
    FINE(t);
    cot_tape_destroy(t);
}

static void variance_divides_by_n_and_int_by_int_is_float(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   v = cot_data(t, COT_F64, COT_SHAPE(4), (double[]){1, 2, 3, 6});
    NEAR(cot_value(cot_variance(v, COT_ALL)), 3.5);
    NEAR(cot_value(cot_std(v, COT_ALL)), sqrt(3.5));
    cot_var a = cot_data(t, COT_I64, COT_SCALAR, (int64_t[]){7}), b = cot_data(t, COT_I64, COT_SCALAR, (int64_t[]){2});
    assert_true(cot_value(cot_div(a, b)) == 3.5);
    assert_int_equal(cot_dtype_of(cot_mul(a, b)), COT_I64);
    assert_int_equal(cot_dtype_of(cot_mul(a, 2)), COT_I64);
    assert_int_equal(cot_dtype_of(cot_mul(a, 2.0)), COT_F64);
    FINE(t);
    cot_tape_destroy(t);
}

/* Numbers alone make a number; integers stay integers, and index where integers are asked for. */
static void numbers_alone_make_numbers(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    d[3] = {5, 6, 7};
    cot_var   x = cot_scalar(t, 2), v = cot_tensor(t, COT_F64, COT_SHAPE(3), d);
    assert_true(cot_value(cot_mul(2.0, 3.0)) == 6);
    assert_true(cot_value(cot_add(x, cot_mul(2.0, 3.0))) == 8);
    assert_true(cot_value(cot_pow(cot_add(1, 1), 3)) == 8);
    assert_int_equal(cot_value_i64(cot_add(INT64_MAX, -1)), INT64_MAX - 1);
    assert_true(cot_value(cot_div(1, 2)) == 0.5);
    assert_true(cot_value(cot_mul(x, UINT64_MAX)) == 2 * 18446744073709551616.0);
    assert_true(cot_value(cot_take(v, cot_integer(1), 0)) == 6);
    assert_true(fabs(cot_value(cot_softmax_cross_entropy(v, cot_integer(2))) - log(1 + exp(-1) + exp(-2))) < 1e-15);
    assert_int_equal(cot_tape_status(t), COT_OK);
    cot_tape_destroy(t);
}

static int same_number(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    *(double *)y->data = *(const double *)xs[0].data;
    return 0;
}

/* Forward mode visits only nodes that y was computed from. A missing rule or an overwritten value
 * elsewhere does not matter. */
static void forward_mode_passes_over_what_y_does_not_need(void **state) {
    (void)state;
    const cot_custom monitor = {.name = "monitor", .value = same_number};
    cot_tape        *t = cot_tape_create(NULL);
    double           d[2] = {1, 2}, J[2], H[4], v[2] = {1, 0};
    cot_var          s = cot_scalar(t, 2), x = cot_tensor(t, COT_F64, COT_SHAPE(2), d), a = cot_exp(x);
    cot_detach(cot_call(&monitor, 1, &s, NULL));
    cot_sum(cot_mul(a, a), COT_ALL);
    cot_add_into(&a, 1.0);
    cot_var y = cot_square(s), z = cot_sum(cot_square(x), COT_ALL);
    assert_int_equal(cot_jacobian(1, &y, 1, &s, COT_FORWARD, J), COT_OK);
    assert_true(J[0] == 4);
    assert_true(cot_value(cot_jvp(y, 1, &s, (cot_var[]){cot_number(1)})) == 4);
    assert_int_equal(cot_hessian(z, 1, &x, H), COT_OK);
    assert_true(H[0] == 2 && H[1] == 0 && H[3] == 2);
    assert_int_equal(cot_hvp(z, 1, &x, v, J), COT_OK);
    assert_true(J[0] == 2 && J[1] == 0);
    cot_tape_destroy(t);
}

static void a_leaf_starts_from_a_value(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   c = cot_data(t, COT_F32, COT_SHAPE(2), (float[]){1, 2}), w = cot_leaf(cot_mul(3.0, c)),
            s = cot_leaf(cot_constant(t, 4));
    double    v[2];
    assert_false(cot_requires_grad(c));
    assert_int_equal(cot_backward(cot_mul(s, cot_sum(cot_square(w), COT_ALL))), COT_OK);
    cot_read_grad(w, v, 2);
    assert_true(v[0] == 24 && v[1] == 48 && cot_grad_value(s) == 45);
    cot_var x = cot_leaf(w); /* its own: nothing flows on to w */
    cot_zero_grad(w);
    cot_backward(cot_sum(x, COT_ALL));
    cot_read_grad(w, v, 2);
    assert_true(v[0] == 0 && v[1] == 0);
    cot_leaf(cot_data(t, COT_I64, COT_SHAPE(1), (int64_t[]){1}));
    assert_string_equal(
        cot_tape_message(t),
        "[tensor] a leaf of dtype i64; only f64, f32, bf16 and f16 have gradients, use cot_data for others");
    cot_tape_destroy(t);
}

/* An f32 run meets the slots of f64 nodes below it, whose lower halves may be zero: 1.0, say. */
static void dtypes_of_scalars_mix_in_one_sweep(void **state) {
    (void)state;
    for (int form = 0; form < 8; form++) {
        cot_tape *t = cot_tape_create(NULL);
        double    g[2];
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, -2}), s = cot_scalar(t, 3),
                f   = cot_scalar_of(t, COT_F32, -2);
        cot_var a   = form & 1 ? cot_sum(cot_square(x), COT_ALL) : cot_square(s),
                b   = cot_cast(cot_square(f), form & 4 ? COT_F32 : COT_F64);
        cot_var   z = form & 2 ? cot_add(a, b) : cot_add(b, a);
        assert_int_equal(cot_backward(z), COT_OK);
        cot_read_grad(x, g, 2);
        assert_true(g[0] == (form & 1 ? 2 : 0));
        assert_true(g[1] == (form & 1 ? -4 : 0));
        assert_true(cot_grad_value(s) == (form & 1 ? 0 : 6));
        assert_true(cot_grad_value(f) == -4);
        cot_tape_destroy(t);
    }
}

/* y = u² with u computed from x: moved apart, dy/dx = 2 u u'(x) and d²y/dx du = 2 u'(x). */
static void inputs_of_second_derivatives_move_apart_or_are_refused(void **state) {
    (void)state;
    static cot_var (*const by[])(cot_var) = {cot_sin, cot_exp};
    for (int k = 0; k < 3; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_scalar(t, 0.5), u = by[k > 0](x), w = k == 2 ? cot_copy(u) : u, y = cot_mul(w, w),
                xs[2] = {x, w};
        double    h[4], out[2], slope = k ? exp(0.5) : cos(0.5);
        if (k == 1) {
            assert_int_equal(cot_hessian(y, 2, xs, h), COT_VALUE);
            assert_string_equal(cot_tape_message(t),
                                "[hessian] one of the xs, v₁, is computed from another by exp, whose derivative reads "
                                "its result, so the "
                                "two cannot be moved apart; compute from a copy of it (cot_copy), and give that");
            cot_tape_clear_error(t);
            assert_int_equal(cot_hvp(y, 2, xs, (double[]){0, 1}, out), COT_VALUE);
            cot_tape_clear_error(t);
            assert_int_equal(cot_hessian(y, 1, &w, h), COT_OK); /* alone it moves */
            assert_true(fabs(h[0] - 2) <= 1e-15);
        } else {
            assert_int_equal(cot_hessian(y, 2, xs, h), COT_OK);
            assert_int_equal(cot_hvp(y, 2, xs, (double[]){0, 1}, out), COT_OK);
            assert_true(fabs(h[1] - 2 * slope) <= 4e-15);
            assert_true(fabs(h[2] - 2 * slope) <= 4e-15);
            assert_true(fabs(out[0] - 2 * slope) <= 4e-15);
        }
        cot_tape_destroy(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_of_second_derivatives_move_apart_or_are_refused),
        cmocka_unit_test(dtypes_of_scalars_mix_in_one_sweep),
        cmocka_unit_test(a_leaf_starts_from_a_value),
        cmocka_unit_test(hessian_of_log_squared_at_its_minimum),
        cmocka_unit_test(hessian_of_rosenbrock_at_its_minimum),
        cmocka_unit_test(the_branch_not_taken_leaves_no_nan),
        cmocka_unit_test(the_branch_not_taken_leaves_no_nan_in_tensors),
        cmocka_unit_test(zero_factors_keep_higher_derivatives),
        cmocka_unit_test(squares_by_pow_have_all_derivatives_at_zero),
        cmocka_unit_test(zero_to_the_zero_is_one),
        cmocka_unit_test(adjoints_accumulate_at_every_use),
        cmocka_unit_test(leaf_gradients_accumulate_until_zeroed),
        cmocka_unit_test(recorded_gradients_leave_leaf_gradients_alone),
        cmocka_unit_test(intermediate_gradients_are_kept_on_request),
        cmocka_unit_test(gradients_with_respect_to_intermediate_values),
        cmocka_unit_test(what_y_does_not_depend_on_gets_zeros),
        cmocka_unit_test(several_outputs_and_non_scalar_products),
        cmocka_unit_test(detach_stops_gradients),
        cmocka_unit_test(no_grad_scopes_nest),
        cmocka_unit_test(control_flow_differentiates_what_ran),
        cmocka_unit_test(fifth_derivatives),
        cmocka_unit_test(kinks_follow_the_written_table),
        cmocka_unit_test(round_goes_to_even),
        cmocka_unit_test(max_and_min_propagate_nan),
        cmocka_unit_test(casts_to_integers_saturate),
        cmocka_unit_test(variance_divides_by_n_and_int_by_int_is_float),
        cmocka_unit_test(numbers_alone_make_numbers),
        cmocka_unit_test(forward_mode_passes_over_what_y_does_not_need),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
