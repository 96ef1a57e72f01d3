/* zlib.h: packing and unpacking by the system's zlib, which is opened at run time when a packed
 * file is met. Nothing else here needs it. */
#ifndef COT_DATA_ZLIB_H
#define COT_DATA_ZLIB_H

#include "data/file/trouble.h"

typedef enum cot__inflated {
    COT__INFLATE_FINE,
    COT__INFLATE_FULL,    /* there is more than room for it */
    COT__INFLATE_DAMAGED, /* or the bytes end too early */
    COT__INFLATE_MEMORY,
    COT__INFLATE_MISSING /* there is no zlib */
} cot__inflated;

/* Unpacks n bytes into at most `room`; *made: how many came out, also where it fails. gzip: what
 * gzip writes, of any number of parts; else a bare deflate stream. */
cot__inflated cot__inflate(const void *from, size_t n, bool gzip, void *to, size_t room, size_t *made);
/* Packs n bytes as a bare deflate stream; returns how many came out, or 0: there is no zlib, no
 * memory, or it does not become shorter than `room`. */
size_t cot__deflate(const void *from, size_t n, void *to, size_t room);
bool   cot__has_zlib(void);

/* No deflate stream becomes longer than this. */
static inline size_t cot__inflate_most(size_t packed) {
    return packed < SIZE_MAX / 2 / 1040 ? packed * 1040 + 64 : SIZE_MAX / 2;
}

/* Returns false. */
static inline bool cot__inflate_trouble(cot__inflated how, const char *path, cot__trouble *t) {
    if (how == COT__INFLATE_MEMORY) return cot__trouble_memory(t);
    if (how == COT__INFLATE_MISSING)
        return cot__trouble_set(t, COT_LIMIT,
                                "%s is compressed, and this program finds no zlib to unpack it; install libz.so.1 "
                                "(Debian: zlib1g) and use the shared library, or store it uncompressed",
                                path);
    return cot__trouble_file(t, "%s is damaged: what is compressed in it cannot be unpacked", path);
}

#endif
