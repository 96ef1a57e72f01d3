/* runs.c: making runs of elementwise work, which a backend then does. */
#include "backend/backend.h"
#include "rules/elementwise_table.h"

#include <string.h>

const int64_t cot__no_axes_of_number[1];

/* A transcendental function costs about eight additions. */
static int cost_of(int op) { return cot__elementwise_table[op].class == REAL ? 8 : 1; }

void cot__block_run_of_value(cot__block_run *r, int op, cot_dtype compute, int n, const cot__view *xs,
                             const cot__view *z) {
    r->op = op;
    r->values = true;
    r->cost = cost_of(op);
    r->compute = compute;
    r->n = r->arity = n;
    r->outputs = 1;
    r->out[0] = (cot__output){.k = -1, .to = *z};
    for (int k = 0; k < n; k++) r->x[k] = xs[k];
}

static bool same_view(const cot__view *a, const cot__view *b) {
    return a->data == b->data && a->ndim == b->ndim &&
           memcmp(a->stride, b->stride, (size_t)a->ndim * sizeof *a->stride) == 0;
}

void cot__block_run_of_partials(cot__block_run *r, int op, cot_dtype compute, int n, const cot__view *xs,
                                const cot__view *z, int count, const cot__term *terms) {
    r->op = op;
    r->values = false;
    r->cost = cost_of(op);
    r->compute = compute;
    r->n = n + 1;
    r->arity = n;
    r->outputs = count;
    /* many partials read g alone: what is not there takes no time, and nothing waits for it */
    static const cot__view unread;
    uint32_t               reads = 0;
    for (int i = 0; i < count; i++) reads |= cot__elementwise_table[op].saves[terms[i].k];
    for (int i = 0; i < n; i++) r->x[i] = reads >> i & 1 ? xs[i] : unread;
    r->x[n] = reads & COT__SAVES_Z ? *z : unread;
    for (int i = 0; i < count; i++) {
        bool again = i > 0 && same_view(&terms[i].g, &terms[i - 1].g);
        r->out[i] = (cot__output){
            .k = terms[i].k, .to = terms[i].out, .accumulate = terms[i].accumulate, .g = again ? r->n - 1 : r->n};
        if (!again) r->x[r->n++] = terms[i].g;
    }
}

void cot__block_run_of_copy(cot__block_run *r, const cot__view *to, const cot__view *from) {
    r->op = COT__RUN_COPY;
    r->values = true;
    r->cost = 1;
    r->compute = to->dtype;
    r->n = r->arity = 1;
    r->outputs = 1;
    r->out[0] = (cot__output){.k = -1, .to = *to};
    r->x[0] = *from;
}

/* ---- done now -------------------------------------------------------------------------------- */

void cot__run_now(const cot__backend *b, cot__block_run *r) {
    b->elementwise(&(cot__stage){.run = r, .count = 1, .cost = r->cost});
}

void cot__run_value(const cot__backend *b, int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z) {
    cot__block_run r;
    cot__block_run_of_value(&r, op, compute, n, xs, z);
    cot__run_now(b, &r);
}

void cot__run_partials(const cot__backend *b, int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z,
                       int count, const cot__term *terms) {
    cot__block_run r;
    cot__block_run_of_partials(&r, op, compute, n, xs, z, count, terms);
    cot__run_now(b, &r);
}
