/* run_row.h: one line of the file of a run, as numbers with names. */
#ifndef COT_CLI_RUN_ROW_H
#define COT_CLI_RUN_ROW_H

#include <stdbool.h>
#include <stddef.h>

/* The numbers of one line. */
enum { RUN_ROW = 64 };
typedef struct run_row {
    bool   has_step;
    double step, seconds, steps; /* NAN: not there */
    int    n;
    char  *names[RUN_ROW];
    double values[RUN_ROW];
} run_row;

/* Reads a line. NULL, or what is wrong with it. Call run_row_free in both cases. */
const char *run_row_read(run_row *r, const char *text, size_t n, bool *memory);
void        run_row_free(run_row *r);

#endif
