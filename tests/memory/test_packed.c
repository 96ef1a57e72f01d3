/* Values that only rules read, kept as bf16 (cot_precision.saved): forward results keep their bits,
 * gradients are those at rounded values, saved bytes halve, and what does not fit is refused. */
#include "support/tape_test.h"

#include <cotangent_program.h>

enum { N = 64, LAYERS = 24, BLOCK = 4 };

static cot_var normal(cot_tape *t, uint64_t seed, double scale) {
    return cot_mul(cot_normal(t, cot_key_of(seed), COT_F32, COT_SHAPE(N, N)), scale);
}

typedef struct result {
    double  loss, gradient[N * N], recorded[N * N];
    int64_t saved, packed, peak;
} result;

/* A deep net, a scope for each few layers. */
static cot_var deep(cot_tape *t, cot_var x, cot_var w, int layers) {
    for (int k = 0; k < layers; k += BLOCK) {
        cot_scope_open(t, "block");
        for (int l = 0; l < BLOCK; l++) x = cot_tanh(cot_matmul(cot_sin(x), w));
        cot_scope_close(t, 1, &x);
    }
    return cot_mean(cot_square(x), COT_ALL);
}

static void run(cot_dtype saved, result *r) {
    cot_tape  *t = cot_tape_create(NULL);
    cot_memory m;
    cot_tape_set_precision(t, (cot_precision){.saved = saved});
    cot_var x = normal(t, 1, 1), w = cot_leaf(normal(t, 2, 0.15)), y = deep(t, x, w, LAYERS), g;
    r->loss = cot_value(y);
    cot_tape_memory(t, &m, NULL);
    r->saved = m.saved, r->packed = m.packed;
    assert_int_equal(cot_backward(y), COT_OK);
    r->peak = cot_tape_peak_bytes(t);
    cot_read_grad(w, r->gradient, N * N);
    assert_int_equal(cot_grad_of(y, 1, &w, &g), COT_OK);
    cot_read(g, r->recorded, N * N);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* Per layer rules read sin's operand, the product's operand and tanh's result: what the next layer
 * reads is tanh's result, so two values a layer. Of a scope of BLOCK layers one is kept. */
static void forward_bits_stay_and_saved_bytes_halve(void **state) {
    (void)state;
    static result plain, packed;
    enum { VALUE = N * N * 4 };
    run(COT_F32, &plain);
    run(COT_BF16, &packed);
    assert_true(plain.loss == packed.loss);
    assert_int_equal(plain.packed, 0);
    int kept = LAYERS / BLOCK, all = (int)(plain.saved / VALUE);
    assert_int_equal(packed.packed, (all - kept) * (VALUE / 2));
    assert_int_equal(packed.saved, kept * VALUE + packed.packed);
    assert_true(packed.peak < plain.peak * 7 / 10);
}

static void both_kinds_of_gradients_agree_to_the_bit(void **state) {
    (void)state;
    static result plain, packed;
    run(COT_F32, &plain);
    run(COT_BF16, &packed);
    assert_memory_equal(packed.gradient, packed.recorded, sizeof packed.gradient);
    assert_memory_not_equal(packed.gradient, plain.gradient, sizeof packed.gradient);
    /* 24 layers of rules that each read values off by 2^-8 at most */
    double off = 0, size = 0;
    for (int i = 0; i < N * N; i++) {
        off += (packed.gradient[i] - plain.gradient[i]) * (packed.gradient[i] - plain.gradient[i]);
        size += plain.gradient[i] * plain.gradient[i];
    }
    assert_true(sqrt(off / size) < LAYERS * 0x1p-8);
}

/* d(exp(sin x)) = exp(sin x) cos x, where the rules read x, exact, and exp's result, rounded. */
static void rules_read_the_rounded_value(void **state) {
    (void)state;
    float     at[300];
    double    g[300], s[300], c[300];
    cot_tape *t = cot_tape_create(NULL);
    for (int i = 0; i < 300; i++) at[i] = (float)(0.01 * i - 1.2);
    cot_tape_set_precision(t, (cot_precision){.saved = COT_BF16});
    cot_var x = cot_leaf(cot_data(t, COT_F32, COT_SHAPE(300), at)), w = cot_full(t, COT_F32, COT_SHAPE(300), 3);
    cot_scope_open(t, "f");
    cot_var y = cot_mul(cot_exp(cot_sin(x)), w);
    cot_scope_close(t, 1, &y);
    assert_int_equal(cot_backward(cot_sum(y, COT_ALL)), COT_OK);
    cot_read_grad(x, g, 300);
    cot_read(cot_cast(cot_cast(cot_exp(cot_sin(x)), COT_BF16), COT_F32), s, 300);
    cot_read(cot_cos(x), c, 300);
    assert_ok(t);
    for (int i = 0; i < 300; i++) assert_true(g[i] == (float)((float)(3 * (float)s[i]) * (float)c[i]));
    cot_tape_destroy(t);
}

/* Kept values, leaves, the user's memory and what is in no scope stay f32; a scope around scopes
 * packs what those have kept. */
static void what_the_user_holds_stays(void **state) {
    (void)state;
    cot_tape  *t = cot_tape_create(NULL);
    cot_memory m;
    float      data[N * N] = {0};
    cot_tape_set_precision(t, (cot_precision){.saved = COT_BF16});
    cot_var x = cot_leaf(normal(t, 1, 1)), outside = cot_exp(x);
    cot_tape_memory(t, &m, NULL);
    int64_t before = m.stored;
    cot_scope_open(t, "outer");
    cot_scope_open(t, "inner");
    cot_var y = cot_exp(outside), z = cot_mul(y, cot_wrap(t, COT_F32, COT_SHAPE(N, N), data));
    cot_scope_close(t, 2, (cot_var[2]){y, z});
    cot_tape_memory(t, &m, NULL);
    assert_int_equal(m.packed, 0);
    y = cot_exp(x);
    cot_scope_close(t, 1, &y);
    cot_tape_memory(t, &m, NULL);
    assert_int_equal(m.packed, N * N * 2); /* inner's exp; its product no rule reads */
    assert_int_equal(m.stored, before + N * N * (2 + 4 + 4));
    assert_ok(t);
    cot_tape_destroy(t);
}

static int step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_tanh(cot_add(cot_mul(xs[0], xs[1]), 0.1));
    return 0;
}

/* Rules of loops and programs compute again from what these saw. */
static void what_a_rule_computes_from_again_stays(void **state) {
    (void)state;
    static double  g[2][N * N];
    const cot_type types[2] = {{COT_F32, {2, {N, N}}}, {COT_F32, {2, {N, N}}}};
    cot_program   *p = cot_compile(step, NULL, 2, types, 1, NULL);
    for (int k = 0; k < 2; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_tape_set_precision(t, (cot_precision){.saved = k ? COT_BF16 : COT_F32});
        cot_var x = cot_leaf(normal(t, 1, 1)), y, z;
        cot_scope_open(t, "both");
        assert_int_equal(cot_checkpoint(step, NULL, 2, (cot_var[]){cot_add(x, 1), cot_mul(x, 0.5)}, 1, &y), COT_OK);
        assert_int_equal(cot_program_call(p, 2, (cot_var[]){cot_add(x, 2), cot_mul(x, 0.7)}, 1, &z), COT_OK);
        y = cot_sum(cot_add(y, z), COT_ALL);
        cot_scope_close(t, 1, &y);
        assert_int_equal(cot_backward(y), COT_OK);
        cot_read_grad(x, g[k], N * N);
        assert_ok(t);
        cot_tape_destroy(t);
    }
    assert_memory_equal(g[0], g[1], sizeof g[0]);
    cot_program_destroy(p);
}

/* What is packed goes with a rewind, in the middle of a sweep that fails, and where memory is
 * short nothing is lost: the value stays f32 then, or the error says what was missing. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    for (long fail_at = 1;; fail_at++) {
        counting  c = {.fail_at = fail_at};
        cot_tape *t = counted_tape(&c, false);
        if (t) {
            cot_tape_set_precision(t, (cot_precision){.saved = COT_BF16});
            cot_mark start = cot_tape_mark(t);
            cot_var  w = cot_leaf(normal(t, 2, 0.15)), y = deep(t, normal(t, 1, 1), w, 2 * BLOCK);
            cot_backward(y);
            if (cot_tape_status(t) != COT_OK) assert_int_equal(cot_tape_status(t), COT_MEMORY);
            cot_tape_rewind(t, start);
            cot_tape_destroy(t);
        }
        assert_int_equal(c.live, 0);
        assert_false(c.wrong_size);
        if (c.requests < fail_at) break;
    }
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = 1 << 20});
    cot_tape_set_precision(t, (cot_precision){.saved = COT_BF16});
    assert_error(t, COT_VALUE,
                 "[tape_set_precision] saved is bf16 and the tape has a memory limit, which would compute values again "
                 "from rounded ones; ask for one of them");
    cot_tape_destroy(t);
    t = cot_tape_create(NULL);
    cot_tape_set_precision(t, (cot_precision){.saved = COT_BF16});
    assert_int_equal(cot_tape_set_memory_limit(t, 1 << 20), COT_VALUE);
    assert_error(t, COT_VALUE,
                 "[tape_set_memory_limit] values are kept as bf16 for derivatives, from which a limit would compute "
                 "others again; ask for one of them");
    cot_tape_destroy(t);
    t = cot_tape_create(NULL);
    cot_tape_set_precision(t, (cot_precision){.saved = COT_F16});
    assert_error(t, COT_VALUE,
                 "[tape_set_precision] saved is f16; COT_BF16 is asked for, COT_F32 or COT_F64 for none");
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_bits_stay_and_saved_bytes_halve),
        cmocka_unit_test(both_kinds_of_gradients_agree_to_the_bit),
        cmocka_unit_test(rules_read_the_rounded_value),
        cmocka_unit_test(what_the_user_holds_stays),
        cmocka_unit_test(what_a_rule_computes_from_again_stays),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
