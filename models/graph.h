/* graph.h: a graph whose nodes have words and classes, as citations between papers make one: read
 * from a folder, generated, or Zachary's karate club. Plain arrays, no tape. */
#ifndef MODELS_GRAPH_H
#define MODELS_GRAPH_H

#include <stddef.h>
#include <stdint.h>

typedef struct graph_nodes {
    int64_t  n;
    int64_t *node;
} graph_nodes;

typedef struct graph {
    int64_t     nodes, words, classes, edges;
    int64_t    *from, *to;  /* (edges): undirected */
    int64_t    *word_start; /* (nodes + 1): the words of node i are word[word_start[i]] … */
    int64_t    *word;
    int64_t    *label;      /* (nodes) */
    graph_nodes train, val, test;
} graph;

/* Each returns 0, or sets a sentence and returns 1; call graph_free in both cases. */

/* 34 members, 78 friendships, two of them labelled; each member is its own word. */
int graph_karate(graph *g, char *why, size_t room);
/* 700 papers of 6 subjects, citing mostly their own, with 20 words each of 500. */
int graph_generate(graph *g, uint64_t seed, char *why, size_t room);
/* The folder has edges.npy (edges, 2), features_indptr.npy (nodes + 1), features_indices.npy,
 * labels.npy (nodes), train.npy, val.npy, test.npy. Words are the largest index + 1, classes the
 * largest label + 1; nodes without words or without edges are fine. Everything is checked. */
int graph_read(graph *g, const char *folder, char *why, size_t room);

void graph_free(graph *g);

#endif
