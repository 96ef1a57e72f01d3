/* Operations with several results: each is a value of its own dtype, and the rule of the operation
 * runs once for the adjoints of all. Bodies that are played once (cot_checkpoint) and loops have as
 * many results as the user likes. */
#include "rules/structural_ids.h"
#include "support/support.h"
#include "tape/tape.h"

#include <math.h>
#include <string.h>

#define FINE(t)                                                                                                        \
    do {                                                                                                               \
        if (cot_tape_status(t) != COT_OK) fail_msg("%s", cot_tape_message(t));                                         \
    } while (0)

static void same(double a, double b) {
    if (!test_same(a, b)) fail_msg("%.17g is not %.17g", a, b);
}

/* An integer, x², sin x and x³: the node holds a float all the same. */
static int four(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_cast(xs[0], COT_I64);
    ys[1] = cot_square(xs[0]);
    ys[2] = cot_sin(xs[0]);
    ys[3] = cot_mul(cot_square(xs[0]), xs[0]);
    return 0;
}

static cot_var tensor(cot_tape *t) { return cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){0.5, -1.25, 2}); }

static int count_of(const cot_tape *t, int op) {
    int n = 0;
    for (uint32_t i = 0; i < t->count; i++) n += t->nodes[i].op == op && !cot__in_body(&t->nodes[i]);
    return n;
}

static void well(const cot_tape *t) {
    char why[400] = "";
    if (cot_tape_check(t, why, sizeof why) != COT_OK) fail_msg("%s", why);
}

/* ---- on the tape ----------------------------------------------------------------------------- */

static void results_follow_their_operation(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = tensor(t), ys[4];
    cot_checkpoint(four, NULL, 1, &x, 4, ys);
    FINE(t);
    uint32_t node = cot__index(ys[1]);
    assert_int_equal(t->nodes[node].op, OP_loop);
    assert_int_equal(cot__results_at(t, node), 4);
    assert_int_equal(cot__index(ys[2]), node + 1);
    assert_int_equal(cot__index(ys[3]), node + 2);
    assert_int_equal(cot__index(ys[0]), node + 3);
    assert_int_equal(cot_dtype_of(ys[0]), COT_I64);
    assert_int_equal(cot__operation_at(t, node + 3), node);
    assert_int_equal(count_of(t, OP_pick), 3);
    well(t);
    cot_tape_destroy(t);
}

/* Each factor is a value of its own: nothing is cut out of a larger array. */
static void factors_are_results(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), (double[]){1, 2, 3, 4, 5, 7}), p, l, u, q, r, s, vt, w, v;
    cot_var   b = cot_matmul(a, cot_transpose(a));
    uint32_t  from = t->count;
    cot_lu(a, &p, &l, &u);
    cot_qr(b, &q, &r);
    assert_int_equal(cot__operation_at(t, cot__index(u)), cot__index(l));
    assert_int_equal(cot__operation_at(t, cot__index(r)), cot__index(q));
    cot_svd(a, &q, &s, &vt);
    assert_int_equal(cot__results_at(t, cot__index(q)), 3);
    assert_int_equal(cot__operation_at(t, cot__index(s)), cot__index(q));
    assert_int_equal(cot__operation_at(t, cot__index(vt)), cot__index(q));
    cot_eigh(b, &w, &v);
    assert_int_equal(cot__operation_at(t, cot__index(w)), cot__index(v));
    for (uint32_t i = from; i < t->count; i++) assert_true(t->nodes[i].op != OP_slice);
    FINE(t);
    well(t);
    cot_tape_destroy(t);
}

static void a_pick_that_strayed_is_found(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = tensor(t), ys[4];
    char      why[400] = "";
    cot_checkpoint(four, NULL, 1, &x, 4, ys);
    cot_var  z = cot_exp(x);
    uint32_t pick = cot__index(ys[2]);
    well(t);
    t->nodes[cot__index(z)].op = OP_pick; /* of x, which is far away */
    t->nodes[cot__index(z)].extra.attr = NULL;
    assert_int_equal(cot_tape_check(t, why, sizeof why), COT_VALUE);
    assert_non_null(strstr(why, "does not follow it"));
    t->nodes[cot__index(z)].op = OP_structural; /* unread from here on */
    t->count = cot__index(z);
    t->nodes[pick - 1].kind = (uint8_t)(COT_I64 | COT__TENSOR);
    t->nodes[pick - 1].flags = 0;
    assert_int_equal(cot_tape_check(t, why, sizeof why), COT_VALUE);
    cot_tape_destroy(t);
}

/* ---- dtypes ---------------------------------------------------------------------------------- */

static int counting(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_add(xs[0], INT64_C(1));
    ys[1] = cot_mul(xs[1], 0.5);
    ys[2] = ys[0];
    ys[3] = cot_cast(xs[1], COT_F32);
    return 0;
}

static void integers_carried_beside_floats_keep_all_bits(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    int64_t   big = (INT64_C(1) << 62) - 1, got, rows[2];
    cot_var   init[2] = {cot_data(t, COT_I64, COT_SCALAR, &big), cot_scalar(t, 8)}, final[2], ys[2];
    cot_scan(counting, NULL, 2, 2, init, 0, NULL, final, 2, ys, NULL);
    FINE(t);
    assert_int_equal(cot_read_as(final[0], COT_I64, &got, 1), COT_OK);
    assert_true(got == (INT64_C(1) << 62) + 1);
    assert_int_equal(cot_read_as(ys[0], COT_I64, rows, 2), COT_OK);
    assert_true(rows[0] == INT64_C(1) << 62 && rows[1] == (INT64_C(1) << 62) + 1);
    assert_int_equal(cot_dtype_of(final[0]), COT_I64);
    assert_int_equal(cot_dtype_of(ys[1]), COT_F32);
    same(cot_value(final[1]), 2);
    cot_backward(final[1]);
    same(cot_grad_value(init[1]), 0.25);
    cot_tape_destroy(t);
}

/* ---- reverse mode ---------------------------------------------------------------------------- */

/* The same results with and without a body between. */
static void results_of(bool body, cot_var x, cot_var ys[4]) {
    if (body) cot_checkpoint(four, NULL, 1, &x, 4, ys);
    else four(1, &x, 4, ys, NULL);
}

/* Which of the results 1 … 3 the loss reads. */
static cot_var loss_of(const cot_var *ys, unsigned which) {
    cot_var sum = cot_number(0);
    for (int k = 1; k < 4; k++)
        if (which >> k & 1) sum = cot_add(sum, cot_sum(cot_exp(ys[k]), COT_ALL));
    return sum;
}

static void gradient(bool body, unsigned which, int order, double g[3]) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = tensor(t), ys[4], y;
    results_of(body, x, ys);
    y = loss_of(ys, which);
    for (int k = 1; k < order; k++) {
        cot_grad_of(y, 1, &x, &y);
        y = cot_sum(cot_square(y), COT_ALL);
    }
    cot_backward(y);
    FINE(t);
    cot_read_grad(x, g, 3);
    well(t);
    cot_tape_destroy(t);
}

/* One alone, any two and all of them, to the second order. */
static void adjoints_of_any_results_reach_the_operands(void **state) {
    (void)state;
    for (int order = 1; order <= 2; order++)
        for (unsigned which = 2; which < 16; which += 2) {
            double with[3], without[3];
            gradient(true, which, order, with);
            gradient(false, which, order, without);
            for (int k = 0; k < 3; k++)
                TEST_CHECK(fabs(with[k] - without[k]) <= 1e-12 * fabs(without[k]), "results %x, order %d: %.17g, %.17g",
                           which, order, with[k], without[k]);
        }
    test_verdict();
}

static void a_recorded_gradient_has_the_bits_of_the_sweep(void **state) {
    (void)state;
    for (unsigned which = 2; which < 16; which += 2) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = tensor(t), ys[4], g;
        double    swept[3], recorded[3];
        results_of(true, x, ys);
        cot_var y = loss_of(ys, which);
        cot_grad_of(y, 1, &x, &g);
        cot_read(g, recorded, 3);
        cot_backward(y);
        FINE(t);
        cot_read_grad(x, swept, 3);
        test_same_array("gradient", "results", 3, swept, recorded);
        cot_tape_destroy(t);
    }
    test_verdict();
}

static int calls;
static int counted_vjp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                       void *user) {
    (void)n, (void)ys, (void)user;
    calls++;
    assert_int_equal(m, 4);
    xbars[0] = cot_add(cot_mul(cot_mul(xs[0], 2.0), ybars[1]), cot_mul(cot_cos(xs[0]), ybars[2]));
    return 0;
}

static void a_rule_runs_once_for_all_results(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), ys[4];
    cot_custom_fn(&(cot_fn_rules){"four", counted_vjp, NULL}, four, NULL, 1, &x, 4, ys);
    calls = 0;
    cot_backward(cot_add(ys[1], cot_mul(ys[2], 3.0)));
    FINE(t);
    assert_int_equal(calls, 1);
    same(cot_grad_value(x), 1 + cos(0.5) * 3);
    /* nobody reads its floats: it is not asked */
    cot_backward(cot_exp(x));
    assert_int_equal(calls, 1);
    cot_tape_destroy(t);
}

static void one_result_may_be_detached(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), ys[4];
    results_of(true, x, ys);
    cot_backward(cot_mul(cot_detach(ys[1]), ys[2]));
    FINE(t);
    same(cot_grad_value(x), 0.25 * cos(0.5));
    cot_tape_destroy(t);
}

static void the_gradient_of_one_result_may_be_kept(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = tensor(t), s = cot_scalar(t, 0.5), ys[4], zs[4];
    double    g[3];
    results_of(true, x, ys);
    results_of(true, s, zs);
    cot_retain_grad(ys[2]);
    cot_retain_grad(ys[1]);
    cot_retain_grad(zs[3]);
    cot_backward(cot_add(cot_sum(cot_mul(ys[2], 3.0), COT_ALL), cot_mul(zs[3], 5.0)));
    FINE(t);
    cot_read_grad(ys[2], g, 3);
    for (int k = 0; k < 3; k++) same(g[k], 3);
    cot_read_grad(ys[1], g, 3);
    for (int k = 0; k < 3; k++) same(g[k], 0);
    same(cot_grad_value(zs[3]), 5);
    cot_tape_destroy(t);
}

/* By a result itself: nothing else moves. */
static void derivatives_by_a_result_stop_there(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), ys[4], g[2], one = cot_constant(t, 1);
    results_of(true, x, ys);
    cot_var y = cot_mul(cot_exp(ys[2]), ys[3]), by[2] = {ys[2], ys[1]};
    cot_grad_of(y, 2, by, g);
    FINE(t);
    same(cot_value(g[0]), cot_value(y));
    same(cot_value(g[1]), 0);
    same(cot_value(cot_jvp(y, 1, &ys[2], &one)), cot_value(y));
    same(cot_value(cot_jvp(y, 1, &ys[1], &one)), 0);
    /* by x and by a result of it: the result moves by both */
    cot_var both[2] = {x, ys[2]}, ones[2] = {one, one};
    double  alone = cot_value(cot_jvp(y, 1, &x, &one));
    assert_true(fabs(cot_value(cot_jvp(y, 2, both, ones)) - alone - cot_value(y)) < 1e-12);
    FINE(t);
    cot_tape_destroy(t);
}

/* ---- other transformations ------------------------------------------------------------------- */

static void tangents_of_all_results(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = tensor(t), v = cot_data(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, -1}), ys[4], zs[4];
    results_of(true, x, ys);
    results_of(false, x, zs);
    for (int k = 1; k < 4; k++) {
        double a[3], b[3], products[3];
        cot_read(cot_jvp(ys[k], 1, &x, &v), a, 3);
        cot_read(cot_jvp(zs[k], 1, &x, &v), b, 3);
        test_same_array("tangent", "of a result", 3, a, b);
        cot_jvps(1, 1, &x, (double[]){1, 2, -1}, 1, &ys[k], products);
        test_same_array("product", "of a result", 3, products, b);
    }
    FINE(t);
    test_verdict();
    cot_tape_destroy(t);
}

static int floats_of(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var all[4];
    (void)m;
    cot_checkpoint(four, user, n, xs, 4, all);
    memcpy(ys, all + 1, 3 * sizeof *ys);
    return 0;
}

static int index_and_more(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    return cot_checkpoint(four, user, n, xs, m, ys) != COT_OK;
}

static void a_batch_has_all_results(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), (double[]){0.5, -1.25, 2, 3, 4, 5}), ys[4], zs[4];
    cot_vmap(index_and_more, NULL, 1, &x, NULL, 4, ys, NULL);
    results_of(false, x, zs);
    FINE(t);
    for (int k = 0; k < 4; k++) {
        double a[6], b[6];
        assert_int_equal(cot_dtype_of(ys[k]), cot_dtype_of(zs[k]));
        cot_read(ys[k], a, 6);
        cot_read(zs[k], b, 6);
        test_same_array("result", "of a batch", 6, a, b);
    }
    double a[6], b[6];
    cot_var g;
    cot_grad_of(loss_of(ys, 14), 1, &x, &g);
    cot_read(g, a, 6);
    cot_grad_of(loss_of(zs, 14), 1, &x, &g);
    cot_read(g, b, 6);
    for (int k = 0; k < 6; k++) TEST_CHECK(fabs(a[k] - b[k]) <= 1e-12 * fabs(b[k]), "%.17g, %.17g", a[k], b[k]);
    FINE(t);
    test_verdict();
    cot_tape_destroy(t);
}

/* A body inside a body: a step of a loop that takes one result of four. */
static int step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var all[4];
    (void)m;
    cot_checkpoint(four, user, n, xs, 4, all);
    ys[0] = all[2];
    return 0;
}

static void a_body_may_take_one_result(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.7), y, z = x, g, by_hand;
    cot_scan(step, NULL, 3, 1, &x, 0, NULL, &y, 0, NULL, NULL);
    for (int k = 0; k < 3; k++) z = cot_sin(z);
    FINE(t);
    same(cot_value(y), cot_value(z));
    for (int order = 1; order <= 2; order++) {
        cot_grad_of(y, 1, &x, &g);
        cot_grad_of(z, 1, &x, &by_hand);
        FINE(t);
        assert_true(fabs(cot_value(g) - cot_value(by_hand)) < 1e-13);
        y = g, z = by_hand;
    }
    well(t);
    cot_tape_destroy(t);
}

/* Behind cot_exp, so that series go on from a result. */
static void series_of_further_results(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), ys[4], zs[4];
    double    one = 1, a[4], b[4];
    results_of(true, x, ys);
    results_of(false, x, zs);
    cot_taylor_values(cot_exp(cot_add(ys[2], ys[3])), 1, &x, 1, &one, 3, a);
    cot_taylor_values(cot_exp(cot_add(zs[2], zs[3])), 1, &x, 1, &one, 3, b);
    FINE(t);
    for (int k = 0; k < 4; k++) assert_true(fabs(a[k] - b[k]) <= 1e-12 * fabs(b[k]));
    cot_tape_destroy(t);
}

/* exp x and its double, whose rule reads the other one. */
static int grown(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(cot_exp(xs[0]), 2.0);
    ys[1] = cot_exp(xs[0]);
    return 0;
}
static int grown_vjp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                     void *user) {
    (void)n, (void)xs, (void)m, (void)user;
    xbars[0] = cot_mul(ys[1], cot_add(cot_mul(ybars[0], 2.0), ybars[1]));
    return 0;
}

static void series_go_through_a_rule_that_reads_another_result(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), ys[2];
    double    one = 1, a[4];
    cot_custom_fn(&(cot_fn_rules){"grown", grown_vjp, NULL}, grown, NULL, 1, &x, 2, ys);
    cot_taylor_values(ys[0], 1, &x, 1, &one, 3, a);
    FINE(t);
    for (int k = 0; k < 4; k++)
        TEST_CHECK(fabs(a[k] - 2 * exp(0.5)) < 1e-14, "derivative %d is %.17g", k, a[k]);
    test_verdict();
    cot_tape_destroy(t);
}

static void patterns_know_each_result(void **state) {
    (void)state;
    double x[3] = {0.5, -1.25, 2};
    cot_tape *t = cot_tape_create(NULL);
    cot_var   v = cot_tensor(t, COT_F64, COT_SHAPE(3), x), ys[3];
    floats_of(1, &v, 3, ys, NULL);
    cot_sparse_plan *plan = cot_sparse_jacobian_plan(1, &ys[2], 1, &v, COT_AUTO);
    FINE(t);
    assert_int_equal((int)cot_sparse_plan_info(plan).nnz, 3);
    cot_sparse_plan_destroy(plan);
    cot_tape_destroy(t);
}

/* ---- writes in place ------------------------------------------------------------------------- */

static void a_stale_result_is_caught_and_the_others_are_not(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = tensor(t), ys[4], before;
    cot_custom_fn(&(cot_fn_rules){"four", counted_vjp, NULL}, four, NULL, 1, &x, 4, ys);
    before = ys[1];
    cot_add_into(&ys[1], 1.0);
    FINE(t);
    cot_sum(ys[2], COT_ALL);
    FINE(t);
    cot_exp(before);
    assert_int_equal(cot_tape_status(t), COT_STALE);
    assert_non_null(strstr(cot_tape_message(t), "four (v"));
    cot_tape_clear_error(t);
    /* the user's rule sees all results, so it cannot run any more */
    cot_backward(cot_sum(ys[2], COT_ALL));
    assert_int_equal(cot_tape_status(t), COT_STALE);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_follow_their_operation),
        cmocka_unit_test(factors_are_results),
        cmocka_unit_test(a_pick_that_strayed_is_found),
        cmocka_unit_test(integers_carried_beside_floats_keep_all_bits),
        cmocka_unit_test(adjoints_of_any_results_reach_the_operands),
        cmocka_unit_test(a_recorded_gradient_has_the_bits_of_the_sweep),
        cmocka_unit_test(a_rule_runs_once_for_all_results),
        cmocka_unit_test(one_result_may_be_detached),
        cmocka_unit_test(the_gradient_of_one_result_may_be_kept),
        cmocka_unit_test(derivatives_by_a_result_stop_there),
        cmocka_unit_test(tangents_of_all_results),
        cmocka_unit_test(a_batch_has_all_results),
        cmocka_unit_test(a_body_may_take_one_result),
        cmocka_unit_test(series_of_further_results),
        cmocka_unit_test(series_go_through_a_rule_that_reads_another_result),
        cmocka_unit_test(patterns_know_each_result),
        cmocka_unit_test(a_stale_result_is_caught_and_the_others_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
