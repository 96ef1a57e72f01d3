/* Loops, conditions and checkpoints in compiled functions: the bits of the same function on a tape,
 * also through a file, through the passes, and as a call; the same errors; no memory in a run. */
#include "compile/compile.h"
#include "compile/runs/run_memory_test.h"
#include "support/body_test.h"
#include "support/support.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

#include <string.h>
#include <unistd.h>

/* ---- functions of a matrix, a vector and a number -------------------------------------------- */

enum { INPUTS = 3, ELEMENTS = 9 + 3 + 1 };
static const cot_type TYPES[INPUTS] = {{COT_F64, {2, {3, 3}}}, {COT_F64, {1, {3}}}, {COT_F64, {0, {0}}}};

static cot_var total(cot_var x) { return cot_sum(cot_cast(x, COT_F64), COT_ALL); }

/* A captured matrix, a slice, the state handed on to another place, an integer, and a value given
 * out. */
BODY(step) {
    UNUSED;
    ys[0] = cot_tanh(cot_add(cot_matmul(*(cot_var *)user, xs[1]), xs[3]));
    ys[1] = xs[0];
    ys[2] = cot_add(xs[2], (int64_t)3000000000000000001);
    ys[3] = cot_mul(xs[1], cot_sum(xs[0], COT_ALL));
    return 0;
}
static cot_var scanned(const cot_var *xs, bool reverse) {
    cot_tape *t = xs[0].tape;
    cot_var   init[3] = {xs[1], cot_sin(xs[1]), cot_data(t, COT_I64, COT_SCALAR, (int64_t[]){7})};
    cot_var   w = cot_transpose(xs[0]), final[3], ys;
    cot_scan(step, &w, -1, 3, init, 1, &xs[0], final, 1, &ys, &(cot_loop_options){.reverse = reverse});
    return cot_add(cot_add(total(final[0]), total(cot_mul(final[1], xs[2]))),
                   cot_add(total(cot_mul(ys, ys)), cot_mul(total(final[2]), 1e-20)));
}
BODY(scans) { UNUSED; ys[0] = scanned(xs, false); return 0; }
BODY(scans_back) { UNUSED; ys[0] = scanned(xs, true); return 0; }

BODY(inner) { UNUSED; ys[0] = cot_mul(xs[1], cot_add(cot_cast(xs[0], COT_F64), *(cot_var *)user)); return 0; }
BODY(outer) { UNUSED; return cot_fori(inner, user, 1, 4, 1, xs + 1, ys, NULL) != COT_OK; }
BODY(nests) {
    UNUSED;
    cot_var c = cot_sin(xs[2]), start = cot_mul(xs[1], 0.1), y;
    cot_fori(outer, &c, 0, 3, 1, &start, &y, NULL);
    ys[0] = total(y);
    return 0;
}

BODY(grows) { UNUSED; ys[0] = cot_less(cot_sum(xs[0], COT_ALL), *(cot_var *)user); return 0; }
/* A captured value and a constant of its own, whose squares the way back reads. */
BODY(rises) {
    UNUSED;
    cot_var own = cot_data(xs[0].tape, COT_F64, COT_SHAPE(3), (double[]){1.1, 1.2, 1.3});
    ys[0] = cot_add(cot_mul(xs[0], cot_mul(own, cot_sin(own))), cot_mul(cot_square(*(cot_var *)user), 0.01));
    ys[1] = cot_add(xs[1], 1);
    return 0;
}
static cot_var risen(const cot_var *xs, int states) {
    cot_var c = cot_add(cot_mul(xs[2], xs[2]), 20.0), y[2];
    cot_var init[2] = {cot_exp(xs[1]), cot_data(xs[0].tape, COT_I64, COT_SCALAR, (int64_t[]){0})};
    cot_while(grows, rises, &c, 2, init, y, &(cot_loop_options){.states = states});
    return cot_add(total(y[0]), total(y[1]));
}
BODY(goes_on) { UNUSED; ys[0] = risen(xs, 0); return 0; }
BODY(goes_on_by_two) { UNUSED; ys[0] = risen(xs, 2); return 0; }

/* A cot_while in each step of a loop, and a condition. */
BODY(either) { UNUSED; ys[0] = cot_mul(xs[0], 0.5); return 0; }
BODY(other) { UNUSED; ys[0] = cot_sin(xs[0]); return 0; }
BODY(mixed_step) {
    UNUSED;
    cot_var y;
    cot_cond(cot_greater(cot_sum(xs[1], COT_ALL), 1.0), either, other, NULL, 1, &xs[1], 1, &y);
    ys[0] = cot_mul(cot_tanh(risen((cot_var[]){xs[1], y, *(cot_var *)user}, 3)), cot_add(y, 0.3));
    return 0;
}
BODY(mixes) {
    UNUSED;
    cot_var c = xs[2], y;
    cot_fori(mixed_step, &c, 0, 3, 1, &xs[1], &y, NULL);
    ys[0] = total(y);
    return 0;
}

BODY(then) { UNUSED; ys[0] = cot_mul(xs[0], *(cot_var *)user); return 0; }
BODY(otherwise) { UNUSED; ys[0] = cot_exp(xs[0]); return 0; }
BODY(chooses) {
    UNUSED;
    cot_var c = xs[2], y, z;
    cot_cond(cot_greater(xs[2], 0.5), then, otherwise, &c, 1, &xs[1], 1, &y);
    cot_checkpoint(then, &c, 1, &y, 1, &z);
    ys[0] = cot_add(total(y), total(cot_sin(z)));
    return 0;
}

/* By a number that has a derivative, too. */
BODY(chooses_by_a_float) {
    UNUSED;
    cot_var c = xs[2], by = cot_floor(cot_mul(xs[2], 2.0)), y;
    cot_cond(by, then, otherwise, &c, 1, &xs[1], 1, &y);
    cot_cond(c, then, otherwise, &c, 1, &y, 1, &y);
    ys[0] = cot_add(total(y), total(cot_sin(xs[0])));
    return 0;
}

static const struct { const char *name; cot_fn f; bool gradient; } functions[] = {
    {"scan", scans, true}, {"scan in reverse", scans_back, true}, {"loops in loops", nests, true},
    {"while", goes_on, true}, {"while that keeps two states", goes_on_by_two, true}, {"all of them", mixes, true},
    {"cond and checkpoint", chooses, true}, {"cond by a float", chooses_by_a_float, true},
};

typedef struct which { cot_fn f; bool gradient; } which;

/* The value, and its gradients by all inputs. */
BODY(both) {
    const which *w = user;
    (void)m;
    if (!w->gradient) return w->f(n, xs, 1, ys, NULL);
    return cot_value_and_grad(w->f, NULL, n, xs, &ys[0], ys + 1) != COT_OK;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void point(int round, double x[ELEMENTS]) {
    for (int k = 0; k < ELEMENTS; k++) x[k] = 0.4 * sin(1.3 * k + round + 0.2);
    x[12] = round % 2 ? 0.9 : 0.2;
}

static void on_tape(const which *w, const double *x, double *to) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[INPUTS], ys[1 + INPUTS];
    for (int k = 0, at = 0; k < INPUTS; at += (int)cot_size(xs[k++]))
        xs[k] = cot_tensor(t, COT_F64, TYPES[k].shape, x + at);
    assert_int_equal(both(INPUTS, xs, 1 + INPUTS, ys, (void *)(uintptr_t)w), 0);
    cot_read(ys[0], to++, 1);
    for (int k = 0; w->gradient && k < INPUTS; to += cot_size(xs[k++])) cot_read(ys[1 + k], to, cot_size(xs[k]));
    assert_ok(t);
    cot_tape_destroy(t);
}

static void as_program(cot_run *r, const which *w, const double *x, double *to) {
    cot_status s = cot_program_run(r, (const void *[]){x, x + 9, x + 12}, (void *[]){to, to + 1, to + 10, to + 13});
    (void)w;
    assert_string_equal(cot_run_message(r), "");
    assert_int_equal(s, COT_OK);
}

static void compare(cot_program *p, const which *w, const char *name, const char *how) {
    static const int threads[] = {1, 2, 7};
    int              n = w->gradient ? 1 + ELEMENTS : 1;
    assert_string_equal(cot_program_message(p), "");
    cot_run *r = cot_run_create(p);
    assert_string_equal(cot_run_message(r), "");
    for (int round = 0; round < 3; round++) {
        double x[ELEMENTS], want[1 + ELEMENTS], got[1 + ELEMENTS];
        point(round, x);
        cot_set_threads(threads[round]);
        on_tape(w, x, want);
        as_program(r, w, x, got);
        for (int k = 0; k < n; k++)
            if (!test_same(want[k], got[k]))
                fail_msg("%s, %s, output %d: %.17g is not %.17g", name, how, k, got[k], want[k]);
    }
    cot_set_threads(0);
    cot_run_destroy(r);
}

static void programs_with_loops_have_the_bits_of_the_tape(void **state) {
    (void)state;
    for (int k = 0; k < TEST_COUNT(functions); k++)
        for (int how = 0; how < 4; how++) {
            which        w = {functions[k].f, how % 2 && functions[k].gradient};
            cot_program *p = cot_compile(both, &w, INPUTS, TYPES, w.gradient ? 1 + INPUTS : 1,
                                         &(cot_compile_options){.plain = how / 2});
            compare(p, &w, functions[k].name, how / 2 ? "plain" : "optimised");
            cot_program_destroy(p);
        }
}

/* How many loops the program of a loop and its gradient has: there and back; plain, once more there
 * for the states. */
static int loops_of(bool plain) {
    static char  text[1 << 16];
    which        w = {nests, true};
    cot_program *p = cot_compile(both, &w, INPUTS, TYPES, 1 + INPUTS, &(cot_compile_options){.plain = plain});
    FILE        *f = tmpfile();
    int          loops = 0;
    assert_string_equal(cot_program_message(p), "");
    cot_program_print(p, f);
    rewind(f);
    while (fgets(text, sizeof text, f)) loops += text[0] == '%' && strstr(text, "= loop(");
    fclose(f);
    cot_program_destroy(p);
    return loops;
}
static void a_gradient_goes_through_a_loop_once_there(void **state) {
    (void)state;
    assert_int_equal(loops_of(true), 3);
    assert_int_equal(loops_of(false), 2);
}

static void programs_with_loops_go_through_files(void **state) {
    char path[] = "/tmp/cotangent-loops-XXXXXX", why[256];
    int  file = mkstemp(path);
    (void)state;
    assert_true(file >= 0);
    close(file);
    for (int k = 0; k < TEST_COUNT(functions); k++) {
        which        w = {functions[k].f, functions[k].gradient};
        cot_program *p = cot_compile(both, &w, INPUTS, TYPES, w.gradient ? 1 + INPUTS : 1, NULL);
        assert_int_equal(cot_program_save(p, path, why, sizeof why), COT_OK);
        cot_program_destroy(p);
        p = cot_program_load(path, NULL);
        compare(p, &w, functions[k].name, "loaded");
        cot_program_destroy(p);
    }
    unlink(path);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The value by a call of the program of f or by f itself, and its gradients by a sweep; `twice`:
 * the sum of the squares of its gradients instead. */
static void sweep(cot_program *p, cot_fn f, bool twice, const double *x, double *to) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[INPUTS], y;
    for (int k = 0, at = 0; k < INPUTS; at += (int)cot_size(xs[k++]))
        xs[k] = cot_tensor(t, COT_F64, TYPES[k].shape, x + at);
    if (p) cot_program_call(p, INPUTS, xs, 1, &y);
    else f(INPUTS, xs, 1, &y, NULL);
    if (twice) {
        cot_var g[INPUTS];
        cot_grad_of(y, INPUTS, xs, g);
        y = cot_add(total(cot_square(g[0])), cot_add(total(cot_square(g[1])), cot_square(g[2])));
    }
    cot_backward(y);
    cot_read(y, to++, 1);
    for (int k = 0; k < INPUTS; to += cot_size(xs[k++])) cot_read_grad(xs[k], to, cot_size(xs[k]));
    assert_ok(t);
    cot_tape_destroy(t);
}

/* A call adds adjoints up in another order, so some bits differ. */
static void calls_of_programs_with_loops_have_gradients(void **state) {
    (void)state;
    for (int k = 0; k < TEST_COUNT(functions); k++) {
        cot_program *p = cot_compile(functions[k].f, NULL, INPUTS, TYPES, 1, NULL);
        for (int round = 0; round < 4; round++) {
            double x[ELEMENTS], want[1 + ELEMENTS], got[1 + ELEMENTS];
            point(round % 2, x);
            sweep(NULL, functions[k].f, round / 2, x, want);
            sweep(p, NULL, round / 2, x, got);
            for (int i = 0; i < 1 + ELEMENTS; i++)
                if (!(fabs(got[i] - want[i]) <= 1e-12 * (1 + fabs(want[i]))))
                    fail_msg("%s, called, output %d: %.17g is not %.17g", functions[k].name, i, got[i], want[i]);
        }
        cot_program_destroy(p);
    }
}

/* ---- what is recorded again ------------------------------------------------------------------ */

BODY(slope) {
    const which *w = user;
    cot_var      g[INPUTS], y;
    (void)m;
    if (cot_value_and_grad(w->f, NULL, n, xs, &y, g) != COT_OK) return 1;
    ys[0] = cot_add(total(cot_square(g[0])), cot_add(total(cot_square(g[1])), cot_square(g[2])));
    return 0;
}
BODY(slopes) { (void)m; return cot_value_and_grad(slope, user, n, xs, &ys[0], ys + 1) != COT_OK; }

/* A loop whose steps bend, so that it shows in the digits how its second derivative is taken. */
BODY(is_small) {
    UNUSED;
    ys[0] = cot_less(total(cot_square(xs[0])), cot_add(cot_square(*(cot_var *)user), 5.0));
    return 0;
}
BODY(sine) { UNUSED; ys[0] = cot_sin(cot_mul(xs[0], *(cot_var *)user)); return 0; }
BODY(exponential) { UNUSED; ys[0] = cot_mul(cot_exp(xs[0]), *(cot_var *)user); return 0; }
BODY(bends) {
    UNUSED;
    cot_var y;
    cot_cond(cot_greater(total(xs[0]), *(cot_var *)user), sine, exponential, user, 1, xs, 1, &y);
    ys[0] = cot_add(cot_mul(xs[0], 1.7), cot_mul(y, 0.05));
    return 0;
}
BODY(goes_on_bent) {
    UNUSED;
    cot_var c = cot_add(xs[2], 0.5), y;
    cot_while(is_small, bends, &c, 1, &xs[1], &y, NULL);
    ys[0] = total(y);
    return 0;
}

/* A program cannot know how long a cot_while will be, so what it is compared with must not. */
static void second_derivatives_are_what_the_function_gives_again(void **state) {
    (void)state;
    for (int k = 0; k <= TEST_COUNT(functions); k++) {
        which        w = {k < TEST_COUNT(functions) ? functions[k].f : goes_on_bent, true};
        cot_program *p = cot_compile(slopes, &w, INPUTS, TYPES, 1 + INPUTS, &(cot_compile_options){.verify = true});
        cot_run     *r = cot_run_create(p);
        for (int round = 0; round < 4; round++) {
            double x[ELEMENTS], z[1 + ELEMENTS];
            point(round, x);
            as_program(r, &w, x, z);
        }
        cot_run_destroy(r);
        cot_program_destroy(p);
    }
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* The tangent of a checkpoint that only says where a maximum is: a body that reads nothing. */
BODY(places) { UNUSED; ys[0] = cot_cast(cot_argmax(xs[0], COT_AXES(1)), COT_F64); return 0; }
BODY(finds_places) { UNUSED; return cot_checkpoint(places, user, 1, xs, 1, ys) != COT_OK; }
BODY(moves_places) {
    (void)n, (void)m;
    cot_var moved = cot_full_like(xs[0], 1);
    return cot_fn_jvp(finds_places, user, 1, xs, &moved, 1, &ys[0], &ys[1]) != COT_OK;
}

static void a_body_may_read_nothing(void **state) {
    double       x[9] = {1, 5, 2, 9, 4, 4, 0, 1, 2}, want[3] = {1, 0, 2}, place[3], moved[3] = {1, 1, 1};
    cot_program *p = cot_compile(moves_places, NULL, 1, TYPES, 2, NULL);
    (void)state;
    assert_string_equal(cot_program_message(p), "");
    cot_run *r = cot_run_create(p);
    assert_int_equal(cot_program_run(r, (const void *[]){x}, (void *[]){place, moved}), COT_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(place[i] == want[i]);
        assert_true(moved[i] == 0);
    }
    cot_run_destroy(r);
    cot_program_destroy(p);
}

BODY(look_up) { UNUSED; ys[0] = cot_take(*(cot_var *)user, xs[0], 0); return 0; }
BODY(looks_up) {
    UNUSED;
    cot_var table = xs[0];
    return cot_scan(look_up, &table, 5, 1, &xs[1], 0, NULL, ys, 0, NULL, NULL) != COT_OK;
}

static void an_error_names_its_step(void **state) {
    cot_type     types[2] = {{COT_I64, COT_SHAPE(4)}, {COT_I64, COT_SHAPE(1)}};
    cot_program *p = cot_compile(looks_up, NULL, 2, types, 1, NULL);
    cot_run     *r = cot_run_create(p);
    int64_t      next[4] = {1, 2, 7, 0}, first = 0, last;
    (void)state;
    assert_int_equal(cot_program_run(r, (const void *[]){next, &first}, (void *[]){&last}), COT_VALUE);
    assert_string_equal(cot_run_message(r), "[take] indices[0] is 7, out of range for extent 4; values run from -4 to "
                                            "3 (in step 3 of [scan])");
    next[2] = 3;
    assert_int_equal(cot_program_run(r, (const void *[]){next, &first}, (void *[]){&last}), COT_OK);
    assert_int_equal(last, 1);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

BODY(always) { UNUSED; ys[0] = cot_greater(xs[0], -1.0); return 0; }
BODY(adds) { UNUSED; ys[0] = cot_add(xs[0], 1.0); return 0; }
BODY(never_ends) {
    UNUSED;
    return cot_while(always, adds, NULL, 1, xs, ys, &(cot_loop_options){.limit = 10}) != COT_OK;
}

static void a_loop_that_does_not_end_is_refused(void **state) {
    cot_type     type = {COT_F64, COT_SCALAR};
    cot_program *p = cot_compile(never_ends, NULL, 1, &type, 1, NULL);
    cot_run     *r = cot_run_create(p);
    double       x = 1, z;
    (void)state;
    assert_int_equal(cot_program_run(r, (const void *[]){&x}, (void *[]){&z}), COT_LIMIT);
    assert_string_equal(cot_run_message(r), "[while] still going on after 10 steps, the most it was allowed");
    cot_run_destroy(r);
    cot_program_destroy(p);
}

/* Passes drop nothing that has an effect. */
static void what_a_body_may_refuse_is_an_effect(void **state) {
    cot_type     tables[2] = {{COT_I64, COT_SHAPE(4)}, {COT_I64, COT_SHAPE(1)}}, type = {COT_F64, COT_SCALAR};
    cot_program *p[] = {cot_compile(looks_up, NULL, 2, tables, 1, NULL),
                        cot_compile(never_ends, NULL, 1, &type, 1, NULL),
                        cot_compile(scans, NULL, INPUTS, TYPES, 1, NULL)};
    (void)state;
    assert_true(p[0]->source->effects && p[1]->source->effects && !p[2]->source->effects);
    for (int k = 0; k < 3; k++) cot_program_destroy(p[k]);
}

static int scaled_vjp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *gs, cot_var *out, void *user) {
    (void)n, (void)xs, (void)m, (void)ys, (void)user;
    out[0] = gs[0];
    return 0;
}
/* 2 x, whose derivative is 5 if one believes the user. */
static int fails;
static int doubled(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n;
    for (int64_t k = 0; k < y->size; k++) ((double *)y->data)[k] = ((const double *)xs[0].data)[k] * *(double *)user;
    return fails;
}
static int doubled_vjp(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    (void)n, (void)xs, (void)y, (void)user;
    xbars[0] = cot_mul(ybar, 5.0);
    return 0;
}
static const cot_custom doubling = {.name = "doubled", .value = doubled, .vjp = doubled_vjp};
static double           two = 2;
static const cot_fn_rules mine = {.name = "mine", .vjp = scaled_vjp};

/* On a transposed operand, beside a function with a rule, and in a loop. */
BODY(calls_in_loop) { UNUSED; ys[0] = cot_mul(cot_call(&doubling, 1, &xs[1], &two), 0.5); return 0; }
BODY(calls) {
    UNUSED;
    cot_var x = cot_transpose(xs[0]), y = cot_call(&doubling, 1, &x, &two), z, last;
    cot_custom_fn(&mine, adds, NULL, 1, &xs[2], 1, &z);
    cot_fori(calls_in_loop, NULL, 0, 3, 1, &xs[1], &last, NULL);
    ys[0] = cot_add(cot_sum(cot_mul(y, xs[0]), COT_ALL), cot_add(cot_mul(z, z), total(last)));
    return 0;
}

static void functions_of_the_users_bind_a_program_to_this_process(void **state) {
    which        w = {calls, true};
    char         why[256];
    double       x[ELEMENTS], z[1 + ELEMENTS], want[1 + ELEMENTS];
    cot_program *p = cot_compile(both, &w, INPUTS, TYPES, 1 + INPUTS, NULL);
    (void)state;
    compare(p, &w, "functions of the user's", "bound");
    assert_int_equal(cot_program_save(p, "/nowhere", why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[program_save] the operation 'doubled' is bound to this process (it holds an address); a "
                             "program with it cannot be saved");
    cot_run *r = cot_run_create(p);
    fails = 3;
    point(0, x);
    assert_int_equal(cot_program_run(r, (const void *[]){x, x + 9, x + 12}, (void *[]){z, NULL, NULL, NULL}),
                     COT_CUSTOM);
    assert_string_equal(cot_run_message(r), "[doubled] value failed with code 3");
    fails = 0;
    cot_run_destroy(r);
    cot_program_destroy(p);
    p = cot_compile(calls, NULL, INPUTS, TYPES, 1, NULL);
    sweep(NULL, calls, false, x, want);
    sweep(p, NULL, false, x, z);
    for (int k = 0; k < 1 + ELEMENTS; k++) assert_true(fabs(z[k] - want[k]) <= 1e-13 * (1 + fabs(want[k])));
    cot_program_destroy(p);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void every_allocation_may_fail(void **state) {
    which w = {nests, false};
    (void)state;
    for (long at = 1;; at++) {
        counting     c = {.fail_at = at, .fail_for_good = true};
        cot_program *p = cot_compile(both, &w, INPUTS, TYPES, 1,
                                     &(cot_compile_options){.allocator = {counting_alloc, &c}});
        cot_run     *r = cot_run_create(p);
        bool         made = r && cot_run_status(r) == COT_OK;
        if (!made && p) assert_true(cot_program_status(p) == COT_MEMORY || !r || cot_run_status(r) == COT_MEMORY);
        cot_run_destroy(r);
        cot_program_destroy(p);
        assert_int_equal(c.live, 0);
        if (made) break;
    }
}

static void a_run_takes_no_memory(void **state) {
    (void)state;
    for (int k = 0; k < TEST_COUNT(functions); k++) {
        counting     c = {0};
        which        w = {functions[k].f, functions[k].gradient};
        cot_program *p = cot_compile(both, &w, INPUTS, TYPES, w.gradient ? 1 + INPUTS : 1,
                                     &(cot_compile_options){.allocator = {counting_alloc, &c}});
        cot_run     *r = measured_run(functions[k].name, p, &c);
        double       x[ELEMENTS], z[1 + ELEMENTS];
        long         before = c.requests;
        for (int round = 0; round < 3; round++) {
            point(round, x);
            as_program(r, &w, x, z);
        }
        assert_int_equal(c.requests, before);
        cot_run_destroy(r);
        cot_program_destroy(p);
        assert_int_equal(c.live, 0);
    }
}

/* ---- integers -------------------------------------------------------------------------------- */

BODY(one_more) { UNUSED; ys[0] = cot_add(xs[0], cot_integer(1)); return 0; }
BODY(is_below) { UNUSED; ys[0] = cot_less(xs[0], *(cot_var *)user); return 0; }
BODY(three_more) { UNUSED; return cot_scan(one_more, NULL, 3, 1, xs, 0, NULL, ys, 0, NULL, NULL) != COT_OK; }
BODY(up_to) {
    UNUSED;
    cot_var end = xs[1];
    return cot_while(is_below, one_more, &end, 1, xs, ys, NULL) != COT_OK;
}

/* A double has 53 of them: 2^60 + 1 + 3 would be 2^60. */
static void integers_keep_all_their_bits(void **state) {
    (void)state;
    static const cot_fn loops[] = {three_more, up_to};
    const int64_t       x = INT64_C(1) << 60 | 1, end = x + 3;
    const cot_type      types[2] = {{COT_I64, {0, {0}}}, {COT_I64, {0, {0}}}};
    for (int k = 0; k < 2; k++) {
        cot_program *p = cot_compile(loops[k], NULL, 2, types, 1, NULL);
        cot_run     *r = cot_run_create(p);
        int64_t      z = 0;
        assert_int_equal(cot_program_run(r, (const void *[]){&x, &end}, (void *[]){&z}), COT_OK);
        assert_true(z == end);
        cot_tape *t = cot_tape_create(NULL);
        cot_var   y, xs[2] = {cot_data(t, COT_I64, COT_SCALAR, &x), cot_data(t, COT_I64, COT_SCALAR, &end)};
        assert_int_equal(loops[k](2, xs, 1, &y, NULL), 0);
        assert_true(cot_value(cot_sub(y, xs[0])) == 3);
        cot_tape_destroy(t);
        cot_run_destroy(r);
        cot_program_destroy(p);
    }
}

/* A step of the outer loop carries a number and a counter that begins beyond 53 bits; the inner
 * loop counts on until three more have passed, and multiplies by how far it has come. */
static const int64_t far = INT64_C(1) << 60 | 1;
typedef struct counted { cot_var from, end; int states; } counted;
BODY(is_before_end) { UNUSED; ys[0] = cot_less(xs[1], ((const counted *)user)->end); return 0; }
BODY(counts) {
    UNUSED;
    cot_var passed = cot_cast(cot_sub(xs[1], ((const counted *)user)->from), COT_F64);
    ys[0] = cot_sin(cot_mul(xs[0], cot_add(cot_mul(passed, 0.01), 1)));
    ys[1] = cot_add(xs[1], cot_integer(1));
    return 0;
}
BODY(counts_three) {
    UNUSED;
    counted c = {cot_data(xs[0].tape, COT_I64, COT_SCALAR, &far), cot_add(xs[1], cot_integer(3)), *(const int *)user};
    return cot_while(is_before_end, counts, &c, 2, xs, ys, &(cot_loop_options){.states = c.states}) != COT_OK;
}
enum { OUTER = 18 };
BODY(counts_far) {
    UNUSED;
    cot_var init[2] = {xs[0], cot_data(xs[0].tape, COT_I64, COT_SCALAR, &far)}, last[2];
    cot_scan(counts_three, user, OUTER, 2, init, 0, NULL, last, 0, NULL, &(cot_loop_options){.states = *(int *)user});
    ys[0] = last[0];
    if (m > 1) ys[1] = last[1];
    return cot_tape_status(xs[0].tape) == COT_OK ? 0 : 1;
}
BODY(slope_of_far) {
    UNUSED;
    ys[0] = COT_NONE;
    cot_value_and_grad(counts_far, user, 1, xs, &ys[0], &ys[1]);
    cot_var both[2];
    counts_far(1, xs, 2, both, user);
    ys[2] = both[1];
    return cot_tape_status(xs[0].tape) == COT_OK ? 0 : 1;
}

static void gradients_count_beyond_53_bits(void **state) {
    (void)state;
    double x = 0.7, y = x, g = 1;
    for (int k = 0; k < 3 * OUTER; k++) g *= cos(y * (1 + 0.01 * k)) * (1 + 0.01 * k), y = sin(y * (1 + 0.01 * k));
    for (int states = 0; states < 3; states++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   v = cot_scalar(t, x), of[3], again[2];
        double    z[2], swept;
        int64_t   end;
        assert_int_equal(slope_of_far(1, &v, 3, of, &states), 0);
        counts_far(1, &v, 2, again, &states);
        cot_backward(again[0]);
        swept = cot_grad_value(v);
        assert_ok(t);
        assert_near(cot_value(of[0]), y, 1e-12);
        assert_near(swept, g, 1e-9);
        assert_true(cot_value(of[1]) == swept && cot_value(again[0]) == cot_value(of[0]));
        assert_int_equal(cot_read_as(of[2], COT_I64, &end, 1), COT_OK);
        assert_true(end == far + 3 * OUTER);
        cot_program *p = cot_compile(slope_of_far, &states, 1, &(cot_type){COT_F64, {0, {0}}}, 3, NULL);
        assert_string_equal(cot_program_message(p), "");
        cot_run *r = cot_run_create(p);
        assert_int_equal(cot_program_run(r, (const void *[]){&x}, (void *[]){&z[0], &z[1], &end}), COT_OK);
        assert_true(z[0] == cot_value(of[0]) && z[1] == swept && end == far + 3 * OUTER);
        cot_run_destroy(r);
        cot_program_destroy(p);
        cot_tape_destroy(t);
    }
}

/* ---- states ---------------------------------------------------------------------------------- */

typedef struct kept { int states; const char *spill; } kept;
BODY(turns) { UNUSED; ys[0] = cot_sin(cot_mul(xs[0], 1.3)); return 0; }
BODY(turned) {
    const kept *k = user;
    UNUSED;
    cot_loop_options o = {.states = k->states, .spill = k->spill};
    return cot_scan(turns, NULL, 30, 1, xs, 0, NULL, ys, 0, NULL, &o) != COT_OK;
}
BODY(slope_of_turned) { UNUSED; return cot_value_and_grad(turned, user, 1, xs, &ys[0], &ys[1]) != COT_OK; }

/* On a tape the folder is an error. */
static void states_of_a_program_lie_in_memory(void **state) {
    (void)state;
    static const kept ways[] = {{0, NULL}, {0, "/nowhere/at/all"}, {4, "/nowhere/at/all"}};
    double            x = 0.6, z[3][2];
    for (int k = 0; k < 3; k++) {
        kept         w = ways[k];
        cot_program *p = cot_compile(slope_of_turned, &w, 1, &(cot_type){COT_F64, {0, {0}}}, 2, NULL);
        cot_run     *r = cot_run_create(p);
        assert_int_equal(cot_program_run(r, (const void *[]){&x}, (void *[]){&z[k][0], &z[k][1]}), COT_OK);
        assert_memory_equal(z[k], z[0], sizeof *z);
        cot_run_destroy(r);
        cot_program_destroy(p);
        cot_tape *t = cot_tape_create(NULL);
        cot_var   v = cot_scalar(t, x), of[2];
        slope_of_turned(1, &v, 2, of, &w);
        assert_int_equal(cot_tape_status(t), w.spill ? COT_VALUE : COT_OK);
        cot_tape_destroy(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_with_loops_have_the_bits_of_the_tape),
        cmocka_unit_test(a_gradient_goes_through_a_loop_once_there),
        cmocka_unit_test(programs_with_loops_go_through_files),
        cmocka_unit_test(calls_of_programs_with_loops_have_gradients),
        cmocka_unit_test(second_derivatives_are_what_the_function_gives_again),
        cmocka_unit_test(a_body_may_read_nothing),
        cmocka_unit_test(an_error_names_its_step),
        cmocka_unit_test(a_loop_that_does_not_end_is_refused),
        cmocka_unit_test(what_a_body_may_refuse_is_an_effect),
        cmocka_unit_test(functions_of_the_users_bind_a_program_to_this_process),
        cmocka_unit_test(integers_keep_all_their_bits),
        cmocka_unit_test(gradients_count_beyond_53_bits),
        cmocka_unit_test(states_of_a_program_lie_in_memory),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_run_takes_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
