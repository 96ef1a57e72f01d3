/* Scopes: what is made in one and not kept can be used no more, its memory goes where no rule reads
 * it, and gradients have the same bits. */
#include "support/tape_test.h"

enum { N = 1 << 12 };

static cot_var numbers(cot_tape *t, unsigned seed) {
    static double x[N];
    for (int k = 0; k < N; k++) seed = seed * 1103515245u + 12345u, x[k] = (double)(seed >> 16 & 1023) / 512.0 - 1;
    return cot_tensor(t, COT_F64, COT_SHAPE(N), x);
}

/* exp saves its result, mul both operands; add and sub nothing. */
static cot_var layer(cot_tape *t, cot_var x, cot_var w, bool scoped) {
    if (scoped) cot_scope_open(t, "layer");
    cot_var a = cot_add(x, w), b = cot_sub(a, 0.5), c = cot_exp(b), d = cot_mul(c, x), e = cot_add(d, 1.0);
    cot_value(cot_sum(e, COT_ALL)); /* nothing waits */
    if (scoped) cot_scope_close(t, 1, &e);
    return e;
}

static void run(bool scoped, double *gradients, int64_t *bytes) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   w = numbers(t, 3), x = numbers(t, 5);
    int64_t   before = cot_tape_storage_bytes(t);
    cot_var   y = layer(t, layer(t, x, w, scoped), w, scoped);
    *bytes = cot_tape_storage_bytes(t) - before;
    cot_backward(cot_sum(cot_square(y), COT_ALL));
    assert_ok(t);
    assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
    cot_read_grad(w, gradients, N);
    cot_read_grad(x, gradients + N, N);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void a_scope_frees_what_no_rule_reads_and_changes_no_bit(void **state) {
    (void)state;
    static double plain[2 * N], scoped[2 * N];
    int64_t       all, kept;
    run(false, plain, &all);
    run(true, scoped, &kept);
    assert_memory_equal(plain, scoped, sizeof plain);
    /* of a, b, c, d and e, c is read by the rules of exp and mul, e by that of the next layer */
    assert_int_equal(all, 2 * 5 * N * 8);
    assert_int_equal(kept, 2 * 2 * N * 8);
}

static void what_is_not_kept_is_an_error_that_names_the_scope(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2), y, z;
    cot_scope_open(t, "outer");
    y = cot_sin(x);
    cot_scope_open(t, "inner");
    z = cot_cos(y);
    cot_var kept = cot_mul(z, 2.0);
    assert_int_equal(cot_scope_close(t, 1, &kept), COT_OK);
    cot_exp(z);
    assert_error(t, COT_VAR,
                 "[exp] the operand was made in scope \"inner\", which is closed; cot_scope_close keeps the values "
                 "that it is given");
    cot_tape_clear_error(t);
    assert_near(cot_value(y), sin(2), 1e-15);
    cot_var w = cot_add(y, kept);
    assert_int_equal(cot_scope_close(t, 1, &w), COT_OK);
    cot_exp(y);
    assert_error(t, COT_VAR,
                 "[exp] the operand was made in scope \"outer\", which is closed; cot_scope_close keeps the values "
                 "that it is given");
    cot_tape_clear_error(t);
    cot_backward(w);
    assert_ok(t);
    assert_near(cot_grad_value(x), cos(2) - 2 * sin(sin(2)) * cos(2), 1e-15);
    assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
    cot_tape_destroy(t);
}

static void what_needs_a_value_that_went_says_so(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = numbers(t, 5), y;
    cot_scope_open(t, "block");
    y = cot_add(cot_mul(x, 3.0), 1.0); /* the product is read by no rule */
    cot_read(y, (double[N]){0}, N);
    cot_scope_close(t, 1, &y);
    cot_var s = cot_sum(cot_square(y), COT_ALL);
    double  v[N] = {1}, hv[N];
    assert_int_equal(cot_hvp(s, 1, &x, v, hv), COT_OK); /* nor needed by its derivative */
    assert_near(hv[0], 18, 0);
    cot_tape_destroy(t);
}

static void scopes_that_do_not_fit_are_refused(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2);
    cot_scope_close(t, 0, NULL);
    assert_error(t, COT_VALUE, "[scope_close] no scope is open; each close belongs to an open before it");
    cot_tape_clear_error(t);
    cot_mark m = cot_tape_mark(t);
    cot_sin(x);
    cot_scope_open(t, "rewound");
    cot_tape_rewind(t, m);
    cot_scope_close(t, 0, NULL);
    assert_error(t, COT_VALUE, "[scope_close] no scope is open; each close belongs to an open before it");
    cot_tape_clear_error(t);
    cot_scope_open(t, NULL);
    assert_error(t, COT_VALUE, "[scope_open] the name is NULL; it is told when a value of the scope is used later");
    cot_tape_clear_error(t);
    for (int k = 0; k < 17; k++) cot_scope_open(t, "deep");
    assert_error(t, COT_LIMIT, "[scope_open] 16 scopes are open; there may be so many");
    cot_tape_destroy(t);
}

/* Who read a leaf before it was assigned finds it overwritten, who read it after does not: as
 * without a scope, and with one more scope around. */
static void leaves_may_be_assigned_inside(void **state) {
    (void)state;
    for (int scopes = 0; scopes < 3; scopes++)
        for (int late = 0; late < 2; late++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x = cot_scalar(t, 2), w = cot_scalar(t, 5), y;
            for (int k = 0; k < scopes; k++) cot_scope_open(t, "step");
            cot_sin(x);
            if (late) cot_assign(x, cot_constant(t, 3));
            y = cot_mul(cot_sin(x), w);
            if (!late) cot_assign(x, cot_constant(t, 3));
            for (int k = 0; k < scopes; k++) assert_int_equal(cot_scope_close(t, 1, &y), COT_OK);
            cot_cos(y);
            assert_int_equal(cot_backward(y), late ? COT_OK : COT_STALE);
            if (late) assert_near(cot_grad_value(x), 5 * cos(3), 1e-15);
            cot_tape_destroy(t);
        }
}

/* A rewind forgets nodes, but not what was assigned after them: who reads it then reads the new
 * numbers, and who had read it before the mark is found. */
static void an_assignment_outlives_a_rewind_inside(void **state) {
    (void)state;
    for (int early = 0; early < 2; early++) {
        cot_tape *t = cot_tape_create(NULL);
        double    a[3] = {1, 2, 3}, b[3] = {4, 5, 6}, g[3];
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), a), s = cot_scalar(t, 2), before = s;
        cot_scope_open(t, "s");
        if (early) before = cot_square(s);
        else cot_sin(cot_scalar(t, 1));
        cot_mark m = cot_tape_mark(t);
        for (int k = 0; k < 10; k++) cot_cos(s);
        assert_int_equal(cot_assign_data(x, b), COT_OK);
        assert_int_equal(cot_assign(s, cot_number(3)), COT_OK);
        cot_tape_rewind(t, m);
        cot_var y = cot_mul(cot_mul(s, cot_sum(cot_square(x), COT_ALL)), before);
        cot_scope_close(t, 1, &y);
        if (early) assert_int_equal(cot_backward(y), COT_STALE);
        else {
            assert_int_equal(cot_backward(y), COT_OK);
            cot_read_grad(x, g, 3);
            for (int i = 0; i < 3; i++) assert_true(g[i] == 9 * 2 * b[i]);
            assert_true(cot_grad_value(s) == 2 * 3 * 77);
        }
        cot_tape_destroy(t);
    }
}

static cot_var trained_norm(cot_params *p, cot_var x) {
    return cot_tanh(cot_nn_batch_norm(p, "norm", cot_sin(x), 0, 0));
}

/* Its running statistics are assigned. */
static void batch_norms_train_in_scopes(void **state) {
    (void)state;
    enum { ROWS = 12, COLUMNS = 5 };
    static double got[2][3][ROWS * COLUMNS];
    memset(got, 0, sizeof got);
    for (int scoped = 0; scoped < 2; scoped++) {
        cot_tape   *t = cot_tape_create(NULL);
        cot_params *p = cot_params_create(t);
        cot_var     x = cot_leaf(cot_normal(t, cot_key_of(1), COT_F32, COT_SHAPE(ROWS, COLUMNS)));
        cot_params_init(p, trained_norm, x, cot_key_of(3));
        cot_params_train(p, true);
        for (int step = 0; step < 3; step++) {
            if (scoped) cot_scope_open(t, "block");
            cot_var y = trained_norm(p, x);
            if (scoped) cot_scope_close(t, 1, &y);
            assert_int_equal(cot_backward(cot_sum(cot_mul(y, x), COT_ALL)), COT_OK);
        }
        cot_read_grad(x, got[scoped][0], ROWS * COLUMNS);
        cot_read(cot_params_get(p, "norm.running_mean"), got[scoped][1], COLUMNS);
        cot_read(cot_params_get(p, "norm.running_var"), got[scoped][2], COLUMNS);
        assert_ok(t);
        cot_params_destroy(p);
        cot_tape_destroy(t);
    }
    assert_true(got[0][1][0] != 0);
    assert_memory_equal(got[0], got[1], sizeof got[0]);
}

static void steps_with_scopes_do_not_grow(void **state) {
    (void)state;
    counting  c = {0};
    cot_tape *t = counted_tape(&c, false);
    cot_var   w = numbers(t, 3), x = numbers(t, 5);
    cot_mark  m = cot_tape_mark(t);
    size_t    live = 0;
    for (int k = 0; k < 20; k++) {
        cot_backward(cot_sum(layer(t, layer(t, x, w, true), w, true), COT_ALL));
        assert_ok(t);
        cot_tape_zero_grads(t);
        cot_tape_rewind(t, m);
        if (k == 4) live = c.live;
    }
    assert_int_equal(c.live, live);
    cot_tape_destroy(t);
    assert_int_equal(c.live, 0);
}

/* ---- the report ------------------------------------------------------------------------------ */

static void the_report_tells_what_is_stored_and_why(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   w = numbers(t, 3), x = numbers(t, 5);
    cot_name(x, "x");
    cot_memory m;
    layer(t, x, w, false);
    assert_int_equal(cot_tape_memory(t, &m, NULL), COT_OK);
    assert_int_equal(m.stored, 7 * N * 8);
    assert_int_equal(m.sources, 2 * N * 8);
    assert_int_equal(m.saved, N * 8); /* exp(b) */
    assert_int_equal(m.cheap, N * 8);
    assert_int_equal(m.unread, 4 * N * 8);
    char  text[2048];
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(cot_tape_memory(t, NULL, file), COT_OK);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    static const char want[] =
        "values                            bytes           saved           again         read by the rule of\n"
        "2 add                             65536           0               8192\n"
        "1 exp                             32768           32768           4096          exp\n"
        "1 sub                             32768           0               4096\n"
        "1 mul                             32768           0               4096\n"
        "1 leaf                            32768           0               –\n"
        "1 leaf \"x\"                        32768           32768           –             mul\n"
        "229376 bytes: 65536 of leaves and constants, 32768 that rules read (32768 of them cheap to make again), "
        "131072 that none reads\n"
        "the most at once so far, without leaves and gradients: ";
    text[sizeof want - 1] = 0; /* the rest depends on the machine */
    assert_string_equal(text, want);
    cot_tape_destroy(t);
}

static int forgets_to_close(int64_t k, int n, const cot_var *xs, cot_var *ys, void *user) {
    (void)k, (void)n;
    cot_scope_open(user, "forgotten");
    ys[0] = cot_sin(xs[0]);
    return 0;
}

static void a_scope_that_a_layer_leaves_open_is_an_error_and_over(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), y;
    for (int k = 0; k < 20; k++) {
        cot_mark m = cot_tape_mark(t);
        cot_checkpoint_sequential(forgets_to_close, t, 1, 1, 1, &x, &y);
        assert_error(t, COT_VALUE,
                     "[checkpoint] the function left scope \"forgotten\" open; what it opens, it closes");
        cot_tape_clear_error(t);
        cot_tape_rewind(t, m);
    }
    /* and so is one that a rewind has passed */
    for (int k = 0; k < 20; k++) {
        cot_mark m = cot_tape_mark(t);
        cot_sin(x);
        cot_scope_open(t, "passed");
        cot_tape_rewind(t, m);
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

/* A norm saves statistics as a second result, and pooling the places of the largest. */
static void normed(bool scoped, double *gradient) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_reshape(numbers(t, 7), COT_SHAPE(1, 1, 64, 64)), w = numbers(t, 9);
    if (scoped) cot_scope_open(t, "block");
    cot_var one = cot_ones(t, COT_F64, COT_SHAPE(64)), zero = cot_zeros(t, COT_F64, COT_SHAPE(64));
    cot_var y = cot_layer_norm(cot_add(x, cot_reshape(w, COT_SHAPE(1, 1, 64, 64))), one, zero, -1, 1e-5);
    y = cot_max_pool2d(y, (cot_pool_options){.window = {2, 2}});
    if (scoped) cot_scope_close(t, 1, &y);
    cot_backward(cot_sum(cot_square(y), COT_ALL));
    assert_ok(t);
    cot_read(cot_grad(w), gradient, N);
    cot_tape_destroy(t);
}

static void rules_find_every_result_that_they_read(void **state) {
    (void)state;
    static double without[N], with[N];
    normed(false, without), normed(true, with);
    assert_memory_equal(with, without, sizeof with);
}

static void a_number_may_be_kept(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_scope_open(t, "s");
    cot_var keep[] = {cot_number(1e300), cot_exp(numbers(t, 3)), cot_integer(1000000)};
    assert_int_equal(cot_scope_close(t, 3, keep), COT_OK);
    cot_sum(keep[1], COT_ALL);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void a_scope_under_a_limit_keeps_what_it_keeps(void **state) {
    (void)state;
    static double before[N], after[N];
    cot_tape     *t = cot_tape_create(&(cot_options){.memory_limit = 8 * N * 8});
    cot_var       x = numbers(t, 3), y;
    cot_scope_open(t, "s");
    y = cot_exp(cot_add(x, 1.0));
    cot_read(y, before, N);
    for (int k = 0; k < 8; k++) cot_read(cot_sin(x), after, N); /* y goes */
    cot_scope_close(t, 1, &y);
    cot_read(y, after, N);
    assert_ok(t);
    assert_memory_equal(before, after, sizeof after);
    cot_tape_destroy(t);
}

/* What a limit dropped is made again from values of the scope also when there is no limit any
 * more. */
static void a_limit_may_end_before_the_scope(void **state) {
    (void)state;
    enum { SIDE = 128 };
    static double g[2][SIDE * SIDE];
    for (int ends = 0; ends < 2; ends++) {
        cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = 6 * SIDE * SIDE * 4 + 200000});
        cot_var   x = cot_leaf(cot_normal(t, cot_key_of(1), COT_F32, COT_SHAPE(SIDE, SIDE))), h = x;
        cot_scope_open(t, "s");
        for (int k = 0; k < 20; k++) h = cot_sin(cot_add(cot_mul(h, 0.9), h));
        if (ends) cot_tape_set_memory_limit(t, 0);
        cot_scope_close(t, 1, &h);
        if (cot_backward(cot_sum(h, COT_ALL)) != COT_OK) fail_msg("%s", cot_tape_message(t));
        assert_int_equal(cot_read_grad(x, g[ends], SIDE * SIDE), COT_OK);
        cot_tape_destroy(t);
    }
    assert_memory_equal(g[0], g[1], sizeof g[0]);
}

static void a_rewind_to_a_mark_before_a_scope_forgets_it(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = numbers(t, 3);
    for (int k = 0; k < 20; k++) {
        cot_mark m = cot_tape_mark(t);
        cot_scope_open(t, "step");
        cot_sin(x);
        cot_tape_rewind(t, m);
    }
    assert_ok(t);
    cot_scope_open(t, "outer");
    cot_mark m = cot_tape_mark(t);
    cot_scope_open(t, "inner");
    cot_sin(x);
    cot_tape_rewind(t, m); /* outer is open still, inner is not */
    assert_int_equal(cot_scope_close(t, 0, NULL), COT_OK);
    assert_int_equal(cot_scope_close(t, 0, NULL), COT_VALUE);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scope_frees_what_no_rule_reads_and_changes_no_bit),
        cmocka_unit_test(what_is_not_kept_is_an_error_that_names_the_scope),
        cmocka_unit_test(what_needs_a_value_that_went_says_so),
        cmocka_unit_test(scopes_that_do_not_fit_are_refused),
        cmocka_unit_test(a_scope_that_a_layer_leaves_open_is_an_error_and_over),
        cmocka_unit_test(rules_find_every_result_that_they_read),
        cmocka_unit_test(a_number_may_be_kept),
        cmocka_unit_test(a_scope_under_a_limit_keeps_what_it_keeps),
        cmocka_unit_test(a_limit_may_end_before_the_scope),
        cmocka_unit_test(a_rewind_to_a_mark_before_a_scope_forgets_it),
        cmocka_unit_test(leaves_may_be_assigned_inside),
        cmocka_unit_test(an_assignment_outlives_a_rewind_inside),
        cmocka_unit_test(batch_norms_train_in_scopes),
        cmocka_unit_test(steps_with_scopes_do_not_grow),
        cmocka_unit_test(the_report_tells_what_is_stored_and_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
