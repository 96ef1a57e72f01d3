/* memory_file.h: a FILE whose text stays in memory, so that nothing is printed before all of it is
 * known. */
#ifndef COT_CLI_MEMORY_FILE_H
#define COT_CLI_MEMORY_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "io/failure.h"

typedef struct memory_file {
    FILE  *file;
    char  *text; /* after memory_file_close */
    size_t size, room;
} memory_file;

/* The stream holds on to m, which must stay where it is. */
bool memory_file_open(memory_file *m, failure *f);
/* Ends the writing; false when memory was short meanwhile. Free text with memory_file_free. */
bool memory_file_close(memory_file *m, failure *f);
void memory_file_free(memory_file *m);

#endif
