/* cot_taylor over all operations: each elementwise operation of the table to order 4, each sample
 * of a structural one to order 3, against nested cot_jvp, along lines and curves, recorded and in
 * numbers, in f64 and f32. */
/* ctest: timeout=300 */
#include "rules/elementwise_ids.h"
#include "support/support.h"

#include "ops/structural.h"
#include "samples/samples.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORDERS = 4, ELEMENTS = 4096 };

/* Leaves of dtype for the inputs of f, and y = f of them. */
static cot_var record(cot_tape *t, const test_function *f, cot_dtype dtype, cot_var *xs, cot_var *vs) {
    for (int k = 0; k < f->n; k++) {
        cot_shape s = f->in[k].shape;
        cot_var   x = cot_cast(cot_data(t, COT_F64, s, f->in[k].data), dtype);
        xs[k] = cot_leaf(x);
        vs[k] = cot_cast(cot_data(t, COT_F64, s, f->in[k].direction), dtype);
    }
    return f->f(f->n, xs, f->user);
}

/* The derivatives that nested cot_jvp finds: out[m * size + i]; the number of elements, or -1. */
static int64_t nested(const test_function *f, cot_dtype dtype, int order, double *out) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS], vs[TEST_MAX_INPUTS], y = record(t, f, dtype, xs, vs);
    int64_t   size = cot_size(y);
    for (int m = 0; m <= order; m++) {
        cot_read(y, out + m * size, size);
        if (m < order) y = cot_requires_grad(y) ? cot_jvp(y, f->n, xs, vs) : cot_mul(y, 0.0);
    }
    bool ok = test_tape_ok(t, f->name);
    cot_tape_destroy(t);
    return ok ? size : -1;
}

/* a = b, up to the tolerance times the largest of b (or 1). */
static void compare(const char *what, const char *name, int64_t size, int m, const double *a, const double *b,
                    double tolerance) {
    double scale = 1;
    for (int64_t i = 0; i < size; i++)
        if (isfinite(b[i]) && fabs(b[i]) > scale) scale = fabs(b[i]);
    for (int64_t i = 0; i < size; i++) {
        bool same = isnan(b[i]) ? isnan(a[i]) : a[i] == b[i] || fabs(a[i] - b[i]) <= tolerance * scale;
        TEST_CHECK(same, "%s: %s: derivative %d, element %lld: %.17g, nested %.17g", name, what, m, (long long)i, a[i],
                   b[i]);
    }
}

static void taylor_is_nested(const test_function *f, int order) {
    static double want[ELEMENTS], got[ELEMENTS];
    int64_t       size = nested(f, COT_F64, order, want);
    if (size < 0) return;
    assert_true((order + 1) * size <= ELEMENTS);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS], vs[TEST_MAX_INPUTS], zs[ORDERS + 1], y = record(t, f, COT_F64, xs, vs);
    double    direction[TEST_MAX_INPUTS * TEST_MAX_SIZE];
    int64_t   n = 0;
    for (int k = 0; k < f->n; k++)
        for (int64_t i = 0; i < test_shape_size(&f->in[k].shape); i++) direction[n++] = f->in[k].direction[i];
    uint32_t before = t->count;
    if (cot_taylor_values(y, f->n, xs, 1, direction, order, got) == COT_OK) {
        TEST_CHECK(t->count == before, "%s: %u nodes stay on the tape", f->name, t->count - before);
        /* Both do the same arithmetic in another order: a few hundred roundings at most. */
        for (int m = 0; m <= order; m++)
            compare("numbers", f->name, size, m, got + m * size, want + m * size, 512 * DBL_EPSILON);
    }
    if (test_tape_ok(t, f->name) && cot_taylor(y, f->n, xs, 1, vs, order, zs) == COT_OK)
        for (int m = 0; m <= order; m++) {
            double z[ELEMENTS];
            cot_read(zs[m], z, size);
            compare("recorded as in numbers", f->name, size, m, z, got + m * size, 0);
        }
    if (test_tape_ok(t, f->name)) {
        char why[256];
        TEST_CHECK(cot_tape_check(t, why, sizeof why) == COT_OK, "%s: %s", f->name, why);
    }
    cot_tape_destroy(t);
}

/* y(x(s)) along the curve x(s) = x + v s + w s²: the same as along the line s of the
 * composition. */
static void curve_is_composition(const test_function *f, int order) {
    static double want[ELEMENTS], got[ELEMENTS], z[ELEMENTS];
    cot_tape     *t = cot_tape_create(NULL);
    cot_var xs[TEST_MAX_INPUTS], vs[TEST_MAX_INPUTS], on[TEST_MAX_INPUTS], curve[2 * TEST_MAX_INPUTS], zs[ORDERS + 1];
    cot_var       y = record(t, f, COT_F64, xs, vs), s = cot_scalar(t, 0);
    double        numbers[2 * TEST_MAX_INPUTS * TEST_MAX_SIZE], one = 1;
    int64_t       n = 0, size = cot_size(y);
    for (int k = 0; k < f->n; k++) {
        curve[k] = vs[k];
        curve[f->n + k] = cot_mul(vs[k], 0.5);
        on[k] = cot_add(xs[k], cot_mul(s, cot_add(vs[k], cot_mul(s, cot_mul(vs[k], 0.25)))));
    }
    for (int k = 0; k < 2 * f->n; k++) {
        cot_read(curve[k], numbers + n, cot_size(curve[k]));
        n += cot_size(curve[k]);
    }
    cot_var composed = f->f(f->n, on, f->user);
    if (test_tape_ok(t, f->name) && cot_requires_grad(composed) &&
        cot_taylor_values(composed, 1, &s, 1, &one, order, want) == COT_OK &&
        cot_taylor_values(y, f->n, xs, 2, numbers, order, got) == COT_OK &&
        cot_taylor(y, f->n, xs, 2, curve, order, zs) == COT_OK)
        for (int m = 0; m <= order; m++) {
            cot_read(zs[m], z, size);
            compare("along a curve", f->name, size, m, got + m * size, want + m * size, 512 * DBL_EPSILON);
            compare("along a curve, recorded", f->name, size, m, z, got + m * size, 0);
        }
    test_tape_ok(t, f->name);
    cot_tape_destroy(t);
}

static void single_precision(const test_function *f, int order) {
    static double want[ELEMENTS];
    static double got[ELEMENTS];
    int64_t       size = nested(f, COT_F32, order, want);
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       xs[TEST_MAX_INPUTS], vs[TEST_MAX_INPUTS], zs[ORDERS + 1], y = record(t, f, COT_F32, xs, vs);
    if (size >= 0 && cot_taylor(y, f->n, xs, 1, vs, order, zs) == COT_OK)
        for (int m = 0; m <= order; m++) {
            TEST_CHECK(cot_dtype_of(zs[m]) == cot_dtype_of(y), "%s: derivative %d has dtype %s", f->name, m,
                       cot_dtype_name(cot_dtype_of(zs[m])));
            cot_read(zs[m], got, size);
            compare("f32", f->name, size, m, got, want + m * size, 2048 * (double)FLT_EPSILON);
        }
    test_tape_ok(t, f->name);
    cot_tape_destroy(t);
}

/* ---- elementwise ----------------------------------------------------------------------------- */

static cot_var elementwise(int n, const cot_var *x, void *user) {
    cot_var xs[3] = {x[0], n > 1 ? x[1] : x[0], n > 2 ? x[2] : x[0]};
    return test_call(*(int *)user, xs);
}

static void each_elementwise(void **state) {
    (void)state;
    for (int op = 0; op < OP_elementwise_count; op++) {
        const cot__elementwise_info *e = &cot__elementwise_table[op];
        if (e->class == TEST) continue;
        for (int round = 0; round < (test_small() ? 2 : 20); round++) {
            test_random   random = test_random_of(e->name, round);
            bool          tensor = round & 1;
            test_function f = {.name = e->name, .f = elementwise, .user = &op, .n = e->arity};
            for (int k = 0; k < e->arity; k++) f.in[k].shape = tensor ? COT_SHAPE(3) : COT_SCALAR;
            test_fill(&f, &random, -1, 1);
            for (int i = 0; i < (tensor ? 3 : 1); i++) {
                double x[3];
                test_sample(op, &random, x);
                for (int k = 0; k < e->arity; k++) f.in[k].data[i] = x[k];
            }
            taylor_is_nested(&f, ORDERS);
            curve_is_composition(&f, 3);
            single_precision(&f, 3);
        }
    }
    test_verdict();
}

/* ---- structural ------------------------------------------------------------------------------ */

static void each_structural(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++)
        for (int round = 0; round < (test_small() ? 1 : 2); round++) {
            test_function f = function_of(&samples[i], i, round);
            taylor_is_nested(&f, 3);
            curve_is_composition(&f, 3);
            if (round == 0) single_precision(&f, 2);
        }
    test_verdict();
}

/* Operations recorded for a sample, all orders together. */
static double cost(const test_function *f, int order) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS], vs[TEST_MAX_INPUTS], zs[16], y = record(t, f, COT_F64, xs, vs);
    uint32_t  before = t->count;
    cot_taylor(y, f->n, xs, 1, vs, order, zs);
    test_tape_ok(t, f->name);
    double n = t->count - before;
    cot_tape_destroy(t);
    return n;
}

/* No rule has derivatives that multiply: at most as many new operations for each order, so at most
 * the cube. */
static void no_cost_explodes(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        const char *op = samples[i].op;
        if (op && (strcmp(op, "loop") == 0 || strcmp(op, "loop_adjoint") == 0 || strcmp(op, "pick") == 0 ||
                   strcmp(op, "call") == 0))
            /* The derivative of a loop is a loop that carries twice as much. The derivative of its
             * way back is the way back through such a loop. And the derivative of a program is a
             * program of twice as many inputs. */
            continue;
        test_function f = function_of(&samples[i], i, 0);
        double        few = cost(&f, 5), many = cost(&f, 10);
        TEST_CHECK(many <= 8 * few + 100, "%s: %g operations to order 5, %g to order 10", f.name, few, many);
    }
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_elementwise), cmocka_unit_test(each_structural),
                                       cmocka_unit_test(no_cost_explodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
