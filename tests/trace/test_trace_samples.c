/* Traces of every operation: the amounts that the rule of each node adds, one after the other, sum
 * up to the adjoints of the sweep to the bit, and the sums at leaves are the gradients of
 * cot_backward. */
/* ctest: timeout=120 */
#include "rules/elementwise_ids.h"
#include "support/support.h"

#include "diff/engine/kept_adjoints.h"
#include "backend/cpu/table/cpu.h"
#include "ops/structural.h"
#include "samples/samples.h"
#include "trace/trace.h"

#include <string.h>

static int64_t elements(const cot__view *v, double *out) {
    cot__reader r;
    cot__reader_open(&r, &cot__cpu_backend, v);
    while (r.at < r.size) {
        int64_t i = r.at;
        double  x = cot__reader_next(&r);
        assert_true(i < 4096);
        out[i] = x;
    }
    return r.size;
}

static void same_views(const char *what, const char *name, uint32_t id, const cot__view *a, const cot__view *b) {
    double  x[4096], y[4096];
    int64_t n = elements(a, x);
    TEST_CHECK(a->ndim == b->ndim && elements(b, y) == n, "%s: %s of %%%u has another shape", name, what, id);
    for (int64_t i = 0; i < n; i++)
        TEST_CHECK(test_equal(x[i], y[i]), "%s: %s of %%%u: [%lld] is %.17g, not %.17g", name, what, id, (long long)i,
                   x[i], y[i]);
}

/* In the order of the sweep: the last sum of a node is its adjoint, each sum is the one before and
 * the amount. */
static void sums_are_adjoints(const char *name, const cot__trace *tr) {
    for (int64_t i = 0; i < tr->step_count; i++) {
        uint32_t              id = tr->nodes[tr->steps[i].node].id;
        const cot__trace_add *last = NULL;
        double                total[4096] = {0}, size[4096] = {0}, amount[4096], adjoint[4096];
        int64_t               n = elements(&tr->steps[i].adjoint, adjoint);
        for (int64_t j = 0; j < i; j++)
            for (int k = 0; k < tr->steps[j].add_count; k++) {
                if (tr->steps[j].adds[k].to != id) continue;
                last = &tr->steps[j].adds[k];
                TEST_CHECK(elements(&last->amount, amount) == n, "%s: an amount for %%%u has another size", name, id);
                for (int64_t e = 0; e < n; e++) total[e] += amount[e], size[e] += fabs(amount[e]);
            }
        if (i == 0) continue; /* the seed */
        if (last) same_views("the last sum", name, id, &last->sum, &tr->steps[i].adjoint);
        /* The amounts added in f64: a few roundings in the dtype (16 bits: 8 of them) away. */
        double unit = tr->steps[i].adjoint.dtype == COT_F64   ? 1e-14
                      : tr->steps[i].adjoint.dtype == COT_F32 ? 1e-6
                                                              : 0.05;
        for (int64_t e = 0; e < n; e++)
            TEST_CHECK(fabs(total[e] - adjoint[e]) <= unit * size[e] || !isfinite(total[e]),
                       "%s: the amounts for %%%u come to %.17g, not %.17g", name, id, total[e], adjoint[e]);
    }
}

static void leaves_are_gradients(const char *name, const cot__trace *tr, int n, const cot_var *xs) {
    for (int k = 0; k < n; k++) {
        cot__view g;
        double    seen[4096] = {0}, grad[4096];
        int64_t   size = cot_size(xs[k]);
        if (cot__trace_adjoint(tr, cot__trace_find(tr, cot__index(xs[k])), &g)) elements(&g, seen);
        cot_read_grad(xs[k], grad, size);
        for (int64_t e = 0; e < size; e++)
            TEST_CHECK(test_equal(seen[e], grad[e]),
                       "%s: the gradient of input %d is %.17g in the trace, %.17g by cot_backward", name, k, seen[e],
                       grad[e]);
    }
}

static cot__trace *trace_of(cot_var y, cot_var seed, int n, const cot_var *xs, const char *name) {
    char             why[512];
    cot__trace_input inputs[TEST_MAX_INPUTS];
    for (int k = 0; k < n; k++) inputs[k] = (cot__trace_input){"x", xs[k], true};
    cot__trace *tr =
        cot__trace_make(&(cot__trace_request){.y = y, .seed = &seed, .input_count = n, .inputs = inputs}, why);
    TEST_CHECK(tr && !tr->why[0], "%s: no trace: %s", name, tr ? tr->why : why);
    return tr;
}

static void check(const test_function *f, cot_dtype dtype) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS];
    for (int k = 0; k < f->n; k++) {
        cot_var data = cot_cast(cot_data(t, COT_F64, f->in[k].shape, f->in[k].data), dtype);
        double  all[TEST_MAX_SIZE];
        float   narrow[TEST_MAX_SIZE];
        cot_read(data, all, cot_size(data));
        for (int64_t i = 0; i < cot_size(data); i++) narrow[i] = (float)all[i];
        if (f->in[k].shape.ndim == 0)
            xs[k] = cot_scalar_of(t, dtype, all[0]);
        else
            xs[k] = cot_tensor(t, dtype, f->in[k].shape,
                               dtype == COT_F64   ? (void *)all
                               : dtype == COT_F32 ? (void *)narrow
                                                  : NULL);
        if (dtype == COT_BF16 && f->in[k].shape.ndim) cot_assign(xs[k], data);
    }
    cot_var y = f->f(f->n, xs, f->user), seed = cot_cos(cot_cast(y, dtype));
    int64_t length = cot_tape_length(t);
    if (!test_tape_ok(t, f->name) || cot_dtype_of(y) != dtype) {
        cot_tape_destroy(t);
        return;
    }
    cot__trace *tr = trace_of(y, seed, f->n, xs, f->name);
    if (tr) {
        TEST_CHECK(cot_tape_length(t) == length, "%s: a trace leaves nodes on the tape", f->name);
        char broken[512];
        TEST_CHECK(cot_tape_check(t, broken, sizeof broken) == COT_OK, "%s: %s", f->name, broken);
        cot_backward_seeded(y, seed);
        sums_are_adjoints(f->name, tr);
        leaves_are_gradients(f->name, tr, f->n, xs);
        TEST_CHECK(tr->cost.forward_sweep >= 0 && tr->cost.reverse_sweep >= 0 &&
                       tr->cost.reverse_bytes >= tr->cost.function_bytes,
                   "%s: costs %g %g %g %g", f->name, tr->cost.forward_sweep, tr->cost.reverse_sweep,
                   tr->cost.reverse_bytes, tr->cost.function_bytes);
    }
    test_tape_ok(t, f->name);
    cot__trace_free(tr);
    cot_tape_destroy(t);
}

static void structural_operations_add_up(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++)
        for (int d = COT_F64; d <= COT_F32; d++) {
            test_function f = function_of(&samples[i], i, 0);
            check(&f, (cot_dtype)d);
        }
    test_verdict();
}

/* An elementwise operation on its first operand twice, where it takes two: two additions to one
 * adjoint. */
static cot_var elementwise(int n, const cot_var *x, void *user) {
    int     op = *(int *)user;
    cot_var z = test_call(op, x);
    (void)n;
    return cot__elementwise_arity(op) == 2 ? cot_add(z, test_call(op, (cot_var[]){x[1], x[1]})) : z;
}

static void elementwise_operations_add_up(void **state) {
    (void)state;
    for (int op = 0; op < OP_elementwise_count; op++) {
        if (cot__op_of(op)->kind == KIND_NONE) continue;
        for (int d = COT_F64; d <= COT_BF16; d++)
            for (int ndim = 0; ndim < 2; ndim++) {
                test_function f = {
                    .name = cot__op_of(op)->name, .f = elementwise, .user = &op, .n = cot__elementwise_arity(op)};
                test_random   random = test_random_of(f.name, ndim);
                for (int k = 0; k < f.n; k++) f.in[k].shape = ndim ? COT_SHAPE(5) : COT_SCALAR;
                for (int i = 0; i < 5; i++) {
                    double x[3];
                    test_sample(op, &random, x);
                    for (int k = 0; k < f.n; k++) f.in[k].data[i] = x[k];
                }
                if (op == OP_where) continue; /* its condition is a bool: the samples take it */
                check(&f, (cot_dtype)d);
            }
    }
    test_verdict();
}

/* Nothing but the rule gives: each step that has run says to whom, with a rule in words. */
static void every_addition_has_words(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        test_function f = function_of(&samples[i], i, 0);
        cot_tape     *t = cot_tape_create(NULL);
        cot_var       xs[TEST_MAX_INPUTS];
        char          buf[COT__TRACE_TEXT];
        for (int k = 0; k < f.n; k++)
            xs[k] = f.in[k].shape.ndim ? cot_tensor(t, COT_F64, f.in[k].shape, f.in[k].data)
                                       : cot_scalar(t, f.in[k].data[0]);
        cot_var     y = f.f(f.n, xs, f.user);
        cot__trace *tr = trace_of(y, cot_number(1), f.n, xs, f.name);
        for (int64_t s = 0; tr && s < tr->step_count; s++)
            for (int k = 0; k < tr->steps[s].add_count; k++) {
                const char *op = cot__op_name(t, tr->nodes[tr->steps[s].node].id);
                TEST_CHECK(cot__trace_rule(tr, s, k, buf, sizeof buf)[0], "%s: no rule for operand %d", op,
                           tr->steps[s].adds[k].operand);
                TEST_CHECK(cot__trace_filled(tr, s, k, buf, sizeof buf)[0], "%s: no filled rule", op);
                TEST_CHECK(strstr(buf, "\xcc\x84") != NULL, "%s: no adjoint in the filled rule '%s'", op, buf);
            }
        cot__trace_free(tr);
        cot_tape_destroy(t);
    }
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structural_operations_add_up),
        cmocka_unit_test(elementwise_operations_add_up),
        cmocka_unit_test(every_addition_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
