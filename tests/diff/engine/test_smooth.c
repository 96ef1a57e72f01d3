/* test_smooth.c: a smooth tape refuses every derivative at a kink, whichever function asks for it
 * and wherever the operation stands. Also: cot_report looks into loops. */
#include "support/body_test.h"
#include "support/tape_test.h"
#include "tape/tape.h"

/* ---- functions with a kink at 0 -------------------------------------------------------------- */

BODY(relu) { UNUSED; ys[0] = cot_relu(xs[0]); return 0; }
BODY(other) { UNUSED; ys[0] = cot_mul(xs[0], 2.0); return 0; }
BODY(plain) { UNUSED; ys[0] = cot_sum(cot_relu(xs[0]), COT_ALL); return 0; }
BODY(scanned) {
    UNUSED;
    cot_var z;
    if (cot_scan(relu, NULL, 2, 1, xs, 0, NULL, &z, 0, NULL, user)) return 1;
    ys[0] = cot_sum(z, COT_ALL);
    return 0;
}
BODY(asked) { return scanned(n, xs, m, ys, user ? user : &(cot_loop_options){.states = 1}); }
BODY(checkpointed) {
    UNUSED;
    cot_var z;
    if (cot_checkpoint(relu, NULL, 1, xs, 1, &z)) return 1;
    ys[0] = cot_sum(z, COT_ALL);
    return 0;
}
BODY(chosen) {
    UNUSED;
    cot_var z;
    if (cot_cond(cot_number(1), relu, other, NULL, 1, xs, 1, &z)) return 1;
    ys[0] = cot_sum(z, COT_ALL);
    return 0;
}
BODY(not_yet_2) { UNUSED; ys[0] = cot_less(xs[1], 2.0); return 0; }
BODY(relu_and_count) { UNUSED; ys[0] = cot_relu(xs[0]); ys[1] = cot_add(xs[1], 1.0); return 0; }
BODY(looped) {
    UNUSED;
    cot_var in[2] = {xs[0], cot_constant(xs[0].tape, 0)}, out[2];
    if (cot_while(not_yet_2, relu_and_count, NULL, 2, in, out, NULL)) return 1;
    ys[0] = cot_sum(out[0], COT_ALL);
    return 0;
}
BODY(inner_scan) { UNUSED; return cot_scan(relu, NULL, 2, 1, xs, 0, NULL, ys, 0, NULL, NULL); }
BODY(nested) {
    UNUSED;
    cot_var z;
    if (cot_scan(inner_scan, NULL, 3, 1, xs, 0, NULL, &z, 0, NULL, NULL)) return 1;
    ys[0] = cot_sum(z, COT_ALL);
    return 0;
}
BODY(mapped) {
    UNUSED;
    cot_var z;
    if (cot_vmap(relu, NULL, 1, xs, NULL, 1, &z, NULL)) return 1;
    ys[0] = cot_sum(z, COT_ALL);
    return 0;
}
/* 2 x + |x - θ| = 2 θ has the root θ: the equation is on its kink there. */
BODY(equation) {
    UNUSED;
    ys[0] = cot_add(cot_mul(2.0, cot_sub(xs[0], xs[1])), cot_abs(cot_sub(xs[0], xs[1])));
    return 0;
}
BODY(rooted) {
    UNUSED;
    ys[0] = cot_sum(cot_root(equation, NULL, NULL, cot_number(1), 1, xs, NULL), COT_ALL);
    return 0;
}

static const struct { const char *name; cot_fn f; } functions[] = {
    {"plain", plain}, {"scan", scanned}, {"scan with states", asked}, {"checkpoint", checkpointed},
    {"cond", chosen}, {"while", looped}, {"nested", nested},          {"vmap", mapped}};

/* ---- ways to differentiate ------------------------------------------------------------------- */

static double numbers[64];
static const double one[3] = {1, 1, 1};

static cot_var of(cot_fn f, cot_var x) {
    cot_var y = COT_NONE;
    f(1, &x, 1, &y, NULL);
    return y;
}

static void by_backward(cot_fn f, cot_var x) { cot_var y = of(f, x); cot_backward(y); }
static void by_grad_of(cot_fn f, cot_var x) { cot_var y = of(f, x), g; cot_grad_of(y, 1, &x, &g); }
static void by_value_and_grad(cot_fn f, cot_var x) { cot_var g; cot_value_and_grad(f, NULL, 1, &x, NULL, &g); }
static void by_fn_vjp(cot_fn f, cot_var x) {
    cot_var y, g, s = cot_number(1);
    cot_fn_vjp(f, NULL, 1, &x, 1, &y, &s, &g);
}
static void by_fn_jvp(cot_fn f, cot_var x) {
    cot_var y, d, s = cot_number(1);
    cot_fn_jvp(f, NULL, 1, &x, &s, 1, &y, &d);
}
static void by_linear_vjp(cot_fn f, cot_var x) {
    cot_linear *l;
    cot_var     y, g, s = cot_number(1);
    cot_linearize(f, NULL, 1, &x, 1, &y, &l);
    cot_linear_vjp(l, &s, &g);
}
static void by_linear_jvp(cot_fn f, cot_var x) {
    cot_linear *l;
    cot_var     y, g, s = cot_number(1);
    cot_linearize(f, NULL, 1, &x, 1, &y, &l);
    cot_linear_jvp(l, &s, &g);
}
static void by_fn_jacobian(cot_fn f, cot_var x) {
    cot_var j;
    cot_fn_jacobian(f, NULL, 1, &x, 1, NULL, COT_REVERSE, &j);
}
static void by_fn_jacobian_forward(cot_fn f, cot_var x) {
    cot_var j;
    cot_fn_jacobian(f, NULL, 1, &x, 1, NULL, COT_FORWARD, &j);
}
static void by_fn_hessian(cot_fn f, cot_var x) { cot_var h; cot_fn_hessian(f, NULL, 1, &x, NULL, &h); }
static void by_jvp(cot_fn f, cot_var x) { cot_var y = of(f, x), s = cot_number(1); cot_jvp(y, 1, &x, &s); }
static void by_vjps(cot_fn f, cot_var x) { cot_var y = of(f, x); cot_vjps(1, 1, &y, one, 1, &x, numbers); }
static void by_jvps(cot_fn f, cot_var x) { cot_var y = of(f, x); cot_jvps(1, 1, &x, one, 1, &y, numbers); }
static void by_jacobian(cot_fn f, cot_var x) { cot_var y = of(f, x); cot_jacobian(1, &y, 1, &x, COT_AUTO, numbers); }
static void by_hessian(cot_fn f, cot_var x) { cot_var y = of(f, x); cot_hessian(y, 1, &x, numbers); }
static void by_hvp(cot_fn f, cot_var x) { cot_var y = of(f, x); cot_hvp(y, 1, &x, one, numbers); }
static void by_taylor(cot_fn f, cot_var x) {
    cot_var y = of(f, x), out[3], s = cot_number(1);
    cot_taylor(y, 1, &x, 1, &s, 2, out);
}
static void by_taylor_values(cot_fn f, cot_var x) {
    cot_var y = of(f, x);
    cot_taylor_values(y, 1, &x, 1, one, 2, numbers);
}
static void by_sparse(cot_fn f, cot_var x) {
    cot_sparse_plan *p = cot_sparse_jacobian_plan_of(f, NULL, 1, &x, 1, COT_AUTO);
    cot_sparse_jacobian_of(p, f, NULL, 1, &x, 1, numbers);
    cot_sparse_plan_destroy(p);
}
BODY(gradient) {
    cot_fn *f = user;
    (void)m;
    return cot_value_and_grad(*f, NULL, n, xs, NULL, ys);
}
static void by_grad_in_vmap(cot_fn f, cot_var x) {
    cot_var two[2] = {x, x}, both = cot_stack(2, two, 0), g;
    cot_vmap(gradient, &f, 1, &both, NULL, 1, &g, NULL);
}
static void by_grad_in_scan(cot_fn f, cot_var x) {
    cot_var g;
    cot_scan(gradient, &f, 1, 1, &x, 0, NULL, &g, 0, NULL, NULL);
}

static const struct { const char *name; void (*by)(cot_fn f, cot_var x);
} ways[] = {
#define WAY(name) {#name, by_##name}
    WAY(backward),   WAY(grad_of),      WAY(value_and_grad),
    WAY(fn_vjp),     WAY(fn_jvp),       WAY(linear_vjp),
    WAY(linear_jvp), WAY(fn_jacobian),  WAY(fn_jacobian_forward),
    WAY(fn_hessian), WAY(jvp),          WAY(vjps),
    WAY(jvps),       WAY(jacobian),     WAY(hessian),
    WAY(hvp),        WAY(taylor),       WAY(taylor_values),
    WAY(sparse),     WAY(grad_in_vmap), WAY(grad_in_scan),
};

static void refuses(const char *name, cot_fn f, double kink, bool refused) {
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        cot_tape *t = cot_tape_create(&(cot_options){.smooth = true});
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, kink, 2});
        char      why[200];
        ways[w].by(f, x);
        bool said =
            strstr(cot_tape_message(t), "a derivative at a point without one was refused, as this tape was asked to: ");
        if (said != refused || (!refused && cot_tape_status(t) != COT_OK) ||
            (refused && cot_tape_status(t) != COT_GRAD))
            fail_msg("%s of %s at %g: \"%s\"", ways[w].name, name, kink, cot_tape_message(t));
        cot_tape_clear_error(t);
        assert_int_equal(cot_tape_check(t, why, sizeof why), COT_OK);
        cot_tape_destroy(t);
    }
}

static void every_derivative_at_a_kink_is_refused(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        refuses(functions[k].name, functions[k].f, 0, true);
}

static void beside_a_kink_all_is_well(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        refuses(functions[k].name, functions[k].f, 0.5, false);
}

/* A kink that no derivative goes through is none: of the input that stands still, and of a rule of
 * one's own. */
static int own_vjp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                   void *user) {
    UNUSED;
    xbars[0] = ybars[0];
    return 0;
}
BODY(straight) {
    UNUSED;
    static const cot_fn_rules rules = {.name = "straight", .vjp = own_vjp};
    cot_var                   z;
    if (cot_custom_fn(&rules, relu, NULL, 1, xs, 1, &z)) return 1;
    ys[0] = cot_sum(z, COT_ALL);
    return 0;
}
BODY(with_captured) { UNUSED; ys[0] = cot_add(cot_square(xs[0]), cot_relu(*(cot_var *)user)); return 0; }

static void what_is_not_differentiated_may_sit_on_a_kink(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.smooth = true});
    cot_var   x = cot_scalar(t, 1), zero = cot_scalar(t, 0), y, g;
    cot_value_and_grad(with_captured, &zero, 1, &x, NULL, &g);
    assert_ok(t);
    assert_near(cot_value(g), 2, 0);
    straight(1, &zero, 1, &y, NULL);
    cot_backward(y);
    assert_ok(t);
    assert_near(cot_grad_value(zero), 1, 0);
    cot_tape_destroy(t);
}

static void the_equation_of_a_root_may_sit_on_its_kink(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.smooth = true});
    cot_var   theta = cot_scalar(t, 2), y, d, s = cot_number(1);
    rooted(1, &theta, 1, &y, NULL);
    assert_ok(t);
    assert_near(cot_value(y), 2, 1e-12);
    cot_backward(y);
    assert_non_null(strstr(cot_tape_message(t), "was refused, as this tape was asked to: abs ("));
    cot_tape_clear_error(t);
    cot_fn_jvp(rooted, NULL, 1, &theta, &s, 1, &y, &d);
    assert_non_null(strstr(cot_tape_message(t), "was refused, as this tape was asked to: abs ("));
    cot_tape_destroy(t);
}

/* The sentences name the loop. */
static void sentences_say_where(void **state) {
    (void)state;
    char      text[512];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){0, 1}), y;
    scanned(1, &x, 1, &y, NULL);
    assert_int_equal(cot_report(y, text, sizeof text), 1);
    assert_non_null(strstr(text, "In step 1 of [scan]: relu ("));
    assert_non_null(strstr(text, " = 0 at [0]; its derivative there: 0, as on the left."));
    nested(1, &x, 1, &y, NULL);
    assert_int_equal(cot_report(y, text, sizeof text), 1); /* of all the steps the last */
    chosen(1, &x, 1, &y, NULL);
    assert_int_equal(cot_report(y, text, sizeof text), 1);
    cot_backward(y); /* and it is told, not refused */
    assert_ok(t);
    cot_tape_destroy(t);
    t = cot_tape_create(&(cot_options){.smooth = true});
    x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){0, 1});
    by_grad_in_vmap(plain, x);
    assert_non_null(strstr(cot_tape_message(t),
                           "[vmap] a derivative at a point without one was refused, as this tape was asked to: "
                           "In a body of [vmap]: relu ("));
    cot_tape_destroy(t);
}

/* A step of a loop in a body is played on examples and forgotten, together with the notes about
 * nodes to be checked later. While these notes stayed, a constant of the body that was recorded in
 * the same place (the adjoint of a carried value that no step reads) was taken for a value to be
 * computed at each step. Only its shape was known, and its memory was never written. */
static cot_var whole;
static int     steep(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    cot_var sum = cot_sum(cot_erfinv(*(const cot_var *)user), COT_ALL);
    ys[0]       = cot_mul(cot_sin(cot_broadcast_to(sum, cot_shape_of(xs[1]))), 0.75);
    return 0;
}
static int with_a_loop(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    cot_var slice = xs[1], inner;
    if (cot_fori(steep, &slice, -1, 2, 1, &whole, &inner, &(cot_loop_options){.states = 1}) != COT_OK) return 1;
    ys[0] = cot_mul(cot_sin(inner), 0.75);
    ys[1] = cot_mul(cot_sin(slice), 0.75);
    return 0;
}

static void what_was_noted_in_a_forgotten_step_is_forgotten(void **state) {
    (void)state;
    counting  c = {0};
    cot_tape *t = counted_tape(&c, false); /* its memory is not zero by chance */
    double    number[6] = {0.3, -0.8, 0.7, 0.4, -0.1, 0.2};
    t->options.smooth = true;
    whole = cot_tensor(t, COT_F64, COT_SHAPE(3, 2), number);
    cot_var start = cot_tensor(t, COT_F64, COT_SHAPE(3, 2), number), final, out, g[2];
    assert_int_equal(cot_scan(with_a_loop, NULL, -1, 1, &start, 1, &whole, &final, 1, &out, NULL), COT_OK);
    assert_int_equal(cot_grad_of(cot_sum(out, COT_ALL), 2, (cot_var[]){start, whole}, g), COT_OK);
    cot_read(g[0], number, 6);
    assert_ok(t);
    for (int i = 0; i < 6; i++) assert_true(number[i] == 0);
    cot_tape_destroy(t);
}

static void work(cot_tape *t, void *user) {
    (void)user;
    t->options.smooth = true;
    cot_fn  f = scanned;
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 0.5, 2}), two[2] = {x, x},
            both = cot_stack(2, two, 0), g;
    cot_vmap(gradient, &f, 1, &both, NULL, 1, &g, NULL);
    by_jvp(scanned, x);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    assert_survives_no_memory(work, NULL, 0, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_derivative_at_a_kink_is_refused),
        cmocka_unit_test(beside_a_kink_all_is_well),
        cmocka_unit_test(what_is_not_differentiated_may_sit_on_a_kink),
        cmocka_unit_test(the_equation_of_a_root_may_sit_on_its_kink),
        cmocka_unit_test(sentences_say_where),
        cmocka_unit_test(what_was_noted_in_a_forgotten_step_is_forgotten),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
