/* memory.c: the memory of a tape: the arena of side records, counted storages, stores of folders.
 *
 * Invariant: everything a rewind must free is reachable from a counter in a mark: chunks of the
 * arena, the list of storages, the list of tensor leaves. Nothing here walks nodes. */
#include "tape/tape.h"

#include "backend/cpu/table/cpu.h"
#include "base/poison.h"

#include <errno.h>
#include <string.h>

/* ---- the arena: shapes, attributes, names ---------------------------------------------------- */

enum { FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 16, LEAST_CHUNK = 1024 };

/* Chunks double, because a limit may come later, under which a large one would be most of a small
 * tape. */
static size_t chunk_bytes(const cot_tape *t) {
    size_t limit = t->cache.limit, before = t->arena ? t->arena->size : 0;
    size_t want = limit ? limit / 16 : before < FIRST_CHUNK / 2 ? FIRST_CHUNK : 2 * before;
    return want > LARGEST_CHUNK ? LARGEST_CHUNK : want < LEAST_CHUNK ? LEAST_CHUNK : want;
}

void *cot__arena(cot_tape *t, size_t bytes, const char *op) {
    size_t asked = bytes;
    bytes = (bytes + 15) & ~(size_t)15;
    cot__chunk *c = t->arena;
    if (UNLIKELY(!c || c->size - c->used < bytes)) {
        size_t chunk = chunk_bytes(t) - 64, size = bytes > chunk ? bytes : chunk;
        cot__memory_expect(t, size);
        cot__chunk *fresh = cot__alloc(&t->al, sizeof *fresh + size);
        if (!fresh) {
            cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for shapes and attributes", op, size);
            return NULL;
        }
        *fresh = (cot__chunk){.prev = c, .size = size};
        t->arena = c = fresh;
        cot__poison(c->align, size);
    }
    void *p = (char *)c->align + c->used;
    c->used += bytes;
    cot__unpoison(p, asked);
    cot__unwritten(p, bytes);
    return p;
}

cot__attr *cot__attr_make(cot_tape *t, const char *op, int nints, const int64_t *ints, int nargs,
                          const uint32_t *args) {
    cot__attr *a = cot__arena(t, sizeof *a + (size_t)nints * sizeof *ints + (size_t)nargs * sizeof *args, op);
    if (!a) return NULL;
    *a = (cot__attr){.nargs = (uint32_t)nargs, .nints = (uint32_t)nints};
    for (int i = 0; i < nints; i++) a->ints[i] = ints ? ints[i] : 0;
    a->args = (uint32_t *)(a->ints + nints);
    if (args && nargs) memcpy(a->args, args, (size_t)nargs * sizeof *args);
    return a;
}

/* ---- storages -------------------------------------------------------------------------------- */

#define ALIGNMENT 64

/* The size of the allocation that a storage is in: its header, and behind it the payload, if the
 * storage owns one on the host. */
static size_t block_bytes(const cot__storage *s) {
    if ((s->backend->alloc && !s->borrowed) || s->block || s->dropped) return sizeof *s;
    return sizeof *s + ALIGNMENT + (s->borrowed ? 0 : s->bytes);
}

void *cot__device_alloc(cot_tape *t, size_t bytes) {
    return t->backend->alloc ? t->backend->alloc(&t->al, bytes) : cot__alloc(&t->al, bytes);
}

void cot__device_free(cot_tape *t, void *memory, size_t bytes) {
    if (!memory) return;
    if (t->backend->free) t->backend->free(&t->al, memory, bytes);
    else cot__free(&t->al, memory, bytes);
}

static cot__storage *no_memory(cot_tape *t, size_t bytes, const char *op) {
    cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for a tensor", op, bytes);
    return NULL;
}

/* The header is on the host, the payload on the device of the tape. */
static cot__storage *create_apart(cot_tape *t, size_t bytes, const char *op) {
    cot__storage *s = cot__alloc(&t->al, sizeof *s);
    void         *data = s ? t->backend->alloc(&t->al, bytes) : NULL;
    if (!data) {
        cot__free(&t->al, s, s ? sizeof *s : 0);
        return no_memory(t, bytes, op);
    }
    *s = (cot__storage){.refs = 1, .backend = t->backend, .bytes = bytes, .data = data,
                        .saver_version = UINT32_MAX, .writer = COT__NONE, .maker = COT__NONE, .owner = COT__NONE};
    t->storages.bytes += (int64_t)bytes;
    return s;
}

/* The bytes around the payload, of a room that holds it. The payload itself is not touched: it may
 * be address space that nobody has written, and what the sanitizer keeps of it would be memory. */
static void around(void (*mark)(const void *, size_t), const cot__storage *s, const void *room, size_t bytes) {
    const char *from = room, *data = s->data;
    mark(from, (size_t)(data - from));
    mark(data + s->bytes, (size_t)(from + bytes - data) - s->bytes);
}

/* ---- elements that may be dropped ------------------------------------------------------------ */

bool cot__payload_create(cot_tape *t, cot__storage *s) {
    size_t room = s->bytes + ALIGNMENT;
    s->block = cot__alloc(&t->al, room);
    if (!s->block) return false;
    s->data = (void *)(((uintptr_t)s->block + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1));
    around(cot__poison, s, s->block, room);
    t->memory.dropped -= s->dropped;
    s->dropped = false;
    t->storages.bytes += (int64_t)s->bytes;
    return true;
}

void cot__payload_drop(cot_tape *t, cot__storage *s) {
    around(cot__unpoison, s, s->block, s->bytes + ALIGNMENT);
    cot__free(&t->al, s->block, s->bytes + ALIGNMENT);
    s->block = s->data = NULL;
    s->dropped = true;
    t->memory.dropped++;
    t->storages.bytes -= (int64_t)s->bytes;
}

/* The elements apart from the header, so that they can go while it stays. */
static cot__storage *create_droppable(cot_tape *t, size_t bytes, const char *op) {
    cot__storage *s = bytes <= SIZE_MAX / 2 ? cot__alloc(&t->al, sizeof *s) : NULL;
    if (!s) return no_memory(t, bytes, op);
    *s = (cot__storage){.refs = 1, .backend = &cot__cpu_backend, .bytes = bytes,
                        .saver_version = UINT32_MAX, .writer = COT__NONE, .maker = COT__NONE, .owner = COT__NONE};
    if (cot__payload_create(t, s)) return s;
    cot__free(&t->al, s, sizeof *s);
    return no_memory(t, bytes, op);
}

bool cot__storage_share(cot_tape *t, cot__storage *s) {
    s->read_at = t->memory.clock;
    if (UNLIKELY(s->dropped) && !cot__make_again(t, s)) return false;
    /* an adjoint that lies there is added to, so the store must have read it */
    if (UNLIKELY(s->stored.errand)) cot__memory_settle(s);
    s->refs++;
    return true;
}

/* Header and payload share one allocation. */
static cot__storage *create_on_host(cot_tape *t, size_t bytes, const char *op) {
    size_t        block = bytes <= SIZE_MAX / 2 ? sizeof(cot__storage) + ALIGNMENT + bytes : 0;
    cot__storage *s = block ? cot__alloc(&t->al, block) : NULL;
    if (!s) return no_memory(t, bytes, op);
    void *data = (void *)(((uintptr_t)(s + 1) + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1));
    *s = (cot__storage){.refs = 1, .backend = &cot__cpu_backend, .bytes = bytes, .data = data,
                        .saver_version = UINT32_MAX, .writer = COT__NONE, .maker = COT__NONE, .owner = COT__NONE};
    t->storages.bytes += (int64_t)bytes;
    around(cot__poison, s, s + 1, block - sizeof *s);
    return s;
}

cot__storage *cot__storage_create(cot_tape *t, size_t bytes, const char *op) {
    if (UNLIKELY(t->memory.on)) {
        cot__memory_expect(t, bytes);
        if (!t->backend->alloc && bytes) return create_droppable(t, bytes, op);
    }
    return UNLIKELY(t->backend->alloc) ? create_apart(t, bytes, op) : create_on_host(t, bytes, op);
}

cot__storage *cot__storage_create_aside(cot_tape *t, size_t bytes, const char *op) {
    if (UNLIKELY(t->backend->alloc)) return create_apart(t, bytes, op);
    t->cache.beside = true;
    cot__storage *s = create_on_host(t, bytes, op);
    t->cache.beside = false;
    if (s) s->aside = true;
    return s;
}

/* The elements of a storage, with its header where they are one. */
static size_t aside_bytes(const cot__storage *s) { return s->block ? s->bytes + ALIGNMENT : block_bytes(s); }

/* How much of a device a storage takes, its backend alone knows: it counts wholly. */
void cot__storage_set_aside(cot_tape *t, cot__storage *s) {
    if (s->aside || s->borrowed || s->backend->alloc) return;
    s->aside = true;
    cot__cache_set_aside(&t->cache, aside_bytes(s), true);
}

cot__storage *cot__storage_wrap(cot_tape *t, void *memory, size_t bytes, const char *op) {
    cot__storage *s = create_on_host(t, 0, op);
    if (!s) return NULL;
    s->data = memory;
    s->bytes = bytes;
    s->borrowed = true;
    return s;
}

/* ---- the stores of folders ------------------------------------------------------------------- */

cot__store *cot__store_of(cot_tape *t, const char *folder, const char *op) {
    for (cot__store *s = t->memory.stores; s; s = *cot__store_next(s))
        if (!strcmp(cot__store_folder(s), folder) && !cot__store_is_broken(s)) return s;
    /* not of the limited memory: what a store asks for must not make room by the store */
    cot__store *s = cot__store_open(&t->cache.below, folder);
    if (!s) {
        if (errno == ENOMEM) cot__fail(t, COT_MEMORY, "[%s] out of memory: no store for %s", op, folder);
        else cot__fail(t, COT_VALUE, "[%s] a file in %s could not be made: %s", op, folder, strerror(errno));
        return NULL;
    }
    *cot__store_next(s) = t->memory.stores;
    return t->memory.stores = s;
}

void cot__stores_close(cot_tape *t) {
    while (t->memory.stores) {
        cot__store *s = t->memory.stores;
        t->memory.stores = *cot__store_next(s);
        cot__store_close(s);
    }
}

cot__storage *cot__storage_in_store(cot_tape *t, size_t bytes, size_t least, const char *folder, const char *op) {
    cot__store *store = cot__store_of(t, folder, op);
    cot__extent place = {0};
    if (!store) return NULL;
    while (!cot__extent_take(store, bytes, &place) && bytes > least) /* a smaller one may fit */
        bytes = bytes / 2 > least ? bytes / 2 : least;
    if (!place.store) {
        cot__fail(t, COT_MEMORY, "[%s] there is no room for %zu bytes in a file in %s: %s", op, bytes, folder,
                  strerror(errno));
        return NULL;
    }
    cot__storage *s = cot__storage_wrap(t, NULL, 0, op);
    if (s) s->stored = place;
    else cot__extent_give(&place);
    return s;
}

void cot__storage_release(cot_tape *t, cot__storage *s) {
    if (!s) return;
    if (--s->refs > 0) {
        if (UNLIKELY(s->refs == s->gradients)) cot__storage_set_aside(t, s);
        return;
    }
    if (UNLIKELY(s->stored.store)) {
        cot__extent_give(&s->stored);
        if (s->dropped && s->block) s->dropped = false, t->memory.dropped--; /* they were coming */
    }
    if (UNLIKELY(s->touched) && cot__pending_keeps(t, s)) return;
    if (UNLIKELY(s->packed)) cot__pack_end(t, s);
    if (s->aside) cot__cache_set_aside(&t->cache, aside_bytes(s), false);
    if (s->block) cot__payload_drop(t, s);
    if (s->dropped) t->memory.dropped--;
    else if (!s->borrowed) t->storages.bytes -= (int64_t)s->bytes;
    if (s->backend->free && !s->borrowed) s->backend->free(&t->al, s->data, s->bytes);
    if (!s->borrowed && block_bytes(s) > sizeof *s) around(cot__unpoison, s, s + 1, block_bytes(s) - sizeof *s);
    cot__free(&t->al, s, block_bytes(s));
}

bool cot__storage_keep(cot_tape *t, cot__storage *s, const char *op) {
    void *list = t->storages.list;
    if (!cot__grow(t, &list, &t->storages.capacity, t->storages.count, sizeof *t->storages.list, op)) {
        cot__storage_release(t, s);
        return false;
    }
    t->storages.list = list;
    t->storages.list[t->storages.count++] = s;
    return true;
}

/* ---- kept objects ---------------------------------------------------------------------------- */

bool cot__tape_keep(cot_tape *t, void *object, void (*release)(void *object), const char *op) {
    void *list = t->kept.list;
    if (!cot__grow(t, &list, &t->kept.capacity, t->kept.count, sizeof *t->kept.list, op)) return false;
    t->kept.list = list;
    t->kept.list[t->kept.count++] = (cot__kept_object){object, release};
    return true;
}

void cot__release_kept(cot_tape *t, uint32_t count) {
    while (t->kept.count > count) {
        cot__kept_object *k = &t->kept.list[--t->kept.count];
        k->release(k->object);
    }
}
