/* test_loop_errors.c: all that bodies may not do, and every error of loops, conditions and function
 * forms: its code and its exact sentence; also memory that fails. */
#include "support/body_test.h"
#include "support/tape_test.h"
#include "tape/tape.h"

#define expect(t, code, text)                                                                                          \
    do {                                                                                                               \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)

/* ---- what bodies may not do ------------------------------------------------------------------ */

BODY(same) { UNUSED; ys[0] = xs[0]; return 0; }
BODY(reads_value) { UNUSED; ys[0] = cot_value(xs[0]) > 0 ? xs[0] : cot_neg(xs[0]); return 0; }
BODY(reads_all) { UNUSED; double v[3]; cot_read(cot_mul(xs[0], 2.0), v, 3); ys[0] = xs[0]; return 0; }
BODY(sweeps) { UNUSED; cot_backward(cot_sum(cot_square(xs[0]), COT_ALL)); ys[0] = xs[0]; return 0; }
BODY(assigns) { UNUSED; cot_assign(*(cot_var *)user, xs[0]); ys[0] = xs[0]; return 0; }
BODY(writes_outside) { UNUSED; cot_add_into((cot_var *)user, 1.0); ys[0] = xs[0]; return 0; }
BODY(rewinds) { UNUSED; cot_tape_rewind(xs[0].tape, *(cot_mark *)user); ys[0] = xs[0]; return 0; }
BODY(compresses) { UNUSED; ys[0] = cot_compress(xs[0], cot_greater(xs[0], 0.0), 0); return 0; }
BODY(makes_leaf) { UNUSED; ys[0] = cot_mul(xs[0], cot_scalar(xs[0].tape, 2)); return 0; }
BODY(fails) { UNUSED; return 7; }
BODY(forgets_result) { UNUSED; return 0; }
BODY(sets_first_alone) { UNUSED; ys[0] = xs[0]; return 0; }
BODY(other_tape) { UNUSED; ys[0] = *(cot_var *)user; return 0; }
BODY(keeps_var) { UNUSED; *(cot_var *)user = cot_mul(xs[0], 2.0); ys[0] = *(cot_var *)user; return 0; }
BODY(shrinks) { UNUSED; ys[0] = cot_sum(xs[0], COT_ALL); return 0; }
BODY(narrows) { UNUSED; ys[0] = cot_cast(xs[0], COT_F32); return 0; }

static void bodies_stand_for_every_step(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL), *other = cot_tape_create(NULL);
    cot_mark  start = cot_tape_mark(t);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3}), s = cot_scalar(t, 1), y, inner,
            foreign   = cot_scalar(other, 1);
    cot_var   both[2] = {s, s};
#define SCAN(body, user, init) cot_scan(body, user, 2, 1, init, 0, NULL, &y, 0, NULL, NULL)
    SCAN(reads_value, NULL, &s);
    expect(t, COT_VALUE,
           "[value] asked for while the body of [scan] is recorded, which stands for every step and has no values yet; "
           "choose by values with "
           "cot_where or cot_cond");
    SCAN(reads_all, NULL, &x);
    expect(t, COT_VALUE,
           "[read] asked for while the body of [scan] is recorded, which stands for every step and has no values yet; "
           "choose by values with "
           "cot_where or cot_cond");
    SCAN(sweeps, NULL, &x);
    expect(t, COT_GRAD,
           "[backward] called while the body of [scan] is recorded; a body records operations and their derivatives "
           "(cot_grad_of), and stands for "
           "every step");
    SCAN(assigns, &x, &x);
    expect(t, COT_GRAD,
           "[assign] called while the body of [scan] is recorded; a body records operations and their derivatives "
           "(cot_grad_of), and stands for "
           "every step");
    cot_var target = cot_copy(x);
    SCAN(writes_outside, &target, &x);
    expect(t, COT_VALUE,
           "[add_into] the target is older than the body of [scan], which is recorded once and would write it then "
           "only; copy it first");
    SCAN(rewinds, &start, &x);
    expect(t, COT_VALUE,
           "[tape_rewind] called while the body of [scan] is recorded, to a mark made before; a body may forget only "
           "what it recorded itself");
    SCAN(compresses, NULL, &x);
    expect(t, COT_SHAPE,
           "[compress] in the body of [scan], which is recorded once, the extent of the result would depend on values; "
           "use cot_where, or "
           "cot_compress_to with a given size");
    SCAN(makes_leaf, NULL, &s);
    expect(t, COT_VALUE,
           "[scan] its body makes a leaf, x₃; a body stands for every step: make leaves outside, it may use them");
    SCAN(fails, NULL, &s);
    expect(t, COT_CUSTOM, "[scan] its body failed with code 7");
    SCAN(forgets_result, NULL, &s);
    expect(t, COT_VAR, "[scan] its body did not set ys[0]; it gives 1 result and must set each");
    cot_checkpoint(sets_first_alone, NULL, 1, &s, 2, both);
    expect(t, COT_VAR, "[checkpoint] its body did not set ys[1]; it gives 2 results and must set each");
    cot_fn_vjp(sets_first_alone, NULL, 1, &s, 2, both, both, &y);
    expect(t, COT_VAR, "[fn_vjp] the function did not set ys[1]; it gives 2 results and must set each");
    SCAN(other_tape, &foreign, &s);
    expect(t, COT_VAR,
           "[scan] the body's result ys[0] as operand belongs to another tape; operands of one operation share a tape");
    SCAN(keeps_var, &inner, &s);
    assert_ok(t);
    cot_mul(inner, 2.0);
    expect(t, COT_VAR,
           "[mul] the left operand belongs to the body of a loop, vmap or checkpoint that is over; a body hands values "
           "out as its results");
    char why[200];
    assert_int_equal(cot_tape_check(t, why, sizeof why), COT_OK);
    cot_tape_destroy(t);
    cot_tape_destroy(other);
}

/* ---- loops ----------------------------------------------------------------------------------- */

BODY(never_ends) { UNUSED; ys[0] = cot_integer(1); return 0; }
BODY(add_one) { UNUSED; ys[0] = cot_add(xs[0], 1.0); return 0; }
BODY(adds_two) { UNUSED; ys[0] = cot_add(xs[0], cot_zeros(xs[0].tape, COT_F64, COT_SHAPE(2))); return 0; }
BODY(no_solution) { UNUSED; ys[0] = cot_add(cot_square(xs[0]), 1.0); return 0; }
BODY(solves_nothing) { UNUSED; ys[0] = cot_root(no_solution, NULL, NULL, xs[0], 0, NULL, NULL); return 0; }
BODY(solves_nothing_after_5) {
    return UNUSED, cot_cond(cot_less(xs[0], 6), same, solves_nothing, NULL, 1, xs + 1, 1, ys);
}

static int failing_vjp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                       void *user) {
    (void)ybars, (void)xbars;
    UNUSED;
    return 3;
}
static int failing_jvp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *dxs, cot_var *dys,
                       void *user) {
    (void)dxs, (void)dys;
    UNUSED;
    return 4;
}

static void loops_say_what_is_wrong(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), NULL), s = cot_scalar(t, 1), y, ys[2];
    cot_scan(shrinks, NULL, 2, 1, &x, 0, NULL, &y, 0, NULL, NULL);
    expect(t, COT_SHAPE,
           "[scan] carried value 0 comes as f64 (3,) and leaves the body as f64 (); carried values keep their shape "
           "and dtype");
    cot_scan(narrows, NULL, 2, 1, &x, 0, NULL, &y, 0, NULL, NULL);
    expect(t, COT_DTYPE,
           "[scan] carried value 0 comes as f64 (3,) and leaves the body as f32 (3,); carried values keep their shape "
           "and dtype");
    cot_while(never_ends, narrows, NULL, 1, &x, &y, NULL);
    expect(t, COT_DTYPE,
           "[while] carried value 0 comes as f64 (3,) and leaves the body as f32 (3,); carried values keep their shape "
           "and dtype");
    cot_fori(narrows, NULL, 0, 2, 1, &x, &y, NULL);
    expect(t, COT_DTYPE,
           "[fori] carried value 0 comes as f64 (3,) and leaves the body as f32 (); carried values keep their shape "
           "and dtype");
    cot_scan(same, NULL, -1, 1, &x, 0, NULL, &y, 0, NULL, NULL);
    expect(t, COT_VALUE, "[scan] no length and no xs; one of them says how many steps there are");
    cot_scan(same, NULL, 2, 1, &x, 1, &x, &y, 0, NULL, NULL);
    expect(t, COT_SHAPE, "[scan] xs[0] has shape (3,), but there are 2 steps; the first axis counts them");
    cot_scan(same, NULL, -1, 1, &x, 1, &s, &y, 0, NULL, NULL);
    expect(t, COT_SHAPE, "[scan] xs[0] is a scalar; what the steps go through has an axis for them, the first");
    cot_scan(same, NULL, 2, 1, &x, 0, NULL, &y, 0, NULL, &(cot_loop_options){.states = -3});
    expect(t, COT_VALUE, "[scan] -3 states to keep; 0 is the default, 1 and more a bound");
    cot_scan(same, NULL, 5, 1, &x, 0, NULL, &y, 0, NULL, &(cot_loop_options){.states = 2, .spill = "/nowhere/at/all"});
    expect(t, COT_VALUE, "[scan] a file in /nowhere/at/all could not be made: No such file or directory");
    cot_scan(NULL, NULL, 5, 1, &x, 0, NULL, &y, 0, NULL, NULL);
    expect(t, COT_VALUE, "[scan] the function is NULL");
    cot_scan(same, NULL, 5, 1, &x, -1, NULL, &y, 0, NULL, NULL);
    expect(t, COT_VALUE, "[scan] a negative number of values: -1");
    cot_scan(same, NULL, 5, 1, &x, 2, NULL, &y, 0, NULL, NULL);
    expect(t, COT_VALUE, "[scan] a list of 2 values is NULL");
    cot_while(never_ends, add_one, NULL, 1, &s, &y, &(cot_loop_options){.limit = 10});
    expect(t, COT_LIMIT, "[while] still going on after 10 steps, the most it was allowed");
    cot_while(never_ends, add_one, NULL, 1, &s, &y, &(cot_loop_options){.limit = 1});
    expect(t, COT_LIMIT, "[while] still going on after 1 step, the most it was allowed");
    cot_while(same, add_one, NULL, 1, &x, &y, NULL);
    expect(t, COT_SHAPE, "[while] its test gives shape (3,); it must be one number, true to go on");
    cot_custom_fn(NULL, same, NULL, 1, &x, 1, ys);
    expect(t, COT_VALUE, "[custom_fn] no rules; give a vjp, a jvp or both");
    cot_custom_fn(&(cot_fn_rules){"bad", failing_vjp, failing_jvp}, same, NULL, 1, &s, 1, ys);
    cot_backward(ys[0]);
    expect(t, COT_CUSTOM, "[bad] its vjp failed with code 3");
    cot_jvp(ys[0], 1, &s, &s);
    expect(t, COT_CUSTOM, "[bad] its jvp failed with code 4");
    cot_cond(x, same, same, NULL, 1, &x, 1, ys);
    expect(t, COT_SHAPE, "[cond] the choice has shape (3,); it must be one number, or use cot_where");
    /* which function, which step */
    cot_cond(s, fails, same, NULL, 1, &x, 1, ys);
    expect(t, COT_CUSTOM, "[cond] its then branch failed with code 7");
    cot_cond(s, same, fails, NULL, 1, &x, 1, ys);
    expect(t, COT_CUSTOM, "[cond] its otherwise branch failed with code 7");
    cot_cond(s, same, forgets_result, NULL, 1, &x, 1, ys);
    expect(t, COT_VAR, "[cond] its otherwise branch did not set ys[0]; it gives 1 result and must set each");
    cot_cond(s, adds_two, same, NULL, 1, &x, 1, ys);
    expect(t, COT_SHAPE,
           "[add] shapes (3,) and (2,) do not broadcast; counted from the end, extents must be equal or 1 (in the then "
           "branch of [cond])");
    cot_cond(cot_number(1), same, adds_two, NULL, 1, &x, 1, ys); /* the tape is that of xs */
    expect(t, COT_SHAPE,
           "[add] shapes (3,) and (2,) do not broadcast; counted from the end, extents must be equal or 1 (in the "
           "otherwise branch of "
           "[cond])");
    cot_cond(cot_constant(t, 0), same, solves_nothing, NULL, 1, &s, 1, ys);
    assert_non_null(strstr(cot_tape_message(t), "a solver of your own (in the otherwise branch of [cond])"));
    cot_tape_clear_error(t);
    cot_while(adds_two, same, NULL, 1, &x, ys, NULL);
    expect(t, COT_SHAPE,
           "[add] shapes (3,) and (2,) do not broadcast; counted from the end, extents must be equal or 1 (in the test "
           "of [while])");
    cot_while(fails, same, NULL, 1, &x, ys, NULL);
    expect(t, COT_CUSTOM, "[while] its test failed with code 7");
    cot_fori(solves_nothing_after_5, NULL, 3, 9, 1, &s, ys, NULL);
    assert_non_null(
        strstr(cot_tape_message(t), "a solver of your own (in the otherwise branch of [cond]) (in step 6 of [fori])"));
    cot_tape_clear_error(t);
    /* no tape to say it on: the status alone, and invalid results */
    cot_var number = cot_number(1);
    ys[0] = s;
    assert_int_equal(cot_while(never_ends, add_one, NULL, 1, &number, ys, NULL), COT_VAR);
    assert_false(cot_is_valid(ys[0]));
    ys[0] = s;
    assert_int_equal(cot_scan(same, NULL, 3, 1, &number, 0, NULL, ys, 0, NULL, NULL), COT_VAR);
    assert_false(cot_is_valid(ys[0]));
    ys[0] = s;
    assert_int_equal(cot_cond(number, same, same, NULL, 1, &number, 1, ys), COT_VAR);
    assert_false(cot_is_valid(ys[0]));
    assert_ok(t);
    cot_cond(s, same, shrinks, NULL, 1, &x, 1, ys);
    expect(t, COT_SHAPE,
           "[cond] result 0 is f64 (3,) where the choice is true and f64 () where it is false; they must agree");
    cot_cond(s, same, narrows, NULL, 1, &x, 1, ys);
    expect(t, COT_DTYPE,
           "[cond] result 0 is f64 (3,) where the choice is true and f32 (3,) where it is false; they must agree");
    cot_tape_destroy(t);
}

/* ---- values overwritten since ---------------------------------------------------------------- */

BODY(times) { UNUSED; ys[0] = cot_mul(xs[0], *(cot_var *)user); return 0; }

/* The way back needs all that the loop read: captures, constants and carried values. */
static void overwritten_operands_are_an_error(void **state) {
    (void)state;
    for (int which = 0; which < 3; which++)
        for (int recorded = 0; recorded < 2; recorded++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), a = cot_mul(x, 1.0),
                    b = cot_mul(x, 2.0), y, g;
            if (which == 0) cot_scan(times, &b, 2, 1, &x, 0, NULL, &y, 0, NULL, NULL);
            if (which == 1) cot_scan(times, &a, 2, 1, &b, 0, NULL, &y, 0, NULL, NULL);
            if (which == 2) cot_checkpoint(times, &a, 1, &b, 1, &y);
            cot_add_into(&b, 1.0);
            if (recorded) cot_grad_of(cot_sum(y, COT_ALL), 1, &x, &g);
            else cot_backward(cot_sum(y, COT_ALL));
            assert_int_equal(cot_tape_status(t), COT_STALE);
            assert_non_null(strstr(cot_tape_message(t), recorded ? "[grad_of] " : "[backward] "));
            if (!strstr(cot_tape_message(t), ", which was overwritten by add")) fail_msg("%s", cot_tape_message(t));
            cot_tape_destroy(t);
        }
}

/* ---- function forms -------------------------------------------------------------------------- */

static void forms_say_what_is_wrong(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL), *other = cot_tape_create(NULL);
    cot_var     x = cot_tensor(t, COT_F64, COT_SHAPE(3), NULL), y, g, short_seed = cot_zeros(t, COT_F64, COT_SHAPE(2)),
            foreign = cot_scalar(other, 1);
    cot_linear *linear;
    cot_value_and_grad(same, NULL, 1, &x, &y, &g);
    expect(t, COT_SHAPE,
           "[value_and_grad] the function gives f64 of shape (3,); a gradient is of one float, use cot_fn_vjp");
    cot_value_and_grad(fails, NULL, 1, &x, &y, &g);
    expect(t, COT_CUSTOM, "[value_and_grad] the function failed with code 7");
    cot_value_and_grad(other_tape, &foreign, 1, &x, &y, &g);
    expect(t, COT_VAR,
           "[value_and_grad] the function's result ys[0] as operand belongs to another tape; operands of one operation "
           "share a tape");
    cot_fn_vjp(same, NULL, 1, &x, 1, &y, &short_seed, &g);
    expect(t, COT_SHAPE, "[fn_vjp] seeds[0] has shape (2,), but belongs to a value of shape (3,); they must be equal");
    cot_value_and_grad(shrinks, NULL, 1, &x, &y, NULL);
    expect(t, COT_VALUE, "[value_and_grad] a list of 1 values is NULL");
    cot_fn_vjp(same, NULL, 1, &x, 1, &y, NULL, &g);
    expect(t, COT_VALUE, "[fn_vjp] a list of 1 values is NULL");
    cot_fn_jvp(same, NULL, 1, &x, NULL, 1, &y, &g);
    expect(t, COT_VALUE, "[fn_jvp] a list of 1 values is NULL");
    cot_fn_jvp(same, NULL, -1, &x, &x, 1, &y, &g); /* no tape: nothing to say it on */
    cot_fn_jvp(same, NULL, 1, &x, &x, -1, &y, &g);
    expect(t, COT_VALUE, "[fn_jvp] a negative number of values: -1");
    cot_linearize(same, NULL, 1, &x, 1, &y, &linear);
    cot_linear_jvp(linear, NULL, &g);
    expect(t, COT_VALUE, "[linear_jvp] a list of 1 values is NULL");
    cot_linear_vjp(linear, &x, NULL);
    expect(t, COT_VALUE, "[linear_vjp] a list of 1 values is NULL");
    cot_linear_jvp(linear, &short_seed, &g);
    expect(t, COT_SHAPE,
           "[linear_jvp] tangents[0] has shape (2,), but belongs to a value of shape (3,); they must be equal");
    cot_tape_destroy(t);
    cot_tape_destroy(other);
}

/* ---- user data ------------------------------------------------------------------------------- */

/* Bodies are recorded once and not called again. Their arguments may be gone when derivatives are
 * taken. */
typedef struct weight { cot_var w; bool alive; } weight;
BODY(weighs) {
    const weight *g = user;
    UNUSED;
    assert_true(g->alive);
    ys[0] = cot_mul(cot_sin(xs[n - 1]), g->w);
    return 0;
}
BODY(is_below) {
    UNUSED;
    assert_true(((weight *)user)->alive);
    ys[0] = cot_less(xs[0], cot_mul(((weight *)user)->w, 0.4));
    return 0;
}
BODY(near_itself) {
    UNUSED;
    weighs(n, xs, m, ys, user);
    ys[0] = cot_add(cot_mul(xs[0], 4.0), cot_sub(ys[0], ((weight *)user)->w));
    return 0;
}
BODY(lines) { UNUSED; ys[0] = cot_mul(xs[0], ((weight *)user)->w); return 0; }
BODY(all_of_them) {
    weight *g = malloc(sizeof *g); /* and freed: a sanitizer sees any later look */
    UNUSED;
    if (!g) return 1;
    *g = (weight){*(cot_var *)user, true};
    cot_var x = xs[0], y[9];
    cot_scan(weighs, g, 2, 1, &x, 0, NULL, &y[0], 0, NULL, NULL);
    cot_fori(weighs, g, 0, 2, 1, &x, &y[1], NULL);
    cot_while(is_below, weighs, g, 1, &x, &y[2], &(cot_loop_options){.limit = 50});
    cot_cond(cot_greater(x, 0.0), weighs, near_itself, g, 1, &x, 1, &y[3]);
    cot_checkpoint(weighs, g, 1, &x, 1, &y[4]);
    y[5] = cot_root(near_itself, g, NULL, x, 0, NULL, NULL);
    y[6] = cot_linear_solve(lines, g, x, NULL);
    cot_value_and_grad(weighs, g, 1, &x, &y[7], &y[8]);
    memset(g, 0, sizeof *g);
    free(g);
    ys[0] = cot_sum(cot_stack(9, y, 0), COT_ALL);
    return 0;
}

static void user_data_may_be_gone_after_the_call(void **state) {
    (void)state;
    for (int inside = 0; inside < 3; inside++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_scalar(t, 0.3), w = cot_scalar(t, 1.2), both[2] = {x, w}, y, g[2], h;
        if (inside == 0) all_of_them(1, &x, 1, &y, &w);
        if (inside == 1) cot_checkpoint(all_of_them, &w, 1, &x, 1, &y);
        if (inside == 2) {
            cot_var row = cot_reshape(x, COT_SHAPE(1));
            cot_vmap(all_of_them, &w, 1, &row, NULL, 1, &y, NULL);
            y = cot_sum(y, COT_ALL);
        }
        cot_backward(y);
        cot_grad_of(y, 2, both, g);
        cot_grad_of(cot_mul(g[0], g[1]), 1, &x, &h);
        cot_jvp(h, 1, &w, &w);
        assert_ok(t);
        assert_near(cot_value(g[0]), cot_grad_value(x), 1e-14);
        cot_tape_destroy(t);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

BODY(mix) {
    UNUSED;
    ys[0] = cot_tanh(cot_add(cot_matmul(*(cot_var *)user, xs[0]), xs[1]));
    ys[1] = cot_square(ys[0]);
    return 0;
}

BODY(swap) { UNUSED; ys[0] = xs[1], ys[1] = xs[0]; return 0; }
BODY(mix_twice) {
    UNUSED;
    cot_var pair[2] = {xs[0], xs[1]}, both[2];
    cot_scan(swap, NULL, 3, 2, pair, 0, NULL, both, 0, NULL, NULL);
    return mix(2, both, 2, ys, user);
}

BODY(change_places) { UNUSED; ys[0] = xs[1], ys[1] = xs[0]; return 0; }

static void work(cot_tape *t, void *user) {
    (void)user;
    double  numbers[32] = {0.1, 0.2, 0.3, 0.4};
    cot_var w = cot_tensor(t, COT_F64, COT_SHAPE(2, 2), numbers), h = cot_tensor(t, COT_F64, COT_SHAPE(2), numbers),
            last, ys, g[2];
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(6, 2), numbers), wanted[2] = {w, x};
    cot_scan(mix, &w, -1, 1, &h, 1, &x, &last, 1, &ys, &(cot_loop_options){.states = 2});
    cot_var y = cot_add(cot_sum(last, COT_ALL), cot_sum(ys, COT_ALL));
    cot_backward(y);
    cot_grad_of(y, 2, wanted, g);
    cot_jvp(y, 1, &w, g);
    cot_scan(mix_twice, &w, -1, 1, &h, 1, &x, &last, 1, &ys, &(cot_loop_options){.states = 1});
    cot_backward(cot_sum(last, COT_ALL));
    /* a state for which no memory lies ready */
    cot_var large[2] = {cot_zeros(t, COT_F64, COT_SHAPE(5000)), cot_zeros(t, COT_F64, COT_SHAPE(5000))}, pair[2];
    cot_scan(change_places, NULL, 2, 2, large, 0, NULL, pair, 0, NULL, NULL);
}

BODY(is_low) { UNUSED; ys[0] = cot_less(cot_sum(xs[0], COT_ALL), 5.0); return 0; }
BODY(rise) { UNUSED; ys[0] = cot_add(cot_mul(xs[0], *(cot_var *)user), 0.5); return 0; }
BODY(risen) {
    UNUSED;
    cot_var start = cot_sigmoid(xs[0]), y;
    cot_while(is_low, rise, user, 1, &start, &y, &(cot_loop_options){.states = 1, .limit = 20});
    ys[0] = cot_sum(cot_sin(y), COT_ALL);
    return 0;
}
BODY(slope_of_risen) { return UNUSED, cot_value_and_grad(risen, user, 1, xs, NULL, ys); }

/* Sweeps back through a loop of unknown length inside a body, and differentiates the recorded
 * result again, both ways. */
static void work_on_while(cot_tape *t, void *user) {
    (void)user;
    double  numbers[2] = {0.1, 0.2};
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(2), numbers), c = cot_scalar(t, 1.5), y, g;
    cot_scan(slope_of_risen, &c, 2, 1, &x, 0, NULL, &y, 0, NULL, NULL);
    y = cot_sum(y, COT_ALL);
    cot_backward(y);
    cot_grad_of(y, 1, &c, &g);
    cot_jvp(y, 1, &c, &g);
}

/* A batch of them, each of its own length, one none at all. */
static void work_on_batch(cot_tape *t, void *user) {
    (void)user;
    double  numbers[6] = {0.1, 0.2, -3, 1, 40, 50};
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(3, 2), numbers), c = cot_scalar(t, 1.5), y, g;
    cot_vmap(slope_of_risen, &c, 1, &x, NULL, 1, &y, NULL);
    y = cot_sum(y, COT_ALL);
    cot_backward(y);
    cot_grad_of(y, 1, &c, &g);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    static const char *const sentences[] = {
        "[scan] out of memory: the program of a body of ", " bytes for its carried values",
        "[scan] out of memory: the values of a body of ", " values from outside its body"};
    assert_survives_no_memory(work, NULL, 4, sentences);
    static const char *const of_while[] = {"[while] out of memory: the values of a body of "};
    assert_survives_no_memory(work_on_while, NULL, 1, of_while);
    static const char *const of_batch[] = {"[vmap] out of memory: the values of a body of "};
    assert_survives_no_memory(work_on_batch, NULL, 1, of_batch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_stand_for_every_step),
        cmocka_unit_test(loops_say_what_is_wrong),
        cmocka_unit_test(overwritten_operands_are_an_error),
        cmocka_unit_test(forms_say_what_is_wrong),
        cmocka_unit_test(user_data_may_be_gone_after_the_call),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
