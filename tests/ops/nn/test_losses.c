/* Losses and embeddings: values against formulas, the ends of their ranges, NaN, dtypes, errors. */
#include "support/structural_test.h"

#define LEAF(shape, ...) cot_tensor(t, COT_F64, shape, (double[]){__VA_ARGS__})

static void assert_grad(cot_var x, int n, const double *want, double tolerance) {
    double g[16];
    assert_int_equal(cot_read_grad(x, g, n), COT_OK);
    for (int i = 0; i < n; i++) assert_near(g[i], want[i], tolerance);
}

/* ---- bce ------------------------------------------------------------------------------------- */

static void bce_is_exact_to_the_end_of_its_tails(void **state) {
    (void)state;
    static const double xs[] = {-800, -40, -1, 0, 0.5, 20, 36, 700};
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < 8; i++)
            for (int target = 0; target < 2; target++) {
                cot_tape *t = cot_tape_create(NULL);
                cot_var x = cot_scalar_of(t, d ? COT_F32 : COT_F64, xs[i]), y = cot_bce_with_logits(x, (double)target);
                double    away = target ? -xs[i] : xs[i];
                double    exact = away > 0 ? away + log1p(exp(-away)) : log1p(exp(away)),
                       unit     = d ? 4 * 0x1p-23 : 4 * 0x1p-52;
                double    slope = (target ? -1 : 1) * (away > 0 ? 1 / (1 + exp(-away)) : exp(away) / (1 + exp(away)));
                cot_backward(y);
                assert_true(fabs(cot_value(y) - exact) <= unit * exact + 0x1p-149);
                assert_true(fabs(cot_grad_value(x) - slope) <= unit * fabs(slope) + 0x1p-149);
                assert_ok(t);
                cot_tape_destroy(t);
            }
}

static void bce_of_certain_answers_is_zero(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = LEAF(S(3), INFINITY, -INFINITY, 0), y = cot_bce_with_logits(x, REALS(S(3), 1, 0, 0.5));
    assert_near(cot_value(y), log(2) / 3, 1e-15);
    cot_backward(y);
    assert_grad(x, 3, (double[]){0, 0, 0}, 0);
    assert_true(isinf(cot_value(cot_bce_with_logits(x, REALS(S(3), 0, 0, 0)))));
    assert_true(isnan(cot_value(cot_bce_with_logits(cot_scalar(t, NAN), 0.5))));
    /* the mean of nothing, as mse */
    assert_true(isnan(cot_value(cot_bce_with_logits(cot_zeros(t, COT_F64, S(0)), cot_zeros(t, COT_F64, S(0))))));
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- nll, kl_div ----------------------------------------------------------------------------- */

static void nll_is_cross_entropy_of_logarithms(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = LEAF(S(2, 3), 1, 2, 3, 0, 0, 1), labels = INTS(S(2), 2, 0),
            weights = REALS(S(2, 3), 0.5, 0.5, 0, 0, 1, 0);
    cot_var   log_p = cot_log_softmax(x, 1);
    assert_near(cot_value(cot_nll(log_p, labels)), cot_value(cot_softmax_cross_entropy(x, labels)), 1e-15);
    assert_near(cot_value(cot_nll(log_p, weights)), cot_value(cot_softmax_cross_entropy(x, weights)), 1e-15);
    cot_backward(cot_nll(x, labels));
    assert_grad(x, 6, (double[]){0, 0, -0.5, -0.5, 0, 0}, 0);
    /* a weight of 0 wins */
    assert_near(cot_value(cot_nll(REALS(S(2), 0, -INFINITY), REALS(S(2), 1, 0))), 0, 0);
    assert_near(cot_value(cot_nll(REALS(S(2), -1, -2), INTS(COT_SCALAR, 1))), 2, 0);
    assert_near(cot_value(cot_nll(cot_transpose(REALS(S(2, 2), -1, -2, -3, -4)), INTS(S(2), 0, 1))), 2.5, 0);
    assert_true(isnan(cot_value(cot_nll(cot_zeros(t, COT_F64, S(0, 3)), cot_zeros(t, COT_I64, S(0))))));
    cot_var half = cot_nll(cot_cast(x, COT_F16), labels);
    assert_int_equal(cot_dtype_of(half), COT_F16);
    assert_near(cot_value(half), -1.5, 0);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void kl_div_counts_nothing_where_the_target_is_zero(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = LEAF(S(2, 2), -INFINITY, -0.5, log(0.25), log(0.75)), q = LEAF(S(2, 2), 0, 1, 0.25, 0.75),
            y = cot_kl_div(x, q);
    assert_near(cot_value(y), 0.25, 1e-16); /* rows 0.5 and 0 */
    cot_backward(y);
    assert_grad(x, 4, (double[]){0, -0.5, -0.125, -0.375}, 1e-16);
    cot_var only = LEAF(S(2), 0, 1); /* the slope of q log q at 0 */
    cot_backward(cot_kl_div(REALS(S(2), -1, -1), only));
    assert_grad(only, 2, (double[]){-INFINITY, 2}, 1e-16);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- huber ----------------------------------------------------------------------------------- */

static void huber_is_square_inside_and_straight_outside(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = LEAF(S(5), 0.5, -3, 1, 0, 8), grad, second;
    cot_var   y = cot_huber(x, 0, 1);
    assert_near(cot_value(y), (0.125 + 2.5 + 0.5 + 0 + 7.5) / 5, 1e-15);
    cot_grad_of(y, 1, &x, &grad);
    cot_grad_of(cot_sum(grad, COT_ALL), 1, &x, &second);
    double g[5], h[5];
    cot_read(grad, g, 5), cot_read(second, h, 5);
    /* on the edge: as outside */
    static const double slopes[5] = {0.1, -0.2, 0.2, 0, 0.2}, bends[5] = {0.2, 0, 0, 0.2, 0};
    for (int i = 0; i < 5; i++) assert_near(g[i], slopes[i], 1e-16), assert_near(h[i], bends[i], 1e-16);
    cot_var all = cot_huber(x, cot_number(1), INFINITY), half = cot_mul(cot_mse(x, 1), 0.5);
    assert_near(cot_value(all), cot_value(half), 1e-15);
    assert_true(isnan(cot_value(cot_huber(cot_scalar(t, NAN), cot_number(0), 1))));
    assert_int_equal(cot_dtype_of(cot_huber(cot_ones(t, COT_BF16, S(2)), cot_number(0), 1)), COT_BF16);
    assert_int_equal(cot_dtype_of(cot_huber(cot_ones(t, COT_I32, S(2)), cot_number(0), 1)), COT_F64);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- cosine ---------------------------------------------------------------------------------- */

static void cosines_have_no_trouble_with_length(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = REALS(S(4, 2), 3e200, 4e200, 3e-5, 4e-5, 1, 0, 0, 0),
            y   = REALS(S(4, 2), 4e200, 3e200, -4e-5, -3e-5, 0, 2, 1, 1);
    double    z[4];
    cot_read(cot_cosine_similarity(x, y, -1, 1e-8), z, 4);
    assert_near(z[0], 0.96, 1e-15);
    assert_near(z[1], -0.96, 1e-15);
    assert_near(z[2], 0, 0);
    assert_near(z[3], 0, 0);
    cot_var zero = LEAF(S(2), 0, 0), other = LEAF(S(2), 3, 4);
    cot_backward(cot_cosine_similarity(zero, other, 0, 0.5));
    assert_grad(zero, 2, (double[]){1.2, 1.6}, 1e-15); /* y / (eps |y|) */
    assert_grad(other, 2, (double[]){0, 0}, 0);
    assert_int_equal(
        cot_size(cot_cosine_similarity(cot_zeros(t, COT_F32, S(0, 3)), cot_zeros(t, COT_F32, S(0, 3)), 1, 1)), 0);
    assert_near(cot_value(cot_cosine_similarity(cot_zeros(t, COT_F32, S(0)), cot_zeros(t, COT_F32, S(0)), 0, 1)), 0, 0);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- embedding ------------------------------------------------------------------------------- */

static void the_padding_row_gets_no_gradient(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        static const int64_t padding[3] = {COT_NO_PADDING, 2, -1};
        cot_tape            *t = cot_tape_create(NULL);
        cot_var              table = LEAF(S(3, 2), 1, 2, 3, 4, 5, 6);
        cot_var              y = cot_embedding(table, INTS(S(2, 2), 0, 2, -1, 0), padding[k]);
        double               z[8];
        cot_read(y, z, 8);
        assert_memory_equal(z, ((double[]){1, 2, 5, 6, 5, 6, 1, 2}), sizeof z);
        cot_backward(cot_sum(y, COT_ALL));
        assert_grad(table, 6, k ? (double[]){2, 2, 0, 0, 0, 0} : (double[]){2, 2, 0, 0, 2, 2}, 0);
        assert_int_equal(cot_size(cot_embedding(table, cot_zeros(t, COT_I32, S(0)), padding[k])), 0);
        assert_int_equal(cot_shape_of(cot_embedding(table, INTS(COT_SCALAR, 1), padding[k])).ndim, 1);
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

/* ---- errors ---------------------------------------------------------------------------------- */

#define SAYS(call, code, text)                                                                                         \
    do {                                                                                                               \
        assert_false(cot_is_valid(call));                                                                              \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)

static void errors_say_what_is_wrong(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = LEAF(S(2, 3), 1, 2, 3, 4, 5, 6), two = LEAF(S(2), 1, 2);
    SAYS(cot_bce_with_logits(x, two), COT_SHAPE,
         "[bce_with_logits] the operands have shapes (2,3) and (2,); they must be equal, or one a scalar: this does "
         "not broadcast, and cot_reshape or cot_broadcast_to say what is meant");
    SAYS(cot_huber(x, two, 1), COT_SHAPE,
         "[huber] the operands have shapes (2,3) and (2,); they must be equal, or one a scalar: this does not "
         "broadcast, and cot_reshape or cot_broadcast_to say what is meant");
    SAYS(cot_huber(x, x, 0), COT_VALUE, "[huber] delta is 0; it must be positive");
    SAYS(cot_huber(x, x, NAN), COT_VALUE, "[huber] delta is nan; it must be positive");
    SAYS(cot_nll(x, INTS(S(2), 0, 3)), COT_VALUE,
         "[nll] labels[1] is 3, out of range for extent 3; values run from 0 to 2");
    SAYS(cot_nll(x, INTS(S(2), -1, 0)), COT_VALUE,
         "[nll] labels[0] is -1, out of range for extent 3; values run from 0 to 2");
    SAYS(cot_nll(x, INTS(S(3), 0, 0, 0)), COT_SHAPE,
         "[nll] predictions of shape (2,3) need labels of shape (2,); these have (3,)");
    SAYS(cot_nll(x, two), COT_SHAPE, "[nll] predictions of shape (2,3) need targets of shape (2,3); these have (2,)");
    SAYS(cot_nll(cot_scalar(t, 1), INTS(COT_SCALAR, 0)), COT_SHAPE,
         "[nll] the predictions have shape (); the last axis holds the classes, at least one");
    SAYS(cot_kl_div(x, two), COT_SHAPE,
         "[kl_div] predictions of shape (2,3) need targets of shape (2,3); these have (2,)");
    /* of any shape: labels are the mistake */
    SAYS(cot_kl_div(x, INTS(S(2), 0, 1)), COT_DTYPE,
         "[kl_div] the targets have dtype i64; they must be probabilities, and cot_nll takes labels");
    SAYS(cot_kl_div(x, INTS(S(2, 3), 0, 1, 2, 0, 1, 7)), COT_DTYPE,
         "[kl_div] the targets have dtype i64; they must be probabilities, and cot_nll takes labels");
    SAYS(cot_cosine_similarity(x, two, 0, 1), COT_SHAPE,
         "[cosine_similarity] the operands have shapes (2,3) and (2,); they must be equal, or one a scalar: this does "
         "not broadcast, and cot_reshape or cot_broadcast_to say what is meant");
    SAYS(cot_cosine_similarity(x, x, 2, 1), COT_SHAPE,
         "[cosine_similarity] axis 2 is out of range for rank 2; axes run from -2 to 1");
    SAYS(cot_cosine_similarity(x, x, 0, 0), COT_VALUE, "[cosine_similarity] eps is 0; it must be positive");
    SAYS(cot_embedding(two, INTS(S(1), 0), COT_NO_PADDING), COT_SHAPE,
         "[embedding] the table has shape (2,); it must be a matrix, a row for each index");
    SAYS(cot_embedding(x, INTS(S(1), 0), 2), COT_VALUE, "[embedding] the padding row is 2, but the table has 2 rows");
    SAYS(cot_embedding(x, INTS(S(1), 0), -3), COT_VALUE, "[embedding] the padding row is -3, but the table has 2 rows");
    SAYS(cot_embedding(x, INTS(S(1), 2), COT_NO_PADDING), COT_VALUE,
         "[embedding] indices[0] is 2, out of range for extent 2; values run from -2 to 1");
    SAYS(cot_embedding(x, two, COT_NO_PADDING), COT_DTYPE, "[embedding] indices have dtype f64; they must be integers");
    assert_false(cot_is_valid(cot_bce_with_logits(1.0, 0.0)));
    cot_tape_destroy(t);
}

static void everything(cot_tape *t, void *user) {
    (void)user;
    cot_var x = cot_tensor(t, COT_F64, S(40, 30), NULL), q = cot_full(t, COT_F64, S(40, 30), 0.5);
    cot_var sum =
        cot_add(cot_bce_with_logits(x, q), cot_add(cot_nll(x, cot_zeros(t, COT_I64, S(40))), cot_huber(x, q, 0.1)));
    sum = cot_add(sum, cot_add(cot_kl_div(x, q), cot_sum(cot_cosine_similarity(x, q, 0, 1e-8), COT_ALL)));
    cot_backward(cot_add(sum, cot_sum(cot_embedding(x, cot_zeros(t, COT_I64, S(5)), 1), COT_ALL)));
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    assert_survives_no_memory(everything, NULL, 0, NULL);
}

static void losses_equal_their_formulas(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = REALS(S(2, 3), 1, 2, 3, 1, 1, 1);
    double    lse = log(exp(1) + exp(2) + exp(3));
    VALUES(cot_softmax(x, 1), S(2, 3), exp(1 - lse), exp(2 - lse), exp(3 - lse), 1 / 3.0, 1 / 3.0, 1 / 3.0);
    VALUES(cot_log_softmax(x, 1), S(2, 3), 1 - lse, 2 - lse, 3 - lse, -log(3), -log(3), -log(3));
    VALUES(cot_softmax_cross_entropy(x, INTS(S(2), 0, 2)), O, (lse - 1 + log(3)) / 2);
    VALUES(cot_softmax_cross_entropy(cot_flip(x, COT_AXES(0)), INTS(S(2), 2, 0)), O, (lse - 1 + log(3)) / 2);
    VALUES(cot_softmax_cross_entropy(x, REALS(S(2, 3), 0.5, 0.5, 0, 0, 1, 0)), O, (lse - 1.5 + log(3)) / 2);
    VALUES(cot_softmax_cross_entropy(REALS(S(2), 0, -INFINITY), REALS(S(2), 1, 0)), O, 0);
    VALUES(cot_softmax_cross_entropy(REALS(S(1, 2), 1000, -1000), INTS(S(1), 1)), O, 2000);
    VALUES(cot_cross_entropy(REALS(S(2, 2), 0.25, 0.75, 0.5, 0.5), INTS(S(2), 0, 1)), O, (log(4) + log(2)) / 2);
    VALUES(cot_cross_entropy(cot_transpose(REALS(S(2, 2), 0.25, 0.5, 0.75, 0.5)), INTS(S(2), 0, 1)), O,
           (log(4) + log(2)) / 2);
    VALUES(cot_cross_entropy(REALS(S(1, 2), 1, 0), REALS(S(1, 2), 1, 0)), O, 0);
    VALUES(cot_mse(x, cot_zeros(t, COT_F64, S(2, 3))), O, 17 / 6.0);
    VALUES(cot_mse(x, 1), O, 5 / 6.0);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_equal_their_formulas),
        cmocka_unit_test(bce_is_exact_to_the_end_of_its_tails),
        cmocka_unit_test(bce_of_certain_answers_is_zero),
        cmocka_unit_test(nll_is_cross_entropy_of_logarithms),
        cmocka_unit_test(kl_div_counts_nothing_where_the_target_is_zero),
        cmocka_unit_test(huber_is_square_inside_and_straight_outside),
        cmocka_unit_test(cosines_have_no_trouble_with_length),
        cmocka_unit_test(the_padding_row_gets_no_gradient),
        cmocka_unit_test(errors_say_what_is_wrong),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
