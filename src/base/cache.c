/* cache.c: free lists by size. See cache.h. */
#include "base/cache.h"

#include "base/poison.h"

#include <string.h>

enum { LEAST = 64, SLACK = 1 << 20 };

/* The smallest size of the form (8 + step) << shift that holds `size`, and its number. A size that
 * is too large for the lists stays as it is. */
static size_t round_up(size_t size, int *class) {
    /* With the sanitizer nothing is kept, because use after free would go unseen, and nothing is
     * rounded up, because code could read the extra room unseen. */
    if (COT__ADDRESS_SANITIZER) {
        *class = -1;
        return size;
    }
    if (size < LEAST) size = LEAST;
    /* (size - 1) >> shift lies in [8, 16) */
    int    shift = 63 - __builtin_clzll((unsigned long long)(size - 1)) - 3;
    size_t step = ((size - 1) >> shift) + 1;
    *class = (shift - 2) * 8 + (int)step - 9;
    if (*class >= COT__CACHE_CLASSES) {
        *class = -1;
        return size;
    }
    return step << shift;
}

size_t cot__cache_takes(size_t size) {
    int class;
    return round_up(size, &class);
}

static void *next_of(void *block) {
    void *next;
    memcpy(&next, block, sizeof next);
    return next;
}

static size_t size_of(int class) { return (size_t)(class % 8 + 9) << (class / 8 + 2); }

static void *pop(cot__cache *c, int class) {
    void *block = c->free[class];
    if (block) c->free[class] = next_of(block);
    return block;
}

/* Gives blocks back, the largest first, until no more than `most` bytes are held. */
static void shrink(cot__cache *c, size_t most) {
    for (int class = COT__CACHE_CLASSES - 1; class >= 0 && c->held > c->live; class--)
        while (c->held > most && c->free[class]) {
            cot__free(&c->below, pop(c, class), size_of(class));
            c->held -= size_of(class);
        }
}

void cot__cache_trim(cot__cache *c) { shrink(c, 0); }

bool cot__cache_room(cot__cache *c, size_t bytes) {
    if (!c->limit || c->beside || c->held + bytes <= c->limit + c->aside) return true;
    /* what is asked for may be above the limit by itself */
    size_t most = c->limit + c->aside > bytes ? c->limit + c->aside - bytes : 0;
    shrink(c, most);
    if (c->held > most && c->make_room) {
        c->make_room(c->of, bytes);
        shrink(c, most);
    }
    return c->held + bytes <= c->limit + c->aside;
}

static void add_live(cot__cache *c, size_t bytes) {
    c->live += bytes;
    if (c->live > c->most) c->most = c->live;
    if (UNLIKELY(c->beside)) c->aside += bytes;
    if (cot__cache_used(c) > c->peak) c->peak = cot__cache_used(c);
    if (cot__cache_used(c) > c->seen) c->seen = cot__cache_used(c);
}

void cot__cache_count(cot__cache *c, size_t old_size, size_t new_size) {
    c->held += new_size - old_size;
    c->live -= old_size;
    add_live(c, new_size);
}

void cot__cache_set_aside(cot__cache *c, size_t size, bool aside) {
    int    class;
    size_t bytes = round_up(size, &class);
    c->aside = aside ? c->aside + bytes : c->aside - bytes;
}

static void *take(cot__cache *c, size_t size) {
    int    class;
    size_t bytes = round_up(size, &class);
    void  *block = class >= 0 ? pop(c, class) : NULL;
    if (!block && UNLIKELY(c->limit) && !cot__cache_room(c, bytes)) return c->refused = true, NULL;
    if (!block) {
        size_t most = c->live + bytes > c->most ? c->live + bytes : c->most;
        if (c->held + bytes > most + most / 4 + SLACK) shrink(c, most + most / 4 + SLACK - bytes);
        block = cot__alloc(&c->below, bytes);
        if (!block && c->held > c->live) {
            /* memory is short: kept blocks are needed now */
            shrink(c, 0);
            block = cot__alloc(&c->below, bytes);
        }
        if (!block) return c->refused = false, NULL;
        c->held += bytes;
    }
    add_live(c, bytes);
    if (c->set) cot__written(block, bytes);
    else cot__unwritten(block, bytes);
    return block;
}

static void give(cot__cache *c, void *block, size_t size) {
    int    class;
    size_t bytes = round_up(size, &class);
    c->live -= bytes;
    if (class < 0 || UNLIKELY(c->limit && c->held > c->limit + c->aside)) {
        cot__free(&c->below, block, bytes);
        c->held -= bytes;
        return;
    }
    memcpy(block, &c->free[class], sizeof c->free[class]);
    c->free[class] = block;
}

void *cot__cache_alloc(void *cache, void *ptr, size_t old_size, size_t new_size) {
    cot__cache *c = cache;
    int         was, is;
    if (!ptr) return take(c, new_size);
    if (new_size == 0) {
        give(c, ptr, old_size);
        return NULL;
    }
    if (round_up(old_size, &was) == round_up(new_size, &is) && was >= 0) return ptr;
    void *block = take(c, new_size);
    if (!block) return NULL;
    memcpy(block, ptr, old_size < new_size ? old_size : new_size);
    give(c, ptr, old_size);
    return block;
}
