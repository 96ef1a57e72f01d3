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
        if (q->op[first].made) {
            q->t->backend->make(q->op[first].made);
            end = first + 1;
            continue;
        }
        cot__stage s = {.run = &q->run[first],
                        .size = q->op[first].size,
                        .block_bytes = cot__pending_bytes,
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

/* Nothing is queued any more: storages without owners are freed. Freeing one may let others go,
 * which are storages like any other by then. */
static void let_go(cot__pending *q) {
    uint32_t touches = q->touches, ownerless = 0;
    bool     alone = !q->t->pending.patients; /* all places become vacant */
    bool     before = q->t->memory.dropping;
    q->t->memory.dropping = true; /* the lists stay meanwhile */
    q->count = q->touches = q->orphans = 0;
    q->bent = false;
    q->print = 0;
    for (cot__numbers *n = q->current = q->numbers; n; n = n->next) n->used = 0;
    for (uint32_t k = 0; k < touches; k++) {
        cot__touched *e = &q->touched[q->queued[k]];
        cot__storage *s = e->storage;
        e->queued = e->unread = s->unready = false;
        if (alone) s->touched = 0;
        else cot__pending_vacate(q, s);
        if (s->refs == 0) q->queued[ownerless++] = q->queued[k];
    }
    if (alone) q->places = 0, q->vacant = COT__NOWHERE;
    for (uint32_t k = 0; k < ownerless; k++) {
        cot__storage *s = q->touched[q->queued[k]].storage;
        s->refs = 1;
        cot__storage_release(q->t, s);
    }
    q->t->memory.dropping = before;
}

void cot__pending_run(cot__pending *q) {
    bool keep;
    cot__pending_from_end(q);
    if (!cot__outline_follow(q, &keep)) {
        cot__outline *p = keep ? cot__outline_begin(q) : NULL;
        cot__pending_drop_dead(q);
        cot__pending_group(q);
        cot__pending_find_scratch(q);
        if (p) cot__outline_end(p, q);
    }
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
    cot__pending_ask(t->pending.work->t, s);
    if (!s->unready) return; /* no memory: it was done */
    t->pending.work->touched[s->touched - 1].unread = false;
    cot__pending_run(t->pending.work);
}

void cot__settle(cot_tape *t, uint32_t i) {
    if (cot__is_tensor(&t->nodes[i])) cot__pending_settle(t, t->nodes[i].value.tensor->storage);
}

void cot__pending_settle(cot_tape *t, cot__storage *s) {
    if (UNLIKELY(s->stored.errand)) cot__memory_settle(s);
    if (s->example) cot__example_ready(s);
    if (!s->touched) return;
    cot__pending_ask_readers(t, s);
    cot__pending_ask(t, s);
    if (!s->touched) return; /* no memory: they were done */
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
    if (t->pending.work) let_go(t->pending.work);
    cot__pending_shrink(t);
}

/* What patient operations touch keeps its place. */
void cot__pending_shrink(cot_tape *t) {
    cot__pending *q = t->pending.work;
    if (!q || q->count) return;
    while (q->numbers) {
        cot__numbers *next = q->numbers->next;
        cot__free(&t->al, q->numbers, sizeof *next);
        q->numbers = next;
    }
    cot__outlines_free(q);
    cot__free(&t->al, q->run, q->room * COT__WAITING_BYTES);
    cot__free(&t->al, q->orphan, q->orphan_room * sizeof *q->orphan);
    if (t->pending.patients) {
        *q = (cot__pending){.t = t,
                            .touched = q->touched,
                            .queued = q->queued,
                            .places = q->places,
                            .vacant = q->vacant,
                            .touched_room = q->touched_room};
        return;
    }
    cot__free(&t->al, q->touched, q->touched_room * COT__TOUCHED_BYTES);
    cot__free(&t->al, q, sizeof *q);
    t->pending.work = NULL;
}

size_t cot__pending_lists(const cot_tape *t) {
    const cot__pending *q = t->pending.work;
    if (!q) return 0;
    size_t bytes = cot__outlines_bytes(q) + cot__cache_takes(q->room * COT__WAITING_BYTES) +
                   cot__cache_takes(q->touched_room * COT__TOUCHED_BYTES) +
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
    if (cot__patient_of(t, s)) cot__patient_forget(t, s); /* nobody will look */
    if (!s->touched) return false;
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
    for (uint32_t k = since; k < t->storages.count; k++) {
        uint32_t place = t->storages.list[k]->touched;
        if (place && q->touched[place - 1].queued) q->touched[place - 1].unread = true;
    }
    for (uint32_t i = from; i < t->count; i++) {
        const cot__storage *s = cot__is_tensor(&t->nodes[i]) ? t->nodes[i].value.tensor->storage : NULL;
        if (s && s->touched && read[i - from]) q->touched[s->touched - 1].unread = false;
    }
}
