/* What nothing that is read depends on has no adjoint: neither in a loop, nor in a program that is
 * called, nor where all is recorded operation by operation. Zeros in its place would be NaN in a
 * product with an infinity, and would take a -0 its sign. So a gradient has the same bits whichever
 * way it is asked for. */
#include "support/body_test.h"
#include "support/support.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

#include <math.h>
#include <string.h>

enum { MOST = 6 };

typedef struct asked { cot_fn f; void *user; cot_shape shape; const double *at; } asked;

static int size_of(cot_shape s) {
    int size = 1;
    for (int k = 0; k < s.ndim; k++) size *= (int)s.dim[k];
    return size;
}

static void same_bits(const asked *a, const double *want, const double *got, const char *by) {
    for (int i = 0; i < size_of(a->shape); i++)
        if (memcmp(&want[i], &got[i], sizeof *got) && !(isnan(want[i]) && isnan(got[i])))
            fail_msg("element %d: %.17g by cot_backward, but %.17g by %s", i, want[i], got[i], by);
}

BODY(with_gradient) {
    const asked *a = user;
    (void)m;
    return cot_value_and_grad(a->f, a->user, n, xs, &ys[0], ys + 1) != COT_OK;
}

/* The gradient of what `f` gives for a leaf, by cot_backward and by cot_grad_of. */
static void on_a_tape(const asked *a, cot_fn f, void *user, double *back, double *recorded) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, a->shape, a->at), y, g;
    assert_int_equal(f(1, &x, 1, &y, user), 0);
    cot_backward(y);
    cot_read_grad(x, back, size_of(a->shape));
    cot_grad_of(y, 1, &x, &g);
    cot_read(g, recorded, size_of(a->shape));
    assert_string_equal(cot_tape_message(t), "");
    cot_tape_destroy(t);
}

static void compiled(asked *a, bool plain, double *got) {
    double       value;
    cot_program *p = cot_compile(with_gradient, a, 1, &(cot_type){COT_F64, a->shape}, 2,
                                 &(cot_compile_options){.plain = plain});
    cot_run     *r = cot_run_create(p);
    assert_int_equal(cot_program_run(r, (const void *[]){a->at}, (void *[]){&value, got}), COT_OK);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

BODY(called) { return cot_program_call(user, n, xs, m, ys) != COT_OK; }

static void same_in_all_ways(asked a) {
    double       want[MOST], got[MOST], again[MOST];
    cot_program *p = cot_compile(a.f, a.user, 1, &(cot_type){COT_F64, a.shape}, 1, NULL);
    on_a_tape(&a, a.f, a.user, want, got);
    same_bits(&a, want, got, "cot_grad_of");
    compiled(&a, false, got);
    same_bits(&a, want, got, "a program");
    compiled(&a, true, got);
    same_bits(&a, want, got, "a program as it was recorded");
    on_a_tape(&a, called, p, got, again);
    same_bits(&a, want, got, "cot_backward of a call");
    same_bits(&a, want, again, "cot_grad_of a call");
    cot_program_destroy(p);
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* Carried are x and something else, which nobody reads behind the loop. */
typedef struct unread { double steps; int which, states; } unread;

static cot_var infinite(cot_tape *t) {
    return cot_data(t, COT_F64, COT_SHAPE(2, 2), (double[]){INFINITY, 1, -1, NAN});
}

BODY(unread_step) {
    UNUSED;
    const unread *u = user;
    cot_var       product = cot_matmul(xs[0], infinite(xs[0].tape)), sum = cot_sum(product, COT_ALL);
    ys[0] = cot_mul(xs[0], 1.5);
    ys[1] = u->which == 0 ? product : u->which == 1 ? sum : cot_add(cot_mul(xs[1], 0.5), sum);
    return 0;
}
BODY(step_with_count) {
    ys[0] = cot_add(xs[0], 1);
    return unread_step(n, xs + 1, m, ys + 1, user);
}
BODY(below) { return (void)n, (void)m, ys[0] = cot_less(xs[0], ((unread *)user)->steps), 0; }

static void open_carried(const unread *u, cot_var x, cot_var *first) {
    first[0] = x;
    first[1] = u->which == 0 ? cot_mul(x, 1) : cot_sum(x, COT_ALL);
}

BODY(scanned) {
    UNUSED;
    unread *u = user;
    cot_var first[2], last[2];
    open_carried(u, xs[0], first);
    cot_scan(unread_step, u, (int64_t)u->steps, 2, first, 0, NULL, last, 0, NULL,
             &(cot_loop_options){.states = u->states});
    ys[0] = cot_sum(last[0], COT_ALL);
    return 0;
}
BODY(walked) {
    UNUSED;
    unread *u = user;
    cot_var first[3] = {cot_constant(xs[0].tape, 0)}, last[3];
    open_carried(u, xs[0], first + 1);
    cot_while(below, step_with_count, u, 3, first, last, &(cot_loop_options){.states = u->states});
    ys[0] = cot_sum(last[1], COT_ALL);
    return 0;
}

static void a_carried_value_that_nobody_reads_has_no_adjoint(void **state) {
    (void)state;
    static const double at[] = {1, 2, 3, 4}, steps[] = {0, 1, 2, 20};
    for (int k = 0; k < TEST_COUNT(steps); k++)
        for (int which = 0; which < 3; which++)
            for (int states = 0; states < 3; states++) {
                unread u = {steps[k], which, states};
                same_in_all_ways((asked){scanned, &u, COT_SHAPE(2, 2), at});
                same_in_all_ways((asked){walked, &u, COT_SHAPE(2, 2), at});
            }
}

/* What a body reads for the sake of such a value alone has none either. */
BODY(apart) {
    UNUSED;
    ys[0] = cot_mul(xs[0], 2);
    ys[1] = cot_mul(xs[1], xs[2]);
    ys[2] = cot_sin(xs[2]);
    return 0;
}
BODY(read_in_vain) {
    UNUSED;
    cot_var bad = cot_sum(cot_matmul(xs[0], infinite(xs[0].tape)), COT_ALL), last[3];
    cot_var first[3] = {cot_sum(xs[0], COT_ALL), cot_constant(xs[0].tape, 1), bad};
    cot_scan(apart, NULL, *(const int *)user, 3, first, 0, NULL, last, 0, NULL, NULL);
    ys[0] = last[0];
    return 0;
}

static void an_initial_value_that_no_result_needs_has_no_adjoint(void **state) {
    (void)state;
    static const double at[] = {1, 2, 3, 4};
    for (int steps = 0; steps < 20; steps += 3)
        same_in_all_ways((asked){read_in_vain, &steps, COT_SHAPE(2, 2), at});
}

/* ---- loops in loops -------------------------------------------------------------------------- */

/* A pair (x, w) of which x goes on without w, through an operation with a body in each step. */
typedef enum around { PLAIN, CONDITION, OTHER_BRANCH, CHECKPOINT, SCAN, WHILE, TWO_DEEP } around;
typedef struct paired { around how; int steps, states; } paired;

BODY(pair) {
    UNUSED;
    ys[0] = cot_mul(xs[0], 1.5);
    ys[1] = cot_add(cot_mul(xs[1], 0.5), cot_matmul(xs[0], infinite(xs[0].tape)));
    return 0;
}
BODY(pair_twice_scanned) {
    UNUSED;
    cot_scan(pair, NULL, 2, 2, xs, 0, NULL, ys, 0, NULL, user);
    return 0;
}
BODY(counted_pair) { ys[0] = cot_add(xs[0], 1); return pair(n - 1, xs + 1, m - 1, ys + 1, user); }
BODY(below_two) { return UNUSED, ys[0] = cot_less(xs[0], 2), 0; }

BODY(pair_inside) {
    const paired    *p = user;
    cot_loop_options o = {.states = p->states};
    cot_var          carried[3] = {cot_constant(xs[0].tape, 0), xs[0], xs[1]}, last[3];
    cot_var          choice = cot_greater(cot_sum(xs[0], COT_ALL), 0);
    switch (p->how) {
    case PLAIN: pair(n, xs, m, ys, NULL); break;
    case CONDITION: cot_cond(choice, pair, pair_twice_scanned, &o, 2, xs, 2, ys); break;
    case OTHER_BRANCH: cot_cond(cot_logical_not(choice), pair_twice_scanned, pair, &o, 2, xs, 2, ys); break;
    case CHECKPOINT: cot_checkpoint(pair, NULL, 2, xs, 2, ys); break;
    case SCAN: pair_twice_scanned(n, xs, m, ys, &o); break;
    case WHILE:
        cot_while(below_two, counted_pair, NULL, 3, carried, last, &o);
        ys[0] = last[1], ys[1] = last[2];
        break;
    case TWO_DEEP: cot_checkpoint(pair_twice_scanned, &o, 2, xs, 2, ys); break;
    }
    return 0;
}
BODY(pairs) {
    UNUSED;
    paired *p = user;
    cot_var first[2] = {xs[0], cot_mul(xs[0], 1)}, last[2];
    cot_scan(pair_inside, p, p->steps, 2, first, 0, NULL, last, 0, NULL, &(cot_loop_options){.states = p->states});
    ys[0] = cot_sum(last[0], COT_ALL);
    return 0;
}

static void what_only_an_unread_result_of_an_inner_loop_needs_has_no_adjoint(void **state) {
    (void)state;
    static const double at[] = {1, 2, 3, 4};
    static const int    steps[] = {1, 2, 20};
    for (int k = 0; k < TEST_COUNT(steps); k++)
        for (around how = PLAIN; how <= TWO_DEEP; how++)
            for (int states = 0; states < 2; states++) {
                paired p = {how, steps[k], states};
                asked  a = {pairs, &p, COT_SHAPE(2, 2), at};
                double want[MOST], got[MOST], one = 1;
                for (int i = 0; i < steps[k] * (how >= SCAN ? 2 : 1); i++) one *= 1.5;
                for (int i = 0; i < 4; i++) want[i] = one;
                on_a_tape(&a, a.f, a.user, got, got);
                same_bits(&a, want, got, "cot_grad_of");
                same_in_all_ways(a);
            }
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A program with several results, and a function of them that reads each twice. */
typedef struct several { cot_program *p; cot_fn f; int order[3]; bool computed; } several;

BODY(read_several) {
    UNUSED;
    several *s = user;
    cot_var  x = s->computed ? cot_mul(xs[0], 1.5) : xs[0], y[3], sum = cot_constant(x.tape, 0);
    if (s->p ? cot_program_call(s->p, 1, &x, 3, y) != COT_OK : s->f(1, &x, 3, y, NULL)) return 1;
    for (int k = 0; k < 6; k++) {
        static const double factor[] = {0.1, 0.7, 0.3};
        cot_var             v = y[s->order[k % 3]];
        v = k < 3 ? cot_mul(cot_exp(v), factor[k]) : cot_cos(cot_mul(v, factor[k - 3]));
        sum = cot_add(sum, cot_sum(v, COT_ALL));
    }
    ys[0] = sum;
    return 0;
}

static void same_when_called(cot_fn f) {
    static const double at[] = {0.3, -1.1, 0.77, 2.1, -0.5, 0.9};
    static const int    orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}};
    double              want[2][MOST], got[2][MOST];
    const cot_shape     shape = COT_SHAPE(6);
    cot_program        *p = cot_compile(f, NULL, 1, &(cot_type){COT_F64, shape}, 3, NULL);
    for (int k = 0; k < TEST_COUNT(orders); k++)
        for (int computed = 0; computed < 2; computed++) {
            several s = {NULL, f, {orders[k][0], orders[k][1], orders[k][2]}, computed};
            asked   a = {read_several, &s, shape, at};
            on_a_tape(&a, read_several, &s, want[0], want[1]);
            s.p = p;
            on_a_tape(&a, read_several, &s, got[0], got[1]);
            same_bits(&a, want[0], got[0], "cot_backward of a call");
            same_bits(&a, want[0], got[1], "cot_grad_of a call");
            same_in_all_ways(a);
        }
    cot_program_destroy(p);
}

BODY(three_times) {
    UNUSED;
    ys[0] = ys[1] = ys[2] = cot_exp(xs[0]);
    return 0;
}
BODY(twice_a_view) {
    UNUSED;
    ys[0] = ys[2] = cot_reshape(xs[0], COT_SHAPE(2, 3));
    ys[1] = cot_sin(xs[0]);
    return 0;
}

static void a_value_that_a_call_gives_out_several_times_is_one_value(void **state) {
    (void)state;
    same_when_called(three_times);
    same_when_called(twice_a_view);
}

/* What is called does not depend on the first half of x, whose gradient, of a cosine at 0, is
 * -0. */
BODY(second_alone) { return UNUSED, ys[0] = cot_mul(xs[1], 3), 0; }
BODY(halves) {
    UNUSED;
    cot_var half[2] = {cot_slice(xs[0], 0, 0, 2, 1), cot_slice(xs[0], 0, 2, 4, 1)}, y;
    if (user ? cot_program_call(user, 2, half, 1, &y) != COT_OK : second_alone(2, half, 1, &y, NULL)) return 1;
    ys[0] = cot_add(cot_sum(y, COT_ALL), cot_sum(cot_cos(xs[0]), COT_ALL));
    return 0;
}

static void an_operand_that_no_result_of_a_call_needs_has_no_adjoint(void **state) {
    (void)state;
    static const double at[] = {0, 0, 0, 4};
    const cot_type      types[] = {{COT_F64, COT_SHAPE(2)}, {COT_F64, COT_SHAPE(2)}};
    cot_program        *p = cot_compile(second_alone, NULL, 2, types, 1, NULL);
    double              want[2][MOST], got[2][MOST];
    asked               a = {halves, NULL, COT_SHAPE(4), at};
    on_a_tape(&a, a.f, NULL, want[0], want[1]);
    assert_true(signbit(want[0][0]));
    on_a_tape(&a, a.f, p, got[0], got[1]);
    same_bits(&a, want[1], got[1], "cot_grad_of a call");
    same_bits(&a, want[0], got[0], "cot_backward of a call");
    a.user = p;
    same_in_all_ways(a);
    cot_program_destroy(p);
}

/* The gradient of a maximum reads how many elements have it, which has no derivative itself. */
BODY(largest) { return UNUSED, ys[0] = cot_mul(cot_max(xs[0], COT_ALL), 3), 0; }

static void a_gradient_of_a_call_is_constant_where_a_recorded_one_is(void **state) {
    (void)state;
    static const double at[] = {1, 5, 5, 4};
    const cot_shape     shape = COT_SHAPE(4);
    cot_program        *p = cot_compile(largest, NULL, 1, &(cot_type){COT_F64, shape}, 1, NULL);
    for (int call = 0; call < 2; call++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, shape, at), y, g;
        assert_int_equal((call ? called : largest)(1, &x, 1, &y, p), 0);
        cot_grad_of(y, 1, &x, &g);
        assert_string_equal(cot_tape_message(t), "");
        assert_false(cot_requires_grad(g));
        cot_tape_destroy(t);
    }
    cot_program_destroy(p);
}

/* ---- without elements ------------------------------------------------------------------------ */

BODY(nothing_of) { return UNUSED, ys[0] = cot_slice(cot_neg(xs[0]), 0, 1, 1, 1), 0; }
BODY(nothing_and_itself) {
    UNUSED;
    ys[0] = xs[0];
    return nothing_of(n, xs, 1, ys + 1, user);
}
typedef enum hidden { OPEN, IN_A_CHECKPOINT, IN_A_SCAN, IN_A_CALL } hidden;
typedef struct emptied { hidden how; cot_program *p; } emptied;
BODY(sum_of_nothing) {
    UNUSED;
    const emptied *e = user;
    cot_var        x = cot_mul(xs[0], 1), y[2];
    switch (e->how) {
    case OPEN: nothing_of(1, &x, 1, &y[1], NULL); break;
    case IN_A_CHECKPOINT: cot_checkpoint(nothing_of, NULL, 1, &x, 1, &y[1]); break;
    case IN_A_SCAN: cot_scan(nothing_and_itself, NULL, 2, 1, &x, 0, NULL, y, 1, y + 1, NULL); break;
    case IN_A_CALL: cot_program_call(e->p, 1, &x, 1, &y[1]); break;
    }
    ys[0] = cot_sum(y[1], COT_ALL);
    return 0;
}

static void a_zero_of_what_has_no_elements_has_one_sign(void **state) {
    (void)state;
    static const double at[] = {1, 2, 3};
    const cot_shape     shape = COT_SHAPE(3);
    double              want[2][MOST], got[2][MOST];
    cot_program        *p = cot_compile(nothing_of, NULL, 1, &(cot_type){COT_F64, shape}, 1, NULL);
    emptied             e = {OPEN, p};
    asked               a = {sum_of_nothing, &e, shape, at};
    on_a_tape(&a, a.f, a.user, want[0], want[1]);
    assert_true(signbit(want[0][0]));
    for (e.how = OPEN; e.how <= IN_A_CALL; e.how++) {
        on_a_tape(&a, a.f, a.user, got[0], got[1]);
        /* adjoints in bodies begin with zeros, to which others are added */
        if (e.how == OPEN || e.how == IN_A_CALL) same_bits(&a, want[0], got[0], "a call");
        same_in_all_ways(a);
    }
    cot_program_destroy(p);
}

/* ---- tangents -------------------------------------------------------------------------------- */

BODY(outer) { UNUSED; ys[0] = cot_outer(xs[0], xs[1]); return 0; }

typedef struct pulled { cot_fn f; void *user; } pulled;

/* xs: the two operands, and the seed; ys: the value, and the gradient by the second. */
BODY(pull) {
    const pulled *p = user;
    cot_var       g[2];
    (void)n, (void)m;
    if (cot_fn_vjp(p->f, p->user, 2, xs, 1, ys, &xs[2], g) != COT_OK) return 1;
    ys[1] = g[1];
    return 0;
}

/* What stands still has no tangent: zeros in its place are NaN beside a seed that is infinite. */
static void what_stands_still_in_a_call_has_no_tangent(void **state) {
    (void)state;
    const cot_type types[2] = {{COT_I64, COT_SHAPE(2)}, {COT_F64, COT_SHAPE(3)}};
    const double   x[3] = {2.5, -3, 1.5}, dx[3] = {NAN, -3, 0}, seed[6] = {NAN, -104, 88.7, -0.5, -INFINITY, 0.5},
                 dseed[6] = {-745.2, -745.2, -1e38, -1, 1e-310, 1e38};
    cot_program *p = cot_compile(outer, NULL, 2, types, 1, NULL);
    pulled       ways[2] = {{outer, NULL}, {called, p}};
    double       got[2][3];
    for (int way = 0; way < 2; way++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   xs[3] = {cot_data(t, COT_I64, COT_SHAPE(2), (int64_t[]){-128, 256}),
                           cot_tensor(t, COT_F64, COT_SHAPE(3), x), cot_tensor(t, COT_F64, COT_SHAPE(2, 3), seed)};
        cot_var   dxs[3] = {COT_NONE, cot_data(t, COT_F64, COT_SHAPE(3), dx),
                            cot_data(t, COT_F64, COT_SHAPE(2, 3), dseed)}, ys[2], d[2];
        cot_fn_jvp(pull, &ways[way], 3, xs, dxs, 2, ys, d);
        cot_read(d[1], got[way], 3);
        assert_ok(t);
        cot_tape_destroy(t);
    }
    for (int k = 0; k < 3; k++) {
        assert_true(isfinite(got[0][k]));
        assert_memory_equal(&got[0][k], &got[1][k], sizeof *got[0]);
    }
    cot_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_carried_value_that_nobody_reads_has_no_adjoint),
        cmocka_unit_test(an_initial_value_that_no_result_needs_has_no_adjoint),
        cmocka_unit_test(what_only_an_unread_result_of_an_inner_loop_needs_has_no_adjoint),
        cmocka_unit_test(a_value_that_a_call_gives_out_several_times_is_one_value),
        cmocka_unit_test(an_operand_that_no_result_of_a_call_needs_has_no_adjoint),
        cmocka_unit_test(a_gradient_of_a_call_is_constant_where_a_recorded_one_is),
        cmocka_unit_test(a_zero_of_what_has_no_elements_has_one_sign),
        cmocka_unit_test(what_stands_still_in_a_call_has_no_tangent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
