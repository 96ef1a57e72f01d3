/* Random numbers by step: draws from a key folded with an integer on the tape, in bodies that are
 * played again, in batches. */
#include "support/tape_test.h"

enum { STEPS = 12, WIDE = 5 };

static cot_var whole(cot_tape *t, int64_t i) { return cot_data(t, COT_I64, (cot_shape){0, {0}}, &i); }

static void same_bits(cot_var a, cot_var b) {
    double x[256], y[256];
    int64_t n = cot_size(a);
    assert_int_equal(n, cot_size(b));
    assert_int_equal(cot_dtype_of(a), cot_dtype_of(b));
    assert_int_equal(cot_read(a, x, n), COT_OK);
    assert_int_equal(cot_read(b, y, n), COT_OK);
    assert_memory_equal(x, y, (size_t)n * sizeof *x);
}

static void they_are_the_draws_of_the_folded_key(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_key   key = cot_key_of(7);
    for (int64_t i = -1; i < 3; i++)
        for (int d = COT_F64; d <= COT_F16; d++) {
            cot_key   folded = cot_key_fold(key, (uint64_t)i);
            cot_dtype dtype = (cot_dtype)d;
            cot_var   step = whole(t, i), x = cot_full(t, dtype, COT_SHAPE(4, 3), 1.5);
            cot_key   at = cot_key_at(key, step), narrow = cot_key_at(key, cot_cast(step, COT_I32));
            cot_var   logits = cot_arange(t, dtype, 0, 12, 1);
            same_bits(cot_uniform(t, at, dtype, COT_SHAPE(3, 2), -1, 2),
                      cot_uniform(t, folded, dtype, COT_SHAPE(3, 2), -1, 2));
            same_bits(cot_normal(t, narrow, dtype, COT_SHAPE(40)), cot_normal(t, folded, dtype, COT_SHAPE(40)));
            same_bits(cot_normal(t, at, dtype, (cot_shape){0, {0}}), cot_normal(t, folded, dtype, (cot_shape){0, {0}}));
            same_bits(cot_gumbel(t, at, dtype, COT_SHAPE(7)), cot_gumbel(t, folded, dtype, COT_SHAPE(7)));
            same_bits(cot_bernoulli(t, at, 0.3, COT_SHAPE(40)), cot_bernoulli(t, folded, 0.3, COT_SHAPE(40)));
            same_bits(cot_categorical(at, logits, 0), cot_categorical(folded, logits, 0));
            same_bits(cot_permutation(t, at, 50), cot_permutation(t, folded, 50));
            same_bits(cot_shuffle(at, x, 0), cot_shuffle(folded, x, 0));
            same_bits(cot_dropout(x, 0.5, at), cot_dropout(x, 0.5, folded));
        }
    assert_int_equal(cot_size(cot_normal(t, cot_key_at(key, whole(t, 1)), COT_F64, COT_SHAPE(0, 3))), 0);
    same_bits(cot_normal(t, cot_key_at(key, cot_integer(2)), COT_F64, COT_SHAPE(3)),
              cot_normal(t, cot_key_fold(key, 2), COT_F64, COT_SHAPE(3)));
    assert_ok(t);
    cot_tape_destroy(t);
}

/* The step is folded in last, whichever comes first. */
static void folds_and_splits_come_before_or_after(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_key   key = cot_key_of(9), before[3], after[3];
    cot_var   step = whole(t, 4);
    cot_shape s = COT_SHAPE(5);
    cot_key_split(key, 3, before);
    cot_key_split(cot_key_at(key, step), 3, after);
    for (int k = 0; k < 3; k++) {
        cot_var want = cot_normal(t, cot_key_fold(cot_key_fold(key, (uint64_t)k), 4), COT_F64, s);
        same_bits(cot_normal(t, cot_key_at(before[k], step), COT_F64, s), want);
        same_bits(cot_normal(t, after[k], COT_F64, s), want);
        same_bits(cot_normal(t, cot_key_fold(cot_key_at(key, step), (uint64_t)k), COT_F64, s), want);
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- in bodies ------------------------------------------------------------------------------- */

typedef struct model { cot_key key; cot_var w; } model;

static cot_var layer(const model *m, cot_var h) { return cot_tanh(cot_mul(m->w, h)); }

/* h, i -> dropout(tanh(w h)), another mask at each i */
static int step_of(int n, const cot_var *xs, int count, cot_var *ys, void *user) {
    const model *m = user;
    (void)n, (void)count;
    ys[0] = cot_dropout(layer(m, xs[1]), 0.3, cot_key_at(m->key, xs[0]));
    return 0;
}

static cot_var unrolled(const model *m, cot_var h) {
    for (int i = 0; i < STEPS; i++) h = cot_dropout(layer(m, h), 0.3, cot_key_fold(m->key, (uint64_t)i));
    return h;
}

static void a_loop_drops_others_at_each_step_and_the_same_ones_again_in_reverse(void **state) {
    (void)state;
    for (int states = 1; states <= 4; states += 3) { /* few: steps are run again */
        cot_tape        *t = cot_tape_create(NULL);
        model            m = {cot_key_of(3), cot_tensor(t, COT_F64, COT_SHAPE(WIDE), (double[]){2, -3, 4, 2.5, 3})};
        cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(WIDE), (double[]){1, 0.5, 2, -1, -2}), h, in[2] = {x, m.w},
                loop[2], plain[2];
        cot_loop_options options = {.states = states};
        double           a[WIDE], b[WIDE];
        m.key = cot_key_of(11);
        assert_int_equal(cot_fori(step_of, &m, 0, STEPS, 1, &x, &h, &options), COT_OK);
        cot_var y = unrolled(&m, x);
        same_bits(h, y);
        cot_grad_of(cot_sum(h, COT_ALL), 2, in, loop);
        cot_grad_of(cot_sum(y, COT_ALL), 2, in, plain);
        for (int k = 0; k < 2; k++) {
            cot_read(loop[k], a, WIDE), cot_read(plain[k], b, WIDE);
            for (int i = 0; i < WIDE; i++) assert_near(a[i], b[i], 1e-14);
        }
        cot_backward(cot_sum(h, COT_ALL));
        cot_read_grad(m.w, a, WIDE);
        for (int i = 0; i < WIDE; i++) assert_near(a[i], b[i], 1e-14);
        cot_var dh = cot_jvp(h, 1, &x, (cot_var[]){cot_ones(t, COT_F64, COT_SHAPE(WIDE))}),
                dy = cot_jvp(y, 1, &x, (cot_var[]){cot_ones(t, COT_F64, COT_SHAPE(WIDE))});
        cot_read(dh, a, WIDE), cot_read(dy, b, WIDE);
        for (int i = 0; i < WIDE; i++) assert_near(a[i], b[i], 1e-14);
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

static int draw_one(int n, const cot_var *xs, int count, cot_var *ys, void *user) {
    (void)n, (void)count;
    ys[0] = cot_normal(xs[0].tape, cot_key_at(*(cot_key *)user, xs[0]), COT_F64, COT_SHAPE(2, 3));
    ys[1] = cot_permutation(xs[0].tape, cot_key_at(*(cot_key *)user, xs[0]), 6);
    return 0;
}

static void batches_of_steps_draw_each_their_own(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_key   key = cot_key_of(5);
    int64_t   at[4] = {3, 0, 1, 3};
    cot_var   steps = cot_data(t, COT_I64, COT_SHAPE(4), at), z[2];
    assert_int_equal(cot_vmap(draw_one, &key, 1, &steps, NULL, 2, z, NULL), COT_OK);
    assert_int_equal(cot_shape_of(z[0]).ndim, 3);
    for (int k = 0; k < 4; k++) {
        cot_key folded = cot_key_fold(key, (uint64_t)at[k]);
        same_bits(cot_index(z[0], 0, k), cot_normal(t, folded, COT_F64, COT_SHAPE(2, 3)));
        same_bits(cot_index(z[1], 0, k), cot_permutation(t, folded, 6));
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

/* A random walk over states: each step shuffles, chooses by logits, tosses coins, all by its own
 * index, and reverse mode sees the same. */
static int walk(int n, const cot_var *xs, int count, cot_var *ys, void *user) {
    cot_key  key = cot_key_at(*(cot_key *)user, xs[0]), part[4];
    cot_var  h = xs[1];
    cot_tape *t = h.tape;
    (void)n, (void)count;
    cot_key_split(key, 4, part);
    cot_var chosen = cot_take(h, cot_categorical(part[0], h, 0), 0);
    cot_var coins = cot_cast(cot_bernoulli(t, part[1], 0.5, COT_SHAPE(WIDE)), COT_F64);
    cot_var moves = cot_mul(coins, cot_gumbel(t, part[3], COT_F64, COT_SHAPE(WIDE)));
    h             = cot_add(cot_shuffle(part[2], h, 0), cot_mul(moves, cot_mul(chosen, 0.1)));
    ys[0] = cot_sin(h);
    return 0;
}

static void a_loop_draws_of_every_kind_at_each_step(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_key   key = cot_key_of(21);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(WIDE), (double[]){1, 0.5, 2, -1, -2}), h, plain = x, in[2], a, b;
    double    one[WIDE], two[WIDE];
    assert_int_equal(cot_fori(walk, &key, 0, STEPS, 1, &x, &h, &(cot_loop_options){.states = 2}), COT_OK);
    for (int64_t i = 0; i < STEPS; i++) {
        in[0] = whole(t, i), in[1] = plain;
        walk(2, in, 1, &plain, &key);
    }
    same_bits(h, plain);
    cot_grad_of(cot_sum(h, COT_ALL), 1, &x, &a);
    cot_grad_of(cot_sum(plain, COT_ALL), 1, &x, &b);
    assert_int_equal(cot_read(a, one, WIDE), COT_OK);
    assert_int_equal(cot_read(b, two, WIDE), COT_OK);
    for (int i = 0; i < WIDE; i++) assert_near(one[i], two[i], 1e-14);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void what_is_wrong_is_said(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_key   key = cot_key_of(1);
    cot_mark  m = cot_tape_mark(t);
#define REFUSED(call, code, text) do { (void)(call); assert_error(t, code, text); cot_tape_rewind(t, m); } while (0)
    REFUSED(cot_normal(t, cot_key_at(key, cot_scalar(t, 1)), COT_F64, COT_SHAPE(2)), COT_DTYPE,
            "[normal] the step of the key has dtype f64; it must be an integer");
    REFUSED(cot_normal(t, cot_key_at(key, cot_number(1.5)), COT_F64, COT_SHAPE(2)), COT_DTYPE,
            "[normal] the step of the key has dtype f64; it must be an integer");
    REFUSED(cot_dropout(cot_scalar(t, 1), 0.5, cot_key_at(key, cot_data(t, COT_I64, COT_SHAPE(2), (int64_t[]){1, 2}))),
            COT_SHAPE, "[dropout] the step of the key has shape (2,); it is one integer");
    REFUSED(cot_uniform(t, cot_key_at(key, whole(t, 1)), COT_I64, COT_SHAPE(2), 0, 1), COT_DTYPE,
            "[uniform] numbers of dtype i64; they must be floats");
    REFUSED(cot_permutation(t, cot_key_at(key, whole(t, 1)), -1), COT_SHAPE,
            "[permutation] axis 0 of shape (-1,) has extent -1; extents are not negative");
    REFUSED(cot_normal(t, cot_key_at(cot_key_at(key, whole(t, 1)), whole(t, 2)), COT_F64, COT_SHAPE(2)), COT_VALUE,
            "[key_at] the key has a step already; of two loops it is one integer, outer * steps of the inner + inner");
    REFUSED(cot_normal(t, cot_key_at(key, COT_NONE), COT_F64, COT_SHAPE(2)), COT_VAR,
            "[normal] the key's step as operand is not a value on a tape");
    cot_tape *other = cot_tape_create(NULL);
    REFUSED(cot_normal(t, cot_key_at(key, whole(other, 1)), COT_F64, COT_SHAPE(2)), COT_VAR,
            "[normal] the key's step as operand belongs to another tape; operands of one operation share a tape");
    cot_tape_destroy(other);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_the_draws_of_the_folded_key),
        cmocka_unit_test(folds_and_splits_come_before_or_after),
        cmocka_unit_test(a_loop_draws_of_every_kind_at_each_step),
        cmocka_unit_test(a_loop_drops_others_at_each_step_and_the_same_ones_again_in_reverse),
        cmocka_unit_test(batches_of_steps_draw_each_their_own),
        cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests_name("draws_at", tests, NULL, NULL);
}
