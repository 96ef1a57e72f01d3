/* test_transform_edges.c: transformations with unusual arguments: operands that are numbers or on
 * another tape, missing lists, bounds that are never reached, functions that are not linear. */
#include "support/body_test.h"
#include "support/tape_test.h"

#define expect(t, code, text)                                                                                          \
    do {                                                                                                               \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)

BODY(twice) { UNUSED; ys[0] = cot_mul(xs[0], 2.0); return 0; }
BODY(minus) { UNUSED; ys[0] = cot_neg(xs[0]); return 0; }
BODY(twice_at) { UNUSED; ys[0] = cot_mul(xs[1], 2.0); return 0; }
BODY(squares) { UNUSED; ys[0] = cot_square(xs[0]); return 0; }
BODY(sum_of_squares) { UNUSED; ys[0] = cot_sum(cot_square(xs[0]), COT_ALL); return 0; }

/* ---- errors stand on a tape where there is one ----------------------------------------------- */

static void errors_stick_to_a_tape(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL), *other = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), foreign = cot_scalar(other, 1), y, g;
    cot_var   number = cot_number(3);
    double    v[2];
    /* A choice may be a plain number. */
    assert_int_equal(cot_cond(cot_number(1), twice, minus, NULL, 1, &x, 1, &y), COT_OK);
    assert_int_equal(cot_read(y, v, 2), COT_OK);
    assert_near(v[1], 4, 0);
    assert_int_equal(cot_cond(cot_number(0), twice, minus, NULL, 1, &x, 1, &y), COT_OK);
    cot_grad_of(cot_sum(y, COT_ALL), 1, &x, &g);
    assert_int_equal(cot_read(g, v, 2), COT_OK);
    assert_near(v[1], -1, 0);
    assert_int_equal(cot_cond(foreign, twice, minus, NULL, 1, &x, 1, &y), COT_VAR);
    assert_false(cot_is_valid(y));
    expect(t, COT_VAR, "[cond] the choice[0] operand belongs to another tape; operands of one operation share a tape");
    assert_ok(other);
    /* Nothing on a tape: the status is all there is. */
    assert_int_equal(cot_cond(cot_number(1), twice, minus, NULL, 1, &number, 1, &y), COT_VAR);
    assert_false(cot_is_valid(y));
    assert_int_equal(cot_scan(twice, NULL, 3, 1, &number, 0, NULL, &y, 0, NULL, NULL), COT_VAR);
    assert_false(cot_is_valid(y));
    /* After an error the results belong to its tape, wherever that was found. */
    cot_var out, given[2] = {number, x};
    cot_scan(NULL, NULL, -1, 1, given, 1, given + 1, &out, 0, NULL, NULL);
    expect(t, COT_VALUE, "[scan] the function is NULL");
    assert_ptr_equal(out.tape, t);
    cot_tape_destroy(t);
    cot_tape_destroy(other);
}

/* ---- lists that are NULL --------------------------------------------------------------------- */

static void lists_may_be_missing(void **state) {
    (void)state;
    cot_tape        *t = cot_tape_create(NULL);
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3}), y = cot_square(x), sum = cot_sum(y, COT_ALL),
            z;
    double           room[9], v[3] = {1, 1, 1};
    cot_sparse_plan *p = cot_sparse_jacobian_plan(1, &y, 1, &x, COT_AUTO), *h = cot_sparse_hessian_plan(sum, 1, &x);
    cot_linearize(squares, NULL, 1, &x, 1, &z, NULL);
    expect(t, COT_VALUE, "[linearize] the place for the derivative is NULL");
    assert_false(cot_is_valid(z));
    cot_sparse_jacobian(p, 1, &y, 1, &x, NULL);
    expect(t, COT_VALUE, "[sparse_jacobian] a list of 3 values is NULL");
    cot_sparse_jacobian_of(p, squares, NULL, 1, &x, 1, NULL);
    expect(t, COT_VALUE, "[sparse_jacobian_of] a list of 3 values is NULL");
    cot_sparse_hessian(h, sum, 1, &x, NULL);
    expect(t, COT_VALUE, "[sparse_hessian] a list of 3 values is NULL");
    cot_sparse_hessian_of(h, sum_of_squares, NULL, 1, &x, NULL);
    expect(t, COT_VALUE, "[sparse_hessian_of] a list of 3 values is NULL");
    cot_sparse_check(p, 1, &y, 1, &x, NULL, 1);
    expect(t, COT_VALUE, "[sparse_check] a list of 3 values is NULL");
    cot_jacobian(1, &y, 1, &x, COT_AUTO, NULL);
    expect(t, COT_VALUE, "[jacobian] the place for the result is NULL");
    cot_hessian(sum, 1, &x, NULL);
    expect(t, COT_VALUE, "[hessian] the place for the result is NULL");
    cot_hvp(sum, 1, &x, NULL, room);
    expect(t, COT_VALUE, "[hvp] the direction v is NULL; both have an element for each of the xs");
    cot_hvp(sum, 1, &x, v, NULL);
    expect(t, COT_VALUE, "[hvp] the place for the product is NULL; both have an element for each of the xs");
    cot_vjps(1, 1, &y, NULL, 1, &x, room);
    expect(t, COT_VALUE, "[vjps] a list of 3 values is NULL");
    cot_vjps(1, 1, &sum, v, 1, &x, NULL);
    expect(t, COT_VALUE, "[vjps] a list of 3 values is NULL");
    cot_jvps(1, 1, &x, NULL, 1, &sum, room);
    expect(t, COT_VALUE, "[jvps] a list of 3 values is NULL");
    cot_jvps(1, 1, &x, v, 1, &sum, NULL);
    expect(t, COT_VALUE, "[jvps] a list of 1 values is NULL");
    cot_read(x, NULL, 3);
    expect(t, COT_VALUE, "[read] the place for 3 elements is NULL");
    cot_backward(sum);
    cot_read_grad(x, NULL, 3);
    expect(t, COT_VALUE, "[read_grad] the place for 3 elements is NULL");
    cot_var empty = cot_tensor(t, COT_F64, COT_SHAPE(0), NULL);
    assert_int_equal(cot_read(empty, NULL, 0), COT_OK);
    cot_sparse_plan_destroy(p);
    cot_sparse_plan_destroy(h);
    cot_tape_destroy(t);
}

/* ---- bounds of loops ------------------------------------------------------------------------- */

BODY(below) { UNUSED; ys[0] = cot_less(xs[0], *(double *)user); return 0; }
BODY(adds_one) { UNUSED; ys[0] = cot_add(xs[0], 1.0); return 0; }

static void a_bound_costs_no_more_than_the_loop(void **state) {
    (void)state;
    cot_tape        *t = cot_tape_create(NULL);
    cot_loop_options many = {.states = INT32_MAX};
    cot_var          s = cot_scalar(t, 1), y;
    cot_scan(twice, NULL, 10, 1, &s, 0, NULL, &y, 0, NULL, &many);
    cot_backward(y);
    assert_ok(t);
    assert_near(cot_grad_value(s), 1024, 0);
    /* a tape with nothing on it takes an eighth of that */
    assert_true(cot_tape_bytes(t) < 1 << 20);
    for (int k = 1; k <= 3; k++) { /* of unknown length: places for states are made as they come */
        double   limit[4] = {0, 3, 16, 1000};
        cot_var  start = cot_scalar(t, 0);
        cot_while(below, adds_one, &limit[k], 1, &start, &y, &many);
        cot_backward(cot_square(y));
        assert_ok(t);
        assert_near(cot_grad_value(start), 2 * limit[k], 0);
    }
    assert_true(cot_tape_bytes(t) < 1 << 20);
    cot_scan(twice, NULL, 2, 1, &s, 0, NULL, &y, 0, NULL, &(cot_loop_options){.limit = -1});
    expect(t, COT_VALUE, "[scan] a limit of -1 steps; 0 is none, 1 and more a bound");
    cot_while(below, adds_one, &(double){1}, 1, &s, &y, &(cot_loop_options){.limit = -1});
    expect(t, COT_VALUE, "[while] a limit of -1 steps; 0 is none, 1 and more a bound");
    cot_fori(twice_at, NULL, INT64_MIN, INT64_MAX, 1, &s, &y, NULL);
    expect(t, COT_LIMIT,
           "[fori] from -9223372036854775808 to 9223372036854775807 there are more steps than can be counted, "
           "2^63 - 1");
    cot_fori(twice_at, NULL, INT64_MIN, INT64_MIN + 3, 1, &s, &y, NULL);
    assert_near(cot_value(y), 8, 0);
    cot_tape_destroy(t);
}

/* A recorded gradient of a loop whose states were bounded keeps that bound, and is the same. */
enum { WIDTH = 1000, STEPS = 2000 };
BODY(moves) { UNUSED; ys[0] = cot_tanh(cot_mul(xs[0], *(cot_var *)user)); return 0; }
BODY(moved) {
    UNUSED;
    cot_var z, w = xs[1];
    if (cot_scan(moves, &w, STEPS, 1, xs, 0, NULL, &z, 0, NULL, user)) return 1;
    ys[0] = cot_sum(cot_square(z), COT_ALL);
    return 0;
}

static void recorded_gradients_keep_the_bound(void **state) {
    (void)state;
    double got[2], second[2];
    for (int k = 0; k < 2; k++) {
        cot_tape        *t = cot_tape_create(NULL);
        cot_loop_options bound = {.states = 5};
        cot_var          x[2] = {cot_full(t, COT_F64, COT_SHAPE(WIDTH), 0.5), cot_scalar(t, 1.01)}, y, g[2], g2;
        cot_value_and_grad(moved, k ? &bound : NULL, 2, x, &y, g);
        assert_ok(t);
        got[k] = cot_value(g[1]);
        int64_t all = (int64_t)WIDTH * STEPS * 8;
        if (k) assert_true(cot_tape_bytes(t) < all / 4);
        else assert_true(cot_tape_bytes(t) > all);
        if (k) { /* and it has derivatives */
            double d;
            cot_grad_of(g[1], 1, &x[1], &g2);
            assert_ok(t);
            second[0] = cot_value(g2);
            cot_var up[2] = {x[0], cot_scalar(t, 1.01 + 1e-6)}, down[2] = {x[0], cot_scalar(t, 1.01 - 1e-6)}, gu[2],
                    gd[2];
            cot_value_and_grad(moved, &bound, 2, up, NULL, gu);
            cot_value_and_grad(moved, &bound, 2, down, NULL, gd);
            d = (cot_value(gu[1]) - cot_value(gd[1])) / 2e-6;
            assert_near(second[0], d, 1e-5); /* differences of 1e-6 leave half the digits */
        }
        cot_tape_destroy(t);
    }
    assert_near(got[1], got[0], 1e-12); /* sums over the steps in another order */
}

/* ---- seeds, tangents, curves ----------------------------------------------------------------- */

BODY(picks) { UNUSED; ys[0] = cot_mul(xs[0], cot_cast(xs[1], COT_F64)); return 0; }

static void numbers_stand_for_every_element(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3}), y = cot_sum(cot_square(x), COT_ALL), out[3];
    cot_var   one = cot_number(1);
    cot_taylor(y, 1, &x, 1, &one, 2, out);
    assert_ok(t);
    assert_near(cot_value(out[1]), 12, 0);
    assert_near(cot_value(out[2]), 6, 0);
    assert_near(cot_value(cot_jvp(y, 1, &x, &one)), 12, 0);
    int64_t three = 3;
    cot_var in[2] = {x, cot_data(t, COT_I64, COT_SCALAR, &three)}, tangents[2] = {one, one}, z, dz;
    cot_fn_jvp(picks, NULL, 2, in, tangents, 1, &z, &dz);
    expect(t, COT_DTYPE, "[fn_jvp] tangents[1] belongs to an input of dtype i64, which does not move; give COT_NONE");
    for (int k = 0; k < 2; k++) { /* nothing, and a plain zero */
        double d[3];
        tangents[1] = k ? cot_number(0) : COT_NONE;
        cot_fn_jvp(picks, NULL, 2, in, tangents, 1, &z, &dz);
        assert_int_equal(cot_read(dz, d, 3), COT_OK);
        assert_near(d[0], 3, 0);
    }
    cot_tape_destroy(t);
}

static void assignments_are_named(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_var     x = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), "x"), y, g, one = cot_number(1);
    cot_linear *l;
    char        want[300];
    cot_linearize(squares, NULL, 1, &x, 1, &y, &l);
    cot_assign_data(x, (double[]){3, 4});
    cot_linear_vjp(l, &(cot_var){NULL, 0}, &g); /* no seed at all */
    assert_near(cot_value(cot_sum(g, COT_ALL)), 0, 0);
    cot_linear_vjp(l, &one, &g);
    snprintf(
        want, sizeof want,
        "[linear_vjp] square (v₂) needs the value of alias (v₁), which was overwritten by cot_assign_data to leaf "
        "(x); compute before the write, or write to a copy (cot_copy)");
    expect(t, COT_STALE, want);
    cot_tape_destroy(t);
}

/* ---- functions that must be linear ----------------------------------------------------------- */

BODY(bends) { UNUSED; ys[0] = cot_add(cot_mul(xs[0], 3.0), cot_mul(0.01, cot_sin(xs[0]))); return 0; }
BODY(spreads) { UNUSED; ys[0] = cot_add(cot_mul(xs[0], 3.0), cot_cumsum(xs[0], 0, false)); return 0; }

static void only_linear_systems_are_solved(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    for (int k = 0; k < 3; k++) { /* by elimination, by iteration, and where the solution is 0 */
        cot_var b = cot_full(t, COT_F64, COT_SHAPE(k == 1 ? 100 : 3), k == 2 ? 0 : 1), x;
        x = cot_linear_solve(k == 2 ? squares : bends, NULL, b, &(cot_solve_options){.tolerance = 0.1});
        assert_false(cot_is_valid(x));
        assert_int_equal(cot_tape_status(t), COT_VALUE);
        assert_non_null(
            strstr(cot_tape_message(t), "[linear_solve] the function is not linear: f(u + v) is not f(u) + f(v), by "));
        assert_non_null(strstr(cot_tape_message(t), " of their size; for other equations there is cot_root"));
        cot_tape_clear_error(t);
        x = cot_linear_solve(spreads, NULL, b, NULL);
        cot_backward(cot_sum(cot_mul(x, cot_leaf(b)), COT_ALL));
        assert_ok(t);
    }
    const cot_dtype all[] = {COT_F32, COT_BF16, COT_F16}; /* rounding is not taken for a bend */
    for (int k = 0; k < 3; k++) {
        cot_var b = cot_cast(cot_normal(t, cot_key_of(7), COT_F64, COT_SHAPE(10)), all[k]);
        cot_linear_solve(spreads, NULL, b, NULL);
        assert_ok(t);
    }
    cot_tape_destroy(t);
}

/* Rules of the user's: one direction may be nonlinear, if its transpose is never needed. */
static int clips(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars, void *user) {
    UNUSED;
    xbars[0] = cot_clamp(ybars[0], -1.0, 1.0);
    return 0;
}
static int clips_by_norm(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                         void *user) {
    UNUSED;
    xbars[0] = cot_div(ybars[0], cot_norm(ybars[0], 2, COT_ALL));
    return 0;
}
static int chooses(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                   void *user) {
    UNUSED;
    xbars[0] = cot_where(cot_greater(ybars[0], 0.0), ybars[0], cot_mul(2.0, ybars[0]));
    return 0;
}
static int bent_jvp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *dxs, cot_var *dys, void *user) {
    UNUSED;
    if (cot_is_valid(dxs[0])) dys[0] = cot_abs(dxs[0]);
    return 0;
}
static int straight_vjp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                        void *user) {
    UNUSED;
    cot_var  g = cot_where(cot_greater(xs[0], 0.0), cot_div(cot_mul(ybars[0], xs[0]), 4.0), cot_neg(ybars[0]));
    xbars[0] = cot_matmul(cot_eye(g.tape, COT_F64, 2, 2), cot_cumsum(g, 0, false));
    return 0;
}

static void one_direction_has_a_transpose_if_it_is_linear(void **state) {
    (void)state;
    static const struct { cot_fn_rules rules; const char *why; } bent[] = {{{"clip", clips, NULL}, "clamp ("},
                                                                           {{"clip", clips_by_norm, NULL}, "norm ("},
                                                                           {{"clip", chooses, NULL}, "greater ("}};
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), y, one = cot_number(1), g, d;
    char      want[120];
    for (size_t k = 0; k < sizeof bent / sizeof *bent; k++) {
        cot_custom_fn(&bent[k].rules, twice, NULL, 1, &x, 1, &y);
        /* reverse mode takes it as it is */
        cot_grad_of(cot_sum(cot_square(y), COT_ALL), 1, &x, &g);
        assert_ok(t);
        d = cot_jvp(cot_sum(y, COT_ALL), 1, &x, &one);
        assert_false(cot_is_valid(d));
        snprintf(want, sizeof want, "[clip] its vjp is not linear in ybars, which %s", bent[k].why);
        assert_non_null(strstr(cot_tape_message(t), want));
        assert_non_null(strstr(cot_tape_message(t), " makes of them: it has no transpose; give a jvp too"));
        cot_tape_clear_error(t);
    }
    static const cot_fn_rules forward = {"bent", NULL, bent_jvp}, both = {"both", clips, bent_jvp};
    static const cot_fn_rules good = {"good", straight_vjp, NULL};
    cot_custom_fn(&forward, twice, NULL, 1, &x, 1, &y);
    d = cot_jvp(cot_sum(y, COT_ALL), 1, &x, &one);
    assert_ok(t);
    cot_backward(cot_sum(y, COT_ALL));
    assert_non_null(strstr(cot_tape_message(t), "[bent] its jvp is not linear in dxs, which abs ("));
    cot_tape_clear_error(t);
    cot_custom_fn(&both, twice, NULL, 1, &x, 1, &y);
    cot_jvp(cot_sum(y, COT_ALL), 1, &x, &one);
    cot_backward(cot_sum(y, COT_ALL));
    assert_ok(t);
    cot_custom_fn(&good, twice, NULL, 1, &x, 1, &y);
    /* row 1 of the transpose of cumsum · diag(x / 4) */
    d = cot_jvp(cot_index(y, 0, 1), 1, &x, &one);
    assert_ok(t);
    assert_near(cot_value(d), 0.5, 0);
    cot_tape_destroy(t);
}

static int doubles(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(2.0, xs[0]);
    return 0;
}

/* Also the values, which were there before the derivative failed. */
static void results_are_invalid_where_a_derivative_fails(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), NULL), wrong = cot_ones(t, COT_F64, COT_SHAPE(3)), y, d;
    for (int forward = 0; forward < 2; forward++) {
        cot_status status = forward ? cot_fn_jvp(doubles, NULL, 1, &x, &wrong, 1, &y, &d)
                                    : cot_fn_vjp(doubles, NULL, 1, &x, 1, &y, &wrong, &d);
        assert_int_equal(status, COT_SHAPE);
        cot_tape_clear_error(t);
        assert_false(cot_is_valid(y) || cot_is_valid(d));
    }
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_invalid_where_a_derivative_fails),
        cmocka_unit_test(errors_stick_to_a_tape),
        cmocka_unit_test(lists_may_be_missing),
        cmocka_unit_test(a_bound_costs_no_more_than_the_loop),
        cmocka_unit_test(recorded_gradients_keep_the_bound),
        cmocka_unit_test(numbers_stand_for_every_element),
        cmocka_unit_test(assignments_are_named),
        cmocka_unit_test(only_linear_systems_are_solved),
        cmocka_unit_test(one_direction_has_a_transpose_if_it_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
