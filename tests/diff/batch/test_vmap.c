/* cot_vmap equals the loop over the elements: for every operation of the tables and every choice of
 * batched inputs, nested, and differentiated inside and outside. */
/* ctest: timeout=240 */
#include "rules/structural_ids.h"
#include "rules/elementwise_ids.h"
#include "samples/samples.h"
#include "support/support.h"
#include "support/tape_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXTENT = 3, MOST = 4096 };

#define assert_error(t, code, text)                                                                                    \
    do {                                                                                                               \
        assert_string_equal(cot_tape_message(t), text);                                                                \
        assert_int_equal(cot_tape_status(t), code);                                                                    \
    } while (0)

/* ---- comparing ------------------------------------------------------------------------------- */

/* |a - b| relative to the largest of b, or to 1; infinite where shapes or dtypes differ. */
static double distance(cot_var a, cot_var b) {
    static double p[MOST], q[MOST];
    cot_shape     sa = cot_shape_of(a), sb = cot_shape_of(b);
    if (cot_dtype_of(a) != cot_dtype_of(b) || !cot__same_shape(&sa, &sb)) return INFINITY;
    int64_t n = cot__count(sa.ndim, sa.dim);
    double  most = 1, off = 0;
    assert_true(n <= MOST);
    if (n == 0) return 0;
    if (cot_read(cot_cast(a, COT_F64), p, n) != COT_OK || cot_read(cot_cast(b, COT_F64), q, n) != COT_OK)
        return INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(p[i]) != isnan(q[i])) return INFINITY;
        if (isnan(p[i]) || p[i] == q[i]) continue;
        most = fmax(most, fabs(q[i]));
        off = fmax(off, fabs(p[i] - q[i]));
    }
    return off / most;
}

static void check_near(cot_var have, cot_var want, double tolerance, const char *name, const char *what) {
    if (have.tape->status != COT_OK) return; /* noted by the caller */
    double off = distance(have, want);
    TEST_CHECK(off <= tolerance, "%s: %s is %g off the loop", name, what, off);
}

static cot_var loss(cot_var y) { return cot_sum(cot_mul(y, cot_add(cot_mul(y, 0.5), 1.0)), COT_ALL); }

/* ---- every sample ---------------------------------------------------------------------------- */

/* A sample as a function for cot_vmap. */
typedef struct adapter {
    const test_function *f;
    int                  m;
} adapter;

static int call_sample(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const adapter *a = user;
    (void)m;
    ys[0] = a->f->f(n, xs, a->f->user);
    return 0;
}

static int call_gradient(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const adapter *a = user;
    (void)m;
    return cot_grad_of(loss(a->f->f(n, xs, a->f->user)), n, xs, ys) == COT_OK ? 0 : 1;
}

static int call_tangent(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const adapter *a = user;
    cot_var        moves[TEST_MAX_INPUTS];
    (void)m;
    for (int k = 0; k < n; k++) moves[k] = cot_sin(xs[k]);
    ys[0] = cot_jvp(a->f->f(n, xs, a->f->user), n, xs, moves);
    return 0;
}

/* Leaves with room for a batch in front where the subset says so; data of other rounds for other
 * elements. */
static void leaves_of(cot_tape *t, int i, const test_function *f, unsigned subset, int extent, int stream,
                      cot_var *xs) {
    for (int k = 0; k < f->n; k++) {
        double    data[4 * EXTENT * TEST_MAX_SIZE];
        cot_shape s = f->in[k].shape, b = cot__batch_shape(t, extent, s);
        int64_t   n = cot__count(s.ndim, s.dim);
        for (int e = 0; e < (extent ? extent : 1); e++) {
            test_function g = function_of(&samples[i], i, stream + e);
            memcpy(data + e * n, g.in[k].data, (size_t)n * sizeof *data);
        }
        xs[k] = cot_tensor(t, COT_F64, subset >> k & 1 ? b : s, extent || !(subset >> k & 1) ? data : NULL);
    }
}

/* The loop: f on each element, results stacked. */
static void looped(cot_fn f, adapter *a, int n, const cot_var *xs, unsigned subset, int m, cot_var *ys) {
    cot_var one[TEST_MAX_INPUTS], each[TEST_MAX_INPUTS][EXTENT], out[TEST_MAX_INPUTS];
    for (int e = 0; e < EXTENT; e++) {
        for (int k = 0; k < n; k++) one[k] = subset >> k & 1 ? cot_index(xs[k], 0, e) : xs[k];
        f(n, one, m, out, a);
        for (int k = 0; k < m; k++) each[k][e] = out[k];
    }
    for (int k = 0; k < m; k++) ys[k] = cot_stack(EXTENT, each[k], 0);
}

static const char *case_name(const test_function *f, unsigned subset) {
    static char name[96];
    snprintf(name, sizeof name, "%s, batched inputs %u", f->name, subset);
    return name;
}

/* The one sample whose result has an extent that depends on values. */
static bool has_no_batch(cot_function f) { return f == s_compress || f == s_masked_select; }

/* How long this one runs depends on values; it has no derivative in a body. */
static bool runs_by_value(cot_function f) { return f == s_while; }

#define EACH_CASE(i, subset)                                                                                           \
    for (int i = 0; i < TEST_COUNT(samples); i++)                                                                      \
        for (unsigned subset = 1; subset < 1u << samples[i].n && !has_no_batch(samples[i].f); subset++)

static int axes_of_case(int n, unsigned subset, int *axes) {
    for (int k = 0; k < n; k++) axes[k] = subset >> k & 1 ? 0 : COT_NOT_BATCHED;
    return n;
}

/* Values, and gradients through the batch, recorded and in numbers. */
static void values_and_gradients_of_every_sample(void **state) {
    (void)state;
    EACH_CASE(i, subset) {
        test_function f = function_of(&samples[i], i, 0);
        adapter       a = {&f, 1};
        const char   *name = case_name(&f, subset);
        cot_tape     *t = cot_tape_create(NULL);
        cot_var       xs[TEST_MAX_INPUTS], have, want, grads[2][TEST_MAX_INPUTS];
        int           axes[TEST_MAX_INPUTS];
        leaves_of(t, i, &f, subset, EXTENT, 0, xs);
        axes_of_case(f.n, subset, axes);
        cot_vmap(call_sample, &a, f.n, xs, axes, 1, &have, NULL);
        if (test_tape_ok(t, name)) {
            looped(call_sample, &a, f.n, xs, subset, 1, &want);
            check_near(have, want, 1e-12, name, "the value");
            cot_grad_of(loss(have), f.n, xs, grads[0]);
            cot_grad_of(loss(want), f.n, xs, grads[1]);
            for (int k = 0; k < f.n && test_tape_ok(t, name); k++)
                check_near(grads[0][k], grads[1][k], 1e-10, name, "the gradient");
            cot_backward(loss(have));
            for (int k = 0; k < f.n && test_tape_ok(t, name); k++)
                check_near(cot_grad(xs[k]), grads[1][k], 1e-10, name, "what cot_backward gives");
        }
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* In f32, bf16 and f16: the same dtypes come out, near the loop's. Rules that are composed round
 * more often: losses, normalisation. */
static int call_narrow(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const adapter *a = user;
    cot_var        narrow[TEST_MAX_INPUTS];
    (void)m;
    for (int k = 0; k < n; k++) narrow[k] = cot_cast(xs[k], (cot_dtype)a->m);
    ys[0] = a->f->f(n, narrow, a->f->user);
    return 0;
}

static void narrow_dtypes(void **state) {
    (void)state;
    static const struct {
        cot_dtype dtype;
        double    tolerance;
    } dtypes[] = {{COT_F32, 1e-5}, {COT_BF16, 0.05}, {COT_F16, 0.01}};
    EACH_CASE(i, subset) {
        for (int d = 0; d < TEST_COUNT(dtypes); d++) {
            test_function f = function_of(&samples[i], i, 0);
            adapter       a = {&f, (int)dtypes[d].dtype};
            cot_tape     *t = cot_tape_create(NULL);
            cot_var       xs[TEST_MAX_INPUTS], have, want;
            int           axes[TEST_MAX_INPUTS];
            char          name[128];
            snprintf(name, sizeof name, "%s in %s", case_name(&f, subset), cot_dtype_name(dtypes[d].dtype));
            leaves_of(t, i, &f, subset, EXTENT, 0, xs);
            axes_of_case(f.n, subset, axes);
            looped(call_narrow, &a, f.n, xs, subset, 1, &want);
            if (cot_tape_status(t) == COT_OK) { /* some samples are written for one dtype */
                cot_vmap(call_narrow, &a, f.n, xs, axes, 1, &have, NULL);
                if (test_tape_ok(t, name)) check_near(have, want, dtypes[d].tolerance, name, "the value");
            }
            cot_tape_destroy(t);
        }
    }
    test_verdict();
}

static void compare(int i, unsigned subset, cot_fn f, int m, double tolerance, const char *what) {
    test_function s = function_of(&samples[i], i, 0);
    adapter       a = {&s, m};
    const char   *name = case_name(&s, subset);
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       xs[TEST_MAX_INPUTS], have[TEST_MAX_INPUTS], want[TEST_MAX_INPUTS];
    int           axes[TEST_MAX_INPUTS];
    leaves_of(t, i, &s, subset, EXTENT, 0, xs);
    axes_of_case(s.n, subset, axes);
    cot_vmap(f, &a, s.n, xs, axes, m, have, NULL);
    if (test_tape_ok(t, name)) looped(f, &a, s.n, xs, subset, m, want);
    for (int k = 0; k < m && test_tape_ok(t, name); k++) check_near(have[k], want[k], tolerance, name, what);
    cot_tape_destroy(t);
}

static void gradients_inside(void **state) {
    (void)state;
    EACH_CASE(i, subset)
    if (!runs_by_value(samples[i].f)) compare(i, subset, call_gradient, samples[i].n, 1e-9, "the gradient inside");
    test_verdict();
}

static void tangents_inside(void **state) {
    (void)state;
    EACH_CASE(i, subset)
    if (!runs_by_value(samples[i].f)) compare(i, subset, call_tangent, 1, 1e-9, "the tangent inside");
    test_verdict();
}

/* vmap of vmap, both batches on every input: elements are (outer, inner). */
static int call_inner(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    return cot_vmap(call_sample, user, n, xs, NULL, m, ys, NULL) == COT_OK ? 0 : 1;
}

static void batches_of_batches(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        if (has_no_batch(samples[i].f)) continue;
        test_function f = function_of(&samples[i], i, 0);
        adapter       a = {&f, 1};
        cot_tape     *t = cot_tape_create(NULL);
        cot_var       flat[TEST_MAX_INPUTS], xs[TEST_MAX_INPUTS], each[2 * EXTENT], have;
        leaves_of(t, i, &f, ~0u, 2 * EXTENT, 0, flat);
        for (int k = 0; k < f.n; k++) {
            cot_shape s = cot__batch_shape(t, 2, cot__batch_shape(t, EXTENT, f.in[k].shape));
            xs[k] = cot_reshape(flat[k], s);
        }
        cot_vmap(call_inner, &a, f.n, xs, NULL, 1, &have, NULL);
        for (int e = 0; e < 2 * EXTENT && test_tape_ok(t, f.name); e++) {
            cot_var one[TEST_MAX_INPUTS];
            for (int k = 0; k < f.n; k++) one[k] = cot_index(flat[k], 0, e);
            call_sample(f.n, one, 1, &each[e], &a);
        }
        if (test_tape_ok(t, f.name)) {
            cot_var want = cot_stack(2 * EXTENT, each, 0);
            check_near(cot_reshape(have, cot_shape_of(want)), want, 1e-12, f.name, "the batch of batches");
        }
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* An empty batch gives empty results of the right shape, and gradients. */
static void empty_batches(void **state) {
    (void)state;
    EACH_CASE(i, subset) {
        test_function f = function_of(&samples[i], i, 0);
        adapter       a = {&f, 1};
        const char   *name = case_name(&f, subset);
        cot_tape     *t = cot_tape_create(NULL);
        cot_var       xs[TEST_MAX_INPUTS], one[TEST_MAX_INPUTS], y, z, grads[TEST_MAX_INPUTS];
        int           axes[TEST_MAX_INPUTS];
        leaves_of(t, i, &f, subset, 0, 0, xs);
        leaves_of(t, i, &f, 0, 0, 0, one);
        axes_of_case(f.n, subset, axes);
        call_sample(f.n, one, 1, &z, &a);
        cot_vmap(call_sample, &a, f.n, xs, axes, 1, &y, NULL);
        if (test_tape_ok(t, name)) {
            cot_shape want = cot__batch_shape(t, 0, cot_shape_of(z)), have = cot_shape_of(y);
            TEST_CHECK(cot__same_shape(&have, &want), "%s: an empty batch gives another shape", name);
            cot_grad_of(cot_sum(y, COT_ALL), f.n, xs, grads);
            for (int k = 0; k < f.n && test_tape_ok(t, name); k++)
                check_near(grads[k], cot_zeros(t, COT_F64, cot_shape_of(xs[k])), 0, name,
                           "the gradient of an empty batch");
        }
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* ---- every elementwise operation ------------------------------------------------------------- */

typedef struct elementwise { int op, number; double value; } elementwise;

static int call_elementwise(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const elementwise *e = user;
    cot_var            all[3];
    (void)m;
    for (int k = 0, next = 0; k < n + (e->number >= 0); k++)
        all[k] = k == e->number ? cot_number(e->value) : xs[next++];
    ys[0] = test_call(e->op, all);
    return 0;
}

/* Operand k of element e: a scalar or a vector of two, by `shapes`. */
static void elementwise_case(int op, unsigned subset, unsigned shapes, int number) {
    const cot__elementwise_info *info = &cot__elementwise_table[op];
    cot_tape                    *t = cot_tape_create(NULL);
    test_random                  random = test_random_of(info->name, (int)subset);
    double                       x[2 * EXTENT][3];
    elementwise                  e = {op, number, 0};
    cot_var                      xs[3], one[3], each[EXTENT], have, want;
    int                          axes[3], n = 0;
    char                         name[96];
    snprintf(name, sizeof name, "%s, batched %u, vectors %u, number at %d", info->name, subset, shapes, number);
    for (int p = 0; p < 2 * EXTENT; p++) test_sample(op, &random, x[p]);
    if (number >= 0) e.value = x[0][number];
    for (int k = 0; k < info->arity; k++) {
        if (k == number) continue;
        bool    vector = shapes >> k & 1, batched = subset >> k & 1;
        double  data[2 * EXTENT];
        int64_t size = vector ? 2 : 1;
        for (int p = 0; p < EXTENT * size; p++) data[p] = x[p][k];
        cot_shape shape = {batched + vector, {batched ? EXTENT : 2, 2}};
        xs[n] = cot_cast((cot_data)(t, COT_F64, shape, data), op == OP_where && k == 0 ? COT_BOOL : COT_F64);
        axes[n++] = batched ? 0 : COT_NOT_BATCHED;
    }
    cot_vmap(call_elementwise, &e, n, xs, axes, 1, &have, NULL);
    for (int p = 0; p < EXTENT && test_tape_ok(t, name); p++) {
        for (int k = 0; k < n; k++) one[k] = axes[k] == 0 ? cot_index(xs[k], 0, p) : xs[k];
        call_elementwise(n, one, 1, &each[p], &e);
    }
    if (test_tape_ok(t, name)) {
        want = cot_stack(EXTENT, each, 0);
        check_near(have, want, 0, name, "the value");
    }
    cot_tape_destroy(t);
}

static void every_elementwise_operation(void **state) {
    (void)state;
    for (int op = 0; op < OP_elementwise_count; op++) {
        int arity = cot__elementwise_table[op].arity;
        for (unsigned subset = 1; subset < 1u << arity; subset++)
            for (unsigned shapes = 0; shapes < 1u << arity; shapes++)
                for (int number = -1; number < (arity == 2 ? 2 : 0); number++)
                    if (number < 0 || subset & ~(1u << number)) elementwise_case(op, subset, shapes, number);
    }
    test_verdict();
}

/* ---- integers as inputs: positions, labels --------------------------------------------------- */

typedef struct indexed { int which; } indexed;

enum {
    TAKE,
    TAKE_ALONG,
    SCATTER_ADD,
    SCATTER,
    ONE_HOT,
    GATHER,
    LABELS,
    CE_LABELS,
    NLL,
    EMBEDDING,
    SEARCH,
    COMPRESS,
    INDEXED
};

/* xs: x (2,3), positions (2,2), updates (2,2,2) */
static int call_indexed(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const indexed *c = user;
    cot_var        first = cot_index(xs[1], 1, 0); /* (2,) */
    (void)n, (void)m;
    switch (c->which) {
    case TAKE: ys[0] = cot_take(xs[0], xs[1], 1); break;
    case TAKE_ALONG: ys[0] = cot_take_along_axis(xs[0], xs[1], 1); break;
    case SCATTER_ADD: ys[0] = cot_scatter_add(xs[0], xs[1], xs[2], 1); break;
    case SCATTER: ys[0] = cot_scatter(xs[0], xs[1], xs[2], 1); break;
    case ONE_HOT: ys[0] = cot_mul(cot_one_hot(xs[1], 3, COT_F64), cot_expand_dims(xs[0], 1)); break;
    case GATHER:
        ys[0] = cot_gather(
            xs[0], cot_sub(cot_maximum(xs[1], 0), cot_data(xs[0].tape, COT_I64, COT_SHAPE(2), ((int64_t[]){1, 0}))));
        break;
    case LABELS: ys[0] = cot_softmax_cross_entropy(xs[0], cot_maximum(first, 0)); break;
    case CE_LABELS: ys[0] = cot_cross_entropy(cot_sigmoid(xs[0]), cot_maximum(first, 0)); break;
    case NLL: ys[0] = cot_nll(xs[0], cot_maximum(first, 0)); break;
    case EMBEDDING: ys[0] = cot_embedding(cot_transpose(xs[0]), xs[1], 2); break;
    case SEARCH:
        ys[0] = cot_add(cot_searchsorted(cot_cumsum(cot_exp(cot_index(xs[0], 0, 0)), 0, false), xs[2], true), xs[2]);
        break;
    default: ys[0] = cot_compress_to(xs[0], cot_greater(cot_index(xs[1], 0, 0), 0), 0, 3, -1.5); break;
    }
    return 0;
}

static void positions_may_be_batched(void **state) {
    (void)state;
    static const int64_t position[EXTENT * 4] = {0, 2, -1, 1, 1, 1, 2, 0, -3, 0, 0, 2};
    for (int which = 0; which < INDEXED; which++)
        for (unsigned subset = 1; subset < 8; subset++) {
            cot_tape   *t = cot_tape_create(NULL);
            indexed     c = {which};
            test_random random = test_random_of("positions", which);
            double      x[EXTENT * 6], u[EXTENT * 8];
            cot_var     xs[3], one[3], each[EXTENT], have, want, grads[2][3];
            int         axes[3];
            char        name[64];
            snprintf(name, sizeof name, "case %d, batched inputs %u", which, subset);
            for (int k = 0; k < EXTENT * 6; k++) x[k] = test_uniform(&random, -1, 1);
            for (int k = 0; k < EXTENT * 8; k++) u[k] = test_uniform(&random, -1, 1);
            axes_of_case(3, subset, axes);
            xs[0] = cot_tensor(t, COT_F64, subset & 1 ? COT_SHAPE(EXTENT, 2, 3) : COT_SHAPE(2, 3), x);
            xs[1] = cot_data(t, COT_I64, subset & 2 ? COT_SHAPE(EXTENT, 2, 2) : COT_SHAPE(2, 2), position);
            xs[2] = cot_tensor(t, COT_F64, subset & 4 ? COT_SHAPE(EXTENT, 2, 2, 2) : COT_SHAPE(2, 2, 2), u);
            cot_vmap(call_indexed, &c, 3, xs, axes, 1, &have, NULL);
            for (int e = 0; e < EXTENT && test_tape_ok(t, name); e++) {
                for (int k = 0; k < 3; k++) one[k] = subset >> k & 1 ? cot_index(xs[k], 0, e) : xs[k];
                call_indexed(3, one, 1, &each[e], &c);
            }
            if (test_tape_ok(t, name)) {
                want = cot_stack(EXTENT, each, 0);
                check_near(have, want, 1e-14, name, "the value");
                xs[1] = xs[2];
                cot_grad_of(loss(have), 2, xs, grads[0]);
                cot_grad_of(loss(want), 2, xs, grads[1]);
                for (int k = 0; k < 2 && test_tape_ok(t, name); k++)
                    check_near(grads[0][k], grads[1][k], 1e-12, name, "the gradient");
            }
            cot_tape_destroy(t);
        }
    test_verdict();
}

/* ---- axes ------------------------------------------------------------------------------------ */

static int both_products(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_matmul(xs[0], xs[1]);
    ys[1] = cot_mul(xs[2], 2.0);
    return 0;
}

static void axes_are_chosen(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    a[24], b[12], c[2] = {3, 4};
    for (int k = 0; k < 24; k++) a[k] = sin(k + 1.0);
    for (int k = 0; k < 12; k++) b[k] = cos(k + 1.0);
    cot_var xs[3] = {cot_tensor(t, COT_F64, COT_SHAPE(2, 4, 3), a), cot_tensor(t, COT_F64, COT_SHAPE(3, 4), b),
                     cot_tensor(t, COT_F64, COT_SHAPE(2), c)},
            ys[2];
    assert_int_equal(cot_vmap(both_products, NULL, 3, xs, (int[]){1, -1, COT_NOT_BATCHED}, 2, ys, (int[]){-1, 1}),
                     COT_OK);
    cot_shape s = cot_shape_of(ys[0]), r = cot_shape_of(ys[1]);
    assert_true(s.ndim == 2 && s.dim[0] == 2 && s.dim[1] == 4);
    assert_true(r.ndim == 2 && r.dim[0] == 2 && r.dim[1] == 4); /* repeated */
    for (int e = 0; e < 4; e++) {
        cot_var want = cot_matmul(cot_index(xs[0], 1, e), cot_index(xs[1], 1, e));
        check_near(cot_index(ys[0], 1, e), want, 1e-15, "axes", "the product");
        check_near(cot_index(ys[1], 1, e), cot_mul(xs[2], 2.0), 0, "axes", "the repeated result");
    }
    assert_int_equal(
        cot_vmap(both_products, NULL, 3, xs, (int[]){1, -1, COT_NOT_BATCHED}, 2, ys, (int[]){0, COT_NOT_BATCHED}),
        COT_OK);
    r = cot_shape_of(ys[1]);
    assert_true(r.ndim == 1 && r.dim[0] == 2);
    check_near(ys[1], cot_mul(xs[2], 2.0), 0, "axes", "the result without a batch");
    test_verdict();
    cot_tape_destroy(t);
}

/* ---- what it is for -------------------------------------------------------------------------- */

typedef struct network { cot_var w[3], b[3]; } network;

static cot_var network_loss(const cot_var *w, const cot_var *b, cot_var x, cot_var label) {
    cot_var h = cot_tanh(cot_add(cot_matmul(x, w[0]), b[0]));
    h = cot_relu(cot_add(cot_matmul(h, w[1]), b[1]));
    return cot_softmax_cross_entropy(cot_add(cot_matmul(h, w[2]), b[2]), label);
}

/* The gradient of one example: parameters come from outside. */
static int example_gradient(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    network *net = user;
    cot_var  parameters[6] = {net->w[0], net->w[1], net->w[2], net->b[0], net->b[1], net->b[2]};
    (void)n;
    return cot_grad_of(network_loss(net->w, net->b, xs[0], xs[1]), m, parameters, ys) == COT_OK ? 0 : 1;
}

static void fill(double *x, int n, double seed) {
    for (int k = 0; k < n; k++) x[k] = sin(seed + 1.7 * k);
}

static void gradients_of_each_example(void **state) {
    (void)state;
    enum { BATCH = 5 };
    cot_tape *t = cot_tape_create(NULL);
    double    data[64];
    int64_t   sizes[4] = {4, 6, 5, 3}, labels[BATCH] = {0, 2, 1, 1, 0};
    network   net;
    cot_var   sum[6], ys[6], want[6];
    for (int k = 0; k < 3; k++) {
        fill(data, 64, k);
        net.w[k] = cot_tensor(t, COT_F64, COT_SHAPE(sizes[k], sizes[k + 1]), data);
        fill(data, 64, k + 10);
        net.b[k] = cot_tensor(t, COT_F64, COT_SHAPE(sizes[k + 1]), data);
    }
    fill(data, 64, 20);
    cot_var xs[2] = {cot_data(t, COT_F64, COT_SHAPE(BATCH, 4), data), cot_data(t, COT_I64, COT_SHAPE(BATCH), labels)};
    assert_int_equal(cot_vmap(example_gradient, &net, 2, xs, NULL, 6, ys, NULL), COT_OK);
    for (int e = 0; e < BATCH; e++) {
        cot_var one[2] = {cot_index(xs[0], 0, e), cot_index(xs[1], 0, e)};
        assert_int_equal(example_gradient(2, one, 6, want, &net), 0);
        for (int k = 0; k < 6; k++)
            check_near(cot_index(ys[k], 0, e), want[k], 1e-14, "network", "the gradient of an example");
    }
    /* their mean is the gradient of the mean loss */
    cot_var parameters[6] = {net.w[0], net.w[1], net.w[2], net.b[0], net.b[1], net.b[2]};
    assert_int_equal(cot_grad_of(network_loss(net.w, net.b, xs[0], xs[1]), 6, parameters, sum), COT_OK);
    for (int k = 0; k < 6; k++)
        check_near(cot_mean(ys[k], COT_AXES(0)), sum[k], 1e-14, "network", "the mean of the gradients");
    test_verdict();
    cot_tape_destroy(t);
}

static int cube_sum(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    cot_var w = *(cot_var *)user;
    ys[0] = cot_sum(cot_mul(cot_mul(xs[0], cot_mul(xs[0], xs[0])), w), COT_ALL);
    return 0;
}

static int hessian_row(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var *w = user, x = w[1], y, g;
    (void)n, (void)m;
    cube_sum(1, &x, 1, &y, w);
    if (cot_grad_of(y, 1, &x, &g) != COT_OK) return 1;
    return cot_vjp(g, xs[0], 1, &x, ys) == COT_OK ? 0 : 1;
}

/* Rows of a Hessian: a batch of unit directions through the gradient of a gradient. */
static void hessians_by_batches(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   w[2] = {cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3}),
                      cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){4, 5, 6})};
    cot_var   unit = cot_eye(t, COT_F64, 3, 3), rows;
    double    h[9];
    assert_int_equal(cot_vmap(hessian_row, w, 1, &unit, NULL, 1, &rows, NULL), COT_OK);
    assert_int_equal(cot_read(rows, h, 9), COT_OK);
    for (int i = 0; i < 9; i++) assert_true(h[i] == (i % 4 ? 0 : 6.0 * (i / 4 + 1) * (i / 4 + 4)));
    cot_tape_destroy(t);
}

/* ---- bodies in bodies ------------------------------------------------------------------------ */

static int decay(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_add(cot_mul(cot_sin(xs[0]), 0.5), xs[1]);
    ys[1] = cot_sum(ys[0], COT_ALL);
    return 0;
}

static int scanned(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    return cot_scan(decay, user, -1, 1, xs, 1, xs + 1, ys, 1, ys + 1, NULL) == COT_OK ? 0 : 1;
}

static void a_batch_of_loops(void **state) {
    (void)state;
    for (unsigned subset = 1; subset < 4; subset++) {
        cot_tape *t = cot_tape_create(NULL);
        double    data[64];
        fill(data, 64, 3);
        cot_var xs[2] = {cot_tensor(t, COT_F64, subset & 1 ? COT_SHAPE(EXTENT, 2) : COT_SHAPE(2), data),
                         cot_tensor(t, COT_F64, subset & 2 ? COT_SHAPE(EXTENT, 4, 2) : COT_SHAPE(4, 2), data + 7)};
        cot_var have[2], want[2], each[2][EXTENT], grads[2][2];
        int     axes[2];
        axes_of_case(2, subset, axes);
        assert_int_equal(cot_vmap(scanned, NULL, 2, xs, axes, 2, have, NULL), COT_OK);
        int loops = 0;
        for (uint32_t i = 0; i < t->count; i++) loops += t->nodes[i].op == OP_loop;
        assert_int_equal(loops, 2); /* the example's, and one for the batch */
        for (int e = 0; e < EXTENT; e++) {
            cot_var out[2], one[2];
            for (int k = 0; k < 2; k++) one[k] = subset >> k & 1 ? cot_index(xs[k], 0, e) : xs[k];
            assert_int_equal(scanned(2, one, 2, out, NULL), 0);
            each[0][e] = out[0], each[1][e] = out[1];
        }
        for (int k = 0; k < 2; k++) {
            want[k] = cot_stack(EXTENT, each[k], 0);
            check_near(have[k], want[k], 1e-14, "loops", "the result");
        }
        assert_int_equal(cot_grad_of(cot_add(loss(have[0]), loss(have[1])), 2, xs, grads[0]), COT_OK);
        assert_int_equal(cot_grad_of(cot_add(loss(want[0]), loss(want[1])), 2, xs, grads[1]), COT_OK);
        for (int k = 0; k < 2; k++) check_near(grads[0][k], grads[1][k], 1e-12, "loops", "the gradient");
        test_verdict();
        cot_tape_destroy(t);
    }
}

static int step_of_batch(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    return cot_vmap(cube_sum, user, 1, xs + 1, NULL, 1, ys, NULL) == COT_OK &&
                   (ys[0] = cot_add(xs[0], ys[0])).id != UINT64_MAX
               ? 0
               : 1;
}

static void a_loop_of_batches(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    data[64];
    fill(data, 64, 5);
    cot_var w = cot_tensor(t, COT_F64, COT_SHAPE(3), data), x = cot_tensor(t, COT_F64, COT_SHAPE(4, 2, 3), data + 5),
            zero = cot_zeros(t, COT_F64, COT_SHAPE(2)), y;
    assert_int_equal(cot_scan(step_of_batch, &w, -1, 1, &zero, 1, &x, &y, 0, NULL, NULL), COT_OK);
    cot_var want = cot_sum(cot_mul(cot_mul(x, cot_mul(x, x)), w), COT_AXES(0, 2)), g[2], h[2], in[2] = {w, x};
    check_near(y, want, 1e-14, "scan of vmap", "the result");
    assert_int_equal(cot_grad_of(loss(y), 2, in, g), COT_OK);
    assert_int_equal(cot_grad_of(loss(want), 2, in, h), COT_OK);
    for (int k = 0; k < 2; k++) check_near(g[k], h[k], 1e-12, "scan of vmap", "the gradient");
    test_verdict();
    cot_tape_destroy(t);
}

/* ---- writes inside --------------------------------------------------------------------------- */

static int writes(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    cot_var z = cot_zeros(xs[0].tape, COT_F64, COT_SHAPE(4)), x = xs[0], part = cot_reshape(xs[1], COT_SHAPE(1, 3));
    cot_update_slice(&z, 0, 0, 3, 1, xs[0]);
    cot_add_into(&z, 1.0);
    /* memory of the element, not of the whole batch, and of this input, not of its equal */
    cot_mul_into(&x, 3.0);
    cot_add_into(&part, 5.0);
    ys[0] = cot_concat(3, (cot_var[]){z, x, cot_reshape(part, COT_SHAPE(3))}, 0);
    return 0;
}

static void writes_stay_inside(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    y[20], data[6] = {1, 2, 3, 4, 5, 6}, after[6];
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), data), z, g;
    assert_int_equal(cot_vmap(writes, NULL, 2, (cot_var[]){x, x}, NULL, 1, &z, NULL), COT_OK);
    assert_int_equal(cot_read(z, y, 20), COT_OK);
    for (int e = 0; e < 2; e++)
        for (int k = 0; k < 3; k++) {
            assert_true(y[10 * e + k] == data[3 * e + k] + 1 && y[10 * e + 4 + k] == 3 * data[3 * e + k] &&
                        y[10 * e + 7 + k] == data[3 * e + k] + 5);
            assert_true(y[10 * e + 3] == 1);
        }
    assert_int_equal(cot_read(x, after, 6), COT_OK);
    assert_memory_equal(after, data, sizeof data);
    assert_int_equal(cot_grad_of(cot_sum(z, COT_ALL), 1, &x, &g), COT_OK);
    assert_int_equal(cot_read(g, after, 6), COT_OK);
    for (int k = 0; k < 6; k++) assert_true(after[k] == 5);
    cot_tape_destroy(t);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int inner_work(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var g, y = cot_sum(cot_tanh(cot_matmul(xs[0], cot_transpose(xs[0]))), COT_ALL), last;
    (void)n, (void)m;
    if (cot_grad_of(y, 1, xs, &g) != COT_OK) return 1;
    if (cot_scan(decay, user, -1, 1, xs, 1, xs + 1, &last, 1, ys + 1, NULL) != COT_OK) return 1;
    ys[0] = cot_add(g, last);
    return 0;
}

static void map(cot_tape *t, void *user) {
    (void)user;
    double data[64];
    fill(data, 64, 1);
    cot_var xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(3, 2, 2), data),
                     cot_tensor(t, COT_F64, COT_SHAPE(3, 4, 2, 2), data)},
            ys[2];
    cot_status status = cot_vmap(inner_work, NULL, 2, xs, NULL, 2, ys, NULL);
    assert_int_equal(status, cot_tape_status(t));
    assert_true(status == COT_OK || (!cot_is_valid(ys[0]) && !cot_is_valid(ys[1])));
    assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
}

/* Any allocation may fail: then there is an error, and nothing is lost. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    assert_survives_no_memory(map, NULL, 0, NULL);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static int identity(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)user;
    for (int k = 0; k < m; k++) ys[k] = xs[0];
    return 0;
}

static int elsewhere(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)xs;
    ys[0] = *(cot_var *)user;
    return 0;
}

static int refuses(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = xs[0];
    return 7;
}

static int reads(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_value(cot_sum(xs[0], COT_ALL)) > 0 ? xs[0] : cot_neg(xs[0]);
    return 0;
}

static int chooses(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_compress(xs[0], cot_greater(xs[0], 0.0), 0);
    return 0;
}

static int deep(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_shape s = {COT_MAX_NDIM, {0}};
    (void)n, (void)m, (void)user;
    for (int k = 0; k < s.ndim; k++) s.dim[k] = 1;
    ys[0] = cot_reshape(cot_sum(xs[0], COT_ALL), s);
    return 0;
}

static void errors_say_what_is_wrong(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL), *other = cot_tape_create(NULL);
    double    data[12] = {1, 2, 3};
    cot_var   a = cot_tensor(t, COT_F64, COT_SHAPE(3, 4), data), b = cot_tensor(t, COT_F64, COT_SHAPE(4, 2), data),
            xs[2]     = {a, b}, y;
    cot_var   foreign = cot_scalar(other, 1), scalar = cot_scalar(t, 2);
    cot_vmap(identity, NULL, 1, &a, (int[]){2}, 1, &y, NULL);
    assert_error(t, COT_SHAPE, "[vmap] axis 2 is out of range for rank 2; axes run from -2 to 1");
    assert_false(cot_is_valid(y));
    cot_tape_clear_error(t);
    cot_vmap(identity, NULL, 1, &scalar, NULL, 1, &y, NULL);
    assert_error(t, COT_SHAPE, "[vmap] axis 0 is out of range for rank 0; a scalar has no axes");
    cot_tape_clear_error(t);
    cot_vmap(identity, NULL, 1, &a, NULL, 1, &y, (int[]){-3});
    assert_error(t, COT_SHAPE, "[vmap] axis -3 is out of range for rank 2; axes run from -2 to 1");
    cot_tape_clear_error(t);
    cot_vmap(identity, NULL, 2, xs, (int[]){1, 1}, 1, &y, NULL);
    assert_error(t, COT_SHAPE, "[vmap] axis 1 of xs[1] has extent 2, the batch of xs[0] 4; all have the same");
    cot_tape_clear_error(t);
    cot_vmap(identity, NULL, 2, xs, (int[]){COT_NOT_BATCHED, COT_NOT_BATCHED}, 1, &y, NULL);
    assert_error(t, COT_VALUE,
                 "[vmap] none of the 2 inputs is batched; give one of them an axis, or call the function itself");
    cot_tape_clear_error(t);
    cot_vmap(identity, NULL, 1, &a, NULL, 1, &y, (int[]){COT_NOT_BATCHED});
    assert_error(t, COT_VALUE, "[vmap] ys[0] is to have no batch, but depends on a batched input; give it an axis");
    cot_tape_clear_error(t);
    cot_vmap(elsewhere, &foreign, 1, &a, NULL, 1, &y, NULL);
    assert_error(
        t, COT_VAR,
        "[vmap] the body's result ys[0] as operand belongs to another tape; operands of one operation share a tape");
    cot_tape_clear_error(t);
    cot_vmap(refuses, NULL, 1, &a, NULL, 1, &y, NULL);
    assert_error(t, COT_CUSTOM, "[vmap] its body failed with code 7");
    cot_tape_clear_error(t);
    cot_vmap(reads, NULL, 1, &a, NULL, 1, &y, NULL);
    assert_error(t, COT_VALUE,
                 "[value] asked for while the body of [vmap] is recorded, which stands for every step and has no "
                 "values yet; choose by values "
                 "with cot_where or cot_cond");
    cot_tape_clear_error(t);
    cot_vmap(chooses, NULL, 1, &a, NULL, 1, &y, NULL);
    assert_error(t, COT_SHAPE,
                 "[compress] in the body of [vmap], which is recorded once, the extent of the result would depend on "
                 "values; use cot_where, or "
                 "cot_compress_to with a given size");
    cot_tape_clear_error(t);
    cot_vmap(deep, NULL, 1, &a, NULL, 1, &y, NULL);
    assert_error(t, COT_LIMIT, "[vmap] a value inside has 16 axes already; a batch adds one, and there are at most 16");
    cot_tape_clear_error(t);
    cot_vmap(identity, NULL, 1, &a, NULL, 1, &y, NULL);
    assert_error(t, COT_OK, "");
    cot_tape_destroy(t);
    cot_tape_destroy(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_gradients_of_every_sample),
        cmocka_unit_test(narrow_dtypes),
        cmocka_unit_test(gradients_inside),
        cmocka_unit_test(tangents_inside),
        cmocka_unit_test(batches_of_batches),
        cmocka_unit_test(empty_batches),
        cmocka_unit_test(every_elementwise_operation),
        cmocka_unit_test(positions_may_be_batched),
        cmocka_unit_test(axes_are_chosen),
        cmocka_unit_test(gradients_of_each_example),
        cmocka_unit_test(hessians_by_batches),
        cmocka_unit_test(a_batch_of_loops),
        cmocka_unit_test(a_loop_of_batches),
        cmocka_unit_test(writes_stay_inside),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(errors_say_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
