/* test_scan_all.c: every operation of the tables inside the body of a loop equals the loop written
 * out: values, gradients in numbers and recorded, tangents, gradients of gradients. */
/* ctest: timeout=240 */
#include "rules/elementwise_ids.h"
#include "samples/samples.h"
#include "support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 2, NUMBERS = 4096 };

/* y of step s is f(x · 1), f(x · ½): a sample at a different point in each step; f uses values from
 * outside. */
typedef struct inner { cot_function f; void *user; int n; const cot_var *x; } inner;

static int step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const inner *in = user;
    cot_var      x[TEST_MAX_INPUTS];
    (void)n, (void)m;
    for (int k = 0; k < in->n; k++) x[k] = cot_mul(in->x[k], xs[0]);
    ys[0] = cot_mul(xs[0], 0.5);
    ys[1] = in->f(in->n, x, in->user);
    return 0;
}

static cot_var looped(const inner *in, cot_var start) {
    inner   copy = *in;
    cot_var last, y = start;
    cot_scan(step, &copy, STEPS, 1, &start, 0, NULL, &last, 1, &y, &(cot_loop_options){.states = 1});
    return y;
}

static cot_var written_out(const inner *in, cot_var start) {
    inner   copy = *in;
    cot_var y[2] = {start}, all[STEPS];
    for (int s = 0; s < STEPS; s++) {
        step(1, y, 2, y, &copy);
        all[s] = y[1];
    }
    return cot_stack(STEPS, all, 0);
}

/* f inside a checkpoint, and as it is. */
static int direct(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const inner *in = user;
    (void)n, (void)m;
    ys[0] = in->f(in->n, xs, in->user);
    return 0;
}
static cot_var checkpointed(const inner *in, cot_var start) {
    inner   copy = *in;
    cot_var y = start;
    cot_checkpoint(direct, &copy, in->n, in->x, 1, &y);
    return y;
}
static cot_var as_it_is(const inner *in, cot_var start) { (void)start; return in->f(in->n, in->x, in->user); }

/* Bodies refuse operations that depend on values, and say so. */
static bool is_refused(const cot_tape *t) {
    return strstr(cot_tape_message(t), "which is recorded once, the ") != NULL;
}
static bool may_be_refused(cot_function f) { return f == s_compress || f == s_masked_select; }

static int numbers_of(const test_function *f, cot_var (*whole)(const inner *, cot_var), double *out, bool *refused) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS + 1], g[TEST_MAX_INPUTS + 1], h[TEST_MAX_INPUTS + 1], d[TEST_MAX_INPUTS + 1];
    int       n = 0, count = f->n + 1;
    for (int k = 0; k < f->n; k++) {
        xs[k] = f->in[k].shape.ndim ? cot_tensor(t, COT_F64, f->in[k].shape, f->in[k].data)
                                    : cot_scalar(t, f->in[k].data[0]);
        d[k] = cot_data(t, COT_F64, f->in[k].shape, f->in[k].direction);
    }
    xs[f->n] = cot_scalar(t, 1), d[f->n] = cot_constant(t, 0.25);
    inner   in = {f->f, f->user, f->n, xs};
    cot_var y = whole(&in, xs[f->n]);
    *refused = is_refused(t);
    if (*refused || !test_tape_ok(t, f->name)) {
        cot_tape_destroy(t);
        return 0;
    }
    if (!cot__dtype_is_float(cot_dtype_of(y))) y = cot_cast(y, COT_F64);
    cot_var loss = cot_add(cot_sum(cot_mul(y, cot_add(cot_mul(y, 0.5), 1.0)), COT_ALL),
                           cot_mul(xs[f->n], xs[0].tape ? cot_sum(xs[0], COT_ALL) : xs[f->n]));
#define PUT(v) (cot_read(v, out + n, cot_size(v)), n += (int)cot_size(v))
    PUT(y);
    cot_backward(loss);
    for (int k = 0; k < count; k++) PUT(cot_grad(xs[k]));
    cot_grad_of(loss, count, xs, g);
    for (int k = 0; k < count; k++) PUT(g[k]);
    PUT(cot_jvp(loss, count, xs, d));
    cot_var square = cot_constant(t, 0);
    for (int k = 0; k < count; k++) square = cot_add(square, cot_sum(cot_square(g[k]), COT_ALL));
    cot_grad_of(square, count, xs, h);
    for (int k = 0; k < count; k++) PUT(h[k]);
    PUT(cot_jvp(square, count, xs, d));
#undef PUT
    test_tape_ok(t, f->name);
    cot_tape_destroy(t);
    return n;
}

/* The same operations on the same numbers, added up in another order. */
static bool compare(const test_function *f, cot_var (*ours)(const inner *, cot_var),
                    cot_var (*plain)(const inner *, cot_var)) {
    static double a[NUMBERS], b[NUMBERS];
    bool          refused, never;
    int           n = numbers_of(f, ours, a, &refused), m = refused ? 0 : numbers_of(f, plain, b, &never);
    if (refused) return false;
    TEST_CHECK(n == m, "%s: %d numbers, not %d", f->name, n, m);
    double size = 1;
    for (int k = 0; k < n; k++) size = isfinite(b[k]) ? fmax(size, fabs(b[k])) : size;
    for (int k = 0; k < n && n == m; k++)
        if (!(isnan(b[k]) ? isnan(a[k]) : a[k] == b[k] || fabs(a[k] - b[k]) <= 1e-12 * size)) {
            test_note("%s: number %d of %d is %.17g, not %.17g", f->name, k, n, a[k], b[k]);
            break;
        }
    return true;
}

static void every_structural_operation(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        test_function f = function_of(&samples[i], i, 0);
        bool          done = compare(&f, looped, written_out);
        TEST_CHECK(compare(&f, checkpointed, as_it_is) == done, "%s: refused in one of scan and checkpoint", f.name);
        TEST_CHECK(done == !may_be_refused(f.f), "%s is %srefused in bodies", f.name, done ? "not " : "");
    }
    test_verdict();
}

static int the_op;
static cot_var elementwise(int n, const cot_var *x, void *user) {
    cot_var xs[3] = {x[0], n > 1 ? x[1] : x[0], n > 2 ? x[2] : x[0]};
    (void)user;
    return test_call(the_op, xs);
}

static void every_elementwise_operation(void **state) {
    (void)state;
    for (the_op = 0; the_op < OP_elementwise_count; the_op++) {
        char          name[64];
        test_function f = {.name = name, .f = elementwise, .n = cot__elementwise_arity(the_op)};
        test_random   random = test_random_of(cot__elementwise_table[the_op].name, 3);
        snprintf(name, sizeof name, "%s", cot__elementwise_table[the_op].name);
        for (int tensor = 0; tensor < 2; tensor++) {
            for (int k = 0; k < f.n; k++) f.in[k].shape = tensor ? COT_SHAPE(3) : COT_SCALAR;
            test_fill(&f, &random, 0.1, 0.9);
            for (int e = 0; e < 3; e++) {
                double x[3];
                test_sample(the_op, &random, x);
                for (int k = 0; k < f.n; k++) f.in[k].data[e] = x[k];
            }
            compare(&f, checkpointed, as_it_is);
            compare(&f, looped, written_out);
        }
    }
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_structural_operation),
        cmocka_unit_test(every_elementwise_operation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
