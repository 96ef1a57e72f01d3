/* Compiled functions that solve equations: they say what the same function says on a tape; and
 * solvers of the user's, which bind a program to this process. */
#include "compile/solvers/solver_test.h"

/* A solver of the user's: θ is b and c, `user` the matrix. It sees b as a slice with steps. */
typedef struct given { const cot_var *w; int code, calls; double off; } given;
static int by_hand(int n, const cot_array *theta, cot_array *x, void *user) {
    given        *g = user;
    const double *b = theta[0].data;
    double       *to = x->data, c = *(double *)theta[1].data;
    g->calls++;
    if (n != 2 || theta[0].size != 3 || theta[1].shape.ndim != 0 || x->size != 3) return 99;
    for (int k = 0; k < 3; k++) {
        double z = 0;
        for (int i = 0; i < 60; i++) z -= (z * z * z + 2 * z + c * tanh(z) - b[k]) / (3 * z * z + 3);
        to[k] = z + g->off;
    }
    return g->code;
}
BODY(equations_by_hand) {
    UNUSED;
    cot_var x = xs[0], cube = cot_mul(cot_square(x), x);
    ys[0] = cot_sub(cot_add(cot_add(cube, cot_mul(x, 2.0)), cot_mul(cot_tanh(x), xs[2])), xs[1]);
    return 0;
}
static given mine;
BODY(finds_by_hand) {
    UNUSED;
    cot_var theta[2] = {cot_index(cot_transpose(xs[0]), 0, 1), xs[2]};
    theta[0] = cot_add(cot_index(xs[0], 1, 0), cot_mul(theta[0], xs[1]));
    ys[0] = total(cot_exp(cot_root(equations_by_hand, &mine, by_hand, start(xs), 2, theta, NULL)));
    return 0;
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* What a function says on a tape it says as a program. */
static void expect_same_error(cot_fn f, const double *x, const char *part) {
    which        w = {f, VALUE};
    cot_program *p = program_of(&w, NULL);
    cot_run     *r = cot_run_create(p);
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      xs[INPUTS], y;
    double       z[OUTPUTS];
    leaves(t, x, xs);
    f(INPUTS, xs, 1, &y, NULL);
    assert_string_equal(cot_program_message(p), "");
    assert_int_equal(go(r, x, z), cot_tape_status(t));
    assert_string_equal(cot_run_message(r), cot_tape_message(t));
    assert_non_null(strstr(cot_tape_message(t), part));
    cot_tape_destroy(t);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

BODY(singular) { UNUSED; ys[0] = cot_mul(cot_broadcast_to(total(xs[0]), COT_SHAPE(3)), *(cot_var *)user); return 0; }
BODY(bent) { UNUSED; ys[0] = cot_add(xs[0], cot_mul(cot_square(xs[0]), *(cot_var *)user)); return 0; }
BODY(looks_away) {
    UNUSED;
    cot_var at = cot_cast(cot_add(cot_mul(xs[0], 0.0), 7.0), COT_I64);
    ys[0] = cot_take(*(cot_var *)user, at, 0);
    return 0;
}
BODY(solves_singular) {
    UNUSED;
    cot_var c = xs[2];
    ys[0] = total(cot_linear_solve(singular, &c, xs[1], NULL));
    return 0;
}
BODY(solves_bent) {
    UNUSED;
    cot_var c = xs[2];
    ys[0] = total(cot_linear_solve(bent, &c, xs[1], &(cot_solve_options){.tolerance = INFINITY}));
    return 0;
}
BODY(solves_away) {
    UNUSED;
    cot_var table = xs[1];
    ys[0] = total(cot_linear_solve(looks_away, &table, xs[1], NULL));
    return 0;
}

BODY(stops_early) { UNUSED; ys[0] = total(root_of(xs, &(cot_solve_options){.iterations = 1})); return 0; }
/* x² + 1; log(x - 9); eˣ; x at a position that is none. */
BODY(above_zero) { UNUSED; ys[0] = cot_add(cot_square(cot_sub(xs[0], xs[1])), 1.0); return 0; }
BODY(far_logarithm) { UNUSED; ys[0] = cot_add(cot_log(cot_sub(xs[0], 9.0)), xs[1]); return 0; }
BODY(falls_for_ever) { UNUSED; ys[0] = total(cot_mul(cot_square(xs[0]), cot_sub(0.0, cot_square(xs[1])))); return 0; }
BODY(sum_of_logarithms) { UNUSED; ys[0] = total(cot_log(cot_sub(xs[0], 9.0))); return 0; }
BODY(touches_zero) { UNUSED; ys[0] = cot_mul(cot_square(xs[0]), xs[1]); return 0; }
static cot_var from(cot_fn f, const cot_var *xs, double x0) {
    return total(cot_root(f, NULL, NULL, cot_mul(cot_ones(xs[0].tape, COT_F64, COT_SHAPE(3)), x0), 1, xs + 1, NULL));
}
BODY(has_no_root) { UNUSED; ys[0] = from(above_zero, xs, 0.7); return 0; }
BODY(has_flat_start) { UNUSED; ys[0] = from(above_zero, (cot_var[]){xs[0], cot_mul(xs[1], 0.0)}, 0); return 0; }
BODY(has_no_start) { UNUSED; ys[0] = from(far_logarithm, xs, 1); return 0; }
BODY(has_no_minimum) {
    UNUSED;
    ys[0] = total(cot_minimize(falls_for_ever, NULL, NULL, start(xs), 1, xs + 2, NULL));
    return 0;
}
BODY(has_no_least_start) {
    UNUSED;
    ys[0] = total(cot_minimize(sum_of_logarithms, NULL, NULL, start(xs), 0, NULL, NULL));
    return 0;
}
BODY(finds_away) {
    UNUSED;
    cot_var table = xs[1];
    ys[0] = total(cot_root(looks_away, &table, NULL, start(xs), 0, NULL, NULL));
    return 0;
}
BODY(has_singular_derivative) {
    UNUSED;
    cot_var y, g;
    cot_var c = cot_add(cot_mul(xs[1], 0.0), 1.0);
    y = from(touches_zero, (cot_var[]){xs[0], c}, 0);
    cot_grad_of(y, 1, &c, &g);
    ys[0] = total(g);
    return 0;
}

static void a_program_says_what_the_tape_says(void **state) {
    double x[ELEMENTS];
    (void)state;
    point(1, x);
    expect_same_error(solves_singular, x, "[linear_solve] the solver did not converge");
    expect_same_error(solves_bent, x, "[linear_solve] the function is not linear");
    expect_same_error(solves_away, x, "(in the body of [linear_solve])");
    expect_same_error(stops_early, x, "[root] the solver did not converge: the residual is ");
    expect_same_error(has_no_root, x, "[root] ");
    expect_same_error(has_flat_start, x, "[root] a step of Newton's method was not found: ");
    expect_same_error(has_no_start, x, "[root] |F| is NaN at x0");
    expect_same_error(has_no_minimum, x, "[minimize] the solver did not converge: the function is ");
    expect_same_error(has_no_least_start, x, "[minimize] the function or its gradient is NaN at x0");
    expect_same_error(finds_away, x, "(in the body of [root])");
    expect_same_error(has_singular_derivative, x, "[root] the derivative of the solution was not found: ");
}

/* ---- solvers of the user's ------------------------------------------------------------------- */

static void a_solver_of_the_users_binds_a_program_to_this_process(void **state) {
    char why[256];
    (void)state;
    mine = (given){0};
    for (int kind = 0; kind < KINDS; kind++) {
        which        w = {finds_by_hand, kind};
        cot_program *p = program_of(&w, NULL);
        assert_int_equal(mine.calls, 0);
        compare(p, &w, "a solver of the user's", "bound");
        assert_int_equal(mine.calls, 6); /* once in each run, here and on the tape */
        mine.calls = 0;
        assert_int_equal(cot_program_save(p, "/nowhere", why, sizeof why), COT_VALUE);
        assert_string_equal(why, "[program_save] the operation 'root' is bound to this process (it holds an address); "
                                 "a program with it cannot be saved");
        cot_program_destroy(p);
    }
    either tape = {NULL, finds_by_hand}, program = {program_of(&(which){finds_by_hand, VALUE}, NULL), NULL};
    double x[ELEMENTS], want[OUTPUTS], got[OUTPUTS];
    point(1, x);
    sweep(&tape, false, x, want);
    sweep(&program, false, x, got);
    near_all("a solver of the user's", "called", 1e-9, got, want);
    cot_program_destroy(program.p);
}

static void what_a_solver_of_the_users_found_is_not_believed(void **state) {
    double x[ELEMENTS];
    (void)state;
    point(1, x);
    mine = (given){.code = 7};
    expect_same_error(finds_by_hand, x, "[root] the solver failed with code 7; the residual is ");
    mine = (given){.off = 0.5};
    expect_same_error(finds_by_hand, x, "[root] the residual of what the solver found is ");
    mine = (given){0};
}

/* ---- donated inputs -------------------------------------------------------------------------- */

enum { MANY = 2048 };

/* 2 x = b scaled by the number, and something made of it; x is wanted where b lies. */
BODY(doubles) { UNUSED; ys[0] = cot_mul(xs[0], *(cot_var *)user); return 0; }
BODY(moves_on) {
    UNUSED;
    cot_var c = xs[1];
    ys[0] = cot_add(cot_linear_solve(doubles, &c, cot_mul(xs[0], 3.0), NULL), cot_tanh(xs[0]));
    return 0;
}

static void a_donated_input_is_written_when_the_solver_has_found(void **state) {
    cot_type             types[2] = {{COT_F64, {1, {MANY}}}, {COT_F64, {0, {0}}}};
    cot_compile_options  donating = {.donate = (const int[]){0}, .donations = 1};
    cot_program         *p = cot_compile(moves_on, NULL, 2, types, 1, &donating);
    cot_run             *r = cot_run_create(p);
    static double        x[MANY], before[MANY], want[MANY];
    double               c = 2;
    cot_tape            *t = cot_tape_create(NULL);
    (void)state;
    for (int k = 0; k < MANY; k++) before[k] = x[k] = sin(k);
    cot_var xs[2] = {cot_tensor(t, COT_F64, types[0].shape, x), cot_scalar(t, c)}, y;
    moves_on(2, xs, 1, &y, NULL);
    cot_read(y, want, MANY);
    assert_ok(t);
    cot_tape_destroy(t);
    c = 0; /* a system that has no solution */
    assert_int_equal(cot_program_run(r, (const void *[]){x, &c}, (void *[]){x}), COT_VALUE);
    assert_memory_equal(x, before, sizeof x);
    c = 2;
    assert_int_equal(cot_program_run(r, (const void *[]){x, &c}, (void *[]){x}), COT_OK);
    assert_memory_equal(x, want, sizeof x);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_says_what_the_tape_says),
        cmocka_unit_test(a_solver_of_the_users_binds_a_program_to_this_process),
        cmocka_unit_test(what_a_solver_of_the_users_found_is_not_believed),
        cmocka_unit_test(a_donated_input_is_written_when_the_solver_has_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
