/* drop.c: which values are dropped when memory is short.
 *
 * Of all that can be made again, the one goes first for which
 *
 *     (its cost + that of what is dropped around it) / (bytes · operations since it was read)
 *
 * is least. Around it: the longest chains of dropped values that it would be made from, and that
 * are made from it. So dropped values do not gather in one long chain, of which each read would do
 * all of it again. What a running sweep has passed costs nothing: the sweep does not read it any
 * more.
 *
 * Where there is a spill folder, the cost is that of moving the elements there and back, if that is
 * less, or if they cannot be made again. What lies there is in no chain. */
#include "memory/memory.h"
#include "pending/pending.h"

#include <stdlib.h>

enum { SPARE = 32 }; /* of many storages a part of the limit goes at once */

/* ---- what can be dropped --------------------------------------------------------------------- */

/* The storage of operand k; NULL: a number, or a 0-d value in its node. */
static cot__storage *operand(const cot_tape *t, const cot__node *n, int k) {
    uint32_t a = cot__arg(n, k);
    return a != COT__NONE && cot__is_tensor(&t->nodes[a]) ? t->nodes[a].value.tensor->storage : NULL;
}

/* Is every operand as the operation saw it? Sources are looked at again when it is replayed. */
static bool operands_intact(const cot_tape *t, const cot__node *n) {
    for (int k = 0, count = cot__nargs(n); k < count; k++) {
        uint32_t a = cot__arg(n, k);
        if (a == COT__NONE || !cot__is_tensor(&t->nodes[a])) continue;
        const cot__tensor *v = t->nodes[a].value.tensor;
        if (v->version != v->storage->version) return false;
    }
    return true;
}

/* The results of an operation are written together, so none of them may have been changed. */
static bool results_intact(const cot_tape *t, uint32_t operation) {
    for (int k = 0, m = cot__results_at(t, operation); k < m; k++) {
        const cot__node *z = &t->nodes[operation + (uint32_t)k];
        if (cot__is_tensor(z) && z->value.tensor->storage->version != 0) return false;
    }
    return true;
}

/* By what the storage itself says. */
static bool is_free(const cot_tape *t, const cot__storage *s) {
    return s->block && !s->dropped && s->refs == 1 && !s->pins && !s->touched && !s->unready &&
           !s->aside && s->read_at < t->memory.pinned_from;
}

static bool can_be_made(const cot_tape *t, const cot__storage *s) {
    if (s->maker >= t->count || s->version != 0 || (t->mode.body && s->maker >= t->mode.body_from)) return false;
    return cot__can_replay(t, s->maker) && results_intact(t, s->maker) && operands_intact(t, &t->nodes[s->maker]);
}

/* ---- what it costs --------------------------------------------------------------------------- */

static double own_cost(const cot_tape *t, cot__storage *s) {
    if (s->cost <= 0) s->cost = cot__cost_again(t, s->maker);
    return s->cost;
}

/* What the disk has lost, and no operation makes, stands in no chain. */
static bool is_in_chain(const cot__storage *s) {
    return s->dropped && !cot__is_stored(s) && s->maker != COT__NONE;
}

/* What can be done with it now. */
static void look_at(const cot_tape *t, cot__storage *s) {
    bool is_here = is_free(t, s);
    s->replays = is_here && can_be_made(t, s);
    s->moves = is_here && cot__can_spill(t, s);
}

/* In order of creation: operands come before results. */
static void measure_before(cot_tape *t) {
    for (uint32_t i = 0; i < t->storages.count; i++) {
        cot__storage *s = t->storages.list[i];
        s->before = s->behind = 0;
        look_at(t, s);
        if (!s->replays && !is_in_chain(s)) continue;
        const cot__node *n = &t->nodes[s->maker];
        for (int k = 0, count = cot__nargs(n); k < count; k++) {
            const cot__storage *x = operand(t, n, k);
            if (x && is_in_chain(x) && x->before + x->cost > s->before) s->before = x->before + x->cost;
        }
    }
}

static void measure_behind(cot_tape *t) {
    for (uint32_t i = t->storages.count; i-- > 0;) {
        const cot__storage *s = t->storages.list[i];
        if (!is_in_chain(s)) continue;
        const cot__node *n = &t->nodes[s->maker];
        for (int k = 0, count = cot__nargs(n); k < count; k++) {
            cot__storage *x = operand(t, n, k);
            if (x && s->behind + s->cost > x->behind) x->behind = s->behind + s->cost;
        }
    }
}

static bool is_passed(const cot_tape *t, const cot__storage *s) {
    return s->maker >= t->memory.passed_from && s->maker < t->memory.passed_to;
}

/* Elements go to the store if that costs less than making them again. */
static bool is_moved(const cot_tape *t, cot__storage *s) {
    if (!s->replays || !s->moves) return s->moves;
    return !is_passed(t, s) && cot__cost_to_move(s) < own_cost(t, s) + s->before + s->behind;
}

static double price(const cot_tape *t, cot__storage *s) {
    uint64_t used = s->used_at > s->read_at ? s->used_at : s->read_at;
    bool     moved = is_moved(t, s);
    double   cost = moved ? cot__cost_to_move(s) : own_cost(t, s) + s->before + s->behind;
    double   per = cost / ((double)s->bytes * (double)(t->memory.clock - used + 1));
    return is_passed(t, s) && !moved ? -1 / (per + 1e-300) : per;
}

/* ---- dropping -------------------------------------------------------------------------------- */

static cot__storage *cheapest(cot_tape *t) {
    cot__storage *best = NULL;
    double        least = 0;
    for (uint32_t i = 0; i < t->storages.count; i++) {
        cot__storage *s = t->storages.list[i];
        if (s->dropped || (!s->replays && !s->moves)) continue;
        double p = price(t, s);
        if (!best || p < least) best = s, least = p;
    }
    return best;
}

static void drop(cot_tape *t, cot__storage *s) {
    own_cost(t, s);
    cot__memory_settle(s); /* the store's thread may read its elements */
    cot__payload_drop(t, s);
}

/* False: the disk has failed, and what can be done must be looked at once more. */
static bool let_go(cot_tape *t, cot__storage *s) {
    if (is_moved(t, s)) return cot__spill(t, s);
    return drop(t, s), true;
}

static bool is_short(const cot_tape *t, size_t bytes) {
    return cot__cache_used(&t->cache) + bytes > t->cache.limit;
}

/* For the tests: there is no choice. */
static void drop_all(cot_tape *t) {
    for (uint32_t i = 0; i < t->storages.count; i++) {
        cot__storage *s = t->storages.list[i];
        look_at(t, s);
        if (cot__spill_always && s->moves) {
            if (t->memory.clock % 2 && !cot__is_stored(s)) cot__write_behind(t, s);
            else cot__spill(t, s);
        } else if (cot__drop_always && s->replays) drop(t, s);
    }
}

/* What was sent for too early is there, and may go again. */
static bool let_all_arrive(cot_tape *t) {
    bool any = false;
    for (uint32_t i = 0; i < t->storages.count; i++) any |= cot__let_arrive(t, t->storages.list[i]);
    return any;
}

/* ---- many at once ---------------------------------------------------------------------------- */

/* Of many storages each look costs as much as they are, so more are let go at once than are needed:
 * the cheapest of one look, but none whose price has risen since, because a neighbour has gone. */

typedef struct offer { double price; cot__storage *s; } offer;

static int by_price(const void *a, const void *b) {
    const offer *x = a, *y = b;
    return (x->price > y->price) - (x->price < y->price);
}

/* What has gone since the look, around s. */
static void look_around(const cot_tape *t, cot__storage *s) {
    const cot__node *n = s->maker < t->count ? &t->nodes[s->maker] : NULL;
    for (int k = 0, count = n ? cot__nargs(n) : 0; k < count; k++) {
        const cot__storage *x = operand(t, n, k);
        if (x && is_in_chain(x) && x->before + x->cost > s->before) s->before = x->before + x->cost;
    }
}
static void tell_operands(const cot_tape *t, const cot__storage *s) {
    const cot__node *n = is_in_chain(s) && s->maker < t->count ? &t->nodes[s->maker] : NULL;
    for (int k = 0, count = n ? cot__nargs(n) : 0; k < count; k++) {
        cot__storage *x = operand(t, n, k);
        if (x && s->behind + s->cost > x->behind) x->behind = s->behind + s->cost;
    }
}

/* False: nothing went, or there is no memory to look so. */
static bool drop_many(cot_tape *t, size_t bytes) {
    size_t room = t->storages.count * sizeof(offer);
    offer *list = cot__alloc(&t->cache.below, room);
    size_t n = 0, more = t->cache.limit / SPARE;
    bool   any = false, well = true;
    if (!list) return false;
    measure_before(t);
    measure_behind(t);
    for (uint32_t i = 0; i < t->storages.count; i++) {
        cot__storage *s = t->storages.list[i];
        if (!s->dropped && (s->replays || s->moves)) list[n++] = (offer){price(t, s), s};
    }
    qsort(list, n, sizeof *list, by_price);
    for (size_t k = 0; k < n && well && is_short(t, bytes + more); k++) {
        look_around(t, list[k].s);
        if (price(t, list[k].s) > list[k].price) continue;
        any |= well = let_go(t, list[k].s);
        tell_operands(t, list[k].s);
    }
    cot__free(&t->cache.below, list, room);
    return any;
}

static void drop_until(cot_tape *t, size_t bytes) {
    if (t->cache.limit && is_short(t, bytes)) cot__pending_shrink(t); /* that costs nothing */
    while (t->cache.limit && is_short(t, bytes)) {
        if (t->storages.count > COT__MANY_STORAGES && drop_many(t, bytes)) continue;
        measure_before(t);
        measure_behind(t);
        cot__storage *s = cheapest(t);
        if (!s && !let_all_arrive(t)) return;
        if (s) let_go(t, s);
    }
}

/* What needs memory meanwhile, as the list of free places does, is refused. */
void cot__drop_for(void *tape, size_t bytes) {
    cot_tape *t = tape;
    if (t->memory.dropping) return;
    t->memory.dropping = true;
    if (cot__drop_always || cot__spill_always) drop_all(t);
    drop_until(t, bytes);
    t->memory.dropping = false;
}

/* ---- before memory is short ------------------------------------------------------------------ */

bool cot__drop_passed(cot_tape *t, size_t bytes) {
    for (uint32_t i = t->storages.count; i-- > 0 && is_short(t, bytes);) {
        cot__storage *s = t->storages.list[i];
        if (!is_passed(t, s)) continue;
        look_at(t, s);
        if (s->replays) drop(t, s);
    }
    return !is_short(t, bytes);
}

/* One at a time, and not so often that looking for it costs more than it gives. */
void cot__look_behind(cot_tape *t) {
    cot__storage *best = NULL;
    double        least = 0;
    if (t->memory.clock < t->memory.next_behind || cot__cache_used(&t->cache) < t->cache.limit / 4 * 3) return;
    if (!cot__store_is_idle(t->memory.store)) return;
    t->memory.next_behind = t->memory.clock + 1 + t->storages.count / 64;
    for (uint32_t i = 0; i < t->storages.count; i++) {
        cot__storage *s = t->storages.list[i];
        look_at(t, s);
        if (!s->moves || cot__is_stored(s) || !is_moved(t, s)) continue;
        double p = price(t, s);
        if (!best || p < least) best = s, least = p;
    }
    if (best) cot__write_behind(t, best);
}
