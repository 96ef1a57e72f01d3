/* test_implicit.c: compares values that equations define with closed forms: values, both modes,
 * second order; also solvers of the user's, and errors. */
#include "support/body_test.h"
#include "support/tape_test.h"
#include "tape/tape.h"

#define expect(t, code, text)                                                                                          \
    do {                                                                                                               \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)

/* ---- roots ----------------------------------------------------------------------------------- */

BODY(square_minus) { UNUSED; ys[0] = cot_sub(cot_square(xs[0]), xs[1]); return 0; } /* x² = θ */

static int calls;
static int by_hand(int n, const cot_array *theta, cot_array *x, void *user) {
    (void)n, (void)user;
    calls++;
    ((double *)x->data)[0] = sqrt(((double *)theta[0].data)[0]);
    return 0;
}

static void a_root_has_the_derivatives_of_its_closed_form(void **state) {
    (void)state;
    for (int own = 0; own < 2; own++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   theta = cot_scalar(t, 2),
                x = cot_root(square_minus, NULL, own ? by_hand : NULL, cot_constant(t, 1), 1, &theta, NULL), g, h, k;
        assert_ok(t);
        assert_near(cot_value(x), sqrt(2), 1e-15);
        cot_backward(x);
        assert_ok(t);
        assert_near(cot_grad_value(theta), 0.5 / sqrt(2), 1e-15);
        cot_var dx = cot_jvp(x, 1, &theta, (cot_var[]){cot_constant(t, 3)});
        assert_ok(t);
        assert_near(cot_value(dx), 1.5 / sqrt(2), 1e-15);
        cot_grad_of(x, 1, &theta, &g);
        cot_grad_of(g, 1, &theta, &h);
        cot_grad_of(h, 1, &theta, &k);
        assert_ok(t);
        assert_near(cot_value(h), -0.25 * pow(2, -1.5), 1e-14);
        assert_near(cot_value(k), 0.375 * pow(2, -2.5), 1e-13);
        cot_tape_destroy(t);
    }
    assert_true(calls == 1); /* once: derivatives do not solve again */
}

/* x = tanh(W x + b): captured W, given b */
BODY(next_state) { UNUSED; ys[0] = cot_tanh(cot_add(cot_matmul(*(cot_var *)user, xs[0]), xs[1])); return 0; }

static void a_fixed_point_has_the_gradient_of_its_iterations(void **state) {
    (void)state;
    double    w[9] = {0.1, -0.3, 0.2, 0.4, 0.1, -0.2, 0.05, 0.3, -0.1}, ours[12], theirs[12];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   W    = cot_tensor(t, COT_F64, COT_SHAPE(3, 3), w),
            b      = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){0.3, -0.5, 0.8});
    cot_var zero = cot_zeros(t, COT_F64, COT_SHAPE(3)), x = cot_fixed_point(next_state, &W, NULL, zero, 1, &b, NULL),
            y = zero;
    cot_backward(cot_sum(cot_exp(x), COT_ALL));
    assert_ok(t);
    cot_read(cot_grad(W), ours, 9), cot_read(cot_grad(b), ours + 9, 3);
    cot_tape_zero_grads(t);
    for (int k = 0; k < 200; k++) y = cot_tanh(cot_add(cot_matmul(W, y), b));
    cot_backward(cot_sum(cot_exp(y), COT_ALL));
    cot_read(cot_grad(W), theirs, 9), cot_read(cot_grad(b), theirs + 9, 3);
    for (int k = 0; k < 12; k++) assert_near(ours[k], theirs[k], 1e-13);
    cot_tape_destroy(t);
}

/* ½ Σ a x² - b·x + Σ x⁴/4: the gradient is a x - b + x³ */
BODY(bowl) {
    UNUSED;
    cot_var x2 = cot_square(xs[0]);
    ys[0]      = cot_sum(
             cot_sub(cot_add(cot_mul(cot_mul(0.5, xs[1]), x2), cot_mul(0.25, cot_square(x2))), cot_mul(xs[2], xs[0])),
             COT_ALL);
    return 0;
}

static void a_minimum_moves_as_its_equation_says(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   p[2] = {cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){2, 3}),
                      cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, -2})};
    cot_var   x = cot_minimize(bowl, NULL, NULL, cot_zeros(t, COT_F64, COT_SHAPE(2)), 2, p, NULL);
    double    at[2], da[2], db[2];
    cot_backward(cot_sum(x, COT_ALL));
    assert_ok(t);
    cot_read(x, at, 2), cot_read(cot_grad(p[0]), da, 2), cot_read(cot_grad(p[1]), db, 2);
    for (int k = 0; k < 2; k++) {
        double a = k ? 3 : 2, b = k ? -2 : 1, slope = a + 3 * at[k] * at[k];
        assert_near(a * at[k] + at[k] * at[k] * at[k], b, 1e-14);
        assert_near(da[k], -at[k] / slope, 1e-14);
        assert_near(db[k], 1 / slope, 1e-14);
    }
    cot_tape_destroy(t);
}

/* (1.3 - a)² + 100 (b - a²)²: a curved valley */
BODY(valley) {
    UNUSED;
    cot_var a = cot_slice(xs[0], 0, 0, 1, 1), b = cot_slice(xs[0], 0, 1, 2, 1);
    cot_var up = cot_mul(100.0, cot_square(cot_sub(b, cot_square(a))));
    ys[0] = cot_sum(cot_add(cot_square(cot_sub(1.3, a)), up), COT_ALL);
    return 0;
}

/* Σ x⁴ - θ x²: a maximum at 0, minima at ±√(θ/2) */
BODY(two_wells) {
    UNUSED;
    cot_var x2 = cot_square(xs[0]);
    ys[0] = cot_sum(cot_sub(cot_square(x2), cot_mul(xs[1], x2)), COT_ALL);
    return 0;
}

/* Σ x² with signs: a saddle at 0, and no minimum */
BODY(saddle) { UNUSED; ys[0] = cot_sum(cot_mul(xs[1], cot_square(xs[0])), COT_ALL); return 0; }

BODY(steep) {
    UNUSED;
    cot_var a = cot_slice(xs[0], 0, 0, 1, 1), b = cot_slice(xs[0], 0, 1, 2, 1);
    ys[0] = cot_sum(cot_add(cot_mul(5e9, cot_square(cot_sub(a, 1.0))), cot_sin(b)), COT_ALL);
    return 0;
}

static int stays(int n, const cot_array *theta, cot_array *x, void *user) {
    (void)n, (void)theta, (void)x, (void)user;
    return 0;
}

static void minima_are_found_not_maxima_or_saddles(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    at[200], g;
    for (int k = 0; k < 2; k++) {
        cot_var far = cot_data(t, COT_F64, COT_SHAPE(2), k ? (double[]){-1.2, 1} : (double[]){30, -40});
        cot_read(cot_minimize(valley, NULL, NULL, far, 0, NULL, NULL), at, 2);
        assert_ok(t);
        assert_near(at[0], 1.3, 1e-13);
        assert_near(at[1], 1.69, 1e-13);
    }
    /* on the maximum, beside it, beyond a minimum */
    static const double starts[] = {0, 0.1, -5, 1e-9};
    cot_var             theta = cot_scalar(t, 2);
    for (int k = 0; k < 4; k++) {
        cot_var x = cot_minimize(two_wells, NULL, NULL, cot_constant(t, starts[k]), 1, &theta, NULL), dx;
        assert_near(fabs(cot_value(x)), 1, 1e-14);
        cot_grad_of(x, 1, &theta, &dx); /* of √(θ/2) */
        assert_near(cot_value(dx), cot_value(x) / 4, 1e-14);
    }
    for (int n = 3; n <= 200; n += 197) { /* the negative curvature of many at once, f64 and f32 */
        cot_dtype d = n == 3 ? COT_F64 : COT_F32;
        cot_var   x = cot_minimize(two_wells, NULL, NULL, cot_zeros(t, d, COT_SHAPE(n)), 1, &theta, NULL);
        assert_ok(t);
        cot_read(x, at, n);
        for (int k = 0; k < n; k++) assert_near(fabs(at[k]), 1, d == COT_F64 ? 1e-14 : 1e-5);
    }
    for (int k = -3; k <= 3; k++) {
        /* a steep start: 5e9 (a - 1)² + sin b, whose minima are where sin b has its minima */
        cot_var start = cot_data(t, COT_F64, COT_SHAPE(2), (double[]){3, k - 0.4});
        cot_read(cot_minimize(steep, NULL, NULL, start, 0, NULL, NULL), at, 2);
        assert_ok(t);
        assert_near(at[0], 1, 1e-12);
        assert_near(sin(at[1]), -1, 1e-12);
    }
    /* a saddle among a hundred, its curvature a twenty-thousandth of the largest */
    double spread[100];
    for (int k = 0; k < 100; k++) spread[k] = k == 50 ? -0.5 : pow(1e4, k / 99.0);
    cot_minimize(saddle, NULL, NULL, cot_zeros(t, COT_F64, COT_SHAPE(100)), 1,
                 (cot_var[]){cot_data(t, COT_F64, COT_SHAPE(100), spread)}, NULL);
    assert_non_null(strstr(cot_tape_message(t), "[minimize] the solver did not converge"));
    cot_tape_clear_error(t);
    cot_var signs = cot_data(t, COT_F64, COT_SHAPE(2), (double[]){1, -1}), ones = cot_ones(t, COT_F64, COT_SHAPE(2));
    for (int k = 0; k < 2; k++) {
        cot_minimize(saddle, NULL, NULL, k ? ones : cot_zeros(t, COT_F64, COT_SHAPE(2)), 1, &signs, NULL);
        assert_int_equal(cot_tape_status(t), COT_VALUE);
        assert_non_null(strstr(cot_tape_message(t), "[minimize] the solver did not converge: the function is -"));
        assert_non_null(
            strstr(cot_tape_message(t), " after 100 of at most 100 steps (.iterations), from a gradient of "));
        assert_non_null(strstr(cot_tape_message(t),
                               " was asked; there may be no minimum; give a better start, or a solver of your own"));
        cot_tape_clear_error(t);
    }
    cot_var peak = cot_constant(t, 0);
    cot_minimize(two_wells, NULL, stays, peak, 1, &theta, NULL);
    expect(t, COT_VALUE,
           "[minimize] what the solver found is no minimum: the function bends down there; INFINITY is a tolerance "
           "that takes all");
    assert_true(cot_is_valid(
        cot_minimize(two_wells, NULL, stays, peak, 1, &theta, &(cot_solve_options){.tolerance = INFINITY})));
    assert_true(cot_is_valid(cot_minimize(two_wells, NULL, stays, cot_constant(t, 1), 1, &theta, NULL)));
    g = cot_value(
        cot_minimize(two_wells, NULL, NULL, cot_constant(t, 0.1), 1, &theta, &(cot_solve_options){.iterations = 1}));
    assert_true(isnan(g));
    cot_tape_destroy(t);
}

/* ---- linear systems without a matrix --------------------------------------------------------- */

/* (c + 2) x[i] - x[i-1] - 0.5 x[i+1]: not symmetric */
BODY(stencil) {
    UNUSED;
    cot_var left = cot_pad(cot_slice(xs[0], 0, 0, -1, 1), COT_SHAPE(1), COT_SHAPE(0), 0);
    cot_var right = cot_pad(cot_slice(xs[0], 0, 1, COT_END, 1), COT_SHAPE(0), COT_SHAPE(1), 0);
    ys[0] = cot_sub(cot_sub(cot_mul(cot_add(*(cot_var *)user, 2.0), xs[0]), left), cot_mul(0.5, right));
    return 0;
}

static void a_linear_solve_equals_the_matrix(void **state) {
    (void)state;
    for (int n = 5; n <= 300; n += 295) {
        cot_tape *t = cot_tape_create(NULL);
        double   *numbers = malloc((size_t)n * sizeof *numbers), *ours = malloc((size_t)n * 2 * sizeof *ours);
        for (int k = 0; k < n; k++) numbers[k] = sin(k + 1.);
        cot_var b = cot_tensor(t, COT_F64, COT_SHAPE(n), numbers), c = cot_scalar(t, 0.7),
                x   = cot_linear_solve(stencil, &c, b, NULL), g[2], h[2];
        cot_var eye = cot_eye(t, COT_F64, n, n);
        cot_var low = cot_diag(cot_ones(t, COT_F64, COT_SHAPE(n - 1)), -1),
                up  = cot_diag(cot_ones(t, COT_F64, COT_SHAPE(n - 1)), 1);
        cot_var a = cot_sub(cot_sub(cot_mul(cot_add(c, 2.0), eye), low), cot_mul(0.5, up)), z = cot_solve(a, b);
        cot_var f = cot_sum(cot_sin(x), COT_ALL), q = cot_sum(cot_sin(z), COT_ALL), wrt[2] = {b, c};
        assert_int_equal(cot_grad_of(f, 2, wrt, g), COT_OK);
        assert_int_equal(cot_grad_of(q, 2, wrt, h), COT_OK);
        assert_ok(t);
        /* A is at least 2.7 - 1 - 0.5 = 1.2 from singular, and residuals are 1e-12 of the right
         * sides, b and cos x: so in the norm x is within dx, and λ within dl; all further numbers
         * are products of such vectors. */
        double nb = sqrt(n) * 1., dx = 1e-12 * nb / 1.2, dl = (1e-12 * nb + dx) / 1.2;
        assert_near(cot_value(f), cot_value(q), sqrt(n) * dx);
        assert_near(cot_value(g[1]), cot_value(h[1]), dl * nb / 1.2 + dx * nb / 1.2);
        cot_read(g[0], ours, n), cot_read(h[0], ours + n, n);
        for (int k = 0; k < n; k++) assert_near(ours[k], ours[n + k], 1e-10);
        cot_var gg, hh;
        cot_grad_of(g[1], 1, &c, &gg), cot_grad_of(h[1], 1, &c, &hh);
        assert_ok(t);
        assert_near(cot_value(gg), cot_value(hh), 1e-9);
        assert_near(cot_value(cot_jvp(f, 1, &c, (cot_var[]){cot_constant(t, 1)})), cot_value(h[1]), 1e-10);
        cot_tape_destroy(t);
        free(numbers), free(ours);
    }
}

/* ---- other shapes, sizes and dtypes ---------------------------------------------------------- */

/* The same stencil, along the rows of whatever shape x has: Σ over an axis of 4 x - neighbours,
 * plus c x³. */
BODY(reaction) {
    UNUSED;
    cot_var x = xs[0], theta = xs[1], sides = cot_add(cot_flip(x, COT_AXES(0)), cot_flip(x, COT_AXES(1)));
    ys[0] =
        cot_sub(cot_add(cot_sub(cot_mul(4.0, x), sides), cot_mul(*(cot_var *)user, cot_mul(x, cot_square(x)))), theta);
    return 0;
}

static void many_unknowns_of_any_shape(void **state) {
    (void)state;
    for (int rows = 3; rows <= 20; rows += 17) { /* 9 unknowns by a matrix, 400 without one */
        cot_tape *t = cot_tape_create(NULL);
        double   *numbers = malloc((size_t)(rows * rows) * 2 * sizeof *numbers), *grad = numbers + rows * rows;
        for (int k = 0; k < rows * rows; k++) numbers[k] = 0.5 + cos(k * 1.3);
        cot_var theta = cot_transpose(cot_tensor(t, COT_F64, COT_SHAPE(rows, rows), numbers)), c = cot_scalar(t, 0.3);
        cot_var x = cot_root(reaction, &c, NULL, cot_zeros(t, COT_F64, COT_SHAPE(rows, rows)), 1, &theta, NULL), g[2],
                h;
        cot_var in[2] = {x, theta}, residual, f = cot_sum(cot_square(x), COT_ALL);
        reaction(2, in, 1, &residual, &c);
        assert_near(cot_value(cot_norm(residual, 2, COT_ALL)), 0, 1e-10 * (1 + sqrt(rows * rows * 2.25)));
        assert_int_equal(cot_grad_of(f, 2, (cot_var[]){theta, c}, g), COT_OK);
        assert_int_equal(cot_grad_of(g[1], 1, &c, &h), COT_OK);
        /* dF: (4 + 3 c x² - sides) dx = -x³ dc, solved for by a plain difference in c */
        double step = 1e-4, at[2];
        for (int k = 0; k < 2; k++) {
            cot_var near = cot_constant(t, 0.3 + (k ? step : -step));
            at[k] = cot_value(cot_sum(cot_square(cot_root(reaction, &near, NULL, x, 1, &theta, NULL)), COT_ALL));
        }
        double slope = (at[1] - at[0]) / (2 * step), curve = (at[1] + at[0] - 2 * cot_value(f)) / (step * step);
        assert_ok(t);
        /* differences: f‴ step²/6, and rounding of f, about 1e2, by step */
        assert_near(cot_value(g[1]), slope, 1e-7);
        /* the error is of order step² */
        assert_near(cot_value(h), curve, 1e-3);
        assert_near(cot_value(cot_jvp(f, 1, &c, (cot_var[]){cot_constant(t, 2)})), 2 * cot_value(g[1]), 1e-9);
        cot_backward(f);
        assert_ok(t);
        cot_read(g[0], grad, rows * rows);
        assert_near(cot_grad_value(c), cot_value(g[1]), 1e-12);
        assert_true(grad[0] != 0);
        cot_tape_destroy(t);
        free(numbers);
    }
}

BODY(diagonal) { UNUSED; ys[0] = cot_mul(cot_add(cot_square(*(cot_var *)user), 1.0), xs[0]); return 0; }

/* As exact as the dtype allows, by elimination and by GMRES. */
static void fewer_bits_solve_too(void **state) {
    (void)state;
    static const struct {
        cot_dtype dtype;
        double    tolerance;
    } kinds[] = {{COT_F32, 1e-5}, {COT_F16, 5e-2}, {COT_BF16, 5e-2}};
    for (int d = 0; d < 3; d++)
        for (int n = 2; n <= 80; n += 78) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   c = cot_scalar_of(t, kinds[d].dtype, 0.5),
                    b   = cot_cast(cot_full(t, COT_F64, COT_SHAPE(n), 2.5), kinds[d].dtype), g;
            cot_var   x = cot_linear_solve(diagonal, &c, b, NULL), theta = cot_square(cot_add(c, 1.0));
            cot_var   r = cot_root(square_minus, NULL, NULL, cot_full(t, kinds[d].dtype, COT_SHAPE(n), 1), 1,
                                   (cot_var[]){cot_add(cot_mul(b, 0.0), theta)}, NULL);
            assert_int_equal(cot_dtype_of(x), kinds[d].dtype);
            assert_int_equal(cot_dtype_of(r), kinds[d].dtype);
            double out[80];
            cot_read(x, out, n);
            for (int k = 0; k < n; k++) assert_near(out[k], 2, kinds[d].tolerance);
            cot_read(r, out, n);
            for (int k = 0; k < n; k++) assert_near(out[k], 1.5, kinds[d].tolerance);
            cot_grad_of(cot_add(cot_index(x, 0, 1), cot_index(r, 0, 0)), 1, &c, &g);
            assert_ok(t);
            /* two solves, each of that */
            assert_near(cot_value(g), -2.5 * 2 * 0.5 / (1.25 * 1.25) + 1, 10 * kinds[d].tolerance);
            cot_tape_destroy(t);
        }
}

/* A solver of the user's, which reads parameters of every kind, runs at every step of a loop and
 * not while the body is recorded. */
static int seen_calls;
static int divides(int n, const cot_array *theta, cot_array *x, void *user) {
    (void)user;
    seen_calls++;
    if (n != 2 || theta[0].shape.ndim != 1 || theta[0].size != 2 || theta[1].shape.ndim != 0 ||
        theta[1].dtype != COT_I64)
        return 1;
    for (int k = 0; k < 2; k++)
        ((double *)x->data)[k] = ((double *)theta[0].data)[k] / (double)((int64_t *)theta[1].data)[0];
    return 0;
}
BODY(quotient) { UNUSED; ys[0] = cot_sub(cot_mul(xs[0], cot_cast(xs[2], COT_F64)), xs[1]); return 0; }
BODY(divide_step) {
    UNUSED;
    cot_var theta[2] = {cot_flip(xs[1], COT_ALL), xs[0]};
    ys[0] = cot_root(quotient, NULL, divides, xs[1], 2, theta, &(cot_solve_options){.tolerance = 1e-12});
    return 0;
}

static void a_solver_runs_at_every_step(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){6, 18}), y;
    seen_calls = 0;
    cot_fori(divide_step, NULL, 1, 4, 1, &x, &y, NULL);
    assert_ok(t);
    assert_int_equal(seen_calls, 3);
    double out[2];
    cot_read(y, out, 2);
    assert_near(out[0], 3, 1e-15);
    assert_near(out[1], 1, 1e-15);
    cot_backward(cot_index(y, 0, 0));
    cot_read(cot_grad(x), out, 2);
    assert_ok(t);
    assert_near(out[0], 0, 0);
    assert_near(out[1], 1. / 6, 1e-15);
    cot_tape_destroy(t);
}

/* The result of a solver of the user's is checked: a third of the digits of the terms is enough,
 * whatever their size, and fewer are not. */
typedef struct off { double by; } off;
static int roughly(int n, const cot_array *theta, cot_array *x, void *user) {
    (void)n;
    double root = sqrt(x->dtype == COT_F32 ? (double)((float *)theta[0].data)[0] : ((double *)theta[0].data)[0]) *
                  (1 + ((off *)user)->by);
    if (x->dtype == COT_F32) ((float *)x->data)[0] = (float)root;
    else ((double *)x->data)[0] = root;
    return 0;
}

static void a_solver_is_not_believed(void **state) {
    (void)state;
    /* |F| = θ |(1 + by)² - 1| = 2 by θ against |∂F/∂x x| = 2θ and |F| at the start, θ |4 - 1| = 3θ:
     * allowed is by < 2.5 · 2^-17 = 1.9e-5 in f64, 2.5 · 2^-8 = 9.8e-3 in f32, at any scale of the
     * equation */
    for (int f32 = 0; f32 < 2; f32++)
        for (double theta = 1e-18; theta < 1e19; theta *= 1e6)
            for (int far = 0; far < 2; far++) {
                cot_tape *t = cot_tape_create(NULL);
                cot_dtype dtype = f32 ? COT_F32 : COT_F64;
                cot_var   c = cot_scalar_of(t, dtype, theta), x0 = cot_cast(cot_constant(t, 2 * sqrt(theta)), dtype);
                off       o = {f32 ? (far ? 1.1e-2 : 8.5e-3) : (far ? 2.1e-5 : 1.7e-5)};
                bool      taken = cot_is_valid(cot_root(square_minus, &o, roughly, x0, 1, &c, NULL));
                if (taken == far)
                    fail_msg("%s, theta %g, off by %g: %s", f32 ? "f32" : "f64", theta, o.by,
                             taken ? "taken" : cot_tape_message(t));
                cot_tape_destroy(t);
            }
    /* A start where F has no value, and one that is the solution. */
    cot_tape *t = cot_tape_create(NULL);
    off       o = {1e-7};
    cot_var   c = cot_scalar(t, 2);
    assert_true(cot_is_valid(cot_root(square_minus, &o, roughly, cot_constant(t, NAN), 1, &c, NULL)));
    o.by = 0;
    assert_true(cot_is_valid(cot_root(square_minus, &o, roughly, cot_constant(t, sqrt(2)), 1, &c, NULL)));
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- singular systems whose pivots rounding hides -------------------------------------------- */

BODY(off_the_mean) { UNUSED; ys[0] = cot_sub(xs[0], cot_mean(xs[0], COT_KEEP_ALL)); return 0; }
BODY(by_matrix) { UNUSED; ys[0] = cot_matmul(*(cot_var *)user, xs[0]); return 0; }

/* Elimination leaves pivots of 1e-16, and solves a system nearby with an x of 1e16 whose A x is any
 * vector. */
static void singular_systems_are_seen_by_their_residual(void **state) {
    (void)state;
    const double no[2][3] = {{1, 2, 3}, {1, 2, 4}}, rows[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, yes[3] = {6, 15, 24};
    for (int low = 0; low < 2; low++)
        for (int given = 0; given < 2; given++)
            for (int which = 0; which < 2; which++) {
                cot_dtype         dtype = low ? COT_F32 : COT_F64;
                cot_tape         *t = cot_tape_create(NULL);
                cot_var           m     = cot_cast(cot_tensor(t, COT_F64, COT_SHAPE(3, 3), rows), dtype),
                        b               = cot_cast(cot_tensor(t, COT_F64, COT_SHAPE(3), no[which]), dtype);
                cot_solve_options o = {.tolerance = low ? 1e-5 : 1e-12};
                assert_false(
                    cot_is_valid(cot_linear_solve(which ? by_matrix : off_the_mean, &m, b, given ? &o : NULL)));
                assert_int_equal(cot_tape_status(t), COT_VALUE);
                assert_non_null(strstr(cot_tape_message(t),
                                       "[linear_solve] the solver did not converge: after 3 steps the residual is "));
                assert_non_null(
                    strstr(cot_tape_message(t), given ? low ? "at most 1e-05 is taken" : "at most 1e-12 is taken"
                                                : low ? "at most 0.00390625 is taken"
                                                      : "at most 7.62939e-06 is taken"));
                assert_string_equal(cot_tape_note(t), "");
                cot_tape_destroy(t);
            }
    cot_tape *t = cot_tape_create(NULL);
    cot_var   m = cot_tensor(t, COT_F64, COT_SHAPE(3, 3), rows), b = cot_tensor(t, COT_F64, COT_SHAPE(3), yes), y;
    cot_var   x = cot_linear_solve(by_matrix, &m, b, NULL); /* (1, 1, 1) and others solve it */
    double    got[3];
    by_matrix(1, &x, 1, &y, &m);
    cot_read(y, got, 3);
    assert_ok(t);
    for (int k = 0; k < 3; k++) assert_near(got[k], yes[k], 24e-12);
    cot_tape_destroy(t);
}

/* Hilbert's matrix of order 8 has a condition of 1.5e10: whatever is solved with it, the residual
 * is rounding, but more than 1e-12 of |b|. */
static void ill_conditioned_systems_are_solved(void **state) {
    (void)state;
    enum { N = 8 };
    double h[N * N], got[N], residual = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) h[i * N + j] = 1.0 / (i + j + 1);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   m = cot_tensor(t, COT_F64, COT_SHAPE(N, N), h), b = cot_ones(t, COT_F64, COT_SHAPE(N)),
            x = cot_linear_solve(by_matrix, &m, b, NULL), y;
    assert_ok(t);
    by_matrix(1, &x, 1, &y, &m);
    cot_read(y, got, N);
    for (int i = 0; i < N; i++) residual = fmax(residual, fabs(got[i] - 1));
    if (residual <= 1e-12) fail_msg("%g is no residual of an ill-conditioned system", residual);
    /* a tolerance that was asked for is kept */
    assert_false(cot_is_valid(cot_linear_solve(by_matrix, &m, b, &(cot_solve_options){.tolerance = 1e-14})));
    cot_tape_clear_error(t);
    assert_true(cot_is_valid(cot_linear_solve(by_matrix, &m, b, &(cot_solve_options){.tolerance = 1e-6})));
    assert_true(cot_is_valid(cot_linear_solve(by_matrix, &m, cot_zeros(t, COT_F64, COT_SHAPE(N)),
                                              &(cot_solve_options){.tolerance = INFINITY})));
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- errors ---------------------------------------------------------------------------------- */

BODY(no_root) { UNUSED; ys[0] = cot_add(cot_square(xs[0]), 1.0); return 0; }
BODY(singular) { UNUSED; ys[0] = cot_mul(xs[0], 0.0); return 0; }
BODY(narrows) { UNUSED; ys[0] = cot_cast(xs[0], COT_F32); return 0; }
BODY(sums) { UNUSED; ys[0] = cot_sum(xs[0], COT_ALL); return 0; }
static int gives_up(int n, const cot_array *theta, cot_array *x, void *user) {
    (void)n, (void)theta, (void)user;
    ((double *)x->data)[0] = 3;
    return 5;
}

static int far_off(int n, const cot_array *theta, cot_array *x, void *user) {
    (void)n, (void)theta, (void)user;
    ((double *)x->data)[0] = 3;
    return 0;
}
static int not_a_number(int n, const cot_array *theta, cot_array *x, void *user) {
    (void)n, (void)theta, (void)user;
    ((double *)x->data)[0] = (double)NAN;
    return 0;
}
BODY(sets_nothing) { UNUSED; return 0; }
static cot_var outside;
static int     by_sweeping(int n, const cot_array *theta, cot_array *x, void *user) {
    (void)n, (void)theta, (void)user, (void)x;
    cot_backward(outside);
    return 0;
}
BODY(sweeps_inside) { UNUSED; ys[0] = cot_sub(xs[0], xs[1]); return 0; }
BODY(given_fails) { UNUSED; return 9; }
BODY(same) { UNUSED; ys[0] = xs[0]; return 0; }

BODY(long_chain) {
    /* -x'' + x³ = θ, whose linear systems take GMRES as many steps as it has points, and more after
     * a restart */
    UNUSED;
    cot_var p = cot_pad(xs[0], COT_SHAPE(1), COT_SHAPE(1), 0);
    cot_var near = cot_add(cot_slice(p, 0, 0, -2, 1), cot_slice(p, 0, 2, COT_END, 1));
    ys[0] = cot_sub(cot_add(cot_sub(cot_mul(2, xs[0]), near), cot_mul(1e-4, cot_pow(xs[0], 3))), xs[1]);
    return 0;
}
BODY(cube_minus) { UNUSED; ys[0] = cot_sub(cot_pow(xs[0], 3), xs[1]); return 0; }
BODY(quartic) {
    UNUSED;
    ys[0] = cot_sub(cot_sum(cot_pow(xs[0], 4), COT_ALL), cot_mul(xs[1], cot_sum(xs[0], COT_ALL)));
    return 0;
}
BODY(root_near) { UNUSED; ys[0] = cot_root(square_minus, NULL, NULL, xs[0], 1, &xs[1], NULL); return 0; }
BODY(root_minus) { UNUSED; ys[0] = cot_sub(cot_sqrt(xs[0]), xs[1]); return 0; }

static void linear_systems_within_say_what_they_are_for(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   theta = cot_scalar(t, 0.01), zero = cot_scalar(t, 0), start = cot_zeros(t, COT_F64, COT_SHAPE(150)), x;
    cot_root(long_chain, NULL, NULL, start, 1, &theta, NULL);
    assert_non_null(strstr(cot_tape_message(t),
                           "[root] a step of Newton's method was not found: its linear system has a residual of "));
    assert_non_null(strstr(cot_tape_message(t), " times its right side after 1000 of at most 1000 steps, at most 1e-12 "
                                                "is taken; ∂F/∂x is singular there, or nearly, or "
                                                "more .iterations find it; |F| is "));
    cot_tape_clear_error(t);
    x = cot_root(long_chain, NULL, NULL, start, 1, &theta, &(cot_solve_options){.iterations = 100000});
    assert_ok(t);
    cot_backward(cot_sum(x, COT_ALL));
    assert_ok(t);
    /* x² = θ from 0, where its slope is 0 */
    cot_root(square_minus, NULL, NULL, zero, 1, &theta, NULL);
    expect(t, COT_VALUE,
           "[root] a step of Newton's method was not found: its linear system has a residual of 1 times its right side "
           "after 1 of at most 1 steps, "
           "at most 7.62939e-06 is taken; ∂F/∂x is singular there, or nearly; |F| is 0.01 after 0 steps; give a better "
           "start, or a solver of your own");
    cot_root(root_minus, NULL, NULL, zero, 1, &theta, NULL);
    expect(t, COT_VALUE,
           "[root] a step of Newton's method was not found: ∂F/∂x is not finite there; |F| is 0.01 after 0 steps; give "
           "a better start, or a solver of "
           "your own");
    cot_var each[2] = {cot_data(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, NAN}), cot_ones(t, COT_F64, COT_SHAPE(3))};
    cot_vmap(root_near, NULL, 2, each, NULL, 1, &x, NULL);
    expect(t, COT_VALUE,
           "[root] |F| is NaN at x0; give a start where it has a value (in example 2 of the batch) (in the body of "
           "[vmap])");
    for (int k = 0; k < 3; k++) { /* x³ = 0: a root with no derivative, forward and back */
        x = k < 2 ? cot_root(cube_minus, NULL, stays, zero, 1, &zero, NULL)
                  : cot_minimize(quartic, NULL, stays, zero, 1, &zero, &(cot_solve_options){.tolerance = INFINITY});
        assert_ok(t);
        if (k) cot_backward(x);
        else cot_jvp(x, 1, &zero, (cot_var[]){cot_number(1)});
        char want[400];
        snprintf(want, sizeof want,
                 "[%s] the derivative of the solution was not found: its linear system has a residual of 1 times its "
                 "right side after 1 of at most "
                 "1 steps, at most 7.62939e-06 is taken; %s is singular there, or nearly",
                 k < 2 ? "root" : "minimize", k < 2 ? "∂F/∂x" : "∂²f/∂x²");
        expect(t, COT_VALUE, want);
    }
    cot_tape_destroy(t);
}

static void solvers_that_fail_say_how_far_they_came(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x0 = cot_constant(t, 1), theta = cot_scalar(t, 2), three = cot_zeros(t, COT_F64, COT_SHAPE(3)),
            whole = cot_data(t, COT_I64, COT_SHAPE(2), NULL);
    outside = cot_square(theta);
    assert_false(cot_is_valid(cot_root(no_root, NULL, NULL, x0, 0, NULL, NULL)));
    assert_int_equal(cot_tape_status(t), COT_VALUE);
    assert_non_null(strstr(cot_tape_message(t), "[root] a step of Newton's method was not found: its linear system "));
    assert_non_null(
        strstr(cot_tape_message(t), "; |F| is 1 after 1 steps; give a better start, or a solver of your own"));
    cot_tape_clear_error(t);
    cot_root(no_root, NULL, NULL, cot_constant(t, 3), 0, NULL, NULL);
    assert_non_null(strstr(cot_tape_message(t), "[root] the solver did not converge: the residual is "));
    assert_non_null(strstr(
        cot_tape_message(t),
        " was asked, and no step brings it lower: give a better start, a larger .tolerance, or a solver of your own"));
    cot_tape_clear_error(t);
    cot_root(square_minus, NULL, NULL, x0, 1, &theta, &(cot_solve_options){.iterations = 2});
    expect(t, COT_VALUE,
           "[root] the solver did not converge: the residual is 0.00694444 after 2 steps, from 1 at the start; at most "
           "2e-10 was asked, in so many "
           "steps (.iterations)");
    cot_root(square_minus, NULL, NULL, x0, 1, &theta, &(cot_solve_options){.tolerance = 1e-30});
    assert_non_null(strstr(cot_tape_message(t),
                           " steps, from 1 at the start; at most 2e-30 was asked, and no step brings it lower: "));
    cot_tape_clear_error(t);
    cot_root(square_minus, NULL, gives_up, x0, 1, &theta, NULL);
    expect(t, COT_CUSTOM, "[root] the solver failed with code 5; the residual is 7");
    cot_root(square_minus, NULL, far_off, x0, 1, &theta, &(cot_solve_options){.tolerance = 1e-3});
    expect(t, COT_VALUE,
           "[root] the residual of what the solver found is 7, from 1 at the start; at most 0.002 is within the "
           "tolerance that was asked");
    /* x² - 2 at 3, from 1: the terms are 2x·x = 18, and 1 */
    cot_root(square_minus, NULL, far_off, x0, 1, &theta, NULL);
    expect(t, COT_VALUE,
           "[root] the residual of what the solver found is 7, from 1 at the start; at most 0.000144958 is taken "
           "without a tolerance (INFINITY is one "
           "that takes all)");
    assert_true(cot_is_valid(
        cot_root(square_minus, NULL, far_off, x0, 1, &theta, &(cot_solve_options){.tolerance = INFINITY})));
    cot_root(square_minus, NULL, not_a_number, x0, 1, &theta, &(cot_solve_options){.tolerance = INFINITY});
    assert_non_null(strstr(cot_tape_message(t), "[root] the residual of what the solver found is "));
    assert_non_null(strstr(cot_tape_message(t), "nan, from 1 at the start"));
    cot_tape_clear_error(t);
    cot_root(square_minus, NULL, NULL, x0, 1, &theta, &(cot_solve_options){.tolerance = -1});
    expect(t, COT_VALUE, "[root] the tolerance is -1; 0 is the default, INFINITY takes what comes");
    cot_linear_solve(singular, NULL, x0, &(cot_solve_options){.iterations = -1});
    expect(t, COT_VALUE, "[linear_solve] at most -1 iterations; 0 is the default, 1 and more a bound");
    cot_fixed_point(sets_nothing, NULL, NULL, x0, 0, NULL, NULL);
    expect(t, COT_VAR, "[fixed_point] its body did not set ys[0]; it gives 1 result and must set each");
    cot_minimize(sets_nothing, NULL, NULL, x0, 0, NULL, NULL);
    expect(t, COT_VAR, "[minimize] the function did not set ys[0]; it gives 1 result and must set each");
    for (int n = 2; n <= 100; n += 98) { /* by elimination, by GMRES */
        cot_linear_solve(singular, NULL, cot_ones(t, COT_F64, COT_SHAPE(n)), NULL);
        assert_int_equal(cot_tape_status(t), COT_VALUE);
        assert_non_null(strstr(cot_tape_message(t), "[linear_solve] the solver did not converge: after "));
        assert_non_null(strstr(cot_tape_message(t), " times the right side, at most "));
        assert_non_null(
            strstr(cot_tape_message(t),
                   " is taken; the system is singular or too badly conditioned, or the function not linear"));
        assert_string_equal(cot_tape_note(t), "");
        cot_tape_clear_error(t);
        /* not linear */
        cot_linear_solve(no_root, NULL, cot_full(t, COT_F64, COT_SHAPE(n), 0.5), NULL);
        if (!strstr(cot_tape_message(t), "[linear_solve] the solver did not converge: after "))
            fail_msg("%d: %s", n, cot_tape_message(t));
        cot_tape_clear_error(t);
    }
    cot_linear_solve(stencil, &theta, cot_ones(t, COT_F64, COT_SHAPE(100)),
                     &(cot_solve_options){.iterations = 2, .tolerance = 1e-13});
    assert_non_null(strstr(cot_tape_message(t), "[linear_solve] the solver did not converge: after 2 steps "));
    cot_tape_clear_error(t);
    cot_var nan = cot_full(t, COT_F64, COT_SHAPE(2), NAN);
    cot_linear_solve(stencil, &theta, nan, NULL);
    assert_non_null(strstr(cot_tape_message(t), "nan times the right side"));
    cot_tape_clear_error(t);
    cot_root(square_minus, NULL, NULL, nan, 1, &theta, NULL);
    expect(t, COT_VALUE, "[root] |F| is NaN at x0; give a start where it has a value");
    /* no root, though infinity is within 1e-10 of itself */
    cot_root(square_minus, NULL, NULL, cot_constant(t, 1e200), 1, &theta, NULL);
    expect(t, COT_VALUE, "[root] |F| is infinite at x0; give a start where it has a value");
    cot_minimize(steep, NULL, NULL, nan, 0, NULL, NULL);
    expect(t, COT_VALUE, "[minimize] the function or its gradient is NaN at x0; give a start where it has a value");
    cot_minimize(steep, NULL, NULL, cot_full(t, COT_F64, COT_SHAPE(2), 1e200), 0, NULL, NULL);
    expect(t, COT_VALUE,
           "[minimize] the function or its gradient is infinite at x0; give a start where it has a value");
    cot_root(given_fails, NULL, NULL, x0, 1, &theta, NULL);
    expect(t, COT_CUSTOM, "[root] its body failed with code 9");
    cot_fixed_point(given_fails, NULL, NULL, x0, 1, &theta, NULL);
    expect(t, COT_CUSTOM, "[fixed_point] its body failed with code 9");
    cot_minimize(given_fails, NULL, NULL, x0, 1, &theta, NULL);
    expect(t, COT_CUSTOM, "[minimize] the function failed with code 9");
    cot_minimize(same, NULL, NULL, three, 0, NULL, NULL);
    expect(t, COT_SHAPE, "[minimize] the function gives f64 of shape (3,); what is least is one float");
    cot_root(sweeps_inside, NULL, by_sweeping, x0, 1, &theta, NULL);
    expect(t, COT_GRAD,
           "[backward] called inside a function of [root]; such a function computes or records, and the library "
           "differentiates what it recorded "
           "(use a tape of its own to differentiate there)");
    cot_tape *other = cot_tape_create(NULL);
    cot_var   foreign = cot_scalar(other, 1);
    cot_root(square_minus, NULL, NULL, x0, 1, &foreign, NULL);
    expect(t, COT_VAR,
           "[root] the theta[0] as operand belongs to another tape; operands of one operation share a tape");
    cot_tape_destroy(other);
    cot_linear_solve(sums, NULL, three, NULL);
    expect(t, COT_SHAPE,
           "[linear_solve] the function gives f64 () for a vector of f64 (3,); it must keep shape and dtype");
    cot_linear_solve(narrows, NULL, three, NULL);
    expect(t, COT_DTYPE,
           "[linear_solve] the function gives f32 (3,) for a vector of f64 (3,); it must keep shape and dtype");
    cot_root(narrows, NULL, NULL, three, 0, NULL, NULL);
    expect(t, COT_DTYPE,
           "[root] there are equations f32 (3,) for unknowns f64 (3,); they must be as many and of the same dtype");
    cot_linear_solve(sums, NULL, whole, NULL);
    expect(t, COT_DTYPE, "[linear_solve] b has dtype i64; it must be a float");
    cot_root(sums, NULL, NULL, three, 0, NULL, NULL);
    expect(t, COT_SHAPE,
           "[root] there are equations f64 () for unknowns f64 (3,); they must be as many and of the same dtype");
    cot_fixed_point(sums, NULL, NULL, three, 0, NULL, NULL); /* which x - g(x) would broadcast */
    expect(
        t, COT_SHAPE,
        "[fixed_point] there are equations f64 () for unknowns f64 (3,); they must be as many and of the same dtype");
    cot_fixed_point(sums, NULL, NULL, whole, 0, NULL, NULL);
    expect(t, COT_DTYPE, "[fixed_point] x0 has dtype i64; it must be a float");
    cot_minimize(NULL, NULL, NULL, three, 0, NULL, NULL);
    expect(t, COT_VALUE, "[minimize] the function is NULL");
    cot_tape_destroy(t);
}

static void work(cot_tape *t, void *user) {
    (void)user;
    cot_var depth = cot_scalar(t, 2), at = cot_minimize(two_wells, NULL, NULL, cot_constant(t, 0.2), 1, &depth, NULL);
    (void)at;
    cot_var theta = cot_scalar(t, 2), x = cot_root(square_minus, NULL, NULL, cot_constant(t, 1), 1, &theta, NULL), g;
    cot_var y = cot_linear_solve(stencil, &theta, cot_tensor(t, COT_F64, COT_SHAPE(70), NULL), NULL);
    cot_grad_of(cot_add(x, cot_sum(y, COT_ALL)), 1, &theta, &g);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    static const char *const sentences[] = {" bytes for a vector", " bytes for its vectors"};
    assert_survives_no_memory(work, NULL, 2, sentences);
}

/* An answer counts where it was asked for: a solver that points x at memory of its own has not
 * answered. */
static int elsewhere(int n, const cot_array *theta, cot_array *x, void *user) {
    (void)n, (void)theta;
    x->data = user;
    return 0;
}

static void an_answer_elsewhere_is_none(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    root = 3;
    cot_var theta = cot_scalar(t, 9), x = cot_root(square_minus, &root, elsewhere, cot_constant(t, 1), 1, &theta, NULL);
    assert_false(cot_is_valid(x));
    expect(t, COT_VALUE,
           "[root] the residual of what the solver found is 8, from 8 at the start; at most 7.62939e-05 is taken "
           "without a "
           "tolerance (INFINITY is one that takes all)");
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_elsewhere_is_none),
        cmocka_unit_test(a_root_has_the_derivatives_of_its_closed_form),
        cmocka_unit_test(a_fixed_point_has_the_gradient_of_its_iterations),
        cmocka_unit_test(a_minimum_moves_as_its_equation_says),
        cmocka_unit_test(minima_are_found_not_maxima_or_saddles),
        cmocka_unit_test(a_linear_solve_equals_the_matrix),
        cmocka_unit_test(singular_systems_are_seen_by_their_residual),
        cmocka_unit_test(ill_conditioned_systems_are_solved),
        cmocka_unit_test(many_unknowns_of_any_shape),
        cmocka_unit_test(fewer_bits_solve_too),
        cmocka_unit_test(a_solver_runs_at_every_step),
        cmocka_unit_test(a_solver_is_not_believed),
        cmocka_unit_test(solvers_that_fail_say_how_far_they_came),
        cmocka_unit_test(linear_systems_within_say_what_they_are_for),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
