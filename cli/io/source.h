/* source.h: bytes whose number is known before they are read: a regular file, or memory (in
 * tests). */
#ifndef COT_CLI_SOURCE_H
#define COT_CLI_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "io/failure.h"

typedef struct source {
    const char    *path; /* for messages */
    FILE          *file; /* NULL: the bytes are in memory */
    const uint8_t *memory;
    uint64_t       size;
    uint64_t       at; /* the present place in the file */
} source;

/* Opens a file. False, with the reason, when there is no such file, or it may not be read, or it is
 * not a regular file. */
bool   source_open(source *s, const char *path, failure *f);
source source_of_memory(const char *name, const void *memory, size_t size);
void   source_close(source *s);

/* Is there a file of this name? Only for hints. */
bool source_exists(const char *path);

/* Reads exactly n bytes from an offset on. The caller has checked that they are there. If there are
 * fewer, the file has changed meanwhile. */
bool source_read(source *s, uint64_t offset, void *to, size_t n, failure *f);

/* Reads a whole text of at most `limit` bytes, malloced and terminated. "-" is stdin. NULL on
 * failure. `what` names the text in messages. */
char *source_text(const char *path, const char *what, size_t limit, size_t *size, failure *f);

#endif
