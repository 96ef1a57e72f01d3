/* test_conjugate.c: linear systems by conjugate gradients against the same systems as matrices:
 * values, both modes, second order; and what is not positive definite. */
#include "diff/implicit/system.h"
#include "support/body_test.h"
#include "support/tape_test.h"

static const cot_solve_options positive = {.positive_definite = true};

/* (c + 2) x[i] - x[i-1] - x[i+1]: its eigenvalues lie between c and c + 4 */
BODY(springs) {
    UNUSED;
    cot_var left = cot_pad(cot_slice(xs[0], 0, 0, -1, 1), COT_SHAPE(1), COT_SHAPE(0), 0);
    cot_var right = cot_pad(cot_slice(xs[0], 0, 1, COT_END, 1), COT_SHAPE(0), COT_SHAPE(1), 0);
    ys[0] = cot_sub(cot_sub(cot_mul(cot_add(*(cot_var *)user, 2.0), xs[0]), left), right);
    return 0;
}

static void they_equal_the_matrix(void **state) {
    (void)state;
    for (int n = 5; n <= 300; n += 295) { /* a matrix would be made of 5 */
        cot_tape *t = cot_tape_create(NULL);
        double    numbers[300], ours[300], theirs[300];
        for (int k = 0; k < n; k++) numbers[k] = sin(k + 1.);
        cot_var b = cot_tensor(t, COT_F64, COT_SHAPE(n), numbers), c = cot_scalar(t, 0.7), wrt[2] = {b, c};
        cot_var x = cot_linear_solve(springs, &c, b, &positive), g[2], h[2], gg, hh;
        cot_var ones = cot_ones(t, COT_F64, COT_SHAPE(n - 1));
        cot_var sides = cot_add(cot_diag(ones, -1), cot_diag(ones, 1));
        cot_var z = cot_solve(cot_sub(cot_mul(cot_add(c, 2.0), cot_eye(t, COT_F64, n, n)), sides), b);
        cot_var f = cot_sum(cot_sin(x), COT_ALL), q = cot_sum(cot_sin(z), COT_ALL);
        assert_int_equal(cot_grad_of(f, 2, wrt, g), COT_OK);
        assert_int_equal(cot_grad_of(q, 2, wrt, h), COT_OK);
        /* A is at least 0.7 from singular, and residuals are 1e-12 of the right sides, b and cos x:
         * so in the norm x is within dx, and λ within dl. Further numbers are sums of products of
         * two such vectors, solved for once more at the second order. */
        double nb = sqrt(n), dx = 1e-12 * nb / 0.7, dl = (1e-12 * nb + dx) / 0.7, dg = (dl + dx) * nb / 0.7;
        assert_near(cot_value(f), cot_value(q), sqrt(n) * dx);
        assert_near(cot_value(g[1]), cot_value(h[1]), dg);
        cot_read(g[0], ours, n), cot_read(h[0], theirs, n);
        for (int k = 0; k < n; k++) assert_near(ours[k], theirs[k], dl);
        cot_grad_of(g[1], 1, &c, &gg), cot_grad_of(h[1], 1, &c, &hh);
        assert_near(cot_value(gg), cot_value(hh), 4 * dg / 0.7);
        assert_near(cot_value(cot_jvp(f, 1, &c, (cot_var[]){cot_constant(t, 1)})), cot_value(h[1]), dg);
        cot_backward(f);
        assert_ok(t);
        assert_near(cot_grad_value(c), cot_value(h[1]), dg);
        cot_tape_destroy(t);
    }
}

/* The entries of a sparse matrix are inputs of their own: a second derivative moves one of them
 * without the one on the other side. */
static void entries_may_move_alone(void **state) {
    (void)state;
    static const double m[] = {4, 1, 0, 1, 3, 1, 0, 1, 5}, weights[] = {0.3, -1, 2, 0.7, 0.2, -0.4, 1.1};
    double              both[2][7];
    for (int dense = 0; dense < 2; dense++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_csr   a = cot_csr_from_dense(cot_data(t, COT_F64, COT_SHAPE(3, 3), m));
        double    v[7];
        cot_read(a.values, v, 7);
        cot_var values = a.values = cot_tensor(t, COT_F64, COT_SHAPE(7), v), g, h;
        cot_var b = cot_data(t, COT_F64, COT_SHAPE(3), (double[]){1, -2, 3});
        cot_var x = dense ? cot_solve(cot_csr_to_dense(a), b) : cot_csr_solve(a, b, &positive);
        cot_grad_of(cot_sum(cot_sin(x), COT_ALL), 1, &values, &g);
        cot_var w = cot_data(t, COT_F64, COT_SHAPE(7), weights);
        cot_grad_of(cot_sum(cot_mul(g, w), COT_ALL), 1, &values, &h);
        assert_int_equal(cot_read(h, both[dense], 7), COT_OK);
        assert_ok(t);
        cot_tape_destroy(t);
    }
    /* the least eigenvalue is above 1 (circles around 4, 3 and 5), the weights sum to 6 */
    for (int k = 0; k < 7; k++) assert_near(both[0][k], both[1][k], 1e-10);
}

static void fewer_bits_are_solved_too(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   c = cot_scalar_of(t, COT_F32, 1), b = cot_ones(t, COT_F32, COT_SHAPE(100)), r;
    cot_var   x = cot_linear_solve(springs, &c, b, &positive);
    springs(1, &x, 1, &r, &c);
    assert_int_equal(cot_dtype_of(x), COT_F32);
    /* the solver's tolerance, and products of numbers up to 3 in f32 */
    assert_near(cot_value(cot_norm(cot_sub(r, b), 2, COT_ALL)), 0, 10 * (1e-5 + 4 * 0x1p-23));
    assert_ok(t);
    cot_tape_destroy(t);
}

BODY(turned_round) { UNUSED; ys[0] = cot_mul(xs[0], *(cot_var *)user); return 0; }
BODY(one_sided) { UNUSED; ys[0] = cot_matmul(*(cot_var *)user, xs[0]); return 0; }

static void what_is_not_positive_definite_is_refused(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   signs = cot_data(t, COT_F64, COT_SHAPE(2), (double[]){-3, 1});
    cot_var   b = cot_ones(t, COT_F64, COT_SHAPE(2));
    cot_linear_solve(turned_round, &signs, b, &positive);
    assert_error(t, COT_VALUE,
                 "[linear_solve] the function is not positive definite: p·a(p) is -2 for the direction p of step 1; "
                 "without .positive_definite any linear function is solved");
    cot_tape_clear_error(t);
    cot_linear_solve(turned_round, &signs, b, NULL); /* as any other */
    assert_ok(t);
    /* takes what comes, so that symmetry is all that is left to look at */
    cot_var m = cot_data(t, COT_F64, COT_SHAPE(2, 2), (double[]){2, 1, 0, 2});
    cot_linear_solve(one_sided, &m, b, &(cot_solve_options){.positive_definite = true, .tolerance = INFINITY});
    assert_int_equal(cot_tape_status(t), COT_VALUE);
    assert_non_null(strstr(cot_tape_message(t), "[linear_solve] the function is not symmetric: u·a(v) and v·a(u) "));
    cot_tape_clear_error(t);
    /* a hundred different eigenvalues take more than three steps */
    cot_var   c = cot_scalar(t, 0.01), many = cot_ones(t, COT_F64, COT_SHAPE(100));
    cot_linear_solve(springs, &c, many, &(cot_solve_options){.positive_definite = true, .iterations = 3});
    assert_non_null(strstr(cot_tape_message(t), "[linear_solve] the solver did not converge: after 3 steps "));
    cot_tape_clear_error(t);
    double nan[2] = {NAN, 1};
    cot_linear_solve(turned_round, &signs, cot_data(t, COT_F64, COT_SHAPE(2), nan), &positive);
    assert_non_null(strstr(cot_tape_message(t), "[linear_solve] the solver did not converge: "));
    cot_tape_clear_error(t);
    /* nothing to do, and nothing there */
    cot_var zero = cot_linear_solve(springs, &c, cot_zeros(t, COT_F64, COT_SHAPE(3)), &positive);
    assert_near(cot_value(cot_sum(zero, COT_ALL)), 0, 0);
    cot_tape_destroy(t);
}

static void memory_does_not_grow_with_steps(void **state) {
    (void)state;
    /* looking for linearity takes six vectors, the search three of them */
    assert_int_equal(cot__system_bytes(1000, true), 6 * 1000 * sizeof(double) + 8);
    assert_true(cot__system_bytes(1000, false) > 40 * 1000 * sizeof(double));
}

static int twice(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(xs[0], 2.0);
    return 0;
}

/* Squares of these are no numbers. */
static void right_sides_of_any_size_are_solved(void **state) {
    (void)state;
    const double sizes[] = {1e-170, 1e-310, 1e170, 1e308};
    for (int k = 0; k < 4; k++) {
        cot_tape *t = cot_tape_create(NULL);
        double    b[3] = {sizes[k], -sizes[k] / 4, sizes[k] / 2}, x[3];
        cot_read(cot_linear_solve(twice, NULL, cot_data(t, COT_F64, COT_SHAPE(3), b),
                                  &(cot_solve_options){.positive_definite = true}), x, 3);
        assert_ok(t);
        for (int i = 0; i < 3; i++) assert_near(x[i] / sizes[k], b[i] / 2 / sizes[k], 1e-12);
        cot_tape_destroy(t);
    }
}

static void a_right_side_that_is_not_finite_is_refused(void **state) {
    (void)state;
    const double bad[] = {INFINITY, NAN};
    for (int k = 0; k < 2; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_linear_solve(twice, NULL, cot_data(t, COT_F64, COT_SHAPE(2), (double[]){1, bad[k]}),
                         &(cot_solve_options){.positive_definite = true});
        assert_int_equal(cot_tape_status(t), COT_VALUE);
        cot_tape_destroy(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_sides_of_any_size_are_solved),
        cmocka_unit_test(a_right_side_that_is_not_finite_is_refused),
        cmocka_unit_test(they_equal_the_matrix),
        cmocka_unit_test(entries_may_move_alone),
        cmocka_unit_test(fewer_bits_are_solved_too),
        cmocka_unit_test(what_is_not_positive_definite_is_refused),
        cmocka_unit_test(memory_does_not_grow_with_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
