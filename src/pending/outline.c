/* outline.c: what was found out about a list of operations, kept for the next list like it.
 *
 * A loop that trains fills the queue with the same operations step after step, on other memory.
 * Which of them are dead, which are done together, and which views live in blocks alone follows
 * from the operations (sizes, storages, which views are straight, what is added to) and from the
 * storages (which are needed at the end, which are borrowed). These are compared, all of them. How
 * a view lies that is not straight matters only where its storage is written, too: lists with such
 * a storage are looked at anew each time, and so are long ones. */
#include "pending/parts.h"

#include <string.h>

enum { MOST = 128, OFTEN = 16 };

/* An operation that lives: its number in the list, its group, and its `moves`. */
typedef struct step { uint16_t number, group, moves; } step;

/* Behind it lie `count` keys of operations, steps, and a byte for each storage that is touched. */
struct cot__outline {
    uint64_t print;
    uint32_t count, touches, lives, room;
    uint64_t key[][COT__KEY];
};

static step *steps_of(cot__outline *p) { return (step *)(void *)p->key[p->count]; }
static char *storages_of(cot__outline *p) { return (char *)(steps_of(p) + p->count); }
static char  state_of(const cot__touched *s) { return (char)(s->needed + 2 * s->storage->borrowed); }

static bool is_same(const uint64_t a[COT__KEY], const uint64_t b[COT__KEY]) {
    uint64_t differs = 0;
    for (int k = 0; k < COT__KEY; k++) differs |= a[k] ^ b[k];
    return differs == 0;
}

static bool is_of(cot__outline *p, const cot__pending *q) {
    if (!p || p->print != q->print || p->count != q->count || p->touches != q->touches) return false;
    for (uint32_t k = 0; k < q->count; k++)
        if (!is_same(p->key[k], q->op[k].key)) return false;
    const char *state = storages_of(p);
    for (uint32_t k = 0; k < q->touches; k++)
        if (state[k] != state_of(&q->touched[q->queued[k]])) return false;
    return true;
}

/* Is there a view that is not straight on a storage that is written? */
static bool is_bent(cot__pending *q) {
    bool found = false;
    if (LIKELY(!q->bent)) return false;
    for (uint32_t k = 0; k < q->touches; k++) q->touched[q->queued[k]].written = false;
    for (uint32_t k = 0; k < q->count; k++)
        for (uint32_t i = 0; i < q->op[k].outputs; i++) q->touched[q->op[k].on[COT__RUN_VIEWS + i]].written = true;
    for (uint32_t k = 0; k < q->count; k++)
        COT__EACH_VIEW (i, &q->op[k])
            found |= q->touched[q->op[k].on[i]].written && !(q->op[k].straight >> i & 1);
    return found;
}

static bool may_have_one(cot__pending *q) { return q->count <= MOST && !q->t->cache.limit && !is_bent(q); }

static cot__outline *find(cot__pending *q) {
    for (int k = 0; k < COT__OUTLINES; k++)
        if (is_of(q->outline[k], q)) return q->outline[k];
    return NULL;
}

bool cot__outline_follow(cot__pending *q, bool *keep) {
    bool          may = may_have_one(q);
    cot__outline *p = may ? find(q) : NULL;
    q->misses = p ? 0 : q->misses + 1;
    /* where hardly any list comes again, they are kept now and then */
    *keep = may && (q->misses < OFTEN || q->misses % OFTEN == 0);
    if (!p) return false;
    const step *s = steps_of(p);
    for (uint32_t k = 0; k < p->lives; k++) {
        if (s[k].number != k) q->run[k] = q->run[s[k].number], q->op[k] = q->op[s[k].number];
        q->op[k].group = s[k].group;
        q->moves[k] = s[k].moves;
    }
    q->count = p->lives;
    return true;
}

/* Room for the outline of this list, in place of the oldest. NULL: there is no memory. */
static cot__outline *room_for(cot__pending *q) {
    cot_tape      *t = q->t;
    cot__outline **p = &q->outline[q->oldest];
    bool           before = t->memory.dropping, refused = t->cache.refused;
    uint32_t       room = 256;
    while (room < sizeof **p + q->count * (COT__KEY * sizeof(uint64_t) + sizeof(step)) + q->touches) room *= 2;
    q->oldest = (q->oldest + 1) % COT__OUTLINES;
    if (*p && (*p)->room >= room) return *p;
    t->memory.dropping = true; /* no value is dropped for it */
    if (*p) cot__free(&t->al, *p, (*p)->room);
    *p = cot__alloc(&t->al, room);
    if (*p) (*p)->room = room;
    t->memory.dropping = before;
    t->cache.refused = refused;
    return *p;
}

cot__outline *cot__outline_begin(cot__pending *q) {
    cot__outline *p = room_for(q);
    if (!p) return NULL;
    p->print = q->print;
    p->count = q->count;
    p->touches = q->touches;
    for (uint32_t k = 0; k < q->count; k++) memcpy(p->key[k], q->op[k].key, sizeof p->key[k]);
    char *state = storages_of(p);
    for (uint32_t k = 0; k < q->touches; k++) state[k] = state_of(&q->touched[q->queued[k]]);
    return p;
}

void cot__outline_end(cot__outline *p, const cot__pending *q) {
    step *s = steps_of(p);
    p->lives = q->count;
    for (uint32_t k = 0; k < q->count; k++)
        s[k] = (step){q->op[k].number, (uint16_t)q->op[k].group, q->moves[k]};
}

size_t cot__outlines_bytes(const cot__pending *q) {
    size_t bytes = 0;
    for (int k = 0; k < COT__OUTLINES; k++)
        if (q->outline[k]) bytes += cot__cache_takes(q->outline[k]->room);
    return bytes;
}

void cot__outlines_free(cot__pending *q) {
    for (int k = 0; k < COT__OUTLINES; k++)
        if (q->outline[k]) cot__free(&q->t->al, q->outline[k], q->outline[k]->room), q->outline[k] = NULL;
}
