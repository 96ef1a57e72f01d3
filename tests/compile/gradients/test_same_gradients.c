/* The gradient of a function has the same bits however it is asked for: by a sweep over a tape, as
 * recorded operations, of the function on inputs of its own, and in a program. */
#include "support/body_test.h"
#include "support/support.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

#include <string.h>

/* ---- operations that have nothing to do ------------------------------------------------------ */

/* Each gives a node of its own for a leaf, whose adjoint is summed by itself. */
enum { SIZE = 7 };
typedef cot_var idle(cot_var x);
static cot_var by_sum(cot_var x) { return cot_sum(x, (cot_axes){0}); }
static cot_var by_max(cot_var x) { return cot_max(x, (cot_axes){0}); }
static cot_var by_cast(cot_var x) { return cot_cast(x, COT_F64); }
static cot_var by_shape(cot_var x) { return cot_reshape(x, cot_shape_of(x)); }
static cot_var by_broadcast(cot_var x) { return cot_broadcast_to(x, cot_shape_of(x)); }
static cot_var by_squeeze(cot_var x) { return cot_squeeze(x, COT_ALL); }
static cot_var by_tile(cot_var x) { return cot_tile(x, (cot_shape){0}); }
static idle *const idles[] = {by_sum, by_max, by_cast, by_shape, by_broadcast, by_squeeze, by_tile};

/* Five terms whose derivatives add up to other last bits in another order. */
BODY(terms) {
    UNUSED;
    idle   *f = *(idle *const *)user;
    cot_var a = f(xs[0]), b = f(xs[0]);
    cot_var y = cot_add(cot_mul(cot_exp(a), 0.1), cot_mul(cot_sin(a), 0.3));
    y = cot_add(y, cot_add(cot_log(b), cot_mul(cot_cos(b), 0.7)));
    ys[0] = cot_sum(cot_add(y, cot_square(xs[0])), COT_ALL);
    return 0;
}
BODY(with_gradient) { (void)m; return cot_value_and_grad(terms, user, n, xs, &ys[0], ys + 1) != COT_OK; }

static void same_bits(const double *want, const double *got, int n, const char *by, int which) {
    for (int i = 0; i < n; i++)
        if (memcmp(&want[i], &got[i], sizeof *got))
            fail_msg("operation %d, element %d: %.17g, but %.17g by %s", which, i, want[i], got[i], by);
}

/* By a call of a program, and by one in a function. */
BODY(called) { return cot_program_call(user, n, xs, m, ys) != COT_OK; }
static void compare_calls(int which, cot_shape shape, const double *at, const double *want) {
    int          n = shape.ndim ? SIZE : 1;
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      x = cot_tensor(t, COT_F64, shape, at), y, g;
    idle        *f = idles[which];
    double       got[SIZE];
    cot_program *p = cot_compile(terms, &f, 1, &(cot_type){COT_F64, shape}, 1, NULL);
    cot_program *outer = cot_compile(called, p, 1, &(cot_type){COT_F64, shape}, 1, NULL);
    cot_program_call(p, 1, &x, 1, &y);
    assert_int_equal(cot_backward(y), COT_OK);
    cot_read_grad(x, got, n);
    same_bits(want, got, n, "a call", which);
    cot_grad_of(y, 1, &x, &g);
    cot_read(g, got, n);
    same_bits(want, got, n, "cot_grad_of through a call", which);
    cot_value_and_grad(called, p, 1, &x, &y, &g);
    cot_read(g, got, n);
    same_bits(want, got, n, "a call in a function", which);
    cot_value_and_grad(called, outer, 1, &x, &y, &g);
    cot_read(g, got, n);
    same_bits(want, got, n, "a call in a program that is called", which);
    cot_program_destroy(outer);
    cot_program_destroy(p);
    assert_string_equal(cot_tape_message(t), "");
    cot_tape_destroy(t);
}

/* The same of a value that was computed, which no operation gives a node for having nothing to
 * do. */
BODY(called_later) {
    cot_var z = cot_mul(xs[0], 1);
    (void)n;
    return cot_program_call(user, 1, &z, m, ys) != COT_OK;
}
static void compare_computed(int which, cot_shape shape, const double *at) {
    int          n = shape.ndim ? SIZE : 1;
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      x = cot_tensor(t, COT_F64, shape, at), z = cot_mul(x, 1), y, g;
    idle        *f = idles[which];
    double       want[SIZE], got[SIZE];
    cot_program *p = cot_compile(terms, &f, 1, &(cot_type){COT_F64, shape}, 1, NULL);
    cot_program *outer = cot_compile(called_later, p, 1, &(cot_type){COT_F64, shape}, 1, NULL);
    terms(1, &z, 1, &y, &f);
    cot_grad_of(y, 1, &x, &g);
    cot_read(g, want, n);
    for (int twice = 0; twice < 2; twice++) {
        cot_program_call(p, 1, &z, 1, &y);
        cot_grad_of(y, 1, &x, &g);
        cot_read(g, got, n);
        same_bits(want, got, n, "a call on a computed value", which);
    }
    cot_value_and_grad(called, outer, 1, &x, &y, &g);
    cot_read(g, got, n);
    same_bits(want, got, n, "a call on a computed value in a program that is called", which);
    cot_program_destroy(outer);
    cot_program_destroy(p);
    assert_string_equal(cot_tape_message(t), "");
    cot_tape_destroy(t);
}

static void compare_gradients(int which, cot_shape shape, const double *at) {
    int       n = shape.ndim ? SIZE : 1;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, shape, at), y, g;
    idle     *f = idles[which];
    double    want[SIZE], got[SIZE], value;
    terms(1, &x, 1, &y, &f);
    assert_int_equal(cot_backward(y), COT_OK);
    cot_read_grad(x, want, n);
    cot_grad_of(y, 1, &x, &g);
    cot_read(g, got, n);
    same_bits(want, got, n, "cot_grad_of", which);
    cot_value_and_grad(terms, &f, 1, &x, &y, &g);
    cot_read(g, got, n);
    same_bits(want, got, n, "cot_value_and_grad", which);
    cot_program *p = cot_compile(with_gradient, &f, 1, &(cot_type){COT_F64, shape}, 2, NULL);
    cot_run     *r = cot_run_create(p);
    assert_int_equal(cot_program_run(r, (const void *[]){at}, (void *[]){&value, got}), COT_OK);
    same_bits(want, got, n, "a program", which);
    compare_calls(which, shape, at, want);
    compare_computed(which, shape, at);
    cot_run_destroy(r);
    cot_program_destroy(p);
    assert_string_equal(cot_tape_message(t), "");
    cot_tape_destroy(t);
}

static void what_has_nothing_to_do_sums_apart_everywhere(void **state) {
    (void)state;
    double at[SIZE];
    for (int which = 0; which < TEST_COUNT(idles); which++)
        for (int round = 0; round < 20; round++) {
            for (int i = 0; i < SIZE; i++) at[i] = 0.1 + 0.037 * round + 0.21 * i;
            compare_gradients(which, COT_SCALAR, at);
            compare_gradients(which, COT_SHAPE(SIZE), at);
        }
}

/* ---- zeros of both signs through a loop ------------------------------------------------------ */

enum { WIDTH = 2 };
typedef struct looped { cot_fn step; double steps; int states; } looped;
BODY(is_short) { UNUSED; ys[0] = cot_less(xs[0], ((const looped *)user)->steps); return 0; }
/* Negative factors, which turn the sign of a zero. */
BODY(onward) {
    UNUSED;
    ys[0] = cot_add(xs[0], 1);
    ys[1] = cot_mul(cot_sin(xs[1]), -3);
    return 0;
}
/* Bodies that are programs only within a program. */
BODY(thrice) { UNUSED; ys[0] = cot_mul(xs[0], 3); return 0; }
BODY(solved) {
    UNUSED;
    ys[0] = cot_add(xs[0], 1);
    ys[1] = cot_neg(cot_linear_solve(thrice, NULL, xs[1], NULL));
    return 0;
}
BODY(nested) {
    UNUSED;
    looped  inner = {onward, 2, 0};
    cot_var first[2] = {cot_constant(xs[0].tape, 0), xs[1]}, last[2];
    cot_while(is_short, onward, &inner, 2, first, last, NULL);
    ys[0] = cot_add(xs[0], 1);
    ys[1] = cot_neg(last[1]);
    return 0;
}
BODY(walked) {
    UNUSED;
    looped *l = user;
    cot_var first[2] = {cot_constant(xs[0].tape, 0), xs[0]}, last[2];
    cot_while(is_short, l->step, l, 2, first, last, &(cot_loop_options){.states = l->states});
    ys[0] = last[1];
    return 0;
}
BODY(way_back) {
    (void)n, (void)m;
    cot_var y;
    return cot_fn_vjp(walked, user, 1, xs, 1, &y, &xs[1], ys) != COT_OK;
}

static const double at_zeros[WIDTH] = {0.4, -0.7};

static void recorded_zeros(looped l, bool smooth, cot_shape shape, const double *seed, double *got) {
    cot_tape *t = cot_tape_create(&(cot_options){.smooth = smooth});
    cot_var   xs[2] = {cot_tensor(t, COT_F64, shape, at_zeros), cot_data(t, COT_F64, shape, seed)}, g;
    way_back(2, xs, 1, &g, &l);
    cot_read(g, got, shape.ndim ? WIDTH : 1);
    assert_string_equal(cot_tape_message(t), "");
    cot_tape_destroy(t);
}

static void compiled_zeros(looped l, cot_shape shape, const double *seed, double *got) {
    const cot_type types[2] = {{COT_F64, shape}, {COT_F64, shape}};
    cot_program   *p = cot_compile(way_back, &l, 2, types, 1, NULL);
    cot_run       *r = cot_run_create(p);
    assert_int_equal(cot_program_run(r, (const void *[]){at_zeros, seed}, (void *[]){got}), COT_OK);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

static void same_zeros(looped l, cot_shape shape, const double *want, const double *got, const char *by) {
    for (int i = 0; i < (shape.ndim ? WIDTH : 1); i++)
        if (memcmp(&want[i], &got[i], sizeof *got))
            fail_msg("%g steps, %d states: %g, but %g %s", l.steps, l.states, want[i], got[i], by);
}

static void compare_zeros(looped l, cot_shape shape, const double *seed) {
    double want[WIDTH], got[WIDTH];
    recorded_zeros(l, false, shape, seed, want);
    for (l.states = 0; l.states < 3; l.states++) {
        recorded_zeros(l, false, shape, seed, got);
        same_zeros(l, shape, want, got, "on a tape");
        recorded_zeros(l, true, shape, seed, got);
        same_zeros(l, shape, want, got, "on a smooth tape");
        compiled_zeros(l, shape, seed, got);
        same_zeros(l, shape, want, got, "in a program");
    }
}

static void a_zero_keeps_its_sign_through_a_while(void **state) {
    (void)state;
    static const cot_fn bodies[] = {onward, solved, nested};
    static const double steps[] = {0, 1, 2, 5, 20}, seeds[][WIDTH] = {{-0.0, 0.0}, {0.0, -0.0}, {1, -0.0}};
    for (int b = 0; b < TEST_COUNT(bodies); b++)
        for (int k = 0; k < TEST_COUNT(steps); k++)
            for (int s = 0; s < TEST_COUNT(seeds); s++) {
                compare_zeros((looped){bodies[b], steps[k], 0}, COT_SCALAR, seeds[s]);
                compare_zeros((looped){bodies[b], steps[k], 0}, COT_SHAPE(WIDTH), seeds[s]);
            }
}

/* A sweep takes the adjoint of a tensor as it comes, in loops of few steps, too. */
static void a_sweep_keeps_the_sign_of_zeros_in_tensors(void **state) {
    (void)state;
    static const double steps[] = {0, 1, 2, 5, 20}, seed[WIDTH] = {-0.0, 0.0};
    const cot_shape     shape = COT_SHAPE(WIDTH);
    for (int k = 0; k < TEST_COUNT(steps); k++)
        for (int states = 0; states < 3; states++) {
            looped    l = {onward, steps[k], states};
            double    want[WIDTH], got[WIDTH];
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x = cot_tensor(t, COT_F64, shape, at_zeros), y;
            recorded_zeros(l, false, shape, seed, want);
            walked(1, &x, 1, &y, &l);
            cot_backward_seeded(y, cot_data(t, COT_F64, shape, seed));
            cot_read_grad(x, got, WIDTH);
            same_zeros(l, shape, want, got, "by cot_backward");
            assert_string_equal(cot_tape_message(t), "");
            cot_tape_destroy(t);
        }
}

/* Steps back that are played, as no program can be made of them. */
static void gradient_with_states(cot_tape *t, void *user) {
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(WIDTH), at_zeros), y, g;
    walked(1, &x, 1, &y, user);
    if (cot_tape_status(t) == COT_OK) cot_grad_of(cot_sum(y, COT_ALL), 1, &x, &g);
}
static void memory_may_fail_where_steps_back_are_played(void **state) {
    (void)state;
    assert_survives_no_memory(gradient_with_states, &(looped){solved, 3, 1}, 0, NULL);
}

/* ---- one operand several times --------------------------------------------------------------- */

/* Contributions to the adjoint of what is several inputs take turns. */
BODY(of_four) {
    UNUSED;
    cot_var a = xs[0], b = xs[1], c = xs[2], d = xs[3];
    cot_var y = cot_add(cot_mul(cot_exp(a), cot_sin(b)), cot_mul(cot_cos(c), 0.3));
    y = cot_add(y, cot_add(cot_mul(cot_tanh(a), d), cot_mul(cot_exp(b), 0.7)));
    ys[0] = cot_sum(cot_add(y, cot_add(cot_square(c), cot_sin(d))), COT_ALL);
    return 0;
}

/* The gradients by two leaves, which are the inputs in this order. */
static void of_two(cot_program *p, const int *order, bool computed, cot_shape shape, double got[2][SIZE]) {
    static const double at[][SIZE] = {{0.3, -1.1, 0.77, 2.1, -0.5, 0.9, 1.3}, {1.9, 0.2, -0.4, 0.6, 1.1, -0.8, 0.5}};
    cot_tape           *t = cot_tape_create(NULL);
    cot_var             xs[2], in[4], y, g[2], z[2];
    for (int k = 0; k < 2; k++) {
        xs[k] = cot_tensor(t, COT_F64, shape, at[k]);
        z[k] = computed ? cot_mul(xs[k], 1.5) : xs[k];
    }
    for (int k = 0; k < 4; k++) in[k] = z[order[k]];
    assert_int_equal(p ? (int)cot_program_call(p, 4, in, 1, &y) : of_four(4, in, 1, &y, NULL), 0);
    cot_grad_of(y, 2, xs, g);
    for (int k = 0; k < 2; k++) cot_read(g[k], got[k], SIZE);
    assert_string_equal(cot_tape_message(t), "");
    cot_tape_destroy(t);
}

static void an_operand_may_be_several_inputs_of_a_call(void **state) {
    (void)state;
    static const int orders[][4] = {{0, 0, 0, 0}, {0, 1, 0, 1}, {1, 0, 0, 1}, {0, 1, 1, 1}, {1, 1, 0, 0}};
    const cot_shape  shape = COT_SHAPE(SIZE);
    const cot_type   type = {COT_F64, shape}, types[] = {type, type, type, type};
    cot_program     *p = cot_compile(of_four, NULL, 4, types, 1, NULL);
    double           want[2][SIZE], got[2][SIZE];
    for (int k = 0; k < TEST_COUNT(orders); k++)
        for (int computed = 0; computed < 2; computed++) {
            of_two(NULL, orders[k], computed, shape, want);
            for (int again = 0; again < 2; again++) {
                of_two(p, orders[k], computed, shape, got);
                same_bits(want[0], got[0], SIZE, "a call", k);
                same_bits(want[1], got[1], SIZE, "a call", k);
            }
        }
    cot_program_destroy(p);
}

static void call_with_two_pairs(cot_tape *t, void *user) {
    cot_var a = cot_tensor(t, COT_F64, COT_SHAPE(SIZE), NULL), b = cot_tensor(t, COT_F64, COT_SHAPE(SIZE), NULL), y;
    cot_program_call(user, 4, (cot_var[]){a, b, b, a}, 1, &y);
    if (cot_tape_status(t) == COT_OK) cot_backward(y);
}

static void memory_may_fail_where_operands_are_several_inputs(void **state) {
    (void)state;
    const cot_type type = {COT_F64, COT_SHAPE(SIZE)}, types[] = {type, type, type, type};
    cot_program   *p = cot_compile(of_four, NULL, 4, types, 1, NULL);
    assert_survives_no_memory(call_with_two_pairs, p, 0, NULL);
    cot_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_nothing_to_do_sums_apart_everywhere),
        cmocka_unit_test(a_zero_keeps_its_sign_through_a_while),
        cmocka_unit_test(a_sweep_keeps_the_sign_of_zeros_in_tensors),
        cmocka_unit_test(memory_may_fail_where_steps_back_are_played),
        cmocka_unit_test(an_operand_may_be_several_inputs_of_a_call),
        cmocka_unit_test(memory_may_fail_where_operands_are_several_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
