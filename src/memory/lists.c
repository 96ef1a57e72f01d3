/* lists.c: the growing lists of a tape: nodes, slots of the sweep, marks of flows.
 *
 * A tape of scalars is hardly more than these. Where it has a limit and a spill folder, a list that
 * takes more than an eighth of the limit lies in a file there (base/file/mapped.h) and is used as
 * before: nobody asks where a node lies. The system brings the pages that are read or written.
 * Whoever walks over a list, or makes it longer, lets them go again after each *window*, a
 * sixteenth of the limit (cot__lists_leave); so a window of each list counts as memory, and the
 * rest as spilled. A walk in the order of the tape has no more in memory; operands that lie far
 * away come page by page, and stay to the end of the window.
 *
 * A disk that is full leaves the list in memory, or brings it back there, where the limit lets
 * it. A forked child that makes an inherited list longer copies it to a file of its own. */
#define _GNU_SOURCE /* madvise */
#include "memory/memory.h"

#include <errno.h>
#include <string.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

/* ---- in files -------------------------------------------------------------------------------- */

enum { LEAST_WINDOW = 4096, MUCH = 1 << 16 };

/* A longer list goes to a file. */
static size_t most_in_memory(const cot_tape *t) {
    if (LIKELY(!t->memory.store)) return SIZE_MAX;
    return t->cache.limit ? t->cache.limit / 8 : cot__spill_always ? LEAST_WINDOW : SIZE_MAX;
}

static size_t in_windows(const cot_tape *t, size_t bytes) {
    return (bytes + t->memory.window - 1) / t->memory.window * t->memory.window;
}

void cot__lists_go(cot_tape *t) {
    for (cot__mapped *m = t->memory.mapped; m; m = m->next) cot__mapped_leave(m);
}

void cot__lists_at(const cot_tape *t, uint32_t i) {
    if (i % cot__window(t) == 0) cot__lists_go((cot_tape *)(uintptr_t)t);
}

static void tell_of_trouble(cot_tape *t) {
    if (errno == ENOMEM) return; /* the process has no memory, or no addresses */
    cot__store_blame(t->memory.store, errno);
    cot__note(t, "[spill] the disk of %s failed: %s; lists of the tape stay in memory",
              cot__store_folder(t->memory.store), strerror(errno));
}

static void count(cot_tape *t, cot__mapped *m, size_t bytes) {
    cot__cache_count(&t->cache, m->counted, bytes);
    m->counted = bytes;
}

static void end(cot_tape *t, cot__mapped *m) {
    cot__mapped **at = &t->memory.mapped;
    while (*at && *at != m) at = &(*at)->next;
    if (*at) *at = m->next;
    count(t, m, 0);
    cot__mapped_close(m);
}

/* Ahead by an eighth, if the disk has so much. */
static bool grow(cot_tape *t, cot__mapped *m, size_t bytes) {
    size_t least = in_windows(t, bytes), more = in_windows(t, m->bytes + m->bytes / 8);
    if (bytes <= m->bytes || (more > least && cot__mapped_grow(m, more)) || cot__mapped_grow(m, least)) return true;
    if (!m->inherited) tell_of_trouble(t);
    return false;
}

static void copy(cot_tape *t, void *to, const void *from, size_t bytes) {
    for (size_t at = 0, part; at < bytes; at += part) {
        part = bytes - at < t->memory.window ? bytes - at : t->memory.window;
        memcpy((char *)to + at, (const char *)from + at, part);
        cot__lists_leave(t);
    }
}

/* A list of `bytes` in a file, whose first are a copy of another list, which the caller frees:
 * `gone` bytes that count. NULL: there is none. */
static cot__mapped *in_a_file(cot_tape *t, const void *from, size_t used, size_t gone, size_t bytes) {
    bool room = cot__cache_room(&t->cache, t->memory.window);
    if (!room && gone < t->memory.window) return NULL;
    /* not of the limited memory, as the store */
    cot__mapped *m = cot__mapped_open(&t->cache.below, cot__store_folder(t->memory.store));
    if (!m) return tell_of_trouble(t), NULL;
    if (!grow(t, m, bytes)) return cot__mapped_close(m), NULL;
    m->next = t->memory.mapped;
    t->memory.mapped = m;
    if (room) count(t, m, t->memory.window);
    copy(t, m->data, from, used);
    return m;
}

/* ---- arrays that may become huge: they pass the cache by and keep what they have ------------- */

/* From this size on an array moves to reserved address space: growing it then costs page faults
 * only. */
#define RESERVE_FROM ((size_t)1 << 21)
#define RESERVE_BYTES ((size_t)1 << (sizeof(size_t) > 4 ? 37 : 30))

#if defined(__linux__) && UINTPTR_MAX > UINT32_MAX
/* Pages appear when touched. Huge pages, because at 10^8 nodes page faults are most of the cost. */
static void *reserve_address_space(size_t bytes) {
    size_t huge = (size_t)2 << 20;
    char  *p = mmap(NULL, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    char *aligned = (char *)(((uintptr_t)p + huge - 1) & ~(uintptr_t)(huge - 1));
    if (aligned > p) munmap(p, (size_t)(aligned - p));
    munmap(aligned + bytes, (size_t)(p + huge - aligned));
#ifdef MADV_HUGEPAGE
    madvise(aligned, bytes, MADV_HUGEPAGE);
#endif
    return aligned;
}
static void release_address_space(void *p, size_t bytes) { munmap(p, bytes); }
/* Pages behind the first `used` bytes go back; they are zero when they are touched again. */
static void empty_address_space(void *p, size_t used, size_t bytes) {
    used = (used + MUCH - 1) / MUCH * MUCH; /* a multiple of pages */
    madvise((char *)p + used, bytes - used, MADV_DONTNEED);
}
#else
static void *reserve_address_space(size_t bytes) { (void)bytes; return NULL; }
static void  empty_address_space(void *p, size_t used, size_t bytes) { (void)p, (void)used, (void)bytes; }
static void  release_address_space(void *p, size_t bytes) { (void)p, (void)bytes; }
#endif

void cot__array_free(cot_tape *t, cot__array *a) {
    if (a->mapped) end(t, a->mapped);
    else if (a->reserved) release_address_space(a->data, a->bytes);
    else {
        cot__free(&t->cache.below, a->data, a->bytes);
        cot__cache_count(&t->cache, a->bytes, 0);
    }
    *a = (cot__array){0};
}

static bool reserve(cot_tape *t, cot__array *a) {
    void *p = reserve_address_space(RESERVE_BYTES);
    if (!p) return false;
    if (a->bytes) memcpy(p, a->data, a->bytes);
    cot__array_free(t, a);
    *a = (cot__array){.data = p, .bytes = RESERVE_BYTES, .reserved = true};
    return true;
}

/* Also from one file to another: a forked child cannot make those of its parent longer. */
static bool move_to_file(cot_tape *t, cot__array *a, size_t used, size_t bytes) {
    size_t gone = a->mapped ? a->mapped->counted : a->reserved ? 0 : a->bytes;
    cot__memory_expect(t, t->memory.window);
    cot__mapped *m = in_a_file(t, a->data, used, gone, bytes);
    if (!m) return false;
    cot__array_free(t, a);
    count(t, m, t->memory.window);
    *a = (cot__array){.data = m->data, .bytes = in_windows(t, bytes), .mapped = m};
    return true;
}

/* Recording comes here at the end of each window. */
static bool widen(cot_tape *t, cot__array *a, size_t bytes) {
    if (!grow(t, a->mapped, in_windows(t, bytes))) return false;
    a->data = a->mapped->data;
    a->bytes = in_windows(t, bytes);
    cot__lists_leave(t);
    return true;
}

/* There is no memory: of the limit, or of the system. In a folder a list has room if the limit has
 * some for its windows. Always false. */
static bool refuse(cot_tape *t, bool by_limit) {
    t->cache.refused = by_limit;
    t->memory.list_refused = by_limit && !t->memory.store && t->cache.limit / 16 >= LEAST_WINDOW;
    return false;
}

/* Where the disk has no more room. */
static bool back_to_memory(cot_tape *t, cot__array *a, size_t bytes) {
    if (!cot__cache_room(&t->cache, bytes)) return refuse(t, true);
    void *p = cot__alloc(&t->cache.below, bytes);
    if (!p) return refuse(t, false);
    copy(t, p, a->data, a->bytes);
    cot__array_free(t, a);
    cot__cache_count(&t->cache, 0, bytes);
    *a = (cot__array){.data = p, .bytes = bytes};
    return true;
}

/* How large it should be next. Where it takes much of a limit, twice as much would soon be more
 * than there is. */
static size_t next_bytes(const cot_tape *t, const cot__array *a) {
    bool is_much = t->cache.limit && a->bytes > t->cache.limit / 16;
    return a->bytes + (is_much ? a->bytes / 8 : a->bytes);
}

bool cot__array_reserve(cot_tape *t, cot__array *a, size_t bytes) {
    if (bytes <= a->bytes) return true;
    if (a->mapped && widen(t, a, bytes)) return true;
    if (a->mapped && a->mapped->inherited && move_to_file(t, a, a->bytes, bytes)) return true;
    if (a->mapped) return back_to_memory(t, a, bytes);
    if (bytes > most_in_memory(t) && move_to_file(t, a, a->bytes, bytes)) return true;
    /* A user's allocator is asked for everything; only the default one may go around malloc. */
    bool may_reserve = !t->cache.below.alloc && !t->cache.limit; /* a limit counts what grows */
    if (!a->reserved && may_reserve && bytes >= RESERVE_FROM && bytes <= RESERVE_BYTES && reserve(t, a)) return true;
    if (a->reserved) return refuse(t, false);
    size_t next = next_bytes(t, a), want = next > bytes ? next : bytes;
    cot__memory_expect(t, want - a->bytes);
    if (!cot__cache_room(&t->cache, want - a->bytes)) return refuse(t, true);
    void *p = cot__resize(&t->cache.below, a->data, a->bytes, want);
    if (!p) return refuse(t, false);
    cot__cache_count(&t->cache, a->bytes, want);
    *a = (cot__array){.data = p, .bytes = want};
    return true;
}

/* ---- other long lists ------------------------------------------------------------------------ */

static cot__mapped *mapped_at(const cot_tape *t, const void *list) {
    cot__mapped *m = list ? t->memory.mapped : NULL;
    while (m && m->data != list) m = m->next;
    return m;
}

void cot__list_end(cot_tape *t, void *list, size_t bytes) {
    cot__mapped *m = mapped_at(t, list);
    if (m) end(t, m);
    else cot__free(&t->al, list, bytes);
}

void *cot__list_resize(cot_tape *t, void *list, size_t old_size, size_t new_size) {
    cot__mapped *m = mapped_at(t, list), *file = NULL;
    if (m && grow(t, m, new_size)) return m->data;
    if (m ? m->inherited : new_size > most_in_memory(t))
        file = in_a_file(t, list, old_size, m ? m->counted : old_size, new_size);
    if (file) {
        cot__list_end(t, list, old_size);
        count(t, file, t->memory.window);
        return file->data;
    }
    if (!m) return list ? cot__resize(&t->al, list, old_size, new_size) : cot__alloc(&t->al, new_size);
    void *p = cot__alloc(&t->al, new_size);
    if (!p) return NULL;
    copy(t, p, list, old_size);
    end(t, m);
    return p;
}

void *cot__list_new(cot_tape *t, size_t bytes) {
    void *list = cot__list_resize(t, NULL, 0, bytes);
    if (list && !mapped_at(t, list)) memset(list, 0, bytes);
    return list;
}

void cot__list_wipe(cot_tape *t, void *at, size_t bytes) {
    size_t part = t->memory.window;
    for (char *p = at; bytes; p += part, bytes -= part) {
        part = part < bytes ? part : bytes;
        memset(p, 0, part);
        cot__lists_leave(t);
    }
}

typedef void *resizer(cot_tape *t, void *list, size_t old_size, size_t new_size);
static void *in_memory(cot_tape *t, void *list, size_t old_size, size_t new_size) {
    return cot__resize(&t->al, list, old_size, new_size);
}

static bool room_for_one(cot_tape *t, void **data, uint32_t *capacity, size_t element, const char *op,
                         resizer *resize) {
    uint32_t want = *capacity ? *capacity * 2 : COT__GROWS_FROM;
    cot__memory_expect(t, want * element);
    void    *p = want > *capacity ? resize(t, *data, *capacity * element, want * element) : NULL;
    if (!p) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for a list of the tape", op, want * element);
        return false;
    }
    *data = p;
    *capacity = want;
    return true;
}

bool cot__grow(cot_tape *t, void **data, uint32_t *capacity, uint32_t count, size_t element, const char *op) {
    return count < *capacity || room_for_one(t, data, capacity, element, op, in_memory);
}

bool cot__list_grow(cot_tape *t, void **data, uint32_t *capacity, uint32_t count, size_t element, const char *op) {
    return count < *capacity || room_for_one(t, data, capacity, element, op, cot__list_resize);
}

/* ---- rewinds and limits ---------------------------------------------------------------------- */

static void set_capacity(cot_tape *t) {
    size_t capacity = t->node_memory.bytes / sizeof *t->nodes;
    t->nodes = t->node_memory.data;
    t->capacity = capacity < COT__MAX_NODES ? (uint32_t)capacity : COT__MAX_NODES;
    if (t->fast_limit) t->fast_limit = t->capacity;
}

void cot__lists_rewound(cot_tape *t) {
    size_t needed = in_windows(t, t->count * sizeof *t->nodes) + t->memory.window;
    if (!t->node_memory.mapped || t->node_memory.bytes <= needed) return;
    t->node_memory.bytes = needed;
    set_capacity(t);
}

/* Steps of one kind need the same each time; one of another kind may need the room for values. The
 * slots are zero between sweeps. */
static void trim(cot_tape *t, cot__array *a, size_t used) {
    size_t most = t->cache.limit ? t->cache.limit / 64 : MUCH;
    if (a->reserved) empty_address_space(a->data, used, a->bytes);
    if (a->mapped || a->reserved || a->bytes <= used || a->bytes - used <= most) return;
    void *p = cot__resize(&t->cache.below, a->data, a->bytes, used);
    if (used && !p) return;
    cot__cache_count(&t->cache, a->bytes, used);
    *a = (cot__array){.data = p, .bytes = used};
}

void cot__lists_trim(cot_tape *t) {
    if (t->mode.inside || t->mode.body || t->pending.sweeps || t->sweep.asked) return;
    size_t nodes = t->count > COT__FIRST_NODES ? t->count : COT__FIRST_NODES;
    trim(t, &t->node_memory, nodes * sizeof *t->nodes);
    trim(t, &t->sweep.adjoints, 0);
    if (t->sweep.adjoints.reserved) {
        if (t->sweep.zeroed > t->sweep.most_zeroed) t->sweep.most_zeroed = t->sweep.zeroed;
        t->sweep.zeroed = 0;
    } else if (t->sweep.zeroed > t->sweep.adjoints.bytes) t->sweep.zeroed = t->sweep.adjoints.bytes;
    set_capacity(t);
}

/* Reserved address space does not count; under a limit what is used of it must. Where there is no
 * memory to move it to, it stays. */
static void leave_reserve(cot_tape *t, cot__array *a, size_t used) {
    void *p = used ? cot__alloc(&t->cache.below, used) : NULL;
    if (used && !p) return;
    copy(t, p, a->data, used);
    cot__array_free(t, a);
    cot__cache_count(&t->cache, 0, used);
    *a = (cot__array){.data = p, .bytes = used};
}

static void move_one(cot_tape *t, cot__array *a, size_t used) {
    if (a->mapped) a->bytes = in_windows(t, used) < a->mapped->bytes ? in_windows(t, used) : a->mapped->bytes;
    else if (used > most_in_memory(t) && move_to_file(t, a, used, used)) return;
    else if (a->reserved && t->cache.limit) leave_reserve(t, a, used);
}

static void limit_one(cot_tape *t, cot__array *a, size_t used) {
    /* what the array has had was told as part of the peak (cot_tape_peak_bytes) */
    int64_t told = cot_tape_peak_bytes(t);
    move_one(t, a, used);
    if (cot_tape_peak_bytes(t) < told) t->cache.peak += (size_t)(told - cot_tape_peak_bytes(t));
}

size_t cot__lists_uncounted(const cot_tape *t) {
    if (t->node_memory.reserved) return t->count * sizeof *t->nodes;
    return t->sweep.adjoints.reserved ? t->sweep.zeroed : 0;
}

void cot__lists_limited(cot_tape *t) {
    size_t part = t->cache.limit / 16 / LEAST_WINDOW * LEAST_WINDOW;
    if (t->cache.limit || !t->memory.window) t->memory.window = part > LEAST_WINDOW ? part : LEAST_WINDOW;
    for (cot__mapped *m = t->memory.mapped; m; m = m->next) count(t, m, t->memory.window);
    limit_one(t, &t->node_memory, t->count * sizeof *t->nodes);
    limit_one(t, &t->sweep.adjoints, t->sweep.zeroed);
    if (!t->node_memory.reserved) set_capacity(t);
}
