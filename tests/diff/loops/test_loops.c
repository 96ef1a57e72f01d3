/* test_loops.c: compares loops, conditions and checkpoints with the same computation written out,
 * in every mode. */
/* ctest: timeout=240 */
#include "rules/structural_ids.h"
#include "diff/loops/loop.h"
#include "program/memory/revolve.h"
#include "support/support.h"

#include <math.h>
#include <stdlib.h>

/* ---- bodies ---------------------------------------------------------------------------------- */

/* x -> r x (1 - x); r is captured */
static int logistic(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_mul(*(cot_var *)user, cot_mul(xs[0], cot_sub(1.0, xs[0])));
    return 0;
}

static int logistic_counted(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_mul(*(cot_var *)user, cot_mul(xs[1], cot_sub(1.0, xs[1])));
    ys[0] = cot_add(ys[0], cot_mul(1e-3, cot_cast(xs[0], COT_F64)));
    return 0;
}

/* (h, c), x -> tanh(W h + x), c + sum h²; out: h² */
static int recurrent(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    cot_var w = *(cot_var *)user;
    ys[0] = cot_tanh(cot_add(cot_matmul(w, xs[0]), xs[2]));
    ys[1] = cot_add(xs[1], cot_sum(cot_square(xs[0]), COT_ALL));
    ys[2] = cot_square(ys[0]);
    return 0;
}

typedef struct net { cot_tape *t; cot_var w, h, c, x; } net;

static net make_net(int steps) {
    static double numbers[64];
    for (int k = 0; k < 64; k++) numbers[k] = 0.3 * sin(1.7 * k + 0.2);
    net a = {.t = cot_tape_create(NULL)};
    a.w = cot_tensor(a.t, COT_F64, COT_SHAPE(3, 3), numbers);
    a.h = cot_tensor(a.t, COT_F64, COT_SHAPE(3), numbers + 9);
    a.c = cot_scalar(a.t, 0.25);
    a.x = cot_tensor(a.t, COT_F64, COT_SHAPE(steps, 3), numbers + 12);
    return a;
}

static cot_var loss_of(cot_var h, cot_var c, cot_var y) {
    return cot_add(cot_add(cot_sum(cot_sin(h), COT_ALL), c), cot_sum(cot_mul(y, cot_exp(y)), COT_ALL));
}

static cot_var scanned(net *a, const cot_loop_options *options) {
    cot_var init[2] = {a->h, a->c}, final[2], y;
    cot_scan(recurrent, &a->w, -1, 2, init, 1, &a->x, final, 1, &y, options);
    return loss_of(final[0], final[1], y);
}

static cot_var unrolled(net *a, int steps, bool reverse) {
    cot_var state[2] = {a->h, a->c}, out[16];
    for (int s = 0; s < steps; s++) {
        int     k = reverse ? steps - 1 - s : s;
        cot_var in[3] = {state[0], state[1], cot_index(a->x, 0, k)}, ys[3];
        recurrent(3, in, 3, ys, &a->w);
        state[0] = ys[0], state[1] = ys[1], out[k] = ys[2];
    }
    return loss_of(state[0], state[1], cot_stack(steps, out, 0));
}

static void assert_near(double a, double b, double tolerance) {
    if (!(fabs(a - b) <= tolerance * (1 + fabs(b)))) fail_msg("%.17g is not %.17g", a, b);
}

static void assert_ok(cot_tape *t) {
    if (cot_tape_status(t) != COT_OK) fail_msg("%s", cot_tape_message(t));
    char why[300];
    if (cot_tape_check(t, why, sizeof why) != COT_OK) fail_msg("%s", why);
}

static void gradients(net *a, double *out) {
    double *p = out;
    cot_read(cot_grad(a->w), p, 9);
    cot_read(cot_grad(a->h), p + 9, 3);
    out[12] = cot_grad_value(a->c);
    cot_read(cot_grad(a->x), p + 13, cot_size(a->x));
}

/* ---- gradients ------------------------------------------------------------------------------- */

static void check_scan(int steps, const cot_loop_options *options) {
    double ours[64] = {0}, theirs[64] = {0};
    net    a = make_net(steps), b = make_net(steps);
    cot_var f = scanned(&a, options), g = unrolled(&b, steps, options && options->reverse);
    assert_ok(a.t);
    assert_near(cot_value(f), cot_value(g), 1e-15);
    cot_backward(f);
    cot_backward(g);
    assert_ok(a.t);
    gradients(&a, ours);
    gradients(&b, theirs);
    for (int k = 0; k < 13 + 3 * steps; k++) assert_near(ours[k], theirs[k], 1e-14);
    cot_tape_destroy(a.t);
    cot_tape_destroy(b.t);
}

static void a_scan_has_the_gradient_of_its_steps(void **state) {
    (void)state;
    for (int steps = 1; steps <= 9; steps++) {
        check_scan(steps, NULL);
        for (int kept = 1; kept < 4; kept++)
            check_scan(steps, &(cot_loop_options){.states = kept, .reverse = kept & 1});
    }
}

static void a_scan_may_keep_its_states_in_a_file(void **state) {
    (void)state;
    check_scan(7, &(cot_loop_options){.states = 2, .spill = "/tmp"});
}

static void backward_twice_adds_up(void **state) {
    (void)state;
    double once[64], twice[64];
    net     a = make_net(8);
    cot_var f = scanned(&a, &(cot_loop_options){.states = 3});
    cot_backward(f);
    gradients(&a, once);
    cot_backward(f);
    gradients(&a, twice);
    assert_ok(a.t);
    for (int k = 0; k < 13 + 24; k++) assert_near(twice[k], 2 * once[k], 1e-15);
    cot_tape_destroy(a.t);
}

/* Recorded gradients, and gradients of those. */
static void a_scan_has_derivatives_of_every_order(void **state) {
    (void)state;
    net     a = make_net(4), b = make_net(4);
    cot_var f = scanned(&a, NULL), g = unrolled(&b, 4, false);
    for (int order = 0; order < 3; order++) {
        cot_var fa[4], fb[4], xa[4] = {a.w, a.h, a.c, a.x}, xb[4] = {b.w, b.h, b.c, b.x};
        assert_int_equal(cot_grad_of(f, 4, xa, fa), COT_OK);
        assert_int_equal(cot_grad_of(g, 4, xb, fb), COT_OK);
        assert_ok(a.t);
        for (int k = 0; k < 4; k++) {
            double ours[12], theirs[12];
            cot_read(fa[k], ours, cot_size(fa[k]));
            cot_read(fb[k], theirs, cot_size(fb[k]));
            for (int i = 0; i < cot_size(fa[k]); i++) assert_near(ours[i], theirs[i], 1e-12);
        }
        f = cot_add(cot_add(cot_sum(cot_square(fa[0]), COT_ALL), cot_sum(cot_mul(fa[1], cot_square(fa[1])), COT_ALL)),
                    cot_mul(fa[2], cot_sum(fa[3], COT_ALL)));
        g = cot_add(cot_add(cot_sum(cot_square(fb[0]), COT_ALL), cot_sum(cot_mul(fb[1], cot_square(fb[1])), COT_ALL)),
                    cot_mul(fb[2], cot_sum(fb[3], COT_ALL)));
    }
    cot_tape_destroy(a.t);
    cot_tape_destroy(b.t);
}

static void a_scan_has_tangents(void **state) {
    (void)state;
    net     a = make_net(5), b = make_net(5);
    cot_var f = scanned(&a, NULL), g = unrolled(&b, 5, false);
    cot_var xa[3] = {a.w, a.c, a.x}, xb[3] = {b.w, b.c, b.x};
    cot_var da[3] = {cot_sin(a.w), cot_constant(a.t, 2), cot_cos(a.x)},
            db[3] = {cot_sin(b.w), cot_constant(b.t, 2), cot_cos(b.x)};
    cot_var ta = cot_jvp(f, 3, xa, da), tb = cot_jvp(g, 3, xb, db);
    assert_ok(a.t);
    assert_near(cot_value(ta), cot_value(tb), 1e-14);
    cot_var ga, gb; /* reverse over forward */
    cot_grad_of(ta, 1, &a.w, &ga);
    cot_grad_of(tb, 1, &b.w, &gb);
    assert_ok(a.t);
    double ours[9], theirs[9];
    cot_read(ga, ours, 9);
    cot_read(gb, theirs, 9);
    for (int k = 0; k < 9; k++) assert_near(ours[k], theirs[k], 1e-13);
    cot_tape_destroy(a.t);
    cot_tape_destroy(b.t);
}

/* ---- counted, and of unknown length ---------------------------------------------------------- */

static void fori_counts(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   r = cot_scalar(t, 3.6), x = cot_scalar(t, 0.3), y, z = x;
    cot_fori(logistic_counted, &r, 3, 10, 1, &x, &y, NULL);
    cot_backward(y);
    assert_ok(t);
    double dr = cot_grad_value(r), dx = cot_grad_value(x);
    cot_tape_zero_grads(t);
    for (int k = 3; k < 10; k++) z = cot_add(cot_mul(r, cot_mul(z, cot_sub(1.0, z))), 1e-3 * k);
    cot_backward(z);
    assert_near(cot_value(y), cot_value(z), 1e-15);
    assert_near(dr, cot_grad_value(r), 1e-13);
    assert_near(dx, cot_grad_value(x), 1e-13);
    y = x;
    /* the result where the initial value was */
    cot_fori(logistic_counted, &r, 3, 10, 1, &y, &y, NULL);
    assert_near(cot_value(y), cot_value(z), 1e-15);
    cot_fori(logistic_counted, &r, 5, 5, 1, &x, &y, NULL);
    assert_near(cot_value(y), 0.3, 0);
    cot_tape_destroy(t);
}

/* x -> x/2 + a/(2x) until it changes little; the number of steps is an integer that is carried */
static int heron(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_mul(0.5, cot_add(xs[0], cot_div(*(cot_var *)user, xs[0])));
    ys[1] = xs[0];
    ys[2] = cot_add(xs[2], 1);
    return 0;
}
static int moved(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_greater(cot_abs(cot_sub(xs[0], xs[1])), 1e-14);
    return 0;
}

static void while_runs_until_its_test_fails(void **state) {
    (void)state;
    for (int states = 1; states < 6; states++) {
        cot_tape *t = cot_tape_create(NULL);
        int64_t   zero = 0;
        cot_var   a     = cot_scalar(t, 2),
                init[3] = {cot_constant(t, 1), cot_constant(t, 0), cot_data(t, COT_I64, COT_SCALAR, &zero)}, out[3];
        cot_while(moved, heron, &a, 3, init, out, &(cot_loop_options){.states = states});
        assert_ok(t);
        assert_near(cot_value(out[0]), sqrt(2), 1e-15);
        assert_int_equal(cot_dtype_of(out[2]), COT_I64);
        assert_true(cot_value(out[2]) >= 5);
        cot_backward(out[0]);
        assert_ok(t);
        assert_near(cot_grad_value(a), 0.5 / sqrt(2), 1e-15);
        cot_var g, h;
        cot_grad_of(out[0], 1, &a, &g);
        cot_grad_of(g, 1, &a, &h);
        assert_ok(t);
        assert_near(cot_value(h), -0.25 * pow(2, -1.5), 1e-13);
        cot_tape_destroy(t);
    }
}

/* ---- conditions and checkpoints -------------------------------------------------------------- */

static int cube(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_mul(*(cot_var *)user, cot_mul(xs[0], cot_square(xs[0])));
    return 0;
}
static int wave(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sin(xs[0]);
    return 0;
}

static void cond_differentiates_the_branch_that_ran(void **state) {
    (void)state;
    for (int side = -1; side <= 1; side += 2) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_scalar(t, 0.7 * side), a = cot_scalar(t, 5), y, g, h;
        cot_cond(cot_greater(x, 0), cube, wave, &a, 1, &x, 1, &y);
        cot_backward(y);
        assert_ok(t);
        assert_near(cot_value(y), side > 0 ? 5 * 0.343 : -sin(0.7), 1e-15);
        assert_near(cot_grad_value(x), side > 0 ? 15 * 0.49 : cos(0.7), 1e-15);
        assert_near(cot_grad_value(a), side > 0 ? 0.343 : 0, 1e-15);
        cot_grad_of(y, 1, &x, &g);
        cot_grad_of(g, 1, &x, &h);
        assert_ok(t);
        assert_near(cot_value(h), side > 0 ? 30 * 0.7 : sin(0.7), 1e-14);
        assert_near(cot_value(cot_jvp(y, 1, &x, (cot_var[]){cot_constant(t, 2)})), 2 * cot_value(g), 1e-14);
        cot_tape_destroy(t);
    }
}

static void a_checkpoint_keeps_nothing_inside(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_scalar(t, 2), x = cot_tensor(t, COT_F64, COT_SHAPE(100000), NULL), y;
    int64_t   before = cot_tape_storage_bytes(t);
    cot_checkpoint(cube, &a, 1, &x, 1, &y);
    assert_ok(t);
    /* the result; not the square */
    assert_true(cot_tape_storage_bytes(t) - before < 100000 * 8 * 3 / 2);
    cot_backward(cot_sum(cot_add(y, x), COT_ALL));
    assert_ok(t);
    double g[1];
    cot_read(cot_index(cot_grad(x), 0, 17), g, 1);
    assert_near(g[0], 1, 0);
    cot_tape_destroy(t);
}

/* log(1 + e^x) with its stable derivative; and its mirror with a jvp only */
static int soft(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_log(cot_add(cot_exp(xs[0]), 1.0));
    ys[1] = cot_mul(xs[0], xs[1]);
    return 0;
}
static int soft_vjp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                    void *user) {
    (void)n, (void)m, (void)ys, (void)user;
    xbars[0] = cot_add(cot_mul(ybars[0], cot_sigmoid(xs[0])), cot_mul(ybars[1], xs[1]));
    xbars[1] = cot_sum(cot_mul(ybars[1], xs[0]), COT_ALL);
    return 0;
}
static int soft_jvp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *dxs, cot_var *dys, void *user) {
    (void)n, (void)m, (void)ys, (void)user;
    bool first = cot_is_valid(dxs[0]), second = cot_is_valid(dxs[1]);
    if (first) dys[0] = cot_mul(dxs[0], cot_sigmoid(xs[0])), dys[1] = cot_mul(dxs[0], xs[1]);
    if (second) dys[1] = first ? cot_add(dys[1], cot_mul(dxs[1], xs[0])) : cot_mul(dxs[1], xs[0]);
    return 0;
}

static void given_rules_are_used_both_ways(void **state) {
    (void)state;
    const cot_fn_rules rules[3] = {{"soft", soft_vjp, NULL}, {"soft", NULL, soft_jvp}, {"soft", soft_vjp, soft_jvp}};
    for (int k = 0; k < 3; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x[2] = {cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){800, 0.5}), cot_scalar(t, 3)}, y[2], g[2], h;
        cot_custom_fn(&rules[k], soft, NULL, 2, x, 2, y);
        cot_var f = cot_add(cot_sum(cot_square(cot_sub(y[1], 1.0)), COT_ALL), cot_sum(y[0], COT_ALL));
        cot_backward(f);
        assert_ok(t);
        double ours[2], s = 1 / (1 + exp(-0.5));
        cot_read(cot_grad(x[0]), ours, 2);
        /* the function's own derivative is NaN there */
        assert_near(ours[0], 1 + 2 * (2400 - 1) * 3., 1e-15);
        assert_near(ours[1], s + 2 * 0.5 * 3, 1e-15);
        assert_int_equal(cot_grad_of(f, 2, x, g), COT_OK);
        assert_int_equal(cot_grad_of(cot_index(g[0], 0, 1), 1, x, &h), COT_OK);
        assert_ok(t);
        cot_read(h, ours, 2);
        assert_near(ours[1], s * (1 - s) + 18, 1e-14);
        cot_var d[2] = {cot_ones(t, COT_F64, COT_SHAPE(2)), cot_constant(t, 0.5)};
        assert_near(cot_value(cot_jvp(f, 2, x, d)), cot_value(cot_add(cot_sum(g[0], COT_ALL), cot_mul(0.5, g[1]))),
                    1e-14);
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

/* ---- long loops ------------------------------------------------------------------------------ */

static const cot__loop_run *run_of(cot_tape *t) {
    for (uint32_t i = t->count; i-- > 0;)
        if (t->nodes[i].op == OP_loop) return t->nodes[i].extra.attr->pointer2;
    return NULL;
}

/* The least number of steps run, besides the `steps` that are recorded and reversed one by one,
 * with s states: each of the best plans runs every step at most r times, where
 * C(s + r, s) >= steps. */
static int64_t fewest(int64_t steps, int64_t s) {
    int64_t r = 0;
    if (s == 1) return steps * (steps - 1) / 2;
    while (cot__binomial(s, r) < steps) r++;
    return r * steps - cot__binomial(s + 1, r - 1);
}

static void steps_run_again_are_the_fewest_possible(void **state) {
    (void)state;
    for (int states = 1; states < 6; states++)
        for (int steps = 1; steps < 60; steps += 7) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   r = cot_scalar(t, 3.6), x = cot_scalar(t, 0.3), y;
            cot_fori(logistic_counted, &r, 0, steps, 1, &x, &y, &(cot_loop_options){.states = states});
            cot_backward(y);
            assert_ok(t);
            assert_int_equal(run_of(t)->again, fewest(steps, states + 1) - (steps - 1));
            cot_tape_destroy(t);
        }
}

static void a_million_steps_go_back_in_little_memory(void **state) {
    (void)state;
    int       steps = getenv("COT_TEST_SMALL") ? 20000 : 1000000;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   r = cot_scalar(t, 2.5), x = cot_scalar(t, 0.3), y;
    cot_fori(logistic_counted, &r, 0, 1, 1, &x, &y, NULL);
    cot_scan(logistic, &r, steps, 1, &x, 0, NULL, &y, 0, NULL, NULL);
    cot_backward(y);
    assert_ok(t);
    /* the fixed point 1 - 1/r */
    assert_near(cot_value(y), 0.6, 1e-15);
    /* its derivative is 1/r² */
    assert_near(cot_grad_value(r), 1 / (2.5 * 2.5), 1e-14);
    assert_true(cot_tape_length(t) < 60);
    assert_true(cot_tape_bytes(t) < 64 << 20);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scan_has_the_gradient_of_its_steps),
        cmocka_unit_test(a_scan_may_keep_its_states_in_a_file),
        cmocka_unit_test(backward_twice_adds_up),
        cmocka_unit_test(a_scan_has_derivatives_of_every_order),
        cmocka_unit_test(a_scan_has_tangents),
        cmocka_unit_test(fori_counts),
        cmocka_unit_test(while_runs_until_its_test_fails),
        cmocka_unit_test(cond_differentiates_the_branch_that_ran),
        cmocka_unit_test(a_checkpoint_keeps_nothing_inside),
        cmocka_unit_test(given_rules_are_used_both_ways),
        cmocka_unit_test(steps_run_again_are_the_fewest_possible),
        cmocka_unit_test(a_million_steps_go_back_in_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
