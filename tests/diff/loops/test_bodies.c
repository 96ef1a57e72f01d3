/* test_bodies.c: bodies at their limits: many captures, many states in files, carried values that
 * change places, failed bodies, lists that are read and written at once. */
#define _GNU_SOURCE
#include "rules/structural_ids.h"
#include "support/body_test.h"
#include "support/nameless.h"
#include "support/tape_test.h"

#include <math.h>
#include <sys/resource.h>

#include "diff/loops/loop.h"
#include "tape/tape.h"

/* ---- files ----------------------------------------------------------------------------------- */

BODY(sine) { UNUSED; ys[0] = cot_sin(xs[0]); return 0; }

/* A rewind gives the room in the file back. */
static void many_small_states_lie_in_one_file(void **state) {
    (void)state;
    int       steps = test_small() ? 2000 : 100000;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), spilled, kept;
    cot_mark  mark = cot_tape_mark(t);
    int64_t   bytes;
    for (int round = 0; round < 2; round++) {
        cot_scan(sine, NULL, steps, 1, &x, 0, NULL, &spilled, 0, NULL,
                 &(cot_loop_options){.states = steps, .spill = "/tmp"});
        assert_ok(t);
        assert_int_equal(nameless_files(&bytes), 1);
        assert_in_range(bytes, 8 * (int64_t)steps, 2 * 8 * (int64_t)steps + (1 << 16));
        cot_backward(spilled);
        assert_ok(t);
        double by_file = cot_grad_value(x);
        cot_zero_grad(x);
        cot_scan(sine, NULL, steps, 1, &x, 0, NULL, &kept, 0, NULL, &(cot_loop_options){.states = steps});
        cot_backward(kept);
        assert_ok(t);
        assert_true(by_file != 0 && by_file == cot_grad_value(x));
        cot_zero_grad(x);
        cot_tape_rewind(t, mark);
        assert_int_equal(nameless_files(&bytes), 1);
        assert_int_equal(bytes, 0);
    }
    cot_tape_destroy(t);
    assert_int_equal(nameless_files(&bytes), 0);
}

/* Tensors of all sizes beside each other, also under the bound, where memory is used again. */
BODY(rotate) {
    UNUSED;
    ys[0] = cot_tanh(cot_add(xs[1], 0.1));
    ys[1] = cot_mul(xs[0], cot_index(xs[2], 0, 0));
    ys[2] = cot_sin(xs[2]);
    return 0;
}

static void states_in_files_keep_their_values(void **state) {
    (void)state;
    double start[5] = {0.3, -0.2, 0.9, 0.4, -0.7}, grads[2][15];
    for (int kept = 1; kept < 40; kept += 6) {
        for (int file = 0; file < 2; file++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x[3], y[3];
            for (int k = 0; k < 3; k++) x[k] = cot_tensor(t, COT_F64, COT_SHAPE(5), start);
            cot_loop_options options = {.states = kept, .spill = file ? "/tmp" : NULL};
            cot_scan(rotate, NULL, 37, 3, x, 0, NULL, y, 0, NULL, &options);
            cot_backward(cot_sum(cot_add(cot_square(y[0]), cot_mul(y[1], y[2])), COT_ALL));
            assert_ok(t);
            for (int k = 0; k < 3; k++) cot_read(cot_grad(x[k]), grads[file] + 5 * k, 5);
            assert_ok(t);
            cot_tape_destroy(t);
        }
        assert_memory_equal(grads[0], grads[1], sizeof grads[0]);
    }
}

/* A limit on files is an error, not the end of the process. */
static void files_that_cannot_be_made_are_an_error(void **state) {
    (void)state;
    struct rlimit before, small;
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       x = cot_tensor(t, COT_F64, COT_SHAPE(300), NULL), y;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    cot_scan(sine, NULL, 40, 1, &x, 0, NULL, &y, 0, NULL, &(cot_loop_options){.spill = "/tmp"});
    small.rlim_cur = 40 * 2432;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_error(t, COT_MEMORY, "[scan] there is no room for 2432 bytes in a file in /tmp: File too large");
    cot_tape_clear_error(t);
    cot_scan(sine, NULL, 40, 1, &x, 0, NULL, &y, 0, NULL, &(cot_loop_options){.spill = "/tmp"});
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void states_that_cannot_be_written_or_read_are_an_error(void **state) {
    (void)state;
    for (int way = 0; way < 2; way++) {
        cot_tape *t = cot_tape_create(NULL);
        double    ones[300];
        for (int k = 0; k < 300; k++) ones[k] = 1;
        cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(300), ones), y;
        cot_scan(sine, NULL, 40, 1, &x, 0, NULL, &y, 0, NULL, &(cot_loop_options){.spill = "/tmp"});
        cot_mark mark = cot_tape_mark(t);
        for (int k = 0; k < 2; k++) { /* the second time in the room of the first */
            cot_tape_rewind(t, mark);
            if (k && way == 0) nameless_file_fails();
            cot_scan(sine, NULL, 10, 1, &x, 0, NULL, &y, 0, NULL, &(cot_loop_options){.spill = "/tmp"});
        }
        if (way == 1) nameless_file_fails(), cot_backward(cot_sum(y, COT_ALL));
        assert_error(t, COT_MEMORY,
                     way ? "[backward] a state of 2432 bytes could not be read back from a file in /tmp: its checksum "
                           "differs"
                         : "[scan] a state of 2432 bytes could not be written to a file in /tmp: No space left on "
                           "device");
        cot_tape_destroy(t);
    }
}

/* `states` of them, and the one before the last step. */
static void no_more_states_are_kept_than_said(void **state) {
    (void)state;
    for (int states = 1; states < 9; states++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(9), NULL), y;
        uint32_t  before = t->storages.count;
        cot_scan(sine, NULL, 20, 1, &x, 0, NULL, &y, 0, NULL, &(cot_loop_options){.states = states});
        cot_backward(cot_sum(y, COT_ALL));
        assert_ok(t);
        int64_t kept = 0;
        for (uint32_t k = before; k < t->storages.count; k++) { /* small ones share a storage */
            const cot__storage *s = t->storages.list[k];
            kept += s->bytes % 128 || s->borrowed ? 0 : (int64_t)s->bytes / 128;
        }
        assert_int_equal(kept, states + 1);
        cot_tape_destroy(t);
    }
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), y;
    cot_scan(sine, NULL, 4000, 1, &x, 0, NULL, &y, 0, NULL, &(cot_loop_options){.states = 4000});
    cot_backward(y);
    assert_ok(t);
    /* as the header says, and a tape */
    assert_in_range(cot_tape_bytes(t), 4000 * 8, 4000 * (8 + 96) + 65536);
    cot_tape_destroy(t);
}

/* ---- captures -------------------------------------------------------------------------------- */

typedef struct many { int n; cot_var *w; } many;

BODY(adds_many) {
    UNUSED;
    many *a = user;
    ys[0] = xs[0];
    for (int k = 0; k < a->n; k++) ys[0] = cot_add(ys[0], cot_mul(a->w[k], a->w[a->n - 1 - k]));
    return 0;
}

/* Each once, whatever their number, with its own gradient, in numbers and recorded. A search
 * through the list of them would take minutes. */
static void a_body_may_use_many_values_from_outside(void **state) {
    (void)state;
    int       n = test_small() ? 4000 : 200000;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 1), y, *w = malloc(2 * (size_t)n * sizeof *w), *g = w + n;
    for (int k = 0; k < n; k++) w[k] = cot_scalar(t, k + 1);
    cot_scan(adds_many, &(many){n, w}, 3, 1, &x, 0, NULL, &y, 0, NULL, NULL);
    assert_ok(t);
    for (uint32_t i = t->count; i-- > 0;)
        if (t->nodes[i].op == OP_loop) {
            const cot__loop *l = t->nodes[i].extra.attr->pointer;
            assert_int_equal(l->body[0]->captures, n);
            break;
        }
    cot_backward(y);
    cot_grad_of(y, n, w, g);
    assert_ok(t);
    for (int k = 0; k < n; k++) {
        assert_true(cot_grad_value(w[k]) == 6.0 * (n - k));
        assert_true(cot_value(g[k]) == 6.0 * (n - k));
    }
    free(w);
    cot_tape_destroy(t);
}

/* ---- what bodies hand on --------------------------------------------------------------------- */

BODY(swap_and_shift) {
    UNUSED;
    ys[0] = xs[1];
    ys[1] = cot_flip(xs[0], COT_AXES(0));
    ys[2] = cot_mul(xs[2], cot_sum(cot_mul(xs[0], *(cot_var *)user), COT_ALL));
    return 0;
}

/* Carried values that are others of the step before, or views of them: a state is not written while
 * it is read. */
static void carried_values_may_change_places(void **state) {
    (void)state;
    for (int kept = 1; kept < 8; kept += 3) {
        cot_tape *t = cot_tape_create(NULL);
        double    a[3] = {1, 2, 3}, b[3] = {10, 20, 30}, weights[3] = {1, 0, 0}, back[3], again[3];
        cot_var   x[3] = {cot_tensor(t, COT_F64, COT_SHAPE(3), a), cot_tensor(t, COT_F64, COT_SHAPE(3), b),
                          cot_scalar(t, 1)};
        cot_var   y[3], g[2];
        cot_var   w = cot_data(t, COT_F64, COT_SHAPE(3), weights);
        cot_scan(swap_and_shift, &w, 7, 3, x, 0, NULL, y, 0, NULL, &(cot_loop_options){.states = kept});
        assert_ok(t);
        /* the first of a, b, flip a, flip b, a, b, flip a: 1 · 10 · 3 · 30 · 1 · 10 · 3 */
        assert_true(cot_value(y[2]) == 27000);
        cot_read(y[0], back, 3);
        assert_true(back[0] == 30 && back[1] == 20 && back[2] == 10);
        cot_read(y[1], back, 3);
        assert_true(back[0] == 1 && back[1] == 2 && back[2] == 3);
        cot_backward(y[2]);
        cot_grad_of(y[2], 2, x, g);
        assert_ok(t);
        cot_read(cot_grad(x[0]), back, 3);
        cot_read(g[0], again, 3);
        assert_true(back[0] == 54000 && back[1] == 0 && back[2] == 18000); /* a₀² a₂² b₀² b₂ */
        assert_memory_equal(back, again, sizeof back);
        cot_read(cot_grad(x[1]), back, 3);
        cot_read(g[1], again, 3);
        assert_true(back[0] == 5400 && back[1] == 0 && back[2] == 900);
        assert_memory_equal(back, again, sizeof back);
        cot_tape_destroy(t);
    }
}

BODY(below_hundred) { UNUSED; ys[0] = cot_less(xs[0], 100.0); return 0; }
BODY(doubles) { UNUSED; ys[0] = cot_mul(xs[0], 2.0); return 0; }
BODY(minus_two) { UNUSED; ys[0] = cot_sub(cot_square(xs[0]), 4.0); return 0; }
BODY(three_times) { UNUSED; ys[0] = cot_mul(xs[0], 3.0); return 0; }

/* A loop, a root and a linear solve of constants alone: while the body is recorded their values are
 * examples. */
BODY(on_constants) {
    UNUSED;
    double   *starts = user;
    cot_tape *t = xs[0].tape;
    cot_var   c = cot_data(t, COT_F64, COT_SCALAR, &starts[0]), grown;
    cot_var   x0 = cot_data(t, COT_F64, COT_SCALAR, &starts[1]), six = cot_data(t, COT_F64, COT_SHAPE(1), &starts[2]);
    cot_while(below_hundred, doubles, NULL, 1, &c, &grown, NULL);
    cot_var two    = cot_root(minus_two, NULL, NULL, x0, 0, NULL, NULL),
            solved = cot_linear_solve(three_times, NULL, six, NULL);
    ys[0] = cot_mul(xs[0], cot_add(cot_add(grown, two), cot_index(solved, 0, 0)));
    return 0;
}

static void what_bodies_solve_is_solved_when_they_are_played(void **state) {
    (void)state;
    double    starts[3] = {1, 3, 6};
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), y, z, both = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2});
    cot_scan(on_constants, starts, 2, 1, &x, 0, NULL, &y, 0, NULL, NULL);
    cot_backward(y);
    cot_vmap(on_constants, starts, 1, &both, NULL, 1, &z, NULL);
    assert_ok(t);
    /* 128 + 2 + 2 */
    assert_true(fabs(cot_value(y) - 0.5 * 132 * 132) < 1e-9 && fabs(cot_grad_value(x) - 132 * 132) < 1e-9);
    double out[2];
    cot_read(z, out, 2);
    assert_ok(t);
    /* Newton's method ends within 1e-12 of its root */
    assert_true(fabs(out[0] - 132) < 1e-9 && fabs(out[1] - 264) < 1e-9);
    cot_tape_destroy(t);
}

BODY(partly_fixed) {
    UNUSED;
    cot_tape *t = xs[0].tape;
    cot_no_grad_open(t);
    cot_var c = cot_square(xs[0]);
    cot_no_grad_close(t);
    ys[0] = cot_add(cot_mul(xs[0], 3.0), c);
    return 0;
}

/* A part of a body that has no gradient has none when it is played: d(3x + [x²]) = 3 at each
 * step. */
static void no_grad_scopes_of_a_body_hold_when_it_is_played(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    out[2];
    cot_var   x = cot_scalar(t, 0.5), y, g, both = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), z;
    cot_scan(partly_fixed, NULL, 4, 1, &x, 0, NULL, &y, 0, NULL, NULL);
    cot_backward(y);
    cot_grad_of(y, 1, &x, &g);
    cot_var dy = cot_jvp(y, 1, &x, (cot_var[]){cot_number(1)});
    assert_ok(t);
    assert_true(cot_grad_value(x) == 81 && cot_value(g) == 81 && cot_value(dy) == 81);
    cot_checkpoint(partly_fixed, NULL, 1, &x, 1, &y);
    cot_zero_grad(x);
    cot_backward(y);
    assert_true(cot_grad_value(x) == 3);
    cot_vmap(partly_fixed, NULL, 1, &both, NULL, 1, &z, NULL);
    cot_backward(cot_sum(z, COT_ALL));
    cot_read(cot_grad(both), out, 2);
    assert_ok(t);
    assert_true(out[0] == 3 && out[1] == 3);
    cot_tape_destroy(t);
}

/* Nothing is an input: all comes from outside. */
BODY(outer_only) { UNUSED; ys[0] = cot_square(*(cot_var *)user); return 0; }
BODY(outer_other) { UNUSED; ys[0] = cot_mul(*(cot_var *)user, 5.0); return 0; }

static void bodies_without_inputs_have_derivatives(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 3), y, g, one = cot_number(1);
    for (int choice = 0; choice < 2; choice++) {
        cot_cond(cot_data(t, COT_BOOL, COT_SCALAR, &(bool){choice}), outer_only, outer_other, &x, 0, NULL, 1, &y);
        cot_var dy = cot_jvp(y, 1, &x, &one);
        cot_grad_of(y, 1, &x, &g);
        assert_ok(t);
        assert_true(cot_value(y) == (choice ? 9 : 15) && cot_value(dy) == (choice ? 6 : 5) &&
                    cot_value(g) == (choice ? 6 : 5));
    }
    cot_tape_destroy(t);
}

/* A choice that has a derivative by its dtype, and is read by the branches too. Nothing but a
 * number chooses otherwise. */
typedef struct choosing { bool by_truth; int states; cot_var by; } choosing;
BODY(sine_of) { UNUSED; ys[0] = cot_mul(cot_sin(xs[0]), *(cot_var *)user); return 0; }
BODY(square_of) { UNUSED; ys[0] = cot_mul(cot_square(xs[0]), cot_add(*(cot_var *)user, 0.5)); return 0; }
static cot_var chosen(const choosing *q, cot_var x, cot_var by) {
    cot_var y, choice = q->by_truth ? cot_not_equal(by, 0.0) : by;
    cot_cond(choice, sine_of, square_of, &by, 1, &x, 1, &y);
    return y;
}
BODY(choose_again) { UNUSED; const choosing *q = user; ys[0] = chosen(q, xs[1], q->by); return 0; }
static cot_var often_chosen(choosing q, cot_var x, cot_var by) {
    cot_var y;
    q.by = by;
    if (q.states < 0) return cot_sum(chosen(&q, x, by), COT_ALL);
    cot_fori(choose_again, &q, 0, 5, 1, &x, &y, &(cot_loop_options){.states = q.states});
    return cot_sum(y, COT_ALL);
}

/* Gradients, gradients of their squares, and what a sweep gives. */
static void derive_chosen(choosing q, double by, double to[12]) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){0.3, 0.7, -1.1}), cot_scalar(t, by)};
    cot_var   y = often_chosen(q, xs[0], xs[1]), g[2], h[2];
    cot_grad_of(y, 2, xs, g);
    cot_grad_of(cot_add(cot_sum(cot_square(g[0]), COT_ALL), cot_mul(g[1], xs[1])), 2, xs, h);
    cot_backward(y);
    cot_read(g[0], to, 3);
    to[3] = cot_value(g[1]);
    cot_read(h[0], to + 4, 3);
    to[7] = cot_value(h[1]);
    cot_read_grad(xs[0], to + 8, 3);
    to[11] = cot_grad_value(xs[1]);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void a_choice_may_be_a_float_that_others_read(void **state) {
    (void)state;
    for (int states = -1; states < 3; states++)
        for (int k = 0; k < 2; k++) {
            double want[12], got[12];
            derive_chosen((choosing){.by_truth = true, .states = states}, k * 0.75, want);
            derive_chosen((choosing){.states = states}, k * 0.75, got);
            assert_memory_equal(want, got, sizeof got);
        }
}

/* Then it alone may be what moves. */
BODY(one) { UNUSED; ys[0] = cot_constant(xs[0].tape, 1); return 0; }
BODY(two) { UNUSED; ys[0] = cot_constant(xs[0].tape, 2); return 0; }

static void a_choice_alone_has_a_gradient_of_zero(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   by = cot_scalar(t, 3), y, g, c = cot_constant(t, 1);
    cot_cond(by, one, two, NULL, 1, &c, 1, &y);
    cot_grad_of(cot_mul(y, by), 1, &by, &g);
    assert_ok(t);
    assert_true(cot_value(g) == 1);
    cot_tape_destroy(t);
}

/* ---- after a failure ------------------------------------------------------------------------- */

BODY(leaks_and_fails) { UNUSED; *(cot_var *)user = cot_sin(xs[0]); return 7; }

static void nothing_of_a_failed_body_is_left(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), v = cot_tensor(t, COT_F64, COT_SHAPE(2), NULL), y, leaked[3];
    cot_scan(leaks_and_fails, &leaked[0], 4, 1, &x, 0, NULL, &y, 0, NULL, NULL);
    cot_tape_clear_error(t);
    cot_checkpoint(leaks_and_fails, &leaked[1], 1, &x, 1, &y);
    cot_tape_clear_error(t);
    cot_vmap(leaks_and_fails, &leaked[2], 1, &v, NULL, 1, &y, NULL);
    cot_tape_clear_error(t);
    for (int k = 0; k < 3; k++) {
        assert_false(cot_is_valid(leaked[k]));
        assert_true(isnan(cot_value(leaked[k])));
        assert_error(t, COT_VAR,
                     "[value] the operand belongs to the body of a loop, vmap or checkpoint that is over; a body "
                     "hands values out as its results");
        cot_tape_clear_error(t);
    }
    y = cot_sin(x);
    cot_backward(y);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- lists that are read and filled ---------------------------------------------------------- */

BODY(squares) { UNUSED; for (int k = 0; k < m; k++) ys[k] = cot_square(xs[k]); return 0; }
BODY(cube) { UNUSED; ys[0] = cot_mul(cot_square(xs[0]), xs[0]); return 0; }

static void results_may_go_where_inputs_are(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_var     x = cot_scalar(t, 3), a, b, v = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){2, 5});
    cot_linear *l;
    double      out[2];
    assert_int_equal(cot_vmap(squares, NULL, 1, &v, NULL, 1, &v, NULL), COT_OK);
    cot_read(v, out, 2);
    assert_true(out[0] == 4 && out[1] == 25);

    /* ys = xs, grads = seeds */
    cot_fn_vjp(squares, NULL, 1, (a = x, &a), 1, &a, (b = cot_number(2), &b), &b);
    assert_true(cot_value(a) == 9 && cot_value(b) == 12);
    /* grads = xs, ys = seeds */
    cot_fn_vjp(squares, NULL, 1, (a = x, &a), 1, (b = cot_number(2), &b), &b, &a);
    assert_true(cot_value(a) == 12 && cot_value(b) == 9);
    cot_fn_jvp(squares, NULL, 1, (a = x, &a), (b = cot_number(2), &b), 1, &a, &b);
    assert_true(cot_value(a) == 9 && cot_value(b) == 12);
    cot_value_and_grad(cube, NULL, 1, (a = x, &a), &b, &a);
    assert_true(cot_value(a) == 27 && cot_value(b) == 27);
    cot_fn_jacobian(cube, NULL, 1, (a = x, &a), 1, &b, COT_AUTO, &a);
    assert_true(cot_value(a) == 27 && cot_value(b) == 27);
    cot_fn_hessian(cube, NULL, 1, (a = x, &a), &b, &a);
    assert_true(cot_value(a) == 18 && cot_value(b) == 27);
    cot_linearize(cube, NULL, 1, (a = x, &a), 1, &a, &l);
    assert_true(cot_value(a) == 27);
    cot_linear_jvp(l, (b = cot_number(2), &b), &b);
    assert_true(cot_value(b) == 54);
    cot_linear_vjp(l, (b = cot_number(3), &b), &b);
    assert_true(cot_value(b) == 81);
    b = cot_square(x);
    cot_grad_of(b, 1, (a = x, &a), &a);
    assert_true(cot_value(a) == 6);
    assert_ok(t);

    /* a scalar has no batch: after an error it is invalid */
    cot_vmap(leaks_and_fails, &b, 1, (a = x, &a), NULL, 1, &a, NULL);
    assert_false(cot_is_valid(a));
    cot_tape_clear_error(t);
    cot_fn_vjp(squares, NULL, 1, (a = x, &a), 1, &a, &v, &b); /* the seed has another shape */
    assert_int_equal(cot_tape_status(t), COT_SHAPE);
    assert_false(cot_is_valid(b));
    cot_tape_destroy(t);
}

/* ---- constants ------------------------------------------------------------------------------- */

/* p(x) = 2 x³ - x + 3, step by step at x, x/2, x/4, …: the example of cotangent.h. Numbers alone
 * come through `user`. */
BODY(horner) {
    const double *c = user;
    cot_var       sum = cot_full_like(xs[0], 0);
    (void)n, (void)m;
    for (int k = 0; k < 4; k++) sum = cot_fma(sum, xs[0], c[k]);
    ys[0] = cot_mul(0.5, xs[0]);
    ys[1] = sum;
    return 0;
}

/* A body that joins its value and a number on the same tape. */
BODY(with_one) {
    UNUSED;
    cot_var both[2] = {cot_reshape(xs[0], COT_SHAPE(1)),
                       cot_reshape(cot_constant(cot_tape_of(xs[0]), 3), COT_SHAPE(1))};
    ys[0] = cot_sum(cot_square(cot_concat(2, both, 0)), COT_ALL);
    return 0;
}

static double p_of(double x) { return 2 * x * x * x - x + 3; }

static void bodies_make_constants_like_what_they_are_given(void **state) {
    (void)state;
    static const double c[] = {2, 0, -1, 3};
    for (int d = COT_F64; d <= COT_F16; d++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var x = cot_cast(cot_tensor(t, COT_F64, COT_SHAPE(2, 2), (double[]){0, 1, 2, -2}), (cot_dtype)d), last, ys;
        double    have[12], g[4];
        cot_retain_grad(x);
        cot_scan(horner, (void *)(uintptr_t)c, 3, 1, &x, 0, NULL, &last, 1, &ys, NULL);
        assert_int_equal(cot_dtype_of(ys), d);
        cot_read(ys, have, 12);
        /* all are exact */
        for (int k = 0; k < 12; k++) assert_true(have[k] == p_of((double[]){0, 1, 2, -2}[k % 4] / (1 << k / 4)));
        assert_int_equal(cot_backward(cot_sum(cot_cast(ys, COT_F64), COT_ALL)), COT_OK);
        cot_read_grad(x, g, 4);
        for (int k = 0; k < 4; k++) {
            /* Σ over steps of p'(x/2^s)/2^s, p'(x) = 6 x² - 1: exact too */
            double at = (double[]){0, 1, 2, -2}[k], want = 0;
            for (int s = 0; s < 3; s++) want += (6 * (at / (1 << s)) * (at / (1 << s)) - 1) / (1 << s);
            assert_true(g[k] == want);
        }
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

/* Under cot_vmap a constant like an example has the shape of the example; an empty batch has
 * constants, too. */
static void constants_in_batches_have_the_shape_of_an_example(void **state) {
    (void)state;
    static const double c[] = {2, 0, -1, 3};
    cot_tape           *t = cot_tape_create(NULL);
    cot_var             x = cot_tensor(t, COT_F64, COT_SHAPE(3, 2), (double[]){0, 1, 2, 3, 4, 5}), ys[2], none[2];
    double              have[6], sums[3];
    assert_int_equal(cot_vmap(horner, (void *)(uintptr_t)c, 1, &x, NULL, 2, ys, NULL), COT_OK);
    cot_read(ys[1], have, 6);
    for (int k = 0; k < 6; k++) assert_true(have[k] == p_of(k));
    cot_var empty = cot_zeros(t, COT_F64, COT_SHAPE(0, 2)), column = cot_slice(x, 1, 0, 1, 1);
    assert_int_equal(cot_vmap(horner, (void *)(uintptr_t)c, 1, &empty, NULL, 2, none, NULL), COT_OK);
    assert_int_equal(cot_size(none[1]), 0);
    assert_int_equal(cot_vmap(with_one, NULL, 1, &column, NULL, 1, ys, NULL), COT_OK);
    cot_read(ys[0], sums, 3);
    for (int k = 0; k < 3; k++) assert_true(sums[k] == 4 * k * k + 9);
    assert_ok(t);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_small_states_lie_in_one_file),
        cmocka_unit_test(states_in_files_keep_their_values),
        cmocka_unit_test(files_that_cannot_be_made_are_an_error),
        cmocka_unit_test(states_that_cannot_be_written_or_read_are_an_error),
        cmocka_unit_test(no_more_states_are_kept_than_said),
        cmocka_unit_test(a_body_may_use_many_values_from_outside),
        cmocka_unit_test(carried_values_may_change_places),
        cmocka_unit_test(what_bodies_solve_is_solved_when_they_are_played),
        cmocka_unit_test(no_grad_scopes_of_a_body_hold_when_it_is_played),
        cmocka_unit_test(bodies_without_inputs_have_derivatives),
        cmocka_unit_test(a_choice_may_be_a_float_that_others_read),
        cmocka_unit_test(a_choice_alone_has_a_gradient_of_zero),
        cmocka_unit_test(nothing_of_a_failed_body_is_left),
        cmocka_unit_test(results_may_go_where_inputs_are),
        cmocka_unit_test(bodies_make_constants_like_what_they_are_given),
        cmocka_unit_test(constants_in_batches_have_the_shape_of_an_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
