/* Functions with derivatives of the user's: results of several dtypes, tangents of the wrong shape,
 * and rules with loops inside that are transposed while a body is recorded. */
#include "support/body_test.h"
#include "support/tape_test.h"

#define VJP(name)                                                                                                      \
    static int name(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,          \
                    void *user)
#define JVP(name)                                                                                                      \
    static int name(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *dxs, cot_var *dys, void *user)

/* ---- results of several dtypes --------------------------------------------------------------- */

/* Three results, of which `user` says which are floats: bit k set. Floats are (k + 2) x², the
 * others argmax x (i64) or x > 1.5 (bool). */
BODY(mixed) {
    UNUSED;
    int floats = *(int *)user;
    for (int k = 0; k < 3; k++)
        ys[k] = floats >> k & 1 ? cot_mul((double)(k + 2), cot_square(xs[0]))
                : k == 1        ? cot_greater(xs[0], 1.5)
                                : cot_argmax(xs[0], COT_ALL);
    return 0;
}
VJP(mixed_vjp) {
    UNUSED;
    int floats = *(int *)user;
    xbars[0]   = COT_NONE;
    for (int k = 0; k < 3; k++) {
        if (!(floats >> k & 1)) continue;
        cot_var term = cot_mul(2.0 * (k + 2), cot_mul(xs[0], ybars[k]));
        xbars[0]     = xbars[0].tape ? cot_add(xbars[0], term) : term;
    }
    return 0;
}
JVP(mixed_jvp) {
    UNUSED;
    int floats = *(int *)user;
    for (int k = 0; k < 3; k++)
        if (floats >> k & 1) dys[k] = cot_mul(2.0 * (k + 2), cot_mul(xs[0], dxs[0]));
    return 0;
}

static void integers_stand_anywhere_among_the_results(void **state) {
    (void)state;
    const cot_fn_rules rules[3] = {
        {"mixed", mixed_vjp, NULL}, {"mixed", NULL, mixed_jvp}, {"mixed", mixed_vjp, mixed_jvp}};
    const double       at[3]    = {1, 2, 3};
    for (int which = 0; which < 3; which++)
        for (int floats = 1; floats < 8; floats++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), at), one = cot_ones(t, COT_F64, COT_SHAPE(3)), ys[3],
                    f  = cot_constant(t, 0);
            double sum = 0, got[3];
            cot_custom_fn(&rules[which], mixed, &floats, 1, &x, 3, ys);
            for (int k = 0; k < 3; k++) {
                if (!(floats >> k & 1)) continue;
                /* a shift would show: no two weigh the same */
                f = cot_add(f, cot_sum(cot_mul((double)(k + 1), ys[k]), COT_ALL));
                sum += 2. * (k + 1) * (k + 2);
                cot_read(cot_jvp(ys[k], 1, &x, &one), got, 3);
                assert_ok(t);
                for (int i = 0; i < 3; i++) assert_near(got[i], 2 * (k + 2) * at[i], 0);
            }
            cot_backward(f);
            assert_ok(t);
            cot_read_grad(x, got, 3);
            for (int i = 0; i < 3; i++) assert_near(got[i], sum * at[i], 1e-15);
            assert_near(cot_value(cot_jvp(f, 1, &x, &one)), 6 * sum, 1e-15);
            assert_ok(t);
            cot_tape_destroy(t);
        }
}

/* ---- what a jvp may give --------------------------------------------------------------------- */

BODY(sine) {
    UNUSED;
    ys[0] = cot_sin(xs[0]);
    return 0;
}
JVP(turned) {
    UNUSED;
    dys[0] = cot_transpose(cot_mul(cot_cos(xs[0]), dxs[0]));
    return 0;
}
JVP(of_another_tape) {
    UNUSED, (void)dxs;
    dys[0] = *(cot_var *)user;
    return 0;
}
JVP(a_number) {
    UNUSED, (void)dxs;
    dys[0] = cot_number(2.5);
    return 0;
}
JVP(nothing) {
    UNUSED, (void)dxs;
    dys[0] = COT_NONE;
    return 0;
}

static void tangents_have_the_shape_of_their_result(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL), *other = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), NULL), dx = cot_ones(t, COT_F64, COT_SHAPE(2, 3)), y,
            stranger            = cot_scalar(other, 1);
    const cot_fn_rules rules[4] = {
        {"turned", NULL, turned}, {"strange", NULL, of_another_tape}, {"two", NULL, a_number}, {"none", NULL, nothing}};
    double got[6];
    cot_custom_fn(&rules[0], sine, NULL, 1, &x, 1, &y);
    cot_jvp(y, 1, &x, &dx);
    assert_error(t, COT_SHAPE,
                 "[turned] its jvp gave dys[0] of shape (3,2) for a result of shape (2,3); they must be equal");
    cot_tape_clear_error(t);
    cot_backward(cot_sum(y, COT_ALL)); /* its transpose asks the same rule */
    assert_error(t, COT_SHAPE,
                 "[turned] its jvp gave dys[0] of shape (3,2) for a result of shape (2,3); they must be equal");
    cot_tape_clear_error(t);
    cot_custom_fn(&rules[1], sine, &stranger, 1, &x, 1, &y);
    cot_jvp(y, 1, &x, &dx);
    assert_int_equal(cot_tape_status(t), COT_VAR);
    cot_tape_clear_error(t);
    for (int k = 2; k < 4; k++) { /* a number stands for its value everywhere, COT_NONE for zero */
        cot_custom_fn(&rules[k], sine, NULL, 1, &x, 1, &y);
        cot_read(cot_jvp(y, 1, &x, &dx), got, 6);
        assert_ok(t);
        for (int i = 0; i < 6; i++) assert_near(got[i], k == 2 ? 2.5 : 0, 0);
    }
    cot_tape_destroy(t);
    cot_tape_destroy(other);
}

/* ---- rules with loops inside, transposed in a body ------------------------------------------- */

BODY(square) {
    UNUSED;
    ys[0] = cot_square(xs[0]);
    return 0;
}
BODY(square_step) {
    UNUSED;
    ys[0] = cot_square(xs[1]);
    return 0;
}
BODY(cube_half) {
    UNUSED;
    ys[0] = cot_mul(cot_square(xs[0]), xs[0]);
    return 0;
}
BODY(in_checkpoint) {
    UNUSED;
    return cot_checkpoint(square, NULL, 1, xs, 1, ys);
}
BODY(in_loop) {
    UNUSED;
    return cot_fori(square_step, NULL, 0, 1, 1, xs, ys, NULL);
}
BODY(in_cond) {
    UNUSED;
    return cot_cond(cot_less(cot_sum(xs[0], COT_ALL), 1e6), square, cube_half, NULL, 1, xs, 1, ys);
}

static const cot_fn inside[3] = {in_checkpoint, in_loop, in_cond};

JVP(forward_of) {
    UNUSED;
    cot_var z;
    return cot_fn_jvp(*(const cot_fn *)user, NULL, 1, xs, dxs, 1, &z, dys);
}
VJP(reverse_of) {
    UNUSED;
    cot_var z;
    return cot_fn_vjp(*(const cot_fn *)user, NULL, 1, xs, 1, &z, ybars, xbars);
}

static const cot_fn_rules one_way[2] = {{"forward", NULL, forward_of}, {"reverse", reverse_of, NULL}};

typedef struct ruled {
    const cot_fn_rules *rules;
    const cot_fn       *f;
} ruled;

BODY(call) {
    UNUSED;
    const ruled *r = user;
    return cot_custom_fn(r->rules, *r->f, (void *)(uintptr_t)r->f, 1, xs, 1, ys);
}
BODY(total) {
    UNUSED;
    cot_var z;
    if (call(1, xs, 1, &z, user)) return 1;
    ys[0] = cot_sum(z, COT_ALL);
    return 0;
}
BODY(gradient) {
    UNUSED;
    return cot_value_and_grad(total, user, 1, xs, NULL, ys);
}
BODY(tangent) {
    UNUSED;
    cot_var z, one = cot_number(1);
    return cot_fn_jvp(call, user, 1, xs, &one, 1, &z, ys);
}
BODY(equation) {
    UNUSED;
    cot_var z;
    if (call(1, xs, 1, &z, user)) return 1;
    ys[0] = cot_sub(z, xs[1]);
    return 0;
}

static void both_directions_work_in_bodies(void **state) {
    (void)state;
    const double at[3] = {1, 2, 3};
    for (int way = 0; way < 2; way++)
        for (int k = 0; k < 3; k++) {
            cot_tape *t = cot_tape_create(NULL);
            ruled     r = {&one_way[way], &inside[k]};
            cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), at), J, y;
            double    got[9];
            for (int mode = COT_REVERSE; mode <= COT_FORWARD; mode++) {
                cot_fn_jacobian(call, &r, 1, &x, 1, &y, (cot_mode)mode, &J);
                assert_ok(t);
                cot_read(J, got, 9);
                for (int i = 0; i < 9; i++) assert_near(got[i], i % 4 ? 0 : 2 * at[i / 4], 0);
            }
            cot_fn_hessian(total, &r, 1, &x, &y, &J);
            assert_ok(t);
            cot_read(J, got, 9);
            for (int i = 0; i < 9; i++) assert_near(got[i], i % 4 ? 0 : 2, 0);
            cot_vmap(gradient, &r, 1, &x, NULL, 1, &y, NULL);
            assert_ok(t);
            cot_read(y, got, 3);
            for (int i = 0; i < 3; i++) assert_near(got[i], 2 * at[i], 0);
            for (int reverse = 0; reverse < 2; reverse++) {
                cot_scan(reverse ? gradient : tangent, &r, 1, 1, &x, 0, NULL, &y, 0, NULL, NULL);
                assert_ok(t);
                cot_read(y, got, 3);
                for (int i = 0; i < 3; i++) assert_near(got[i], 2 * at[i], 0);
            }
            y = cot_root(equation, &r, NULL, cot_full(t, COT_F64, COT_SHAPE(3), 2), 1, &x, NULL);
            cot_backward(cot_sum(y, COT_ALL));
            assert_ok(t);
            cot_read_grad(x, got, 3);
            /* Newton stops at 1e-10 or so */
            for (int i = 0; i < 3; i++) assert_near(got[i], 0.5 / sqrt(at[i]), 1e-9);
            cot_tape_destroy(t);
        }
}

/* ---- tangents that are handed on ------------------------------------------------------------- */

BODY(scaled) { UNUSED; ys[0] = cot_mul(cot_sin(xs[0]), xs[1]); return 0; }
JVP(scaled_jvp) {
    (void)ys;
    cot_var again;
    return cot_fn_jvp(scaled, user, n, xs, dxs, m, &again, dys) != COT_OK;
}

/* An input that does not move has no tangent, and the function forms accept such a missing
 * tangent. */
static void tangents_that_are_not_there_can_be_handed_on(void **state) {
    (void)state;
    static const cot_fn_rules rules = {"scaled", NULL, scaled_jvp};
    cot_tape                 *t = cot_tape_create(NULL);
    cot_var                   xs[2] = {cot_scalar(t, 0.5), cot_scalar(t, 3)}, one = cot_number(1), y;
    cot_custom_fn(&rules, scaled, NULL, 2, xs, 1, &y);
    assert_near(cot_value(cot_jvp(y, 1, xs, &one)), 3 * cos(0.5), 1e-15);
    assert_near(cot_value(cot_jvp(y, 1, xs + 1, &one)), sin(0.5), 1e-16);
    assert_ok(t);
    /* and where it is transposed */
    cot_custom_fn(&rules, scaled, NULL, 2, (cot_var[]){xs[0], cot_detach(xs[1])}, 1, &y);
    cot_backward(y);
    assert_ok(t);
    assert_near(cot_grad_value(xs[0]), 3 * cos(0.5), 1e-15);
    assert_near(cot_grad_value(xs[1]), 0, 0);
    cot_tape_destroy(t);
}

/* ---- rules that are not zero for zero -------------------------------------------------------- */

JVP(one_more) { UNUSED; dys[0] = cot_add(dxs[0], 1.0); return 0; }
JVP(always) { UNUSED, (void)dxs; dys[0] = xs[0]; return 0; }
JVP(through_zeros) {
    UNUSED;
    dys[0] = cot_add(cot_zeros(xs[0].tape, COT_F64, cot_shape_of(xs[0])), cot_div(dxs[0], xs[0]));
    return 0;
}
VJP(x_more) { UNUSED; xbars[0] = cot_add(ybars[0], xs[0]); return 0; }
VJP(a_constant) {
    UNUSED, (void)ybars;
    xbars[0] = cot_shape_of(xs[0]).ndim ? cot_full(xs[0].tape, COT_F64, cot_shape_of(xs[0]), 3) : cot_number(3);
    return 0;
}
BODY(equals) { UNUSED; ys[0] = cot_sub(cot_sinh(xs[0]), xs[1]); return 0; } /* as x = θ around 0 */
JVP(by_a_root) {
    UNUSED;
    dys[0] = cot_root(equals, NULL, NULL, cot_ones(xs[0].tape, COT_F64, cot_shape_of(xs[0])), 1, dxs, NULL);
    return 0;
}

/* Each rule is right in its own direction; transposed, it would lose the term that it adds.
 * Right-hand sides that sum to 0 would hide a sum of this term. */
static void rules_that_add_something_have_no_transpose(void **state) {
    (void)state;
    static const cot_fn_rules jvps[]       = {{"more", NULL, one_more}, {"always", NULL, always}},
                              vjps[]       = {{"more", x_more, NULL}, {"fixed", a_constant, NULL}};
    static const char *const  by[] = {"it gives 1 where they are zero", "it gives 2 where they are zero"},
                             *const back[] = {"it gives 2 where they are zero", "it gives 3 where they are zero"};
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){0, 2, 3}), one = cot_number(1), y, g;
    char      want[160];
    for (int k = 0; k < 2; k++) {
        cot_custom_fn(&jvps[k], sine, NULL, 1, &x, 1, &y);
        cot_jvp(y, 1, &x, &one);
        assert_ok(t);
        cot_grad_of(cot_sub(cot_index(y, 0, 0), cot_index(y, 0, 1)), 1, &x, &g);
        assert_false(cot_is_valid(g));
        snprintf(want, sizeof want, "[%s] its jvp is not linear in dxs, %s: it has no transpose; give a vjp too",
                 jvps[k].name, by[k]);
        assert_error(t, COT_GRAD, want);
        cot_tape_clear_error(t);
        cot_custom_fn(&vjps[k], sine, NULL, 1, &x, 1, &y);
        cot_grad_of(cot_sum(y, COT_ALL), 1, &x, &g);
        assert_ok(t);
        assert_false(cot_is_valid(cot_jvp(y, 1, &x, &one)));
        snprintf(want, sizeof want, "[%s] its vjp is not linear in ybars, %s: it has no transpose; give a jvp too",
                 vjps[k].name, back[k]);
        assert_error(t, COT_GRAD, want);
        cot_tape_clear_error(t);
    }
    cot_var s = cot_scalar(t, 1); /* a number */
    cot_custom_fn(&vjps[1], sine, NULL, 1, &s, 1, &y);
    cot_jvp(y, 1, &s, &one);
    assert_error(
        t, COT_GRAD,
        "[fixed] its vjp is not linear in ybars, it gives 3 where they are zero: it has no transpose; give a jvp too");
    cot_tape_clear_error(t);
    /* Adding zeros is linear, and 0/0 shows nothing. */
    static const cot_fn_rules fine = {"fine", NULL, through_zeros}, found = {"found", NULL, by_a_root};
    double                    got[3];
    cot_custom_fn(&fine, sine, NULL, 1, &x, 1, &y);
    cot_grad_of(cot_sum(y, COT_ALL), 1, &x, &g);
    cot_read(g, got, 3);
    assert_ok(t);
    assert_near(got[1], 0.5, 0);
    /* Newton's method stops near 0; in a body an equation is not solved until it is played: its
     * value there is its start. */
    cot_custom_fn(&found, sine, NULL, 1, &x, 1, &y);
    cot_grad_of(cot_sum(y, COT_ALL), 1, &x, &g);
    cot_read(g, got, 3);
    assert_ok(t);
    for (int i = 0; i < 3; i++) assert_near(got[i], 1, 1e-9); /* Newton stops at 1e-10 or so */
    ruled        r = {&found, (const cot_fn[]){sine}};
    cot_var      all;
    cot_scan(gradient, &r, 1, 1, &x, 0, NULL, &all, 0, NULL, NULL);
    cot_read(all, got, 3);
    assert_ok(t);
    for (int i = 0; i < 3; i++) assert_near(got[i], 1, 1e-9); /* Newton stops at 1e-10 or so */
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tangents_that_are_not_there_can_be_handed_on),
        cmocka_unit_test(rules_that_add_something_have_no_transpose),
        cmocka_unit_test(integers_stand_anywhere_among_the_results),
        cmocka_unit_test(tangents_have_the_shape_of_their_result),
        cmocka_unit_test(both_directions_work_in_bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
