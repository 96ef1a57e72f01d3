/* reapply.c: the operation of a node again, on other operands: how bodies are replayed. */
#include "ops/structural.h"
#include "tape/region.h"

cot_var cot__reapply(cot_tape *t, uint32_t node, const cot_var *xs) {
    const cot__node *n = &t->nodes[node];
    cot__rule        r = {.t = t, .node = node, .op = cot__op_of(n->op)};
    if (n->op < OP_elementwise_count) return cot__elementwise(n->op, cot__elementwise_arity(n->op), xs);
    if (r.op->kind == KIND_SOURCE) return VAR(t, node);
    if (r.op->apply) return r.op->apply(&r, xs);
    return cot__fail(t, COT_GRAD, "[%s] cannot be replayed in a body", r.op->name);
}
