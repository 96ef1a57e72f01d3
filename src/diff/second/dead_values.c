/* dead_values.c: values of a recorded gradient that are not needed where only its derivative is
 * asked for.
 *
 * A Hessian's products are tangents of the gradient. The tangent of a product reads its factors,
 * the tangent of a sum reads nothing. So nothing reads about half of the values that recording the
 * gradient would compute, the gradient itself among them. They wait, and are dropped before they
 * are computed. */
#include "diff/second/second.h"

/* Here marks do not spread from node to node: each node marks the values that its own derivative
 * reads. The flow only provides the range of nodes and their marks. */
static void mark(cot__flow *w, uint32_t i) { cot__flow_start(w, 1, &i, 1); }

static bool is_active(const cot_tape *t, uint32_t i) { return i != COT__NONE && t->nodes[i].flags & COT__ACTIVE; }

/* Marks the values that the partials by moving operands read. */
static void mark_elementwise(cot__flow *w, uint32_t i) {
    const cot__node             *n = &w->t->nodes[i];
    const cot__elementwise_info *e = &cot__elementwise_table[n->op];
    for (int k = 0; k < e->arity; k++) {
        if (!e->partial[k] || !is_active(w->t, cot__arg(n, k))) continue;
        for (int j = 0; j < e->arity; j++)
            if (cot__saves_operand(e->saves[k], j)) mark(w, cot__arg(n, j));
        if (e->saves[k] & COT__SAVES_Z) mark(w, i);
    }
}

/* The tangent of a linear operation reads operands that do not move. An operation of another kind
 * counts as reading all its operands and its result. */
static void mark_structural(cot__flow *w, uint32_t i) {
    const cot__node *n = &w->t->nodes[i];
    const cot__op   *op = cot__op_of(n->op);
    bool             linear = op->kind == KIND_LINEAR;
    if (!linear) mark(w, i);
    for (int k = 0, count = cot__nargs(n); k < count; k++)
        if (!linear || (k < 32 && op->inactive >> k & 1)) mark(w, cot__arg(n, k));
}

void cot__drop_dead_values(cot_tape *t, uint32_t since, uint32_t from) {
    cot__flow w = {.t = t};
    /* On smooth tapes kinks are looked for in all values. If memory is short, all are computed. */
    bool      worth = !t->options.smooth && t->status == COT_OK && cot__pending_any(t);
    if (worth && cot__flow_open(&w, t, from, t->count))
        for (uint32_t i = from; i < t->count; i++) {
            const cot__node *n = &t->nodes[i];
            if (!(n->flags & COT__ACTIVE) || n->op == OP_leaf) continue;
            (n->op < OP_structural ? mark_elementwise : mark_structural)(&w, i);
        }
    if (w.mark) cot__pending_unread(t, since, from, w.mark);
    cot__flow_close(&w);
}
