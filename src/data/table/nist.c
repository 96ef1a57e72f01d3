/* nist.c: NIST's statistical reference data sets. Their header gives the lines of the data:
 *
 *     Data              (lines 61 to 74)
 *
 * Their columns are y, x or y, x1, x2, …, as in every table without names. */
#include <string.h>

#include "data/table/table.h"

enum { HEADER_LINES = 200 };

static const char *past_blanks(const char *p, const char *stop) {
    while (p < stop && (*p == ' ' || *p == '\t')) p++;
    return p;
}

static const char *past_word(const char *p, const char *stop, const char *word) {
    size_t n = strlen(word);
    p        = past_blanks(p, stop);
    return (size_t)(stop - p) >= n && memcmp(p, word, n) == 0 ? p + n : NULL;
}

static const char *past_count(const char *p, const char *stop, int64_t *out) {
    p                 = past_blanks(p, stop);
    const char *start = p;
    for (*out = 0; p < stop && *p >= '0' && *p <= '9' && *out < INT64_C(1000000000); p++) *out = *out * 10 + (*p - '0');
    return p > start ? p : NULL;
}

bool cot__nist_is(const cot__data_table *t, size_t size) {
    cot__data_table_line line = {0};
    return cot__data_table_line_next(t, size, &line) && past_word(line.start, line.stop, "NIST/ITL StRD") != NULL;
}

bool cot__nist_lines(const cot__data_table *t, size_t size, int64_t *from, int64_t *to, cot__trouble *trouble) {
    cot__data_table_line line  = {0};
    bool                 found = false;
    while (!found && line.number < HEADER_LINES && cot__data_table_line_next(t, size, &line)) {
        const char *p = past_word(line.start, line.stop, "Data");
        p             = p ? past_word(p, line.stop, "(lines") : NULL;
        p             = p ? past_count(p, line.stop, from) : NULL;
        p             = p ? past_word(p, line.stop, "to") : NULL;
        p             = p ? past_count(p, line.stop, to) : NULL;
        found         = p && past_word(p, line.stop, ")");
    }
    if (!found)
        return cot__trouble_file(
            trouble, "%.200s begins like a NIST data set, but no line 'Data (lines A to B)' follows", t->path);
    int64_t              lines = line.number;
    cot__data_table_line last  = line;
    while (cot__data_table_line_next(t, size, &last)) lines = last.number;
    if (*from <= line.number || *to < *from || *to > lines)
        return cot__trouble_file(trouble, "%.200s says that its data are in lines %lld to %lld, and it has %lld lines",
                                 t->path, (long long)*from, (long long)*to, (long long)lines);
    return true;
}
