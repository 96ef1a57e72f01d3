/* gcn.c: the network, its loss, and how many it gets right. */
#include "gcn.h"

cot_status gcn_open(gcn *m, cot_tape *t) {
    const graph *g = m->g;
    int64_t      n = g->word_start[g->nodes];
    /* each row of X sums to 1: an entry is one over the row's number of words */
    cot_var ones = cot_full(t, COT_F32, COT_SHAPE(n), 1);
    cot_array starts = {COT_I64, COT_SHAPE(g->nodes + 1), g->nodes + 1, g->word_start};
    cot_array words = {COT_I64, COT_SHAPE(n), n, g->word};
    m->features = cot_csr_from_arrays(t, g->nodes, g->words, &starts, &words, ones);
    cot_var sums = cot_csr_sum_rows(m->features);
    m->features.values =
        cot_detach(cot_div(m->features.values, cot_take(sums, cot_csr_entry_rows(m->features), 0)));
    m->adjacency = cot_csr_gcn(t, COT_F32, g->nodes, g->edges, g->from, g->to);
    return cot_tape_status(t);
}

cot_var gcn_hidden(cot_params *p, cot_var x) {
    const gcn *m = cot_params_user(p);
    cot_csr    words = m->features;
    words.values = cot_nn_dropout(p, "words", x, m->dropout);
    return cot_relu(cot_nn_gcn_csr(p, "gc1", m->adjacency, words, m->hidden, false));
}

cot_var gcn_net(cot_params *p, cot_var x) {
    const gcn *m = cot_params_user(p);
    cot_var    h = cot_nn_dropout(p, "hidden", gcn_hidden(p, x), m->dropout);
    return cot_nn_gcn(p, "gc2", m->adjacency, h, m->g->classes, false);
}

/* The rows of these nodes, or their labels. */
static cot_var of(cot_tape *t, const graph_nodes *nodes, cot_var x) {
    return cot_take(x, cot_data(t, COT_I64, COT_SHAPE(nodes->n), nodes->node), 0);
}

cot_var gcn_loss(cot_params *p, cot_var logits, const graph_nodes *nodes) {
    const gcn *m = cot_params_user(p);
    cot_tape  *t = cot_tape_of(logits);
    cot_var    labels = of(t, nodes, cot_data(t, COT_I64, COT_SHAPE(m->g->nodes), m->g->label));
    cot_var    entropy = cot_softmax_cross_entropy(of(t, nodes, logits), labels);
    cot_var    w1 = cot_params_get(p, "gc1.weight");
    return cot_add(entropy, cot_mul(m->decay / 2, cot_sum(cot_square(w1), COT_ALL)));
}

int64_t gcn_right(cot_var logits, const graph *g, const graph_nodes *nodes) {
    cot_tape *t = cot_tape_of(logits);
    cot_var   labels = of(t, nodes, cot_data(t, COT_I64, COT_SHAPE(g->nodes), g->label));
    cot_var   guess = cot_argmax(of(t, nodes, logits), COT_AXES(1));
    return cot_value_i64(cot_sum(cot_cast(cot_equal(guess, labels), COT_I64), COT_ALL));
}
