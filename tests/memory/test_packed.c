/* Values that only rules of products read, kept as bf16 (cot_precision.saved): forward results keep
 * their bits, gradients are those at rounded values, saved bytes shrink, and what does not fit is
 * refused. test_packed_rules.c goes through the operations. */
#include "support/tape_test.h"

#include "tape/tape.h"

#include <cotangent_program.h>

enum { N = 64, LAYERS = 24, BLOCK = 4 };

static cot_var normal(cot_tape *t, uint64_t seed, double scale) {
    return cot_mul(cot_normal(t, cot_key_of(seed), COT_F32, COT_SHAPE(N, N)), scale);
}

typedef struct result {
    double  loss, gradient[N * N], recorded[N * N];
    int64_t saved, packed, peak;
} result;

/* Nets of products: what lies between them. */
typedef enum kind { RELU, GELU, TANH } kind;
static cot_var between(kind how, cot_var x) {
    return how == RELU ? cot_relu(x) : how == GELU ? cot_gelu(x) : cot_tanh(x);
}

/* A deep net, a scope for each few layers. */
static cot_var deep(cot_tape *t, kind how, cot_var x, cot_var w, int layers) {
    for (int k = 0; k < layers; k += BLOCK) {
        cot_scope_open(t, "block");
        for (int l = 0; l < BLOCK; l++) x = between(how, cot_matmul(x, w));
        cot_scope_close(t, 1, &x);
    }
    return cot_mean(cot_square(x), COT_ALL);
}

static void run(kind how, cot_dtype saved, result *r) {
    cot_tape  *t = cot_tape_create(NULL);
    cot_memory m;
    cot_tape_set_precision(t, (cot_precision){.saved = saved});
    cot_var x = normal(t, 1, 1), w = cot_leaf(normal(t, 2, 0.17)), y = deep(t, how, x, w, LAYERS), g;
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

/* Per layer rules read the product, for what lies between, and the product's operand. Of a scope of
 * BLOCK layers one value is kept. relu: all others are packed; gelu reads its operand as f32, its
 * result is packed; tanh's result is its own rule's, so all stay. */
static void forward_bits_stay_and_saved_bytes_shrink(void **state) {
    (void)state;
    static result plain, packed;
    enum { VALUE = N * N * 4, KEPT = LAYERS / BLOCK };
    static const int halved[] = {[RELU] = 2 * LAYERS - KEPT, [GELU] = LAYERS - KEPT, [TANH] = 0};
    for (kind how = RELU; how <= TANH; how++) {
        run(how, COT_F32, &plain);
        run(how, COT_BF16, &packed);
        assert_true(plain.loss == packed.loss);
        assert_int_equal(plain.packed, 0);
        assert_int_equal(packed.packed, halved[how] * (VALUE / 2));
        assert_int_equal(packed.saved, plain.saved - packed.packed);
        if (how == RELU) assert_true(packed.peak < plain.peak * 7 / 10);
        if (how == GELU) assert_true(packed.peak < plain.peak * 9 / 10);
    }
}

/* Three stages of three convolutions and a pooling, a scope each: rules read the operand of a
 * convolution and that of relu. The first operand is a constant, or kept; the last result goes to
 * the pooling, which keeps positions. */
static cot_var convolved(cot_tape *t, cot_var x) {
    for (int k = 0; k < 3; k++) {
        cot_scope_open(t, "stage");
        for (int l = 0; l < 3; l++) {
            cot_var w = cot_leaf(cot_mul(cot_normal(t, cot_key_of(2), COT_F32, COT_SHAPE(4, 4, 3, 3)), 0.2));
            x = cot_relu(cot_add(cot_conv2d(x, w, COT_CONV(.padding = {1, 1})), 0.1));
        }
        x = cot_max_pool2d(x, COT_POOL(.window = {2, 2}));
        cot_scope_close(t, 1, &x);
    }
    return cot_mean(cot_square(x), COT_ALL);
}

static void nets_of_convolutions_take_half(void **state) {
    (void)state;
    enum { IMAGE = 2 * 4 * 16 * 16, ALL_STAGES = IMAGE + IMAGE / 4 + IMAGE / 16 };
    cot_memory m[2];
    for (int k = 0; k < 2; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_tape_set_precision(t, (cot_precision){.saved = k ? COT_BF16 : COT_F32});
        cot_var y = convolved(t, cot_normal(t, cot_key_of(1), COT_F32, COT_SHAPE(2, 4, 16, 16)));
        cot_tape_memory(t, &m[k], NULL);
        assert_int_equal(cot_backward(y), COT_OK);
        assert_ok(t);
        cot_tape_destroy(t);
    }
    assert_int_equal(m[1].packed, 5 * ALL_STAGES * 2);
    assert_int_equal(m[1].saved, m[0].saved - m[1].packed);
    assert_int_equal(100 * m[1].saved / m[0].saved, 52);
}

static void both_kinds_of_gradients_agree_to_the_bit(void **state) {
    (void)state;
    static result plain, packed;
    run(RELU, COT_F32, &plain);
    run(RELU, COT_BF16, &packed);
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
            cot_var  w = cot_leaf(normal(t, 2, 0.15)), y = deep(t, RELU, normal(t, 1, 1), w, 2 * BLOCK);
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
    cot_tape_clear_error(t);
    cot_tape_set_precision(t, (cot_precision){.saved = (cot_dtype)77});
    assert_error(t, COT_VALUE,
                 "[tape_set_precision] saved is no dtype; COT_BF16 is asked for, COT_F32 or COT_F64 for none");
    cot_tape_destroy(t);
}

/* An older error on the tape is no reason to leave the policy. */
static void the_policy_holds_on_a_tape_with_an_error(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_matmul(cot_ones(t, COT_F32, COT_SHAPE(2, 3)), cot_ones(t, COT_F32, COT_SHAPE(2, 3)));
    assert_int_equal(cot_tape_status(t), COT_SHAPE);
    cot_tape_set_precision(t, (cot_precision){.saved = COT_BF16});
    cot_tape_clear_error(t);
    assert_int_equal(cot_tape_set_precision(t, (cot_precision){0}).saved, COT_BF16);
    cot_tape_destroy(t);
}

/* d(exp x)² by x, with the policy before, while and after the scope is open. */
static double squared(cot_precision before, cot_precision opened, cot_precision inside, cot_precision closed) {
    cot_tape *t = cot_tape_create(NULL);
    double    g;
    cot_tape_set_precision(t, before);
    cot_tape_set_precision(t, opened);
    cot_var x = cot_leaf(cot_full(t, COT_F32, COT_SHAPE(1), 0.111));
    cot_scope_open(t, "s");
    cot_tape_set_precision(t, inside);
    cot_var y = cot_sum(cot_square(cot_exp(x)), COT_ALL);
    cot_tape_set_precision(t, closed);
    cot_scope_close(t, 1, &y);
    assert_int_equal(cot_backward(y), COT_OK);
    cot_read_grad(x, &g, 1);
    assert_ok(t);
    cot_tape_destroy(t);
    return g;
}

/* Whether a scope packs is its own affair: the policy held from its opening to its end, or not. */
static void the_history_of_the_policy_does_not_count(void **state) {
    (void)state;
    const cot_precision none = {0}, bf16 = {.saved = COT_BF16};
    double exact = squared(none, none, none, none), rounded = squared(none, bf16, bf16, bf16);
    assert_true(exact != rounded);
    assert_true(squared(bf16, bf16, bf16, bf16) == rounded);
    assert_true(squared(none, none, none, bf16) == exact);
    assert_true(squared(bf16, none, none, bf16) == exact);
    assert_true(squared(bf16, none, bf16, bf16) == exact);
    assert_true(squared(none, bf16, none, bf16) == exact);
    assert_true(squared(none, bf16, bf16, none) == exact);
}

/* Widened elements go again also when the policy has been taken back. */
static void what_is_widened_goes_again(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_tape_set_precision(t, (cot_precision){.saved = COT_BF16});
    cot_var x = cot_leaf(normal(t, 1, 1)), w = cot_leaf(normal(t, 2, 0.17)), y = deep(t, RELU, x, w, LAYERS);
    int64_t before = cot_tape_storage_bytes(t);
    cot_tape_set_precision(t, (cot_precision){0});
    assert_int_equal(cot_tape_set_memory_limit(t, 0), COT_OK);
    assert_int_equal(cot_backward(y), COT_OK);
    cot_value(cot_add(y, 1));
    /* the sum of the end, and at most the values of one rule */
    assert_true(cot_tape_storage_bytes(t) - before <= 4 * N * N * 4);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* What a scope has closed over has no name any more; what it keeps, has. */
static void only_kept_values_are_found_by_name(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_tape_set_precision(t, (cot_precision){.saved = COT_BF16});
    cot_var x = cot_name(cot_leaf(normal(t, 1, 1)), "x"), g;
    cot_scope_open(t, "s");
    cot_var h = cot_name(cot_exp(x), "h"), y = cot_name(cot_sum(cot_square(h), COT_ALL), "y");
    assert_true(cot_is_valid(cot_tape_named(t, "h")));
    cot_name(x, "late");
    cot_scope_close(t, 1, &y);
    assert_false(cot_is_valid(cot_tape_named(t, "h")));
    assert_true(cot_is_valid(cot_tape_named(t, "x")) && cot_is_valid(cot_tape_named(t, "late")));
    g = cot_tape_named(t, "y");
    assert_true(g.id == y.id);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* Whoever writes a packed value all the same (nobody has a var of it) finds what he wrote. */
static void a_write_ends_packing(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    was[N * N], is[N * N];
    cot_tape_set_precision(t, (cot_precision){.saved = COT_BF16});
    cot_var x = cot_leaf(normal(t, 1, 1));
    cot_scope_open(t, "s");
    cot_var  h = cot_exp(x), y = cot_sum(cot_square(h), COT_ALL);
    uint32_t node = cot__index(h);
    cot_scope_close(t, 1, &y);
    h = VAR(t, node);
    assert_int_equal(t->memory.packed, 1);
    cot_read(h, was, N * N);
    assert_int_equal(cot_mul_into(&h, cot_number(1.0009765625)), COT_OK);
    assert_int_equal(t->memory.packed, 0);
    cot_value(cot_sum(cot_exp(x), COT_ALL));
    cot_read(h, is, N * N);
    assert_ok(t);
    for (int i = 0; i < N * N; i++) assert_true(is[i] == (float)(was[i] * 1.0009765625));
    cot_tape_destroy(t);
}

static void a_packed_tape_is_not_saved(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    char      why[300];
    cot_tape_set_precision(t, (cot_precision){.saved = COT_BF16});
    cot_var y = deep(t, RELU, normal(t, 1, 1), cot_leaf(normal(t, 2, 0.17)), BLOCK);
    assert_int_equal(cot_tape_save(t, 1, &y, "packed.cot", why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[tape_save] values are kept as bf16 for derivatives, which a file would have as f32 and "
                             "differentiate otherwise; save a tape without cot_precision.saved");
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- other ways to read ---------------------------------------------------------------------- */

enum { FEW = 5 };
/* Σ (e^x)² e^x, where e^x is packed and read by three rules, by one as a view of a view. */
static void every_mode_and_order_reads_the_same(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    float     at[FEW] = {0.11f, -0.52f, 0.93f, 1.34f, -2.25f};
    double    forward[FEW], reverse[FEW], hessian[FEW * FEW];
    cot_tape_set_precision(t, (cot_precision){.saved = COT_BF16});
    cot_var x = cot_leaf(cot_data(t, COT_F32, COT_SHAPE(FEW), at)), y, e, g;
    cot_scope_open(t, "cubes");
    e = cot_exp(x);
    y = cot_sum(cot_mul(cot_square(e), cot_reshape(cot_reshape(e, COT_SHAPE(1, FEW)), COT_SHAPE(FEW))), COT_ALL);
    cot_scope_close(t, 1, &y);
    cot_memory m;
    cot_tape_memory(t, &m, NULL);
    assert_int_equal(m.packed, 2 * FEW * 2); /* e, with its views, and its square */
    assert_int_equal(cot_jacobian(1, &y, 1, &x, COT_FORWARD, forward), COT_OK);
    assert_int_equal(cot_jacobian(1, &y, 1, &x, COT_REVERSE, reverse), COT_OK);
    assert_int_equal(cot_grad_of(y, 1, &x, &g), COT_OK);
    assert_int_equal(cot_hessian(y, 1, &x, hessian), COT_OK);
    assert_ok(t);
    for (int i = 0; i < FEW; i++) {
        double want = 3 * exp(3.0 * at[i]);
        /* e (2e e + e²): each factor is off by 2^-9 */
        assert_true(fabs(reverse[i] - want) <= 4 * 0x1p-9 * want && reverse[i] != want);
        assert_true(fabs(forward[i] - reverse[i]) <= 4 * 0x1p-24 * want);
        assert_true(fabs(hessian[i * FEW + i] - 3 * want) <= 8 * 0x1p-9 * 3 * want);
    }
    cot_tape_destroy(t);
}

/* A value that was written in place stays f32, and what was read before the write is packed. */
static void what_is_written_in_place_stays(void **state) {
    (void)state;
    cot_tape  *t = cot_tape_create(NULL);
    float      at[FEW] = {0.11f, -0.52f, 0.93f, 1.34f, -2.25f};
    double     g[FEW];
    cot_memory m;
    cot_tape_set_precision(t, (cot_precision){.saved = COT_BF16});
    cot_var x = cot_leaf(cot_data(t, COT_F32, COT_SHAPE(FEW), at));
    cot_scope_open(t, "s");
    cot_var z = cot_copy(cot_exp(x));
    assert_int_equal(cot_mul_into(&z, cot_number(2)), COT_OK);
    cot_var y = cot_sum(cot_square(z), COT_ALL);
    cot_scope_close(t, 1, &y);
    cot_tape_memory(t, &m, NULL);
    assert_int_equal(m.packed, FEW * 2);
    assert_int_equal(cot_backward(y), COT_OK);
    cot_read_grad(x, g, FEW);
    assert_ok(t);
    for (int i = 0; i < FEW; i++) assert_true(fabs(g[i] / (8 * exp(2.0 * at[i])) - 1) <= 0x1p-9 + 0x1p-20);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_bits_stay_and_saved_bytes_shrink),
        cmocka_unit_test(nets_of_convolutions_take_half),
        cmocka_unit_test(both_kinds_of_gradients_agree_to_the_bit),
        cmocka_unit_test(rules_read_the_rounded_value),
        cmocka_unit_test(what_the_user_holds_stays),
        cmocka_unit_test(what_a_rule_computes_from_again_stays),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(the_policy_holds_on_a_tape_with_an_error),
        cmocka_unit_test(the_history_of_the_policy_does_not_count),
        cmocka_unit_test(what_is_widened_goes_again),
        cmocka_unit_test(only_kept_values_are_found_by_name),
        cmocka_unit_test(a_write_ends_packing),
        cmocka_unit_test(a_packed_tape_is_not_saved),
        cmocka_unit_test(every_mode_and_order_reads_the_same),
        cmocka_unit_test(what_is_written_in_place_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
