/* Arrays without elements: an operation that takes one forward takes it in every derivative, and a
 * batch of 2^40 of them is done at once. */
/* ctest: timeout=300 */
#include "samples/samples.h"
#include "support/support.h"
#include "support/tape_test.h"
#include "trace/json/json.h"

/* ---- functions of which the samples have no form without elements ---------------------------- */

static cot_var no_positions(cot_var x, cot_shape s) { return cot_zeros(x.tape, COT_I64, s); }
/* As many labels as there are rows. */
static cot_var labels_of(cot_var x) { return no_positions(x, COT_SHAPE(cot_shape_of(x).dim[0])); }
static cot_var truths_of(cot_var x, int axis) {
    return cot_zeros(x.tape, COT_BOOL, COT_SHAPE(cot_shape_of(x).dim[axis]));
}

SAMPLE(e_take) { UNUSED; return cot_take(x[0], no_positions(x[0], COT_SHAPE(2, 0)), 0); }
SAMPLE(e_take_along) {
    UNUSED;
    return cot_take_along_axis(x[0], no_positions(x[0], COT_SHAPE(cot_shape_of(x[0]).dim[0], 0)), 1);
}
SAMPLE(e_gather) { UNUSED; return cot_gather(x[0], no_positions(x[0], COT_SHAPE(0, 2))); }
SAMPLE(e_scatter_add) { UNUSED; return cot_scatter_add(x[0], labels_of(x[1]), x[1], 0); }
SAMPLE(e_scatter) { UNUSED; return cot_scatter(x[0], labels_of(x[1]), x[1], 0); }
SAMPLE(e_embedding) { UNUSED; return cot_embedding(x[0], no_positions(x[0], COT_SHAPE(0, 3)), COT_NO_PADDING); }
SAMPLE(e_topk) { UNUSED; return cot_topk(x[0], 0, 1, NULL); }
SAMPLE(e_tile) { UNUSED; return cot_tile(x[0], COT_SHAPE(2, 0)); }
SAMPLE(e_repeat) { UNUSED; return cot_repeat(x[0], 0, 0); }
SAMPLE(e_slice) { UNUSED; return cot_slice(x[0], 0, 1, 1, 1); }
SAMPLE(e_compress) { UNUSED; return cot_compress_to(x[0], truths_of(x[0], 0), 0, 0, 1.5); }
SAMPLE(e_compress_more) { UNUSED; return cot_compress_to(x[0], truths_of(x[0], 1), 1, 2, 1.5); }
SAMPLE(e_mask) { UNUSED; return cot_masked_select(x[0], cot_zeros(x[0].tape, COT_BOOL, cot_shape_of(x[0]))); }
SAMPLE(e_broadcast) { UNUSED; return cot_broadcast_to(x[0], COT_SHAPE(0, 2, 3)); }
SAMPLE(e_labels) { UNUSED; return cot_softmax_cross_entropy(x[0], labels_of(x[0])); }
SAMPLE(e_nll) { UNUSED; return cot_nll(x[0], labels_of(x[0])); }
SAMPLE(e_conv) { UNUSED; return cot_conv1d(x[0], x[1], COT_CONV(.padding = {2})); }
SAMPLE(e_conv_back) { UNUSED; return cot_conv_transpose1d(x[0], x[1], COT_CONV(.stride = {2})); }
SAMPLE(e_max_pool) { UNUSED; return cot_max_pool1d(x[0], COT_POOL(.window = {2}, .padding = {1})); }
SAMPLE(e_avg_pool) { UNUSED; return cot_avg_pool1d(x[0], COT_POOL(.window = {2}, .padding = {1})); }
SAMPLE(e_avg_pool2d) {
    UNUSED;
    return cot_avg_pool2d(x[0], COT_POOL(.window = {2, 2}, .stride = {1, 1}, .padding = {1, 1}));
}
SAMPLE(e_einsum) { (void)user; return cot_einsum("bij,bjk->bik", n, x); }
SAMPLE(e_einsum_sum) { (void)user; return cot_einsum("bij,bij->", n, x); }
SAMPLE(e_cube) { UNUSED; return cot_prod(cot_mul(x[0], x[0]), COT_AXES(0)); }
SAMPLE(e_softmax) { UNUSED; return cot_softmax(x[0], 2); }
SAMPLE(e_sort) { UNUSED; return cot_sort(x[0], 2, false); }
SAMPLE(e_cumsum) { UNUSED; return cot_cumsum(x[0], 2, true); }
SAMPLE(e_fft) { UNUSED; return cot_rfft(x[0], 4, -1); }
SAMPLE(e_layer_norm) { UNUSED; return cot_layer_norm(x[0], COT_NONE, COT_NONE, 2, 0.1); }
SAMPLE(e_max) { UNUSED; return cot_max(x[0], COT_AXES(2)); }
SAMPLE(e_logsumexp) { UNUSED; return cot_logsumexp(x[0], COT_AXES(2)); }
SAMPLE(e_norm) { UNUSED; return cot_norm(x[0], 3, COT_AXES(2)); }
SAMPLE(e_inv) { UNUSED; return cot_inv(x[0]); }
SAMPLE(e_solve) { UNUSED; return cot_solve(x[0], x[1]); }
SAMPLE(e_matmul) { UNUSED; return cot_matmul(x[0], x[1]); }
SAMPLE(e_whole_matmul) {
    UNUSED;
    cot_var a = cot_cast(x[0], COT_I32), b = cot_cast(x[1], COT_I32);
    return cot_cast(cot_matmul(a, b), cot_dtype_of(x[0]));
}

static const struct sample more_samples[] = {
    {"take", e_take, 1, {{2, 2, 3}}},
    {"take_along", e_take_along, 1, {{2, 2, 3}}},
    {"gather", e_gather, 1, {{3, 2, 3, 2}}},
    {"scatter_add", e_scatter_add, 2, {{2, 2, 3}, {2, 1, 3}}},
    {"scatter", e_scatter, 2, {{2, 2, 3}, {2, 1, 3}}},
    {"embedding", e_embedding, 1, {{2, 2, 3}}},
    {"topk", e_topk, 1, {{2, 2, 3}}},
    {"tile", e_tile, 1, {{2, 2, 3}}},
    {"repeat", e_repeat, 1, {{2, 2, 3}}},
    {"slice", e_slice, 1, {{2, 2, 3}}},
    {"compress_to", e_compress, 1, {{2, 2, 3}}},
    {"compress_to", e_compress_more, 1, {{2, 2, 3}}},
    {"masked_select", e_mask, 1, {{2, 2, 3}}},
    {"broadcast_to", e_broadcast, 1, {{2, 2, 3}}},
    {"cross entropy", e_labels, 1, {{2, 2, 3}}},
    {"nll", e_nll, 1, {{2, 2, 3}}},
    {"conv", e_conv, 2, {{3, 2, 2, 5}, {3, 3, 2, 3}}},
    {"conv_transpose", e_conv_back, 2, {{3, 2, 2, 5}, {3, 2, 3, 3}}},
    {"max_pool", e_max_pool, 1, {{3, 2, 2, 5}}},
    {"avg_pool", e_avg_pool, 1, {{3, 2, 2, 5}}},
    {"avg_pool", e_avg_pool2d, 1, {{3, 2, 4, 5}}},
    {"einsum", e_einsum, 2, {{3, 4, 2, 3}, {3, 4, 3, 5}}},
    {"einsum", e_einsum_sum, 2, {{3, 4, 2, 3}, {3, 4, 2, 3}}},
    {"prod", e_cube, 1, {{3, 2, 3, 4}}},
    {"softmax", e_softmax, 1, {{3, 2, 3, 4}}},
    {"sort", e_sort, 1, {{3, 2, 3, 4}}},
    {"cumsum", e_cumsum, 1, {{3, 2, 3, 4}}},
    {"rfft", e_fft, 1, {{3, 2, 3, 4}}},
    {"layer_norm", e_layer_norm, 1, {{3, 2, 3, 4}}},
    {"max", e_max, 1, {{3, 2, 3, 4}}},
    {"logsumexp", e_logsumexp, 1, {{3, 2, 3, 4}}},
    {"norm", e_norm, 1, {{3, 2, 3, 4}}},
    {"inv", e_inv, 1, {{3, 2, 3, 3}}},
    {"solve", e_solve, 2, {{3, 2, 3, 3}, {3, 2, 3, 4}}},
    {"matmul", e_matmul, 2, {{3, 4, 2, 3}, {3, 4, 3, 5}}},
    {"matmul of integers", e_whole_matmul, 2, {{3, 4, 2, 3}, {3, 4, 3, 5}}},
};

/* ---- shapes ---------------------------------------------------------------------------------- */

/* A larger request is refused. Nothing here needs one, because arrays with elements have few. */
enum { ROOM = 1 << 22 };
/* COT_TEST_SAY=1 prints each shape before it is tried: the last one is the one that does not
 * end. */

/* Extents for the axes of a sample's inputs, all in one row. */
typedef struct extents { int n; int64_t at[TEST_MAX_INPUTS * 4]; } extents;

static extents extents_of(const struct sample *s) {
    extents e = {0, {0}};
    for (int k = 0; k < s->n; k++)
        for (int i = 0; i < s->shapes[k][0]; i++) e.at[e.n++] = s->shapes[k][1 + i];
    return e;
}

typedef struct attempt {
    const struct sample *s;
    cot_tape            *t;
    char                 name[400];
    cot_var              x[TEST_MAX_INPUTS];
} attempt;

static bool fine(attempt *a, const char *what) {
    if (cot_tape_status(a->t) == COT_OK) return true;
    /* In bodies, whatever the shape. */
    bool refused = strstr(cot_tape_message(a->t), "would depend on values");
    if (!refused) test_note("%s: %s: %s", a->name, what, cot_tape_message(a->t));
    cot_tape_clear_error(a->t);
    return false;
}

static bool all_zero(cot_var g) {
    double v[TEST_MAX_SIZE];
    if (cot_size(g) > TEST_MAX_SIZE || cot_read(g, v, cot_size(g)) != COT_OK) return false;
    for (int64_t i = 0; i < cot_size(g); i++)
        if (v[i] != 0) return false;
    return true;
}

static void same_shapes(attempt *a, const char *what, bool zero, int n, const cot_var *xs, const cot_var *gs) {
    for (int k = 0; k < n; k++) {
        cot_shape x = cot_shape_of(xs[k]), g = cot_shape_of(gs[k]);
        TEST_CHECK(cot__same_shape(&x, &g), "%s: %s %d has another shape", a->name, what, k);
        TEST_CHECK(!zero || all_zero(gs[k]), "%s: %s %d is not zero, but there is nothing it could come from", a->name,
                   what, k);
    }
}

/* ---- ways to a derivative -------------------------------------------------------------------- */

static int as_fn(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const attempt *a = user;
    (void)m;
    ys[0] = a->s->f(n, xs, NULL);
    return 0;
}

static void reverse(attempt *a, cot_var z) {
    cot_var g[TEST_MAX_INPUTS], gg[TEST_MAX_INPUTS];
    bool    none = cot_size(z) == 0;
    cot_backward_seeded(z, cot_number(1));
    for (int k = 0; k < a->s->n; k++) g[k] = cot_grad(a->x[k]);
    if (fine(a, "backward")) same_shapes(a, "gradient", none, a->s->n, a->x, g);
    cot_grad_of(cot_sum(cot_mul(z, z), COT_ALL), a->s->n, a->x, g);
    if (!fine(a, "grad_of")) return;
    same_shapes(a, "recorded gradient", none, a->s->n, a->x, g);
    cot_var sum = cot_constant(a->t, 0);
    for (int k = 0; k < a->s->n; k++) sum = cot_add(sum, cot_sum(cot_mul(g[k], g[k]), COT_ALL));
    if (!fine(a, "a sum of gradients") || !cot_requires_grad(sum)) return;
    cot_grad_of(sum, a->s->n, a->x, gg);
    if (fine(a, "second order")) same_shapes(a, "second derivative", none, a->s->n, a->x, gg);
}

static void forward(attempt *a, cot_var z) {
    cot_var dz = cot_jvp(z, a->s->n, a->x, a->x);
    if (fine(a, "jvp")) same_shapes(a, "tangent", false, 1, &z, &dz);
    cot_var out[4];
    cot_taylor(z, a->s->n, a->x, 1, a->x, 3, out);
    fine(a, "taylor");
}

static void matrices(attempt *a, cot_var z) {
    int64_t rows = cot_size(z), columns = 0;
    for (int k = 0; k < a->s->n; k++) columns += cot_size(a->x[k]);
    if (rows > 64 || columns > 64) return;
    double out[64 * 64 + 1];
    cot_jacobian(1, &z, a->s->n, a->x, COT_REVERSE, out);
    fine(a, "jacobian in reverse mode");
    cot_jacobian(1, &z, a->s->n, a->x, COT_FORWARD, out);
    fine(a, "jacobian in forward mode");
    cot_sparse_plan *plan = cot_sparse_jacobian_plan(1, &z, a->s->n, a->x, COT_AUTO);
    if (plan) cot_sparse_jacobian(plan, 1, &z, a->s->n, a->x, out);
    fine(a, "sparse jacobian");
    cot_sparse_plan_destroy(plan);
}

/* `batch` times the same. */
static void batches(attempt *a, cot_var z, int64_t batch) {
    cot_var   xs[TEST_MAX_INPUTS], y;
    cot_shape want = cot_shape_of(z), got;
    for (int k = 0; k < a->s->n; k++) {
        cot_shape s = cot_shape_of(a->x[k]), wide = {s.ndim + 1, {batch}};
        for (int i = 0; i < s.ndim; i++) wide.dim[1 + i] = s.dim[i];
        xs[k] = cot_broadcast_to(a->x[k], wide);
    }
    cot_vmap(as_fn, a, a->s->n, xs, NULL, 1, &y, NULL);
    if (!fine(a, "vmap")) return;
    got = cot_shape_of(y);
    bool same = got.ndim == want.ndim + 1 && got.dim[0] == batch;
    for (int i = 0; same && i < want.ndim; i++) same = got.dim[1 + i] == want.dim[i];
    TEST_CHECK(same, "%s: vmap of %lld: a result of another shape", a->name, (long long)batch);
    if (!cot_requires_grad(y)) return;
    cot_backward_seeded(y, cot_number(1));
    fine(a, "backward through vmap");
}

static void bodies(attempt *a, cot_var z) {
    cot_var y, g[TEST_MAX_INPUTS];
    cot_checkpoint(as_fn, a, a->s->n, a->x, 1, &y);
    if (!fine(a, "checkpoint")) return;
    same_shapes(a, "what is played", false, 1, &z, &y);
    cot_grad_of(cot_sum(cot_mul(y, y), COT_ALL), a->s->n, a->x, g);
    fine(a, "grad_of a checkpoint");
}

/* For people: the tape as text, and the reports about the value. */
static void looks(attempt *a, cot_var z) {
    char  text[4000];
    FILE *out = tmpfile();
    assert_non_null(out);
    cot_tape_print(a->t, out);
    cot_tape_print_sweep(z, out);
    cot_explain(z, text, sizeof text);
    cot_report(z, text, sizeof text);
    cot__json j = {.out = out};
    cot__view v = cot__look(z.tape, cot__index(z));
    cot__json_view(&j, &v);
    TEST_CHECK(ftell(out) < 1 << 20, "%s: is printed at length", a->name);
    fclose(out);
    fine(a, "printing");
}

/* ---- one sample in one shape ----------------------------------------------------------------- */

/* The inputs, of numbers from 0.5 to 1.2; false where one of them would need more memory than there
 * is. */
static bool make_inputs(attempt *a, const extents *e, cot_dtype dtype) {
    double data[TEST_MAX_SIZE * 4];
    int    used =
            snprintf(a->name, sizeof a->name, "%s in %s of", a->s->op ? a->s->op : "composed", cot_dtype_name(dtype)),
        at = 0;
    for (int i = 0; i < TEST_COUNT(data); i++) data[i] = 0.5 + 0.01 * ((i * 37) % 64);
    for (int k = 0; k < a->s->n; k++) {
        cot_shape s = {(int)a->s->shapes[k][0], {0}};
        char      text[COT__SHAPE_TEXT];
        double    size = 1;
        for (int i = 0; i < s.ndim; i++) size *= (double)(s.dim[i] = e->at[at++]);
        if (size > TEST_COUNT(data)) return false;
        used += snprintf(a->name + used, sizeof a->name - (size_t)used, " %s", cot__shape_text(s.ndim, s.dim, text));
        a->x[k] =
            s.ndim ? cot_leaf(cot_cast(cot_data(a->t, COT_F64, s, data), dtype)) : cot_scalar_of(a->t, dtype, 0.5);
    }
    return cot_tape_status(a->t) == COT_OK;
}

static void attempt_shapes(const struct sample *s, int number, const extents *e, cot_dtype dtype) {
    counting c = {.fail_from_size = ROOM};
    attempt  a = {.s = s, .t = counted_tape(&c, false)};
    cot_mark m;
    char     why[400];
    if (make_inputs(&a, e, dtype)) {
        if (getenv("COT_TEST_SAY")) fprintf(stderr, "%d %s\n", number, a.name);
        m = cot_tape_mark(a.t);
        cot_var z = s->f(s->n, a.x, NULL);
        if (cot_tape_status(a.t) == COT_OK && cot_is_valid(z)) {
            void (*const ways[])(attempt *, cot_var) = {reverse, forward, matrices, bodies, looks};
            for (int k = 0; k < TEST_COUNT(ways) && cot_requires_grad(z); k++) ways[k](&a, z);
            for (int64_t batch = 0; batch < 3; batch += 2) batches(&a, z, batch);
        }
        cot_tape_clear_error(a.t);
        TEST_CHECK(cot_tape_check(a.t, why, sizeof why) == COT_OK, "%s: %s", a.name, why);
        cot_tape_rewind(a.t, m);
    }
    cot_tape_destroy(a.t);
    TEST_CHECK(c.blocks == 0, "%s: %zu blocks leak", a.name, c.blocks);
}

/* Every axis of every input gets each of the extents in turn: its own, or one of `values`. */
static void each_shape(const struct sample *s, int number, int n, const int64_t *values, bool huge) {
    extents own = extents_of(s), e = own;
    /* A sum of nothing never grows beyond their bound. */
    if (s->f == s_while || s->f == s_slopes_of_while) return;
    int64_t count = 1;
    /* Then axes of the same extent go together. */
    bool    by_value = own.n > (test_small() ? (huge ? 2 : 4) : huge ? 5 : 8);
    int     kinds = 0, kind[TEST_COUNT(own.at)];
    for (int i = 0; i < own.n; i++) {
        kind[i] = kinds;
        for (int k = 0; by_value && k < i; k++)
            if (own.at[k] == own.at[i]) kind[i] = kind[k];
        kinds += kind[i] == kinds;
    }
    for (int k = 0; k < kinds; k++) count *= n + 1;
    for (int64_t c = 1; c < count; c++) {
        bool empty = false, long_loop = false;
        for (int i = 0; i < own.n; i++) {
            int64_t digit = c;
            for (int k = 0; k < kind[i]; k++) digit /= n + 1;
            digit %= n + 1;
            e.at[i] = digit ? values[digit - 1] : own.at[i];
            empty |= e.at[i] == 0;
        }
        /* as many steps are asked for, and taken */
        for (int k = 0, at = 0; k < s->n; at += (int)s->shapes[k][0], k++)
            long_loop |= s->op && strcmp(s->op, "loop") == 0 && s->shapes[k][0] > 0 && e.at[at] > 1000;
        if (empty && !long_loop) for (int d = 0; d < 2; d++) attempt_shapes(s, number, &e, d ? COT_BF16 : COT_F64);
    }
}

static void each_sample(int n, const int64_t *values, bool huge) {
    for (int i = 0; i < TEST_COUNT(samples); i++) each_shape(&samples[i], i, n, values, huge);
    for (int i = 0; i < TEST_COUNT(more_samples); i++) each_shape(&more_samples[i], i, n, values, huge);
    test_verdict();
}

static void what_takes_empty_arrays_differentiates_them(void **state) {
    (void)state;
    const int64_t none = 0;
    each_sample(1, &none, false);
}

static void many_empty_arrays_are_done_at_once(void **state) {
    (void)state;
    const int64_t values[] = {0, (int64_t)1 << 40};
    each_sample(2, values, true);
}

/* Whoever asks for a derivative too: there are no means to keep. */
static void empty_rows_are_normalised_at_once(void **state) {
    (void)state;
    for (int leaf = 1; leaf >= 0; leaf--) {
        cot_tape *t = cot_tape_create(NULL);
        cot_shape s = COT_SHAPE((int64_t)1 << 40, 0);
        cot_var   x = leaf ? cot_tensor(t, COT_F64, s, NULL) : cot_data(t, COT_F64, s, NULL);
        cot_var   y = cot_add(cot_layer_norm(x, COT_NONE, COT_NONE, 1, 1e-5), cot_rms_norm(x, COT_NONE, 1, 1e-5));
        if (leaf) cot_backward(cot_sum(y, COT_ALL));
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

/* ---- functions of functions ------------------------------------------------------------------ */

static int curved(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(cot_sin(xs[0]), xs[0]);
    return 0;
}
static int loss(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    curved(n, xs, m, ys, user);
    ys[0] = cot_sum(ys[0], COT_ALL);
    return 0;
}
static int slope(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)m;
    return cot_value_and_grad(loss, user, n, xs, NULL, ys);
}
static int step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)user;
    ys[0] = cot_add(cot_sin(xs[0]), xs[n - 1]);
    if (m > 1) ys[1] = cot_mul(xs[0], xs[0]);
    return 0;
}
static int counted_step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    return step(n - 1, xs + 1, m, ys, user);
}
static int next_half(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_add(cot_mul(0.5, cot_sin(xs[0])), xs[1]);
    return 0;
}
static int equation(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sub(cot_add(xs[0], cot_mul(0.5, cot_sin(xs[0]))), xs[1]);
    return 0;
}
static int bowl(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sum(cot_square(cot_sub(xs[0], xs[1])), COT_ALL);
    return 0;
}
static int thrice(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(xs[0], 3.0);
    return 0;
}
static cot_var curved_alone(int n, const cot_var *xs, void *user) {
    cot_var y;
    curved(n, xs, 1, &y, user);
    return y;
}

#define EACH_OK(t, name, text, call)                                                                                   \
    do {                                                                                                               \
        call;                                                                                                          \
        TEST_CHECK(cot_tape_status(t) == COT_OK, "%s of %s: %s", name, text, cot_tape_message(t));                     \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)

static void functions_of_functions_take_empty_arrays(void **state) {
    (void)state;
    const cot_shape shapes[] = {COT_SHAPE(0), COT_SHAPE(2, 0), COT_SHAPE(0, 3), COT_SHAPE((int64_t)1 << 40, 0),
                                COT_SHAPE(0, (int64_t)1 << 40)};
    for (int i = 0; i < TEST_COUNT(shapes); i++) {
        char       text[COT__SHAPE_TEXT];
        counting   c = {.fail_from_size = ROOM};
        cot_tape  *t = counted_tape(&c, false);
        cot_var    x = cot_tensor(t, COT_F64, shapes[i], NULL), y, ys[2], g, last;
        /* Extents. */
        bool       few = shapes[i].dim[0] <= 3 && shapes[i].dim[shapes[i].ndim - 1] <= 3;
        double     nothing[1] = {0};
        cot_linear *linear = NULL;
        cot__shape_text(shapes[i].ndim, shapes[i].dim, text);
        EACH_OK(t, "value_and_grad", text, cot_value_and_grad(loss, NULL, 1, &x, &y, &g));
        EACH_OK(t, "fn_vjp", text, cot_fn_vjp(curved, NULL, 1, &x, 1, &y, (cot_var[]){cot_number(1)}, &g));
        EACH_OK(t, "fn_jvp", text, cot_fn_jvp(curved, NULL, 1, &x, (cot_var[]){cot_number(1)}, 1, &y, &g));
        EACH_OK(t, "linearize", text, cot_linearize(curved, NULL, 1, &x, 1, &y, &linear));
        EACH_OK(t, "linear_jvp", text, cot_linear_jvp(linear, &x, &g));
        EACH_OK(t, "linear_vjp", text, cot_linear_vjp(linear, &x, &g));
        if (few) {
            EACH_OK(t, "fn_jacobian", text, cot_fn_jacobian(curved, NULL, 1, &x, 1, &y, COT_REVERSE, &g));
            EACH_OK(t, "fn_jacobian", text, cot_fn_jacobian(curved, NULL, 1, &x, 1, &y, COT_FORWARD, &g));
            EACH_OK(t, "fn_hessian", text, cot_fn_hessian(loss, NULL, 1, &x, &y, &g));
        }
        curved(1, &x, 1, &y, NULL);
        cot_var sum = cot_sum(y, COT_ALL);
        EACH_OK(t, "jacobian", text, cot_jacobian(1, &y, 1, &x, COT_AUTO, nothing));
        EACH_OK(t, "jacobian of a sum", text, cot_jacobian(1, &sum, 1, &x, COT_AUTO, nothing));
        EACH_OK(t, "hessian", text, cot_hessian(sum, 1, &x, nothing));
        EACH_OK(t, "hvp", text, cot_hvp(sum, 1, &x, nothing, nothing));
        EACH_OK(t, "vjps", text, cot_vjps(2, 1, &y, nothing, 1, &x, nothing));
        EACH_OK(t, "jvps", text, cot_jvps(2, 1, &x, nothing, 1, &y, nothing));
        EACH_OK(t, "taylor_values", text, cot_taylor_values(y, 1, &x, 1, nothing, 3, nothing));
        cot_sparse_plan *plan = NULL;
        EACH_OK(t, "sparse jacobian", text, plan = cot_sparse_jacobian_plan(1, &y, 1, &x, COT_AUTO));
        EACH_OK(t, "sparse jacobian", text, cot_sparse_jacobian(plan, 1, &y, 1, &x, nothing));
        cot_sparse_plan_destroy(plan);
        EACH_OK(t, "sparse hessian", text, plan = cot_sparse_hessian_plan(sum, 1, &x));
        EACH_OK(t, "sparse hessian", text, cot_sparse_hessian(plan, sum, 1, &x, nothing));
        FILE *file = tmpfile();
        EACH_OK(t, "a plan in a file", text, cot_sparse_plan_save(plan, file));
        cot_sparse_plan_destroy(plan);
        rewind(file);
        EACH_OK(t, "a plan in a file", text, plan = cot_sparse_plan_load(t, file));
        fclose(file);
        cot_sparse_plan_destroy(plan);
        if (few) {
            EACH_OK(t, "vmap of a gradient", text, cot_vmap(slope, NULL, 1, &x, NULL, 1, &y, NULL));
            EACH_OK(t, "scan along it", text,
                    cot_scan(step, NULL, -1, 1, (cot_var[]){cot_scalar(t, 1)}, 1,
                             (cot_var[]){cot_sum(x, shapes[i].ndim > 1 ? COT_AXES(1) : (cot_axes){0, false, {0}})},
                             &last, 1, ys, NULL));
            EACH_OK(t, "backward of scan", text,
                    cot_backward(cot_add(cot_sum(last, COT_ALL), cot_sum(ys[0], COT_ALL))));
        }
        EACH_OK(t, "scan with it", text, cot_scan(step, NULL, 3, 1, &x, 0, NULL, &last, 1, ys, NULL));
        EACH_OK(t, "backward of scan", text, cot_backward(cot_add(cot_sum(last, COT_ALL), cot_sum(ys[0], COT_ALL))));
        EACH_OK(t, "fori", text, cot_fori(counted_step, NULL, 0, 3, 1, &x, &last, NULL));
        EACH_OK(t, "grad_of fori", text, cot_grad_of(cot_sum(last, COT_ALL), 1, &x, &g));
        EACH_OK(t, "cond", text, cot_cond(cot_number(1), curved, curved, NULL, 1, &x, 1, &y));
        EACH_OK(t, "checkpoint", text, cot_checkpoint(curved, NULL, 1, &x, 1, &y));
        EACH_OK(t, "backward of both", text, cot_backward(cot_sum(y, COT_ALL)));
        EACH_OK(t, "linear_solve", text, y = cot_linear_solve(thrice, NULL, x, NULL));
        EACH_OK(t, "backward of linear_solve", text, cot_backward(cot_sum(y, COT_ALL)));
        EACH_OK(t, "root", text, y = cot_root(equation, NULL, NULL, x, 1, &x, NULL));
        EACH_OK(t, "backward of root", text, cot_backward(cot_sum(y, COT_ALL)));
        EACH_OK(t, "fixed_point", text, y = cot_fixed_point(next_half, NULL, NULL, x, 1, &x, NULL));
        EACH_OK(t, "backward of fixed_point", text, cot_backward(cot_sum(y, COT_ALL)));
        EACH_OK(t, "minimize", text, y = cot_minimize(bowl, NULL, NULL, x, 1, &x, NULL));
        EACH_OK(t, "backward of minimize", text, cot_backward(cot_sum(y, COT_ALL)));
        cot_array        at = {COT_F64, shapes[i], 0, nothing};
        cot_check_report report;
        TEST_CHECK(cot_check_grads(curved_alone, NULL, 1, &at, 2, &report) == COT_OK, "check_grads of %s: %s", text,
                   report.message);
        cot_tape_destroy(t);
        TEST_CHECK(c.blocks == 0, "%s: %zu blocks leak", text, c.blocks);
    }
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_rows_are_normalised_at_once),
        cmocka_unit_test(functions_of_functions_take_empty_arrays),
        cmocka_unit_test(what_takes_empty_arrays_differentiates_them),
        cmocka_unit_test(many_empty_arrays_are_done_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
