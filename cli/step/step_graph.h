/* step_graph.h: the graph beside the tape: a dot in each row, and for each node that is used a rail
 * from its row down to the row of its last use.
 *
 *     x1   ●─╮
 *     x2   ●─│─╮
 *     v₁   ●─┼─┴─╮    v₁ reads x1, which is used again, and x2
 *     v₂   ●─┴─╮ │
 *     f    ●───┴─╯ */
#ifndef COT_CLI_STEP_GRAPH_H
#define COT_CLI_STEP_GRAPH_H

#include "io/failure.h"
#include "step/step_text.h"
#include "trace/trace.h"

enum { GRAPH_RAILS = 16 }; /* at most; further ones are not drawn */

typedef struct step_graph {
    int64_t *last;                   /* the last node that uses node i, or i */
    int8_t  *rail;                   /* of node i; -1: none */
    int64_t *order;                  /* nodes by rail, those of rail r from first[r] on */
    int64_t  first[GRAPH_RAILS + 1];
    int      rails;                  /* in use */
} step_graph;

bool graph_open(step_graph *g, const cot__trace *tr, failure *f);
void graph_close(step_graph *g);
/* Columns that a row takes. */
int  graph_width(const step_graph *g);
/* The row of a node. The edges of node `current` (-1: none) are drawn in this ink; back: they carry
 * something to its operands, else from them. */
void graph_row(const step_graph *g, const cot__trace *tr, int64_t row, int64_t current, step_ink ink, bool back,
               step_line *l);

#endif
