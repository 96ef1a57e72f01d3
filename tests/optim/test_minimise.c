/* Minimising: L-BFGS and least squares on functions whose least points are known, lines on which a
 * search must fail, and what is refused. */
#include "support/tape_test.h"

#include "optim/line_search.h"

/* ---- L-BFGS ---------------------------------------------------------------------------------- */

/* Σ 100 (x[i+1] - x[i]²)² + (1 - x[i])², least at ones */
static cot_var rosenbrock(int n, const cot_var *xs, void *user) {
    cot_var head = cot_slice(xs[0], 0, 0, -1, 1), tail = cot_slice(xs[0], 0, 1, COT_END, 1);
    (void)n, (void)user;
    return cot_sum(cot_add(cot_mul(100.0, cot_square(cot_sub(tail, cot_square(head)))), cot_square(cot_sub(1.0, head))),
                   COT_ALL);
}

static void rosenbrock_is_least_at_ones(void **state) {
    (void)state;
    for (int size = 2; size <= 50; size += 48)
        for (int history = 0; history < 4; history += 3) {
            cot_tape *t = cot_tape_create(NULL);
            double    x[50], got[50];
            for (int i = 0; i < size; i++) x[i] = i % 2 ? 1 : -1.2;
            cot_var          leaf = cot_tensor(t, COT_F64, COT_SHAPE(size), x);
            cot_lbfgs_report r;
            int64_t          length = cot_tape_length(t);
            cot_lbfgs_options o = {.history = history};
            assert_int_equal(cot_lbfgs_minimize(1, &leaf, rosenbrock, NULL, &o, &r), COT_OK);
            assert_ok(t);
            assert_int_equal(r.end, COT_FIT_CONVERGED);
            assert_true(r.slope <= 1e-8 && r.value < 1e-15);
            assert_true(r.iterations < 500 && r.evaluations < 2 * r.iterations + 20);
            cot_read(leaf, got, size);
            /* the gradient is 1e-8, and the Hessian's least eigenvalue about 0.4 */
            for (int i = 0; i < size; i++) assert_near(got[i], 1, 1e-7);
            assert_int_equal(cot_tape_length(t), length);
            cot_read_grad(leaf, got, size);
            assert_true(got[0] == 0);
            cot_tape_destroy(t);
        }
}

enum { ROWS = 8, IN = 3 };
static const double given_x[ROWS * IN] = {0.5, -1.0, 2.0, 1.5, 0.25, -0.75, -2.0, 1.0, 0.5, 0.125, -0.5, 1.25,
                                          0.3, 0.9, -1.1, -0.7, -0.2, 0.4, 1.1, -1.3, 0.2, -0.4, 0.6, 0.8};
static const double given_y[ROWS] = {1, 0, 0, 1, 0, 1, 1, 0};

/* Σ softplus(z) - y z + 0.05 |w|², z = x w + b */
static cot_var logistic(int n, const cot_var *xs, void *user) {
    cot_tape *t = cot_tape_of(xs[0]);
    cot_var   x = cot_data(t, COT_F64, COT_SHAPE(ROWS, IN), given_x);
    cot_var   y = cot_data(t, COT_F64, COT_SHAPE(ROWS), given_y);
    cot_var   z = cot_add(cot_matmul(x, xs[0]), xs[1]);
    (void)n;
    if (user) ++*(int *)user;
    return cot_add(cot_sum(cot_sub(cot_softplus(z), cot_mul(y, z)), COT_ALL),
                   cot_mul(0.05, cot_sum(cot_square(xs[0]), COT_ALL)));
}

/* SciPy's minimum, polished by Newton's method in NumPy. */
static void logistic_regression_is_that_of_scipy(void **state) {
    (void)state;
    static const double want[4] = {-0.39087517928914106, -3.4329603014905516, 0.94067543085452621,
                                   -0.29146693844254268};
    for (int narrow = 0; narrow < 2; narrow++) {
        cot_tape        *t = cot_tape_create(NULL);
        cot_dtype        d = narrow ? COT_F32 : COT_F64;
        cot_var          xs[2] = {cot_tensor(t, d, COT_SHAPE(IN), NULL), cot_scalar_of(t, d, 0)};
        cot_lbfgs_report r;
        int              calls = 0;
        double           got[4];
        cot_lbfgs_options o = {.tolerance = narrow ? 1e-5 : 1e-11};
        assert_int_equal(cot_lbfgs_minimize(2, xs, logistic, &calls, &o, &r), COT_OK);
        assert_int_equal(r.end, COT_FIT_CONVERGED);
        assert_int_equal(r.evaluations, calls);
        cot_read(xs[0], got, IN), cot_read(xs[1], got + IN, 1);
        /* the least eigenvalue of the Hessian is 0.12 */
        for (int i = 0; i < 4; i++) assert_near(got[i], want[i], narrow ? 1e-4 : 1e-10);
        assert_near(r.value, 1.432306690154225, narrow ? 1e-6 : 1e-15);
        cot_tape_destroy(t);
    }
}

static cot_var falling(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    return cot_neg(xs[0]);
}
/* A gradient that is a lie: the function grows against it. */
static cot_var lying(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    return cot_sub(cot_mul(2.0, cot_detach(cot_abs(xs[0]))), xs[0]);
}
static cot_var rooted(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    return cot_sub(cot_mul(xs[0], xs[0]), cot_sqrt(xs[0])); /* NaN below 0; least at 4^(-2/3) */
}
static cot_var failing(int n, const cot_var *xs, void *user) {
    (void)n;
    return ++*(int *)user < 4 ? cot_square(cot_sub(xs[0], 7.0)) : cot_reshape(xs[0], COT_SHAPE(3));
}
/* At xs[0] = 0 the slopes of both roots are without end, and the difference of them is NaN. */
static cot_var undefined(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    return cot_add(cot_sub(cot_sqrt(xs[0]), cot_sqrt(xs[0])), cot_square(cot_sub(xs[1], 3.0)));
}

static void a_slope_that_is_no_number_is_no_end(void **state) {
    (void)state;
    for (int least = 0; least < 2; least++) {
        cot_tape        *t = cot_tape_create(NULL);
        cot_var          xs[] = {cot_scalar(t, 0), cot_scalar(t, least ? 3 : 1)};
        cot_lbfgs_report r;
        assert_int_equal(cot_lbfgs_minimize(2, xs, undefined, NULL, NULL, &r), COT_OK);
        assert_int_equal(r.end, COT_FIT_BAD_START);
        assert_true(isnan(r.slope));
        cot_tape_destroy(t);
    }
}

static void other_ends_are_told(void **state) {
    (void)state;
    cot_tape        *t = cot_tape_create(NULL);
    cot_var          x = cot_scalar(t, 0);
    cot_lbfgs_report r;
    assert_int_equal(cot_lbfgs_minimize(1, &x, lying, NULL, NULL, &r), COT_OK);
    assert_int_equal(r.end, COT_FIT_STALLED);
    assert_true(cot_value(x) == 0 && r.value == 0 && r.slope == 1);
    assert_int_equal(cot_lbfgs_minimize(1, &x, lying, NULL, NULL, NULL), COT_VALUE);
    assert_error(t, COT_VALUE, "[lbfgs_minimize] no minimum after 0 iterations: no step along the gradient makes the "
                               "function smaller, where it is 0");
    cot_tape_clear_error(t);
    assert_int_equal(cot_lbfgs_minimize(1, &x, falling, NULL, &(cot_lbfgs_options){.iterations = 3}, &r), COT_OK);
    assert_true(r.end == COT_FIT_LIMIT || r.end == COT_FIT_STALLED); /* there is no least point */
    cot_assign(x, -1.0);
    assert_int_equal(cot_lbfgs_minimize(1, &x, rooted, NULL, NULL, &r), COT_OK);
    assert_int_equal(r.end, COT_FIT_BAD_START);
    assert_true(cot_value(x) == -1);
    cot_assign(x, 3.0); /* the first steps go below 0 */
    assert_int_equal(cot_lbfgs_minimize(1, &x, rooted, NULL, NULL, &r), COT_OK);
    assert_int_equal(r.end, COT_FIT_CONVERGED);
    assert_near(cot_value(x), pow(4, -2.0 / 3), 1e-8);
    int calls = 0;
    cot_assign(x, 1000.0);
    int64_t length = cot_tape_length(t);
    assert_int_equal(cot_lbfgs_minimize(1, &x, failing, &calls, NULL, &r), COT_SHAPE);
    assert_int_equal(cot_tape_length(t), length); /* forgotten, though the error stays */
    assert_int_equal(r.end, COT_FIT_ABANDONED);
    assert_int_equal(calls, 4);
    cot_tape_clear_error(t);
    assert_int_equal(cot_lbfgs_minimize(1, &x, falling, NULL, &(cot_lbfgs_options){.history = -1}, &r), COT_VALUE);
    assert_error(t, COT_VALUE, "[lbfgs_minimize] history -1, iterations 1000, tolerance 1e-08; none is negative, and "
                               "the history is at most 1000");
    cot_tape_clear_error(t);
    assert_int_equal(cot_lbfgs_minimize(1, &x, NULL, NULL, NULL, &r), COT_VALUE);
    assert_error(t, COT_VALUE, "[lbfgs_minimize] the function is NULL");
    cot_tape_clear_error(t);
    cot_var half = cot_scalar_of(t, COT_BF16, 1);
    assert_int_equal(cot_lbfgs_minimize(1, &half, falling, NULL, NULL, &r), COT_DTYPE);
    cot_tape_destroy(t);
}

/* ---- along a line ---------------------------------------------------------------------------- */

typedef struct valley { double bottom, width; int calls, give_up; } valley;

/* (1 - 1 / (1 + u²)) with u = (a - bottom) / width: a valley in a plain that is nearly flat */
static bool valley_at(void *user, double a, double *value, double *slope) {
    valley *v = user;
    double  u = (a - v->bottom) / v->width, q = 1 + u * u;
    *value = 1 - 1 / q;
    *slope = 2 * u / (q * q) / v->width;
    return ++v->calls != v->give_up;
}

static void searches_satisfy_both_conditions(void **state) {
    (void)state;
    for (int b = -3; b <= 3; b++)
        for (int w = -1; w <= 1; w++)
            for (int g = -4; g <= 4; g++) {
                valley    v = {pow(10, b), pow(10, b + w), 0, 0};
                cot__line l = {valley_at, &v, 0, 0};
                valley_at(&v, 0, &l.value, &l.slope);
                double a = pow(10, b + g), value, slope;
                assert_int_equal(cot__line_search(&l, &a), COT__LINE_FOUND);
                valley_at(&v, a, &value, &slope);
                assert_true(value <= l.value + 1e-4 * a * l.slope && fabs(slope) <= 0.9 * fabs(l.slope));
                assert_true(v.calls < 30);
            }
    for (int k = 2; k < 5; k++) {
        valley    v = {1, 0.1, 0, k};
        cot__line l = {valley_at, &v, 0, 0};
        valley_at(&v, 0, &l.value, &l.slope);
        double        a = 1000;
        cot__line_end end = cot__line_search(&l, &a);
        assert_true(end == COT__LINE_FAILED || v.calls < k);
    }
}

/* ---- least squares --------------------------------------------------------------------------- */

static const double times[8] = {0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5}, seen[8] = {5, 3.9, 3.2, 2.4, 2.1, 1.8, 1.5, 1.45};

/* b0 exp(-b1 t) + b2, as two leaves */
static cot_var decay(int n, const cot_var *xs, void *user) {
    cot_tape *t = cot_tape_of(xs[0]);
    cot_var   b0 = cot_index(xs[0], 0, 0), b1 = cot_index(xs[0], 0, 1);
    cot_var   at = cot_data(t, COT_F64, COT_SHAPE(8), times), y = cot_data(t, COT_F64, COT_SHAPE(8), seen);
    (void)n, (void)user;
    return cot_sub(cot_add(cot_mul(b0, cot_exp(cot_neg(cot_mul(b1, at)))), xs[1]), y);
}

/* SciPy's curve_fit, polished by Gauss-Newton steps in NumPy. */
static void a_curve_is_that_of_scipy(void **state) {
    (void)state;
    static const double      want[3] = {4.0409594726282316, 0.64421796444195578, 0.97391476345397809};
    static const double      errors[3] = {0.12962808085322466, 0.054268026537765433, 0.13694349863938421};
    cot_tape                *t = cot_tape_create(NULL);
    cot_var                  xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 1}), cot_scalar(t, 0)};
    double                   got[3], said[3];
    bool                     loose[3];
    cot_least_squares_report r = {.errors = said, .undetermined = loose};
    int64_t                  length = cot_tape_length(t);
    assert_int_equal(cot_least_squares(2, xs, decay, NULL, NULL, &r), COT_OK);
    assert_ok(t);
    assert_int_equal(r.end, COT_FIT_CONVERGED);
    cot_read(xs[0], got, 2), cot_read(xs[1], got + 2, 1);
    for (int i = 0; i < 3; i++) {
        assert_near(got[i], want[i], 1e-13);
        assert_near(said[i], errors[i], 1e-13);
        assert_false(loose[i]);
    }
    assert_near(r.rss, 0.030203547487548166, 1e-15);
    assert_near(r.sd, sqrt(r.rss / 5), 1e-15);
    assert_int_equal(cot_tape_length(t), length);
    cot_tape_destroy(t);
}

static cot_var redundant(int n, const cot_var *xs, void *user) {
    cot_tape *t = cot_tape_of(xs[0]);
    (void)n, (void)user;
    return cot_sub(cot_mul(cot_add(xs[0], xs[1]), cot_data(t, COT_F64, COT_SHAPE(8), times)), 1.0);
}
static cot_var too_few(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    return cot_slice(xs[0], 0, 0, 1, 1);
}

static cot_var changing(int n, const cot_var *xs, void *user) {
    int *calls = user;
    (void)n;
    return cot_broadcast_to(cot_add(xs[0], xs[1]), COT_SHAPE(++*calls < 3 ? 4 : 5));
}

static void other_ends_of_least_squares_are_told(void **state) {
    (void)state;
    cot_tape                *t = cot_tape_create(NULL);
    cot_var                  xs[2] = {cot_scalar(t, 1), cot_scalar(t, 2)};
    cot_var                  two = cot_tensor(t, COT_F64, COT_SHAPE(2), NULL);
    bool                     loose[2] = {false, false};
    cot_least_squares_report r = {.undetermined = loose};
    assert_int_equal(cot_least_squares(2, xs, redundant, NULL, NULL, &r), COT_OK);
    assert_int_equal(r.end, COT_FIT_SINGULAR);
    assert_true(loose[0] && loose[1]);
    assert_int_equal(cot_least_squares(2, xs, redundant, NULL, NULL, NULL), COT_VALUE);
    assert_non_null(
        strstr(cot_tape_message(t), " steps: some parameters can move without effect, and the sum of squares is "));
    cot_tape_clear_error(t);
    int calls = 0;
    assert_int_equal(cot_least_squares(2, xs, changing, &calls, NULL, &r), COT_SHAPE);
    assert_error(t, COT_SHAPE, "[least_squares] the function gave 5 residuals, and 4 before");
    cot_tape_clear_error(t);
    cot_var many = cot_tensor(t, COT_F64, COT_SHAPE(10001), NULL);
    assert_int_equal(cot_least_squares(1, &many, too_few, NULL, NULL, &r), COT_SHAPE);
    assert_error(t, COT_SHAPE, "[least_squares] 10001 parameters; there are 1 to 10000");
    cot_tape_clear_error(t);
    assert_int_equal(cot_least_squares(1, &two, too_few, NULL, NULL, &r), COT_SHAPE);
    assert_error(t, COT_SHAPE, "[least_squares] 2 parameters and 1 residuals; there are at least as many of these");
    assert_int_equal(r.end, COT_FIT_ABANDONED);
    cot_tape_clear_error(t);
    assert_int_equal(cot_least_squares(2, xs, redundant, NULL, &(cot_least_squares_options){.tolerance = -1}, &r),
                     COT_VALUE);
    assert_error(t, COT_VALUE, "[least_squares] iterations 0, tolerance -1, size 0; they must not be negative");
    cot_tape_clear_error(t);
    cot_var narrow = cot_scalar_of(t, COT_F32, 1);
    assert_int_equal(cot_least_squares(1, &narrow, redundant, NULL, NULL, &r), COT_DTYPE);
    assert_error(t, COT_DTYPE, "[least_squares] xs[0] has dtype f32; it takes f64");
    cot_tape_destroy(t);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void minimise(cot_tape *t, void *user) {
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){-1.2, 1, 0.5});
    cot_var xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 1}), cot_scalar(t, 0)};
    (void)user;
    if (cot_tape_status(t) == COT_OK) cot_lbfgs_minimize(1, &x, rosenbrock, NULL, NULL, NULL);
    if (cot_tape_status(t) == COT_OK) cot_least_squares(2, xs, decay, NULL, NULL, NULL);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    static const char *const sentences[] = {"[lbfgs_minimize] out of memory: ", " numbers",
                                             "[least_squares] out of memory: ", " parameters",
                                             "[least_squares] out of memory: the Jacobian"};
    assert_survives_no_memory(minimise, NULL, 5, sentences);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rosenbrock_is_least_at_ones),
        cmocka_unit_test(logistic_regression_is_that_of_scipy),
        cmocka_unit_test(a_slope_that_is_no_number_is_no_end),
        cmocka_unit_test(other_ends_are_told),
        cmocka_unit_test(searches_satisfy_both_conditions),
        cmocka_unit_test(a_curve_is_that_of_scipy),
        cmocka_unit_test(other_ends_of_least_squares_are_told),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
