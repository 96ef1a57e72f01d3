/* Any number of tapes, one thread each: threads that work at the same time get the same bits as one
 * thread alone. */
/* ctest: labels=threads timeout=300 */
#include "support/tape_test.h"

#include <pthread.h>

enum { THREADS = 8, NUMBERS = 72 };

typedef struct job {
    int    kind, rounds;
    bool   own_allocator;
    double out[NUMBERS];
    char   message[512];
} job;

static double noise(uint64_t *s) {
    *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int64_t)(*s >> 11) * 0x1p-53 * 2 - 1;
}

/* Scalars: a chain with every kind of operand, its gradient, Jacobian and Hessian. */
static int scalar_work(cot_tape *t, uint64_t *seed, double *out) {
    cot_var x[4], y = cot_number(0), g[4];
    for (int i = 0; i < 4; i++) x[i] = cot_scalar(t, noise(seed));
    y = cot_mul(x[0], 1.0);
    for (int i = 0; i < 300; i++) {
        cot_var a = x[i % 4], b = cot_sin(cot_add(y, cot_mul(a, noise(seed))));
        y = cot_fma(b, cot_sigmoid(a), cot_tanh(cot_mul(y, 0.9)));
    }
    y = cot_add(y, cot_dot_of(4, x, (cot_var[]){x[1], x[2], x[3], x[0]}));
    cot_backward(y);
    int n = 0;
    out[n++] = cot_value(y);
    for (int i = 0; i < 4; i++) out[n++] = cot_grad_value(x[i]);
    cot_hessian(y, 4, x, out + n);
    n += 16;
    cot_grad_of(y, 4, x, g);
    for (int i = 0; i < 4; i++) out[n++] = cot_value(g[i]);
    return n;
}

/* Tensors: matrix products large enough for the kernels' blocks, reductions, softmax, in-place
 * writes. */
static int tensor_work(cot_tape *t, uint64_t *seed, double *out) {
    enum { N = 40 };
    double data[N * N], grad[N * N];
    for (int i = 0; i < N * N; i++) data[i] = noise(seed);
    cot_var w = cot_tensor(t, COT_F64, COT_SHAPE(N, N), data),
            x = cot_cast(cot_data(t, COT_F64, COT_SHAPE(N, N), data), COT_F64);
    cot_var v = cot_tensor(t, COT_F32, COT_SHAPE(N), NULL);
    cot_var h = cot_softmax(cot_matmul(cot_tanh(cot_matmul(x, w)), cot_transpose(w)), 1);
    cot_add_into(&v, 0.25);
    cot_var f32 = cot_sum(cot_square(cot_erf(v)), COT_ALL);
    cot_var y   = cot_add(cot_sum(cot_mul(h, cot_logsumexp(h, COT_KEEP(0))), COT_ALL),
                          cot_mul(cot_norm(cot_slice(h, 0, 0, COT_END, 3), 2, COT_ALL), f32));
    cot_backward(y);
    cot_read_grad(w, grad, N * N);
    int n = 0;
    out[n++] = cot_value(y);
    for (int i = 0; i < 30; i++) out[n++] = grad[i * 53];
    cot_var d = cot_jvp(y, 1, &w, (cot_var[]){x});
    out[n++] = cot_value(d);
    return n;
}

/* Loops, which record and forget as they go: a scan that keeps few states, a loop of unknown
 * length, a root inside a scan; both ways, twice. */
static int cosine_step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_cos(cot_mul(*(const cot_var *)user, xs[0]));
    return 0;
}
static int is_large(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_greater(cot_sum(cot_square(xs[0]), COT_ALL), 1e-3);
    return 0;
}
static int shrink(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_mul(0.5, cot_mul(cot_sigmoid(*(const cot_var *)user), xs[0]));
    return 0;
}
static int kepler(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_sub(cot_sub(xs[0], cot_mul(cot_mul(0.5, cot_sigmoid(*(const cot_var *)user)), cot_sin(xs[0]))), xs[1]);
    return 0;
}
static int kepler_step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_root(kepler, user, NULL, xs[0], 1, xs, NULL);
    return 0;
}
static int loop_work(cot_tape *t, uint64_t *seed, double *out) {
    double  start[3] = {noise(seed), noise(seed), noise(seed)};
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(3), start), a = cot_scalar(t, noise(seed)), y[3], g, h;
    cot_scan(cosine_step, &a, 40, 1, &x, 0, NULL, y, 0, NULL, &(cot_loop_options){.states = 3});
    cot_while(is_large, shrink, &a, 1, &x, y + 1, &(cot_loop_options){.states = 2});
    cot_scan(kepler_step, &a, 3, 1, &x, 0, NULL, y + 2, 0, NULL, NULL);
    cot_var f = cot_add(cot_sum(y[0], COT_ALL), cot_sum(cot_mul(y[1], y[2]), COT_ALL));
    cot_backward(f);
    cot_grad_of(f, 1, &a, &g);
    cot_grad_of(g, 1, &a, &h);
    int n = 0;
    out[n++] = cot_value(f), out[n++] = cot_grad_value(a), out[n++] = cot_value(g), out[n++] = cot_value(h);
    cot_read_grad(x, out + n, 3);
    return n + 3;
}

static void run(job *j) {
    counting  c = {0};
    cot_tape *t = j->own_allocator ? counted_tape(&c, false) : cot_tape_create(NULL);
    uint64_t  seed = (uint64_t)j->kind * 77 + 5;
    cot_mark  m = cot_tape_mark(t);
    for (int round = 0; round < j->rounds; round++) {
        memset(j->out, 0, sizeof j->out);
        seed = (uint64_t)j->kind * 77 + 5;
        int n = scalar_work(t, &seed, j->out);
        n += tensor_work(t, &seed, j->out + n);
        n += loop_work(t, &seed, j->out + n);
        if (n > NUMBERS) snprintf(j->message, sizeof j->message, "too many numbers: %d", n);
        if (cot_tape_status(t) != COT_OK) snprintf(j->message, sizeof j->message, "%s", cot_tape_message(t));
        cot_tape_rewind(t, m);
    }
    cot_tape_destroy(t);
    if (c.live) snprintf(j->message, sizeof j->message, "%zu bytes leak", c.live);
}

static void *thread_main(void *arg) {
    run(arg);
    return NULL;
}

static void threads_with_their_own_tapes_get_the_same_bits(void **state) {
    (void)state;
    int       rounds = test_small() ? 3 : 20;
    job       alone[THREADS], together[THREADS];
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        alone[i] = (job){.kind = i / 2, .rounds = 1}; /* two threads do the same work */
        together[i] = (job){.kind = i / 2, .rounds = rounds, .own_allocator = i % 3 == 0};
        run(&alone[i]);
        assert_string_equal(alone[i].message, "");
        assert_true(isfinite(alone[i].out[0]) && alone[i].out[1] != 0 && alone[i].out[30] != 0 &&
                    alone[i].out[60] != 0);
    }
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, thread_main, &together[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        assert_string_equal(together[i].message, "");
        assert_memory_equal(alone[i].out, together[i].out, sizeof alone[i].out);
    }
    assert_true(memcmp(alone[0].out, alone[7].out, sizeof alone[0].out) != 0);
}

/* A tape may move to another thread, as long as one at a time uses it. */
static void *continue_on(void *arg) {
    cot_var *y = arg;
    *y = cot_mul(*y, *y);
    return NULL;
}

static void a_tape_may_move_between_threads(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 1.1), y = x;
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, continue_on, &y), 0);
        pthread_join(thread, NULL);
    }
    cot_backward(y);
    assert_near(cot_grad_value(x), 16 * pow(1.1, 15), 1e-13);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_with_their_own_tapes_get_the_same_bits),
        cmocka_unit_test(a_tape_may_move_between_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
