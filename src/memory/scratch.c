/* scratch.c: memory that a function takes for itself while it records, between its operations:
 * places of a sparse matrix, say. It is of no node, so the tape notes when it was taken and when it
 * was given back, and who asks what a step needs takes it too (rehearse.c, least.c). Of searches,
 * which play bodies and forget them, it is seen how much they take at most. */
#include "memory/memory.h"

/* Nobody is told that there is no memory for a note. */
static void note(cot_tape *t, size_t bytes, bool taken) {
    uint32_t n = t->memory.scratch.count, capacity = t->memory.scratch.capacity;
    if (n == capacity) {
        capacity = capacity ? 2 * capacity : COT__GROWS_FROM;
        cot__scratch_note *list = t->memory.scratch.list;
        list = cot__resize(&t->al, list, n * sizeof *list, capacity * sizeof *list);
        if (!list) return;
        t->memory.scratch.list = list;
        t->memory.scratch.capacity = capacity;
    }
    t->memory.scratch.list[t->memory.scratch.count++] = (cot__scratch_note){bytes, t->count, taken};
}

void *cot__scratch_open(cot_tape *t, size_t bytes) {
    void *p = cot__alloc(&t->al, bytes);
    if (p) note(t, bytes, true);
    return p;
}

void cot__scratch_close(cot_tape *t, void *p, size_t bytes) {
    if (!p) return;
    cot__free(&t->al, p, bytes);
    note(t, bytes, false);
}

cot__scratch_seen cot__scratch_watch(cot_tape *t) {
    cot__scratch_seen before = {t->cache.peak, cot__cache_used(&t->cache)};
    t->cache.peak = before.used;
    return before;
}

void cot__scratch_watched(cot_tape *t, cot__scratch_seen before) {
    size_t most = t->cache.peak - before.used;
    if (t->cache.peak < before.peak) t->cache.peak = before.peak;
    note(t, most, true);
    note(t, most, false);
}

void cot__scratch_rewound(cot_tape *t) {
    const cot__scratch_note *list = t->memory.scratch.list;
    while (t->memory.scratch.count && list[t->memory.scratch.count - 1].at > t->count) t->memory.scratch.count--;
}

double cot__scratch_most(const cot_tape *t) {
    double live = 0, most = 0;
    for (uint32_t k = 0; k < t->memory.scratch.count; k++) {
        const cot__scratch_note *s = &t->memory.scratch.list[k];
        live += (double)cot__cache_takes(s->bytes) * (s->taken ? 1 : -1);
        if (live > most) most = live;
    }
    return most;
}
