/* cell.c: reads a cell of a table as a number. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "data/table/table.h"

static bool whole_number(const char *text, double *out) {
    char *end;
    *out = cot__read_number(text, &end);
    return end != text && *end == 0;
}

/* Reads also Fortran's form, 1.5D+02, and a decimal comma if commas do not separate cells. */
cot__cell_kind cot__data_table_cell_read(cot__data_table_cell c, char separator, double *out) {
    static const char *const missing[] = {"", "NA", "N/A", "null", "none", ".", "-", "?"};
    char                     text[128];
    *out = NAN;
    if (c.length >= sizeof text) return COT__CELL_TEXT;
    memcpy(text, c.text, c.length);
    text[c.length] = 0;
    for (size_t k = 0; k < sizeof missing / sizeof *missing; k++)
        if (strcasecmp(text, missing[k]) == 0) return COT__CELL_MISSING;
    if (whole_number(text, out)) return COT__CELL_NUMBER;
    char *comma = separator == ';' || separator == '\t' ? strchr(text, ',') : NULL;
    if (comma && !strchr(text, '.')) *comma = '.';
    char *exponent = strpbrk(text, "dD");
    if (exponent && exponent > text && strspn(text, "+-.0123456789") == (size_t)(exponent - text)) *exponent = 'e';
    if (whole_number(text, out)) return COT__CELL_NUMBER;
    *out = NAN;
    return COT__CELL_TEXT;
}

#define LEAVE_OUT "a # before the line leaves it out"

/* Has the column any number? If not (dates, say), the column is wrong and not a line. */
static bool has_numbers(const cot__data_table *t, int column) {
    double number;
    for (int64_t i = 0; i < t->rows; i++)
        if (cot__data_table_cell_read(t->cells[i * t->columns + column], t->separator, &number) == COT__CELL_NUMBER)
            return true;
    return false;
}

bool cot__data_table_column(const cot__data_table *t, int column, const char *name, bool finite, double *out,
                            cot__trouble *trouble) {
    if (t->names) name = t->names[column]; /* the expression may call the column x */
    for (int64_t i = 0; i < t->rows; i++) {
        cot__data_table_cell c      = t->cells[i * t->columns + column];
        cot__cell_kind       kind   = cot__data_table_cell_read(c, t->separator, &out[i]);
        const char          *text   = c.length ? c.text : "";
        int                  length = c.length < 40 ? (int)c.length : 40;
        long long            row = (long long)i + 1, line = (long long)t->lines[i];
        if (kind == COT__CELL_TEXT)
            return cot__trouble_file(
                trouble, "row %lld (line %lld of %.200s), column %.60s: '%.*s' is not a number%s", row, line, t->path,
                name, length, text,
                has_numbers(t, column) ? "; " LEAVE_OUT
                                       : ", nor is any cell below its name; leave the column out, or make it numbers");
        if (!finite || (kind == COT__CELL_NUMBER && isfinite(out[i]))) continue;
        trouble->about_values = true;
        if (kind == COT__CELL_MISSING)
            return cot__trouble_file(trouble,
                                     "row %lld (line %lld of %.200s), column %.60s: the value is missing; a fit needs "
                                     "finite numbers, and " LEAVE_OUT,
                                     row, line, t->path, name);
        return cot__trouble_file(
            trouble, "row %lld (line %lld of %.200s), column %.60s: %.*s; a fit needs finite numbers, and " LEAVE_OUT,
            row, line, t->path, name, length, text);
    }
    return true;
}
