/* append.h: a file that grows by whole records while others read it. A record that cannot be
 * written in full (the disk is full) is taken back, so that what stands in the file is whole, and
 * the next one may succeed. */
#ifndef COT_CLI_APPEND_H
#define COT_CLI_APPEND_H

#include <stddef.h>
#include <stdint.h>

#include "io/failure.h"

typedef struct append_file {
    char   *path; /* NULL: there is no file, and records go nowhere */
    int     fd;
    bool    lent; /* it is the standard output: nothing in it is cut off, nor is it closed */
    int64_t size;   /* of the whole records */
    int64_t missed; /* records that could not be written */
    int     error;  /* errno of the first of them */
} append_file;

/* Opens a file for writing behind its first `keep` bytes; what follows them is cut off. "-" is the
 * standard output, with keep 0. */
bool append_open(append_file *a, const char *path, int64_t keep, failure *f);
/* Writes one record, or counts it as missed. True unless it is the first that is missed. */
bool append_record(append_file *a, const void *bytes, size_t n);
/* Counts a record that could not even be made. */
bool append_miss(append_file *a, int error);
void append_close(append_file *a);
/* What messages call it. */
const char *append_name(const append_file *a);
/* Has whoever read the standard output, in a pipe, had enough? Then that rows are missed is no
 * trouble. */
bool append_is_left(const append_file *a);

#endif
