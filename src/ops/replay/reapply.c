/* reapply.c: a recorded operation once more, on other operands: what transformations that replay a
 * part of a tape are made of. */
#include "ops/replay/replay.h"

/* A number in the node stood beside operands of its own kind: a whole one beside integers, where a
 * fraction would make f64 of them. */
static cot_var number_of(const cot_tape *t, const cot__node *n) {
    uint32_t other = n->a == COT__NONE ? n->b : n->a;
    bool     real = cot__dtype_is_float(cot__dtype_at(&t->nodes[other]));
    return real ? cot_number(n->extra.number) : cot_integer((int64_t)n->extra.number);
}

static cot_var reapply_elementwise(cot_tape *t, uint32_t node, const cot_var *xs) {
    const cot__node *n = &t->nodes[node];
    int              arity = cot__elementwise_arity(n->op);
    cot_var          all[3];
    for (int k = 0; k < arity; k++) all[k] = cot__arg(n, k) == COT__NONE ? number_of(t, n) : xs[k];
    return cot__call(n->op, all);
}

cot_var cot__reapply(cot_tape *t, uint32_t node, const cot_var *xs) {
    int op = t->nodes[node].op;
    if (op < OP_structural) return reapply_elementwise(t, node, xs);
    if (op == OP_pick) return cot__result_of(xs[0], (int)(node - t->nodes[node].a));
    cot__rule r = {.t = t, .node = node, .op = cot__op_of(op)};
    return r.op->kind == KIND_SOURCE ? VAR(t, node) : cot__apply(&r, xs);
}
