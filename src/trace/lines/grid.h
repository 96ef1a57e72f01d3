/* grid.h: a table for a terminal. Cells are collected row by row; then every column is made as wide
 * as its widest cell, once, and no line ends in blanks.
 *
 * May call: libc, columns of texts. Must not touch: what the cells say. */
#ifndef COT_GRID_H
#define COT_GRID_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* How a column stands: LEFT and RIGHT are never cut. Where the table would be wider than the
 * terminal, the columns CUT and WRAP give way: a cell is cut, with "…", or goes on in a line below
 * it; a newline in a WRAP cell begins such a line, too. The last cell of a row that is not empty
 * may use the rest of its line, unless it stands RIGHT. */
typedef enum cot__grid_column { COT__LEFT, COT__RIGHT, COT__CUT, COT__WRAP } cot__grid_column;

enum { COT__GRID_COLUMNS = 8 };

typedef struct cot__grid {
    int              columns;
    cot__grid_column column[COT__GRID_COLUMNS];
    int              width;  /* of the terminal; 0: any */
    bool             colour; /* are inks written? */
    /* the rest is the grid's own */
    struct cot__grid_cell *cells;
    int64_t                count, room;
    bool                   short_of_memory;
} cot__grid;

/* The next cell: rows fill from the left. `ink` is an ANSI sequence; NULL: none. */
void cot__grid_put(cot__grid *g, const char *ink, const char *text);
/* A number, in decimal digits. */
void cot__grid_integer(cot__grid *g, int64_t v);
/* Writes all rows and frees them. False, and nothing is written, when memory was short. */
bool cot__grid_print(FILE *out, cot__grid *g);

#endif
