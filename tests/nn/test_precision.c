/* Mixed precision: products of 16 bits are f32 sums rounded once; policies by operation and by
 * name; losses that are scaled; saved bytes that halve. */
#include "support/tape_test.h"

#include <cotangent_sparse.h>

enum { ROWS = 32, IN = 24, WIDTH = 40 };

static cot_var net(cot_params *p, cot_var x) {
    x = cot_relu(cot_nn_dense(p, "a.fc1", x, WIDTH));
    x = cot_relu(cot_nn_dense(p, "a.fc2", x, WIDTH));
    return cot_nn_dense(p, "head", cot_nn_layer_norm(p, "ln", x, 0), 10);
}

static cot_var normal(cot_tape *t, uint64_t seed, int64_t rows, int64_t columns) {
    return cot_normal(t, cot_key_of(seed), COT_F32, COT_SHAPE(rows, columns));
}

/* Each element is one chain of f32 sums in order, rounded at the end: what cot_matmul of f32 gives
 * for the same numbers, cast. So do its gradients. */
static void products_of_16_bits_are_f32_sums_rounded_once(void **state) {
    (void)state;
    const cot_dtype narrow[] = {COT_BF16, COT_F16};
    for (int k = 0; k < 2; k++) {
        static double a[ROWS * WIDTH], b[ROWS * WIDTH];
        cot_tape     *t = cot_tape_create(NULL);
        cot_var       x = cot_cast(normal(t, 1, ROWS, IN), narrow[k]), w = cot_cast(normal(t, 2, IN, WIDTH), narrow[k]);
        cot_var       y = cot_matmul(x, w), z = cot_matmul(cot_cast(x, COT_F32), cot_cast(w, COT_F32));
        assert_int_equal(cot_dtype_of(y), narrow[k]);
        cot_read(y, a, ROWS * WIDTH);
        cot_read(cot_cast(z, narrow[k]), b, ROWS * WIDTH);
        assert_ok(t);
        assert_memory_equal(a, b, sizeof a);
        cot_read(z, b, ROWS * WIDTH);
        assert_memory_not_equal(a, b, sizeof a);
        cot_tape_destroy(t);
    }
}

static void a_policy_casts_the_operations_that_it_names(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_leaf(normal(t, 1, ROWS, IN)), w = cot_leaf(normal(t, 2, IN, WIDTH)), y, z;
    cot_precision before = cot_tape_set_precision(t, (cot_precision){.compute = COT_BF16});
    y = cot_matmul(x, w);
    assert_int_equal(cot_dtype_of(y), COT_BF16);
    assert_int_equal(cot_dtype_of(cot_mul(x, x)), COT_F32);
    assert_int_equal(cot_dtype_of(cot_mse(y, cot_full_like(y, 0))), COT_F32);
    cot_var labels = cot_zeros(t, COT_I64, COT_SHAPE(ROWS)), loss = cot_softmax_cross_entropy(y, labels);
    assert_int_equal(cot_dtype_of(loss), COT_F32);
    /* f64 stays as it is */
    z = cot_cast(x, COT_F64);
    assert_int_equal(cot_dtype_of(cot_matmul(z, cot_cast(w, COT_F64))), COT_F64);
    cot_precision other = {.compute = COT_F16, .narrow = " conv*  einsum", .wide = "nll"};
    cot_precision now = cot_tape_set_precision(t, other);
    assert_int_equal(now.compute, COT_BF16);
    assert_int_equal(before.compute, COT_F64);
    assert_int_equal(cot_dtype_of(cot_matmul(x, w)), COT_F32);
    assert_int_equal(cot_dtype_of(cot_mse(y, cot_full_like(y, 0))), COT_BF16);
    /* the policy is not that of rules: these compute as what was recorded */
    cot_tape_set_precision(t, (cot_precision){.compute = COT_F16, .narrow = "*"});
    assert_int_equal(cot_backward(loss), COT_OK);
    assert_int_equal(cot_dtype_of(cot_grad(w)), COT_F32);
    static double g[IN * WIDTH], h[IN * WIDTH];
    cot_read_grad(w, g, IN * WIDTH);
    cot_tape_zero_grads(t);
    cot_tape_set_precision(t, before);
    cot_var same = cot_matmul(cot_cast(x, COT_BF16), cot_cast(w, COT_BF16));
    cot_backward(cot_softmax_cross_entropy(cot_cast(same, COT_F32), labels));
    cot_read_grad(w, h, IN * WIDTH);
    assert_ok(t);
    assert_memory_equal(g, h, sizeof g);
    assert_int_equal(cot_tape_set_precision(NULL, before).compute, COT_F64);
    cot_tape_destroy(t);
}

/* What would do nothing in silence is an error, and what held before holds on. */
static void a_policy_that_says_nothing_is_refused(void **state) {
    (void)state;
    static const struct { cot_precision how; const char *sentence; } wrong[] = {
        {{.compute = (cot_dtype)99},
         "[tape_set_precision] compute is 99, no dtype of floats; COT_BF16 and COT_F16 are asked for, any other float "
         "for none"},
        {{.compute = COT_BF16, .narrow = "matmul add"},
         "[tape_set_precision] \"add\" in the list `narrow` names no operation that asks; matmul to losses do, "
         "elementwise ones compute in the dtype of their operands"},
        {{.compute = COT_BF16, .wide = "mse matmull*"},
         "[tape_set_precision] \"matmull*\" in the list `wide` names no operation that asks; matmul to losses do, "
         "elementwise ones compute in the dtype of their operands"},
        {{.compute = COT_BF16, .narrow = "m*", .wide = "mse"},
         "[tape_set_precision] mse is in both lists, narrow and wide; an operation computes in one of them"},
    };
    for (int k = 0; k < 4; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_tape_set_precision(t, (cot_precision){.compute = COT_F16});
        assert_int_equal(cot_tape_set_precision(t, wrong[k].how).compute, COT_F16);
        assert_error(t, COT_VALUE, wrong[k].sentence);
        assert_int_equal(cot_tape_set_precision(t, (cot_precision){.compute = COT_F32}).compute, COT_F16);
        cot_tape_destroy(t);
    }
}

static void a_scale_that_is_no_scale_is_refused(void **state) {
    (void)state;
    const double wrong[] = {-2, NAN, INFINITY};
    for (int k = 0; k < 3; k++) {
        cot_tape      *t = cot_tape_create(NULL);
        cot_params    *p = cot_params_create(t);
        cot_loss_scale s = {.scale = wrong[k]};
        char           text[100];
        assert_false(cot_is_valid(cot_loss_scaled(&s, cot_scalar(t, 1))));
        snprintf(text, sizeof text, "[loss_scaled] a scale of %g; it must be a number above 0, or 0 to begin with",
                 wrong[k]);
        assert_error(t, COT_VALUE, text);
        cot_params_destroy(p);
        cot_tape_destroy(t);
        t = cot_tape_create(NULL), p = cot_params_create(t);
        assert_false(cot_unscale_grads(p, &s));
        snprintf(text, sizeof text, "[unscale_grads] a scale of %g; it must be a number above 0, or 0 to begin with",
                 wrong[k]);
        assert_error(t, COT_VALUE, text);
        cot_params_destroy(p);
        cot_tape_destroy(t);
    }
}

static void layers_compute_in_what_their_name_says(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_params *p = cot_params_create(t);
    cot_var     x = normal(t, 1, ROWS, IN);
    cot_params_set_precision(p, "*", COT_BF16);
    cot_params_set_precision(p, "head", COT_F32);
    cot_params_init(p, net, x, cot_key_of(0));
    assert_ok(t);
    for (int k = 0; k < cot_params_count(p); k++) assert_int_equal(cot_dtype_of(cot_params_at(p, k).var), COT_F32);
    assert_int_equal(cot_dtype_of(cot_nn_dense(p, "a.fc1", x, WIDTH)), COT_BF16);
    cot_var y = net(p, x);
    assert_int_equal(cot_dtype_of(y), COT_F32); /* bf16 with f32 weights */
    cot_backward(cot_mse(y, cot_full_like(y, 0)));
    assert_ok(t);
    assert_int_equal(cot_dtype_of(cot_grad(cot_params_get(p, "a.fc1.weight"))), COT_F32);
    cot_params_set_precision(p, NULL, COT_BF16);
    assert_error(t, COT_VALUE,
                 "[params_set_precision] the pattern is NULL, the dtype bf16; there must be a pattern and a float "
                 "dtype");
    cot_tape_clear_error(t);
    cot_params_set_precision(p, "*", COT_I32);
    assert_error(t, COT_VALUE,
                 "[params_set_precision] the pattern is given, the dtype i32; there must be a pattern and a float "
                 "dtype");
    cot_params_destroy(p);
    cot_tape_destroy(t);
}

/* ---- layers over steps and graphs ---- */

enum { STEPS = 3, BATCH = 4, UNITS = 8 };

static cot_csr ring(cot_tape *t) {
    static const int64_t from[8] = {0, 1, 2, 3, 4, 5, 6, 7}, to[8] = {1, 2, 3, 4, 5, 6, 7, 0};
    return cot_csr_gcn(t, COT_F32, ROWS, 8, from, to);
}
static cot_var rows_of(cot_var x) { return cot_reshape(x, COT_SHAPE(STEPS, BATCH, ROWS * IN / (STEPS * BATCH))); }
static cot_var lstm(cot_params *p, cot_var x) { return cot_nn_lstm(p, "l", rows_of(x), UNITS, NULL); }
static cot_var gru(cot_params *p, cot_var x) { return cot_nn_gru(p, "l", rows_of(x), UNITS, NULL); }
static cot_var gcn(cot_params *p, cot_var x) { return cot_nn_gcn(p, "l", ring(cot_tape_of(x)), x, UNITS, true); }
static cot_var gat(cot_params *p, cot_var x) { return cot_nn_gat(p, "l", ring(cot_tape_of(x)), x, UNITS, NULL); }

static void layers_over_steps_and_graphs_give_16_bits_too(void **state) {
    (void)state;
    static cot_var (*const layers[])(cot_params *, cot_var) = {lstm, gru, gcn, gat};
    const cot_dtype narrow[] = {COT_BF16, COT_F16};
    for (int k = 0; k < 8; k++) {
        static double wide[ROWS * UNITS], got[ROWS * UNITS];
        cot_tape     *t = cot_tape_create(NULL);
        cot_params   *p = cot_params_create(t);
        cot_var       x = cot_mul(normal(t, 1, ROWS, IN), 0.3);
        cot_params_init(p, layers[k / 2], x, cot_key_of(0));
        cot_var y = layers[k / 2](p, x);
        cot_read(y, wide, cot_size(y));
        cot_params_set_precision(p, "*", narrow[k % 2]);
        y = layers[k / 2](p, x);
        assert_int_equal(cot_dtype_of(y), narrow[k % 2]);
        cot_read(y, got, cot_size(y));
        assert_memory_not_equal(wide, got, sizeof wide);
        /* a few roundings of values below 2 in each of the steps */
        double each = narrow[k % 2] == COT_BF16 ? 0x1p-8 : 0x1p-11;
        for (int64_t i = 0; i < cot_size(y); i++) assert_true(fabs(got[i] - wide[i]) <= STEPS * 8 * each);
        cot_backward(cot_sum(cot_cast(y, COT_F32), COT_ALL));
        for (int w = 0; w < cot_params_count(p); w++)
            assert_int_equal(cot_dtype_of(cot_grad(cot_params_at(p, w).var)), COT_F32);
        assert_ok(t);
        cot_params_destroy(p);
        cot_tape_destroy(t);
    }
}

/* The state goes from one sequence to the next: c of an LSTM and h of a GRU in f32, so that a
 * sequence in two parts gives what it gives in one. */
static void states_of_16_bits_go_on(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        static double whole[BATCH * UNITS], parts[BATCH * UNITS];
        cot_tape     *t = cot_tape_create(NULL);
        cot_params   *p = cot_params_create(t);
        cot_var       x = normal(t, 1, ROWS, IN), all = rows_of(x), carried[2] = {{0}};
        cot_params_set_precision(p, "*", COT_BF16);
        cot_params_init(p, k ? gru : lstm, x, cot_key_of(0));
        cot_read(cot_index(k ? gru(p, x) : lstm(p, x), 0, STEPS - 1), whole, BATCH * UNITS);
        for (int s = 0; s < STEPS; s++) {
            cot_var one = cot_slice(all, 0, s, s + 1, 1);
            cot_var y = k ? cot_nn_gru(p, "l", one, UNITS, carried) : cot_nn_lstm(p, "l", one, UNITS, carried);
            cot_read(cot_index(y, 0, 0), parts, BATCH * UNITS);
        }
        assert_int_equal(cot_dtype_of(carried[0]), k ? COT_F32 : COT_BF16);
        if (!k) assert_int_equal(cot_dtype_of(carried[1]), COT_F32);
        assert_ok(t);
        assert_memory_equal(whole, parts, sizeof whole);
        cot_params_destroy(p);
        cot_tape_destroy(t);
    }
}

/* Norms compute in f32, and read their input so: without one. */
static cot_var plain(cot_params *p, cot_var x) {
    x = cot_relu(cot_nn_dense(p, "fc1", x, WIDTH));
    return cot_nn_dense(p, "head", cot_tanh(cot_nn_dense(p, "fc2", x, WIDTH)), 10);
}

/* The bytes that rules read of a net's values, for so many rows. */
static int64_t saved_by(cot_dtype dtype, int64_t rows) {
    cot_tape   *t = cot_tape_create(NULL);
    cot_params *p = cot_params_create(t);
    cot_var     x = cot_cast(normal(t, 1, rows, IN), dtype);
    cot_memory  m;
    cot_params_set_precision(p, "*", dtype);
    cot_params_init(p, plain, x, cot_key_of(0));
    plain(p, x);
    assert_int_equal(cot_tape_memory(t, &m, NULL), COT_OK);
    cot_params_destroy(p);
    cot_tape_destroy(t);
    return m.saved;
}

/* Weights that are cast do not depend on the rows: what is left of a difference are activations. */
static int64_t of_rows(cot_dtype dtype) { return saved_by(dtype, 3 * ROWS) - saved_by(dtype, ROWS); }

static void saved_bytes_halve(void **state) {
    (void)state;
    int64_t wide = of_rows(COT_F32);
    assert_true(wide > 0);
    assert_int_equal(of_rows(COT_BF16) * 2, wide);
    assert_int_equal(of_rows(COT_F16) * 2, wide);
}

/* ---- losses that are scaled ------------------------------------------------------------------ */

static cot_var one_weight(cot_params *p, cot_var x) { return cot_nn_linear(p, "w", x, 1); }

static void an_overflow_leaves_the_step_out_and_halves_the_scale(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_params *p = cot_params_create(t);
    cot_var     x = cot_full(t, COT_F32, COT_SHAPE(1, 1), 3);
    cot_loss_scale s = {.interval = 2};
    cot_params_set_precision(p, "*", COT_F16);
    cot_params_init_with(p, "*", (cot_init){COT_INIT_ONES, 0});
    cot_params_init(p, one_weight, x, cot_key_of(0));
    cot_var    w = cot_params_get(p, "w.weight");
    cot_optim *o = cot_optim_create(p, &(cot_optim_options){.kind = COT_SGD, .rate = 0.125});
    cot_mark   m = cot_tape_mark(t);
    /* the gradient of the loss is 3: times 65536 that is beyond 65504, the largest of f16 */
    for (int k = 0; k < 3; k++) {
        cot_backward(cot_loss_scaled(&s, cot_sum(cot_cast(one_weight(p, x), COT_F32), COT_ALL)));
        bool fine = cot_unscale_grads(p, &s);
        assert_int_equal(fine, k == 2);
        assert_near(s.scale, k == 0 ? 32768 : 16384, 0);
        assert_int_equal(s.skipped, k == 0 ? 1 : 2);
        if (fine) {
            double g;
            cot_read_grad(w, &g, 1);
            assert_near(g, 3, 0);
            cot_optim_step(o);
        }
        cot_tape_zero_grads(t);
        cot_tape_rewind(t, m);
    }
    double v;
    cot_read(w, &v, 1);
    assert_near(v, 1 - 0.125 * 3, 0);
    /* one more without trouble, and it doubles */
    cot_backward(cot_loss_scaled(&s, cot_sum(cot_mul(one_weight(p, x), 0.0), COT_ALL)));
    assert_true(cot_unscale_grads(p, &s));
    assert_near(s.scale, 32768, 0);
    assert_ok(t);
    assert_false(cot_unscale_grads(NULL, &s));
    assert_false(cot_unscale_grads(p, NULL));
    assert_error(t, COT_VALUE, "[unscale_grads] the scale is NULL; it is the one that scaled the loss");
    cot_tape_clear_error(t);
    assert_false(cot_is_valid(cot_loss_scaled(NULL, x)));
    assert_error(t, COT_VALUE, "[loss_scaled] the scale is NULL; {0} is a good start");
    cot_optim_destroy(o);
    cot_params_destroy(p);
    cot_tape_destroy(t);
}

static int in_f32(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    cot_precision before = cot_tape_set_precision(cot_tape_of(xs[0]), (cot_precision){0});
    ys[0] = cot_matmul(xs[0], xs[1]);
    cot_tape_set_precision(cot_tape_of(xs[0]), before);
    return 0;
}

static void a_batch_computes_as_its_function_chose(void **state) {
    (void)state;
    const float part = 1 + 1 / 4096.f, numbers[8] = {part, 0, 0, 1, part, 0, 0, 1};
    cot_tape   *t = cot_tape_create(NULL);
    cot_var     xs[] = {cot_tensor(t, COT_F32, COT_SHAPE(2, 2, 2), numbers),
                        cot_tensor(t, COT_F32, COT_SHAPE(2, 2), numbers)}, y;
    cot_tape_set_precision(t, (cot_precision){.compute = COT_BF16});
    cot_vmap(in_f32, NULL, 2, xs, (int[]){0, COT_NOT_BATCHED}, 1, &y, NULL);
    assert_ok(t);
    assert_int_equal(cot_dtype_of(y), COT_F32);
    float product[8];
    cot_read_as(y, COT_F32, product, 8);
    assert_true(product[0] == part * part);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_16_bits_are_f32_sums_rounded_once),
        cmocka_unit_test(a_batch_computes_as_its_function_chose),
        cmocka_unit_test(a_policy_casts_the_operations_that_it_names),
        cmocka_unit_test(layers_compute_in_what_their_name_says),
        cmocka_unit_test(layers_over_steps_and_graphs_give_16_bits_too),
        cmocka_unit_test(states_of_16_bits_go_on),
        cmocka_unit_test(a_policy_that_says_nothing_is_refused),
        cmocka_unit_test(a_scale_that_is_no_scale_is_refused),
        cmocka_unit_test(saved_bytes_halve),
        cmocka_unit_test(an_overflow_leaves_the_step_out_and_halves_the_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
