/* second_order_inputs.c: can the inputs of second derivatives be moved one without the other?
 *
 * An input that is itself computed moves by its own tangent on top of what moves it. But where it
 * was computed by an operation whose rule reads its result (exp, tanh), the recorded gradient by
 * what lies before it reads the moved value: a second derivative by both would be another one. */
#include "diff/second/second.h"
#include "ops/elementwise/elementwise.h"

#include <string.h>

static bool reads_result(const cot__node *n) {
    if (n->op >= OP_elementwise_count) return cot__op_of(n->op)->saves & COT__SAVES_Z;
    const cot__elementwise_info *e = &cot__elementwise_table[n->op];
    for (int k = 0; k < e->arity; k++)
        if (e->saves[k] & COT__SAVES_Z) return true;
    return false;
}

bool cot__check_second_order_inputs(cot_tape *t, const char *op, int n, const cot_var *xs) {
    uint32_t lo = UINT32_MAX, hi = 0;
    bool     computed = false;
    for (int k = 0; k < n; k++) {
        uint32_t i = cot__index(xs[k]);
        lo = i < lo ? i : lo, hi = i > hi ? i : hi;
        computed |= t->nodes[i].op != OP_leaf && reads_result(&t->nodes[i]);
    }
    if (!computed) return true;
    enum { MOVES = 1, INPUT = 2 };
    size_t   count = (size_t)hi - lo + 1;
    uint8_t *mark = cot__alloc(&t->al, count);
    if (!mark) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %d inputs", op, n);
        return false;
    }
    memset(mark, 0, count);
    for (int k = 0; k < n; k++) mark[cot__index(xs[k]) - lo] = INPUT;
    bool ok = true;
    for (uint32_t i = lo; i <= hi && ok; i++) {
        const cot__node *node = &t->nodes[i];
        bool             moves = false;
        if (!(node->flags & COT__ACTIVE)) continue;
        for (int k = 0, args = cot__nargs(node); k < args && !moves; k++) {
            uint32_t a = cot__arg(node, k);
            moves = a != COT__NONE && a >= lo && mark[a - lo];
        }
        ok = !(moves && mark[i - lo] == INPUT && reads_result(node));
        if (!ok)
            cot__fail(t, COT_VALUE,
                      "[%s] one of the xs, %%%u, is computed from another by %s, whose derivative reads its result, so "
                      "the two cannot be "
                      "moved apart; compute from a copy of it (cot_copy), and give that",
                      op, i, cot__op_name(t, i));
        if (moves) mark[i - lo] |= MOVES;
    }
    cot__free(&t->al, mark, count);
    return ok;
}
