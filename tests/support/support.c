/* support.c: see support.h. */
#include "support/support.h"

#include "backend/guarded.h"
#include "memory/memory.h"
#include "pending/pending.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With COT_TEST_DEFER=1 all elementwise work of any test waits, and is done in the shortest blocks;
 * =products: all products of depth 1 wait; =all: both. Memory of unfinished values is filled with
 * NaN. A test that fails only then has found code that reads a value before its work is done. */
__attribute__((constructor)) static void defer_all(void) {
    const char *which = getenv("COT_TEST_DEFER");
    if (!which) return;
    if (strcmp(which, "1") != 0) cot__product_from = cot__product_times = 0;
    if (strcmp(which, "products") != 0) cot__pending_from = cot__pending_bytes = 1;
    cot__pending_spoils = true;
}

/* With COT_TEST_DROP=1 every tape drops what it can as soon as an operation is over, and computes
 * it again when it is read. A test that fails only then has found a value that is not made again
 * as it was, or code that holds an address for too long. */
__attribute__((constructor)) static void drop_all(void) { cot__drop_always = getenv("COT_TEST_DROP") != NULL; }

/* With COT_TEST_SPILL=FOLDER what can be spilled is, as soon as an operation is over. */
__attribute__((constructor)) static void spill_all(void) { cot__spill_always = getenv("COT_TEST_SPILL"); }

/* COT_TEST_BACKEND=guarded: every tape computes in memory that the host may not touch
 * (backend/guarded.h). */
__attribute__((constructor)) static void choose_backend(void) {
    const char *which = getenv("COT_TEST_BACKEND");
    if (which && strcmp(which, "guarded") == 0) cot__new_tape_backend = &guarded_backend;
}

/* ---- failures -------------------------------------------------------------------------------- */

static int failures;

void test_note(const char *format, ...) {
    if (++failures > 12) return;
    va_list args;
    va_start(args, format);
    fprintf(stderr, "    ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
}

void test_verdict(void) {
    int n = failures;
    failures = 0;
    if (n > 12) fprintf(stderr, "    … %d in all\n", n);
    assert_int_equal(n, 0);
}

bool test_tape_ok(const cot_tape *t, const char *name) {
    if (cot_tape_status(t) == COT_OK) return true;
    test_note("%s: %s", name, cot_tape_message(t));
    return false;
}

bool test_small(void) { return getenv("COT_TEST_SMALL") != NULL; }
bool test_defers(void) { return getenv("COT_TEST_DEFER") != NULL; }

/* ---- numbers --------------------------------------------------------------------------------- */

double test_f32(double x) {
    volatile float f = (float)x;
    return (double)f;
}

bool test_same(double a, double b) { return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0; }
bool test_equal(double a, double b) { return test_same(a, b) || a == b; }

bool test_same_array(const char *what, const char *name, int64_t n, const double *a, const double *b) {
    for (int64_t i = 0; i < n; i++)
        if (!test_same(a[i], b[i])) {
            test_note("%s: %s: element %lld: %.17g and %.17g", name, what, (long long)i, a[i], b[i]);
            return false;
        }
    return true;
}

double test_ulps(double a, long double b, int bits) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? 0 : (double)INFINITY;
    double near = bits == 24 ? (double)(float)b : (double)b;
    if (isinf(a) || isinf(near)) return a == near ? 0 : (double)INFINITY;
    int e, least = bits == 24 ? -149 : -1074;
    frexp(near, &e);
    e = near == 0 || e - bits < least ? least : e - bits;
    return (double)(fabsl((long double)a - b) / ldexpl(1, e));
}

/* ---- derivatives: recording a function ------------------------------------------------------- */

/* f at data + s · direction */
static cot_var record_at(const test_function *f, cot_tape *t, cot_dtype dtype, double s, cot_var *xs) {
    for (int k = 0; k < f->n; k++) {
        double at[TEST_MAX_SIZE];
        for (int i = 0; i < TEST_MAX_SIZE; i++)
            at[i] = f->in[k].data[i] + (f->in[k].fixed ? 0 : s * f->in[k].direction[i]);
        xs[k] = test_input_of(t, dtype, &f->in[k], at);
    }
    return f->f(f->n, xs, f->user);
}

/* The inputs that are not fixed, and their directions as constants. */
static int moving(const test_function *f, cot_tape *t, const cot_var *xs, cot_var *ms, cot_var *vs) {
    int n = 0;
    for (int k = 0; k < f->n; k++) {
        if (f->in[k].fixed) continue;
        ms[n] = xs[k];
        vs[n++] = cot_data(t, COT_F64, f->in[k].shape, f->in[k].direction);
    }
    return n;
}

/* Weights of the outputs, no two alike, so that no two errors cancel. */
static cot_var weights(cot_var y) {
    cot_shape s = cot_shape_of(y);
    int64_t   n = cot_size(y);
    double   *c = malloc(((size_t)n + 1) * sizeof *c);
    for (int64_t i = 0; i < n; i++) c[i] = cos(1.0 + 2.3 * (double)i) + 1.5;
    cot_var w = cot_cast(cot_data(y.tape, COT_F64, s, c), cot_dtype_of(y));
    free(c);
    return w;
}

/* Σ c (y + y²/2) */
static cot_var loss(cot_var y) {
    return cot_sum(cot_mul(weights(y), cot_add(y, cot_mul(0.5, cot_mul(y, y)))), COT_ALL);
}

/* Σ ⟨∂L/∂x, v⟩, recorded */
static cot_var directional(cot_var l, int n, const cot_var *ms, const cot_var *vs) {
    cot_var g[TEST_MAX_INPUTS], sum = cot_constant(l.tape, 0);
    if (cot_grad_of(l, n, ms, g) != COT_OK) return g[0];
    for (int k = 0; k < n; k++) sum = cot_add(sum, cot_sum(cot_mul(g[k], vs[k]), COT_ALL));
    return sum;
}

/* The order-th derivative of the loss along the direction, by nested reverse mode; order 0: y
 * itself. Returns the number of elements. */
static int64_t derivative_at(const test_function *f, int order, double s, double *out) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS], ms[TEST_MAX_INPUTS], vs[TEST_MAX_INPUTS];
    cot_var   y = record_at(f, t, COT_F64, s, xs);
    int       n = moving(f, t, xs, ms, vs);
    if (order > 0) y = loss(y);
    for (int k = 0; k < order; k++) y = directional(y, n, ms, vs);
    int64_t m = cot_size(y);
    if (test_tape_ok(t, f->name) && m <= TEST_MAX_SIZE) cot_read(y, out, m);
    else m = 0;
    if (m) test_tape_ok(t, f->name);
    cot_tape_destroy(t);
    return m;
}

/* ---- derivatives: the checks ----------------------------------------------------------------- */

/* The derivative that is checked against differences: order 1 by cot_jvp on y, higher orders by
 * nested reverse mode on the loss. */
static int64_t exact_derivative(const test_function *f, int order, double *out) {
    if (order > 1) return derivative_at(f, order, 0, out);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS], ms[TEST_MAX_INPUTS], vs[TEST_MAX_INPUTS];
    cot_var   y = record_at(f, t, COT_F64, 0, xs);
    int       n = moving(f, t, xs, ms, vs);
    cot_var   dy = cot_jvp(y, n, ms, vs);
    int64_t   m = cot_size(dy);
    if (test_tape_ok(t, f->name) && m <= TEST_MAX_SIZE) cot_read(dy, out, m);
    else m = 0;
    cot_tape_destroy(t);
    return m;
}

bool test_differences(const test_function *f, int order) {
    enum { STEPS = 3 };
    double exact[TEST_MAX_SIZE], plus[TEST_MAX_SIZE], minus[TEST_MAX_SIZE], d[STEPS][TEST_MAX_SIZE],
        size[TEST_MAX_SIZE] = {0};
    double  h = 0x1p-9;
    int64_t m = exact_derivative(f, order, exact);
    for (int s = 0; s < STEPS; s++) {
        double step = ldexp(h, -s);
        if (derivative_at(f, order - 1, step, plus) != m || derivative_at(f, order - 1, -step, minus) != m) {
            test_note("%s: order %d: the number of elements changes", f->name, order);
            return true;
        }
        for (int64_t i = 0; i < m; i++) {
            d[s][i] = (plus[i] - minus[i]) / (2 * step);
            size[i] = fmax(size[i], fmax(fabs(plus[i]), fabs(minus[i])));
        }
    }
    for (int64_t i = 0; i < m; i++) {
        /* Values are exact to a few ulps, and the shortest step magnifies that. First derivatives
         * are differences of plain values, later ones of sums. */
        double noise = (order == 1 ? 16 : 128) * DBL_EPSILON * (size[i] + 8) / ldexp(h, 1 - STEPS);
        double change = fabs(d[1][i] - d[2][i]), before = fabs(d[0][i] - d[1][i]);
        /* differences do not converge: there is a kink within the step */
        if (change > 0.5 * before + noise) return false;
        double limit = (4 * d[2][i] - d[1][i]) / 3;
        TEST_CHECK(fabs(exact[i] - limit) <= 0.1 * change + noise,
                   "%s: order %d: element %lld: derivative %.15g, differences %.15g (bound %.2g), first operand %.17g",
                   f->name, order, (long long)i, exact[i], limit, 0.1 * change + noise, f->in[0].data[0]);
    }
    return true;
}

static double inner(cot_var a, cot_var b, double *size) {
    int64_t n = cot_size(a);
    double  sum = 0, *x = malloc(2 * ((size_t)n + 1) * sizeof *x), *y = x + n;
    if (cot_read(a, x, n) == COT_OK && cot_read(b, y, n) == COT_OK)
        for (int64_t i = 0; i < n; i++) sum += x[i] * y[i], *size += fabs(x[i] * y[i]);
    free(x);
    return sum;
}

void test_transpose(const test_function *f) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS], ms[TEST_MAX_INPUTS], vs[TEST_MAX_INPUTS], back[TEST_MAX_INPUTS];
    cot_var   y = record_at(f, t, COT_F64, 0, xs);
    int       n = moving(f, t, xs, ms, vs);
    cot_var   seed = weights(y), dy = cot_jvp(y, n, ms, vs);
    double    size = 0, reverse = 0;
    cot_vjp(y, seed, n, ms, back);
    if (test_tape_ok(t, f->name)) {
        double forward = inner(seed, dy, &size);
        for (int k = 0; k < n; k++) reverse += inner(back[k], vs[k], &size);
        TEST_CHECK(fabs(forward - reverse) <= 64 * DBL_EPSILON * size, "%s: <seed, Jv> = %.17g but <J'seed, v> = %.17g",
                   f->name, forward, reverse);
    }
    cot_tape_destroy(t);
}

void test_second_order(const test_function *f) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS], ms[TEST_MAX_INPUTS], vs[TEST_MAX_INPUTS], g[TEST_MAX_INPUTS], hv[TEST_MAX_INPUTS];
    cot_var   l = loss(record_at(f, t, COT_F64, 0, xs));
    int       n = moving(f, t, xs, ms, vs);
    cot_grad_of(l, n, ms, g);
    cot_grad_of(directional(l, n, ms, vs), n, ms, hv);
    for (int k = 0; k < n && test_tape_ok(t, f->name); k++) {
        cot_var forward = cot_jvp(g[k], n, ms, vs);
        double  a[TEST_MAX_SIZE], b[TEST_MAX_SIZE];
        int64_t m = cot_size(hv[k]);
        if (cot_read(forward, a, m) != COT_OK || cot_read(hv[k], b, m) != COT_OK) continue;
        double size = 1;
        for (int64_t i = 0; i < m; i++) size = fmax(size, fabs(b[i]));
        for (int64_t i = 0; i < m; i++)
            TEST_CHECK(fabs(a[i] - b[i]) <= 1024 * DBL_EPSILON * size,
                       "%s: H v, input %d element %lld: forward over reverse %.17g, reverse over reverse %.17g",
                       f->name, k, (long long)i, a[i], b[i]);
    }
    test_tape_ok(t, f->name);
    cot_tape_destroy(t);
}

void test_numbers_as_recorded(const test_function *f) {
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16, COT_F16};
    for (int d = 0; d < TEST_COUNT(dtypes); d++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   xs[TEST_MAX_INPUTS], ms[TEST_MAX_INPUTS], vs[TEST_MAX_INPUTS], g[TEST_MAX_INPUTS];
        cot_var   l = loss(record_at(f, t, dtypes[d], 0, xs));
        int       n = moving(f, t, xs, ms, vs);
        /* some operations that rules record know f64 and f32 alone */
        if (d >= 2 && cot_tape_status(t) == COT_VALUE) n = 0, cot_tape_clear_error(t);
        if (n > 0) cot_backward(l);
        if (n > 0) cot_grad_of(l, n, ms, g);
        for (int k = 0; k < n && test_tape_ok(t, f->name); k++) {
            double  a[TEST_MAX_SIZE], b[TEST_MAX_SIZE];
            int64_t m = cot_size(ms[k]);
            cot_read_grad(ms[k], a, m);
            cot_read(g[k], b, m);
            if (test_tape_ok(t, f->name))
                for (int64_t i = 0; i < m; i++)
                    TEST_CHECK(test_equal(a[i], b[i]),
                               "%s: %s: input %d element %lld: cot_backward %.17g, cot_grad_of %.17g", f->name,
                               cot_dtype_name(dtypes[d]), k, (long long)i, a[i], b[i]);
        }
        cot_tape_destroy(t);
    }
}

/* Value and gradient of the loss in one dtype, at a point that f32 holds exactly. */
static int64_t value_and_gradient(const test_function *f, cot_dtype dtype, double *out) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS], ms[TEST_MAX_INPUTS], vs[TEST_MAX_INPUTS];
    cot_var   y = record_at(f, t, dtype, 0, xs), l = loss(y);
    int       n = moving(f, t, xs, ms, vs);
    int64_t   m = cot_size(y);
    cot_backward(l);
    cot_read(y, out, m);
    for (int k = 0; k < n; k++) {
        cot_read_grad(ms[k], out + m, cot_size(ms[k]));
        m += cot_size(ms[k]);
    }
    TEST_CHECK(cot_dtype_of(y) == dtype, "%s: the result is %s for %s operands", f->name,
               cot_dtype_name(cot_dtype_of(y)), cot_dtype_name(dtype));
    if (!test_tape_ok(t, f->name)) m = 0;
    cot_tape_destroy(t);
    return m;
}

void test_single_precision(const test_function *f) {
    test_function g = *f;
    for (int k = 0; k < g.n; k++)
        for (int i = 0; i < TEST_MAX_SIZE; i++) g.in[k].data[i] = test_f32(g.in[k].data[i]);
    double  a[(TEST_MAX_INPUTS + 1) * TEST_MAX_SIZE], b[(TEST_MAX_INPUTS + 1) * TEST_MAX_SIZE];
    int64_t m = value_and_gradient(&g, COT_F32, a);
    if (m == 0 || value_and_gradient(&g, COT_F64, b) != m) return;
    for (int64_t i = 0; i < m; i++)
        TEST_CHECK(fabs(a[i] - b[i]) <= 128 * (double)FLT_EPSILON * (fabs(b[i]) + 1),
                   "%s: number %lld of value and gradient: f32 %.9g, f64 %.17g", f->name, (long long)i, a[i], b[i]);
}
