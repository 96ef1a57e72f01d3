/* The guarded backend: its memory cannot be touched outside of a call, and every sample has the
 * CPU's bits on it: in every node, in gradients, in products, and in sweeps of sparse plans. Whole
 * tests of other families run on it too (COT_TEST_BACKEND in tests/CMakeLists.txt). */
/* ctest: timeout=240 plain-only */
#include "samples/samples.h"
#include "support/support.h"

#include "backend/cpu/table/cpu.h"
#include "backend/guarded.h"
#include "rules/elementwise_ids.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const cot__backend *const both[2] = {&cot__cpu_backend, &guarded_backend};

static cot_tape *tape_with(const cot__backend *b, const cot_options *o) {
    const cot__backend *usual = cot__new_tape_backend;
    cot__new_tape_backend = b;
    cot_tape *t = cot_tape_create(o);
    cot__new_tape_backend = usual;
    return t;
}
static cot_tape *tape_on(const cot__backend *b) { return tape_with(b, NULL); }

/* A kernel that only the CPU's table has would be a call of NULL in the other tests. The entries
 * are words of one size, from `read` on. */
static void every_entry_of_the_cpu_has_a_guarded_one(void **state) {
    (void)state;
    enum { FIRST = offsetof(cot__backend, read) / sizeof(void (*)(void)),
           END   = sizeof(cot__backend) / sizeof(void (*)(void)) };
    void (*entry[2][END])(void);
    for (int b = 0; b < 2; b++) memcpy(entry[b], both[b], sizeof entry[b]);
    for (int k = FIRST; k < END; k++)
        TEST_CHECK(!entry[0][k] || entry[1][k],
                   "entry %d behind `read` of cot__backend (src/backend/backend.h) is not in tests/backend/guarded.c",
                   k - FIRST);
    test_verdict();
}

/* The table of `fast` is another one, with a product of its own. */
static void fast_products_have_the_bits_of_the_cpus(void **state) {
    enum { SIDE = 48 };
    double  x[SIDE * SIDE], z[2][SIDE * SIDE];
    int64_t before = guarded_calls();
    (void)state;
    for (int k = 0; k < SIDE * SIDE; k++) x[k] = (k * 7919 % 1009) / 1009.0 - 0.5;
    for (int b = 0; b < 2; b++) {
        cot_tape *t = tape_with(both[b], &(cot_options){.fast = true});
        cot_var   a = cot_cast(cot_data(t, COT_F64, COT_SHAPE(SIDE, SIDE), x), COT_BF16);
        assert_ptr_equal(t->backend, both[b]->fast);
        assert_ptr_not_equal(t->backend->matmul, both[b]->matmul);
        cot_read(cot_matmul(a, a), z[b], SIDE * SIDE);
        assert_int_equal(cot_tape_status(t), COT_OK);
        cot_tape_destroy(t);
    }
    assert_true(guarded_calls() > before);
    assert_memory_equal(z[0], z[1], sizeof z[0]);
}

static void the_host_cannot_load_an_element(void **state) {
    (void)state;
    cot_tape *t = tape_on(&guarded_backend);
    cot_var   x = cot_data(t, COT_F64, COT_SHAPE(2), (double[]){1, 2});
    cot__view v = cot__look(t, cot__index(x));
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
        cot__view va = cot__look(t[0], i), vb = cot__look(t[1], i);
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

/* ---- 0-d values ------------------------------------------------------------------------------ */

/* Node x is an array of rank 0 in memory of the backend, with this value. */
static void lies_on_the_device(cot_var x, double value) {
    const cot__node *n = &x.tape->nodes[cot__index(x)];
    assert_true(cot__is_tensor(n) && !cot__has_axes(n));
    assert_int_equal(n->value.tensor->ndim, 0);
    assert_true(guarded_owns(cot__look(x.tape, cot__index(x)).data));
    assert_true(cot_value(x) == value);
}

static void a_0d_value_is_an_array_of_rank_0(void **state) {
    (void)state;
    cot_tape *t = tape_on(&guarded_backend);
    cot_var   x = cot_scalar(t, 3), w = cot_scalar_of(t, COT_F32, 0.5), c = cot_constant(t, 4);
    cot_var   v = cot_data(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 5});
    cot_var   product = cot_mul(cot_add(x, 1), c), row = cot_broadcast_to(x, COT_SHAPE(2));
    lies_on_the_device(x, 3), lies_on_the_device(w, 0.5), lies_on_the_device(c, 4);
    lies_on_the_device(product, 16);
    lies_on_the_device(cot_sum(v, COT_ALL), 8), lies_on_the_device(cot_index(v, 0, 2), 5);
    lies_on_the_device(cot_detach(x), 3), lies_on_the_device(cot_sum_of(2, (cot_var[]){x, c}), 7);
    cot_var y = cot_add(cot_mul(product, cot_sum(row, COT_ALL)), w);
    assert_int_equal(cot_backward(y), COT_OK);
    assert_true(guarded_owns(t->nodes[cot__index(x)].extra.grad->data));
    assert_true(cot_grad_value(x) == 2 * 16 + 6 * 4 && cot_grad_value(w) == 1);
    lies_on_the_device(cot_grad(x), 56);
    /* they share memory with nothing: neither a write nor an assignment makes another one stale */
    cot_var third = cot_index(v, 0, 2);
    assert_int_equal(cot_add_into(&v, 1), COT_OK);
    assert_int_equal(cot_assign(x, 10), COT_OK);
    lies_on_the_device(third, 5), lies_on_the_device(x, 10), lies_on_the_device(cot_index(row, 0, 1), 3);
    assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
    char why[256];
    t->nodes[cot__index(c)].kind = COT_F64; /* as if it were in its node */
    assert_int_equal(cot_tape_check(t, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "%2 is a 0-d value in its node, but those of this tape lie on its device.");
    t->nodes[cot__index(c)].kind = COT_F64 | COT__TENSOR;
    cot_tape_destroy(t);
}

/* An operation on scalars: its value, its gradients in numbers and recorded, its tangent and its
 * second derivative, one step of both optimisers. */
static void run_on_scalars(cot_tape *t, int op, cot_dtype dtype, const double *at, double *numbers) {
    cot_var xs[3], grads[3];
    int     n = cot__elementwise_table[op].arity;
    for (int k = 0; k < n; k++) xs[k] = cot_scalar_of(t, dtype, at[k]);
    cot_var y = test_call(op, xs);
    if (cot_tape_status(t) != COT_OK || !cot_requires_grad(y)) return;
    cot_var z = cot_add(cot_mul(y, y), cot_mul(y, 0.25));
    cot_grad_of(z, n, xs, grads);
    cot_backward(z);
    for (int k = 0; k < n; k++) cot_read_grad(xs[k], numbers++, 1);
    for (int k = 0; k < n; k++) *numbers++ = cot_value(cot_jvp(z, 1, &xs[k], (cot_var[]){cot_constant(t, 2)}));
    if (cot_requires_grad(grads[0])) cot_jvps(1, 1, xs, (double[]){1}, 1, grads, numbers++);
    /* in a node an adjoint of 0 is none, on a device it is one: the step would see a gradient */
    if (cot_grad_value(xs[0]) == 0) return;
    cot_sgd_step(1, xs, 0.125);
    double m[2] = {0}, v[2] = {0};
    cot_adamw_step(1, xs, (void *[]){m}, (void *[]){v}, (cot_adamw){.step = 1, .rate = 0.5, .decay = 0.125});
    *numbers++ = cot_value(xs[0]);
    *numbers++ = m[0], *numbers++ = v[0];
}

static void every_operation_on_0d_values_has_the_bits_of_the_cpu(void **state) {
    (void)state;
    static const cot_dtype dtypes[] = {COT_F64, COT_F32};
    for (int op = 0; op < OP_elementwise_count; op++)
        for (int k = 0; k < 2 * 4; k++) {
            const char *name = cot__elementwise_table[op].name;
            test_random random = test_random_of(name, k);
            double      at[3], numbers[2][16] = {{0}};
            cot_tape   *t[2];
            test_sample(op, &random, at);
            for (int b = 0; b < 2; b++) run_on_scalars(t[b] = tape_on(both[b]), op, dtypes[k % 2], at, numbers[b]);
            TEST_CHECK(strcmp(cot_tape_message(t[0]), cot_tape_message(t[1])) == 0, "%s: \"%s\" and \"%s\"", name,
                       cot_tape_message(t[0]), cot_tape_message(t[1]));
            /* zeros perhaps with another sign: sums begin at 0 in nodes */
            for (int i = 0; i < 16; i++)
                TEST_CHECK(test_equal(numbers[0][i], numbers[1][i]), "%s: derivative %d: %.17g and %.17g", name, i,
                           numbers[0][i], numbers[1][i]);
            same_nodes(t, name);
            for (int b = 0; b < 2; b++) cot_tape_destroy(t[b]);
        }
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_entry_of_the_cpu_has_a_guarded_one),
        cmocka_unit_test(fast_products_have_the_bits_of_the_cpus),
        cmocka_unit_test(the_host_cannot_load_an_element),
        cmocka_unit_test(a_0d_value_is_an_array_of_rank_0),
        cmocka_unit_test(every_operation_on_0d_values_has_the_bits_of_the_cpu),
        cmocka_unit_test(every_sample_has_the_bits_of_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
