/* dead.c: waiting operations whose results nothing will read, found by one walk back.
 *
 * What a storage holds is needed after the last operation if the storage has an owner besides the
 * waiting work; before an operation, if the operation reads it, or if it was needed after it and
 * the operation does not overwrite it. */
#include "pending/parts.h"

void cot__pending_from_end(cot__pending *q) {
    for (uint32_t k = 0; k < q->touches; k++) {
        cot__touched *s = &q->touched[q->queued[k]];
        s->needed = s->storage->refs > (s->unread ? 1 : 0); /* the tape has one reference to it */
        s->group = 0;
    }
}

static bool is_needed(const cot__pending *q, uint32_t k) {
    for (int i = 0; i < q->run[k].outputs; i++)
        if (q->touched[q->op[k].on[COT__RUN_VIEWS + i]].needed) return true;
    return false;
}

static void walk_over(cot__pending *q, uint32_t k) {
    const cot__block_run *r = &q->run[k];
    const cot__waiting   *w = &q->op[k];
    for (uint32_t i = COT__RUN_VIEWS; i < COT__RUN_VIEWS + (uint32_t)r->outputs; i++)
        if (cot__overwrites(r, w, i)) q->touched[w->on[i]].needed = false;
    COT__EACH_VIEW (i, w)
        if (i < COT__RUN_VIEWS || r->out[i - COT__RUN_VIEWS].accumulate) q->touched[w->on[i]].needed = true;
}

void cot__pending_walk_back(cot__pending *q, uint32_t first, uint32_t end) {
    for (uint32_t k = end; k-- > first;) walk_over(q, k);
}

void cot__pending_drop_dead(cot__pending *q) {
    uint32_t kept = q->count;
    for (uint32_t k = q->count; k-- > 0;) { /* those that live gather at the end */
        if (!is_needed(q, k)) continue;
        walk_over(q, k);
        if (--kept == k) continue;
        q->run[kept] = q->run[k];
        q->op[kept] = q->op[k];
    }
    if (kept == 0) return;
    q->count -= kept;
    for (uint32_t k = 0; k < q->count; k++) {
        q->run[k] = q->run[kept + k];
        q->op[k] = q->op[kept + k];
    }
}
