/* Linear algebra in trouble: a bad matrix of a batch is NaN with a note and does not affect the
 * others; equal values, ranks that are short, errors and failing memory are told. */
/* ctest: labels=threads timeout=300 */
#include "support/tape_test.h"

#include "support/support.h"

/* ---- notes ----------------------------------------------------------------------------------- */

static void one_bad_matrix_is_nan_with_a_note_and_the_rest_is_right(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    a[12] = {2, 0, 0, 4, 1, 2, 2, 4, 5, 0, 0, 1}, x[12];
    cot_var   m = cot_tensor(t, COT_F64, COT_SHAPE(3, 2, 2), a);
    cot_read(cot_inv(m), x, 12);
    assert_string_equal(cot_tape_note(t), "[inv] matrix [1] of 3 is singular; its inverse is NaN");
    assert_true(x[0] == 0.5 && x[3] == 0.25 && x[8] == 0.2 && x[11] == 1);
    char out[2048];
    assert_true(cot_explain(cot_inv(m), out, sizeof out) > 0);
    assert_non_null(strstr(out, "The tape has a note: [inv] matrix [1] of 3 is singular; its inverse is NaN."));
    for (int i = 4; i < 8; i++) assert_true(isnan(x[i]));
    cot_tape_clear_note(t);
    assert_string_equal(cot_tape_note(t), "");
    /* the gradients of the others are theirs */
    cot_var y = cot_sum(cot_slice(cot_inv(m), 0, 0, COT_END, 2), COT_ALL);
    assert_int_equal(cot_backward(y), COT_OK);
    cot_read_grad(m, x, 12);
    assert_near(x[0], -0.25, 1e-15);
    assert_near(x[8], -0.04, 1e-15);
    cot_tape_clear_note(t);
    double c[8] = {4, 2, 2, 5, 1, 2, 2, 1};
    cot_read(cot_cholesky(cot_data(t, COT_F64, COT_SHAPE(2, 1, 2, 2), c)), x, 8);
    assert_string_equal(cot_tape_note(t), "[cholesky] matrix [1,0] of 2 is not positive definite; its factor is NaN");
    assert_true(x[0] == 2 && x[1] == 0 && x[2] == 1 && x[3] == 2 && isnan(x[4]) && isnan(x[5]) && isnan(x[7]));
    cot_tape_clear_note(t);
    cot_cholesky(cot_zeros(t, COT_F64, COT_SHAPE(40, 40)));
    assert_string_equal(cot_tape_note(t), "[cholesky] the matrix is not positive definite; its factor is NaN");
    cot_tape_clear_note(t);
    cot_solve(cot_zeros(t, COT_F64, COT_SHAPE(4, 2, 2)), cot_zeros(t, COT_F64, COT_SHAPE(2)));
    assert_string_equal(cot_tape_note(t), "[solve] matrix [0] and 3 more of 4: each is singular; its solution is NaN");
    cot_tape_clear_note(t);
    cot_lstsq(cot_zeros(t, COT_F64, COT_SHAPE(3, 2)), cot_zeros(t, COT_F64, COT_SHAPE(3)));
    assert_string_equal(cot_tape_note(t), "[lstsq] the matrix is not of full rank; its solution is NaN");
    cot_tape_clear_note(t);
    cot_var z = cot_triangular_solve(cot_data(t, COT_F64, COT_SHAPE(2, 2), (double[]){1, 0, 1, 0}),
                                     cot_ones(t, COT_F64, COT_SHAPE(2, 1)), 0);
    assert_string_equal(cot_tape_note(t),
                        "[triangular_solve] the matrix has a 0 on its diagonal; its solution is infinite or NaN");
    cot_read(z, x, 2);
    assert_true(x[0] == 1 && isnan(x[1]));
    assert_ok(t);
    cot_tape_destroy(t);
}

static void a_note_goes_with_a_rewind_and_only_then(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_tensor(t, COT_F64, COT_SHAPE(1, 1), NULL);
    cot_mark  m = cot_tape_mark(t);
    cot_inv(a);
    cot_mark later = cot_tape_mark(t);
    const char *text = "[inv] the matrix is singular; its inverse is NaN";
    assert_string_equal(cot_tape_note(t), text);
    cot_cholesky(a); /* the first stays */
    assert_string_equal(cot_tape_note(t), text);
    cot_tape_rewind(t, later);
    assert_string_equal(cot_tape_note(t), text);
    cot_tape_rewind(t, m);
    assert_string_equal(cot_tape_note(t), "");
    cot_inv(a); /* and may come again */
    assert_string_equal(cot_tape_note(t), text);
    assert_string_equal(cot_tape_note(NULL), "");
    cot_tape_clear_note(NULL);
    cot_tape_destroy(t);
}

static void equal_values_are_noted_and_reported_and_their_terms_are_zero(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_tensor(t, COT_F64, COT_SHAPE(2, 2, 2), (double[]){1, 0, 0, 1, 1, 0, 0, 2}), w, v, u, s, vt;
    char      out[1024];
    double    g[8];
    cot_eigh(a, &w, &v);
    assert_string_equal(cot_tape_note(t), ""); /* the values are fine */
    cot_var y = cot_add(cot_sum(cot_mul(w, cot_data(t, COT_F64, COT_SHAPE(2), (double[]){1, 3})), COT_ALL),
                        cot_sum(v, COT_ALL));
    cot_backward(y);
    assert_string_equal(
        cot_tape_note(t),
        "[eigh] matrix [0] of 2 has equal eigenvalues; terms of the derivative that divide by 0 were taken as 0");
    cot_read_grad(a, g, 8);
    assert_true(g[0] == 1 && g[1] == 0 && g[2] == 0 && g[3] == 3);
    assert_true(g[4] == 1 && g[7] == 3 && g[5] == g[6]);
    assert_int_equal(cot_report(y, out, sizeof out), 1);
    assert_non_null(strstr(out, "has equal eigenvalues in 1 of its matrices"));
    cot_tape_clear_note(t);
    cot_svd(cot_index(a, 0, 0), &u, &s, &vt);
    cot_backward(cot_sum(u, COT_ALL));
    assert_string_equal(cot_tape_note(t), "[svd] the matrix has singular values that are equal or 0; terms of the "
                                          "derivative that divide by 0 were taken as 0");
    assert_ok(t);
    cot_tape_destroy(t);
    t = cot_tape_create(&(cot_options){.smooth = true});
    a = cot_tensor(t, COT_F64, COT_SHAPE(2, 2), (double[]){1, 0, 0, 1});
    assert_int_equal(cot_backward(cot_sum(cot_eigvalsh(a), COT_ALL)), COT_GRAD);
    cot_tape_destroy(t);
}

static void nan_and_infinity_give_nan_and_end(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        int64_t   n = k < 2 ? 3 : 50;
        cot_tape *t = cot_tape_create(NULL);
        double   *a = calloc((size_t)(2 * n * n), sizeof *a);
        for (int64_t i = 0; i < n; i++) a[i * n + i] = a[n * n + i * n + i] = (double)(i + 2);
        a[1] = k % 2 ? INFINITY : NAN;
        cot_var m = cot_data(t, COT_F64, COT_SHAPE(2, n, n), a), w, v, u, s, vt, q, r, p, l;
        cot_eigh(m, &w, &v), cot_svd(m, &u, &s, &vt), cot_qr(m, &q, &r), cot_lu(m, &p, &l, NULL);
        cot_var all[] = {w, v, u, s, vt};
        for (int i = 0; i < TEST_COUNT(all); i++) {
            assert_true(isnan(cot_value(cot_sum(cot_index(all[i], 0, 0), COT_ALL))));
            /* the other matrix is not touched */
            assert_false(isnan(cot_value(cot_sum(cot_index(all[i], 0, 1), COT_ALL))));
        }
        assert_false(isnan(cot_value(cot_sum(cot_index(cot_cholesky(m), 0, 1), COT_ALL))));
        assert_true(isnan(cot_value(cot_sum(cot_index(cot_inv(m), 0, 0), COT_ALL))));
        assert_false(isnan(cot_value(cot_sum(cot_index(cot_inv(m), 0, 1), COT_ALL))));
        assert_ok(t);
        free(a);
        cot_tape_destroy(t);
    }
}

/* Up to rounding: the second column is twice the first; in a batch the others go on. */
static void least_squares_says_when_the_rank_is_short(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_tensor(t, COT_F64, COT_SHAPE(2, 3, 2), (double[]){1, 2, 2, 4, 3, 6, 1, 0, 0, 1, 0, 0}),
            b   = cot_data(t, COT_F64, COT_SHAPE(3, 1), (double[]){1, 2, 4});
    double    z[4];
    cot_read(cot_lstsq(a, b), z, 4);
    assert_true(isnan(z[0]) && isnan(z[1]) && fabs(z[2] - 1) < 1e-15 && fabs(z[3] - 2) < 1e-15);
    assert_string_equal(cot_tape_note(t), "[lstsq] matrix [0] of 2 is not of full rank; its solution is NaN");
    cot_tape_clear_note(t);
    cot_lstsq(cot_slice(a, 0, 1, 2, 1), b);
    cot_lstsq(cot_zeros(t, COT_F64, COT_SHAPE(0, 3, 2)), b);
    assert_string_equal(cot_tape_note(t), "");
    assert_int_equal(cot_tape_status(t), COT_OK);
    cot_tape_destroy(t);
}

/* Eigenvalues 1, 1, 2 turned by a rotation: equal, but for rounding; and columns that depend on
 * each other. */
static void what_is_degenerate_up_to_rounding_is_noted(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    c = 0.36, s = sqrt(1 - 0.36 * 0.36), q[9] = {c, -s, 0, s * 0.6, c * 0.6, -0.8, s * 0.8, c * 0.8, 0.6},
           a[9] = {0};
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < 3; k++) a[i] += q[i / 3 * 3 + k] * (k < 2 ? 1 : 2) * q[i % 3 * 3 + k];
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(3, 3), a), w, v, u, vt;
    cot_eigh(x, &w, &v);
    cot_backward(cot_index(cot_reshape(v, COT_SHAPE(-1)), 0, 0));
    assert_non_null(strstr(cot_tape_note(t), "[eigh] the matrix has e"));
    cot_tape_clear_note(t);
    cot_svd(x, &u, &w, &vt);
    cot_backward(cot_index(cot_reshape(u, COT_SHAPE(-1)), 0, 0));
    assert_non_null(strstr(cot_tape_note(t), "[svd] the matrix has singular values that are equal or 0"));
    cot_tape_clear_note(t);
    cot_var y = cot_tensor(t, COT_F64, COT_SHAPE(3, 2), (double[]){1, 2, 2, 4, 3, 6}), r;
    cot_qr(y, &u, &r);
    assert_string_equal(cot_tape_note(t), "");
    cot_backward(cot_sum(u, COT_ALL));
    assert_string_equal(cot_tape_note(t), "[qr] the matrix has columns that depend on each other; its derivative "
                                          "divides by what is left of one, and means nothing");
    cot_tape_destroy(t);
}

/* ---- exponentials ---------------------------------------------------------------------------- */

static int exponential_of(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_matrix_exp(xs[0]);
    return 0;
}

/* A body has 20 squarings, and the approximant takes norms up to 5.37 (f32: 3.92). */
static void an_exponential_in_a_body_is_nan_above_its_norm(void **state) {
    static const cot_dtype dtypes[] = {COT_F64, COT_F32};
    static const double    below[] = {5.6e6, 4.1e6}, above[] = {5.7e6, 4.2e6};
    (void)state;
    for (int k = 0; k < TEST_COUNT(dtypes); k++) {
        cot_tape *t = cot_tape_create(NULL);
        double    a[8] = {0, below[k], 0, 0, 0, above[k], 0, 0}, want[8], z[8];
        cot_var   x = cot_cast(cot_data(t, COT_F64, COT_SHAPE(2, 2, 2), a), dtypes[k]), y;
        cot_read(cot_matrix_exp(x), want, 8);
        for (int i = 0; i < 8; i++) assert_true(isfinite(want[i]));
        cot_vmap(exponential_of, NULL, 1, &x, NULL, 1, &y, NULL);
        cot_read(y, z, 8);
        assert_memory_equal(z, want, 4 * sizeof *z);
        for (int i = 4; i < 8; i++) assert_true(isnan(z[i]));
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

/* The numbers on the way to an exponential are small enough that a wrong derivative beside it is
 * seen. */
static int same_value(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    memcpy(y->data, xs[0].data, 9 * sizeof(double));
    return 0;
}
static int twice_too_much(int n, const cot_var *xs, cot_var y, cot_var g, cot_var *out, void *user) {
    (void)n, (void)xs, (void)y, (void)user;
    out[0] = cot_mul(2.0, g);
    return 0;
}
static cot_var exponential_of_wrong(int n, const cot_var *xs, void *user) {
    static const cot_custom wrong = {.name = "wrong", .value = same_value, .vjp = twice_too_much};
    return cot_matrix_exp(user ? cot_call(&wrong, n, xs, NULL) : xs[0]);
}
static void a_wrong_rule_beside_an_exponential_is_caught(void **state) {
    (void)state;
    double    a[9] = {0.3, -0.2, 0.5, 0.1, 0.4, -0.6, 0.7, 0.2, -0.1};
    cot_array x = {.data = a, .dtype = COT_F64, .shape = COT_SHAPE(3, 3), .size = 9};
    assert_int_equal(cot_check_grads(exponential_of_wrong, NULL, 1, &x, 2, NULL), COT_OK);
    assert_int_equal(cot_check_grads(exponential_of_wrong, a, 1, &x, 1, NULL), COT_GRAD);
}

/* ---- errors ---------------------------------------------------------------------------------- */

#define SAYS(code, text)                                                                                               \
    do {                                                                                                               \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)

static void errors(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   flat = cot_ones(t, COT_F64, COT_SHAPE(2, 3)), vector = cot_ones(t, COT_F64, COT_SHAPE(3)),
            one    = cot_scalar(t, 1), out[3];
    cot_var square = cot_eye(t, COT_F64, 3, 3), batch = cot_ones(t, COT_F64, COT_SHAPE(2, 3, 3)),
            other = cot_ones(t, COT_F64, COT_SHAPE(4, 3, 1));
    cot_inv(flat);
    SAYS(COT_SHAPE, "[inv] the operand has shape (2,3); its last two axes must be equal");
    cot_det(vector);
    SAYS(COT_SHAPE, "[det] the operand has shape (3,); a matrix has two axes, a batch of them more");
    cot_cholesky(one);
    SAYS(COT_SHAPE, "[cholesky] the operand has shape (); a matrix has two axes, a batch of them more");
    assert_int_equal(cot_qr(vector, &out[0], &out[1]), COT_SHAPE);
    assert_false(cot_is_valid(out[0]) || cot_is_valid(out[1]));
    SAYS(COT_SHAPE, "[qr] the operand has shape (3,); a matrix has two axes, a batch of them more");
    assert_int_equal(cot_eigh(flat, &out[0], &out[1]), COT_SHAPE);
    SAYS(COT_SHAPE, "[eigh] the operand has shape (2,3); its last two axes must be equal");
    cot_eigvalsh(flat);
    SAYS(COT_SHAPE, "[eigvalsh] the operand has shape (2,3); its last two axes must be equal");
    assert_int_equal(cot_slogdet(flat, &out[0], &out[1]), COT_SHAPE);
    SAYS(COT_SHAPE, "[slogdet] the operand has shape (2,3); its last two axes must be equal");
    assert_int_equal(cot_lu(one, &out[0], &out[1], &out[2]), COT_SHAPE);
    SAYS(COT_SHAPE, "[lu] the operand has shape (); a matrix has two axes, a batch of them more");
    assert_int_equal(cot_svd(vector, &out[0], &out[1], &out[2]), COT_SHAPE);
    SAYS(COT_SHAPE, "[svd] the operand has shape (3,); a matrix has two axes, a batch of them more");
    cot_matrix_exp(flat);
    SAYS(COT_SHAPE, "[matrix_exp] the operand has shape (2,3); its last two axes must be equal");
    cot_solve(flat, vector);
    SAYS(COT_SHAPE, "[solve] a has shape (2,3); its last two axes must be equal");
    cot_solve(square, flat);
    SAYS(COT_SHAPE, "[solve] a has shape (3,3) and b (2,3); the rows of b must be as many as the rows of a");
    cot_solve(square, one);
    SAYS(COT_SHAPE, "[solve] a has shape (3,3) and b (); the rows of b must be as many as the rows of a");
    cot_solve(batch, other);
    SAYS(COT_SHAPE, "[solve] a has shape (2,3,3) and b (4,3,1); aligned before the last two, extents are equal or 1");
    cot_triangular_solve(square, vector, COT_RIGHT);
    SAYS(COT_SHAPE,
         "[triangular_solve] a has shape (3,3) and b (3,); the columns of b must be as many as the rows of a");
    cot_triangular_solve(square, square, 16);
    SAYS(COT_VALUE, "[triangular_solve] the flags are 16; they are COT_UPPER, COT_TRANSPOSED, COT_UNIT_DIAGONAL and "
                    "COT_RIGHT, or-ed");
    cot_lstsq(flat, vector);
    SAYS(COT_SHAPE, "[lstsq] a has shape (2,3) and b (3,); the rows of b must be as many as the rows of a");
    cot_tape_destroy(t);
}

/* A view of one number as 2^56 of them: the factors would need room that no memory has. */
static void absurd_sizes_are_out_of_memory(void **state) {
    (void)state;
    counting  c = {.fail_from_size = (size_t)1 << 40}; /* sanitizers would stop the program */
    cot_tape *t = cot_tape_create(&(cot_options){.allocator = {counting_alloc, &c}});
    cot_var   one = cot_scalar(t, 1), out[3];
    cot_var huge = cot_broadcast_to(one, COT_SHAPE(INT64_C(1) << 28, INT64_C(1) << 28));
    assert_ok(t);
    for (int k = 0; k < 7; k++) {
        if (k == 0) cot_inv(huge);
        if (k == 1) cot_det(huge);
        if (k == 2) cot_cholesky(huge);
        if (k == 3) cot_qr(huge, &out[0], &out[1]);
        if (k == 4) cot_lu(huge, &out[0], &out[1], &out[2]);
        if (k == 5) cot_svd(huge, &out[0], &out[1], &out[2]);
        if (k == 6) cot_triangular_solve(huge, huge, 0);
        assert_int_equal(cot_tape_status(t), COT_MEMORY);
        assert_non_null(strstr(cot_tape_message(t), "out of memory"));
        cot_tape_clear_error(t);
    }
    cot_tape_destroy(t);
    assert_int_equal(c.blocks, 0);
}

static void program(cot_tape *t, void *user) {
    (void)user;
    cot_var a = cot_tensor(t, COT_F64, COT_SHAPE(2, 2), (double[]){4, 1, 2, 3}), p, l, u, q, r, w, v, s, vt;
    double  big[36 * 36] = {0};
    for (int i = 0; i < 36; i++) big[i * 37] = i + 1, big[(i * 36 + 5 * i) % 1296] += 0.5;
    cot_var b = cot_tensor(t, COT_F64, COT_SHAPE(36, 36), big);
    for (int k = 0; k < 2; k++) {
        cot_var x = k ? b : a;
        cot_lu(x, &p, &l, &u), cot_qr(x, &q, &r), cot_eigh(x, &w, &v);
        cot_var y = cot_add(cot_sum(cot_add(l, q), COT_ALL), cot_sum(v, COT_ALL));
        cot_svd(x, &u, &s, &vt);
        y = cot_add(y, cot_add(cot_sum(u, COT_ALL), cot_det(x)));
        y = cot_add(y, cot_add(cot_sum(cot_cholesky(x), COT_ALL), cot_sum(cot_lstsq(x, x), COT_ALL)));
        y = cot_add(y, cot_sum(k ? cot_inv(x) : cot_matrix_exp(cot_mul(x, 9.0)), COT_ALL));
        cot_backward(y);
    }
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    assert_survives_no_memory(program, NULL, 0, NULL);
}

static void eigenvalues(cot_tape *t, void *user) {
    (void)user;
    cot_eigvalsh(cot_data(t, COT_F64, COT_SHAPE(2, 2), (double[]){2, 1, 1, 3}));
}

static void without_memory_the_function_that_was_called_is_named(void **state) {
    (void)state;
    assert_survives_no_memory(eigenvalues, NULL, 1, (const char *const[]){"[eigvalsh] out of memory"});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(least_squares_says_when_the_rank_is_short),
        cmocka_unit_test(an_exponential_in_a_body_is_nan_above_its_norm),
        cmocka_unit_test(a_wrong_rule_beside_an_exponential_is_caught),
        cmocka_unit_test(what_is_degenerate_up_to_rounding_is_noted),
        cmocka_unit_test(one_bad_matrix_is_nan_with_a_note_and_the_rest_is_right),
        cmocka_unit_test(a_note_goes_with_a_rewind_and_only_then),
        cmocka_unit_test(equal_values_are_noted_and_reported_and_their_terms_are_zero),
        cmocka_unit_test(nan_and_infinity_give_nan_and_end),
        cmocka_unit_test(errors),
        cmocka_unit_test(absurd_sizes_are_out_of_memory),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(without_memory_the_function_that_was_called_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
