/* memory_file.h: a FILE whose text stays in memory, so that nothing is printed before the whole
 * text is known. */
#ifndef COT_CLI_MEMORY_FILE_H
#define COT_CLI_MEMORY_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "io/failure.h"

typedef struct memory_file {
    FILE  *file;
    char  *text; /* the text, after memory_file_close */
    size_t size, room;
} memory_file;

/* The stream keeps a pointer to m, so m must not move. */
bool memory_file_open(memory_file *m, failure *f);
/* Ends the writing. False when memory was short in the meantime. Free the text with
 * memory_file_free. */
bool memory_file_close(memory_file *m, failure *f);
void memory_file_free(memory_file *m);

/* What `write` writes of x goes to the file at `path`, whole or not at all; with "-", to `out`. */
typedef void writer(const void *x, FILE *to, failure *f);
void         memory_file_put(const char *path, writer *write, const void *x, FILE *out, failure *f);

#endif
