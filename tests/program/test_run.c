/* The plain executor: where values lie, what it says of bad data, that a run allocates nothing, and
 * that any allocation before it may fail. */
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"
#include "support/body_test.h"
#include "support/program_test.h"
#include "support/tape_test.h"

#include "backend/elements.h"
#include "program/build.h"

/* ---- single programs ------------------------------------------------------------------------- */

/* A program on CPU memory, and its run, of a function of xs. */
typedef struct single { cot_tape *t; cot__program *p; cot__run *run; } single;

static single open_single(cot_fn fn, void *user, int n, const cot_var *xs, int m) {
    single s = {.t = xs[0].tape};
    s.p = lower(s.t, "single", fn, user, n, xs, m);
    assert_ok(s.t);
    assert_non_null(s.p);
    s.run = prepare(s.t, "single", s.p);
    test_verdict();
    return s;
}

static void close_single(single *s) {
    cot__run_destroy(s->run);
    cot__program_release(s->p);
    cot_tape_destroy(s->t);
}

#define IN(...) ((const void *const[]){__VA_ARGS__})
#define OUT(...) ((void *const[]){__VA_ARGS__})

/* The memory is that of the host. */
static bool on_host(void) {
    cot_tape *t = cot_tape_create(NULL);
    bool      host = cot__on_host(t->backend);
    cot_tape_destroy(t);
    return host;
}
#define HOST_ONLY                                                                                                      \
    (void)state;                                                                                                       \
    if (!on_host()) skip()

BODY(tests_and_choices) {
    UNUSED;
    ys[0] = cot_where(cot_logical_and(cot_less(xs[0], xs[1]), cot_greater(xs[1], 2.0)), cot_mul(xs[0], 3.0), xs[1]);
    ys[1] = cot_less(xs[0], xs[1]);
    ys[2] = cot_add(xs[2], 1);
    return 0;
}

static void tests_bools_and_integers_run_beside_floats(void **state) {
    HOST_ONLY;
    cot_tape *t = cot_tape_create(NULL);
    single    s = open_single(tests_and_choices, NULL, 3,
                              (cot_var[]){cot_scalar(t, 1), cot_scalar(t, 2),
                                          cot_data(t, COT_I64, COT_SCALAR, (int64_t[]){5})}, 3);
    double    z;
    uint8_t   less;
    int64_t   i;
    assert_true(cot__run_go(s.run, IN(&(double){1}, &(double){5}, &(int64_t){INT64_MAX - 1}), OUT(&z, &less, &i)));
    assert_true(z == 3 && less == 1 && i == INT64_MAX);
    assert_true(cot__run_go(s.run, IN(&(double){7}, &(double){5}, &(int64_t){-1}), OUT(&z, &less, &i)));
    assert_true(z == 5 && less == 0 && i == 0);
    close_single(&s);
}

BODY(swap) {
    UNUSED;
    ys[0] = xs[1];
    ys[1] = cot_transpose(xs[0]);
    ys[2] = xs[2];
    return 0;
}

static void outputs_may_lie_where_inputs_lie(void **state) {
    HOST_ONLY;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_zeros(t, COT_F64, COT_SHAPE(2, 2));
    single    s = open_single(swap, NULL, 3, (cot_var[]){x, x, cot_scalar(t, 0)}, 3);
    double    a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c = 9;
    assert_true(cot__run_go(s.run, IN(a, b, &c), OUT(a, b, &c)));
    assert_memory_equal(a, ((double[]){5, 6, 7, 8}), sizeof a);
    assert_memory_equal(b, ((double[]){1, 3, 2, 4}), sizeof b);
    assert_true(c == 9);
    close_single(&s);
}

/* A step of a loop over numbers: a carried value, rows of two arrays, and one that stays, in its
 * slot as well if it is given out. */
BODY(number_step) {
    ys[0] = cot_add(cot_mul(xs[0], xs[3]), xs[1]);
    ys[1] = cot_sub(cot_mul(xs[2], xs[3]), cot_mul(xs[0], xs[3]));
    if (m > 2) ys[2] = xs[3];
    UNUSED;
    return 0;
}

enum { RUNS = 9, ROWS = 2 * RUNS, FIXED = ROWS, CARRIED, GIVEN, NUMBERS = GIVEN + RUNS };

/* Rows, the value that stays, the carried value with its room, and what is given out. */
static void fill_numbers(double *m) {
    for (int k = 0; k < NUMBERS; k++) m[k] = sin(k + 1.0);
}

/* The k-th of many runs, whose rows are read from the last on and whose results go to where
 * `given` says. */
static bool go_once(cot__run *run, double *m, double *given, int64_t step, int k) {
    return cot__run_go(run, IN(&m[CARRIED], &m[RUNS - 1 - k], &m[RUNS + k], &m[FIXED]),
                       OUT(&m[CARRIED], given + k * step, NULL));
}

static bool go_along(cot__run *run, double *m, double *given, int64_t step, int64_t n) {
    return cot__run_go_along(run, n, IN(&m[CARRIED], &m[RUNS - 1], &m[RUNS], &m[FIXED]), (const int64_t[]){0, -8, 8, 0},
                             OUT(&m[CARRIED], given, NULL), (const int64_t[]){0, 8 * step, 0});
}

static void check_along(int results) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 1);
    single    s = open_single(number_step, NULL, 4, (cot_var[]){x, x, x, x}, results);
    /* to rows of their own, to rows that are read later, and over the value that stays */
    static const struct { int at, step; } to[] = {{GIVEN, 1}, {NUMBERS - 1, -1}, {RUNS + 1, 1}, {FIXED, 0}};
    for (int i = 0; i < TEST_COUNT(to); i++) {
        double one[NUMBERS], all[NUMBERS];
        fill_numbers(one);
        fill_numbers(all);
        for (int k = 0; k < RUNS; k++) assert_true(go_once(s.run, one, one + to[i].at, to[i].step, k));
        assert_true(go_along(s.run, all, all + to[i].at, to[i].step, RUNS));
        assert_memory_equal(one, all, sizeof one);
        assert_false(go_along(s.run, all, all + to[i].at, to[i].step, 0));
        assert_memory_equal(one, all, sizeof one);
    }
    close_single(&s);
}

static void many_runs_at_once_are_runs_one_by_one(void **state) {
    HOST_ONLY;
    check_along(2);
    check_along(3);
}

/* 40 operations in a row: one array comes and goes, and no more than two are there at a time. */
BODY(chain) {
    UNUSED;
    cot_var x = xs[0];
    for (int k = 0; k < 20; k++) x = cot_sin(cot_reshape(cot_mul(x, 1.5), COT_SHAPE(1000)));
    ys[0] = cot_cumsum(x, 0, false);
    return 0;
}

static void dead_values_leave_their_memory_to_others(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    single    s = open_single(chain, NULL, 1, (cot_var[]){cot_zeros(t, COT_F64, COT_SHAPE(1000))}, 1);
    assert_true(cot__run_arena_bytes(s.run) < 2 * 8064 + 1024);
    close_single(&s);
}

/* ---- writing where operands lie -------------------------------------------------------------- */

BODY(beside_itself) {
    UNUSED;
    cot_var y = cot_mul(xs[0], 2.0);
    ys[0] = cot_sub(cot_flip(y, COT_AXES(0)), y);
    cot_var w = cot_mul(xs[0], 3.0);
    ys[1] = cot_sub(w, cot_flip(w, COT_AXES(0)));
    return 0;
}

static void a_result_does_not_write_over_another_view_of_its_operand(void **state) {
    HOST_ONLY;
    cot_tape *t = cot_tape_create(NULL);
    enum { N = 2000 }; /* more than a kernel holds at a time */
    single        s = open_single(beside_itself, NULL, 1, (cot_var[]){cot_zeros(t, COT_F64, COT_SHAPE(N))}, 2);
    static double x[N], a[N], b[N];
    for (int k = 0; k < N; k++) x[k] = k;
    assert_true(cot__run_go(s.run, IN(x), OUT(a, b)));
    for (int k = 0; k < N; k++) assert_true(a[k] == 2 * (N - 1 - 2 * k) && b[k] == -3 * (N - 1 - 2 * k));
    close_single(&s);
}

/* x[2:0:-1] = y of two elements, or x[::-1] = y of three */
static uint32_t append_reversed(cot__builder *b, uint32_t x, uint32_t y, int64_t length) {
    union { cot__attr attr; char room[sizeof(cot__attr) + 4 * sizeof(int64_t)]; } slice = {.attr = {.nints = 4}};
    const int64_t back[4] = {0, 2, length, -1};
    memcpy(slice.attr.ints, back, sizeof back);
    return cot__build_operation(b, &(cot__append){.op = OP_update_slice, .n = 2, .x = (uint32_t[]){x, y},
                                                  .attr = &slice.attr, .name = "update_slice"});
}

static uint32_t append_neg(cot__builder *b, uint32_t x) {
    return cot__build_operation(b, &(cot__append){.op = OP_neg, .n = 1, .x = &x, .name = "neg"});
}

static void an_operation_in_place_leaves_what_is_read_later(void **state) {
    HOST_ONLY;
    cot_tape       *t = cot_tape_create(NULL);
    cot__caller     caller = cot__tape_caller(t, "test");
    const cot__type two = {COT_F64, {1, {2}}}, three = {COT_F64, {1, {3}}};
    cot__builder    b;
    double          x[3] = {1, 2, 3}, y[2] = {4, 5}, out[4][3];
    cot__builder_open(&b, NULL, &caller);
    uint32_t p = cot__build_input(&b, &three), q = cot__build_input(&b, &two), n = append_neg(&b, p);
    cot__build_output(&b, append_reversed(&b, p, q, 2)); /* of an input */
    cot__build_output(&b, append_reversed(&b, n, q, 2)); /* of a value that is read later */
    cot__build_output(&b, append_reversed(&b, n, n, 3)); /* of itself */
    cot__build_output(&b, append_reversed(&b, append_neg(&b, p), q, 2)); /* of one that is not */
    cot__program *program = cot__builder_close(&b);
    assert_ok(t);
    cot__run *run = cot__run_create(program, t->backend, NULL, NULL, &caller);
    assert_true(cot__run_go(run, IN(x, y), OUT(out[0], out[1], out[2], out[3])));
    assert_memory_equal(x, ((double[]){1, 2, 3}), sizeof x);
    assert_memory_equal(out, ((double[4][3]){{1, 5, 4}, {-1, 5, 4}, {-3, -2, -1}, {-1, 5, 4}}), sizeof out);
    cot__run_destroy(run);
    cot__program_release(program);
    cot_tape_destroy(t);
}

/* ---- inputs that are views ------------------------------------------------------------------- */

BODY(views_of_inputs) {
    UNUSED;
    cot_var row = cot_index(xs[0], 0, 1);
    ys[0] = cot_add(cot_flip(cot_transpose(xs[0]), COT_AXES(0)), 1.0);
    ys[1] = cot_mul(cot_index(row, 0, 2), cot_index(row, 0, 0));
    ys[2] = cot_reshape(cot_index(row, 0, 1), COT_SHAPE(1, 1));
    return 0;
}

static void inputs_may_have_any_strides(void **state) {
    HOST_ONLY;
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      x = cot_zeros(t, COT_F64, COT_SHAPE(2, 3));
    single       s = open_single(views_of_inputs, NULL, 1, &x, 3);
    cot__caller  caller = cot__tape_caller(t, "test");
    double       rows[] = {1, 2, 3, 4, 5, 6}, columns[] = {1, 4, 2, 5, 3, 6}, want[6], got[6], a, b, c[1], d[1];
    cot__view    input = cot__value_view(s.p, s.p->input[0]);
    input.stride = (const int64_t[]){1, 2};
    cot__run *other = cot__run_create(s.p, t->backend, NULL, &input, &caller);
    assert_non_null(other);
    assert_true(cot__run_go(s.run, IN(rows), OUT(want, &a, c)));
    assert_true(cot__run_go(other, IN(columns), OUT(got, &b, d)));
    assert_memory_equal(want, ((double[]){4, 7, 3, 6, 2, 5}), sizeof want);
    assert_memory_equal(want, got, sizeof want);
    assert_true(a == 24 && b == 24 && c[0] == 5 && d[0] == 5);
    cot__run_destroy(other);
    close_single(&s);
}

/* ---- errors and notes ------------------------------------------------------------------------ */

BODY(two_takes) {
    UNUSED;
    cot_var i = cot_cast(xs[0], COT_I64);
    ys[0] = cot_take(cot_arange(xs[0].tape, COT_F64, 0, 5, 1), i, 0);
    ys[1] = cot_take(cot_arange(xs[0].tape, COT_F64, 0, 3, 1), cot_add(i, 1), 0);
    return 0;
}

static void the_first_error_in_order_is_found_on_the_run(void **state) {
    HOST_ONLY;
    cot_tape *t = cot_tape_create(NULL);
    single    s = open_single(two_takes, NULL, 1, (cot_var[]){cot_zeros(t, COT_F64, COT_SHAPE(2))}, 2);
    double    a[2] = {-1, -1}, b[2] = {-1, -1};
    assert_false(cot__run_go(s.run, IN(((double[]){0, 7})), OUT(a, b)));
    assert_int_equal(cot__run_status(s.run), COT_VALUE);
    assert_string_equal(cot__run_message(s.run),
                        "[take] indices[1] is 7, out of range for extent 5; values run from -5 to 4");
    assert_string_equal(cot__operation_name(s.p, cot__run_failed_at(s.run)), "take");
    assert_true(a[0] == -1 && b[0] == -1);
    assert_false(cot__run_go(s.run, IN(((double[]){0, 2})), OUT(a, b)));
    assert_string_equal(cot__run_message(s.run),
                        "[take] indices[1] is 3, out of range for extent 3; values run from -3 to 2");
    assert_true(cot__run_go(s.run, IN(((double[]){0, 1})), OUT(a, b)));
    assert_int_equal(cot__run_status(s.run), COT_OK);
    assert_string_equal(cot__run_message(s.run), "");
    assert_int_equal(cot__run_failed_at(s.run), COT__NO_VALUE);
    assert_true(a[1] == 1 && b[1] == 2);
    close_single(&s);
}

BODY(two_factors) {
    UNUSED;
    ys[0] = cot_cholesky(xs[0]);
    ys[1] = cot_cholesky(cot_neg(xs[0]));
    return 0;
}

BODY(one_factor) {
    UNUSED;
    ys[0] = cot_cholesky(xs[0]);
    return 0;
}

static void a_note_is_of_its_run_alone(void **state) {
    HOST_ONLY;
    cot_tape *t = cot_tape_create(NULL);
    single    s = open_single(one_factor, NULL, 1, (cot_var[]){cot_zeros(t, COT_F64, COT_SHAPE(1, 1))}, 1);
    double    a;
    assert_true(cot__run_go(s.run, IN(((double[]){-4})), OUT(&a)));
    assert_non_null(strstr(cot__run_note(s.run), "[cholesky] "));
    assert_true(cot__run_go(s.run, IN(((double[]){4})), OUT(&a)));
    assert_string_equal(cot__run_note(s.run), "");
    close_single(&s);
}

static void the_first_note_in_order_is_found_on_the_run(void **state) {
    HOST_ONLY;
    cot_tape *t = cot_tape_create(NULL);
    single    s = open_single(two_factors, NULL, 1, (cot_var[]){cot_zeros(t, COT_F64, COT_SHAPE(1, 1))}, 2);
    double    a, b;
    assert_true(cot__run_go(s.run, IN(((double[]){4})), OUT(&a, &b)));
    assert_true(a == 2 && isnan(b));
    assert_non_null(strstr(cot__run_note(s.run), "[cholesky] "));
    uint32_t second = cot__run_noted_at(s.run);
    assert_true(cot__run_go(s.run, IN(((double[]){-4})), OUT(&a, &b)));
    assert_true(cot__run_noted_at(s.run) < second);
    assert_int_equal(s.p->operation[second].op, OP_cholesky);
    close_single(&s);
}

/* ---- memory ---------------------------------------------------------------------------------- */

BODY(some_of_all) {
    UNUSED;
    cot_var big = cot_arange(xs[0].tape, COT_F64, 0, 12, 1), w = cot_reshape(big, COT_SHAPE(3, 4));
    ys[0] = cot_sum(cot_matmul(xs[0], w), COT_AXES(0));
    ys[1] = cot_exp(cot_mul(cot_index(ys[0], 0, 1), 0.01));
    ys[2] = cot_sort(cot_transpose(xs[0]), 1, false);
    cot_update_slice(&ys[2], 0, 0, 2, 1, cot_slice(ys[2], 0, 1, 3, 1));
    return 0;
}

static cot__program *lower_counted(cot_tape *t, const cot_allocator *al) {
    cot_var      x = cot_ones(t, COT_F64, COT_SHAPE(2, 3));
    cot__not_yet not_yet;
    cot__region *r = cot__region_record(t, "test", some_of_all, NULL, 1, &x, 3);
    return r ? cot__region_lower(t, r, al, &not_yet) : NULL;
}

static void a_run_allocates_nothing(void **state) {
    HOST_ONLY;
    counting      c = {0};
    cot_allocator al = {counting_alloc, &c};
    cot_tape     *t = counted_tape(&c, false);
    cot_var       x = cot_ones(t, COT_F64, COT_SHAPE(2, 3));
    cot__program *p = lower(t, "test", some_of_all, NULL, 1, &x, 3);
    cot__caller   caller = cot__tape_caller(t, "test");
    cot__run     *run = cot__run_create(p, t->backend, &al, NULL, &caller);
    double        in[6] = {1, 2, 3, 4, 5, 6}, a[4], b, s[6];
    assert_ok(t);
    long before = c.requests;
    for (int k = 0; k < 5; k++) assert_true(cot__run_go(run, IN(in), OUT(a, &b, s)));
    assert_int_equal(c.requests, before);
    /* an operation in place read what it wrote over */
    assert_memory_equal(s, ((double[]){2, 5, 3, 6, 3, 6}), sizeof s);
    cot__run_destroy(run);
    cot__program_release(p);
    cot_tape_destroy(t);
    assert_true(c.live == 0 && !c.wrong_size);
}

/* Lowering a body and making a run. */
static void lower_and_prepare(cot_tape *t, void *user) {
    counting     *c = user;
    cot_allocator al = {counting_alloc, c};
    cot__caller   caller = cot__tape_caller(t, "test");
    cot__program *p = lower_counted(t, &al);
    cot__run     *run = p ? cot__run_create(p, t->backend, &al, NULL, &caller) : NULL;
    if (p && !run) assert_int_equal(cot_tape_status(t), COT_MEMORY);
    cot__run_destroy(run);
    cot__program_release(p);
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    for (long at = 1; at < 1000; at++) {
        counting  c = {.fail_at = at};
        cot_tape *t = counted_tape(&c, false);
        if (t) lower_and_prepare(t, &c);
        bool failed = c.failed > 0;
        if (t && failed && cot_tape_status(t) != COT_OK)
            assert_non_null(strstr(cot_tape_message(t), "] out of memory"));
        cot_tape_destroy(t);
        if (c.live || c.blocks || c.wrong_size) fail_msg("allocation %ld failing leaks", at);
        if (!failed) return;
    }
    fail_msg("%s", "it never had enough");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tests_bools_and_integers_run_beside_floats),
        cmocka_unit_test(outputs_may_lie_where_inputs_lie),
        cmocka_unit_test(many_runs_at_once_are_runs_one_by_one),
        cmocka_unit_test(dead_values_leave_their_memory_to_others),
        cmocka_unit_test(a_result_does_not_write_over_another_view_of_its_operand),
        cmocka_unit_test(an_operation_in_place_leaves_what_is_read_later),
        cmocka_unit_test(inputs_may_have_any_strides),
        cmocka_unit_test(the_first_error_in_order_is_found_on_the_run),
        cmocka_unit_test(the_first_note_in_order_is_found_on_the_run),
        cmocka_unit_test(a_note_is_of_its_run_alone),
        cmocka_unit_test(a_run_allocates_nothing),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
