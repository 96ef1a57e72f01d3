/* npz.c: .npz files: a zip archive of .npy files, stored or compressed.
 *
 * What is in the archive its central directory says, at the end of the file; the head that stands
 * before each member is asked only how long it is itself. A member is read as a whole, and its sum
 * checked. */
#include "data/file/listing.h"
#include "data/file/zlib.h"

#include "base/file/bytes.h"

#include <stdlib.h>
#include <string.h>

enum { END = 22, CENTRAL = 46, LOCAL = 30, FAR = 20, FAR_END = 56 };

static uint64_t number(const uint8_t *p, int bytes) { return cot__from_bytes(p, bytes); }

uint32_t cot__crc32(uint32_t crc, const void *bytes, size_t n) {
    uint32_t       table[256];
    const uint8_t *b = bytes;
    for (uint32_t k = 0; k < 256; k++) {
        table[k] = k;
        for (int i = 0; i < 8; i++) table[k] = table[k] >> 1 ^ (table[k] & 1 ? UINT32_C(0xedb88320) : 0);
    }
    crc = ~crc;
    for (size_t i = 0; i < n; i++) crc = crc >> 8 ^ table[(crc ^ b[i]) & 255];
    return ~crc;
}

static bool damaged(const cot__source *s, const char *what, uint64_t at, cot__trouble *t) {
    return cot__trouble_file(t, "%s is truncated or no .npz file: %s at byte %llu", s->path, what,
                             (unsigned long long)at);
}

/* ---- the directory --------------------------------------------------------------------------- */

typedef struct directory {
    uint64_t at, bytes, count;
} directory;

/* Archives beyond 4 GB have a longer end before their end. */
static bool far_end(cot__source *s, uint64_t at, directory *d, cot__trouble *t) {
    uint8_t far[FAR], end[FAR_END];
    if (at < FAR || !cot__source_read(s, at - FAR, far, FAR, t)) return damaged(s, "no far end of it", at, t);
    uint64_t place = number(far + 8, 8);
    if (memcmp(far, "PK\6\7", 4) != 0 || s->size < FAR_END || place > s->size - FAR_END)
        return damaged(s, "no far end of it", at - FAR, t);
    if (!cot__source_read(s, place, end, FAR_END, t)) return false;
    if (memcmp(end, "PK\6\6", 4) != 0) return damaged(s, "no far end of it", place, t);
    *d = (directory){number(end + 48, 8), number(end + 40, 8), number(end + 32, 8)};
    return true;
}

/* The end of an archive is its last 22 bytes, unless a comment follows them. */
static bool find_directory(cot__source *s, directory *d, cot__trouble *t) {
    uint8_t tail[END + 1024];
    size_t  n = s->size < sizeof tail ? (size_t)s->size : sizeof tail;
    if (!cot__source_read(s, s->size - n, tail, n, t)) return false;
    for (size_t back = END; back <= n; back++) {
        const uint8_t *p = tail + n - back;
        if (memcmp(p, "PK\5\6", 4) != 0 || number(p + 20, 2) + END != back) continue;
        uint64_t at = s->size - back;
        *d          = (directory){number(p + 16, 4), number(p + 12, 4), number(p + 10, 2)};
        if ((d->at == UINT32_MAX || d->bytes == UINT32_MAX || d->count == UINT16_MAX) && !far_end(s, at, d, t))
            return false;
        if (d->at > at || d->bytes > at - d->at || d->count > d->bytes / CENTRAL)
            return damaged(s, "a directory that is not there", at, t);
        return true;
    }
    return damaged(s, "no end of an archive", s->size, t);
}

/* Numbers that did not fit into four bytes stand in an extra field, in this order. */
static void widen(const uint8_t *extra, size_t n, uint64_t *size, uint64_t *packed, uint64_t *at) {
    while (n >= 4) {
        size_t bytes = (size_t)number(extra + 2, 2);
        if (bytes > n - 4) return;
        if (number(extra, 2) == 1) {
            uint64_t      *all[] = {size, packed, at};
            const uint8_t *p = extra + 4, *end = p + bytes;
            for (int k = 0; k < 3; k++)
                if (*all[k] == UINT32_MAX && end - p >= 8) *all[k] = number(p, 8), p += 8;
        }
        extra += 4 + bytes, n -= 4 + bytes;
    }
}

/* One line of the directory, of which `left` bytes are there; returns its length, 0 after a
 * failure. */
static size_t take_member(cot__source *s, cot__tensors *l, const uint8_t *p, size_t left, uint64_t at,
                          cot__trouble *t) {
    if (left < CENTRAL || memcmp(p, "PK\1\2", 4) != 0) return damaged(s, "no member of the archive", at, t);
    size_t   name = (size_t)number(p + 28, 2), extra = (size_t)number(p + 30, 2);
    size_t   all    = CENTRAL + name + extra + (size_t)number(p + 32, 2);
    uint64_t method = number(p + 10, 2), packed = number(p + 20, 4), size = number(p + 24, 4), head = number(p + 42, 4);
    uint8_t  local[LOCAL];
    if (all > left) return damaged(s, "a member that is cut short", at, t);
    widen(p + CENTRAL + name, extra, &size, &packed, &head);
    const char *text = (const char *)p + CENTRAL;
    if (name < 4 || memcmp(text + name - 4, ".npy", 4) != 0 || memchr(text, 0, name))
        return cot__trouble_file(t, "%s is no .npz file: its member %.*s, at byte %llu, is no .npy file", s->path,
                                 name < 100 ? (int)name : 100, text, (unsigned long long)at);
    if ((method != 0 && method != 8) || (number(p + 8, 2) & 1))
        return cot__trouble_file(t, "%s: the member %.*s is packed by method %llu; 0 and 8 can be read", s->path,
                                 name < 100 ? (int)name : 100, text, (unsigned long long)method);
    if (s->size < LOCAL || head > s->size - LOCAL || !cot__source_read(s, head, local, LOCAL, t))
        return damaged(s, "a member that is not there", at, t);
    uint64_t begin = head + LOCAL + number(local + 26, 2) + number(local + 28, 2);
    if (memcmp(local, "PK\3\4", 4) != 0 || begin > s->size || packed > s->size - begin ||
        (method ? size > cot__inflate_most((size_t)packed) : size != packed))
        return damaged(s, "a member that is not there, or as long as it says,", at, t);
    cot__tensor_entry *e = cot__tensors_add(l, cot__keep_text(&l->pool, text, name - 4));
    if (!e) return cot__trouble_memory(t);
    e->place.at  = begin;
    e->end       = begin + packed;
    e->is_member = true, e->is_packed = method == 8;
    e->member_bytes = size;
    e->crc          = (uint32_t)number(p + 16, 4);
    return all;
}

/* ---- members --------------------------------------------------------------------------------- */

bool cot__npz_member(cot__source *s, const cot__tensor_entry *e, const cot_allocator *al, cot__source *unpacked,
                     cot__trouble *t) {
    size_t packed = (size_t)(e->end - e->place.at), size = (size_t)e->member_bytes, made = size;
    *unpacked = (cot__source){.path = s->path, .size = e->member_bytes};
    if (al) unpacked->al = *al;
    uint8_t *out  = size < PTRDIFF_MAX ? cot__alloc(al, size + 1) : NULL;
    uint8_t *in   = e->is_packed && out ? cot__alloc(al, packed + 1) : out;
    bool     fine = (in && out) || cot__trouble_memory_for(t, size);
    fine          = fine && cot__source_read(s, e->place.at, in, packed, t);
    if (fine && e->is_packed) {
        cot__inflated how = cot__inflate(in, packed, false, out, size + 1, &made);
        fine              = how == COT__INFLATE_FINE || cot__inflate_trouble(how, s->path, t);
    }
    if (fine && (made != size || cot__crc32(0, out, size) != e->crc))
        fine = cot__trouble_file(
            t, "%s was altered: the sum of its member %.100s.npy, at bytes %llu to %llu, does not fit", s->path,
            e->name, (unsigned long long)e->place.at, (unsigned long long)e->end);
    if (e->is_packed && in) cot__free(al, in, packed + 1);
    unpacked->memory = unpacked->own = out;
    unpacked->own_room               = size + 1;
    if (!fine) cot__source_close(unpacked);
    return fine;
}

/* A member that is a text stands beside the tensors. */
static bool add_pair(cot__tensors *l, const char *key, const char *text, cot__trouble *t) {
    const char    *copy  = cot__keep_text(&l->pool, text, strlen(text));
    cot_text_pair *grown = cot__keep_grow(&l->pool, l->pairs, l->pair_count, &l->pair_room, sizeof *grown);
    if (!copy || !grown) return cot__trouble_memory(t);
    l->pairs               = grown;
    grown[l->pair_count++] = (cot_text_pair){key, copy};
    return true;
}

/* The head of a member says what it holds. The whole member is read for it: so a listing exists
 * only where all sums fit. */
static bool describe(cot__source *s, cot__tensors *l, cot__tensor_entry *e, bool *is_text, cot__trouble *t) {
    cot__source        member;
    cot__element_place place;
    char               text[COT__NPY_TEXT + 1];
    if (!cot__npz_member(s, e, &l->pool.al, &member, t)) return false;
    bool fine = cot__npy_text(&member, text, is_text, t);
    if (fine) fine = *is_text ? add_pair(l, e->name, text, t) : cot__npy_place(&member, &place, t);
    cot__source_close(&member);
    if (fine && *is_text) return true;
    if (!fine) return false;
    place.at = e->place.at;
    e->place = place;
    return true;
}

static int by_place(const void *a, const void *b) {
    const cot__tensor_entry *x = *(cot__tensor_entry *const *)a, *y = *(cot__tensor_entry *const *)b;
    return x->place.at < y->place.at ? -1 : x->place.at > y->place.at;
}

/* Members that share bytes would be unpacked from them again and again: a small file could take
 * hours. */
static bool lie_apart(const cot__source *s, cot__tensors *l, cot__trouble *t) {
    cot__tensor_entry **sorted = cot__keep_take(&l->pool, l->n * sizeof(cot__tensor_entry *));
    if (!sorted) return cot__trouble_memory(t);
    for (size_t k = 0; k < l->n; k++) sorted[k] = &l->entries[k];
    if (l->n) qsort(sorted, l->n, sizeof *sorted, by_place);
    for (size_t k = 1; k < l->n; k++)
        if (sorted[k]->place.at < sorted[k - 1]->end)
            return cot__trouble_file(t, "%s: the member %.100s.npy overlaps another", s->path, sorted[k]->name);
    return true;
}

bool cot__npz_list(cot__source *s, cot__tensors *l, cot__trouble *t) {
    directory d;
    if (!find_directory(s, &d, t)) return false;
    uint8_t *lines = cot__alloc(&l->pool.al, (size_t)d.bytes);
    if (!lines) return cot__trouble_memory_for(t, d.bytes);
    bool   fine = cot__source_read(s, d.at, lines, (size_t)d.bytes, t);
    size_t at   = 0;
    for (uint64_t k = 0; fine && k < d.count; k++) {
        size_t n = take_member(s, l, lines + at, (size_t)d.bytes - at, d.at + at, t);
        fine     = n > 0;
        at += n;
    }
    cot__free(&l->pool.al, lines, (size_t)d.bytes);
    fine = fine && lie_apart(s, l, t);
    size_t kept = 0;
    bool   is_text;
    for (size_t k = 0; fine && k < l->n; k++) {
        fine = describe(s, l, &l->entries[k], &is_text, t);
        if (fine && !is_text) l->entries[kept++] = l->entries[k];
    }
    if (fine) l->n = kept;
    return fine;
}
