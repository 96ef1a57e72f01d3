/* graph_read.c: a graph from a folder of .npy files, believed in nothing. */
#include "graph.h"

#include <cotangent.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct reader {
    const char *folder;
    char       *why;
    size_t      room;
} reader;

/* All integers of a file, n of them, where their shape has this many axes; NULL after a failure. */
static int64_t *read_integers(const reader *r, const char *name, int axes, int64_t *n) {
    char     path[4096];
    int64_t *list = NULL;
    snprintf(path, sizeof path, "%s/%s", r->folder, name);
    cot_file *f = cot_file_open(path, NULL);
    *n = cot_file_size(f, 0);
    if (!f || cot_file_status(f) != COT_OK) {
        snprintf(r->why, r->room, "%s", f ? cot_file_message(f) : "out of memory");
    } else if (cot_file_shape(f, 0).ndim != axes || (axes == 2 && cot_file_shape(f, 0).dim[1] != 2)) {
        snprintf(r->why, r->room, "%s has %d axes; it must hold %s", path, cot_file_shape(f, 0).ndim,
                 axes == 2 ? "pairs, of shape (edges, 2)" : "a list, of one axis");
    } else if (!(list = malloc((size_t)(*n + 1) * sizeof *list))) {
        snprintf(r->why, r->room, "out of memory for %lld numbers of %s", (long long)*n, path);
    } else if (cot_file_read(f, 0, COT_I64, list) != COT_OK) {
        snprintf(r->why, r->room, "%s", cot_file_message(f));
        free(list);
        list = NULL;
    }
    cot_file_close(f);
    return list;
}

/* Are all between 0 and the end, which is not? */
static int in_range(const reader *r, const char *name, int64_t n, const int64_t *list, int64_t end, const char *what) {
    for (int64_t k = 0; k < n; k++)
        if (list[k] < 0 || list[k] >= end) {
            snprintf(r->why, r->room, "%s/%s: number %lld is %lld; %s are 0 … %lld", r->folder, name, (long long)k,
                     (long long)list[k], what, (long long)end - 1);
            return 0;
        }
    return 1;
}

static int64_t largest(int64_t n, const int64_t *list) {
    int64_t most = -1;
    for (int64_t k = 0; k < n; k++) most = list[k] > most ? list[k] : most;
    return most;
}

static int read_words(graph *g, const reader *r) {
    int64_t n, starts;
    if (!(g->word_start = read_integers(r, "features_indptr.npy", 1, &starts))) return 0;
    if (!(g->word = read_integers(r, "features_indices.npy", 1, &n))) return 0;
    bool rises = starts == g->nodes + 1 && g->word_start[0] == 0 && g->word_start[g->nodes] == n;
    for (int64_t i = 0; rises && i < g->nodes; i++) rises = g->word_start[i] <= g->word_start[i + 1];
    if (!rises) {
        snprintf(r->why, r->room,
                 "%s/features_indptr.npy: for %lld labels and %lld indices it must hold %lld numbers that rise from 0 "
                 "to %lld",
                 r->folder, (long long)g->nodes, (long long)n, (long long)g->nodes + 1, (long long)n);
        return 0;
    }
    if (!in_range(r, "features_indices.npy", n, g->word, INT32_MAX, "words")) return 0;
    g->words = largest(n, g->word) + 1;
    /* a graph without any word is one with a single word that nobody has */
    if (g->words == 0) g->words = 1;
    return 1;
}

static int read_edges(graph *g, const reader *r) {
    int64_t  n;
    int64_t *pairs = read_integers(r, "edges.npy", 2, &n);
    int      fine = pairs && in_range(r, "edges.npy", n, pairs, g->nodes, "nodes");
    g->edges = n / 2;
    g->from = malloc((size_t)(g->edges + 1) * sizeof *g->from);
    g->to = malloc((size_t)(g->edges + 1) * sizeof *g->to);
    if (fine && (!g->from || !g->to)) {
        snprintf(r->why, r->room, "out of memory for %lld edges", (long long)g->edges);
        fine = 0;
    }
    for (int64_t e = 0; fine && e < g->edges; e++) {
        g->from[e] = pairs[2 * e];
        g->to[e] = pairs[2 * e + 1];
    }
    free(pairs);
    return fine;
}

static int read_nodes(graph *g, const reader *r, const char *name, graph_nodes *to) {
    to->node = read_integers(r, name, 1, &to->n);
    return to->node && in_range(r, name, to->n, to->node, g->nodes, "nodes");
}

int graph_read(graph *g, const char *folder, char *why, size_t room) {
    const reader r = {folder, why, room};
    *g = (graph){0};
    if (!(g->label = read_integers(&r, "labels.npy", 1, &g->nodes))) return 1;
    if (!in_range(&r, "labels.npy", g->nodes, g->label, 1000000, "labels")) return 1;
    g->classes = largest(g->nodes, g->label) + 1;
    if (g->classes < 2) {
        snprintf(why, room, "%s/labels.npy has %lld classes; there must be two at least", folder,
                 (long long)g->classes);
        return 1;
    }
    if (!read_words(g, &r) || !read_edges(g, &r) || !read_nodes(g, &r, "train.npy", &g->train) ||
        !read_nodes(g, &r, "val.npy", &g->val) || !read_nodes(g, &r, "test.npy", &g->test))
        return 1;
    if (g->train.n > 0) return 0;
    snprintf(why, room, "%s/train.npy is empty; it must name the nodes to train on", folder);
    return 1;
}
