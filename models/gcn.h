/* gcn.h: the two-layer graph convolutional network of Kipf and Welling (2017),
 *
 *     logits = Â dropout(relu(Â dropout(X) W1)) W2        Â = D^-½ (A + I) D^-½
 *
 * where A has the edges, D the degrees with loops, and X a row of words for each node, which sums
 * to 1.
 *
 * The folder holds models that examples and the command train.
 * May call: the public library. Must not touch: anything else. */
#ifndef MODELS_GCN_H
#define MODELS_GCN_H

#include <cotangent.h>

#include "graph.h"

typedef struct gcn {
    const graph *g;
    int64_t      hidden;
    double       dropout, decay; /* the loss has decay/2 · |W1|² */
    cot_csr      adjacency, features;
} gcn;

/* The matrices, constants on t. Then cot_params_set_user(p, model) and cot_params_init(p, gcn_net,
 * model->features.values, key). */
cot_status gcn_open(gcn *model, cot_tape *t);
/* The entries of X -> relu(Â X W1) (nodes, hidden), and -> logits (nodes, classes). */
cot_var gcn_hidden(cot_params *p, cot_var x);
cot_var gcn_net(cot_params *p, cot_var x);
/* The mean cross-entropy over these nodes, and the decay. */
cot_var gcn_loss(cot_params *p, cot_var logits, const graph_nodes *nodes);
/* How many of these nodes have their label as the largest logit. */
int64_t gcn_right(cot_var logits, const graph *g, const graph_nodes *nodes);

#endif
