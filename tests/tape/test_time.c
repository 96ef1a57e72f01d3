/* Derivatives and writes: values recorded before a write are differentiated as they were recorded,
 * or are reported as stale, whatever bodies, failures, marks and rewinds lie between. Nothing else
 * is refused. The error names the function that was called, the operation that needs the value, and
 * the write. test_time_model.c searches for such cases, this file keeps the ones that were
 * found. */
#include "rules/structural_ids.h"
#include "rules/elementwise_ids.h"
#include "support/body_test.h"
#include "support/support.h"
#include "support/tape_test.h"

#include "tape/tape.h"

static cot_tape *open_tape(void) { return cot_tape_create(NULL); }
static cot_var   leaf(cot_tape *t, int n, const double *v) { return cot_tensor(t, COT_F64, COT_SHAPE(n), v); }

static const double start[3] = {1.5, -2.0, 0.75}, other[3] = {0.5, 4.0, -1.25}, ones[3] = {1, 1, 1};

static void expect(cot_tape *t, cot_status code, const char *text) {
    assert_error(t, code, text);
    cot_tape_clear_error(t);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

BODY(square) { UNUSED; ys[0] = cot_square(xs[0]); return 0; }
BODY(doubled) { UNUSED; ys[0] = cot_mul(2.0, xs[0]); return 0; }
BODY(less_one) { UNUSED; ys[0] = cot_sub(cot_mul(2.0, xs[0]), xs[n - 1]); return 0; }
BODY(halved) { UNUSED; ys[0] = cot_mul(0.5, xs[0]); return 0; }
BODY(curved) { UNUSED; ys[0] = cot_sub(cot_mul(xs[0], cot_add(cot_square(xs[1]), 2.0)), 1.0); return 0; }
BODY(bowl) { UNUSED; ys[0] = cot_square(cot_sub(xs[0], 1.0)); return 0; }
BODY(fails) { UNUSED; ys[0] = cot_square(xs[0]); return 1; }
BODY(fails_inside) { UNUSED; cot_checkpoint(fails, NULL, 1, xs, 1, ys); return 0; }
BODY(is_small) { UNUSED; ys[0] = cot_less(xs[0], 4.0); return 0; }

static void checkpoint(cot_var q) { cot_var r; cot_checkpoint(square, NULL, 1, &q, 1, &r); }
static void scan(cot_var q) { cot_var r; cot_scan(square, NULL, 2, 1, &q, 0, NULL, &r, 0, NULL, NULL); }
static void loop_while(cot_var q) { cot_var r; cot_while(is_small, doubled, NULL, 1, &q, &r, NULL); }
static void vmap(cot_var q) {
    cot_var r, x = cot_stack(2, (cot_var[]){q, q}, 0);
    cot_vmap(square, NULL, 1, &x, NULL, 1, &r, NULL);
}
static void root(cot_var q) { cot_root(less_one, NULL, NULL, q, 1, &q, NULL); }
static void fixed_point(cot_var q) { cot_fixed_point(halved, NULL, NULL, q, 0, NULL, NULL); }
static void minimize(cot_var q) { cot_minimize(bowl, NULL, NULL, q, 0, NULL, NULL); }
static void linear_solve(cot_var q) { cot_linear_solve(doubled, NULL, q, NULL); }
static void hessian(cot_var q) { cot_var r, h; cot_fn_hessian(square, NULL, 1, &q, &r, &h); }
static void failed(cot_var q) { cot_var r; cot_checkpoint(fails, NULL, 1, &q, 1, &r); cot_tape_clear_error(q.tape); }
static void failed_inside(cot_var q) {
    cot_var r;
    cot_checkpoint(fails_inside, NULL, 1, &q, 1, &r);
    cot_tape_clear_error(q.tape);
}
static void rewound(cot_var q) {
    cot_mark m = cot_tape_mark(q.tape);
    checkpoint(q);
    cot_tape_rewind(q.tape, m);
    checkpoint(q);
}
static void nothing(cot_var q) { (void)q; }

static void (*const before[])(cot_var q) = {nothing, checkpoint,    scan,     loop_while,   vmap,
                                            root,    fixed_point,   minimize, linear_solve, hessian,
                                            failed,  failed_inside, rewound};

/* The n-th way to write a leaf that has a gradient. */
static void write_leaf(cot_var a, int how) {
    double five = 5, m = 0, v = 0;
    if (how == 0) cot_assign(a, 5.0);
    if (how == 1) cot_assign_data(a, &five);
    if (how == 2) cot_sgd_step(1, &a, 0.5);
    if (how == 3) cot_adamw_step(1, &a, (void *[]){&m}, (void *[]){&v}, (cot_adamw){.step = 1, .rate = 0.5});
}
static const char *const writers[] = {"cot_assign", "cot_assign_data", "cot_sgd_step", "cot_adamw_step"};

static void an_assigned_scalar_is_noticed_behind_every_body(void **state) {
    (void)state;
    for (int k = 0; k < TEST_COUNT(before); k++)
        for (int how = 0; how < 4; how++) {
            cot_tape *t = open_tape();
            cot_var   q = cot_scalar(t, 1), a, y, z, g;
            double    j[2], seeds[2] = {1, 1};
            char      want[256];
            before[k](q);
            assert_ok(t);
            a = cot_name(cot_scalar(t, 3), "a"), y = cot_name(cot_square(a), "y"), z = cot_mul(y, 2.0);
            cot_backward(a);
            write_leaf(a, how);
            cot_backward(y);
            snprintf(want, sizeof want,
                     "[backward] square (y) needs the value of leaf (a), which was overwritten by %s; "
                     "compute before the write, or write to a copy (cot_copy)",
                     writers[how]);
            expect(t, COT_STALE, want);
            assert_near(cot_grad_value(a), 1, 0);
            assert_int_equal(cot_vjps(2, 1, &y, seeds, 1, &a, j), COT_STALE);
            cot_tape_clear_error(t);
            assert_int_equal(cot_jvps(2, 1, &a, seeds, 1, &y, j), COT_STALE);
            cot_tape_clear_error(t);
            assert_int_equal(cot_hvp(y, 1, &a, seeds, j), COT_STALE);
            cot_tape_clear_error(t);
            assert_int_equal(cot_grad_of(z, 1, &y, &g), COT_OK); /* does not read it */
            assert_near(cot_value(g), 2, 0);
            cot_tape_destroy(t);
        }
}

/* The search for assigned leaves is cheap: after a rewind it visits only the remaining nodes,
 * whatever was recorded before. */
static void only_what_is_older_than_the_last_assignment_is_looked_at(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   w = cot_scalar(t, 3), y;
    cot_mark  m = cot_tape_mark(t);
    for (int i = 0; i < 3; i++) {
        cot_checkpoint(square, NULL, 1, &w, 1, &y);
        assert_int_equal(t->assigned_at, i ? 1 : 0);
        cot_backward(cot_square(y));
        assert_ok(t);
        cot_sgd_step(1, &w, 1e-3);
        assert_int_equal(t->assigned_at, t->count);
        cot_tape_rewind(t, m);
        assert_int_equal(t->assigned_at, 1);
    }
    cot_tape_destroy(t);
}

/* Nodes of a body are never swept, least of all those of a body that failed. */
static void a_body_that_is_over_saves_nothing(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.strict = true});
    cot_var   x = leaf(t, 3, start), v = cot_mul(x, 1.0), y;
    assert_int_equal(cot_checkpoint(fails, NULL, 1, &v, 1, &y), COT_CUSTOM);
    cot_tape_clear_error(t);
    assert_int_equal(cot_add_into(&v, 1.0), COT_OK);
    assert_int_equal(cot_checkpoint(square, NULL, 1, &v, 1, &y), COT_OK);
    assert_int_equal(cot_add_into(&v, 1.0), COT_STALE); /* the checkpoint itself will read it */
    cot_tape_destroy(t);
}

static void a_mark_behind_a_failed_body_is_known_as_forgotten(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   q = cot_scalar(t, 1);
    cot_mark  m = cot_tape_mark(t), inner;
    failed(q);
    inner = cot_tape_mark(t);
    cot_tape_rewind(t, m);
    failed(q); /* as long as the one before */
    cot_tape_rewind(t, inner);
    expect(t, COT_VALUE, "[tape_rewind] this mark lies in a part of the tape that was already forgotten; "
                         "marks are rewound in the reverse of the order in which they were made");
    cot_tape_destroy(t);
}

/* A choice that was overwritten would show the other body. */
static void a_plan_does_not_look_at_operands_that_were_overwritten(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 3, start), choice = cot_constant(t, 1), y;
    cot_cond(choice, square, doubled, NULL, 1, &x, 1, &y);
    cot_assign(choice, 0.0);
    assert_null(cot_sparse_jacobian_plan(1, &y, 1, &x, COT_AUTO));
    expect(t, COT_STALE,
           "[sparse_jacobian_plan] cond (v₃) needs the value of constant (0), which was overwritten by cot_assign; "
           "compute before the write, or write to a copy (cot_copy)");
    cot_tape_destroy(t);
}

static int count_value(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    *(double *)y->data = *(const double *)xs[0].data;
    return 0;
}
static int count_vjp(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    (void)n, (void)xs, (void)y;
    xbars[0] = cot_mul(1.0, cot_mul(1.0, cot_mul(1.0, ybar)));
    cot_assign(*(cot_var *)user, 3.0); /* a statistic */
    return 0;
}

/* The nodes that a rule recorded are forgotten, and nodes recorded in their place are later than
 * the assignment. */
static void what_follows_an_assignment_in_a_rule_is_later(void **state) {
    (void)state;
    static const cot_custom count = {.name = "count", .value = count_value, .vjp = count_vjp};
    cot_tape *t = open_tape();
    cot_var   x = cot_scalar(t, 1), c = cot_scalar(t, 2), old = cot_square(c), y = cot_call(&count, 1, &x, &c), g;
    assert_int_equal(cot_backward(y), COT_OK);
    assert_near(cot_value(c), 3, 0);
    assert_int_equal(cot_grad_of(cot_square(c), 1, &c, &g), COT_OK);
    assert_near(cot_value(g), 6, 0);
    assert_int_equal(cot_backward(old), COT_STALE);
    cot_tape_destroy(t);
}

/* ---- stamps ---------------------------------------------------------------------------------- */

/* When all stamps have been used, free ones are used again: training goes on, and stale values are
 * still recognised. */
static void stamps_are_used_again(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   w = cot_scalar(t, 4), c = cot_scalar(t, 3), y = cot_square(c), z, lost, g;
    cot_assign(c, 5.0);
    cot_mark m = cot_tape_mark(t);
    lost = cot_square(w);
    t->stamp = COT__LAST_STAMP - 2;
    for (int i = 0; i < 6; i++) {
        cot_tape_rewind(t, m);
        assert_true(t->stamp <= COT__LAST_STAMP);
        cot_tape_zero_grads(t);
        z = cot_square(w);
        assert_int_equal(cot_backward(z), COT_OK);
        assert_near(cot_grad_value(w), 2 * cot_value(w), 0);
        assert_int_equal(cot_sgd_step(1, &w, 0.25), COT_OK);
        assert_int_equal(cot_grad_of(z, 1, &w, &g), COT_STALE);
        cot_tape_clear_error(t);
        assert_int_equal(cot_backward(y), COT_STALE);
        cot_tape_clear_error(t);
        assert_int_equal(cot_backward(cot_square(c)), COT_OK);
        assert_near(cot_grad_value(c), 10, 0);
        assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
        assert_false(cot_is_valid(lost) && i > 0);
    }
    assert_true(t->stamp < 10);
    assert_near(cot_value(w), 4.0 / 64, 0);
    cot_tape_destroy(t);
}

/* ---- what no x needs ------------------------------------------------------------------------- */

/* Rules that are not on the way from the xs to the ys do not run, so values that they would read
 * may be overwritten. */
static void a_derivative_asks_only_the_rules_on_its_way(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   a = cot_scalar(t, 3), b = cot_sin(a), y = cot_square(b), v = leaf(t, 3, start), w = cot_sin(v),
            x   = leaf(t, 3, other), g;
    cot_var   z = cot_sum(cot_mul(w, x), COT_ALL);
    double    j[6], one[6] = {1, 2, 1, 1, 1, 1};
    cot_assign(a, 5.0);
    cot_assign_data(v, other);
    for (int lanes = 1; lanes <= 2; lanes++) {
        assert_int_equal(cot_vjps(lanes, 1, &y, one, 1, &b, j), COT_OK);
        assert_near(j[lanes - 1], lanes * 2 * cot_value(b), 0);
        assert_int_equal(cot_vjps(lanes, 1, &z, one, 1, &x, j), COT_OK);
        assert_near(j[3 * lanes - 1], lanes * sin(start[2]), 1e-15);
    }
    assert_int_equal(cot_jacobian(1, &y, 1, &b, COT_REVERSE, j), COT_OK);
    assert_int_equal(cot_jacobian(1, &z, 1, &w, COT_REVERSE, j), COT_OK);
    assert_near(j[1], other[1], 0);
    assert_int_equal(cot_hvp(y, 1, &b, one, j), COT_OK);
    assert_near(j[0], 2, 0);
    assert_int_equal(cot_vjps(1, 1, &z, one, 1, &v, j), COT_STALE);
    cot_tape_clear_error(t);
    cot_checkpoint(square, NULL, 1, &v, 1, &y);
    cot_assign_data(v, start);
    assert_int_equal(cot_vjp(y, 1.0, 1, &y, &g), COT_OK); /* by itself */
    assert_int_equal(cot_jacobian(1, &y, 1, &y, COT_REVERSE, (double[9]){0}), COT_OK);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* A value that was overwritten as a whole moves nothing. */
static void the_way_forward_does_not_go_through_what_was_overwritten(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 3, start), y = cot_mul(x, 1.0), p = cot_mul(x, y), z;
    double    j[9];
    cot_add_into(&y, 1.0);
    z = p;
    cot_copy_into(&z, x);
    assert_int_equal(cot_jacobian(1, &z, 1, &x, COT_FORWARD, j), COT_OK);
    assert_near(j[4], 1, 0);
    cot_sparse_plan *plan = cot_sparse_jacobian_plan(1, &z, 1, &x, COT_AUTO);
    assert_non_null(plan);
    cot_sparse_plan_destroy(plan);
    cot_tape_destroy(t);
}

/* ---- wrong numbers --------------------------------------------------------------------------- */

/* A leaf is written to in place, gets numbers again, and is used again: both uses count. */
static void a_leaf_that_has_numbers_again_moves_again(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 3, start), z = x, u, y;
    double    forward[9], reverse[9], values[9], v[3];
    cot_update_slice(&z, 0, 0, 1, 1, 7.0);
    u = cot_mul(z, 1.0);
    cot_assign_data(x, other);
    y = cot_add(u, cot_mul(2.0, x));
    assert_int_equal(cot_jacobian(1, &y, 1, &x, COT_REVERSE, reverse), COT_OK);
    assert_int_equal(cot_jacobian(1, &y, 1, &x, COT_FORWARD, forward), COT_OK);
    for (int i = 0; i < 9; i++) assert_near(forward[i], i == 0 ? 2 : i % 4 == 0 ? 3 : 0, 0);
    for (int i = 0; i < 9; i++) assert_near(forward[i], reverse[i], 0);
    assert_int_equal(cot_jvps(1, 1, &x, ones, 1, &x, v), COT_OK); /* as a result, too */
    assert_near(v[0], 1, 0);
    cot_sparse_plan *plan = cot_sparse_jacobian_plan(1, &y, 1, &x, COT_AUTO);
    assert_int_equal(cot_sparse_plan_info(plan).nnz, 3);
    assert_int_equal(cot_sparse_jacobian(plan, 1, &y, 1, &x, values), COT_OK);
    for (int i = 0; i < 3; i++) assert_near(values[i], i ? 3 : 2, 0);
    cot_sparse_plan_destroy(plan);
    cot_tape_destroy(t);
}

/* x · s, with s spread over x, where s becomes 1 afterwards: the derivative is the s that was. */
static void a_factor_that_becomes_one_was_not_one(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = leaf(t, 3, start), s = cot_scalar(t, 3), y = cot_mul(x, s);
    double    j[9];
    cot_assign(s, 1.0);
    assert_int_equal(cot_jacobian(1, &y, 1, &x, COT_FORWARD, j), COT_OK);
    for (int i = 0; i < 9; i++) assert_near(j[i], i % 4 == 0 ? 3 : 0, 0);
    cot_tape_destroy(t);
}

/* Two tangents at once go over f64 scalars; others that lie between are passed over. */
static void scalars_of_another_dtype_are_passed_over(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = cot_scalar(t, 3), narrow = cot_scalar_of(t, COT_F32, 2), y;
    double    dy[2];
    cot_square(narrow);
    y = cot_square(x);
    assert_int_equal(cot_jvps(2, 1, &x, (double[]){1, 2}, 1, &y, dy), COT_OK);
    assert_true(dy[0] == 6 && dy[1] == 12);
    cot_tape_destroy(t);
}

/* A scalar has no memory to be written to: the target is replaced by a value that is not y
 * itself. */
static void a_scalar_copied_in_place_is_another_value(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   a = cot_scalar(t, 3), y = cot_square(a), x = cot_scalar(t, 1), z, g;
    cot_copy_into(&x, y);
    z = cot_mul(y, 5.0);
    cot_grad_of(z, 1, &x, &g);
    assert_near(cot_value(g), 0, 0);
    cot_no_grad_open(t);
    cot_copy_into(&x, y);
    cot_no_grad_close(t);
    assert_near(cot_value(x), 9, 0);
    assert_false(cot_requires_grad(x));
    cot_tape_destroy(t);
}

/* Where a rule differentiates a body, too. */
static void a_derivative_recorded_without_gradients_has_none(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   a = cot_scalar(t, 3), y = cot_root(curved, NULL, NULL, cot_constant(t, 1), 1, &a, NULL), g, d, v,
            one = cot_number(1);
    cot_no_grad_open(t);
    cot_grad_of(y, 1, &a, &g);
    d = cot_jvp(y, 1, &a, &one);
    cot_value_and_grad(square, NULL, 1, &a, &y, &v);
    cot_no_grad_close(t);
    assert_near(cot_value(g), -6.0 / 121, 1e-12); /* of 1 / (a² + 2) */
    assert_false(cot_requires_grad(g) || cot_requires_grad(d) || cot_requires_grad(v));
    cot_tape_destroy(t);
}

/* ---- messages -------------------------------------------------------------------------------- */

static cot_var stale_scalar(cot_tape *t, cot_var *a) {
    *a = cot_scalar(t, 3);
    cot_var y = cot_square(*a);
    cot_assign(*a, 5.0);
    return y;
}
static cot_var stale_array(cot_tape *t, cot_var *a) {
    *a = leaf(t, 3, start);
    cot_var y = cot_sum(cot_square(*a), COT_ALL);
    cot_assign(*a, 5.0);
    return y;
}
static cot_var stale_loop(cot_tape *t, cot_var *a) {
    *a = leaf(t, 3, start);
    cot_var y;
    cot_scan(square, NULL, 2, 1, a, 0, NULL, &y, 0, NULL, NULL);
    cot_assign(*a, 5.0);
    return cot_sum(y, COT_ALL);
}

/* The n-th way to differentiate y by x, its name, and NULL after the last. */
static const char *differentiate(int n, cot_var y, cot_var x) {
    double           out[9], one[3] = {1, 1, 1}, values[9];
    cot_var          g[3], number = cot_number(1);
    cot_sparse_plan *p;
    switch (n) {
    case 0: return cot_backward(y), "backward";
    case 1: return cot_backward_seeded(y, 1.0), "backward_seeded";
    case 2: return cot_grad_of(y, 1, &x, g), "grad_of";
    case 3: return cot_vjp(y, 1.0, 1, &x, g), "vjp";
    case 4: return cot_jvp(y, 1, &x, &number), "jvp";
    case 5: return cot_vjps(1, 1, &y, one, 1, &x, out), "vjps";
    case 6: return cot_jvps(1, 1, &x, one, 1, &y, out), "jvps";
    case 7: return cot_jacobian(1, &y, 1, &x, COT_REVERSE, out), "jacobian";
    case 8: return cot_jacobian(1, &y, 1, &x, COT_FORWARD, out), "jacobian";
    case 9: return cot_hvp(y, 1, &x, one, out), "hvp";
    case 10: return cot_hessian(y, 1, &x, out), "hessian";
    case 11: return cot_taylor(y, 1, &x, 1, &number, 2, g), "taylor";
    case 12: return cot_taylor_values(y, 1, &x, 1, one, 2, out), "taylor_values";
    case 13:
        if ((p = cot_sparse_jacobian_plan(1, &y, 1, &x, COT_AUTO)) == NULL) return "sparse_jacobian_plan";
        cot_sparse_jacobian(p, 1, &y, 1, &x, values);
        cot_sparse_plan_destroy(p);
        return "sparse_jacobian";
    case 14:
        cot_sparse_plan_destroy(cot_sparse_hessian_plan(y, 1, &x));
        return "sparse_hessian_plan";
    default: return NULL;
    }
}

static void a_stale_error_begins_with_the_function_that_was_called(void **state) {
    (void)state;
    static cot_var (*const make[])(cot_tape * t, cot_var * a) = {stale_scalar, stale_array, stale_loop};
    static const char *const needs[] = {"square (v₁)", "square (v₁)", "scan (v₂)"};
    for (int k = 0; k < 3; k++)
        for (int n = 0;; n++) {
            cot_tape   *t = open_tape();
            cot_var     a, y = make[k](t, &a);
            const char *name = differentiate(n, y, a);
            char        want[256];
            snprintf(want, sizeof want,
                     "[%s] %s needs the value of leaf (x₁), which was overwritten by cot_assign; "
                     "compute before the write, or write to a copy (cot_copy)",
                     name ? name : "", needs[k]);
            if (name) expect(t, COT_STALE, want);
            cot_tape_destroy(t);
            if (!name) break;
        }
}

static void a_stale_error_in_a_body_begins_with_what_the_body_called(void **state) {
    (void)state;
    cot_tape   *t = open_tape();
    cot_var     x = leaf(t, 3, start), y, g, one = cot_number(1);
    cot_linear *l;
    cot_linearize(square, NULL, 1, &x, 1, &y, &l);
    cot_assign_data(x, other);
    cot_linear_jvp(l, &one, &g);
    expect(t, COT_STALE,
           "[linear_jvp] square (v₂) needs the value of alias (v₁), which was overwritten by cot_assign_data to leaf "
           "(x₁); "
           "compute before the write, or write to a copy (cot_copy)");
    cot_tape_destroy(t);
}

/* Arrays and halves are stepped by other code than scalars. */
static void a_stale_error_names_the_optimiser(void **state) {
    (void)state;
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_F16};
    for (int d = 0; d < 3; d++)
        for (int wide = 0; wide < 2; wide++)
            for (int adam = 0; adam < (d < 2 ? 2 : 1); adam++) {
                cot_tape *t = open_tape();
                cot_var   x = wide ? cot_tensor(t, dtypes[d], COT_SHAPE(3), NULL) : cot_scalar_of(t, dtypes[d], 1), y,
                        view;
                double    m[3] = {0}, v[3] = {0};
                char      want[256];
                cot_backward_seeded(x, 1.0);
                y = cot_square(x);
                view = cot_flip(x, COT_ALL);
                if (adam) cot_adamw_step(1, &x, (void *[]){m}, (void *[]){v}, (cot_adamw){.step = 1, .rate = 1});
                else cot_sgd_step(1, &x, 1);
                assert_ok(t);
                cot_backward_seeded(y, 1.0);
                const char *writer = adam ? "cot_adamw_step" : "cot_sgd_step";
                snprintf(want, sizeof want,
                         "[backward_seeded] square (v₁) needs the value of leaf (x₁), which was overwritten by %s; "
                         "compute before the write, or write to a copy (cot_copy)",
                         writer);
                expect(t, COT_STALE, want);
                if (wide) {
                    cot_exp(view);
                    snprintf(want, sizeof want,
                             "[exp] the operand, slice (v₂), was overwritten by %s to leaf (x₁); record it again",
                             writer);
                    expect(t, COT_STALE, want);
                }
                cot_tape_destroy(t);
            }
}

/* Of several writes the first after the value was made, where it is still known. */
static void the_write_that_made_a_value_stale_is_named(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    double    memory[2] = {1, 2};
    cot_var   x = leaf(t, 3, start), view = cot_flip(x, COT_ALL), written = x, late;
    cot_assign_data(x, other);
    written = x;
    cot_add_into(&written, 1.0);
    cot_sin(view);
    expect(t, COT_STALE,
           "[sin] the operand, slice (v₁), was overwritten by cot_assign_data to leaf (x₁); record it again");
    cot_sin(x);
    expect(t, COT_STALE,
           "[sin] the operand, leaf (x₁), was overwritten by add (v₃); use the var that the write updated");
    cot_assign(x, 1.0);
    cot_sin(written);
    expect(t, COT_STALE, "[sin] the operand, add (v₃), was overwritten by cot_assign to leaf (x₁); record it again");
    cot_var w = cot_wrap(t, COT_F64, COT_SHAPE(2), memory);
    late = w;
    cot_touch(&late);
    cot_sin(w);
    expect(t, COT_STALE,
           "[sin] the operand, constant (c₁), was overwritten by a write from outside (cot_touch); use the var that "
           "the write updated");
    cot_tape_destroy(t);
}

/* Kinks and reasons are not looked for in numbers that came later. */
static void looking_back_does_not_show_later_numbers(void **state) {
    (void)state;
    cot_tape *t = open_tape();
    cot_var   x = cot_scalar(t, -1), y = cot_log(x), k = cot_abs(x);
    char      text[600];
    cot_assign(x, 0.0);
    assert_int_equal(cot_report(k, text, sizeof text), 0);
    assert_int_equal(cot_explain(y, text, sizeof text), 1);
    assert_null(strstr(text, "= 0"));
    assert_non_null(strstr(text, "(overwritten)"));
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- two tapes ------------------------------------------------------------------------------- */

#define FOREIGN " operand belongs to another tape; operands of one operation share a tape"

/* The error stands on the tape of the operation, its first operand's; the other is as it was. */
static void expect_one(cot_tape *t, cot_tape *u, int64_t length, const char *text) {
    expect(t, COT_VAR, text);
    assert_ok(u);
    assert_int_equal(cot_tape_length(u), length);
}

static void an_elementwise_operation_on_two_tapes_fails_on_the_first(void **state) {
    (void)state;
    static const char *const which[] = {"left", "right"}, *const third[] = {"first", "second", "third"};
    for (int op = 0; op < OP_elementwise_count; op++)
        for (int wide = 0; wide < 2; wide++)
            for (int k = 1, n = cot__elementwise_arity(op); k < n; k++) {
                cot_tape *t = open_tape(), *u = open_tape();
                cot_var   x     = wide ? leaf(t, 3, ones) : cot_scalar(t, 1),
                        foreign = wide ? leaf(u, 3, ones) : cot_scalar(u, 1), xs[3] = {x, x, x};
                char      want[200];
                xs[k] = foreign;
                cot_var z = test_call(op, xs);
                assert_ptr_equal(z.tape, t);
                assert_false(cot_is_valid(z));
                snprintf(want, sizeof want, "[%s] the %s" FOREIGN, cot__elementwise_table[op].name,
                         n == 2 ? which[k] : third[k]);
                expect_one(t, u, 1, want);
                cot_sin(foreign);
                assert_ok(u);
                cot_tape_destroy(t);
                cot_tape_destroy(u);
            }
}

static void other_operations_on_two_tapes_fail_on_the_first(void **state) {
    (void)state;
    cot_tape *t = open_tape(), *u = open_tape();
    cot_var x = leaf(t, 3, start), y = leaf(u, 3, other), both[2] = {x, y}, s = cot_scalar(t, 1), r = cot_scalar(u, 1),
            out;
    cot_matmul(x, y), expect_one(t, u, 2, "[matmul] the right" FOREIGN);
    cot_matmul(y, x), expect(u, COT_VAR, "[matmul] the right" FOREIGN);
    assert_ok(t);
    cot_concat(2, both, 0), expect_one(t, u, 2, "[concat] the xs[1]" FOREIGN);
    cot_dot_of(1, &s, &r), expect_one(t, u, 2, "[dot_of] the second" FOREIGN);
    cot_take(x, y, 0), expect_one(t, u, 2, "[take] the index" FOREIGN);
    cot_einsum("i,i->", 2, both), expect_one(t, u, 2, "[einsum] the xs[1]" FOREIGN);
    cot_layer_norm(x, y, COT_NONE, 1, 1e-5), expect_one(t, u, 2, "[layer_norm] the weight" FOREIGN);
    cot_assign(x, y), expect_one(t, u, 2, "[assign] the new" FOREIGN);
    cot_add_into(&x, y), expect_one(t, u, 2, "[add_into] the new" FOREIGN);
    cot_copy_into(&s, r), expect_one(t, u, 2, "[copy_into] the new" FOREIGN);
    cot_checkpoint(square, NULL, 2, both, 1, &out), expect_one(t, u, 2, "[checkpoint] the xs[1]" FOREIGN);
    cot_vmap(square, NULL, 2, both, NULL, 1, &out, NULL), expect_one(t, u, 2, "[vmap] the xs[1]" FOREIGN);
    cot_sgd_step(2, both, 1), expect_one(t, u, 2, "[sgd_step] the" FOREIGN);
    cot_tape_destroy(t);
    cot_tape_destroy(u);
}

static void derivatives_on_two_tapes_fail_on_that_of_y(void **state) {
    (void)state;
    for (int n = 1;; n++) {
        cot_tape   *t = open_tape(), *u = open_tape();
        cot_var     y = cot_square(cot_scalar(t, 1)), x = cot_scalar(u, 1), g;
        const char *name = n == 1 ? (cot_backward_seeded(y, x), "backward_seeded") : differentiate(n, y, x);
        char        want[200];
        snprintf(want, sizeof want, "[%s] the %s" FOREIGN, name ? name : "", n == 1 ? "seed" : "xs[0]");
        if (name) expect_one(t, u, 1, want);
        assert_int_equal(cot_backward(x), COT_OK);
        assert_int_equal(cot_vjp(y, x, 1, &y, &g), COT_VAR);
        expect_one(t, u, 1, "[vjp] the seed" FOREIGN);
        cot_tape_destroy(t);
        cot_tape_destroy(u);
        if (!name) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_assigned_scalar_is_noticed_behind_every_body),
        cmocka_unit_test(only_what_is_older_than_the_last_assignment_is_looked_at),
        cmocka_unit_test(a_body_that_is_over_saves_nothing),
        cmocka_unit_test(a_mark_behind_a_failed_body_is_known_as_forgotten),
        cmocka_unit_test(a_plan_does_not_look_at_operands_that_were_overwritten),
        cmocka_unit_test(what_follows_an_assignment_in_a_rule_is_later),
        cmocka_unit_test(stamps_are_used_again),
        cmocka_unit_test(a_derivative_asks_only_the_rules_on_its_way),
        cmocka_unit_test(the_way_forward_does_not_go_through_what_was_overwritten),
        cmocka_unit_test(a_leaf_that_has_numbers_again_moves_again),
        cmocka_unit_test(a_factor_that_becomes_one_was_not_one),
        cmocka_unit_test(scalars_of_another_dtype_are_passed_over),
        cmocka_unit_test(a_scalar_copied_in_place_is_another_value),
        cmocka_unit_test(a_derivative_recorded_without_gradients_has_none),
        cmocka_unit_test(a_stale_error_begins_with_the_function_that_was_called),
        cmocka_unit_test(a_stale_error_in_a_body_begins_with_what_the_body_called),
        cmocka_unit_test(a_stale_error_names_the_optimiser),
        cmocka_unit_test(the_write_that_made_a_value_stale_is_named),
        cmocka_unit_test(looking_back_does_not_show_later_numbers),
        cmocka_unit_test(an_elementwise_operation_on_two_tapes_fails_on_the_first),
        cmocka_unit_test(other_operations_on_two_tapes_fail_on_the_first),
        cmocka_unit_test(derivatives_on_two_tapes_fail_on_that_of_y),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
