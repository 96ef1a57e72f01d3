/* entries.h: entries of a sparse matrix for people: a line that says what follows, and a line each,
 * of a long list the first and the last. */
#ifndef COT_CLI_ENTRIES_H
#define COT_CLI_ENTRIES_H

#include "output/print.h"

/* A list as it is printed: so many entries of a matrix of so many rows and columns. */
typedef struct entries {
    FILE     *out;
    int64_t   rows, columns, count;
    cot_dtype dtype; /* f64, or another with the digits of f32 */
    int64_t   at;    /* how many were given */
} entries;

void entries_head(const entries *e, look how, const char *name);
void entries_put(entries *e, int64_t row, int64_t column, double value);

#endif
