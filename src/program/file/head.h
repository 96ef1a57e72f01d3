/* head.h: files that begin with a name, a format and their length, and end with a checksum:
 * programs, and tapes. docs/file-format.md tells it. */
#ifndef COT_PROGRAM_HEAD_H
#define COT_PROGRAM_HEAD_H

#include "program/file/file.h"

typedef struct cot__file_kind {
    const char *noun;   /* of messages */
    const char *magic;  /* 8 bytes, the last of them a line feed */
    uint32_t    format; /* the newest that is known */
} cot__file_kind;

/* Beginning, length, checksum, format. False after telling the caller. */
bool cot__file_is_whole(const cot__file_kind *k, const unsigned char *b, size_t size, const cot__caller *caller);

/* The bytes of a file; `at` has room bytes of al, to be freed in any case. */
typedef struct cot__file_bytes {
    const cot_allocator *al;
    unsigned char       *at;
    size_t               count, room;
} cot__file_bytes;

/* Reads a file of this kind, no more than its head says and one byte. False after telling the
 * caller. */
bool cot__file_read(cot__file_bytes *b, const cot__file_kind *k, cot__read_bytes *read, void *from,
                    const cot__caller *caller);
bool cot__file_read_path(cot__file_bytes *b, const cot__file_kind *k, const char *path, const cot__caller *caller);

#endif
