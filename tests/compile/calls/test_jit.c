/* Functions that are compiled when they are called: the bits of the function itself, one program
 * for each list of types, few of them kept; and programs that are compared with their function. */
/* ctest: labels=threads */
#include "support/body_test.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

#include <pthread.h>
#include <string.h>

enum { N = 5 };

/* A vector and a number of a vector and a number. */
BODY(mixed) {
    UNUSED;
    cot_var h = cot_tanh(cot_mul(xs[0], xs[1]));
    ys[0] = cot_mul(h, cot_softmax(h, -1));
    ys[1] = cot_sum(cot_exp(h), COT_ALL);
    return 0;
}

static cot_var leaf(cot_tape *t, cot_dtype dtype, int64_t n, int seed) {
    double x[64];
    for (int i = 0; i < n; i++) x[i] = sin(seed * 31 + i);
    return cot_leaf(cot_cast(cot_data(t, COT_F64, COT_SHAPE(n), x), dtype));
}

static void same(cot_var a, cot_var b) {
    double  x[64], y[64];
    int64_t n = cot_size(a);
    assert_int_equal(n, cot_size(b));
    assert_int_equal(cot_dtype_of(a), cot_dtype_of(b));
    cot_read(a, x, n);
    cot_read(b, y, n);
    assert_ok(a.tape);
    assert_memory_equal(x, y, (size_t)n * sizeof *x);
}

/* ---- values, derivatives, keys --------------------------------------------------------------- */

static void a_jit_gives_the_bits_of_its_function_and_of_its_gradient(void **state) {
    (void)state;
    cot_jit *j = cot_jit_create(mixed, NULL, NULL);
    for (int seed = 1; seed <= 3; seed++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   a[2] = {leaf(t, COT_F64, N, seed), cot_scalar(t, 0.5 * seed)}, y[2], z[2], g[2], want[2];
        mixed(2, a, 2, y, NULL);
        assert_int_equal(cot_jit_call(j, 2, a, 2, z), COT_OK);
        for (int k = 0; k < 2; k++) same(z[k], y[k]);
        cot_grad_of(cot_add(cot_sum(y[0], COT_ALL), y[1]), 2, a, want);
        cot_grad_of(cot_add(cot_sum(z[0], COT_ALL), z[1]), 2, a, g);
        for (int k = 0; k < 2; k++) same(g[k], want[k]);
        cot_tape_destroy(t);
    }
    assert_int_equal(cot_jit_compiled(j), 1);
    cot_jit_destroy(j);
}

static void a_list_of_donations_need_not_live(void **state) {
    (void)state;
    int       donate[1] = {0};
    cot_jit  *j = cot_jit_create(mixed, NULL, &(cot_jit_options){.compile = {.donate = donate, .donations = 1}});
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a[2] = {leaf(t, COT_F64, N, 1), cot_scalar(t, 0.5)}, z[2];
    donate[0] = 1000; /* as if it were other memory by now */
    assert_int_equal(cot_jit_call(j, 2, a, 2, z), COT_OK);
    cot_tape_destroy(t);
    cot_jit_destroy(j);
}

static void each_list_of_types_is_compiled_once(void **state) {
    (void)state;
    cot_jit  *j = cot_jit_create(mixed, NULL, NULL);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   ys[2];
    for (int round = 0; round < 2; round++)
        for (int64_t n = 1; n <= 3; n++) {
            cot_jit_call(j, 2, (cot_var[]){leaf(t, COT_F64, n, 1), cot_scalar(t, 2)}, 2, ys);
            cot_jit_call(j, 2, (cot_var[]){leaf(t, COT_F32, n, 1), cot_number(2)}, 2, ys);
        }
    assert_ok(t);
    assert_int_equal(cot_jit_compiled(j), 6);
    cot_tape_destroy(t);
    cot_jit_destroy(j);
}

/* Two are kept; what is called again and again stays, though others come and go. */
static void the_program_that_was_called_longest_ago_goes(void **state) {
    (void)state;
    cot_jit  *j = cot_jit_create(mixed, NULL, &(cot_jit_options){.programs = 2});
    cot_tape *t = cot_tape_create(NULL);
    cot_var   ys[2], zs[2], kept = leaf(t, COT_F64, 9, 1);
    for (int64_t n = 1; n <= 4; n++) {
        cot_jit_call(j, 2, (cot_var[]){kept, cot_number(2)}, 2, ys);
        cot_jit_call(j, 2, (cot_var[]){leaf(t, COT_F64, n, 1), cot_number(2)}, 2, zs);
    }
    assert_int_equal(cot_jit_compiled(j), 5);
    cot_jit_call(j, 2, (cot_var[]){leaf(t, COT_F64, 1, 1), cot_number(2)}, 2, zs);
    assert_int_equal(cot_jit_compiled(j), 6);
    cot_jit_destroy(j);
    cot_backward(ys[1]); /* the tape keeps the program */
    assert_ok(t);
    cot_tape_destroy(t);
}

/* The number does not make an f64 function of it, and another number is no other program. */
static void a_number_has_the_widest_dtype_of_the_others(void **state) {
    (void)state;
    cot_jit  *j = cot_jit_create(mixed, NULL, NULL);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = leaf(t, COT_F32, N, 3), ys[2], want[2];
    for (int k = 1; k <= 3; k++) {
        cot_var in[2] = {x, cot_number(0.3 * k)};
        assert_int_equal(cot_jit_call(j, 2, in, 2, ys), COT_OK);
        mixed(2, in, 2, want, NULL);
        same(ys[0], want[0]);
        same(ys[1], want[1]);
    }
    assert_int_equal(cot_dtype_of(ys[0]), COT_F32);
    assert_int_equal(cot_jit_compiled(j), 1);
    cot_tape_destroy(t);
    cot_jit_destroy(j);
}

BODY(weighs) { UNUSED; ys[0] = cot_sum(cot_mul(xs[0], cot_cast(cot_mul(xs[1], xs[2]), COT_F64)), COT_ALL); return 0; }

static void a_whole_number_has_the_dtype_of_the_integers(void **state) {
    (void)state;
    cot_jit  *j = cot_jit_create(weighs, NULL, NULL);
    cot_tape *t = cot_tape_create(NULL);
    int32_t   w[N] = {1, 2, 3, 4, 5};
    cot_var   in[3] = {leaf(t, COT_F64, N, 1), cot_data(t, COT_I32, COT_SHAPE(N), w), cot_integer(1000000000)}, y, want;
    cot_jit_call(j, 3, in, 1, &y);
    assert_string_equal(cot_tape_message(t), "");
    weighs(3, in, 1, &want, NULL);
    same(y, want); /* i32 arithmetic, which wraps around */
    cot_tape_destroy(t);
    cot_jit_destroy(j);
}

/* ---- as a function --------------------------------------------------------------------------- */

BODY(total) { UNUSED; ys[0] = cot_sum(cot_mul(cot_sin(xs[0]), xs[0]), COT_ALL); return 0; }

/* It is compiled anew for each half. */
BODY(halves) {
    int64_t size = cot_size(xs[0]);
    UNUSED;
    if (size == 1) return ys[0] = cot_sum(cot_square(xs[0]), COT_ALL), 0;
    cot_var half = cot_slice(xs[0], 0, 0, size / 2, 1);
    if (cot_jit_call(user ? *(cot_jit **)user : NULL, 1, &half, 1, ys) != COT_OK) return 1;
    ys[0] = cot_add(ys[0], cot_sum(xs[0], COT_ALL));
    return 0;
}

static void a_jit_is_a_function_for_whoever_takes_one(void **state) {
    (void)state;
    cot_jit  *j = cot_jit_create(total, NULL, NULL);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = leaf(t, COT_F64, N, 2), y, g, want_y, want_g;
    cot_value_and_grad(cot_jit_fn, j, 1, &x, &y, &g);
    cot_value_and_grad(total, NULL, 1, &x, &want_y, &want_g);
    same(y, want_y);
    same(g, want_g);
    cot_program *p = cot_compile(cot_jit_fn, j, 1, &(cot_type){COT_F64, COT_SHAPE(N)}, 1, NULL);
    assert_string_equal(cot_program_message(p), "");
    cot_program_call(p, 1, &x, 1, &y);
    same(y, want_y);
    cot_program_destroy(p);
    cot_tape_destroy(t);
    cot_jit_destroy(j);
}

static void a_function_may_call_its_own_jit(void **state) {
    (void)state;
    cot_jit  *j = NULL;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_ones(t, COT_F64, COT_SHAPE(8)), y;
    j = cot_jit_create(halves, &j, NULL);
    assert_int_equal(cot_jit_call(j, 1, &x, 1, &y), COT_OK);
    assert_true(cot_value(y) == 8 + 4 + 2 + 1);
    cot_tape_destroy(t);
    cot_jit_destroy(j);
}

typedef struct shared { cot_jit *j; bool same; } shared;

static void *call_many(void *user) {
    shared *s = user;
    s->same = true;
    for (int k = 0; s->same && k < 40; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   in[2] = {leaf(t, COT_F64, 1 + k % 7, k), cot_number(0.5)}, y[2], want[2];
        s->same = cot_jit_call(s->j, 2, in, 2, y) == COT_OK;
        mixed(2, in, 2, want, NULL);
        s->same = s->same && cot_value(y[1]) == cot_value(want[1]);
        cot_tape_destroy(t);
    }
    return NULL;
}

/* Four kinds are kept of seven: programs come and go while others run them. */
static void threads_share_a_jit(void **state) {
    (void)state;
    cot_jit  *j = cot_jit_create(mixed, NULL, &(cot_jit_options){.programs = 4});
    pthread_t thread[3];
    shared    s[3];
    for (int i = 0; i < 3; i++) s[i] = (shared){j, false};
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&thread[i], NULL, call_many, &s[i]), 0);
    for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 3; i++) assert_true(s[i].same);
    cot_jit_destroy(j);
}

/* ---- functions that depend on C -------------------------------------------------------------- */

typedef struct world { double factor; int64_t size; int code; } world;

BODY(worldly) {
    const world *w = user;
    UNUSED;
    ys[0] = cot_mul(cot_sum(xs[0], COT_ALL), 2);
    ys[1] = cot_mul(cot_slice(xs[0], 0, 0, w->size, 1), w->factor);
    if (w->code < 0) ys[0] = cot_reshape(xs[0], COT_SHAPE(9));
    return w->code;
}

static const cot_jit_options verifying = {.compile = {.verify = true}};

/* What a call says after the world has changed. */
static void told(const world *changed, const char *message) {
    world     w = {3, 4, 0};
    cot_jit  *j = cot_jit_create(worldly, &w, &verifying);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_full(t, COT_F32, COT_SHAPE(4), 0.5), ys[2];
    for (int k = 0; k < 2; k++) assert_int_equal(cot_jit_call(j, 1, &x, 2, ys), COT_OK);
    w = *changed;
    assert_int_not_equal(cot_jit_call(j, 1, &x, 2, ys), COT_OK);
    assert_string_equal(cot_tape_message(t), message);
    cot_tape_destroy(t);
    cot_jit_destroy(j);
}

/* Nobody is blamed who may be innocent. */
#define CAUSES "the function reads what is no input and changes, or the program is wrong, which please report"

static void a_function_that_reads_what_changes_is_found(void **state) {
    (void)state;
    told(&(world){5, 4, 0}, "[program_call] output 1[0] is 1.5 by the program and 2.5 by the function, recorded "
                            "now; " CAUSES);
    told(&(world){3, 3, 0}, "[program_call] output 1 of the function, recorded now, has another dtype or shape than "
                            "the program's; " CAUSES);
    told(&(world){3, 4, 7}, "[program_call] the function failed with code 7 when it was recorded again; " CAUSES);
    told(&(world){3, 4, -1}, "[reshape] (4,) has 4 elements and does not fit (9,); the number of elements stays the "
                             "same (in the function of [compile], recorded again)");
}

static void a_run_is_compared_with_the_function_too(void **state) {
    (void)state;
    world        w = {NAN, 4, 0};
    cot_program *p = cot_compile(worldly, &w, 1, &(cot_type){COT_F32, COT_SHAPE(4)}, 2,
                                 &(cot_compile_options){.verify = true});
    cot_run     *r = cot_run_create(p);
    float        x[4] = {1, 2, 3, 4}, y;
    assert_int_equal(cot_program_run(r, (const void *[]){x}, (void *[]){&y, x}), COT_OK);
    assert_true(y == 20 && x[3] != x[3]); /* all NaN are alike */
    for (int i = 0; i < 4; i++) x[i] = (float)i;
    w.factor = 1;
    assert_int_equal(cot_program_run(r, (const void *[]){x}, (void *[]){&y, NULL}), COT_OK);
    assert_int_equal(cot_program_run(r, (const void *[]){x}, (void *[]){&y, x}), COT_VALUE);
    assert_string_equal(cot_run_message(r), "[program_run] output 1[0] is nan by the program and 0 by the function, "
                                            "recorded now; " CAUSES);
    w.factor = NAN;
    assert_int_equal(cot_program_run(r, (const void *[]){x}, (void *[]){&y, NULL}), COT_OK);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

BODY(looks_up) { UNUSED; ys[0] = cot_take(xs[0], xs[1], 0); return 0; }

static void data_that_both_refuse_is_told_as_ever(void **state) {
    (void)state;
    cot_type     types[2] = {{COT_F64, COT_SHAPE(3)}, {COT_I64, COT_SHAPE(1)}};
    cot_program *p = cot_compile(looks_up, NULL, 2, types, 1, &(cot_compile_options){.verify = true});
    cot_run     *r = cot_run_create(p);
    double       x[3] = {1, 2, 3}, y;
    int64_t      at = 3;
    assert_int_equal(cot_program_run(r, (const void *[]){x, &at}, (void *[]){&y}), COT_VALUE);
    assert_string_equal(cot_run_message(r),
                        "[take] indices[0] is 3, out of range for extent 3; values run from -3 to 2");
    cot_run_destroy(r);
    cot_program_destroy(p);
}

static void a_gradient_in_the_function_is_compared_too(void **state) {
    (void)state;
    cot_jit  *j = cot_jit_create(total, NULL, &verifying);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = leaf(t, COT_F64, N, 2), y, g;
    cot_value_and_grad(cot_jit_fn, j, 1, &x, &y, &g);
    assert_ok(t);
    cot_tape_destroy(t);
    cot_jit_destroy(j);
}

/* ---- errors ---------------------------------------------------------------------------------- */

BODY(reads) { UNUSED; ys[0] = cot_value(xs[0]) > 0 ? xs[0] : cot_neg(xs[0]); return 0; }

static void bad_calls(cot_jit *j, int n, const cot_var *xs, int m, cot_var *ys, cot_tape *t, const char *message) {
    assert_int_not_equal(cot_jit_call(j, n, xs, m, ys), COT_OK);
    assert_string_equal(cot_tape_message(t), message);
    cot_tape_clear_error(t);
}

static void bad_calls_are_told(void **state) {
    (void)state;
    cot_jit  *j = cot_jit_create(mixed, NULL, NULL), *none = cot_jit_create(NULL, NULL, NULL);
    cot_jit  *reading = cot_jit_create(reads, NULL, NULL);
    cot_jit  *negative = cot_jit_create(mixed, NULL, &(cot_jit_options){.programs = -1});
    cot_tape *t = cot_tape_create(NULL);
    cot_var   in[2] = {leaf(t, COT_F64, N, 1), cot_number(1)}, ys[2];
    bad_calls(NULL, 2, in, 2, ys, t, "[jit_call] the cot_jit is NULL");
    bad_calls(negative, 2, in, 2, ys, t, "[jit_call] programs is -1 in the options; it must not be negative");
    cot_jit_destroy(negative);
    bad_calls(none, 2, in, 2, ys, t, "[jit_call] the function is NULL");
    bad_calls(j, 2, in, -2, ys, t, "[jit_call] a negative number of values: -2");
    bad_calls(j, 2, in, 2, NULL, t, "[jit_call] a list of 2 values is NULL");
    bad_calls(reading, 1, in, 1, ys, t,
              "[value] asked for while a function is compiled, for all values that it may be run on; "
              "choose by values with cot_where or cot_cond (in the function of [compile])");
    assert_false(cot_is_valid(ys[0]));
    assert_int_equal(cot_jit_compiled(reading), 1);
    assert_int_equal(cot_jit_call(j, 1, (cot_var[]){cot_number(1)}, 2, ys), COT_VAR);
    assert_int_equal(cot_jit_call(j, 0, NULL, 2, ys), COT_VAR);
    assert_int_equal(cot_jit_call(j, -1, in, 2, ys), COT_VALUE);
    assert_int_equal(cot_jit_fn(2, in, 2, ys, NULL), 1);
    assert_int_equal(cot_jit_compiled(NULL), 0);
    cot_jit_destroy(NULL);
    cot_tape_destroy(t);
    cot_jit_destroy(none);
    cot_jit_destroy(reading);
    cot_jit_destroy(j);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    for (long at = 1;; at++) {
        counting        c = {.fail_at = at, .fail_for_good = true};
        cot_jit_options o = {.compile = {.allocator = {counting_alloc, &c}, .verify = true}};
        cot_jit        *j = cot_jit_create(mixed, NULL, &o);
        cot_tape       *t = cot_tape_create(&(cot_options){.allocator = {counting_alloc, &c}});
        cot_var         in[2] = {cot_ones(t, COT_F64, COT_SHAPE(N)), cot_number(1)}, ys[2];
        bool            made = j && t && cot_jit_call(j, 2, in, 2, ys) == COT_OK;
        if (!made && t) assert_int_equal(cot_tape_status(t), !j ? cot_tape_status(t) : COT_MEMORY);
        cot_tape_destroy(t);
        cot_jit_destroy(j);
        assert_int_equal(c.live, 0);
        if (made && c.requests < at) break;
    }
}

static int calls_itself(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    return cot_jit_call(*(cot_jit **)user, n, xs, m, ys) != COT_OK;
}
static void a_function_that_calls_itself_without_end_is_refused(void **state) {
    (void)state;
    cot_jit  *j = NULL;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 1), y;
    j = cot_jit_create(calls_itself, &j, NULL);
    assert_int_equal(cot_jit_call(j, 1, &x, 1, &y), COT_VALUE);
    assert_non_null(strstr(cot_tape_message(t), "256 programs of this cot_jit are being compiled"));
    cot_jit_destroy(j);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_jit_gives_the_bits_of_its_function_and_of_its_gradient),
        cmocka_unit_test(a_list_of_donations_need_not_live),
        cmocka_unit_test(each_list_of_types_is_compiled_once),
        cmocka_unit_test(the_program_that_was_called_longest_ago_goes),
        cmocka_unit_test(a_number_has_the_widest_dtype_of_the_others),
        cmocka_unit_test(a_whole_number_has_the_dtype_of_the_integers),
        cmocka_unit_test(a_jit_is_a_function_for_whoever_takes_one),
        cmocka_unit_test(a_function_may_call_its_own_jit),
        cmocka_unit_test(threads_share_a_jit),
        cmocka_unit_test(a_function_that_reads_what_changes_is_found),
        cmocka_unit_test(a_run_is_compared_with_the_function_too),
        cmocka_unit_test(data_that_both_refuse_is_told_as_ever),
        cmocka_unit_test(a_gradient_in_the_function_is_compared_too),
        cmocka_unit_test(bad_calls_are_told),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_function_that_calls_itself_without_end_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
