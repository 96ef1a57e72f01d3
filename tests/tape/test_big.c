/* Size: 10^8 operations are recorded and swept on a 64 kB stack, with 32 bytes a node; a rewind
 * visits no nodes; slices in a loop stay linear. */
/* ctest: timeout=600 plain-only */
#include "support/tape_test.h"

#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>

enum { STACK = 64 * 1024 };

static int64_t available_bytes(void) {
    char    line[128];
    int64_t kb = 0;
    FILE   *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lld kB", (long long *)&kb) == 1) break;
    if (f) fclose(f);
    return kb * 1024;
}

/* Runs work(arg) on a stack of 64 kB. */
static void on_a_small_stack(void *(*work)(void *), void *arg) {
    pthread_attr_t attr;
    pthread_t      thread;
    size_t         stack = STACK;
#ifdef PTHREAD_STACK_MIN
    if (stack < (size_t)PTHREAD_STACK_MIN) stack = (size_t)PTHREAD_STACK_MIN;
#endif
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, stack), 0);
    assert_int_equal(pthread_create(&thread, &attr, work, arg), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
}

typedef struct chain {
    int64_t    n;
    double     value, gradient, second, bytes_per_node, with_slots;
    int64_t    faults_recording, faults_rewinding, faults_again, nodes_after;
    cot_status status;
    char       message[256];
} chain;

static int64_t page_faults(void) {
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? u.ru_minflt : 0;
}

/* y ← (y + c) · k, n/2 times: the product of the factors is the gradient. */
static void record_chain(cot_var *y, int64_t n) {
    for (int64_t i = 0; i < n / 2; i++) *y = cot_mul(cot_add(*y, 1e-3), i & 1 ? 0.5 : 2.0);
}

static void *scalar_chain(void *arg) {
    chain    *c = arg;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), y = x;
    cot_mark  m = cot_tape_mark(t);
    int64_t   empty = cot_tape_bytes(t), faults = page_faults();
    record_chain(&y, c->n);
    c->faults_recording = page_faults() - faults;
    c->bytes_per_node = (double)(cot_tape_bytes(t) - empty) / (double)cot_tape_length(t);
    c->value = cot_value(y);
    cot_backward(y);
    c->gradient = cot_grad_value(x);
    c->with_slots = (double)(cot_tape_bytes(t) - empty) / (double)cot_tape_length(t);
    faults = page_faults();
    cot_tape_rewind(t, m);
    c->faults_rewinding = page_faults() - faults;
    c->nodes_after = cot_tape_length(t);
    cot_zero_grad(x);
    y = x;
    faults = page_faults();
    record_chain(&y, c->n / 100); /* the memory is still there */
    c->faults_again = page_faults() - faults;
    cot_backward(y);
    c->second = cot_grad_value(x);
    c->status = cot_tape_status(t);
    snprintf(c->message, sizeof c->message, "%s", cot_tape_message(t));
    cot_tape_destroy(t);
    return NULL;
}

static void a_hundred_million_operations_on_a_small_stack(void **state) {
    (void)state;
    chain   c = {.n = test_small() ? 1000000 : 100000000};
    int64_t have = available_bytes(), need = c.n * 60;
    if (!test_small() && have < need) {
        print_message("skipped: %lld MB of memory are available, %lld MB needed for %lld operations\n",
                      (long long)(have >> 20), (long long)(need >> 20), (long long)c.n);
        skip();
    }
    on_a_small_stack(scalar_chain, &c);
    assert_string_equal(c.message, "");
    assert_int_equal(c.status, COT_OK);
    assert_near(c.gradient, 1, 0); /* as many halvings as doublings */
    assert_near(c.second, 1, 0);
    assert_true(isfinite(c.value));
    print_message("%lld operations: %.2f bytes a node, %.2f with the slots of a sweep; page faults: %lld recording, "
                  "%lld rewinding\n",
                  (long long)c.n, c.bytes_per_node, c.with_slots, (long long)c.faults_recording,
                  (long long)c.faults_rewinding);
    assert_true(c.bytes_per_node <= 32.01);
    assert_true(c.with_slots <= 40.02);
    assert_int_equal(c.nodes_after, 1);
    assert_true(c.faults_recording > 0);
    assert_true(c.faults_rewinding < 16);
}

/* A rewind and destruction must not read nodes. Here all nodes but the first page are made
 * unreadable, by an allocator that hands them out of its own mapping, before the rewind: reading
 * one would end the program. */
#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>

typedef struct fence { char *base; size_t size; bool used; } fence;

static void *fenced_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
    fence *f = user;
    if ((char *)ptr == f->base) {
        /* the nodes: they live in the mapping from their first growth beyond 1 MB on, in place */
        if (new_size == 0) return NULL;
        return new_size <= f->size ? ptr : NULL;
    }
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    if (!f->used && new_size >= (size_t)1 << 20) {
        f->used = true;
        memcpy(f->base, ptr, old_size);
        free(ptr);
        return f->base;
    }
    return realloc(ptr, new_size);
}

static void forgetting_does_not_walk_nodes(void **state) {
    (void)state;
    fence f = {.size = (size_t)64 << 20};
    f.base = mmap(NULL, f.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(f.base != MAP_FAILED);
    cot_tape *t = cot_tape_create(&(cot_options){.allocator = {fenced_alloc, &f}});
    cot_var   x = cot_scalar(t, 0.5), y = x;
    cot_mark  m = cot_tape_mark(t);
    record_chain(&y, 1000000);
    assert_true(f.used);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(mprotect(f.base + page, f.size - page, PROT_NONE), 0);
    cot_tape_rewind(t, m);
    assert_int_equal(cot_tape_length(t), 1);
    assert_near(cot_value(cot_mul(x, 2.0)), 1, 0);
    assert_ok(t);
    assert_int_equal(mprotect(f.base + page, f.size - page, PROT_READ | PROT_WRITE), 0);
    record_chain(&x, 1000000);
    assert_int_equal(mprotect(f.base, f.size, PROT_NONE), 0);
    cot_tape_destroy(t);
    munmap(f.base, f.size);
}
#else
static void forgetting_does_not_walk_nodes(void **state) { (void)state, skip(); }
#endif

/* ---- wide ------------------------------------------------------------------------------------ */

static void *million_leaves(void *arg) {
    char     *message = arg;
    enum { N = 1000000 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var  *x = malloc(N * sizeof *x), y;
    for (int i = 0; i < N; i++) x[i] = cot_scalar(t, (double)(i % 7));
    y = cot_dot_of(N, x, x);
    cot_backward(y);
    double wrong = 0;
    for (int i = 0; i < N; i++) wrong += fabs(cot_grad_value(x[i]) - 2.0 * (i % 7));
    snprintf(message, 256, "%s", wrong ? "wrong gradients" : cot_tape_message(t));
    free(x);
    cot_tape_destroy(t);
    return NULL;
}

static void a_million_leaves(void **state) {
    (void)state;
    char message[256] = "did not run";
    on_a_small_stack(million_leaves, message);
    assert_string_equal(message, "");
}

/* Σ sin(x[i]) with x[i] a slice of one tensor: neither values nor adjoints may be copied for
 * each. */
static void slices_in_a_loop_are_linear(void **state) {
    (void)state;
    int      n = test_small() ? 1000 : 10000;
    counting c = {0};
    for (int recorded = 0; recorded < 2; recorded++) {
        cot_tape *t = counted_tape(&c, false);
        double   *data = calloc((size_t)n, sizeof *data), *grad = calloc((size_t)n, sizeof *grad);
        for (int i = 0; i < n; i++) data[i] = i * 1e-3;
        cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(n), data), y = cot_constant(t, 0), g;
        for (int i = 0; i < n; i++) y = cot_add(y, cot_sin(cot_index(x, 0, i)));
        int64_t tensor = (int64_t)n * 8;
        assert_true(cot_tape_storage_bytes(t) <= 4 * tensor);
        if (recorded) {
            assert_int_equal(cot_grad_of(y, 1, &x, &g), COT_OK);
            cot_read(g, grad, n);
        } else {
            assert_int_equal(cot_backward(y), COT_OK);
            cot_read_grad(x, grad, n);
        }
        assert_true(cot_tape_storage_bytes(t) <= 8 * tensor);
        assert_true(cot_tape_bytes(t) <= 2000 * (int64_t)n + (1 << 20));
        for (int i = 0; i < n; i++) assert_near(grad[i], cos(data[i]), 1e-15);
        free(data);
        free(grad);
        cot_tape_destroy(t);
        assert_int_equal(c.live, 0);
    }
}

/* ---- deep ------------------------------------------------------------------------------------ */

static void *tensor_chain(void *arg) {
    chain    *c = arg;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){0.5, 0.25}), y = x, g;
    for (int64_t i = 0; i < c->n / 3; i++) y = cot_reshape(cot_mul(cot_transpose(y), i & 1 ? 0.5 : 2.0), COT_SHAPE(2));
    cot_var s = cot_sum(y, COT_ALL);
    cot_backward(s);
    double grad[2] = {0};
    cot_read_grad(x, grad, 2);
    c->gradient = grad[0];
    cot_grad_of(s, 1, &x, &g);
    cot_read(g, grad, 2);
    c->second = grad[1];
    cot_var d = cot_jvp(s, 1, &x, &x);
    c->value = cot_value(d);
    c->status = cot_tape_status(t);
    snprintf(c->message, sizeof c->message, "%s", cot_tape_message(t));
    cot_tape_destroy(t);
    return NULL;
}

static void a_deep_chain_of_tensors_on_a_small_stack(void **state) {
    (void)state;
    chain c = {.n = test_small() ? 6000 : 100002};
    on_a_small_stack(tensor_chain, &c);
    assert_string_equal(c.message, "");
    assert_near(c.gradient, 1, 0);
    assert_near(c.second, 1, 0);
    assert_near(c.value, 0.75, 0);
}

/* Blocks of elementwise work lie on the stack, too. */
static void *elementwise_sweep(void *arg) {
    chain        *c = arg;
    static double data[20000], grad[20000];
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       x = cot_tensor(t, COT_F64, COT_SHAPE(20000), data), y = x, g;
    for (int i = 0; i < 4; i++) y = cot_add(cot_mul(cot_tanh(y), 0.5), cot_expm1(y));
    cot_var s = cot_sum(y, COT_ALL);
    cot_backward(s);
    cot_read_grad(x, grad, 20000);
    c->gradient = grad[0];
    cot_grad_of(s, 1, &x, &g);
    cot_read(g, grad, 20000);
    c->second = grad[19999];
    c->status = cot_tape_status(t);
    cot_tape_destroy(t);
    return NULL;
}

static void elementwise_work_on_a_small_stack(void **state) {
    (void)state;
    if (test_small()) skip(); /* sanitizers need room of their own */
    chain c = {.n = 0};
    on_a_small_stack(elementwise_sweep, &c);
    assert_int_equal(c.status, COT_OK);
    assert_near(c.gradient, 5.0625, 0); /* 1.5^4 */
    assert_near(c.second, 5.0625, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundred_million_operations_on_a_small_stack),
        cmocka_unit_test(forgetting_does_not_walk_nodes),
        cmocka_unit_test(a_million_leaves),
        cmocka_unit_test(slices_in_a_loop_are_linear),
        cmocka_unit_test(a_deep_chain_of_tensors_on_a_small_stack),
        cmocka_unit_test(elementwise_work_on_a_small_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
