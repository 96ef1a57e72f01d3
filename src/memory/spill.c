/* spill.c: values that go to the store of the spill folder, and come back.
 *
 * A value that was read back stays in the store as well, until it is written or forgotten: dropping
 * it once more costs nothing. A disk that fails leaves a note, and takes nothing more. What is
 * written behind, or read ahead, is an errand of the store's thread; whoever needs it waits. */
#include "memory/memory.h"

/* ---- what may go ----------------------------------------------------------------------------- */

/* All but what others hold by its address, and examples in bodies. */
bool cot__can_spill(const cot_tape *t, const cot__storage *s) {
    if (!t->memory.store || s->owner >= t->count || !s->bytes || s->example) return false;
    if (cot__in_body(&t->nodes[s->owner]) || (t->mode.body && s->owner >= t->mode.body_from)) return false;
    return cot__is_stored(s) || cot__store_has_room(t->memory.store, s->bytes);
}

double cot__cost_to_move(const cot__storage *s) {
    return (double)s->bytes * (cot__is_stored(s) ? COT__READ_BYTE : COT__WRITE_BYTE + COT__READ_BYTE);
}

/* ---- there ----------------------------------------------------------------------------------- */

static void tell_of_trouble(cot_tape *t) {
    const cot__store *store = t->memory.store;
    const char       *why = cot__store_trouble(store);
    if (why)
        cot__note(t, "[spill] the disk of %s failed: %s; values are computed again where they can be",
                  cot__store_folder(store), why);
}

/* An extent for the present value. */
static bool take_extent(cot_tape *t, cot__storage *s) {
    cot__extent_give(&s->stored); /* what it held before a write */
    s->stored_version = s->version;
    return cot__extent_take(t->memory.store, s->bytes, &s->stored);
}

bool cot__write_behind(cot_tape *t, cot__storage *s) {
    if (!take_extent(t, s)) return tell_of_trouble(t), false;
    if (cot__extent_write_behind(&s->stored, s->data)) return true;
    cot__extent_give(&s->stored);
    return false;
}

static bool is_written(cot_tape *t, cot__storage *s) {
    bool begun = cot__is_stored(s);
    if (begun ? cot__extent_finish(&s->stored)
              : take_extent(t, s) &&
                    cot__store_write(t->memory.store, s->stored.at, s->data, s->bytes, &s->stored.sum))
        return true;
    cot__extent_give(&s->stored);
    return false;
}

bool cot__spill(cot_tape *t, cot__storage *s) {
    if (!is_written(t, s)) return tell_of_trouble(t), false;
    cot__payload_drop(t, s);
    return true;
}

/* Elements on their way have memory, and their storage counts as dropped. */
static bool is_coming(const cot__storage *s) { return s->dropped && s->block; }

/* What did not reach the disk does not lie there. Who waits for elements from there looks at
 * them. */
void cot__memory_settle(cot__storage *s) {
    if (!is_coming(s) && !cot__extent_finish(&s->stored)) cot__extent_give(&s->stored);
}

/* ---- and back -------------------------------------------------------------------------------- */

static cot__return arrived(cot_tape *t, cot__storage *s, bool well) {
    if (well) return COT__BACK;
    cot__payload_drop(t, s);
    cot__extent_give(&s->stored);
    tell_of_trouble(t);
    return COT__LOST;
}

static cot__return let_arrive(cot_tape *t, cot__storage *s) {
    bool well = cot__extent_finish(&s->stored);
    s->dropped = false;
    t->memory.dropped--;
    return arrived(t, s, well);
}

bool cot__let_arrive(cot_tape *t, cot__storage *s) { return is_coming(s) && (let_arrive(t, s), true); }

cot__return cot__bring_back(cot_tape *t, cot__storage *s) {
    if (is_coming(s)) return let_arrive(t, s);
    cot__memory_expect(t, s->bytes);
    if (!cot__payload_create(t, s)) return COT__NO_ROOM;
    s->used_at = t->memory.clock;
    t->memory.brought++;
    return arrived(t, s, cot__store_read(s->stored.store, s->stored.at, s->data, s->bytes, s->stored.sum));
}

/* ---- ahead ----------------------------------------------------------------------------------- */

enum { NODES_AHEAD = 12 };

/* Only room that nobody needs is taken. */
static bool has_room(cot_tape *t, size_t bytes) {
    return !t->cache.limit || cot__cache_used(&t->cache) + bytes <= t->cache.limit || cot__drop_passed(t, bytes);
}

/* False: no more for now. */
static bool send_for(cot_tape *t, cot__storage *s) {
    if (!s->dropped || s->block || !cot__is_stored(s) || s->saver_version != s->version) return true;
    if (!has_room(t, s->bytes + s->bytes / 8 + 128) || !cot__payload_create(t, s)) return false;
    s->used_at = t->memory.clock;
    s->dropped = true;
    t->memory.dropped++;
    t->memory.brought++;
    if (cot__extent_read_ahead(&s->stored, s->data)) return true;
    s->dropped = false;
    t->memory.dropped--;
    t->memory.brought--;
    cot__payload_drop(t, s);
    return false;
}

/* Rules of the nodes before i read their operands and their results, if they saved them. */
void cot__memory_ahead(cot_tape *t, uint32_t i) {
    uint32_t least = i > NODES_AHEAD ? i - NODES_AHEAD : 0;
    for (; i >= least && i > 0; i--) {
        const cot__node *n = &t->nodes[i];
        if (cot__in_body(n)) return;
        if (cot__is_tensor(n) && !send_for(t, n->value.tensor->storage)) return;
        for (int k = 0, count = cot__nargs(n); k < count; k++) {
            uint32_t a = cot__arg(n, k);
            if (a == COT__NONE || !cot__is_tensor(&t->nodes[a])) continue;
            if (!send_for(t, t->nodes[a].value.tensor->storage)) return;
        }
    }
}
