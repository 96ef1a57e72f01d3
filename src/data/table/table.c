/* table.c: cuts a text into cells. */
#include "data/table/table.h"

#include <string.h>

enum { MOST_COLUMNS = 10000 };

static bool blank(char c) { return c == ' ' || c == '\t'; }

bool cot__data_table_line_next(const cot__data_table *t, size_t size, cot__data_table_line *line) {
    char *end = t->text + size;
    char *p   = line->number ? line->stop : t->text;
    if (line->number) {
        if (p < end && *p == '\r') p++;
        if (p < end && *p == '\n' && (p == line->stop || p[-1] == '\r')) p++;
    } else if (size >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0) {
        p += 3; /* the byte order mark that some programs put before UTF-8 */
    }
    if (p >= end) return false;
    line->start = p;
    while (p < end && *p != '\n' && *p != '\r') p++;
    line->stop = p;
    line->number++;
    return true;
}

/* A comment begins at a # that does not stand in the middle of a word. */
static bool is_comment(const cot__data_table_line *line, const char *p) {
    return *p == '#' && (p == line->start || blank(p[-1]));
}

static bool bad_line(const cot__data_table *t, const cot__data_table_line *line, const char *what,
                     cot__trouble *trouble) {
    return cot__trouble_file(trouble, "line %lld of %.200s %s", (long long)line->number, t->path, what);
}

/* Finds the separator in the first line; it holds for all lines. Semicolons and tabs are tried
 * first, because commas may then be part of numbers. */
static char find_separator(const cot__data_table_line *line) {
    bool quoted = false, semicolon = false, tab = false, comma = false;
    for (const char *p = line->start; p < line->stop; p++) {
        if (*p == '"') quoted = !quoted;
        if (quoted) continue;
        if (is_comment(line, p)) break;
        semicolon = semicolon || *p == ';';
        tab       = tab || *p == '\t';
        comma     = comma || *p == ',';
    }
    return semicolon ? ';' : tab ? '\t' : comma ? ',' : ' ';
}

const char *cot__data_table_separator(const cot__data_table *t) {
    return t->separator == ','    ? "commas"
           : t->separator == ';'  ? "semicolons"
           : t->separator == '\t' ? "tabs"
                                  : "blanks";
}

/* Makes room for one more cell. */
static cot__data_table_cell *more_cells(cot__data_table *t, int64_t used, cot__trouble *trouble) {
    cot__data_table_cell *grown = cot__keep_grow(&t->pool, t->cells, (size_t)used, &t->room, sizeof *grown);
    if (!grown) {
        cot__trouble_memory(trouble);
        return NULL;
    }
    t->cells = grown;
    return &t->cells[used];
}

/* Reads a cell in quotes, where p is behind the first quote; "" is a quote. The text is written
 * over itself. NULL after a failure. */
static char *quoted_cell(const cot__data_table *t, const cot__data_table_line *line, char *p, cot__data_table_cell *c,
                         cot__trouble *trouble) {
    char *to = p;
    c->text  = p;
    for (;; p++) {
        if (p == line->stop) {
            bad_line(t, line, "ends inside quotes", trouble);
            return NULL;
        }
        if (*p == '"') {
            if (p + 1 == line->stop || p[1] != '"') break;
            p++;
        }
        *to++ = *p;
    }
    c->length = (size_t)(to - c->text);
    return p + 1;
}

/* Cuts a line into cells and stores them behind the `used` ones. Returns their number, -1 after a
 * failure. */
static int cut_line(cot__data_table *t, const cot__data_table_line *line, int64_t used, cot__trouble *trouble) {
    char *p = line->start, separator = t->separator;
    int   count = 0;
    for (;;) {
        while (p < line->stop && blank(*p) && (separator == ' ' || *p != separator)) p++;
        /* blanks at the end of a line begin no cell */
        if (separator == ' ' && (p == line->stop || *p == '#')) return count;
        cot__data_table_cell *c = more_cells(t, used + count, trouble);
        if (!c) return -1;
        if (count++ == MOST_COLUMNS) {
            bad_line(t, line, "has more than 10000 cells", trouble);
            return -1;
        }
        if (p < line->stop && *p == '"') {
            p = quoted_cell(t, line, p + 1, c, trouble);
            if (!p) return -1;
        } else {
            c->text = p;
            while (p < line->stop && *p != separator && !(separator == ' ' && *p == '\t') && !is_comment(line, p)) p++;
            const char *end = p;
            while (end > c->text && blank(end[-1])) end--;
            c->length = (size_t)(end - c->text);
        }
        if (separator != ' ')
            while (p < line->stop && blank(*p) && *p != separator) p++;
        if (p == line->stop || is_comment(line, p)) return count;
        if (*p != separator && !(separator == ' ' && *p == '\t')) {
            bad_line(t, line, "goes on behind closed quotes", trouble);
            return -1;
        }
        p++;
    }
}

/* If a cell of the first line is not a number, the cells of this line become the names. */
static bool take_names(cot__data_table *t, cot__trouble *trouble) {
    double ignored;
    bool   named = false;
    for (int k = 0; k < t->columns; k++)
        named = named || cot__data_table_cell_read(t->cells[k], t->separator, &ignored) == COT__CELL_TEXT;
    if (!named) return true;
    t->names = cot__keep_take(&t->pool, (size_t)t->columns * sizeof *t->names);
    if (!t->names) return cot__trouble_memory(trouble);
    for (int k = 0; k < t->columns; k++) {
        t->names[k] = cot__keep_text(&t->pool, t->cells[k].text, t->cells[k].length);
        if (!t->names[k]) return cot__trouble_memory(trouble);
    }
    return true;
}

static bool add_row(cot__data_table *t, const cot__data_table_line *line, cot__trouble *trouble) {
    int64_t *grown = cot__keep_grow(&t->pool, t->lines, (size_t)t->rows, &t->line_room, sizeof *grown);
    if (!grown) return cot__trouble_memory(trouble);
    t->lines            = grown;
    t->lines[t->rows++] = line->number;
    return true;
}

static bool is_empty(const cot__data_table_line *line) {
    const char *p = line->start;
    while (p < line->stop && blank(*p)) p++;
    return p == line->stop || *p == '#';
}

/* Cuts lines from … to. The first line that is not empty may hold names. */
static bool cut(cot__data_table *t, size_t size, int64_t from, int64_t to, cot__trouble *trouble) {
    cot__data_table_line line  = {0};
    int64_t              first = 0;
    while (cot__data_table_line_next(t, size, &line) && line.number <= to) {
        if (line.number < from || is_empty(&line)) continue;
        if (memchr(line.start, 0, (size_t)(line.stop - line.start)))
            return bad_line(t, &line, "has a byte 0: this is no text in UTF-8; save it as UTF-8, or as CSV", trouble);
        if (!first) t->separator = find_separator(&line);
        int count = cut_line(t, &line, t->rows * t->columns, trouble);
        if (count < 0) return false;
        if (!first) {
            first      = line.number;
            t->columns = count;
            if (!take_names(t, trouble)) return false;
            if (t->names) continue;
        }
        if (count != t->columns)
            return cot__trouble_file(
                trouble,
                "line %lld of %.200s has %d cell%s, and line %lld has %d (cells stand between %s); a # "
                "before a line leaves it out",
                (long long)line.number, t->path, count, count == 1 ? "" : "s", (long long)first, t->columns,
                cot__data_table_separator(t));
        if (!add_row(t, &line, trouble)) return false;
    }
    return true;
}

bool cot__data_table_parse(cot__data_table *t, const cot_allocator *al, const char *path, char *text, size_t size,
                           cot__trouble *trouble) {
    int64_t from = 1, to = INT64_MAX;
    *t = (cot__data_table){.path = path, .text = text, .size = size};
    if (al) t->pool.al = *al;
    if (cot__nist_is(t, size)) {
        if (!cot__nist_lines(t, size, &from, &to, trouble)) return false;
    }
    return cut(t, size, from, to, trouble);
}

void cot__data_table_free(cot__data_table *t) {
    cot__free(&t->pool.al, t->text, t->size + 1);
    cot__keep_free(&t->pool);
    *t = (cot__data_table){0};
}

int cot__data_table_find(const cot__data_table *t, const char *name) {
    int found = COT__COLUMN_NONE;
    for (int k = 0; t->names && k < t->columns; k++) {
        if (strcmp(t->names[k], name) != 0) continue;
        if (found != COT__COLUMN_NONE) return COT__COLUMN_TWICE;
        found = k;
    }
    return found;
}
