/* Linear systems, roots, fixed points and minima in compiled functions: the bits of the same
 * function on a tape, with gradients and second derivatives, also through a file, through the
 * passes, as a call and in a batch; no memory in a run. */
#include "compile/runs/run_memory_test.h"
#include "compile/solvers/solver_test.h"

#include <unistd.h>

/* ---- functions of a matrix, a vector and a number -------------------------------------------- */

/* (4 I + W c) x, where W and c are captured. */
typedef struct two { cot_var w, c; } two;
BODY(system_of) {
    UNUSED;
    const two *of = user;
    ys[0] = cot_add(cot_mul(xs[0], 4.0), cot_mul(cot_matmul(of->w, xs[0]), of->c));
    return 0;
}
static cot_var solved(const cot_var *xs) {
    two of = {cot_transpose(xs[0]), xs[2]};
    return cot_linear_solve(system_of, &of, xs[1], NULL);
}
BODY(solves) { UNUSED; ys[0] = total(cot_exp(solved(xs))); return 0; }

/* (4 I + Wᵀ W c²) x by conjugate gradients, also in a loop. */
BODY(positive_of) {
    UNUSED;
    const two *of = user;
    cot_var    w = cot_matmul(cot_transpose(of->w), cot_matmul(of->w, xs[0]));
    ys[0] = cot_add(cot_mul(xs[0], 4.0), cot_mul(w, cot_square(of->c)));
    return 0;
}
static cot_var solved_positive(const cot_var *xs) {
    two of = {xs[0], xs[2]};
    return cot_linear_solve(positive_of, &of, xs[1], &(cot_solve_options){.positive_definite = true});
}
BODY(solves_positive) { UNUSED; ys[0] = total(cot_exp(solved_positive(xs))); return 0; }
BODY(positive_step) {
    UNUSED;
    const cot_var *of = user;
    ys[0] = cot_tanh(solved_positive((cot_var[]){of[0], xs[1], of[2]}));
    return 0;
}
BODY(solves_positive_in_a_loop) {
    UNUSED;
    cot_var y;
    cot_fori(positive_step, (void *)(uintptr_t)xs, 0, 3, 1, &xs[1], &y, NULL);
    ys[0] = total(y);
    return 0;
}

/* In f32, on a matrix of vectors. */
BODY(system_of_rows) { UNUSED; ys[0] = cot_add(cot_mul(xs[0], 4.0), cot_matmul(*(cot_var *)user, xs[0])); return 0; }
BODY(solves_rows) {
    UNUSED;
    cot_var w = cot_cast(xs[0], COT_F32), b = cot_cast(cot_mul(cot_transpose(xs[0]), xs[2]), COT_F32);
    ys[0] = cot_cast(total(cot_square(cot_linear_solve(system_of_rows, &w, b, NULL))), COT_F64);
    return 0;
}

/* More unknowns than a matrix is made for: 81. */
BODY(system_of_many) {
    UNUSED;
    cot_var w = *(cot_var *)user;
    ys[0] = cot_add(cot_mul(xs[0], 4.0), cot_mul(cot_matmul(xs[0], w), 0.5));
    return 0;
}
BODY(solves_many) {
    UNUSED;
    cot_var b = cot_mul(cot_broadcast_to(xs[1], COT_SHAPE(27, 3)), cot_sin(xs[2]));
    cot_var place = cot_reshape(cot_arange(b.tape, COT_F64, 0, 27, 1), COT_SHAPE(27, 1)), w = xs[0];
    ys[0] = total(cot_square(cot_linear_solve(system_of_many, &w, cot_add(b, cot_sin(place)), NULL)));
    return 0;
}

/* A system in each step of a loop, and one inside the other. */
BODY(solve_step) {
    UNUSED;
    const cot_var *of = user;
    ys[0] = cot_tanh(solved((cot_var[]){of[0], xs[1], of[2]}));
    return 0;
}
BODY(solves_in_a_loop) {
    UNUSED;
    cot_var y;
    cot_fori(solve_step, (void *)(uintptr_t)xs, 0, 3, 1, &xs[1], &y, NULL);
    ys[0] = total(y);
    return 0;
}
BODY(system_of_systems) {
    UNUSED;
    const cot_var *of = user;
    ys[0] = cot_add(xs[0], cot_mul(solved((cot_var[]){of[0], xs[0], of[2]}), 0.1));
    return 0;
}
BODY(solves_systems) {
    UNUSED;
    ys[0] = total(cot_square(cot_linear_solve(system_of_systems, (void *)(uintptr_t)xs, xs[1], NULL)));
    return 0;
}

/* x = tanh(W x + b) / 2. */
BODY(next_state) {
    UNUSED;
    ys[0] = cot_mul(cot_tanh(cot_add(cot_matmul(*(cot_var *)user, xs[0]), xs[1])), 0.5);
    return 0;
}
BODY(finds_a_root) { UNUSED; ys[0] = total(cot_exp(root_of(xs, NULL))); return 0; }
BODY(finds_a_fixed_point) {
    UNUSED;
    cot_var w = cot_transpose(xs[0]), b = cot_mul(xs[1], xs[2]);
    ys[0] = total(cot_square(cot_fixed_point(next_state, &w, NULL, start(xs), 1, &b, NULL)));
    return 0;
}

/* ½ x·x + x⁴/4 + c cos(W x) - b·x, and in f32. */
BODY(bowl) {
    UNUSED;
    cot_var x = xs[0], own = total(cot_add(cot_mul(cot_square(x), 0.5), cot_mul(cot_square(cot_square(x)), 0.25)));
    cot_var bent = cot_mul(total(cot_cos(cot_matmul(*(cot_var *)user, x))), xs[2]);
    ys[0] = cot_sub(cot_add(own, bent), total(cot_mul(x, xs[1])));
    return 0;
}
BODY(finds_a_minimum) {
    UNUSED;
    cot_var w = xs[0];
    ys[0] = total(cot_exp(cot_minimize(bowl, &w, NULL, start(xs), 2, xs + 1, NULL)));
    return 0;
}
BODY(finds_a_minimum_in_f32) {
    UNUSED;
    cot_var w = cot_cast(xs[0], COT_F32), x0 = cot_cast(start(xs), COT_F32);
    cot_var theta[2] = {cot_cast(xs[1], COT_F32), cot_cast(xs[2], COT_F32)};
    ys[0] = cot_cast(total(cot_exp(cot_minimize(bowl, &w, NULL, x0, 2, theta, NULL))), COT_F64);
    return 0;
}

BODY(finds_a_fixed_point_in_f32) {
    UNUSED;
    cot_var w = cot_cast(xs[0], COT_F32), b = cot_cast(xs[1], COT_F32), x0 = cot_cast(start(xs), COT_F32);
    ys[0] = cot_cast(total(cot_fixed_point(next_state, &w, NULL, x0, 1, &b, NULL)), COT_F64);
    return 0;
}

/* More unknowns than a matrix is made for. */
BODY(many_equations) {
    UNUSED;
    ys[0] = cot_sub(cot_add(cot_mul(xs[0], 4.0), cot_tanh(cot_matmul(xs[0], xs[1]))), *(cot_var *)user);
    return 0;
}
BODY(finds_many) {
    UNUSED;
    cot_var b = cot_add(cot_mul(cot_ones(xs[0].tape, COT_F64, COT_SHAPE(27, 3)), xs[1]), xs[2]);
    cot_var x0 = cot_zeros(xs[0].tape, COT_F64, COT_SHAPE(27, 3));
    ys[0] = total(cot_square(cot_root(many_equations, &b, NULL, x0, 1, xs, NULL)));
    return 0;
}

BODY(find_step) {
    UNUSED;
    const cot_var *of = user;
    ys[0] = root_of((cot_var[]){of[0], xs[1], of[2]}, NULL);
    return 0;
}
BODY(finds_in_a_loop) {
    UNUSED;
    cot_var y;
    cot_fori(find_step, (void *)(uintptr_t)xs, 0, 3, 1, &xs[1], &y, NULL);
    ys[0] = total(y);
    return 0;
}

/* For each row of the matrix. */
BODY(both_of_row) {
    UNUSED;
    const cot_var *of = user;
    ys[0] = cot_add(solved((cot_var[]){of[0], xs[0], of[2]}), root_of((cot_var[]){of[0], xs[0], of[2]}, NULL));
    return 0;
}
BODY(does_a_batch) {
    UNUSED;
    cot_var y;
    cot_vmap(both_of_row, (void *)(uintptr_t)xs, 1, xs, NULL, 1, &y, NULL);
    ys[0] = total(cot_mul(y, xs[1]));
    return 0;
}

static const struct { const char *name; cot_fn f; } functions[] = {
    {"a batch of both", does_a_batch}, {"root", finds_a_root}, {"fixed_point", finds_a_fixed_point},
    {"fixed_point in f32", finds_a_fixed_point_in_f32}, {"minimize", finds_a_minimum},
    {"minimize in f32", finds_a_minimum_in_f32}, {"root of many unknowns", finds_many},
    {"root in a loop", finds_in_a_loop},
    {"linear_solve", solves}, {"linear_solve of a matrix in f32", solves_rows},
    {"conjugate gradients", solves_positive}, {"conjugate gradients in a loop", solves_positive_in_a_loop},
    {"linear_solve of many unknowns", solves_many}, {"linear_solve in a loop", solves_in_a_loop},
    {"linear_solve in a linear_solve", solves_systems},
};

static void programs_with_solvers_have_the_bits_of_the_tape(void **state) {
    (void)state;
    for (int k = 0; k < TEST_COUNT(functions); k++)
        for (int how = 0; how <= KINDS; how++) {
            bool         plain = how == KINDS;
            which        w = {functions[k].f, plain ? GRADIENT : how};
            cot_program *p = program_of(&w, &(cot_compile_options){.plain = plain});
            compare(p, &w, functions[k].name, plain ? "plain" : "optimised");
            cot_program_destroy(p);
        }
}

static void programs_with_solvers_go_through_files(void **state) {
    char path[] = "/tmp/cotangent-solvers-XXXXXX", why[256];
    int  file = mkstemp(path);
    (void)state;
    assert_true(file >= 0);
    close(file);
    for (int k = 0; k < TEST_COUNT(functions); k++) {
        which        w = {functions[k].f, GRADIENT};
        cot_program *p = program_of(&w, NULL);
        assert_int_equal(cot_program_save(p, path, why, sizeof why), COT_OK);
        cot_program_destroy(p);
        p = cot_program_load(path, NULL);
        compare(p, &w, functions[k].name, "loaded");
        cot_program_destroy(p);
    }
    unlink(path);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A batch of three vectors. */
static void batch(const either *e, const double *x, double *to) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[INPUTS], y;
    leaves(t, x, xs);
    xs[1] = cot_tensor(t, COT_F64, COT_SHAPE(3, 3), x);
    cot_vmap(calls, (void *)(uintptr_t)e, INPUTS, xs, (int[]){COT_NOT_BATCHED, 0, COT_NOT_BATCHED}, 1, &y, NULL);
    cot_read(y, to, 3);
    assert_ok(t);
    cot_tape_destroy(t);
}

static bool is_single(cot_fn f) {
    return f == solves_rows || f == finds_a_minimum_in_f32 || f == finds_a_fixed_point_in_f32;
}

static void calls_of_programs_with_solvers_have_gradients_and_batches(void **state) {
    (void)state;
    for (int k = 0; k < TEST_COUNT(functions); k++) {
        which  w = {functions[k].f, VALUE};
        either tape = {NULL, w.f}, program = {program_of(&w, NULL), w.f};
        double x[ELEMENTS], want[OUTPUTS], got[OUTPUTS];
        point(k, x);
        for (int twice = 0; twice < 2; twice++) {
            sweep(&tape, twice, x, want);
            sweep(&program, twice, x, got);
            near_all(functions[k].name, twice ? "called twice" : "called", is_single(w.f) ? 1e-4 : 1e-9, got, want);
        }
        batch(&tape, x, want);
        batch(&program, x, got);
        for (int i = 0; i < 3; i++)
            if (!test_same(want[i], got[i]))
                fail_msg("%s, in a batch: %.17g is not %.17g", functions[k].name, got[i], want[i]);
        cot_program_destroy(program.p);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Without passes, whose memory fails elsewhere. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    static const cot_fn some[] = {solves, finds_a_root, finds_a_minimum};
    for (int k = 0; k < TEST_COUNT(some); k++)
        for (long at = 1;; at++) {
            counting     c = {.fail_at = at, .fail_for_good = true};
            which        w = {some[k], VALUE};
            cot_program *p = program_of(&w, &(cot_compile_options){.allocator = {counting_alloc, &c}, .plain = true});
            cot_run     *r = cot_run_create(p);
            bool         ready = r && cot_run_status(r) == COT_OK;
            if (!ready && p) assert_true(cot_program_status(p) == COT_MEMORY || !r || cot_run_status(r) == COT_MEMORY);
            cot_run_destroy(r);
            cot_program_destroy(p);
            assert_int_equal(c.live, 0);
            if (ready) break;
        }
}

static void a_run_takes_no_memory(void **state) {
    (void)state;
    for (int k = 0; k < TEST_COUNT(functions); k++) {
        counting     c = {0};
        which        w = {functions[k].f, GRADIENT};
        cot_program *p = program_of(&w, &(cot_compile_options){.allocator = {counting_alloc, &c}});
        cot_run     *r = measured_run(functions[k].name, p, &c);
        double       x[ELEMENTS], z[OUTPUTS];
        long         before = c.requests;
        for (int round = 0; round < 3; round++) {
            point(round, x);
            assert_int_equal(go(r, x, z), COT_OK);
        }
        assert_int_equal(c.requests, before);
        cot_run_destroy(r);
        cot_program_destroy(p);
        assert_int_equal(c.live, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_with_solvers_have_the_bits_of_the_tape),
        cmocka_unit_test(programs_with_solvers_go_through_files),
        cmocka_unit_test(calls_of_programs_with_solvers_have_gradients_and_batches),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_run_takes_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
