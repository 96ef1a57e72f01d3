/* flow.c: the two loops of flow.h.
 *
 * Gradients of small scalar functions walk each time they are asked for, so the loops are compiled
 * once for each kind of edge, and read operands without calls. */
#include "tape/flow.h"

#define IN_LOOP static inline __attribute__((always_inline))

/* Marks are memory of the tape, and nothing that is recorded. */
static cot_tape *writable(const cot_tape *t) { return (cot_tape *)(uintptr_t)t; }

bool cot__flow_open(cot__flow *w, const cot_tape *t, uint32_t from, uint32_t end) {
    *w = (cot__flow){.t = t, .from = from, .end = end};
    w->mark = cot__list_zeros(writable(t), cot__flow_bytes(w));
    return w->mark != NULL;
}

void cot__flow_close(cot__flow *w) {
    cot__list_free(writable(w->t), w->mark, cot__flow_bytes(w));
    w->mark = NULL;
}

/* ---- edges ----------------------------------------------------------------------------------- */

/* The operands of a node that count. */
typedef struct operands {
    const uint32_t *at; /* `few`, or the list of an n-ary node */
    int             count;
    uint32_t        blind; /* mask of those that do not count */
    uint32_t        few[3];
} operands;

IN_LOOP bool has_edges(const cot__node *n, const cot__op *op, cot__edges edges) {
    if (edges == COT__EDGES_ALL) return true;
    if (edges != COT__EDGES_DIFFERENTIABLE) return (n->flags & COT__ACTIVE) != 0;
    return op->kind != KIND_NONE && op->kind != KIND_SOURCE && cot__dtype_is_float(cot__dtype_at(n));
}

IN_LOOP uint32_t blind_operands(const cot__op *op, cot__edges edges) {
    if (edges == COT__EDGES_ALL) return 0;
    if (edges != COT__EDGES_VALUES) return op->inactive;
    return op->same ? ~(1u << (op->same - 1)) : 0; /* it has the elements of one operand alone */
}

IN_LOOP void operands_of(operands *o, const cot__node *n, cot__edges edges) {
    const cot__op *op = cot__op_of(n->op);
    o->count = 0;
    if (op->kind == KIND_SOURCE || !has_edges(n, op, edges)) return;
    o->blind = blind_operands(op, edges);
    if (n->flags & COT__NARY) {
        o->at = n->extra.attr->args;
        o->count = (int)n->extra.attr->nargs;
        return;
    }
    o->few[0] = n->a, o->few[1] = n->b, o->few[2] = n->extra.c;
    o->at = o->few;
    o->count = n->op < OP_structural ? cot__elementwise_arity(n->op) : n->b != COT__NONE ? 2 : 1;
}

/* Is operand k, node a, of the range, along an edge? (Neither a number nor a node before the range
 * is: both are far above once `from` is taken off.) */
IN_LOOP bool is_edge(const cot__flow *w, const operands *o, int k, uint32_t a, cot__edges edges) {
    if (a - w->from >= w->end - w->from || (k < 32 && o->blind >> k & 1)) return false;
    return edges != COT__EDGES_SWEPT || (w->t->nodes[a].flags & COT__ACTIVE);
}

IN_LOOP bool is_outside(const cot__flow *w, const operands *o, int k, uint32_t a) {
    return w->outside && a < w->from && !(k < 32 && o->blind >> k & 1);
}

/* ---- the walks ------------------------------------------------------------------------------- */

IN_LOOP bool meets(const cot__flow *w, uint32_t i, uint8_t bit, cot__edges edges) {
    operands o;
    operands_of(&o, &w->t->nodes[i], edges);
    for (int k = 0; k < o.count; k++) {
        uint32_t a = o.at[k];
        if (is_edge(w, &o, k, a, edges) ? w->mark[a - w->from] & bit : is_outside(w, &o, k, a)) return true;
    }
    return false;
}

/* Over the nodes from … end - 1 of the range. */
IN_LOOP bool up(cot__flow *w, uint32_t from, uint32_t end, uint8_t bit, cot__edges edges) {
    for (uint32_t i = from; i < end; i++) {
        if ((w->mark[i - w->from] & bit && !w->visit) || !meets(w, i, bit, edges)) continue;
        cot__onward onward = w->visit ? w->visit(w, i) : COT__FLOW_ON;
        if (onward == COT__FLOW_STOP) return false;
        if (onward == COT__FLOW_ON) w->mark[i - w->from] |= bit;
    }
    return true;
}

IN_LOOP void mark_operands(cot__flow *w, uint32_t i, uint8_t bit, cot__edges edges) {
    operands o;
    operands_of(&o, &w->t->nodes[i], edges);
    for (int k = 0; k < o.count; k++) {
        uint32_t a = o.at[k];
        if (!is_edge(w, &o, k, a, edges) || w->mark[a - w->from] & bit) continue;
        w->mark[a - w->from] |= bit;
        if (w->last_uses && k < COT__LAST_USES) w->mark[i - w->from] |= (uint8_t)(2u << k);
    }
}

IN_LOOP bool down(cot__flow *w, uint32_t from, uint32_t end, uint8_t bit, cot__edges edges) {
    for (uint32_t i = end; i-- > from;) {
        if (!(w->mark[i - w->from] & bit)) continue;
        cot__onward onward = w->visit ? w->visit(w, i) : COT__FLOW_ON;
        if (onward == COT__FLOW_STOP) return false;
        if (onward == COT__FLOW_ON) mark_operands(w, i, bit, edges);
    }
    return true;
}

/* Calls one of them with edges that the compiler knows. */
#define WITH_EDGES(call, ...)                                                                                          \
    switch (edges) {                                                                                                   \
    case COT__EDGES_ALL: return call(__VA_ARGS__, COT__EDGES_ALL);                                                     \
    case COT__EDGES_VALUES: return call(__VA_ARGS__, COT__EDGES_VALUES);                                               \
    case COT__EDGES_MOVING: return call(__VA_ARGS__, COT__EDGES_MOVING);                                               \
    case COT__EDGES_SWEPT: return call(__VA_ARGS__, COT__EDGES_SWEPT);                                                 \
    default: return call(__VA_ARGS__, COT__EDGES_DIFFERENTIABLE);                                                      \
    }

static bool up_between(cot__flow *w, uint32_t from, uint32_t end, uint8_t bit, cot__edges edges) {
    WITH_EDGES(up, w, from, end, bit)
}
static bool down_between(cot__flow *w, uint32_t from, uint32_t end, uint8_t bit, cot__edges edges) {
    WITH_EDGES(down, w, from, end, bit)
}

/* A window at a time, where the tape lies in a file. */
bool cot__flow_up(cot__flow *w, uint8_t bit, cot__edges edges) {
    int64_t window = cot__window(w->t), end = w->end;
    for (int64_t i = w->from; i < end; i += window) {
        if (!up_between(w, (uint32_t)i, (uint32_t)(i + window < end ? i + window : end), bit, edges)) return false;
        cot__lists_leave(writable(w->t));
    }
    return true;
}
bool cot__flow_down(cot__flow *w, uint8_t bit, cot__edges edges) {
    int64_t window = cot__window(w->t), from = w->from;
    for (int64_t i = w->end; i > from; i -= window) {
        if (!down_between(w, (uint32_t)(i - window > from ? i - window : from), (uint32_t)i, bit, edges)) return false;
        cot__lists_leave(writable(w->t));
    }
    return true;
}
bool cot__flow_meets(const cot__flow *w, uint32_t i, uint8_t bit, cot__edges edges) { return meets(w, i, bit, edges); }

uint8_t *cot__needed(const cot_tape *t, uint32_t from, uint32_t top, int n, const uint32_t *ys, cot__edges edges) {
    cot__flow w;
    if (!cot__flow_open(&w, t, from, top + 1)) return NULL;
    w.last_uses = true;
    cot__flow_start(&w, n, ys, 1);
    cot__flow_down(&w, 1, edges);
    return w.mark;
}
