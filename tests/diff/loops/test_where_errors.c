/* test_where_errors.c: the message of an error inside a function of the user's names the operation
 * that failed, and where it was: each transformation names itself, once, however its function
 * fails. */
#include "support/tape_test.h"

#define BODY(name) static int name(int n, const cot_var *xs, int m, cot_var *ys, void *user)
#define UNUSED (void)n, (void)xs, (void)m, (void)ys, (void)user

static cot_var foreign; /* a value of another tape */

static cot_var mismatch(cot_var x) { return cot_matmul(x, cot_zeros(x.tape, COT_F64, COT_SHAPE(2, 2))); }

BODY(mismatched) { UNUSED; ys[0] = mismatch(xs[n - 1]); return 0; }
BODY(mismatched_and_says_so) { UNUSED; ys[0] = mismatch(xs[n - 1]); return 5; }
BODY(gives_up) { UNUSED; return 9; }
BODY(gives_foreign) { UNUSED; ys[0] = foreign; return 0; }
BODY(one) { UNUSED; ys[0] = cot_sum(cot_square(xs[0]), COT_ALL); return 0; }
BODY(twice) { UNUSED; ys[0] = cot_mul(xs[n - 1], 2.0); return 0; }
BODY(goes_on) { UNUSED; ys[0] = cot_integer(1); return 0; }
/* x/2, as long as |x| < 4; so all is well where it is recorded. */
BODY(half_in_range) {
    UNUSED;
    cot_var table = cot_zeros(xs[0].tape, COT_F64, COT_SHAPE(4));
    ys[0] = cot_add(cot_mul(xs[0], 0.5), cot_take(table, cot_cast(cot_abs(xs[0]), COT_I64), 0));
    return 0;
}
BODY(half_is_three) {
    half_in_range(n, xs, m, ys, user);
    ys[0] = cot_sub(ys[0], 3.0);
    return 0;
}
BODY(mismatched_in_scan) { return UNUSED, cot_scan(mismatched, NULL, 3, 1, xs, 0, NULL, ys, 0, NULL, NULL); }

/* u with u = u - u³ + x, which has no derivative at x = 0. */
BODY(cube_root_next) { UNUSED; ys[0] = cot_add(cot_sub(xs[0], cot_pow(xs[0], 3.0)), xs[1]); return 0; }
BODY(cube_root_is_one) {
    UNUSED;
    ys[0] = cot_sub(cot_fixed_point(cube_root_next, NULL, NULL, cot_constant(xs[0].tape, 0), 1, xs, NULL), 1.0);
    return 0;
}

/* ---- the transformations --------------------------------------------------------------------- */

static int good_vjp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                    void *user) {
    UNUSED;
    xbars[0] = cot_mul(ybars[0], 2.0);
    return 0;
}
static const cot_fn_rules mine = {"mine", good_vjp, NULL};

static void in_root(cot_fn f, cot_var x) { cot_root(f, NULL, NULL, x, 0, NULL, NULL); }
static void in_fixed_point(cot_fn f, cot_var x) { cot_fixed_point(f, NULL, NULL, x, 0, NULL, NULL); }
static void in_minimize(cot_fn f, cot_var x) { cot_minimize(f, NULL, NULL, x, 0, NULL, NULL); }
static void in_linear_solve(cot_fn f, cot_var x) { cot_linear_solve(f, NULL, x, NULL); }
static void in_scan(cot_fn f, cot_var x) { cot_scan(f, NULL, 3, 1, &x, 0, NULL, &x, 0, NULL, NULL); }
static void in_fori(cot_fn f, cot_var x) { cot_fori(f, NULL, 0, 3, 1, &x, &x, NULL); }
static void in_while(cot_fn f, cot_var x) { cot_while(goes_on, f, NULL, 1, &x, &x, &(cot_loop_options){.limit = 5}); }
static void in_test(cot_fn f, cot_var x) { cot_while(f, twice, NULL, 1, &x, &x, &(cot_loop_options){.limit = 5}); }
static void in_then(cot_fn f, cot_var x) { cot_cond(cot_number(1), f, twice, NULL, 1, &x, 1, &x); }
static void in_otherwise(cot_fn f, cot_var x) { cot_cond(cot_number(1), twice, f, NULL, 1, &x, 1, &x); }
static void in_vmap(cot_fn f, cot_var x) {
    cot_var rows = cot_broadcast_to(x, COT_SHAPE(4, 3));
    cot_vmap(f, NULL, 1, &rows, NULL, 1, &x, NULL);
}
static void in_checkpoint(cot_fn f, cot_var x) { cot_checkpoint(f, NULL, 1, &x, 1, &x); }
static void in_custom_fn(cot_fn f, cot_var x) { cot_custom_fn(&mine, f, NULL, 1, &x, 1, &x); }
static void in_value_and_grad(cot_fn f, cot_var x) { cot_value_and_grad(f, NULL, 1, &x, NULL, &x); }
static void in_fn_vjp(cot_fn f, cot_var x) { cot_fn_vjp(f, NULL, 1, &x, 1, &x, &x, &x); }
static void in_fn_jvp(cot_fn f, cot_var x) { cot_fn_jvp(f, NULL, 1, &x, &x, 1, &x, &x); }
static void in_linearize(cot_fn f, cot_var x) {
    cot_linear *linear;
    cot_linearize(f, NULL, 1, &x, 1, &x, &linear);
}
static void in_fn_jacobian(cot_fn f, cot_var x) { cot_fn_jacobian(f, NULL, 1, &x, 1, NULL, COT_AUTO, &x); }
static void in_fn_hessian(cot_fn f, cot_var x) { cot_fn_hessian(f, NULL, 1, &x, NULL, &x); }
static void in_sparse_jacobian(cot_fn f, cot_var x) {
    cot_sparse_plan_destroy(cot_sparse_jacobian_plan_of(f, NULL, 1, &x, 1, COT_AUTO));
}
static void in_sparse_hessian(cot_fn f, cot_var x) {
    cot_sparse_plan_destroy(cot_sparse_hessian_plan_of(f, NULL, 1, &x));
}

static const struct transformation { const char *name, *part; void (*of)(cot_fn f, cot_var x);
} transformations[] = {{"root", "body", in_root},
                       {"fixed_point", "body", in_fixed_point},
                       {"minimize", "function", in_minimize},
                       {"linear_solve", "body", in_linear_solve},
                       {"scan", "body", in_scan},
                       {"fori", "body", in_fori},
                       {"while", "body", in_while},
                       {"while", "test", in_test},
                       {"cond", "then branch", in_then},
                       {"cond", "otherwise branch", in_otherwise},
                       {"vmap", "body", in_vmap},
                       {"checkpoint", "body", in_checkpoint},
                       {"mine", "body", in_custom_fn},
                       {"value_and_grad", "function", in_value_and_grad},
                       {"fn_vjp", "function", in_fn_vjp},
                       {"fn_jvp", "function", in_fn_jvp},
                       {"linearize", "function", in_linearize},
                       {"fn_jacobian", "function", in_fn_jacobian},
                       {"fn_hessian", "function", in_fn_hessian},
                       {"sparse_jacobian_plan_of", "function", in_sparse_jacobian},
                       {"sparse_hessian_plan_of", "function", in_sparse_hessian}};

#define EACH(k) for (size_t k = 0; k < sizeof transformations / sizeof *transformations; k++)

static void expect(cot_tape *t, cot_status code, const char *text) {
    assert_error(t, code, text);
    cot_tape_clear_error(t);
}

#define MISMATCH "[matmul] inner dimensions differ: (3,) @ (2,2); the last axis of a must equal the second last of b"

static cot_tape *open_tape(cot_var *x) {
    cot_tape *t = cot_tape_create(NULL);
    *x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3});
    return t;
}

/* ---- the promises ---------------------------------------------------------------------------- */

static void an_operation_that_fails_is_named_and_what_it_is_in(void **state) {
    (void)state;
    cot_var   x;
    cot_tape *t = open_tape(&x);
    char      want[512];
    EACH(k) {
        const struct transformation *f = &transformations[k];
        snprintf(want, sizeof want, MISMATCH " (in the %s of [%s])", f->part, f->name);
        f->of(mismatched, x);
        expect(t, COT_SHAPE, want);
        /* the code that the function returns adds nothing to the message */
        f->of(mismatched_and_says_so, x);
        expect(t, COT_SHAPE, want);
        /* of one name, or the index comes first */
        if (f->of == in_scan || f->of == in_fori) continue;
        snprintf(want, sizeof want, MISMATCH " (in the body of [scan]) (in the %s of [%s])", f->part, f->name);
        f->of(mismatched_in_scan, x);
        expect(t, COT_SHAPE, want);
    }
    cot_tape_destroy(t);
}

static void a_function_that_fails_is_named_once(void **state) {
    (void)state;
    cot_var   x;
    cot_tape *t = open_tape(&x), *other = cot_tape_create(NULL);
    char      want[512];
    foreign = cot_scalar(other, 1);
    EACH(k) {
        const struct transformation *f = &transformations[k];
        const char                  *whose = strcmp(f->part, "function") ? "its" : "the";
        snprintf(want, sizeof want, "[%s] %s %s failed with code 9", f->name, whose, f->part);
        f->of(gives_up, x);
        expect(t, COT_CUSTOM, want);
        snprintf(
            want, sizeof want,
            "[%s] the %s's result ys[0] as operand belongs to another tape; operands of one operation share a tape",
            f->name, f->part);
        f->of(gives_foreign, x);
        expect(t, COT_VAR, want);
    }
    assert_ok(other);
    cot_tape_destroy(t);
    cot_tape_destroy(other);
}

/* A body may fail later, when it is played on other values than it was recorded on. */
static void a_body_that_fails_when_it_is_played_is_named(void **state) {
    (void)state;
    cot_var   x, y;
    cot_tape *t = open_tape(&x);
    cot_var   more = cot_add(x, 2.0), rows[2] = {x, more}, both = cot_stack(2, rows, 0);
    cot_linear_solve(half_in_range, NULL, x, NULL);
    expect(
        t, COT_VALUE,
        "[take] indices[1] is 4, out of range for extent 4; values run from -4 to 3 (in the body of [linear_solve])");
    cot_root(half_is_three, NULL, NULL, x, 0, NULL, NULL);
    expect(t, COT_VALUE,
           "[take] indices[0] is 6, out of range for extent 4; values run from -4 to 3 (in the body of [root])");
    cot_vmap(half_in_range, NULL, 1, &both, NULL, 1, &y, NULL);
    expect(t, COT_VALUE,
           "[take] indices[1,1] is 4, out of range for extent 4; values run from -4 to 3 (in the body of [vmap])");
    /* Newton's method meets a singular system of its own everywhere; this one is the body's */
    cot_root(cube_root_is_one, NULL, NULL, cot_scalar(t, 0), 0, NULL, NULL);
    expect(t, COT_VALUE,
           "[fixed_point] the derivative of the solution was not found: its linear system has a residual of nan times "
           "its right side after 1 of at "
           "most 1 steps, at most 7.62939e-06 is taken; ∂F/∂x is singular there, or nearly (in the body of [root])");
    cot_tape_destroy(t);
}

/* ---- other functions of the user's ----------------------------------------------------------- */

static int mismatched_rule(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *bars, cot_var *out,
                           void *user) {
    UNUSED;
    out[0] = mismatch(bars[0]);
    return 0;
}

static int mismatched_solver(int n, const cot_array *theta, cot_array *x, void *user) {
    (void)n, (void)theta, (void)x;
    mismatch(*(cot_var *)user);
    return 0;
}

static int mismatched_vjp(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    (void)n, (void)xs, (void)y, (void)user;
    xbars[0] = mismatch(ybar);
    return 0;
}

static int doubled(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    for (int64_t k = 0; k < y->size; k++) ((double *)y->data)[k] = 2 * ((const double *)xs[0].data)[k];
    return 0;
}

static void rules_and_solvers_are_named(void **state) {
    (void)state;
    cot_var            x, y;
    cot_tape          *t = open_tape(&x);
    const cot_fn_rules rules = {"bad", mismatched_rule, mismatched_rule};
    const cot_custom   op = {.name = "own", .value = doubled, .vjp = mismatched_vjp};
    cot_custom_fn(&rules, twice, NULL, 1, &x, 1, &y);
    cot_backward(cot_sum(y, COT_ALL));
    expect(t, COT_SHAPE, MISMATCH " (in the vjp of [bad])");
    cot_jvp(y, 1, &x, &x);
    expect(t, COT_SHAPE, MISMATCH " (in the jvp of [bad])");
    cot_root(twice, &x, mismatched_solver, x, 0, NULL, NULL);
    expect(t, COT_SHAPE, MISMATCH " (in the solver of [root])");
    cot_minimize(one, &x, mismatched_solver, x, 0, NULL, NULL);
    expect(t, COT_SHAPE, MISMATCH " (in the solver of [minimize])");
    cot_backward(cot_sum(cot_call(&op, 1, &x, NULL), COT_ALL));
    expect(t, COT_SHAPE, MISMATCH " (in the vjp of [own])");
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_that_fails_is_named_and_what_it_is_in),
        cmocka_unit_test(a_function_that_fails_is_named_once),
        cmocka_unit_test(a_body_that_fails_when_it_is_played_is_named),
        cmocka_unit_test(rules_and_solvers_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
