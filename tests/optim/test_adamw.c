/* Steps of optimisers: the formula of AdamW, values that it must not change, and arguments that
 * both refuse. */
#include "support/tape_test.h"

static const cot_adamw usual = {.step = 1, .rate = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.01};

static void three_steps_follow_the_formula(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x[4]  = {cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, -2}),
                       cot_tensor(t, COT_F32, COT_SHAPE(2), (float[]){1, -2}), cot_scalar(t, -2),
                       cot_scalar_of(t, COT_F32, -2)};
    double    m0[2] = {0}, v0[2] = {0}, m2 = 0, v2 = 0, w[2] = {1, -2}, m[2] = {0}, v[2] = {0}, got[2];
    float     m1[2] = {0}, v1[2] = {0}, m3 = 0, v3 = 0;
    void     *ms[4] = {m0, m1, &m2, &m3}, *vs[4] = {v0, v1, &v2, &v3};
    cot_mark  start = cot_tape_mark(t);
    for (int step = 1; step <= 3; step++) {
        cot_var y = cot_add(cot_sum(cot_square(x[0]), COT_ALL), cot_add(cot_square(x[2]), cot_square(x[3])));
        cot_backward(cot_add(y, cot_sum(cot_square(x[1]), COT_ALL)));
        cot_adamw o = usual;
        o.step = step;
        assert_int_equal(cot_adamw_step(4, x, ms, vs, o), COT_OK);
        for (int i = 0; i < 2; i++) {
            double g = 2 * w[i];
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            w[i]     = w[i] * (1 - 0.1 * 0.01) -
                   0.1 * (m[i] / (1 - pow(0.9, step))) / (sqrt(v[i] / (1 - pow(0.999, step))) + 1e-8);
        }
        for (int k = 0; k < 4; k++) {
            cot_read(x[k], got, k < 2 ? 2 : 1);
            for (int i = 0; i < (k < 2 ? 2 : 1); i++) assert_near(got[i], w[k < 2 ? i : 1], k % 2 ? 1e-6 : 1e-14);
        }
        cot_tape_zero_grads(t);
        cot_tape_rewind(t, start);
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

/* A struct with only step and rate: usual numbers, and an element that never had a gradient
 * stays. */
static void what_is_left_out_is_the_default(void **state) {
    (void)state;
    double w[2][2];
    for (int k = 0; k < 2; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2});
        double    m[2] = {0}, v[2] = {0};
        cot_backward(cot_index(x, 0, 1));
        cot_adamw o = {.step = 1, .rate = 0.1};
        if (k) o.beta1 = 0.9, o.beta2 = 0.999, o.eps = 1e-8;
        assert_int_equal(cot_adamw_step(1, &x, (void *[]){m}, (void *[]){v}, o), COT_OK);
        cot_read(x, w[k], 2);
        cot_tape_destroy(t);
    }
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    assert_near(w[0][0], 1, 0);
    assert_near(w[0][1], 1.9, 1e-8);
}

static void what_was_computed_before_is_recognised_as_stale(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2), y = cot_square(x);
    double    m = 0, v = 0;
    cot_backward(y);
    assert_int_equal(cot_adamw_step(1, &x, (void *[]){&m}, (void *[]){&v}, usual), COT_OK);
    assert_int_equal(cot_backward(y), COT_STALE);
    cot_tape_destroy(t);
}

static void a_leaf_without_gradient_stays(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2);
    double    m = 0, v = 0;
    assert_int_equal(cot_adamw_step(1, &x, (void *[]){&m}, (void *[]){&v}, usual), COT_OK);
    assert_true(cot_value(x) == 2 && m == 0 && v == 0);
    assert_int_equal(cot_adamw_step(0, NULL, NULL, NULL, usual), COT_OK);
    cot_tape_destroy(t);
}

static void threads_give_the_same_bits(void **state) {
    (void)state;
    enum { SIZE = 300000 };
    static float data[SIZE], m[SIZE], v[SIZE], first[SIZE], got[SIZE];
    for (int i = 0; i < SIZE; i++) data[i] = sinf((float)i);
    for (int threads = 1; threads <= 8; threads = threads < 3 ? threads + 1 : threads + 5) {
        cot_set_threads(threads);
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F32, COT_SHAPE(SIZE), data);
        memset(m, 0, sizeof m), memset(v, 0, sizeof v);
        cot_backward(cot_sum(cot_square(x), COT_ALL));
        cot_adamw_step(1, &x, (void *[]){m}, (void *[]){v}, usual);
        cot_read_as(x, COT_F32, threads == 1 ? first : got, SIZE);
        if (threads > 1) assert_memory_equal(first, got, sizeof got);
        cot_tape_destroy(t);
    }
    cot_set_threads(0);
}

static void wrong_arguments_change_nothing(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2), y = cot_square(x), half = cot_scalar_of(t, COT_BF16, 1);
    double    m = 0, v = 0;
    void     *ms[2] = {&m, &m}, *vs[2] = {&v, &v};
    cot_backward(y);
#define REFUSED(code, text, ...)                                                                                       \
    do {                                                                                                               \
        assert_int_equal(cot_adamw_step(__VA_ARGS__), code);                                                           \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
        assert_true(cot_value(x) == 2 && m == 0);                                                                      \
    } while (0)
    REFUSED(COT_VALUE, "[adamw_step] xs[1] is not a leaf", 2, ((cot_var[]){x, y}), ms, vs, usual);
    REFUSED(COT_DTYPE,
            "[adamw_step] xs[1] has dtype bf16; weights are f32 or f64: keep those, and cast them for the computation",
            2, ((cot_var[]){x, half}), ms, vs, usual);
    REFUSED(COT_VALUE,
            "[adamw_step] the moments of xs[0] are NULL; they are arrays of 1 elements of its dtype, zero at first", 1,
            &x, NULL, vs, usual);
    cot_adamw o = usual;
    o.step = 0;
    REFUSED(COT_VALUE,
            "[adamw_step] step 0, rate 0.1, betas 0.9 and 0.999, eps 1e-08, decay 0.01; steps count from 1, betas are "
            "in [0, 1), the others finite and not negative",
            1, &x, ms, vs, o);
    o = usual;
    o.rate = (double)INFINITY;
    REFUSED(COT_VALUE,
            "[adamw_step] step 1, rate inf, betas 0.9 and 0.999, eps 1e-08, decay 0.01; steps count from 1, betas are "
            "in [0, 1), the others finite and not "
            "negative",
            1, &x, ms, vs, o);
    o = usual;
    o.decay = (double)INFINITY;
    REFUSED(COT_VALUE,
            "[adamw_step] step 1, rate 0.1, betas 0.9 and 0.999, eps 1e-08, decay inf; steps count from 1, betas are "
            "in [0, 1), the others finite and not "
            "negative",
            1, &x, ms, vs, o);
#undef REFUSED
    cot_tape_destroy(t);
}

static void a_wrong_step_along_the_gradient_changes_nothing(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2), y = cot_mul(x, x);
    cot_backward(y);
#define REFUSED(text, ...)                                                                                             \
    do {                                                                                                               \
        assert_int_equal(cot_sgd_step(__VA_ARGS__), COT_VALUE);                                                        \
        assert_error(t, COT_VALUE, text);                                                                              \
        cot_tape_clear_error(t);                                                                                       \
        assert_true(cot_value(x) == 2);                                                                                \
    } while (0)
    REFUSED("[sgd_step] the rate is nan; it must be finite and not negative", 1, &x, (double)NAN);
    REFUSED("[sgd_step] the rate is inf; it must be finite and not negative", 1, &x, (double)INFINITY);
    REFUSED("[sgd_step] the rate is -0.5; it must be finite and not negative", 1, &x, -0.5);
    REFUSED("[sgd_step] xs[1] is not a leaf", 2, ((cot_var[]){x, y}), 0.5);
#undef REFUSED
    assert_int_equal(cot_sgd_step(1, &x, 0), COT_OK);
    assert_true(cot_value(x) == 2);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_steps_follow_the_formula),
        cmocka_unit_test(what_is_left_out_is_the_default),
        cmocka_unit_test(what_was_computed_before_is_recognised_as_stale),
        cmocka_unit_test(a_leaf_without_gradient_stays),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(wrong_arguments_change_nothing),
        cmocka_unit_test(a_wrong_step_along_the_gradient_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
