/* scratch.c: memory that a function takes for itself while it records, between its operations:
 * places of a sparse matrix, say. It is of no node, so the tape notes when it was taken and when it
 * was given back, and who asks what a step needs takes it too (rehearse.c, least.c). Of searches,
 * which play bodies and forget them, it is seen how much they take at most. Notes stand in the
 * order of `from`. */
#include "memory/memory.h"

/* NULL: there is no memory for a note, of which nobody is told. */
static cot__scratch_note *note(cot_tape *t, size_t bytes) {
    uint32_t n = t->memory.scratch.count, capacity = t->memory.scratch.capacity;
    if (n == capacity) {
        capacity = capacity ? 2 * capacity : COT__GROWS_FROM;
        cot__scratch_note *list = t->memory.scratch.list;
        list = cot__resize(&t->al, list, n * sizeof *list, capacity * sizeof *list);
        if (!list) return NULL;
        t->memory.scratch.list = list;
        t->memory.scratch.capacity = capacity;
    }
    cot__scratch_note *s = &t->memory.scratch.list[t->memory.scratch.count++];
    *s = (cot__scratch_note){bytes, t->memory.scratch.open + bytes, t->count, COT__NONE};
    return s;
}

/* So much was in use at once and is not any more, before the next node. One note tells of all such
 * moments. */
static void note_moment(cot_tape *t, size_t at_once) {
    uint32_t           n = t->memory.scratch.count;
    cot__scratch_note *s = n ? &t->memory.scratch.list[n - 1] : NULL;
    if (!s || s->from != t->count || s->to != t->count) s = note(t, 0);
    if (!s) return;
    s->to = t->count;
    if (at_once > s->at_once) s->at_once = at_once;
}

void *cot__scratch_open(cot_tape *t, size_t bytes) {
    void *p = cot__alloc(&t->al, bytes);
    if (!p) return NULL;
    note(t, cot__cache_takes(bytes));
    t->memory.scratch.open += cot__cache_takes(bytes);
    return p;
}

void cot__scratch_close(cot_tape *t, void *p, size_t bytes) {
    if (!p) return;
    cot__free(&t->al, p, bytes);
    bytes = cot__cache_takes(bytes);
    t->memory.scratch.open -= bytes;
    for (uint32_t k = t->memory.scratch.count; k-- > 0;) {
        cot__scratch_note *s = &t->memory.scratch.list[k];
        if (s->to != COT__NONE || s->bytes != bytes) continue;
        s->to = t->count;
        return;
    }
}

cot__scratch_seen cot__scratch_watch(cot_tape *t) {
    cot__scratch_seen before = {t->cache.seen, cot__cache_used(&t->cache)};
    t->cache.seen = before.used;
    return before;
}

void cot__scratch_watched(cot_tape *t, cot__scratch_seen before) {
    note_moment(t, t->memory.scratch.open + t->cache.seen - before.used);
    if (t->cache.seen < before.seen) t->cache.seen = before.seen;
}

void cot__scratch_rewound(cot_tape *t, bool again) {
    const cot__scratch_note *list = t->memory.scratch.list;
    size_t                   most = 0;
    for (uint32_t n; (n = t->memory.scratch.count) && list[n - 1].from >= t->count; t->memory.scratch.count--)
        if (list[n - 1].at_once > most) most = list[n - 1].at_once;
    if (again && most) note_moment(t, most);
}

double cot__scratch_most(const cot_tape *t) {
    size_t most = 0;
    for (uint32_t k = 0; k < t->memory.scratch.count; k++)
        if (t->memory.scratch.list[k].at_once > most) most = t->memory.scratch.list[k].at_once;
    return (double)most;
}
