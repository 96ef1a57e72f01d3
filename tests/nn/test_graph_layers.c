/* Layers on graphs: values beside the published formulas written as dense loops, derivatives of
 * both modes and orders with respect to input and parameters, and what the layers refuse. */
#include "support/tape_test.h"

enum { N = 5, IN = 3, UNITS = 2, HEADS = 3, ENTRIES = 11 };

/* Number i of a sequence, in steps of 1/500. */
static double number(int64_t i, int seed) { return (double)((7919 * (i + 1) + seed * 104729) % 1000) / 500 - 1; }

/* Node 4 reads nobody; the graph is no symmetric one. */
static const int64_t from[ENTRIES] = {0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3};
static const int64_t to[ENTRIES]   = {0, 1, 4, 1, 2, 0, 2, 3, 0, 3, 4};

/* For the nets, which get x alone; constants of the tape that x is on. */
static cot_csr graph_on(cot_tape *t) {
    double values[ENTRIES];
    for (int k = 0; k < ENTRIES; k++) values[k] = number(k, 9);
    return cot_csr_from_triplets(t, N, N, ENTRIES, from, to, cot_data(t, COT_F64, COT_SHAPE(ENTRIES), values));
}

static cot_var gcn(cot_params *p, cot_var x) { return cot_nn_gcn(p, "a", graph_on(cot_tape_of(x)), x, UNITS, true); }
static cot_var gat(cot_params *p, cot_var x) {
    return cot_nn_gat(p, "a", graph_on(cot_tape_of(x)), x, UNITS, &(cot_nn_gat_options){.heads = HEADS});
}
static cot_var gat_mean(cot_params *p, cot_var x) {
    return cot_nn_gat(p, "a", graph_on(cot_tape_of(x)), x, UNITS,
                      &(cot_nn_gat_options){.heads = HEADS, .mean = true, .no_bias = true, .slope = 0.1});
}
static cot_var gat_plain(cot_params *p, cot_var x) {
    return cot_nn_gat(p, "a", graph_on(cot_tape_of(x)), x, UNITS, NULL);
}
/* x as entries: all of a dense x, so that the dense loops are right for it too. */
static cot_csr rows_of(cot_var x) {
    int64_t row[N * IN], column[N * IN];
    for (int k = 0; k < N * IN; k++) row[k] = k / IN, column[k] = k % IN;
    return cot_csr_from_triplets(cot_tape_of(x), N, IN, N * IN, row, column, cot_reshape(x, COT_SHAPE(N * IN)));
}
static cot_var gcn_csr(cot_params *p, cot_var x) {
    return cot_nn_gcn_csr(p, "a", graph_on(cot_tape_of(x)), rows_of(x), UNITS, true);
}

/* ---- the formulas, dense --------------------------------------------------------------------- */

/* h (N, width) = x w */
static void times(const double *x, const double *w, int width, double *h) {
    for (int i = 0; i < N; i++)
        for (int u = 0; u < width; u++) {
            h[i * width + u] = 0;
            for (int k = 0; k < IN; k++) h[i * width + u] += x[i * IN + k] * w[k * width + u];
        }
}

static void dense_gcn(const double *x, double *const *w, double *y) {
    double h[N * UNITS], a[N][N] = {{0}};
    times(x, w[0], UNITS, h);
    for (int k = 0; k < ENTRIES; k++) a[from[k]][to[k]] = number(k, 9);
    for (int i = 0; i < N; i++)
        for (int u = 0; u < UNITS; u++) {
            y[i * UNITS + u] = w[1][u];
            for (int j = 0; j < N; j++) y[i * UNITS + u] += a[i][j] * h[j * UNITS + u];
        }
}

/* y (N, heads, UNITS) without the bias; weights in the order in which the layer asks for them. */
static void heads_of(const double *x, double *const *w, int heads, double slope, double *y) {
    int    width = heads * UNITS;
    double h[N * HEADS * UNITS];
    times(x, w[0], width, h);
    for (int head = 0; head < heads; head++)
        for (int i = 0; i < N; i++) {
            double e[N], sum = 0, *out = y + (i * heads + head) * UNITS;
            for (int j = 0; j < N; j++) {
                double s = 0;
                bool   reads = false;
                for (int k = 0; k < ENTRIES; k++) reads = reads || (from[k] == i && to[k] == j);
                for (int u = 0; u < UNITS; u++)
                    s += w[1][head * UNITS + u] * h[i * width + head * UNITS + u] +
                         w[2][head * UNITS + u] * h[j * width + head * UNITS + u];
                e[j] = reads ? exp(s > 0 ? s : slope * s) : 0;
                sum += e[j];
            }
            for (int u = 0; u < UNITS; u++) {
                out[u] = 0;
                for (int j = 0; j < N; j++)
                    if (e[j] > 0) out[u] += e[j] / sum * h[j * width + head * UNITS + u];
            }
        }
}

static void dense_gat(const double *x, double *const *w, double *y) {
    heads_of(x, w, HEADS, 0.2, y);
    for (int k = 0; k < N * HEADS * UNITS; k++) y[k] += w[3][k % (HEADS * UNITS)];
}
static void dense_gat_plain(const double *x, double *const *w, double *y) {
    heads_of(x, w, 1, 0.2, y);
    for (int k = 0; k < N * UNITS; k++) y[k] += w[3][k % UNITS];
}
static void dense_gat_mean(const double *x, double *const *w, double *y) {
    double all[N * HEADS * UNITS];
    heads_of(x, w, HEADS, 0.1, all);
    for (int i = 0; i < N; i++)
        for (int u = 0; u < UNITS; u++) {
            y[i * UNITS + u] = 0;
            for (int k = 0; k < HEADS; k++) y[i * UNITS + u] += all[(i * HEADS + k) * UNITS + u] / HEADS;
        }
}

static const struct {
    const char *name;
    cot_net     net;
    void (*dense)(const double *x, double *const *w, double *y);
    int width, params;
} layers[] = {
    {"gcn", gcn, dense_gcn, UNITS, 2},
    {"gcn_csr", gcn_csr, dense_gcn, UNITS, 2},
    {"gat", gat, dense_gat, HEADS * UNITS, 4},
    {"gat_plain", gat_plain, dense_gat_plain, UNITS, 4},
    {"gat_mean", gat_mean, dense_gat_mean, UNITS, 3},
};
enum { LAYERS = sizeof layers / sizeof *layers, MOST = 32 };

/* An input, a model whose parameter k has the numbers of seed 2 + k, and both as plain arrays. */
typedef struct layer_case {
    cot_tape   *t;
    cot_params *p;
    cot_net     net;
    cot_var     x;
    double      data[5][MOST];
} layer_case;

static void setup(layer_case *c, int k) {
    *c = (layer_case){.t = cot_tape_create(NULL), .net = layers[k].net};
    for (int i = 0; i < N * IN; i++) c->data[0][i] = number(i, 1);
    c->x = cot_data(c->t, COT_F64, COT_SHAPE(N, IN), c->data[0]);
    c->p = cot_params_create(c->t);
    if (cot_params_init(c->p, c->net, c->x, cot_key_of(1)) != COT_OK) fail_msg("%s", cot_tape_message(c->t));
    assert_int_equal(cot_params_count(c->p), layers[k].params);
    for (int a = 0; a < layers[k].params; a++) {
        cot_var w = cot_params_at(c->p, a).var;
        assert_true(cot_size(w) <= MOST);
        for (int64_t i = 0; i < cot_size(w); i++) c->data[1 + a][i] = number(i, 2 + a);
        assert_int_equal(cot_assign_data(w, c->data[1 + a]), COT_OK);
    }
}

static void teardown(layer_case *c) {
    cot_params_destroy(c->p);
    cot_tape_destroy(c->t);
}

/* Some ten products of numbers below 4 are summed, each rounded by 2^-53: 1e-14 at most. */
static void layers_compute_the_published_formulas(void **state) {
    (void)state;
    for (int k = 0; k < LAYERS; k++) {
        layer_case c;
        setup(&c, k);
        double *w[] = {c.data[1], c.data[2], c.data[3], c.data[4]}, got[MOST], want[MOST];
        int     n   = N * layers[k].width;
        cot_var y   = c.net(c.p, c.x);
        if (cot_read(y, got, n) != COT_OK) fail_msg("%s: %s", layers[k].name, cot_tape_message(c.t));
        layers[k].dense(c.data[0], w, want);
        for (int i = 0; i < n; i++)
            if (!(fabs(got[i] - want[i]) <= 1e-14))
                fail_msg("%s: element %d is %.17g, by dense loops %.17g", layers[k].name, i, got[i], want[i]);
        teardown(&c);
    }
}

static cot_var of_bound(int n, const cot_var *xs, void *user) {
    layer_case *c = user;
    cot_params_bind(c->p, n - 1, xs + 1);
    cot_var y = c->net(c->p, xs[0]);
    cot_params_bind(c->p, 0, NULL);
    return y;
}

static void layers_have_derivatives_of_second_order(void **state) {
    (void)state;
    for (int k = 0; k < LAYERS; k++) {
        layer_case       c;
        cot_array        at[5];
        cot_check_report report;
        setup(&c, k);
        for (int i = 0; i <= layers[k].params; i++) {
            cot_var v = i ? cot_params_at(c.p, i - 1).var : c.x;
            at[i]     = (cot_array){COT_F64, cot_shape_of(v), cot_size(v), c.data[i]};
        }
        if (cot_check_grads(of_bound, &c, 1 + layers[k].params, at, 2, &report) != COT_OK)
            fail_msg("%s: %s", layers[k].name, report.message);
        teardown(&c);
    }
}

static cot_var forgetful(cot_params *p, cot_var x) {
    return cot_nn_gat(p, "a", graph_on(cot_tape_of(x)), x, UNITS, &(cot_nn_gat_options){.dropout = 0.5});
}

static void graph_attention_drops_neighbours_in_training_alone(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_params *p = cot_params_create(t);
    cot_var     x = cot_full(t, COT_F64, COT_SHAPE(N, IN), 1);
    double      one[N * UNITS], two[N * UNITS], plain[N * UNITS];
    assert_int_equal(cot_params_init(p, forgetful, x, cot_key_of(1)), COT_OK);
    cot_params_set_key(p, cot_key_of(1));
    cot_read(forgetful(p, x), one, N * UNITS);
    cot_params_set_key(p, cot_key_of(2));
    cot_read(forgetful(p, x), two, N * UNITS);
    assert_memory_not_equal(one, two, sizeof one);
    cot_params_train(p, false);
    cot_read(forgetful(p, x), plain, N * UNITS);
    cot_read(gat_plain(p, x), one, N * UNITS);
    assert_memory_equal(one, plain, sizeof one);
    assert_ok(t);
    cot_params_destroy(p);
    cot_tape_destroy(t);
}

static void layers_on_graphs_say_what_is_wrong(void **state) {
    (void)state;
    cot_tape   *t     = cot_tape_create(NULL);
    cot_params *p     = cot_params_create(t);
    cot_csr     graph = graph_on(t);
    cot_var     x = cot_full(t, COT_F64, COT_SHAPE(N, IN), 1), flat = cot_full(t, COT_F64, COT_SHAPE(N), 1);
    assert_false(cot_is_valid(cot_nn_gcn(p, "a", graph, flat, 2, false)));
    assert_error(t, COT_SHAPE, "[nn_gcn] x has 1 axes; it needs 2 or more");
    cot_tape_clear_error(t);
    assert_false(cot_is_valid(cot_nn_gcn(p, "a", graph, x, 0, false)));
    assert_error(t, COT_SHAPE, "[nn_gcn] the layer has 0 units; it needs 1 or more");
    cot_tape_clear_error(t);
    assert_false(cot_is_valid(cot_nn_gcn_csr(p, "a", graph, graph, 0, false)));
    assert_error(t, COT_SHAPE, "[nn_gcn_csr] the layer has 0 units; it needs 1 or more");
    cot_tape_clear_error(t);
    assert_false(cot_is_valid(cot_nn_gat(p, "a", graph, flat, 2, &(cot_nn_gat_options){.heads = -1})));
    assert_error(t, COT_SHAPE,
                 "[nn_gat] x has 1 axes, the layer -1 heads of 2 units; x is (nodes, in), and heads and units are 1 "
                 "or more");
    cot_tape_clear_error(t);
    assert_false(cot_is_valid(cot_nn_gat(p, "a", graph, x, 2, &(cot_nn_gat_options){.slope = NAN})));
    assert_error(t, COT_VALUE, "[nn_gat] the slope of its leaky relu is nan; it must be finite");
    cot_tape_clear_error(t);
    assert_false(cot_is_valid(cot_nn_gcn(p, "a", graph, x, 2, false)));
    assert_error(t, COT_VALUE,
                 "[nn_gcn] there is no parameter \"a.weight\"; cot_params_init makes those that its net asks for");
    cot_tape_clear_error(t);
    assert_int_equal(cot_params_init(p, gat_plain, x, cot_key_of(1)), COT_OK);
    assert_false(cot_is_valid(cot_nn_gat(p, "a", graph, cot_full(t, COT_F64, COT_SHAPE(N + 1, IN), 1), 2, NULL)));
    assert_int_equal(cot_tape_status(t), COT_SHAPE);
    cot_tape_clear_error(t);
    assert_false(cot_is_valid(cot_nn_gat(p, "a", (cot_csr){0}, x, 2, NULL)));
    assert_int_not_equal(cot_tape_status(t), COT_OK);
    cot_params_destroy(p);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_compute_the_published_formulas),
        cmocka_unit_test(layers_have_derivatives_of_second_order),
        cmocka_unit_test(graph_attention_drops_neighbours_in_training_alone),
        cmocka_unit_test(layers_on_graphs_say_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
