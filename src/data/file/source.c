/* source.c: files, opened with care. */
#include "data/file/source.h"

#include "base/file/bytes.h"
#include "data/file/save.h"
#include "data/file/zlib.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* The bytes that gzip packed replace those of the file. How many they are stands at the end of the
 * file, modulo 2^32, and of one part of it alone: so that is only where to begin. */
static bool unpack(cot__source *s, cot__trouble *t) {
    uint8_t tail[4];
    size_t  most = cot__inflate_most((size_t)s->size), made = 0;
    if (!cot__source_read(s, s->size - 4, tail, 4, t)) return false;
    char *packed = cot__source_all(s, &s->al, t);
    if (!packed) return false;
    size_t room = (size_t)cot__from_bytes(tail, 4) + 1;
    room        = room < 1024 ? 1024 : room > most ? most : room;
    bool fine = false, again = true;
    while (again) {
        uint8_t *out = cot__alloc(&s->al, room);
        if (!out) {
            cot__trouble_memory_for(t, room);
            break;
        }
        cot__inflated how = cot__inflate(packed, (size_t)s->size, true, out, room, &made);
        fine              = how == COT__INFLATE_FINE;
        again             = how == COT__INFLATE_FULL && room < most;
        if (!fine) cot__free(&s->al, out, room);
        if (!fine && !again) cot__inflate_trouble(how, s->path, t);
        if (fine)
            *s = (cot__source){.path     = s->path,
                               .file     = s->file,
                               .memory   = out,
                               .size     = s->size,
                               .al       = s->al,
                               .own      = out,
                               .own_room = room};
        room = room > most / 2 ? most : 2 * room;
    }
    cot__free(&s->al, packed, (size_t)s->size + 1);
    if (!fine) return false;
    fclose(s->file);
    s->file = NULL;
    s->size = made;
    return true;
}

bool cot__source_open(cot__source *s, const char *path, const cot_allocator *al, cot__trouble *t) {
    *s = (cot__source){.path = path, .al = al ? *al : (cot_allocator){0}};
    struct stat about;
    if (stat(path, &about) != 0) return cot__trouble_errno(t, "read", path, errno);
    if (!S_ISREG(about.st_mode)) return cot__trouble_file(t, "cannot read %s: it is not a regular file", path);
    s->file = fopen(path, "rb");
    if (!s->file) return cot__trouble_errno(t, "read", path, errno);
    s->size = (uint64_t)about.st_size;
    uint8_t mark[3] = {0};
    /* a .safetensors file begins with a number, which may be anything */
    bool look = s->size >= 18 && cot__file_form_of(path) != COT__FILE_SAFETENSORS;
    bool fine = !look || cot__source_read(s, 0, mark, 3, t);
    if (fine && memcmp(mark, "\x1f\x8b\x08", 3) == 0) fine = unpack(s, t);
    if (!fine) cot__source_close(s);
    return fine;
}

bool cot__source_exists(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

cot__source cot__source_of_memory(const char *name, const void *memory, size_t size) {
    return (cot__source){.path = name, .memory = memory, .size = size};
}

void cot__source_close(cot__source *s) {
    if (s->file) fclose(s->file);
    cot__free(&s->al, s->own, s->own_room);
    s->file = NULL;
    s->own  = NULL;
}

bool cot__source_read(cot__source *s, uint64_t offset, void *to, size_t n, cot__trouble *t) {
    if (offset > s->size || n > s->size - offset)
        return cot__trouble_file(t, "%s ends too early: it has %llu bytes", s->path, (unsigned long long)s->size);
    if (!s->file) {
        if (n) memcpy(to, s->memory + offset, n);
        return true;
    }
    if (offset != s->at && fseeko(s->file, (off_t)offset, SEEK_SET) != 0)
        return cot__trouble_errno(t, "read", s->path, errno);
    size_t got = fread(to, 1, n, s->file);
    s->at      = offset + got;
    if (got == n) return true;
    if (ferror(s->file)) return cot__trouble_errno(t, "read", s->path, errno);
    return cot__trouble_file(t, "%s became shorter while it was read, at byte %llu", s->path,
                             (unsigned long long)s->at);
}

char *cot__source_all(cot__source *s, const cot_allocator *al, cot__trouble *t) {
    char *text = s->size < PTRDIFF_MAX ? cot__alloc(al, (size_t)s->size + 1) : NULL;
    if (!text) {
        cot__trouble_memory_for(t, s->size);
        return NULL;
    }
    text[s->size] = 0;
    if (cot__source_read(s, 0, text, (size_t)s->size, t)) return text;
    cot__free(al, text, (size_t)s->size + 1);
    return NULL;
}
