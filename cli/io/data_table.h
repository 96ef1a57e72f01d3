/* data_table.h: columns of numbers in a text: CSV in its many forms, or a file of NIST's reference
 * data sets.
 *
 * A text is cut into cells once; a cell becomes a number when its column is asked for, so that
 * other columns may hold anything. */
#ifndef COT_CLI_DATA_TABLE_H
#define COT_CLI_DATA_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "io/failure.h"

typedef struct data_cell {
    const char *text; /* in the table's text, not terminated */
    size_t      length;
} data_cell;

typedef struct data_table {
    const char  *path; /* for messages */
    char        *text;
    char         separator; /* ' ': blanks */
    int          columns;
    int64_t      rows;
    data_cell   *cells; /* (rows, columns) */
    int64_t     *lines; /* (rows): where each stands in the text, from 1 */
    const char **names; /* (columns); NULL: the table names none */
    char        *name_text;
    int64_t      room, line_room; /* cells and lines that have memory */
} data_table;

/* From a file; "-" is the standard input. Call data_table_free in any case. */
bool data_table_read(data_table *t, const char *path, failure *f);
/* From a text, malloced and terminated, which the table takes over. */
bool data_table_parse(data_table *t, const char *path, char *text, size_t size, failure *f);
void data_table_free(data_table *t);

/* A column of a name; COLUMN_NONE, or COLUMN_TWICE when several have it. */
enum { COLUMN_NONE = -1, COLUMN_TWICE = -2 };
int data_table_find(const data_table *t, const char *name);

/* A whole column into out (rows); every cell must be a finite number. `name` is for messages. */
bool data_table_column(const data_table *t, int column, const char *name, double *out, failure *f);

/* What stands between cells, for messages: "commas". */
const char *data_separator_name(const data_table *t);

/* ---- between the files of the table ---------------------------------------------------------- */

typedef enum cell_kind { CELL_NUMBER, CELL_MISSING, CELL_TEXT } cell_kind;
cell_kind data_cell_read(data_cell c, char separator, double *out);

/* A line of the text: [start, stop), without its end; false after the last one. */
typedef struct data_line {
    char   *start, *stop;
    int64_t number;
} data_line;
bool data_line_next(const data_table *t, size_t size, data_line *line);

/* Is it a file of NIST's? Then the lines of its data. */
bool data_nist_is(const data_table *t, size_t size);
bool data_nist_lines(const data_table *t, size_t size, int64_t *from, int64_t *to, failure *f);

#endif
