/* source.h: bytes at rest whose number is known before any is read: a regular file, or memory (in
 * tests). */
#ifndef COT_CLI_SOURCE_H
#define COT_CLI_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "io/failure.h"

typedef struct source {
    const char    *path; /* for messages */
    FILE          *file; /* or, when NULL, */
    const uint8_t *memory;
    uint64_t       size;
    uint64_t       at; /* where the file stands */
} source;

/* False, with the reason, when the file is not there, may not be read, or is not a regular file. */
bool   source_open(source *s, const char *path, failure *f);
source source_of_memory(const char *name, const void *memory, size_t size);
void   source_close(source *s);

/* Is there a file of this name, whatever it holds? Only for hints. */
bool source_exists(const char *path);

/* Exactly n bytes from an offset on. The caller has checked that they are there: fewer means that
 * the file changed meanwhile. */
bool source_read(source *s, uint64_t offset, void *to, size_t n, failure *f);

/* A whole text of at most `limit` bytes, malloced and terminated; "-" is stdin. NULL on failure.
 * `what` names it in messages. */
char *source_text(const char *path, const char *what, size_t limit, size_t *size, failure *f);

#endif
