/* idle.c: see idle.h. */
#include "compile/idle.h"

#include "backend/elements.h"

cot__run *cot__idle_take(cot_program *p, const cot__backend *backend, const cot__caller *caller) {
    cot__run *r = NULL;
    cot__lock_take(&p->lock);
    if (p->idle_count && cot__on_host(backend)) r = p->idle[--p->idle_count];
    cot__lock_give(&p->lock);
    return r ? r : cot__program_make_run(p, backend, NULL, caller);
}

/* More than there is room for were in use at once; these few suffice. One whose disk has failed
 * goes. */
void cot__idle_give(cot_program *p, const cot__backend *backend, cot__run *r) {
    bool kept = false, fit = cot__on_host(backend) && !cot__run_lost(r);
    cot__lock_take(&p->lock);
    if (p->idle_count < COT__IDLE_RUNS && fit) p->idle[p->idle_count++] = r, kept = true;
    cot__lock_give(&p->lock);
    if (!kept) cot__run_destroy(r);
}

void cot__idle_close(cot_program *p) {
    while (p->idle_count) cot__run_destroy(p->idle[--p->idle_count]);
}
