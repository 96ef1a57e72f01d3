/* idle.c: see idle.h. */
#include "compile/idle.h"

#include "backend/elements.h"

static cot__run *take_last(cot_program *p) {
    cot__run *r = NULL;
    cot__lock_take(&p->lock);
    if (p->idle_count) r = p->idle[--p->idle_count];
    cot__lock_give(&p->lock);
    return r;
}

/* In a forked child those of its parent, whose files are not the child's, go. */
cot__run *cot__idle_take(cot_program *p, const cot__backend *backend, const cot__caller *caller) {
    cot__run *r = cot__on_host(backend) ? take_last(p) : NULL;
    while (r && cot__run_disk_is_broken(r)) {
        cot__run_destroy(r);
        r = take_last(p);
    }
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
