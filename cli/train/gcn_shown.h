/* gcn_shown.h: what a trained graph network is, for people: accuracy by class, curves, the nodes as
 * points, and what speaks for the class of one node. */
#ifndef COT_CLI_GCN_SHOWN_H
#define COT_CLI_GCN_SHOWN_H

#include "models/gcn.h"
#include "train/train.h"

enum { GCN_LOOKED_BACK = 10, GCN_EPOCHS = 1000 };

typedef struct gcn_task {
    const char *from; /* where the graph comes from */
    graph       g;
    gcn         net;
    /* of this run: how many validations there were, the last losses, the curves of both losses */
    int64_t     epochs;
    double      seen[GCN_LOOKED_BACK];
    double      curve[2][GCN_EPOCHS];
    cot_array   extra[2];
    char        width[24];
    int64_t    *guess; /* (nodes), after the test: classes */
} gcn_task;

/* The karate club, a generated graph, or that of a folder. Call graph_free in any case. */
bool gcn_read_graph(graph *g, const char *from, failure *f);

bool gcn_show(training *r, FILE *out, look how, failure *f);
bool gcn_show_json(training *r, cot__json *j, failure *f);

#endif
