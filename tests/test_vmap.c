/* Batches: every operation of the tables for a batch at once equals the loop. */
/* ctest: timeout=120 */
#include "samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 4096, MAX_ARGS = 64, EXTENT = 3 };

static cot_var values[MAX_NODES];
static bool    batched[MAX_NODES];

static bool overwritten(const cot_tape *t, uint32_t i) {
    const cot__node *n = &t->nodes[i];
    return cot__is_tensor(n) && n->value.tensor->version != n->value.tensor->storage->version;
}

static void replay(cot_tape *t, uint32_t i, int64_t extent) {
    cot_var xs[MAX_ARGS];
    bool    is[MAX_ARGS];
    int     n = cot__nargs(&t->nodes[i]);
    assert_in_range(n, 0, MAX_ARGS);
    batched[i] = false;
    if (cot__op_of(t->nodes[i].op)->kind == KIND_SOURCE) {
        values[i] = overwritten(t, i) ? cot_zeros(t, cot__dtype_at(&t->nodes[i]), cot__shape_at(t, i)) : VAR(t, i);
        return;
    }
    for (int k = 0; k < n; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        xs[k] = a == COT__NONE ? (cot_var){0} : values[a];
        is[k] = a != COT__NONE && batched[a];
        batched[i] |= is[k];
    }
    values[i] = cot__reapply_batched(t, i, &(cot__batch){extent, n, is}, xs);
    if (t->status != COT_OK || !batched[i]) return;
    cot_shape have = cot_shape_of(values[i]), want = cot__batch_shape(t, extent, cot__shape_at(t, i));
    TEST_CHECK(cot__same_shape(&have, &want), "a batch of %s has the wrong shape", cot__op_name(t, i));
    TEST_CHECK(cot_dtype_of(values[i]) == cot__dtype_at(&t->nodes[i]), "a batch of %s has another dtype", cot__op_name(t, i));
}

/* |a - b| relative to the largest of b. */
static double distance(cot_var a, cot_var b) {
    static double p[4096], q[4096];
    cot_shape     sa = cot_shape_of(a), sb = cot_shape_of(b);
    if (cot_dtype_of(a) != cot_dtype_of(b) || !cot__same_shape(&sa, &sb)) return INFINITY;
    int64_t n = cot__count(sa.ndim, sa.dim);
    double  most = 0, off = 0;
    assert_true(n <= 4096);
    if (n == 0) return 0;
    cot_read(cot_cast(a, COT_F64), p, n);
    cot_read(cot_cast(b, COT_F64), q, n);
    for (int64_t i = 0; i < n; i++) {
        if (isnan(p[i]) != isnan(q[i])) return INFINITY;
        if (isnan(p[i]) || p[i] == q[i]) continue;
        most = fmax(most, fabs(q[i]));
        off = fmax(off, fabs(p[i] - q[i]));
    }
    return off / fmax(most, 1);
}

static cot_var loss(cot_var y) { return cot_sum(cot_mul(y, cot_add(cot_mul(y, 0.5), 1.0)), COT_ALL); }
static bool    records_by_value(cot_function f) { return f == s_matrix_exp || f == s_matrix_exp_large; }

static void sample_case(int i, unsigned subset) {
    test_function f = function_of(&samples[i], i, 0);
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       all[TEST_MAX_INPUTS], xs[TEST_MAX_INPUTS], each[EXTENT], grads[2][TEST_MAX_INPUTS];
    char          name[96];
    snprintf(name, sizeof name, "%s, batched inputs %u", f.name, subset);
    for (int k = 0; k < f.n; k++) {
        double    data[EXTENT * TEST_MAX_SIZE];
        cot_shape s = f.in[k].shape, b = {s.ndim + 1, {EXTENT}};
        int64_t   n = cot__count(s.ndim, s.dim);
        for (int d = 0; d < s.ndim; d++) b.dim[d + 1] = s.dim[d];
        for (int e = 0; e < EXTENT; e++) {
            test_function g = function_of(&samples[i], i, e);
            memcpy(data + e * n, g.in[k].data, (size_t)n * sizeof *data);
        }
        all[k] = cot_tensor(t, COT_F64, subset >> k & 1 ? b : s, data);
    }
    for (int e = EXTENT - 1; e >= 0; e--) {
        for (int k = 0; k < f.n; k++) xs[k] = subset >> k & 1 ? cot_index(all[k], 0, e) : all[k];
        uint32_t from = t->count;
        each[e] = f.f(f.n, xs, f.user);
        if (e > 0 || !test_tape_ok(t, name)) continue;
        uint32_t to = t->count;
        for (uint32_t v = 0; v < from; v++) values[v] = VAR(t, v), batched[v] = false;
        for (int k = 0; k < f.n; k++)
            if (subset >> k & 1) values[cot__index(xs[k])] = all[k], batched[cot__index(xs[k])] = true;
        for (uint32_t v = from; v < to && t->status == COT_OK; v++) replay(t, v, EXTENT);
    }
    if (test_tape_ok(t, name)) {
        cot_var want = cot_stack(EXTENT, each, 0), have = values[cot__index(each[0])];
        if (!batched[cot__index(each[0])]) have = cot_broadcast_to(have, cot_shape_of(want));
        double off = distance(have, want);
        TEST_CHECK(off < 1e-12, "%s: the batch is %g off the loop", name, off);
        cot_grad_of(loss(have), f.n, all, grads[0]);
        cot_grad_of(loss(want), f.n, all, grads[1]);
        if (test_tape_ok(t, name))
            for (int k = 0; k < f.n; k++) {
                off = distance(grads[0][k], grads[1][k]);
                TEST_CHECK(off < 1e-10, "%s: the gradient of input %d through the batch is %g off", name, k, off);
            }
    }
    cot_tape_destroy(t);
}

static void every_sample(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++)
        for (unsigned subset = 1; subset < 1u << samples[i].n && !records_by_value(samples[i].f); subset++) sample_case(i, subset);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_sample)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
