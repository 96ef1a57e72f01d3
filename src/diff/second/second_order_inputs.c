/* second_order_inputs.c: finds whether each input of a second derivative can be moved alone.
 *
 * An input may itself be computed from another input. It then moves by its own tangent on top of
 * the tangent of its operands. But if the rule of its operation reads its result (exp, tanh), the
 * recorded gradient by the other input would read the moved value, and a second derivative by both
 * would be wrong. */
#include "diff/second/second.h"
#include "ops/elementwise/elementwise.h"
#include "tape/show.h"

static bool reads_result(const cot_tape *t, uint32_t i) {
    const cot__node *n = &t->nodes[cot__operation_at(t, i)];
    if (n->op >= OP_structural) return cot__op_of(n->op)->saves & COT__SAVES_Z;
    const cot__elementwise_info *e = &cot__elementwise_table[n->op];
    for (int k = 0; k < e->arity; k++)
        if (e->saves[k] & COT__SAVES_Z) return true;
    return false;
}

enum { MOVES = 1, INPUT = 2 };

/* Stops the flow at an input that another input moves, if the rule of its operation reads its
 * result. */
static cot__onward refuse_tied(cot__flow *w, uint32_t i) {
    const cot__node *n = &w->t->nodes[i];
    uint32_t        *tied = w->ctx;
    if (!(n->flags & COT__ACTIVE)) return COT__FLOW_PAST;
    if (!(cot__flow_mark(w, i) & INPUT) || !reads_result(w->t, i)) return COT__FLOW_ON;
    *tied = i;
    return COT__FLOW_STOP;
}

bool cot__check_second_order_inputs(cot_tape *t, const char *op, int n, const cot_var *xs) {
    uint32_t  lo = UINT32_MAX, hi = 0, tied = COT__NONE;
    bool      computed = false;
    cot__flow w;
    for (int k = 0; k < n; k++) {
        uint32_t i = cot__index(xs[k]);
        lo = i < lo ? i : lo, hi = i > hi ? i : hi;
        computed |= t->nodes[i].op != OP_leaf && reads_result(t, i);
    }
    if (!computed) return true;
    if (!cot__flow_open(&w, t, lo, hi + 1)) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %d inputs", op, n);
        return false;
    }
    w.visit = refuse_tied, w.ctx = &tied;
    for (int k = 0; k < n; k++) w.mark[cot__index(xs[k]) - lo] = MOVES | INPUT;
    bool ok = cot__flow_up(&w, MOVES, COT__EDGES_ALL);
    char called[COT__CALLED_TEXT];
    if (!ok)
        cot__fail(t, COT_VALUE,
                  "[%s] one of the xs, %s, is computed from another by %s, whose derivative reads its result, so "
                  "the two cannot be moved apart; compute from a copy of it (cot_copy), and give that",
                  op, cot__called(t, tied, called), cot__op_name(t, cot__operation_at(t, tied)));
    cot__flow_close(&w);
    return ok;
}
