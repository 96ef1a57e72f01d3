/* source.h: bytes whose number is known before they are read: a regular file, or memory. */
#ifndef COT_DATA_SOURCE_H
#define COT_DATA_SOURCE_H

#include "data/file/trouble.h"

#include <stdio.h>

typedef struct cot__source {
    const char    *path; /* for messages; the caller's */
    FILE          *file; /* NULL: the bytes are in memory */
    const uint8_t *memory;
    uint64_t       size;
    uint64_t       at; /* the present place in the file */
    /* memory that belongs to the source: what a compressed file held */
    cot_allocator al;
    void         *own;
    size_t        own_room;
} cot__source;

/* Opens a file; one that gzip compressed is unpacked into memory. False, with the reason, when
 * there is no such file, or it may not be read, or it is not a regular file, or is damaged. NULL
 * for the usual allocator. */
bool        cot__source_open(cot__source *s, const char *path, const cot_allocator *al, cot__trouble *t);
cot__source cot__source_of_memory(const char *name, const void *memory, size_t size);
void        cot__source_close(cot__source *s);

/* Is there a file of this name? Only for hints. */
bool cot__source_exists(const char *path);

/* Reads exactly n bytes from an offset on. If there are fewer, it is a failure. */
bool cot__source_read(cot__source *s, uint64_t offset, void *to, size_t n, cot__trouble *t);
/* All bytes and a 0 behind them, `size` + 1 bytes of the allocator al; NULL after a failure. */
char *cot__source_all(cot__source *s, const cot_allocator *al, cot__trouble *t);

#endif
