/* table.h: columns of numbers in a text: CSV in its many forms, or a file of NIST's reference
 * data sets.
 *
 * A text is cut into cells once; a cell becomes a number when its column is asked for, so that
 * other columns may hold anything.
 *
 * What the folder does: it cuts text into cells, and makes numbers of them.
 *
 * May call: libc, base, data/file. Must not touch: tapes, parameters. */
#ifndef COT_DATA_TABLE_H
#define COT_DATA_TABLE_H

#include "data/file/keep.h"
#include "data/file/trouble.h"

typedef struct cot__data_table_cell {
    const char *text; /* in the table's text, not terminated */
    size_t      length;
} cot__data_table_cell;

typedef struct cot__data_table {
    const char           *path; /* for messages */
    char                 *text;
    char                  separator; /* ' ': blanks */
    int                   columns;
    int64_t               rows;
    cot__data_table_cell *cells;                 /* (rows, columns) */
    int64_t              *lines;                 /* (rows): where each stands in the text, from 1 */
    const char          **names;                 /* (columns); NULL: the table names none */
    size_t                size, room, line_room; /* bytes; cells and lines with memory */
    cot__keep             pool;                  /* all but the text */
} cot__data_table;

/* From a text of `size` bytes and a 0, which the table takes over: memory of `al` (NULL: malloc).
 * Call cot__data_table_free in any case. */
bool cot__data_table_parse(cot__data_table *t, const cot_allocator *al, const char *path, char *text, size_t size,
                           cot__trouble *trouble);
void cot__data_table_free(cot__data_table *t);

/* A column of a name; COT__COLUMN_NONE, or COT__COLUMN_TWICE when several have it. */
enum { COT__COLUMN_NONE = -1, COT__COLUMN_TWICE = -2 };
int cot__data_table_find(const cot__data_table *t, const char *name);

/* A whole column into out (rows); every cell must be a number, and a finite one if
 * `finite`; else a missing one is NaN. `name` is for messages. */
bool cot__data_table_column(const cot__data_table *t, int column, const char *name, bool finite, double *out,
                            cot__trouble *trouble);

/* What stands between cells, for messages: "commas". */
const char *cot__data_table_separator(const cot__data_table *t);

/* ---- between the files of the table ---------------------------------------------------------- */

typedef enum cot__cell_kind { COT__CELL_NUMBER, COT__CELL_MISSING, COT__CELL_TEXT } cot__cell_kind;
cot__cell_kind cot__data_table_cell_read(cot__data_table_cell c, char separator, double *out);

/* A line of the text: [start, stop), without its end; false after the last one. */
typedef struct cot__data_table_line {
    char   *start, *stop;
    int64_t number;
} cot__data_table_line;
bool cot__data_table_line_next(const cot__data_table *t, size_t size, cot__data_table_line *line);

/* Is it a file of NIST's? Then the lines of its data. */
bool cot__nist_is(const cot__data_table *t, size_t size);
bool cot__nist_lines(const cot__data_table *t, size_t size, int64_t *from, int64_t *to, cot__trouble *trouble);

#endif
