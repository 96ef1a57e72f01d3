/* The guarded backend: its memory cannot be touched outside of a call, and every sample has the
 * CPU's bits on it: in every node, in gradients, in products, and in sweeps of sparse plans. Whole
 * tests of other families run on it too (COT_TEST_BACKEND in tests/CMakeLists.txt). */
/* ctest: timeout=240 plain-only */
#include "samples/samples.h"

#include "backend/cpu/table/cpu.h"
#include "backend/guarded.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const cot__backend *const both[2] = {&cot__cpu_backend, &guarded_backend};

static cot_tape *tape_on(const cot__backend *b) {
    const cot__backend *usual = cot__new_tape_backend;
    cot__new_tape_backend = b;
    cot_tape *t = cot_tape_create(NULL);
    cot__new_tape_backend = usual;
    return t;
}

static void the_host_cannot_load_an_element(void **state) {
    (void)state;
    cot_tape *t = tape_on(&guarded_backend);
    cot_var   x = cot_data(t, COT_F64, COT_SHAPE(2), (double[]){1, 2});
    cot__view v = cot__view_read(t, cot__index(x));
    assert_true(guarded_owns(v.data));
    assert_ptr_equal(t->nodes[cot__index(x)].value.tensor->storage->backend, &guarded_backend);
    pid_t child = fork();
    if (child == 0) {
        /* instead of the test's own handler */
        signal(SIGSEGV, SIG_DFL);
        volatile double seen = *(const volatile double *)v.data;
        _exit(seen != seen);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    double out[2];
    assert_int_equal(cot_read(x, out, 2), COT_OK);
    assert_true(out[0] == 1 && out[1] == 2);
    cot_tape_destroy(t);
}

/* Both tapes hold the same nodes with the same bits. */
static void same_nodes(cot_tape *t[2], const char *name) {
    static double a[4096], b[4096];
    TEST_CHECK(t[0]->count == t[1]->count, "%s: %u nodes on the CPU, %u on the guarded backend", name, t[0]->count,
               t[1]->count);
    for (uint32_t i = 0; i < t[0]->count && i < t[1]->count; i++) {
        int64_t n = cot__size_at(t[0], i);
        if (n > TEST_COUNT(a) || cot__in_body(&t[0]->nodes[i])) continue;
        cot__view va = cot__view_read(t[0], i), vb = cot__view_read(t[1], i);
        cot__read_view(t[0], name, &va, va.dtype, a, n);
        cot__read_view(t[1], name, &vb, vb.dtype, b, n);
        size_t bytes = (size_t)(n * cot__dtype_size(va.dtype));
        TEST_CHECK(va.dtype == vb.dtype && memcmp(a, b, bytes) == 0, "%s: %s (%%%u) has other bits", name,
                   cot__op_of(t[0]->nodes[i].op)->name, i);
    }
}

/* Computes the value, its gradient recorded and in numbers, and two products. */
static void run_sample(cot_tape *t, const test_function *f, double *numbers) {
    cot_var xs[TEST_MAX_INPUTS], grads[TEST_MAX_INPUTS];
    for (int k = 0; k < f->n; k++) xs[k] = cot_tensor(t, COT_F64, f->in[k].shape, f->in[k].data);
    cot_var y = f->f(f->n, xs, f->user);
    cot_var loss = cot_sum(cot_mul(y, cot_add(cot_mul(y, 0.5), 1.0)), COT_ALL);
    if (cot_tape_status(t) != COT_OK) return;
    cot_grad_of(loss, f->n, xs, grads);
    cot_backward(loss);
    for (int k = 0; k < f->n && cot_tape_status(t) == COT_OK; k++) {
        cot_read_grad(xs[k], numbers, cot_size(xs[k]));
        numbers += cot_size(xs[k]);
    }
    double ones[TEST_MAX_INPUTS * TEST_MAX_SIZE];
    for (int k = 0; k < TEST_COUNT(ones); k++) ones[k] = 1;
    cot_jvps(1, f->n, xs, ones, 1, &loss, numbers);
}

static void every_sample_has_the_bits_of_the_cpu(void **state) {
    (void)state;
    int64_t before = guarded_calls();
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        test_function f = function_of(&samples[i], i, 0);
        static double numbers[2][TEST_MAX_INPUTS * TEST_MAX_SIZE + 1];
        cot_tape     *t[2];
        memset(numbers, 0, sizeof numbers);
        for (int b = 0; b < 2; b++) run_sample(t[b] = tape_on(both[b]), &f, numbers[b]);
        TEST_CHECK(cot_tape_status(t[0]) == cot_tape_status(t[1]) &&
                       strcmp(cot_tape_message(t[0]), cot_tape_message(t[1])) == 0,
                   "%s: \"%s\" on the CPU, \"%s\" on the guarded backend", f.name, cot_tape_message(t[0]),
                   cot_tape_message(t[1]));
        TEST_CHECK(memcmp(numbers[0], numbers[1], sizeof numbers[0]) == 0, "%s: derivatives have other bits", f.name);
        same_nodes(t, f.name);
        for (int b = 0; b < 2; b++) cot_tape_destroy(t[b]);
    }
    assert_true(guarded_calls() - before > 1000);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_cannot_load_an_element),
        cmocka_unit_test(every_sample_has_the_bits_of_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
