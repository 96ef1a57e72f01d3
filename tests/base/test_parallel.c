/* The worker pool, and the promise that no result shows the number of threads. Small structural
 * operations cut into parts are in test_structural_table.c. Here are the pool itself, every
 * elementwise operation, long reductions and whole training runs. */
/* ctest: labels=threads timeout=300 */
#include "rules/elementwise_ids.h"
#include "support/support.h"

#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int counts[] = {1, 2, 3, 8, 16};

/* ---- the pool -------------------------------------------------------------------------------- */

enum { PARTS = 1000 };

static void count_part(void *ctx, int64_t part) { atomic_fetch_add((_Atomic int *)ctx + part, 1); }

static void each_part_runs_once(void **state) {
    (void)state;
    static _Atomic int ran[PARTS];
    cot_tape          *t = cot_tape_create(NULL);
    for (int k = 0; k < TEST_COUNT(counts); k++)
        for (int round = 0; round < 200; round++) {
            cot_set_threads(counts[k]);
            memset(ran, 0, sizeof ran);
            int parts = round % 7 == 0 ? PARTS : round % 5;
            cot__parallel(parts, count_part, ran);
            for (int i = 0; i < PARTS; i++) assert_int_equal(ran[i], i < parts);
        }
    cot_tape_destroy(t);
    cot_set_threads(0);
}

static void mark_part(void *ctx, int64_t part) { ((unsigned char *)ctx)[part]++; }

/* More threads than a word has bits, and more parts than a share counts to. */
static void each_part_runs_once_in_large_numbers(void **state) {
    (void)state;
    enum { MANY = (1 << 24) + 1000 };
    static unsigned char ran[MANY];
    cot_set_threads(130);
    for (int parts = 1; parts < 500; parts += 71) {
        memset(ran, 0, 500);
        cot__parallel(parts, mark_part, ran);
        for (int i = 0; i < 500; i++) assert_int_equal(ran[i], i < parts);
    }
    cot_set_threads(2);
    memset(ran, 0, 500);
    cot__parallel(MANY, mark_part, ran);
    for (int i = 0; i < MANY; i++) assert_int_equal(ran[i], 1);
    cot_set_threads(0);
}

static void each_part_of_a_small_job_runs_once(void **state) {
    (void)state;
    static _Atomic int ran[PARTS];
    for (int k = 0; k < TEST_COUNT(counts); k++)
        for (int round = 0; round < 400; round++) {
            cot_set_threads(counts[k]);
            memset(ran, 0, sizeof ran);
            int parts = round % 9;
            /* some find workers awake, some asleep, some none */
            if (round % 50 == 0) usleep(2000);
            if (round % 20 == 3) cot__parallel(2, count_part, ran + 20);
            cot__parallel_small(parts, count_part, ran);
            for (int i = 0; i < 20; i++) assert_int_equal(ran[i], i < parts);
        }
    cot_set_threads(0);
}

/* Which threads worked: a part waits for the other, so that each thread has one, or time is up. */
typedef struct meeting { _Atomic int here; pthread_t thread[2]; } meeting;
static void part_that_meets(void *ctx, int64_t part) {
    meeting *m = ctx;
    m->thread[part] = pthread_self();
    atomic_fetch_add(&m->here, 1);
    for (int turns = 0; atomic_load(&m->here) < 2 && turns < 20; turns++) usleep(1000);
}
/* Does a second thread come to one of so many jobs? */
static bool met(cot__spread *spread, int jobs) {
    bool both = false;
    for (int i = 0; i < jobs && !both; i++) {
        meeting m = {.here = 0};
        spread(2, part_that_meets, &m);
        both = !pthread_equal(m.thread[0], m.thread[1]);
    }
    return both;
}

/* Two threads shall work, and there are no workers now. */
static void begin_without_workers(void) {
    cot_set_threads(1);
    assert_false(met(cot__parallel, 2));
    cot_set_threads(2);
}

/* A few small jobs do not start or wake a worker; many of them in a row get one. How many have gone
 * by without one in earlier tests does not count once one came. */
static void small_jobs_wake_workers_when_there_are_many(void **state) {
    (void)state;
    if (cot_threads() < 2) skip(); /* on one processor nobody spins */
    begin_without_workers();
    assert_true(met(cot__parallel_small, 400));
    begin_without_workers();
    assert_false(met(cot__parallel_small, 5));
    assert_true(met(cot__parallel_small, 400));
    assert_true(met(cot__parallel, 400));
    cot_set_threads(0);
}

/* Part 0 ends when all others have; those of its own thread's share must be done by others. */
static void part_that_waits(void *ctx, int64_t part) {
    _Atomic int *done = ctx;
    for (int64_t turns = 0; part == 0 && atomic_load(done) < PARTS - 1 && turns < 20000; turns++) usleep(1000);
    if (part != 0 || atomic_load(done) == PARTS - 1) atomic_fetch_add(done, 1);
}

static void the_share_of_a_busy_thread_is_done_by_others(void **state) {
    (void)state;
    for (int k = 1; k < TEST_COUNT(counts); k++) {
        _Atomic int done = 0;
        cot_set_threads(counts[k]);
        cot__parallel(PARTS, part_that_waits, &done);
        assert_int_equal(done, PARTS);
    }
    cot_set_threads(0);
}

typedef struct nest { _Atomic int inner[8][8]; } nest;
typedef struct nest_at { nest *n; int64_t outer; } nest_at;
static void inner_part(void *ctx, int64_t part) {
    nest_at *at = ctx;
    atomic_fetch_add(&at->n->inner[at->outer][part], 1);
}
static void outer_part(void *ctx, int64_t part) {
    nest_at at = {ctx, part};
    cot__parallel(8, inner_part, &at);
}

static void parts_may_call_the_pool(void **state) {
    (void)state;
    nest n;
    memset(&n, 0, sizeof n);
    cot_tape *t = cot_tape_create(NULL);
    cot_set_threads(4);
    cot__parallel(8, outer_part, &n);
    for (int i = 0; i < 64; i++) assert_int_equal(n.inner[i / 8][i % 8], 1);
    cot_tape_destroy(t);
    cot_set_threads(0);
}

static void *use_pool(void *arg) {
    /* tapes come and go, and with the last of them the workers */
    cot_tape *t = cot_tape_create(NULL);
    for (int i = 0; i < 300; i++) {
        _Atomic int ran[16] = {0};
        cot__parallel(16, count_part, ran);
        for (int k = 0; k < 16; k++)
            if (ran[k] != 1) *(bool *)arg = true;
        if (i % 50 == 0) {
            cot_tape_destroy(t);
            t = cot_tape_create(NULL);
            cot_set_threads(1 + i / 50);
        }
    }
    cot_tape_destroy(t);
    return NULL;
}

static void many_threads_share_the_pool(void **state) {
    (void)state;
    pthread_t thread[6];
    bool      wrong[6] = {false};
    for (int i = 0; i < 6; i++) pthread_create(&thread[i], NULL, use_pool, &wrong[i]);
    for (int i = 0; i < 6; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 6; i++) assert_false(wrong[i]);
    cot_set_threads(0);
}

static void the_number_of_threads_is_kept(void **state) {
    (void)state;
    cot_set_threads(5);
    assert_int_equal(cot_threads(), 5);
    cot_set_threads(1 << 20);
    assert_int_equal(cot_threads(), 256);
    setenv("COTANGENT_THREADS", "3", 1);
    cot_set_threads(0);
    assert_int_equal(cot_threads(), 3);
    setenv("COTANGENT_THREADS", "many", 1); /* not a number: new tapes tell */
    cot_set_threads(-1);
    int all = cot_threads();
    unsetenv("COTANGENT_THREADS");
    cot_set_threads(0);
    assert_int_equal(cot_threads(), all);
    assert_true(all >= 1);
}

/* ---- whole computations ---------------------------------------------------------------------- */

/* A few steps of a classifier: every size is large enough to be shared out. The loss of each step
 * and checksums of the weights. */
static int train(double *out) {
    enum { BATCH = 96, IN = 200, HIDDEN = 300, CLASSES = 10, STEPS = 3 };
    cot_tape  *t = cot_tape_create(NULL);
    test_random r = test_random_of("train", 0);
    static float x[BATCH * IN], w1[IN * HIDDEN], w2[HIDDEN * CLASSES];
    int64_t    labels[BATCH];
    int        n = 0;
    for (int i = 0; i < BATCH * IN; i++) x[i] = (float)test_uniform(&r, -1, 1);
    for (int i = 0; i < IN * HIDDEN; i++) w1[i] = (float)test_uniform(&r, -0.1, 0.1);
    for (int i = 0; i < HIDDEN * CLASSES; i++) w2[i] = (float)test_uniform(&r, -0.1, 0.1);
    for (int i = 0; i < BATCH; i++) labels[i] = i % CLASSES;
    cot_var a     = cot_tensor(t, COT_F32, COT_SHAPE(IN, HIDDEN), w1),
            b     = cot_tensor(t, COT_F32, COT_SHAPE(HIDDEN, CLASSES), w2);
    cot_var  bias = cot_tensor(t, COT_F32, COT_SHAPE(HIDDEN), NULL), leaves[3] = {a, b, bias};
    cot_var  data  = cot_data(t, COT_F32, COT_SHAPE(BATCH, IN), x),
            target = cot_data(t, COT_I64, COT_SHAPE(BATCH), labels);
    cot_mark start = cot_tape_mark(t);
    for (int step = 0; step < STEPS; step++) {
        cot_var h = cot_add(cot_matmul(data, a), bias);
        h = cot_mul(cot_tanh(h), cot_sigmoid(cot_add(h, cot_mean(h, COT_KEEP(0)))));
        cot_var loss = cot_softmax_cross_entropy(cot_matmul(h, b), target);
        loss = cot_add(loss, cot_mul(1e-3, cot_norm(a, 2, COT_ALL)));
        cot_backward(loss);
        out[n++] = cot_value(loss);
        cot_sgd_step(3, leaves, 0.1);
        for (int k = 0; k < 3; k++) {
            out[n++] = cot_value(cot_sum(leaves[k], COT_ALL));
            out[n++] = cot_value(cot_max(leaves[k], COT_ALL));
        }
        cot_tape_zero_grads(t);
        cot_tape_rewind(t, start);
    }
    test_tape_ok(t, "train");
    cot_tape_destroy(t);
    return n;
}

static void training_gives_the_same_bits(void **state) {
    (void)state;
    double alone[64], shared[64];
    cot_set_threads(1);
    int n = train(alone);
    for (int k = 1; k < TEST_COUNT(counts); k++) {
        cot_set_threads(counts[k]);
        train(shared);
        test_same_array("training", "threads", n, shared, alone);
    }
    assert_true(alone[0] > 2 && alone[(n / 7 - 1) * 7] < alone[0]); /* it does learn */
    cot_set_threads(0);
    test_verdict();
}

#if defined(__has_feature)
#define THREAD_SANITIZER __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#else
#define THREAD_SANITIZER 0
#endif

/* The child of a fork has no workers, and starts its own. */
static void a_forked_child_goes_on(void **state) {
    (void)state;
    if (THREAD_SANITIZER) skip(); /* it ends a child that starts threads */
    double alone[64];
    cot_set_threads(3);
    cot_tape *holds = cot_tape_create(NULL); /* the workers are there when the fork happens */
    int       n = train(alone);
    pid_t     child = fork();
    if (child == 0) {
        double forked[64];
        train(forked);
        _exit(memcmp(alone, forked, (size_t)n * sizeof *alone) == 0 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cot_tape_destroy(holds);
    cot_set_threads(0);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Value and gradients of an elementwise operation over `rows` x 37 elements: plain, or strided with
 * a broadcast operand. */
static int64_t apply(int op, cot_dtype dtype, int64_t rows, bool strided, double *out) {
    enum { COLUMNS = 37 };
    cot_tape   *t = cot_tape_create(NULL);
    test_random r = test_random_of(cot__elementwise_table[op].name, 0);
    int         arity = cot__elementwise_table[op].arity;
    cot_var     leaf[3], x[3];
    int64_t     n = 0, size = rows * COLUMNS;
    double     *data = malloc((size_t)(3 * size) * sizeof *data);
    float      *narrow = malloc((size_t)size * sizeof *narrow);
    for (int64_t i = 0; i < size; i++) {
        double at[3] = {0, 0, 0};
        test_sample(op, &r, at);
        for (int k = 0; k < 3; k++) data[k * size + i] = at[k];
    }
    for (int k = 0; k < arity; k++) {
        bool      row = strided && k == 1;
        cot_shape shape = row ? COT_SHAPE(COLUMNS) : strided ? COT_SHAPE(COLUMNS, rows) : COT_SHAPE(rows, COLUMNS);
        for (int64_t i = 0; i < size; i++) narrow[i] = (float)data[k * size + i];
        leaf[k] = cot_tensor(t, dtype, shape, dtype == COT_F64 ? (const void *)(data + k * size) : narrow);
        x[k] = strided && !row ? cot_transpose(leaf[k]) : leaf[k];
    }
    cot_var z = test_call(op, x);
    cot_read(z, out, cot_size(z));
    n += cot_size(z);
    if (cot_requires_grad(z)) {
        cot_backward_seeded(z, cot_add(z, 0.25));
        for (int k = 0; k < arity; k++) {
            cot_read_grad(leaf[k], out + n, cot_size(leaf[k]));
            n += cot_size(leaf[k]);
        }
    }
    test_tape_ok(t, cot__elementwise_table[op].name);
    cot_tape_destroy(t);
    free(data);
    free(narrow);
    return n;
}

static void elementwise_operations_do_not_show_threads(void **state) {
    (void)state;
    const int64_t rows = test_small() ? 30 : 300, room = 4 * rows * 37;
    double       *alone = malloc((size_t)room * sizeof *alone), *shared = malloc((size_t)room * sizeof *shared);
    int64_t       usual = cot__grain;
    for (int op = 0; op < OP_elementwise_count; op++)
        for (int form = 0; form < 4; form++) {
            cot_dtype dtype = form & 1 ? COT_F32 : COT_F64;
            cot_set_threads(1);
            cot__grain = usual;
            int64_t n = apply(op, dtype, rows, form & 2, alone);
            cot__grain = 256;
            for (int k = 0; k < TEST_COUNT(counts); k++) {
                cot_set_threads(counts[k]);
                apply(op, dtype, rows, form & 2, shared);
                test_same_array("cut into parts", cot__elementwise_table[op].name, n, shared, alone);
            }
        }
    cot__grain = usual;
    cot_set_threads(0);
    free(alone);
    free(shared);
    test_verdict();
}

/* A slice has one tree, whether it is folded alone, in chunks, next to others, or on other
 * threads. */
static void long_reductions_have_one_tree(void **state) {
    (void)state;
    enum { COLUMNS = 20 };
    const int64_t rows = test_small() ? 5000 : 200000;
    cot_tape     *t = cot_tape_create(NULL);
    test_random   r = test_random_of("tree", 0);
    float        *data = malloc((size_t)(rows * COLUMNS) * sizeof *data);
    for (int64_t i = 0; i < rows * COLUMNS; i++) data[i] = (float)test_uniform(&r, -1, 1);
    cot_var (*const reductions[])(cot_var, cot_axes) = {(cot_sum), (cot_max), (cot_logsumexp)};
    for (int what = 0; what < TEST_COUNT(reductions); what++) {
        double   side_by_side[COLUMNS], again[COLUMNS], usual = (double)cot__grain;
        cot_var  x = cot_data(t, COT_F32, COT_SHAPE(rows, COLUMNS), data);
        cot_mark mark = cot_tape_mark(t);
        cot_read(reductions[what](x, COT_AXES(0)), side_by_side, COLUMNS);
        for (int k = 0; k < TEST_COUNT(counts); k++) {
            cot_set_threads(counts[k]);
            cot__grain = k % 2 ? 1 : (int64_t)usual;
            cot_read(reductions[what](x, COT_AXES(0)), again, COLUMNS);
            test_same_array("side by side", "reduction", COLUMNS, again, side_by_side);
            for (int c = 0; c < COLUMNS; c += 7) {
                cot_var column = cot_copy(cot_slice(x, 1, c, c + 1, 1));
                again[0] = cot_value(reductions[what](column, COT_ALL));
                again[1]       = cot_value(reductions[what](
                    cot_reshape(cot_copy(cot_flip(cot_flip(column, COT_ALL), COT_ALL)), COT_SHAPE(-1)), COT_ALL));
                TEST_CHECK(again[0] == side_by_side[c] && again[1] == side_by_side[c],
                           "reduction %d of column %d: %.9g alone, %.9g beside others", what, c, again[0],
                           side_by_side[c]);
            }
            cot_tape_rewind(t, mark);
        }
        cot__grain = (int64_t)usual;
    }
    test_tape_ok(t, "tree");
    free(data);
    cot_tape_destroy(t);
    cot_set_threads(0);
    test_verdict();
}

/* Products of every transpose, single and batched, in one piece and in parts. */
static void products_do_not_show_threads(void **state) {
    (void)state;
    enum { M = 130, K = 300, N = 150, BATCH = 5 };
    static double data[BATCH * K * N];
    static double alone[BATCH * M * N], shared[BATCH * M * N];
    test_random   r = test_random_of("products", 0);
    int64_t       usual = cot__grain;
    for (int i = 0; i < BATCH * K * N; i++) data[i] = test_uniform(&r, -1, 1);
    for (int form = 0; form < 16; form++)
        for (int k = 0; k < TEST_COUNT(counts); k++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_dtype d = form & 8 ? COT_F32 : COT_F64;
            int64_t   batch = form & 4 ? BATCH : 1;
            cot_var   a =
                cot_cast(cot_data(t, COT_F64, form & 1 ? COT_SHAPE(batch, K, M) : COT_SHAPE(batch, M, K), data), d);
            cot_var b =
                cot_cast(cot_data(t, COT_F64, form & 2 ? COT_SHAPE(batch, N, K) : COT_SHAPE(batch, K, N), data), d);
            if (form & 1) a = cot_permute(a, COT_AXES(0, 2, 1));
            if (form & 2) b = cot_permute(b, COT_AXES(0, 2, 1));
            cot_set_threads(counts[k]);
            cot__grain = k % 2 ? 1 : usual;
            cot_read(cot_matmul(a, b), k ? shared : alone, batch * M * N);
            if (k) test_same_array("product", "matmul", batch * M * N, shared, alone);
            test_tape_ok(t, "products");
            cot_tape_destroy(t);
        }
    cot__grain = usual;
    cot_set_threads(0);
    test_verdict();
}

/* Vectors with matrices, vectors with vectors and deep products with a small result are cut along
 * their columns or along the depth. */
static void thin_and_deep_products_do_not_show_threads(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{1, 700, 900}, {700, 1, 900},  {1, 9, 5000},  {9, 1, 5000},
                                        {1, 1, 7000},  {10, 12, 5000}, {2, 3, 70000}, {1, 1, 70001},
                                        {1, 1, 20000}, {300, 1, 200},  {64, 70, 64}};
    enum { MOST = 700 * 900, RESULTS = 64 * 70 };
    static double data[MOST], alone[RESULTS], shared[RESULTS];
    test_random   r = test_random_of("thin", 0);
    int64_t       usual = cot__grain;
    for (int i = 0; i < MOST; i++) data[i] = test_uniform(&r, -1, 1);
    for (int form = 0; form < 8 * TEST_COUNT(shapes); form++)
        for (int c = 0; c < TEST_COUNT(counts); c++) {
            const int64_t *s = shapes[form / 8], m = s[0], n = s[1], k = s[2];
            cot_tape      *t = cot_tape_create(NULL);
            cot_dtype      d = form & 4 ? COT_F32 : COT_F64;
            cot_var        a = cot_cast(cot_data(t, COT_F64, form & 1 ? COT_SHAPE(k, m) : COT_SHAPE(m, k), data), d);
            cot_var        b = cot_cast(cot_data(t, COT_F64, form & 2 ? COT_SHAPE(n, k) : COT_SHAPE(k, n), data), d);
            if (form & 1) a = cot_transpose(a);
            if (form & 2) b = cot_transpose(b);
            cot_set_threads(counts[c]);
            cot__grain = c % 2 ? 1 : usual;
            cot_read(cot_matmul(a, b), c ? shared : alone, m * n);
            if (c) test_same_array("product", "matmul", m * n, shared, alone);
            test_tape_ok(t, "thin products");
            cot_tape_destroy(t);
        }
    cot__grain = usual;
    cot_set_threads(0);
    test_verdict();
}

/* Batches of products with nothing in them. */
static void empty_products_are_empty_or_zero(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    for (int form = 0; form < 8; form++) {
        int64_t m = form & 1 ? 4 : 0, k = form & 2 ? 5 : 0, n = form & 4 ? 3 : 0;
        double  z[36];
        cot_var a = cot_ones(t, COT_F64, COT_SHAPE(3, m, k)), b = cot_ones(t, COT_F64, COT_SHAPE(3, k, n)),
                c = cot_matmul(a, b);
        assert_int_equal(cot_size(c), 3 * m * n);
        cot_read(c, z, 3 * m * n);
        for (int64_t i = 0; i < 3 * m * n; i++) assert_true(z[i] == (double)k);
    }
    test_tape_ok(t, "empty");
    cot_tape_destroy(t);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_runs_once),
        cmocka_unit_test(each_part_runs_once_in_large_numbers),
        cmocka_unit_test(each_part_of_a_small_job_runs_once),
        cmocka_unit_test(small_jobs_wake_workers_when_there_are_many),
        cmocka_unit_test(the_share_of_a_busy_thread_is_done_by_others),
        cmocka_unit_test(parts_may_call_the_pool),
        cmocka_unit_test(many_threads_share_the_pool),
        cmocka_unit_test(the_number_of_threads_is_kept),
        cmocka_unit_test(training_gives_the_same_bits),
        cmocka_unit_test(a_forked_child_goes_on),
        cmocka_unit_test(elementwise_operations_do_not_show_threads),
        cmocka_unit_test(long_reductions_have_one_tree),
        cmocka_unit_test(products_do_not_show_threads),
        cmocka_unit_test(thin_and_deep_products_do_not_show_threads),
        cmocka_unit_test(empty_products_are_empty_or_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
