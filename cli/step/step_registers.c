/* step_registers.c: the additions of a sweep, sorted by the node they go to. */
#include "step/step_registers.h"

#include <stdlib.h>

static int64_t additions(const cot__trace *tr) {
    int64_t n = 0;
    for (int64_t s = 0; s < tr->step_count; s++) n += tr->steps[s].add_count;
    return n;
}

bool registers_open(step_registers *r, const cot__trace *tr, failure *f) {
    int64_t n = additions(tr);
    r->first = calloc((size_t)tr->node_count + 2, sizeof *r->first);
    r->step = malloc(((size_t)n + 1) * sizeof *r->step);
    r->add = malloc(((size_t)n + 1) * sizeof *r->add);
    r->step_of = malloc(((size_t)tr->node_count + 1) * sizeof *r->step_of);
    if (!r->first || !r->step || !r->add || !r->step_of) return failure_memory(f);
    for (int64_t i = 0; i < tr->node_count; i++) r->step_of[i] = -1;
    /* Counts are stored two places further on, summed up, and then used as cursors. At the end
     * first[i] is where node i begins. */
    for (int64_t s = 0; s < tr->step_count; s++) {
        r->step_of[tr->steps[s].node] = s;
        for (int k = 0; k < tr->steps[s].add_count; k++) r->first[cot__trace_find(tr, tr->steps[s].adds[k].to) + 2]++;
    }
    for (int64_t i = 0; i < tr->node_count; i++) r->first[i + 2] += r->first[i + 1];
    for (int64_t s = 0; s < tr->step_count; s++)
        for (int k = 0; k < tr->steps[s].add_count; k++) {
            int64_t at = r->first[cot__trace_find(tr, tr->steps[s].adds[k].to) + 1]++;
            r->step[at] = s;
            r->add[at] = k;
        }
    return true;
}

void registers_close(step_registers *r) {
    free(r->first);
    free(r->step);
    free(r->add);
    free(r->step_of);
    *r = (step_registers){0};
}

bool registers_read(const step_registers *r, const cot__trace *tr, int64_t node, int64_t swept, cot__view *sum) {
    int64_t own = r->step_of[node], lo = r->first[node], hi = r->first[node + 1];
    if (own < 0 || swept < 0) return false;
    if (own == 0 || (own < swept && !tr->steps[own].skipped)) {
        /* The seed is there from the start, and a node whose step was done is complete. */
        *sum = tr->steps[own].adjoint;
        return true;
    }
    while (lo < hi) { /* finds the first addition that is still to come */
        int64_t mid = lo + (hi - lo) / 2;
        if (r->step[mid] < swept) lo = mid + 1;
        else hi = mid;
    }
    if (lo == r->first[node]) return false;
    *sum = tr->steps[r->step[lo - 1]].adds[r->add[lo - 1]].sum;
    return true;
}
