/* cot_tape_peak_bytes is the most that the tape had in use, byte for byte as its allocator saw it,
 * without leaves and gradients. */
#include "support/tape_test.h"

/* counting_alloc, which also remembers the most. */
typedef struct highest { counting c; size_t most; } highest;

static void *highest_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
    highest *h = user;
    void    *p = counting_alloc(&h->c, ptr, old_size, new_size);
    if (h->c.live > h->most) h->most = h->c.live;
    return p;
}

static cot_tape *watched_tape(highest *h) {
    *h = (highest){.most = 0};
    return cot_tape_create(&(cot_options){.allocator = {highest_alloc, h}});
}

/* Blocks that wait to be used again are given back on the way: the allocator knows what is in
 * use. */
static void the_peak_of_a_recording_is_that_of_its_allocator(void **state) {
    (void)state;
    highest   h;
    cot_tape *t = watched_tape(&h);
    size_t    empty = h.c.live;
    assert_int_equal(cot_tape_peak_bytes(t), 0);
    cot_var x = cot_zeros(t, COT_F64, COT_SHAPE(100, 70));
    for (int k = 0; k < 20; k++) {
        x = cot_tanh(cot_add(cot_transpose(x), 0.5));
        x = k % 4 ? x : cot_matmul(x, cot_transpose(x));
        cot_tape_trim(t);
    }
    cot_value(cot_sum(x, COT_ALL));
    assert_ok(t);
    assert_int_equal(cot_tape_peak_bytes(t), h.most - empty);
    assert_true(cot_tape_peak_bytes(t) >= cot_tape_storage_bytes(t));
    cot_tape_destroy(t);
}

static void leaves_and_gradients_do_not_count(void **state) {
    (void)state;
    highest   h;
    cot_tape *t = watched_tape(&h);
    enum { N = 1 << 16 };
    cot_var w = cot_tensor(t, COT_F32, COT_SHAPE(N), NULL);
    assert_true(h.most > N * 4);
    assert_true(cot_tape_peak_bytes(t) < 70000); /* its shape, in a chunk of the arena */
    cot_backward(cot_sum(w, COT_ALL));
    assert_ok(t);
    /* the sum's rule makes no array, so the gradient is all that arrives */
    assert_true(cot_tape_peak_bytes(t) < 2 * 70000);
    cot_mark m = cot_tape_mark(t);
    for (int k = 0; k < 3; k++) {
        cot_backward(cot_sum(cot_square(w), COT_ALL));
        cot_tape_rewind(t, m);
        assert_ok(t);
    }
    /* the square: its adjoint is one number, and what its rule makes is the gradient */
    assert_true(cot_tape_peak_bytes(t) >= N * 4);
    assert_true(cot_tape_peak_bytes(t) < 2 * N * 4);
    cot_tape_destroy(t);
    assert_int_equal(h.c.live, 0);
}

/* The workspace of a kernel is part of the peak, and of nothing afterwards. */
static void workspaces_count(void **state) {
    (void)state;
    highest   h;
    cot_tape *t = watched_tape(&h);
    enum { N = 200 };
    cot_var a = cot_add(cot_zeros(t, COT_F64, COT_SHAPE(N, N)), 1.0);
    cot_value(cot_sum(a, COT_ALL));
    int64_t before = cot_tape_peak_bytes(t), stored = cot_tape_storage_bytes(t);
    cot_var w, v;
    cot_eigh(a, &w, &v); /* the matrix is reduced in a workspace of its size at least */
    assert_ok(t);
    int64_t result = cot_tape_storage_bytes(t) - stored;
    assert_true(cot_tape_peak_bytes(t) - before > result + N * N * 8 / 2);
    cot_tape_destroy(t);
}

static void a_tape_of_scalars_counts_its_operations(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 1.0);
    for (int k = 0; k < 200000; k++) x = cot_mul(x, 0.5);
    assert_true(cot_tape_peak_bytes(t) >= 200000 * 32); /* in address space of its own */
    assert_true(cot_tape_peak_bytes(t) < 250000 * 32 * 2);
    assert_int_equal(cot_tape_peak_bytes(NULL), 0);
    cot_tape_destroy(t);
}

/* A solver may ask: what it takes is watched beside the peak. */
static int equation(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sub(cot_square(xs[0]), xs[1]);
    return 0;
}
typedef struct asked { cot_tape *t; int64_t peak; } asked;
static int root_of_two(int n, const cot_array *theta, cot_array *x, void *user) {
    asked *a = user;
    (void)n, (void)theta;
    *(double *)x->data = sqrt(2);
    a->peak = cot_tape_peak_bytes(a->t);
    return 0;
}
static void the_peak_stays_while_a_solver_runs(void **state) {
    (void)state;
    asked    a = {.t = cot_tape_create(NULL)};
    cot_mark start = cot_tape_mark(a.t);
    cot_sin(cot_zeros(a.t, COT_F64, COT_SHAPE(100000)));
    cot_tape_rewind(a.t, start);
    cot_var theta = cot_tensor(a.t, COT_F64, COT_SHAPE(1), (double[]){2}), x = cot_ones(a.t, COT_F64, COT_SHAPE(1));
    int64_t before = cot_tape_peak_bytes(a.t);
    cot_root(equation, &a, root_of_two, x, 1, &theta, NULL);
    assert_ok(a.t);
    assert_int_equal(a.peak, before);
    assert_int_equal(cot_tape_peak_bytes(a.t), before);
    cot_tape_destroy(a.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peak_of_a_recording_is_that_of_its_allocator),
        cmocka_unit_test(leaves_and_gradients_do_not_count),
        cmocka_unit_test(workspaces_count),
        cmocka_unit_test(a_tape_of_scalars_counts_its_operations),
        cmocka_unit_test(the_peak_stays_while_a_solver_runs),
    };
    return cmocka_run_group_tests_name("peak", tests, NULL, NULL);
}
