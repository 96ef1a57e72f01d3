/* load.c: loading a program: is the file whole, and of a format that is known? Then its parts are
 * built one after the other, and the program is compared with the file. */
#include "program/file/load.h"
#include "program/file/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

/* ---- the head -------------------------------------------------------------------------------- */

static bool begins_right(const unsigned char *b, size_t size, const cot__caller *caller) {
    size_t n = size < 8 ? size : 8;
    if (n && !memcmp(b, COT__FILE_MAGIC, n)) return true;
    return cot__refuse(caller, COT_VALUE, size ? "this is no program file: it does not begin with COTPROG"
                                               : "this is no program file: it is empty");
}

/* Beginning, length and checksum are the same in all formats, so that of a newer one we know that
 * it is whole. */
static bool is_whole(const unsigned char *b, size_t size, const cot__caller *caller) {
    if (!begins_right(b, size, caller)) return false;
    if (size < COT__FILE_HEAD + COT__FILE_SUM)
        return cot__refuse(caller, COT_VALUE, "this program file is cut short: %llu bytes are there, not even its head",
                           (ull)size);
    uint64_t length = cot__from_bytes(b + 16, 8);
    if (length > size)
        return cot__refuse(caller, COT_VALUE, "this program file is cut short: %llu of %llu bytes are there", (ull)size,
                           (ull)length);
    if (length < size)
        return cot__refuse(caller, COT_VALUE,
                           "this program file goes on after its end: it has %llu bytes, %llu are there", (ull)length,
                           (ull)size);
    return cot__checksum(0, b, size - COT__FILE_SUM) == cot__from_bytes(b + size - COT__FILE_SUM, COT__FILE_SUM) ||
           cot__refuse(caller, COT_VALUE, "this program file was altered: its checksum does not fit");
}

static bool is_known(const unsigned char *b, const cot__caller *caller) {
    uint64_t format = cot__from_bytes(b + 8, 4), reserved = cot__from_bytes(b + 12, 4);
    if (format > COT__PROGRAM_FORMAT)
        return cot__refuse(caller, COT_VALUE,
                           "this program file has format %llu, and version %s of the library reads formats up to %d; "
                           "a newer version can load it",
                           (ull)format, cot_version(), COT__PROGRAM_FORMAT);
    if (format < 1 || reserved)
        return cot__file_illegal(caller, "its format is %llu.%llu", (ull)format, (ull)reserved);
    return true;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static bool add_part(cot__loader *l, cot__reader *r) {
    const unsigned char *tag = cot__take(r, 4, 1);
    uint64_t             bytes = cot__take_number(r, 8);
    const unsigned char *at = cot__take(r, bytes, 1);
    if (r->ended) return cot__file_illegal(l->caller, "part %u is longer than the file", l->parts);
    if (memcmp(tag, COT__PART_TAG, 4)) return cot__file_illegal(l->caller, "part %u is no program", l->parts);
    if (l->parts == l->room) {
        uint32_t to = l->room ? 2 * l->room : 4;
        void    *fresh = cot__resize(&l->al, l->part, l->room * sizeof *l->part, to * sizeof *l->part);
        if (!fresh)
            return cot__refuse(l->caller, COT_MEMORY, "out of memory: %llu bytes to load a program",
                               (ull)(to * sizeof *l->part));
        l->part = fresh;
        l->room = to;
    }
    cot__program *p = cot__load_part(l, (cot__reader){at, at + bytes, false});
    if (p) l->part[l->parts++] = p;
    return p;
}

/* All parts; the last one is the program. NULL after telling the caller. */
static cot__program *load_parts(cot__loader *l, cot__reader r) {
    bool fine = true;
    while (fine && r.at < r.end) fine = add_part(l, &r);
    if (fine && !l->parts) fine = cot__refuse(l->caller, COT_VALUE, "this program file is not legal: it has no part");
    cot__program *p = fine ? cot__program_share(l->part[l->parts - 1]) : NULL;
    for (uint32_t k = 0; k < l->parts; k++) cot__program_release(l->part[k]);
    cot__free(&l->al, l->part, l->room * sizeof *l->part);
    return p;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* A cot__write_bytes that compares. */
static bool is_next(void *reader, const void *bytes, size_t n) {
    const unsigned char *at = cot__take(reader, n, 1);
    return at && !memcmp(at, bytes, n);
}

/* Would it be saved to the same bytes? Otherwise the file holds something that the program has not:
 * what stands twice, is not used, or is out of order. */
static bool is_what_the_file_says(const cot__program *p, cot__reader file, const cot__caller *caller) {
    cot__file_parts f;
    bool            fine = cot__file_parts_open(&f, p, caller);
    if (fine && !cot__file_parts_write(&f, is_next, &file))
        fine = cot__refuse(caller, COT_VALUE, "this program file is not legal: something in it stands twice, is not "
                                              "used or is out of order");
    cot__file_parts_close(&f);
    return fine;
}

cot__program *cot__program_load(const void *bytes, size_t size, const cot_allocator *al, const cot__caller *caller) {
    const unsigned char *b = bytes;
    cot__loader          l = {.caller = caller, .al = al ? *al : (cot_allocator){0}};
    if (!is_whole(b, size, caller) || !is_known(b, caller)) return NULL;
    cot__program *p = load_parts(&l, (cot__reader){b + COT__FILE_HEAD, b + size - COT__FILE_SUM, false});
    if (!p || is_what_the_file_says(p, (cot__reader){b, b + size, false}, caller)) return p;
    cot__program_release(p);
    return NULL;
}

/* ---- bytes from elsewhere -------------------------------------------------------------------- */

typedef struct bytes {
    const cot_allocator *al;
    unsigned char       *at;
    size_t               count, room;
} bytes;

/* How many bytes are worth reading, by those that are there: one more than there should be, to see
 * whether the file goes on. */
static uint64_t worth_reading(const bytes *b, const cot__caller *caller) {
    if (b->count < COT__FILE_HEAD) return COT__FILE_HEAD;
    if (!begins_right(b->at, b->count, caller)) return 0;
    uint64_t length = cot__from_bytes(b->at + 16, 8);
    return length == UINT64_MAX ? length : length + 1;
}

/* Reads until there are `to` bytes, or no more. The memory grows with what is there, not with what
 * is promised. */
static bool read_up_to(bytes *b, uint64_t to, cot__read_bytes *read, void *from, const cot__caller *caller) {
    while (b->count < to) {
        if (b->count == b->room) {
            size_t more = b->room ? 2 * b->room : 4096;
            void  *fresh = cot__resize(b->al, b->at, b->room, more);
            if (!fresh) return cot__refuse(caller, COT_MEMORY, "out of memory: %llu bytes of a file", (ull)more);
            b->at = fresh;
            b->room = more;
        }
        uint64_t left = to - b->count, room = b->room - b->count;
        int64_t  n = read(from, b->at + b->count, (size_t)(left < room ? left : room));
        if (n < 0)
            return cot__refuse(caller, COT_VALUE, "the file could not be read on after %llu bytes", (ull)b->count);
        if (n == 0) return true;
        b->count += (size_t)n;
    }
    return true;
}

cot__program *cot__program_read(cot__read_bytes *read, void *from, const cot_allocator *al, const cot__caller *caller) {
    bytes         b = {.al = al};
    cot__program *p = NULL;
    uint64_t      to = COT__FILE_HEAD;
    if (read_up_to(&b, to, read, from, caller) && (to = worth_reading(&b, caller)) > 0 &&
        read_up_to(&b, to, read, from, caller))
        p = cot__program_load(b.at, b.count, al, caller);
    cot__free(al, b.at, b.room);
    return p;
}

static int64_t read_file(void *file, void *to, size_t room) {
    size_t n = fread(to, 1, room, file);
    return n || !ferror((FILE *)file) ? (int64_t)n : -1;
}

static void cannot_read(const char *path, int error, const cot__caller *caller) {
    cot__refuse(caller, COT_VALUE, "cannot read %s: %s", *path ? path : "a file with an empty name",
                error == EISDIR ? "it is a directory" : strerror(error));
}

cot__program *cot__program_load_from_file(const char *path, const cot_allocator *al, const cot__caller *caller) {
    FILE *file = fopen(path, "rb");
    int   first = file ? getc(file) : EOF;
    if (!file || (first == EOF && ferror(file))) { /* a folder opens, and cannot be read */
        cannot_read(path, errno, caller);
        if (file) fclose(file);
        return NULL;
    }
    if (first != EOF) ungetc(first, file);
    cot__program *p = cot__program_read(read_file, file, al, caller);
    fclose(file);
    return p;
}
