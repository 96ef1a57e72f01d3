/* gcn.c: a graph network of two layers on a random graph with the counts of Cora: forward,
 * backward, a step of Adam. Words are a dense matrix, or compressed rows like the graph. */
#include "workloads/workloads.h"

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

static cot_var net(cot_params *p, cot_var x) {
    const gcn *m = cot_params_user(p);
    cot_var    w1 = cot_nn_parameter(p, "w1", COT_SHAPE(WORDS, HIDDEN), x, (cot_init){0});
    cot_var    w2 = cot_nn_parameter(p, "w2", COT_SHAPE(HIDDEN, CLASSES), x, (cot_init){0});
    cot_var    h = cot_relu(cot_csr_matmul(m->graph, m->sparse ? cot_csr_matmul(m->words, w1) : cot_matmul(x, w1)));
    return cot_csr_matmul(m->graph, cot_matmul(h, w2));
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

static void *make(bool sparse) {
    gcn    *m = must(calloc(1, sizeof *m));
    float  *x = uniform_f32(3, (int64_t)NODES * WORDS, 1);
    int64_t label[LABELLED];
    m->t = must(cot_tape_create(NULL));
    m->p = must(cot_params_create(m->t));
    m->sparse = sparse;
    for (int64_t k = 0; k < (int64_t)NODES * WORDS; k++) x[k] = x[k] > 0.975f;
    for (int k = 0; k < LABELLED; k++) label[k] = k % CLASSES;
    m->x = cot_data(m->t, COT_F32, COT_SHAPE(NODES, WORDS), x);
    m->labels = cot_data(m->t, COT_I64, COT_SHAPE(LABELLED), label);
    free(x);
    if (sparse) {
        m->words = cot_csr_from_dense(m->x);
        m->x = m->words.values;
    }
    make_graph(m);
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
    cot_var loss = cot_softmax_cross_entropy(cot_slice(net(m->p, m->x), 0, 0, LABELLED, 1), m->labels);
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

const workload gcn_workloads[2] = {
    {"gcn_cora", "f32", make_dense, gcn_step, gcn_destroy, 1.9454365, 1e-6, NULL},
    {"gcn_cora_sparse", "f32", make_sparse, gcn_step, gcn_destroy, 1.9454365, 1e-6, NULL},
};
