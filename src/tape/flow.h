/* flow.h: one dataflow pass over the nodes of a tape, for every question of the form "what were
 * these computed from?" (down) or "what depends on these?" (up).
 *
 * A flow has a range of nodes and a byte of marks for each. The caller marks the nodes it starts
 * from; the flow spreads a bit of those marks along the edges between operands and users. Number
 * immediates are no edges, and an operand before the range carries no mark unless the caller says
 * so. Nothing recurses: operands have smaller indices than their users, so one pass meets all.
 *
 * A visitor sees each node that the flow comes to, and may stop it or keep the bit from going on.
 * The flow sets no error: where memory is short, the caller knows what it was for. */
#ifndef COT_FLOW_H
#define COT_FLOW_H

#include "tape/tape.h"

/* Which operands of a node count. */
typedef enum cot__edges {
    COT__EDGES_ALL,     /* every operand of every node */
    /* those of active nodes; but a value that copy_into overwrote as a whole counts for nothing */
    COT__EDGES_VALUES,
    COT__EDGES_MOVING,  /* those of active nodes that have a derivative: no positions, no labels */
    COT__EDGES_SWEPT,   /* of these the active ones: where adjoints and tangents flow */
    /* those of float nodes that have a derivative, whether or not gradients were recorded */
    COT__EDGES_DIFFERENTIABLE
} cot__edges;

typedef enum cot__onward {
    COT__FLOW_ON,
    COT__FLOW_PAST, /* down: the node's operands are not marked; up: the node is not */
    COT__FLOW_STOP
} cot__onward;

typedef struct cot__flow {
    const cot_tape *t;
    uint32_t        from, end; /* nodes from … end - 1 */
    uint8_t        *mark;      /* mark[node - from] */
    bool            outside;   /* up: operands before the range count as marked */
    /* down, with bit 1: also sets bit 1 + k of a node where operand k, one of the first
     * COT__LAST_USES, was not marked before: no later node uses it */
    bool            last_uses;
    /* Called for each marked node (down), or for each node with a marked operand, whether or not it
     * is marked itself (up). NULL: none. */
    cot__onward (*visit)(struct cot__flow *w, uint32_t i);
    void           *ctx;       /* for the visitor */
} cot__flow;

enum { COT__LAST_USES = 7 };

/* Marks of the tape's allocator for nodes from … end - 1, all zero. False when memory is short;
 * no error is set. */
bool cot__flow_open(cot__flow *w, const cot_tape *t, uint32_t from, uint32_t end);
void cot__flow_close(cot__flow *w);
static inline size_t cot__flow_bytes(const cot__flow *w) { return w->end - w->from; }

/* The mark of a node; 0 for a number and for a node outside the range. */
static inline uint8_t cot__flow_mark(const cot__flow *w, uint32_t node) {
    return node - w->from < w->end - w->from ? w->mark[node - w->from] : 0;
}
/* Adds bits to the marks of those of the nodes that lie in the range. */
static inline void cot__flow_start(cot__flow *w, int n, const uint32_t *nodes, uint8_t bits) {
    for (int k = 0; k < n; k++)
        if (nodes[k] - w->from < w->end - w->from) w->mark[nodes[k] - w->from] |= bits;
}
/* The lowest of n nodes, `most` where that is lower: the usual beginning of a range. */
static inline uint32_t cot__lowest(int n, const uint32_t *nodes, uint32_t most) {
    for (int k = 0; k < n; k++) most = nodes[k] < most ? nodes[k] : most;
    return most;
}

/* From the last node to the first: operands of marked nodes get the bit. False: the visitor
 * stopped. */
bool cot__flow_down(cot__flow *w, uint8_t bit, cot__edges edges);
/* From the first node to the last: a node with a marked operand gets the bit. False: the visitor
 * stopped. */
bool cot__flow_up(cot__flow *w, uint8_t bit, cot__edges edges);
/* Does node i have a marked operand along these edges? */
bool cot__flow_meets(const cot__flow *w, uint32_t i, uint8_t bit, cot__edges edges);

/* Which of the nodes from … top the ys were computed from: a byte each, of the tape's allocator;
 * NULL when memory is short. Bit 0: it is needed; bit 1 + k: operand k, one of the first
 * COT__LAST_USES, is needed by no later node and is none of the ys. COT__EDGES_MOVING says through
 * which nodes the ys can move. */
uint8_t *cot__needed(const cot_tape *t, uint32_t from, uint32_t top, int n, const uint32_t *ys, cot__edges edges);

#endif
