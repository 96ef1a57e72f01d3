/* Every allocation may fail, at any time: nothing leaks, nothing crashes, the tape reports it and
 * can be used again. */
/* ctest: timeout=300 */
#define COT_SOURCE_LINES
#include "support/tape_test.h"
#include "base/poison.h"

static const double weights[12] = {0.3, -0.2, 0.5, 0.1, -0.4, 0.7, 0.2, -0.6, 0.9, -0.1, 0.8, 0.4};

typedef struct answer {
    double     loss, first, hessian, jacobian;
    cot_status seen; /* the first error of any step; a rewind clears it */
    char       message[256];
} answer;

/* A bit of everything. Runs to the end whatever fails: errors stick, and nothing here looks at them
 * on the way. */
static void program(cot_tape *t, answer *a) {
    cot_var s[3] = {cot_scalar(t, 1.5), cot_scalar_of(t, COT_F32, 0.5), cot_scalar(t, -0.75)};
    cot_var w = cot_tensor(t, COT_F64, COT_SHAPE(3, 4), weights), b = cot_tensor(t, COT_F64, COT_SHAPE(4), weights);
    cot_var x      = cot_data(t, COT_F64, COT_SHAPE(2, 3), weights),
            labels = cot_data(t, COT_I64, COT_SHAPE(2), (int64_t[]){1, 3});
    cot_name(w, "w");
    cot_name(s[0], "s");
    cot_mark m = cot_tape_mark(t);
    double   memory[4] = {1, 2, 3, 4}, h[16] = {0}, v[4] = {1, -1, 2, 0.5}, j[16] = {0};
    for (int step = 0; step < 2; step++) {
        cot_var scalar = cot_mul(cot_add(s[0], s[1]), cot_exp(cot_mul(s[2], 0.5)));
        scalar         = cot_add(scalar, cot_add(cot_dot_of(3, (cot_var[]){s[0], s[2], s[0]}, s),
                                                 cot_add(cot_sum_of(3, s), cot_logsumexp_of(3, s))));
        cot_var hidden = cot_tanh(cot_add(cot_matmul(x, w), b));
        cot_retain_grad(hidden);
        cot_var views = cot_reshape(cot_transpose(cot_slice(hidden, 1, 0, COT_END, 2)), COT_SHAPE(4));
        cot_var joined = cot_concat(2, (cot_var[]){views, cot_flip(b, COT_ALL)}, 0),
                taken  = cot_take(joined, labels, 0);
        cot_var reduced =
            cot_add(cot_logsumexp(joined, COT_ALL), cot_add(cot_max(joined, COT_ALL), cot_norm(taken, 2, COT_ALL)));
        cot_var acc = cot_zeros(t, COT_F64, COT_SHAPE(4)), wrapped = cot_wrap(t, COT_F64, COT_SHAPE(4), memory);
        cot_add_into(&acc, b);
        cot_mul_into(&acc, cot_square(b));
        cot_update_slice(&acc, 0, 1, 3, 1, cot_slice(b, 0, 0, 2, 1));
        cot_copy_into(&wrapped, cot_detach(b));
        cot_touch(&wrapped);
        cot_var half = cot_cast(cot_mul(cot_cast(b, COT_F16), 2.0), COT_F64);
        cot_var loss = cot_add(cot_softmax_cross_entropy(hidden, labels), cot_mul(reduced, scalar));
        loss = cot_add(loss, cot_sum(cot_add(cot_mul(acc, wrapped), half), COT_ALL));
        cot_no_grad_open(t);
        cot_mean(hidden, COT_AXES(0));
        cot_no_grad_close(t);
        a->loss = cot_value(loss);
        cot_backward(loss);
        a->first = cot_grad_value(s[0]);
        cot_grad(w);
        cot_var g = cot_sum(cot_square(acc), COT_ALL), g1, g2;
        cot_grad_of(g, 1, &b, &g1);
        cot_grad_of(cot_sum(g1, COT_ALL), 1, &b, &g2);
        cot_jvp(reduced, 1, &b, (cot_var[]){g2});
        cot_jvp(loss, 2, (cot_var[]){b, s[0]}, (cot_var[]){g1, cot_number(1)});
        cot_hessian(g, 1, &b, h);
        a->hessian = h[0];
        cot_hvp(g, 1, &b, v, j);
        cot_jacobian(1, &joined, 1, &b, COT_AUTO, (double[32]){0});
        cot_jacobian(2, (cot_var[]){scalar, cot_mul(s[0], s[2])}, 2, (cot_var[]){s[0], s[2]}, COT_REVERSE, j);
        a->jacobian = j[3];
        cot_assign(s[2], cot_mul(s[2], 0.5));
        cot_assign_data(b, weights);
        cot_sgd_step(2, (cot_var[]){w, s[0]}, 0.01);
        cot_tape_zero_grads(t);
        if (a->seen == COT_OK && cot_tape_status(t) != COT_OK) {
            a->seen = cot_tape_status(t);
            snprintf(a->message, sizeof a->message, "%s", cot_tape_message(t));
        }
        cot_tape_rewind(t, m);
    }
}

static void assert_same(const answer *a, const answer *b) { assert_memory_equal(a, b, offsetof(answer, seen)); }

/* The failure is reported, or the tape used memory that it had kept, and nothing shows. */
static void check_after(const answer *a, const counting *c, long n, const answer *want) {
    if (a->seen == COT_OK && !c->fail_for_good) assert_same(a, want);
    else if (a->seen != COT_MEMORY || !strstr(a->message, "] out of memory"))
        fail_msg("allocation %ld failing: %d %s", n, (int)a->seen, a->message);
    if (c->wrong_size) fail_msg("a block was returned with a size it never had");
}

/* After the failure the same tape runs the program again, to the same bits. */
static void use_again(cot_tape *t, counting *c, cot_mark start, const answer *want) {
    answer again = {0};
    c->fail_at = 0;
    cot_tape_clear_error(t);
    cot_tape_rewind(t, start);
    program(t, &again);
    assert_ok(t);
    assert_string_equal(again.message, "");
    assert_same(&again, want);
}

static void for_every_allocation(bool for_good, bool strict) {
    answer    want = {0};
    counting  c = {0};
    cot_tape *t = counted_tape(&c, strict);
    program(t, &want);
    assert_string_equal(want.message, "");
    cot_tape_destroy(t);
    assert_int_equal(c.live, 0);
    assert_int_equal(c.blocks, 0);
    assert_true(isfinite(want.loss) && isfinite(want.first) && want.hessian != 0 && want.jacobian != 0);
    long total = c.requests;
    long said = 0;
    assert_true(total > 50);
    for (long n = 1; n <= total; n++) {
        c = (counting){.fail_at = n, .fail_for_good = for_good};
        t = counted_tape(&c, strict);
        if (!t) {
            assert_int_equal(n, 1);
            continue;
        }
        cot_mark start = cot_tape_mark(t);
        answer   a = {0};
        program(t, &a);
        assert_true(c.failed > 0);
        check_after(&a, &c, n, &want);
        said += a.seen != COT_OK;
        use_again(t, &c, start, &want);
        cot_tape_destroy(t);
        if (c.live || c.blocks || c.wrong_size)
            fail_msg("allocation %ld failing: %zu bytes in %zu blocks leak", n, c.live, c.blocks);
    }
    assert_true(said > 5);
}

static void one_allocation_fails(void **state) { (void)state, for_every_allocation(false, false); }
static void all_later_ones_fail_too(void **state) { (void)state, for_every_allocation(true, true); }

/* The first failure is what the tape reports, until it is cleared. */
static void the_status_is_memory(void **state) {
    (void)state;
    long reported = 0;
    for (long n = 2; n < 60; n++) {
        counting  c = {.fail_at = n, .fail_for_good = true};
        cot_tape *t = counted_tape(&c, false);
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3, 4), weights),
                y   = cot_sum(cot_matmul(x, cot_transpose(x)), COT_ALL), g;
        cot_backward(y);
        cot_grad_of(y, 1, &x, &g);
        bool spared = test_defers() && cot_tape_status(t) == COT_OK;
        if (c.failed && !spared) {
            assert_int_equal(cot_tape_status(t), COT_MEMORY);
            assert_memory_equal(cot_tape_message(t), "[", 1);
            assert_non_null(strstr(cot_tape_message(t), "] out of memory"));
            reported++;
        }
        cot_tape_destroy(t);
        assert_int_equal(c.live, 0);
    }
    assert_true(reported > 10);
}

/* A backward that runs short adds nothing to any gradient: all or nothing. */
static void a_backward_that_fails_leaves_the_gradients(void **state) {
    (void)state;
    bool succeeded = false;
    for (long n = 1; !succeeded; n++) {
        counting  c = {.fail_for_good = true};
        cot_tape *t = counted_tape(&c, false);
        cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(3, 4), weights), b = cot_tensor(t, COT_F64, COT_SHAPE(4), weights),
                s   = cot_scalar(t, 2);
        cot_var   y = cot_add(cot_sum(cot_square(cot_add(x, b)), COT_ALL), cot_mul(s, cot_sum(cot_exp(b), COT_ALL)));
        double    before[17], after[17];
        cot_backward(cot_sum(b, COT_ALL));
        cot_backward(s);
        assert_ok(t);
        cot_read_grad(x, before, 12), cot_read_grad(b, before + 12, 4), before[16] = cot_grad_value(s);
        cot_tape_trim(t);
        c.requests = 0;
        c.fail_at = n;
        succeeded = cot_backward(y) == COT_OK;
        c.fail_at = 0;
        cot_tape_clear_error(t);
        cot_read_grad(x, after, 12), cot_read_grad(b, after + 12, 4), after[16] = cot_grad_value(s);
        if (!succeeded) assert_memory_equal(before, after, sizeof before);
        if (succeeded && !test_defers()) assert_int_equal(c.failed, 0);
        cot_tape_destroy(t);
        assert_int_equal(c.live, 0);
    }
}

/* mark, step, rewind: after the first few steps nothing grows, neither the bytes that the tape
 * reports nor those that it holds. */
static void a_training_loop_does_not_grow(void **state) {
    (void)state;
    counting  c = {0};
    cot_tape *t = counted_tape(&c, false);
    cot_var   w = cot_tensor(t, COT_F64, COT_SHAPE(3, 4), weights), b = cot_tensor(t, COT_F64, COT_SHAPE(4), weights);
    cot_var   x     = cot_data(t, COT_F64, COT_SHAPE(2, 3), weights),
            labels  = cot_data(t, COT_I64, COT_SHAPE(2), (int64_t[]){1, 3});
    cot_mark  m = cot_tape_mark(t);
    int64_t   bytes = 0, storage = 0, length = cot_tape_length(t);
    size_t    live = 0;
    double    first = 0, loss = 0;
    for (int step = 0; step < 1000; step++) {
        cot_var y = cot_softmax_cross_entropy(cot_add(cot_matmul(x, w), b), labels);
        cot_name(y, "loss");
        loss = cot_value(y);
        if (step == 0) first = loss;
        cot_backward(y);
        cot_sgd_step(2, (cot_var[]){w, b}, 0.1);
        cot_tape_zero_grads(t);
        cot_tape_rewind(t, m);
        if (step == 3) bytes = cot_tape_bytes(t), storage = cot_tape_storage_bytes(t), live = c.live;
    }
    assert_ok(t);
    assert_true(loss < 0.1 * first);
    assert_int_equal(cot_tape_length(t), length);
    assert_int_equal(cot_tape_bytes(t), bytes);
    assert_int_equal(cot_tape_storage_bytes(t), storage);
    assert_int_equal(storage, (12 + 4 + 6 + 2) * 8);
    assert_int_equal(c.live, live);
    cot_tape_destroy(t);
    assert_int_equal(c.live, 0);
}

/* Nothing is kept under AddressSanitizer: use after free would go unseen. */
#define KEEPS !COT__ADDRESS_SANITIZER

/* Large and small blocks, scratch memory of matrix products, gradients: after a few steps nothing
 * more is asked for. */
static void a_steady_loop_asks_for_nothing(void **state) {
    (void)state;
    enum { N = 200 };
    static double data[N * N];
    counting      c = {0};
    cot_tape     *t = counted_tape(&c, false);
    for (int i = 0; i < N * N; i++) data[i] = sin(i);
    cot_var  w = cot_tensor(t, COT_F64, COT_SHAPE(N, N), data), x = cot_data(t, COT_F64, COT_SHAPE(N, N), data);
    cot_mark m = cot_tape_mark(t);
    long     requests = 0;
    for (int step = 0; step < 20; step++) {
        /* sizes vary a little */
        cot_var h = cot_tanh(cot_matmul(x, w)), z = cot_matmul(cot_slice(h, 0, 1 + step % 3, COT_END, 1), w);
        cot_backward(cot_add(cot_mean(cot_square(z), COT_ALL), cot_value(cot_sum(h, COT_ALL))));
        cot_sgd_step(1, &w, 1e-3);
        cot_tape_zero_grads(t);
        cot_tape_rewind(t, m);
        if (step == 3) requests = c.requests;
    }
    assert_ok(t);
    if (KEEPS) assert_int_equal(c.requests, requests);
    int64_t held = cot_tape_bytes(t);
    cot_tape_trim(t);
    cot_tape_trim(NULL);
    assert_int_equal(cot_tape_bytes(t), c.live);
    if (KEEPS) assert_true(cot_tape_bytes(t) < held / 2);
    /* all is still there */
    assert_near(cot_value(cot_sum(cot_sub(x, cot_data(t, COT_F64, COT_SHAPE(N, N), data)), COT_ALL)), 0, 0);
    cot_tape_destroy(t);
    assert_int_equal(c.live, 0);
}

/* malloc promises 16 bytes; four lanes of a sweep would like 32. */
static void *barely_aligned(void *user, void *ptr, size_t old_size, size_t new_size) {
    size_t *odd = user, shift = 16;
    char   *fresh = NULL, *base = ptr ? (char *)ptr - shift : NULL;
    if (new_size && !(fresh = aligned_alloc(64, (new_size + shift + 63) / 64 * 64))) return NULL;
    if (fresh && ptr) memcpy(fresh + shift, ptr, old_size < new_size ? old_size : new_size);
    free(base);
    ++*odd;
    return fresh ? fresh + shift : NULL;
}

static void lanes_need_no_more_alignment_than_malloc_gives(void **state) {
    (void)state;
    size_t    requests = 0;
    cot_tape *t = cot_tape_create(&(cot_options){.allocator = {barely_aligned, &requests}});
    cot_var   x[9], y[9];
    double    reverse[81], forward[81];
    for (int i = 0; i < 9; i++) x[i] = cot_scalar(t, i + 1);
    for (int i = 0; i < 9; i++) y[i] = cot_mul(x[i], cot_sin(x[(i + 1) % 9]));
    assert_int_equal(cot_jacobian(9, y, 9, x, COT_REVERSE, reverse), COT_OK);
    assert_int_equal(cot_jacobian(9, y, 9, x, COT_FORWARD, forward), COT_OK);
    for (int i = 0; i < 81; i++) assert_near(forward[i], reverse[i], 1e-15);
    assert_near(reverse[0], sin(2), 1e-15);
    assert_true(requests > 0);
    cot_tape_destroy(t);
}

/* The tape reports exactly the bytes that it asked for. */
static void the_tape_knows_its_bytes(void **state) {
    (void)state;
    counting  c = {0};
    cot_tape *t = counted_tape(&c, false);
    answer    a = {0};
    program(t, &a);
    assert_int_equal(cot_tape_bytes(t), c.live);
    for (int i = 0; i < 1000; i++) cot_name(cot_exp(cot_tensor(t, COT_F64, COT_SHAPE(3), weights)), "e");
    assert_int_equal(cot_tape_bytes(t), c.live);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_allocation_fails),
        cmocka_unit_test(all_later_ones_fail_too),
        cmocka_unit_test(the_status_is_memory),
        cmocka_unit_test(a_backward_that_fails_leaves_the_gradients),
        cmocka_unit_test(a_training_loop_does_not_grow),
        cmocka_unit_test(a_steady_loop_asks_for_nothing),
        cmocka_unit_test(lanes_need_no_more_alignment_than_malloc_gives),
        cmocka_unit_test(the_tape_knows_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
