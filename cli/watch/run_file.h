/* run_file.h: reads what a run has written: a file of JSON lines, an object a line. A line with a
 * "step" is a row, and each number in it but "step" and "seconds" belongs to the series of its
 * name; other lines say something about the run ("steps": how many there will be). */
#ifndef COT_CLI_RUN_FILE_H
#define COT_CLI_RUN_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "io/failure.h"
#include "watch/run_row.h"

typedef struct run_series {
    char   *name;
    int64_t n, room;
    double *step, *seconds, *value;
} run_series;

typedef struct run_file {
    const char *path;
    int64_t     bytes;
    double      steps, last; /* how many there will be (NAN: not said); the last one so far */
    int         n;
    run_series *series; /* in the order in which their names appear */
} run_file;

/* Reads a file. What stands behind the last new line is being written, and left out. A line that is
 * no JSON object is a failure that names it. Call run_file_free in both cases. */
bool run_file_read(run_file *r, const char *path, failure *f);
/* The same of a text that ends with a 0 byte. */
bool run_file_parse(run_file *r, const char *path, const char *text, size_t size, failure *f);
void run_file_free(run_file *r);

#endif
