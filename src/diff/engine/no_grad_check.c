/* no_grad_check.c: a value that was computed from the inputs while no gradients were recorded: its
 * derivative is lost, and zeros would be wrong.
 *
 * A constant among outputs has zeros for derivatives, and detach and the like say so. But what an
 * operation with a derivative computed from an input is neither: cot_backward refuses it, and so
 * does everything that gives a matrix of numbers. */
#include "diff/engine/sweep.h"

/* The end of the range in which to look: behind the last of the ys that may have lost its
 * derivative; 0: none may. */
static uint32_t doubtful_end(const cot_tape *t, int m, const uint32_t *ys, uint32_t lo) {
    uint32_t end = 0;
    for (int k = 0; k < m; k++)
        if (ys[k] > lo && ys[k] >= end && !(t->nodes[ys[k]].flags & COT__ACTIVE)) end = ys[k] + 1;
    return end;
}

bool cot__no_grad_check(cot_tape *t, const char *op, int m, const uint32_t *ys, int n, const uint32_t *xs) {
    uint32_t  lo = cot__lowest(n, xs, UINT32_MAX), end = doubtful_end(t, m, ys, lo);
    char      text[160];
    cot__flow w;
    if (!end) return t->status == COT_OK;
    if (!cot__flow_open(&w, t, lo, end)) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes to mark what depends on the inputs", op,
                  cot__flow_bytes(&w));
        return false;
    }
    cot__flow_start(&w, n, xs, 1);
    cot__flow_up(&w, 1, COT__EDGES_DIFFERENTIABLE);
    for (int k = 0; k < m && t->status == COT_OK; k++)
        if (!(t->nodes[ys[k]].flags & COT__ACTIVE) && ys[k] > lo && cot__flow_mark(&w, ys[k]))
            cot__fail(t, COT_GRAD,
                      "[%s] ys[%d], %s, was computed from the xs without recording gradients (in a no-grad scope); its "
                      "derivative is lost, record it outside",
                      op, k, cot__describe(t, ys[k], text, sizeof text));
    cot__flow_close(&w);
    return t->status == COT_OK;
}
