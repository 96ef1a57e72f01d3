/* no_grad_check.c: a value that was computed from the inputs while no gradients were recorded: its
 * derivative is lost, and zeros would be wrong.
 *
 * A constant among outputs has zeros for derivatives, and detach and the like say so. But what an
 * operation with a derivative computed from an input is neither: cot_backward refuses it, and so
 * does everything that gives a matrix of numbers. */
#include "diff/engine/sweep.h"

#include <string.h>

/* Does operand k of the node have a derivative there, had it been recorded with one? */
static bool would_move(const cot__node *n, int k) {
    if (n->op < OP_elementwise_count) return cot__elementwise_table[n->op].partial[k] != NULL;
    const cot__op *op = cot__op_of(n->op);
    return op->kind != KIND_NONE && op->kind != KIND_SOURCE && !(k < 32 && op->inactive >> k & 1);
}

static bool reaches(cot_tape *t, uint8_t *met, uint32_t lo, uint32_t y) {
    for (uint32_t i = lo; i <= y; i++) {
        const cot__node *n = &t->nodes[i];
        if (met[i - lo] || !cot__dtype_is_float(cot__dtype_at(n))) continue;
        for (int k = 0, args = cot__nargs(n); k < args && !met[i - lo]; k++) {
            uint32_t a  = cot__arg(n, k);
            met[i - lo] = a != COT__NONE && a >= lo && met[a - lo] && would_move(n, k);
        }
    }
    return met[y - lo];
}

bool cot__no_grad_check(cot_tape *t, const char *op, int m, const uint32_t *ys, int n, const uint32_t *xs) {
    uint32_t lo = UINT32_MAX;
    char     text[160];
    for (int k = 0; k < n; k++) lo = xs[k] < lo ? xs[k] : lo;
    for (int k = 0; k < m && t->status == COT_OK; k++) {
        if (ys[k] <= lo || t->nodes[ys[k]].flags & COT__ACTIVE) continue;
        size_t   bytes = (size_t)ys[k] - lo + 1;
        uint8_t *met   = cot__alloc(&t->al, bytes);
        if (!met) {
            cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes to mark what depends on the inputs", op, bytes);
            return false;
        }
        memset(met, 0, bytes);
        for (int j = 0; j < n; j++)
            if (xs[j] <= ys[k]) met[xs[j] - lo] = 1;
        if (reaches(t, met, lo, ys[k]))
            cot__fail(t, COT_GRAD,
                      "[%s] ys[%d], %s, was computed from the xs without recording gradients (in a no-grad scope); its "
                      "derivative "
                      "is lost, "
                      "record it outside",
                      op, k, cot__describe(t, ys[k], text, sizeof text));
        cot__free(&t->al, met, bytes);
    }
    return t->status == COT_OK;
}
