/* head.c: what all our files with a head have in common: is the file whole, and of a format that is
 * known? */
#include "program/file/head.h"
#include "program/file/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

/* ---- the head -------------------------------------------------------------------------------- */

static bool begins_right(const cot__file_kind *k, const unsigned char *b, size_t size, const cot__caller *caller) {
    size_t n = size < 8 ? size : 8;
    if (n && !memcmp(b, k->magic, n)) return true;
    if (!size) return cot__refuse(caller, COT_VALUE, "this is no %s file: it is empty", k->noun);
    return cot__refuse(caller, COT_VALUE, "this is no %s file: it does not begin with %.7s", k->noun, k->magic);
}

/* Beginning, length and checksum are the same in all formats, so that of a newer one we know that
 * it is whole. */
static bool is_whole(const cot__file_kind *k, const unsigned char *b, size_t size, const cot__caller *caller) {
    if (!begins_right(k, b, size, caller)) return false;
    if (size < COT__FILE_HEAD + COT__FILE_SUM)
        return cot__refuse(caller, COT_VALUE, "this %s file is cut short: %llu bytes are there, not even its head",
                           k->noun, (ull)size);
    uint64_t length = cot__from_bytes(b + 16, 8);
    if (length > size)
        return cot__refuse(caller, COT_VALUE, "this %s file is cut short: %llu of %llu bytes are there", k->noun,
                           (ull)size, (ull)length);
    if (length < size) /* how many bytes there are, nobody has looked */
        return cot__refuse(caller, COT_VALUE, "this %s file goes on after its end at byte %llu", k->noun, (ull)length);
    return cot__checksum(0, b, size - COT__FILE_SUM) == cot__from_bytes(b + size - COT__FILE_SUM, COT__FILE_SUM) ||
           cot__refuse(caller, COT_VALUE, "this %s file was altered: its checksum does not fit", k->noun);
}

static bool is_known(const cot__file_kind *k, const unsigned char *b, const cot__caller *caller) {
    uint64_t format = cot__from_bytes(b + 8, 4), reserved = cot__from_bytes(b + 12, 4);
    if (format > k->format)
        return cot__refuse(caller, COT_VALUE,
                           "this %s file has format %llu, and version %s of the library reads formats up to %u; a "
                           "newer version can load it",
                           k->noun, (ull)format, cot_version(), k->format);
    if (format < 1 || reserved)
        return cot__refuse(caller, COT_VALUE, "this %s file is not legal: its format is %llu.%llu", k->noun,
                           (ull)format, (ull)reserved);
    return true;
}

bool cot__file_is_whole(const cot__file_kind *k, const unsigned char *b, size_t size, const cot__caller *caller) {
    return is_whole(k, b, size, caller) && is_known(k, b, caller);
}

/* ---- bytes from elsewhere -------------------------------------------------------------------- */

/* How many bytes are worth reading, by those that are there: one more than there should be, to see
 * whether the file goes on. */
static uint64_t worth_reading(const cot__file_kind *k, const cot__file_bytes *b, const cot__caller *caller) {
    if (b->count < COT__FILE_HEAD) return COT__FILE_HEAD;
    if (!begins_right(k, b->at, b->count, caller)) return 0;
    uint64_t length = cot__from_bytes(b->at + 16, 8);
    return length == UINT64_MAX ? length : length + 1;
}

/* Reads until there are `to` bytes, or no more. The memory grows with what is there, not with what
 * is promised. */
static bool read_up_to(cot__file_bytes *b, uint64_t to, cot__read_bytes *read, void *from,
                       const cot__caller *caller) {
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

bool cot__file_read(cot__file_bytes *b, const cot__file_kind *k, cot__read_bytes *read, void *from,
                    const cot__caller *caller) {
    uint64_t to = COT__FILE_HEAD;
    return read_up_to(b, to, read, from, caller) && (to = worth_reading(k, b, caller)) > 0 &&
           read_up_to(b, to, read, from, caller);
}

static int64_t read_file(void *file, void *to, size_t room) {
    size_t n = fread(to, 1, room, file);
    return n || !ferror((FILE *)file) ? (int64_t)n : -1;
}

static void cannot_read(const char *path, int error, const cot__caller *caller) {
    cot__refuse(caller, COT_VALUE, "cannot read %s: %s", *path ? path : "a file with an empty name",
                error == EISDIR ? "it is a directory" : strerror(error));
}

bool cot__file_read_path(cot__file_bytes *b, const cot__file_kind *k, const char *path, const cot__caller *caller) {
    FILE *file = fopen(path, "rb");
    int   first = file ? getc(file) : EOF;
    if (!file || (first == EOF && ferror(file))) { /* a folder opens, and cannot be read */
        cannot_read(path, errno, caller);
        if (file) fclose(file);
        return false;
    }
    if (first != EOF) ungetc(first, file);
    bool read = cot__file_read(b, k, read_file, file, caller);
    fclose(file);
    return read;
}
