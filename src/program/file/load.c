/* load.c: loading a program: its parts are built one after the other, and the program is compared
 * with the file. */
#include "program/file/head.h"
#include "program/file/load.h"
#include "program/file/parts.h"

#include <string.h>

typedef unsigned long long ull;

static const cot__file_kind kind = {"program", COT__FILE_MAGIC, COT__PROGRAM_FORMAT};

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
    if (!cot__file_is_whole(&kind, b, size, caller)) return NULL;
    cot__program *p = load_parts(&l, (cot__reader){b + COT__FILE_HEAD, b + size - COT__FILE_SUM, false});
    if (!p || is_what_the_file_says(p, (cot__reader){b, b + size, false}, caller)) return p;
    cot__program_release(p);
    return NULL;
}

cot__program *cot__program_read(cot__read_bytes *read, void *from, const cot_allocator *al, const cot__caller *caller) {
    cot__file_bytes b = {.al = al};
    cot__program   *p = NULL;
    if (cot__file_read(&b, &kind, read, from, caller)) p = cot__program_load(b.at, b.count, al, caller);
    cot__free(al, b.at, b.room);
    return p;
}

cot__program *cot__program_load_from_file(const char *path, const cot_allocator *al, const cot__caller *caller) {
    cot__file_bytes b = {.al = al};
    cot__program   *p = NULL;
    if (cot__file_read_path(&b, &kind, path, caller)) p = cot__program_load(b.at, b.count, al, caller);
    cot__free(al, b.at, b.room);
    return p;
}
