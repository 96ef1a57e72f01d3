/* gcn.c: a graph network of two layers on a random graph with the counts of Cora: forward,
 * backward, a step of Adam. Words are a dense matrix, or compressed rows like the graph. */
#include "workloads/compiled.h"

enum { NODES = 2708, WORDS = 1433, HIDDEN = 16, CLASSES = 7, EDGES = 5278, LABELLED = 140 };

typedef struct gcn {
    cot_tape   *t;
    cot_params *p;
    cot_optim  *adam;
    cot_mark    start;
    bool        sparse;
    cot_csr     graph, words;
    cot_var     x, labels;
} gcn;

static cot_var logits(const gcn *m, cot_var w1, cot_var w2) {
    cot_var words = m->sparse ? cot_csr_matmul(m->words, w1) : cot_matmul(m->x, w1);
    return cot_csr_matmul(m->graph, cot_matmul(cot_relu(cot_csr_matmul(m->graph, words)), w2));
}

static cot_var net(cot_params *p, cot_var x) {
    cot_var w1 = cot_nn_parameter(p, "w1", COT_SHAPE(WORDS, HIDDEN), x, (cot_init){0});
    cot_var w2 = cot_nn_parameter(p, "w2", COT_SHAPE(HIDDEN, CLASSES), x, (cot_init){0});
    return logits(cot_params_user(p), w1, w2);
}

static cot_var loss_of(const gcn *m, cot_var z) {
    return cot_softmax_cross_entropy(cot_slice(z, 0, 0, LABELLED, 1), m->labels);
}

/* Both ends of an edge come from U(50). */
static void make_graph(gcn *m) {
    float   *u = uniform_f32(50, 2 * EDGES, 1);
    int64_t *ends = must(malloc(2 * EDGES * sizeof *ends));
    for (int64_t k = 0; k < 2 * EDGES; k++) ends[k] = (int64_t)((u[k] + 1) / 2 * NODES) % NODES;
    m->graph = cot_csr_gcn(m->t, COT_F32, NODES, EDGES, ends, ends + EDGES);
    free(ends);
    free(u);
}

static void assign(cot_params *p, const char *name, uint64_t seed, double scale) {
    cot_var w = cot_params_get(p, name);
    float  *data = uniform_f32(seed, cot_size(w), scale);
    cot_assign_data(w, data);
    free(data);
}

/* Ones and zeros (nodes, words), which the caller frees. */
static float *words_of_nodes(void) {
    float *x = uniform_f32(3, (int64_t)NODES * WORDS, 1);
    for (int64_t k = 0; k < (int64_t)NODES * WORDS; k++) x[k] = x[k] > 0.975f;
    return x;
}

/* The ones alone. */
static cot_csr compressed(cot_tape *t, const float *x) {
    int64_t *column = must(malloc((size_t)NODES * WORDS * sizeof *column)), start[NODES + 1] = {0}, n = 0;
    for (int64_t i = 0; i < NODES; i++) {
        for (int64_t j = 0; j < WORDS; j++)
            if (x[i * WORDS + j] != 0) column[n++] = j;
        start[i + 1] = n;
    }
    cot_csr a = cot_csr_from_arrays(t, NODES, WORDS, &(cot_array){COT_I64, COT_SHAPE(NODES + 1), NODES + 1, start},
                                    &(cot_array){COT_I64, COT_SHAPE(n), n, column},
                                    cot_full(t, COT_F32, COT_SHAPE(n), 1));
    free(column);
    return a;
}

/* What a step reads beside weights and dense words, as constants of the tape. */
static void make_data(gcn *m) {
    int64_t label[LABELLED];
    for (int k = 0; k < LABELLED; k++) label[k] = k % CLASSES;
    m->labels = cot_data(m->t, COT_I64, COT_SHAPE(LABELLED), label);
    if (m->sparse) {
        float *x = words_of_nodes();
        m->words = compressed(m->t, x);
        m->x = m->words.values;
        free(x);
    }
    make_graph(m);
}

static void *make(bool sparse) {
    gcn *m = must(calloc(1, sizeof *m));
    m->t = must(cot_tape_create(NULL));
    m->p = must(cot_params_create(m->t));
    m->sparse = sparse;
    make_data(m);
    if (!sparse) {
        float *x = words_of_nodes();
        m->x = cot_data(m->t, COT_F32, COT_SHAPE(NODES, WORDS), x);
        free(x);
    }
    cot_params_set_user(m->p, m);
    cot_params_init(m->p, net, m->x, cot_key_of(0));
    assign(m->p, "w1", 4, 1 / sqrt((double)WORDS));
    assign(m->p, "w2", 5, 1 / sqrt((double)HIDDEN));
    m->adam = cot_optim_create(m->p, &(cot_optim_options){.kind = COT_ADAM, .rate = 0.01});
    m->start = cot_tape_mark(m->t);
    check(m->t);
    return m;
}

static double gcn_step(void *state) {
    gcn    *m = state;
    cot_var loss = loss_of(m, net(m->p, m->x));
    double  value = cot_value(loss);
    cot_backward(loss);
    cot_optim_step(m->adam);
    check(m->t);
    cot_tape_zero_grads(m->t);
    cot_tape_rewind(m->t, m->start);
    return value;
}

static void gcn_destroy(void *state) {
    gcn *m = state;
    cot_optim_destroy(m->adam);
    cot_params_destroy(m->p);
    cot_tape_destroy(m->t);
    free(m);
}

static void *make_dense(void) { return make(false); }
static void *make_sparse(void) { return make(true); }

static cot_var recorded_loss(void *state) {
    gcn *m = state;
    return loss_of(m, net(m->p, m->x));
}

const recorded gcn_recorded = {"gcn_cora", make_dense, recorded_loss, gcn_step, gcn_destroy};

const workload gcn_workloads[2] = {
    {"gcn_cora", "f32", make_dense, gcn_step, gcn_destroy, 1.9454365, 1e-6, NULL},
    {"gcn_cora_sparse", "f32", make_sparse, gcn_step, gcn_destroy, 1.9454365, 1e-6, NULL},
};

/* ---- as a program ---------------------------------------------------------------------------- */

/* Inputs: weights, their two moments, the number of the step, and dense words. Outputs: the loss,
 * weights, moments. */
enum { W1, W2, COUNT, STEP = 3 * COUNT, X, ALL };

static int loss(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = loss_of(user, logits(user, xs[W1], xs[W2]));
    return 0;
}

static int descend(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    static const cot_optim_options adam = {.kind = COT_ADAM};
    gcn                            g = {.t = cot_tape_of(xs[0]), .sparse = *(const bool *)user};
    cot_var                        grads[COUNT];
    (void)n, (void)m;
    make_data(&g);
    if (!g.sparse) g.x = xs[X];
    if (cot_value_and_grad(loss, &g, COUNT, xs, &ys[0], grads) != COT_OK) return 1;
    return cot_optim_record(&adam, cot_number(0.01), xs[STEP], COUNT, grads, xs, NULL, ys + 1) != COT_OK;
}

static void count_steps(compiled *c) { *(int64_t *)(uintptr_t)c->in[STEP] = c->step; }

static void *make_compiled(bool sparse) {
    static const int64_t rows[COUNT] = {WORDS, HIDDEN}, columns[COUNT] = {HIDDEN, CLASSES};
    cot_type             types[ALL];
    for (int k = 0; k < STEP; k++) types[k] = (cot_type){COT_F32, COT_SHAPE(rows[k % COUNT], columns[k % COUNT])};
    types[STEP] = (cot_type){COT_I64, COT_SCALAR};
    types[X] = (cot_type){COT_F32, COT_SHAPE(NODES, WORDS)};
    compiled *c = compiled_make(descend, &sparse, sparse ? X : ALL, types, 1 + STEP);
    for (int k = 0; k < STEP; k++) {
        int64_t size = rows[k % COUNT] * columns[k % COUNT];
        double  scale = k < COUNT ? 1 / sqrt((double)rows[k]) : 0; /* moments are 0 */
        c->in[k] = c->out[1 + k] = compiled_take(c, uniform_f32(4 + (uint64_t)k, size, scale));
    }
    c->in[STEP] = compiled_take(c, must(malloc(sizeof(int64_t))));
    if (!sparse) c->in[X] = compiled_take(c, words_of_nodes());
    c->out[0] = compiled_take(c, must(malloc(sizeof(float))));
    c->before = count_steps;
    c->result = compiled_first_float;
    return c;
}

static void *compiled_dense(void) { return make_compiled(false); }
static void *compiled_sparse(void) { return make_compiled(true); }

const workload gcn_compiled_workloads[2] = {
    {"gcn_cora_compiled", "f32", compiled_dense, compiled_step, compiled_destroy, 1.9454365, 1e-6, compiled_seconds},
    {"gcn_cora_sparse_compiled", "f32", compiled_sparse, compiled_step, compiled_destroy, 1.9454365, 1e-6,
     compiled_seconds},
};
