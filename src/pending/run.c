/* run.c: does what waits: drops what is dead, cuts the rest into groups, hands each to the backend
 * as a stage (backend/runs.h). */
#include "pending/parts.h"
#include "tape/examples.h"

static bool writes(const cot__pending *q, uint32_t k, uint32_t on) {
    for (uint32_t i = COT__RUN_VIEWS; i < COT__RUN_VIEWS + (uint32_t)q->run[k].outputs; i++)
        if (q->op[k].on[i] == on) return true;
    return false;
}

/* The last operation that writes what is folded. */
static uint32_t folded_maker(const cot__pending *q) {
    uint32_t k = q->fold ? q->count : 0;
    while (k > 0 && !writes(q, k - 1, q->folded)) k--;
    return k > 0 ? k - 1 : COT__NOWHERE;
}

static void run_groups(cot__pending *q) {
    uint32_t maker = folded_maker(q);
    for (uint32_t first = 0, end; first < q->count; first = end) {
        cot__stage s = {.run = &q->run[first], .size = q->op[first].size, .block_bytes = cot__pending_bytes,
                        .moves = &q->moves[first]};
        for (end = first; end < q->count && q->op[end].group == q->op[first].group; end++) s.cost += q->run[end].cost;
        s.count = (int)(end - first);
        if (maker >= first && maker < end) {
            q->fold->after = (int)(maker - first) + 1;
            s.fold = q->fold;
            s.folds = 1;
        }
        q->t->backend->elementwise(&s);
    }
}

/* Nothing waits any more: storages without owners are freed. Freeing one may let others go, which
 * are storages like any other by then. */
static void let_go(cot__pending *q) {
    uint32_t touches = q->touches, ownerless = 0;
    bool     before = q->t->memory.dropping;
    q->t->memory.dropping = true; /* the lists stay meanwhile */
    q->count = q->touches = q->orphans = 0;
    for (cot__numbers *n = q->current = q->numbers; n; n = n->next) n->used = 0;
    for (uint32_t k = 0; k < touches; k++) {
        cot__storage *s = q->touched[k].storage;
        s->touched = 0;
        s->unready = false;
        if (s->refs == 0) q->touched[ownerless++].storage = s;
    }
    for (uint32_t k = 0; k < ownerless; k++) {
        q->touched[k].storage->refs = 1;
        cot__storage_release(q->t, q->touched[k].storage);
    }
    q->t->memory.dropping = before;
}

void cot__pending_run(cot__pending *q) {
    cot__pending_drop_dead(q);
    cot__pending_group(q);
    cot__pending_find_scratch(q);
    run_groups(q);
    let_go(q);
}

/* ---- when ------------------------------------------------------------------------------------ */

bool cot__pending_any(const cot_tape *t) { return t->pending.work && t->pending.work->count; }

void cot__pending_finish(const cot_tape *t) {
    if (cot__pending_any(t)) cot__pending_run(t->pending.work);
}

void cot__pending_ready(const cot_tape *t, cot__storage *s) {
    if (!s->unready) return;
    if (s->example) {
        cot__example_ready(s);
        return;
    }
    if (s->product) {
        cot__product_make(s);
        return;
    }
    t->pending.work->touched[s->touched - 1].unread = false;
    cot__pending_run(t->pending.work);
}

void cot__settle(cot_tape *t, uint32_t i) {
    if (cot__is_tensor(&t->nodes[i])) cot__pending_settle(t, t->nodes[i].value.tensor->storage);
}

void cot__pending_settle(cot_tape *t, cot__storage *s) {
    if (UNLIKELY(s->stored.errand)) cot__memory_settle(s);
    if (s->example) cot__example_ready(s);
    if (s->product) cot__product_make(s);
    if (s->readers) cot__product_make_readers(t, s);
    if (!s->touched) return;
    t->pending.work->touched[s->touched - 1].unread = false;
    cot__pending_run(t->pending.work);
}

void cot__pending_rewound(cot_tape *t) {
    if (!t->pending.sweeps) cot__pending_finish(t);
}

void cot__pending_open(cot_tape *t) { t->pending.sweeps++; }

void cot__pending_close(cot_tape *t) {
    if (--t->pending.sweeps == 0) cot__pending_finish(t);
}

cot__paused cot__pending_pause(cot_tape *t) {
    cot__paused before = {t->pending.sweeps, t->pending.at_once};
    cot__pending_finish(t);
    t->pending.sweeps = 0;
    t->pending.at_once = true;
    return before;
}

void cot__pending_resume(cot_tape *t, cot__paused before) {
    t->pending.sweeps = before.sweeps;
    t->pending.at_once = before.at_once;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void cot__pending_forget(cot_tape *t) {
    cot__pending *q = t->pending.work;
    if (!q) return;
    let_go(q);
    while (q->numbers) {
        cot__numbers *next = q->numbers->next;
        cot__free(&t->al, q->numbers, sizeof *next);
        q->numbers = next;
    }
    cot__free(&t->al, q->run, q->room * COT__WAITING_BYTES);
    cot__free(&t->al, q->touched, q->touched_room * sizeof *q->touched);
    cot__free(&t->al, q->orphan, q->orphan_room * sizeof *q->orphan);
    cot__free(&t->al, q, sizeof *q);
    t->pending.work = NULL;
}

void cot__pending_shrink(cot_tape *t) {
    if (!cot__pending_any(t)) cot__pending_forget(t);
}

size_t cot__pending_lists(const cot_tape *t) {
    const cot__pending *q = t->pending.work;
    if (!q) return 0;
    size_t bytes = cot__cache_takes(q->room * COT__WAITING_BYTES) +
                   cot__cache_takes(q->touched_room * sizeof *q->touched) +
                   cot__cache_takes(q->orphan_room * sizeof *q->orphan) + cot__cache_takes(sizeof *q);
    for (const cot__numbers *n = q->numbers; n; n = n->next) bytes += cot__cache_takes(sizeof *n);
    return bytes;
}

static bool room_for_orphan(cot__pending *q) {
    uint32_t more = q->orphan_room ? 2 * q->orphan_room : 32;
    if (q->orphans < q->orphan_room) return true;
    void *list = cot__resize(&q->t->al, q->orphan, q->orphan_room * sizeof *q->orphan, more * sizeof *q->orphan);
    if (!list) return false;
    q->orphan = list;
    q->orphan_room = more;
    return true;
}

/* Borrowed memory is its owner's again when the last reference goes. */
bool cot__pending_keeps(cot_tape *t, cot__storage *s) {
    cot__pending *q = t->pending.work;
    if (!s->borrowed && room_for_orphan(q)) {
        q->orphan[q->orphans++] = s->touched - 1;
        return true;
    }
    q->touched[s->touched - 1].unread = !s->borrowed;
    s->refs = 1; /* so that it is not freed twice */
    cot__pending_run(q);
    s->refs = 0;
    return false;
}

cot__storage *cot__pending_reuse(cot_tape *t, size_t bytes) {
    cot__pending *q = t->pending.work;
    for (uint32_t k = q ? q->orphans : 0; k-- > 0;) {
        cot__storage *s = q->touched[q->orphan[k]].storage;
        if (s->bytes != bytes) continue;
        q->touched[q->orphan[k]].unread = false;
        q->orphan[k] = q->orphan[--q->orphans];
        *s = (cot__storage){.refs = 1, .backend = s->backend, .bytes = s->bytes, .data = s->data, .block = s->block,
                            .maker = COT__NONE, .owner = COT__NONE,
                            .touched = s->touched, .unready = s->unready, /* the work stays */
                            /* like a new one */
                            .saver_version = UINT32_MAX, .writer = COT__NONE};
        return s;
    }
    return NULL;
}

void cot__pending_unread(cot_tape *t, uint32_t since, uint32_t from, const uint8_t *read) {
    cot__pending *q = t->pending.work;
    if (!cot__pending_any(t)) return;
    for (uint32_t k = since; k < t->storages.count; k++)
        if (t->storages.list[k]->touched) q->touched[t->storages.list[k]->touched - 1].unread = true;
    for (uint32_t i = from; i < t->count; i++) {
        const cot__storage *s = cot__is_tensor(&t->nodes[i]) ? t->nodes[i].value.tensor->storage : NULL;
        if (s && s->touched && read[i - from]) q->touched[s->touched - 1].unread = false;
    }
}
