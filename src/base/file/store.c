/* store.c: see store.h.
 *
 * Free ranges stand in a list in the order of the file, no two side by side. When there is no
 * memory for one more, the range is forgotten: it is not used again. */
#include "base/file/store.h"
#include "base/file/errands.h"
#include "base/file/nameless.h"

#if defined(__linux__)
#include <errno.h>
#include <string.h>
#include <unistd.h>

typedef struct range { uint64_t at, bytes; } range;

struct cot__store {
    cot_allocator al;
    cot__store   *next;
    int           fd;
    uint64_t      end, size; /* places lie before `end`; the file has `size` bytes */
    bool          full;      /* it can grow no more */
    bool          broken;    /* and this one can write no more */
    int           trouble;   /* errno of the first failure; 0: none. -1: a checksum differs */
    range        *free;
    uint32_t      count, capacity;
    cot__errands *errands;   /* NULL: no thread was needed yet */
    unsigned      forks;     /* of the process that opened it */
    size_t        bytes;     /* of this struct, with the folder's name */
    char          folder[];
};

/* ---- the file -------------------------------------------------------------------------------- */

size_t cot__store_bytes(const char *folder) {
    return sizeof(cot__store) + strlen(folder) + 1 + cot__errands_bytes();
}

cot__store *cot__store_open(const cot_allocator *al, const char *folder) {
    size_t      bytes = sizeof(cot__store) + strlen(folder) + 1;
    cot__store *s = cot__alloc(al, bytes);
    if (!s) return errno = ENOMEM, NULL;
    memset(s, 0, sizeof *s);
    s->al = *al;
    s->bytes = bytes;
    s->forks = cot__forks();
    memcpy(s->folder, folder, bytes - sizeof *s);
    s->fd = cot__nameless_open(folder);
    if (s->fd >= 0) return s;
    int why = errno;
    cot__free(al, s, bytes);
    return errno = why, NULL;
}

void cot__store_close(cot__store *s) {
    if (!s) return;
    cot_allocator al = s->al;
    cot__errands_close(s->errands);
    close(s->fd);
    cot__free(&al, s->free, s->capacity * sizeof *s->free);
    cot__free(&al, s, s->bytes);
}

const char  *cot__store_folder(const cot__store *s) { return s->folder; }
cot__store **cot__store_next(cot__store *s) { return &s->next; }

/* A file is its process's: what a child wrote would lie over what the parent has there. */
static bool is_parents(const cot__store *s) { return s->forks != cot__forks(); }
bool        cot__store_is_broken(const cot__store *s) { return s->broken || is_parents(s); }

const char *cot__store_trouble(const cot__store *s) {
    return !s->trouble ? NULL : s->trouble < 0 ? "its checksum differs" : strerror(s->trouble);
}

static bool failed(cot__store *s, int why) {
    if (!s->trouble) s->trouble = why;
    if (why > 0) errno = why;
    return false;
}

void cot__store_blame(cot__store *s, int why) { failed(s, why); }

static bool grow(cot__store *s, uint64_t size) {
    if (size <= s->size) return true;
    int why = cot__nameless_grow(s->fd, s->size, size);
    if (why) return s->full = true, failed(s, why);
    s->size = size;
    return true;
}

/* ---- places ---------------------------------------------------------------------------------- */

static uint32_t first_fit(const cot__store *s, uint64_t bytes) {
    uint32_t k = 0;
    while (k < s->count && s->free[k].bytes < bytes) k++;
    return k;
}

bool cot__store_has_room(const cot__store *s, size_t bytes) {
    return !cot__store_is_broken(s) && (!s->full || s->end + bytes <= s->size || first_fit(s, bytes) < s->count);
}

static void take_out(cot__store *s, uint32_t k) {
    memmove(s->free + k, s->free + k + 1, (--s->count - k) * sizeof *s->free);
}

bool cot__extent_take(cot__store *s, size_t bytes, cot__extent *p) {
    uint32_t k = first_fit(s, bytes);
    if (cot__store_is_broken(s)) return errno = s->trouble > 0 ? s->trouble : EIO, false;
    *p = (cot__extent){.store = s, .at = s->end, .bytes = bytes};
    if (k < s->count) {
        p->at = s->free[k].at;
        s->free[k].at += bytes;
        s->free[k].bytes -= bytes;
        if (!s->free[k].bytes) take_out(s, k);
        return true;
    }
    if (!grow(s, s->end + bytes)) return p->store = NULL, false;
    s->end += bytes;
    return true;
}

static bool room_for_one(cot__store *s) {
    if (s->count < s->capacity) return true;
    uint32_t more = s->capacity ? 2 * s->capacity : 16;
    range   *list = cot__resize(&s->al, s->free, s->capacity * sizeof *list, more * sizeof *list);
    if (!list) return false;
    s->free = list;
    s->capacity = more;
    return true;
}

/* What is free at the end of the file is no range of the list. */
static void cut_end(cot__store *s) {
    if (s->count && s->free[s->count - 1].at + s->free[s->count - 1].bytes == s->end) s->end = s->free[--s->count].at;
    if (s->end > s->size / 2 || ftruncate(s->fd, (off_t)s->end)) return;
    s->size = s->end;
    s->full = false;
}

void cot__extent_give(cot__extent *p) {
    cot__store *s = p->store;
    range       r = {p->at, p->bytes};
    uint32_t    k = 0;
    if (!s) return;
    cot__extent_finish(p);
    p->store = NULL;
    if (!r.bytes || is_parents(s)) return;
    if (r.at + r.bytes == s->end) {
        s->end = r.at;
        cut_end(s);
        return;
    }
    for (uint32_t high = s->count; k < high;) {
        uint32_t middle = k + (high - k) / 2;
        if (s->free[middle].at < r.at) k = middle + 1;
        else high = middle;
    }
    bool joins_next = k < s->count && r.at + r.bytes == s->free[k].at;
    if (joins_next) s->free[k].at = r.at, s->free[k].bytes += r.bytes;
    if (k > 0 && s->free[k - 1].at + s->free[k - 1].bytes == r.at) {
        s->free[k - 1].bytes += joins_next ? s->free[k].bytes : r.bytes;
        if (joins_next) take_out(s, k);
    } else if (!joins_next && room_for_one(s)) {
        memmove(s->free + k + 1, s->free + k, (s->count++ - k) * sizeof *s->free);
        s->free[k] = r;
    }
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static cot__transfer transfer(const cot__store *s, bool writes, uint64_t at, const void *data, size_t bytes,
                              uint64_t sum) {
    return (cot__transfer){s->fd, writes, at, (void *)(uintptr_t)data, bytes, sum, 0};
}

/* Who fails once to write or to read is not written to any more. */
static bool went_well(cot__store *s, const cot__transfer *x) {
    if (!x->trouble) return true;
    s->broken = true;
    return failed(s, x->trouble);
}

bool cot__store_write(cot__store *s, uint64_t at, const void *data, size_t bytes, uint64_t *sum) {
    cot__transfer x = transfer(s, true, at, data, bytes, 0);
    if (is_parents(s)) return errno = EIO, false;
    cot__transfer_do(&x);
    *sum = x.sum;
    return went_well(s, &x);
}

bool cot__store_read(cot__store *s, uint64_t at, void *data, size_t bytes, uint64_t sum) {
    cot__transfer x = transfer(s, false, at, data, bytes, sum);
    cot__transfer_do(&x);
    return went_well(s, &x);
}

/* ---- by the thread --------------------------------------------------------------------------- */

bool cot__store_hire(cot__store *s) {
    if (cot__store_is_broken(s)) return false;
    if (!s->errands) s->errands = cot__errands_open(&s->al);
    return s->errands != NULL;
}

static bool begin(cot__extent *p, bool writes, const void *data) {
    cot__store   *s = p->store;
    cot__transfer x = transfer(s, writes, p->at, data, p->bytes, p->sum);
    p->errand = cot__store_hire(s) ? cot__errands_begin(s->errands, &x) : 0;
    return p->errand != 0;
}

bool cot__extent_write_behind(cot__extent *p, const void *data) { return begin(p, true, data); }
bool cot__extent_read_ahead(cot__extent *p, void *data) { return begin(p, false, data); }

bool cot__extent_finish(cot__extent *p) {
    if (!p->errand) return true;
    cot__transfer x = cot__errands_finish(p->store->errands, p->errand);
    p->errand = 0;
    p->sum = x.sum;
    return went_well(p->store, &x);
}

bool cot__store_is_idle(const cot__store *s) {
    return !cot__store_is_broken(s) && (!s->errands || cot__errands_are_done(s->errands));
}

#else
/* Other systems have no files without names. */
#include <errno.h>

cot__store *cot__store_open(const cot_allocator *al, const char *folder) {
    return (void)al, (void)folder, errno = ENOSYS, NULL;
}
void         cot__store_close(cot__store *s) { (void)s; }
const char  *cot__store_folder(const cot__store *s) { return (void)s, ""; }
const char  *cot__store_trouble(const cot__store *s) { return (void)s, NULL; }
void         cot__store_blame(cot__store *s, int why) { (void)s, (void)why; }
bool         cot__store_is_broken(const cot__store *s) { return (void)s, true; }
cot__store **cot__store_next(cot__store *s) { return (void)s, NULL; }
size_t       cot__store_bytes(const char *folder) { return (void)folder, 0; }
bool         cot__store_hire(cot__store *s) { return (void)s, false; }
bool cot__extent_take(cot__store *s, size_t bytes, cot__extent *p) { return (void)s, (void)bytes, (void)p, false; }
void cot__extent_give(cot__extent *p) { (void)p; }
bool cot__store_has_room(const cot__store *s, size_t bytes) { return (void)s, (void)bytes, false; }
bool cot__store_write(cot__store *s, uint64_t at, const void *data, size_t bytes, uint64_t *sum) {
    return (void)s, (void)at, (void)data, (void)bytes, (void)sum, false;
}
bool cot__store_read(cot__store *s, uint64_t at, void *data, size_t bytes, uint64_t sum) {
    return (void)s, (void)at, (void)data, (void)bytes, (void)sum, false;
}
bool cot__extent_write_behind(cot__extent *p, const void *data) { return (void)p, (void)data, false; }
bool cot__extent_read_ahead(cot__extent *p, void *data) { return (void)p, (void)data, false; }
bool cot__extent_finish(cot__extent *p) { return (void)p, true; }
bool cot__store_is_idle(const cot__store *s) { return (void)s, false; }
#endif
