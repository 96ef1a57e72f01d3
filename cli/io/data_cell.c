/* data_cell.c: reads a cell of a table as a number. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "io/data_table.h"

static bool whole_number(const char *text, double *out) {
    char *end;
    *out = cot__read_number(text, &end);
    return end != text && *end == 0;
}

/* Reads also Fortran's form, 1.5D+02, and a decimal comma if commas do not separate cells. */
cell_kind data_cell_read(data_cell c, char separator, double *out) {
    static const char *const missing[] = {"", "NA", "N/A", "null", "none", ".", "-", "?"};
    char                     text[128];
    *out = NAN;
    if (c.length >= sizeof text) return CELL_TEXT;
    memcpy(text, c.text, c.length);
    text[c.length] = 0;
    for (size_t k = 0; k < sizeof missing / sizeof *missing; k++)
        if (strcasecmp(text, missing[k]) == 0) return CELL_MISSING;
    if (whole_number(text, out)) return CELL_NUMBER;
    char *comma = separator == ';' || separator == '\t' ? strchr(text, ',') : NULL;
    if (comma && !strchr(text, '.')) *comma = '.';
    char *exponent = strpbrk(text, "dD");
    if (exponent && exponent > text && strspn(text, "+-.0123456789") == (size_t)(exponent - text)) *exponent = 'e';
    if (whole_number(text, out)) return CELL_NUMBER;
    *out = NAN;
    return CELL_TEXT;
}

#define LEAVE_OUT "a # before the line leaves it out"

/* Has the column any number? If not (dates, say), the column is wrong and not a line. */
static bool has_numbers(const data_table *t, int column) {
    double number;
    for (int64_t i = 0; i < t->rows; i++)
        if (data_cell_read(t->cells[i * t->columns + column], t->separator, &number) == CELL_NUMBER) return true;
    return false;
}

bool data_table_column(const data_table *t, int column, const char *name, double *out, failure *f) {
    if (t->names) name = t->names[column]; /* the expression may call the column x */
    for (int64_t i = 0; i < t->rows; i++) {
        data_cell   c = t->cells[i * t->columns + column];
        cell_kind   kind = data_cell_read(c, t->separator, &out[i]);
        const char *text = c.length ? c.text : "";
        int         length = c.length < 40 ? (int)c.length : 40;
        long long   row = (long long)i + 1, line = (long long)t->lines[i];
        if (kind == CELL_TEXT)
            return failure_set(
                f, EXIT_RUN, "file", "row %lld (line %lld of %.200s), column %.60s: '%.*s' is not a number%s", row,
                line, t->path, name, length, text,
                has_numbers(t, column) ? "; " LEAVE_OUT
                                       : ", nor is any cell below its name; leave the column out, or make it numbers");
        if (kind == CELL_MISSING)
            return failure_set(f, EXIT_DISAGREES, "data",
                               "row %lld (line %lld of %.200s), column %.60s: the value is missing; a fit needs finite "
                               "numbers, and " LEAVE_OUT,
                               row, line, t->path, name);
        if (!isfinite(out[i]))
            return failure_set(
                f, EXIT_DISAGREES, "data",
                "row %lld (line %lld of %.200s), column %.60s: %.*s; a fit needs finite numbers, and " LEAVE_OUT, row,
                line, t->path, name, length, text);
    }
    return true;
}
