/* data_table.c: cuts a text into cells. */
#include "io/data_table.h"

#include <stdlib.h>
#include <string.h>

#include "io/source.h"

enum { MOST_BYTES = 1 << 28, MOST_COLUMNS = 10000 };

static bool blank(char c) { return c == ' ' || c == '\t'; }

bool data_line_next(const data_table *t, size_t size, data_line *line) {
    char *end = t->text + size;
    char *p = line->number ? line->stop : t->text;
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
static bool is_comment(const data_line *line, const char *p) { return *p == '#' && (p == line->start || blank(p[-1])); }

static bool bad_line(const data_table *t, const data_line *line, const char *what, failure *f) {
    return failure_set(f, EXIT_RUN, "file", "line %lld of %.200s %s", (long long)line->number, t->path, what);
}

/* Finds the separator in the first line; it holds for all lines. Semicolons and tabs are tried
 * first, because commas may then be part of numbers. */
static char find_separator(const data_line *line) {
    bool quoted = false, semicolon = false, tab = false, comma = false;
    for (const char *p = line->start; p < line->stop; p++) {
        if (*p == '"') quoted = !quoted;
        if (quoted) continue;
        if (is_comment(line, p)) break;
        semicolon = semicolon || *p == ';';
        tab = tab || *p == '\t';
        comma = comma || *p == ',';
    }
    return semicolon ? ';' : tab ? '\t' : comma ? ',' : ' ';
}

const char *data_separator_name(const data_table *t) {
    return t->separator == ','    ? "commas"
           : t->separator == ';'  ? "semicolons"
           : t->separator == '\t' ? "tabs"
                                  : "blanks";
}

/* Makes room for one more cell. */
static data_cell *more_cells(data_table *t, int64_t used, failure *f) {
    if (used == t->room) {
        int64_t    room = t->room ? 2 * t->room : 256;
        data_cell *grown = realloc(t->cells, (size_t)room * sizeof *grown);
        if (!grown) {
            failure_memory(f);
            return NULL;
        }
        t->cells = grown;
        t->room = room;
    }
    return &t->cells[used];
}

/* Reads a cell in quotes, where p is behind the first quote; "" is a quote. The text is written
 * over itself. NULL after a failure. */
static char *quoted_cell(const data_table *t, const data_line *line, char *p, data_cell *c, failure *f) {
    char *to = p;
    c->text = p;
    for (;; p++) {
        if (p == line->stop) {
            bad_line(t, line, "ends inside quotes", f);
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
static int cut_line(data_table *t, const data_line *line, int64_t used, failure *f) {
    char *p = line->start, separator = t->separator;
    int   count = 0;
    for (;;) {
        while (p < line->stop && blank(*p) && (separator == ' ' || *p != separator)) p++;
        /* blanks at the end of a line begin no cell */
        if (separator == ' ' && (p == line->stop || *p == '#')) return count;
        data_cell *c = more_cells(t, used + count, f);
        if (!c) return -1;
        if (count++ == MOST_COLUMNS) {
            bad_line(t, line, "has more than 10000 cells", f);
            return -1;
        }
        if (p < line->stop && *p == '"') {
            p = quoted_cell(t, line, p + 1, c, f);
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
            bad_line(t, line, "goes on behind closed quotes", f);
            return -1;
        }
        p++;
    }
}

/* If a cell of the first line is not a number, the cells of this line become the names. */
static bool take_names(data_table *t, failure *f) {
    size_t bytes = 0;
    double ignored;
    bool   named = false;
    for (int k = 0; k < t->columns; k++) {
        named = named || data_cell_read(t->cells[k], t->separator, &ignored) == CELL_TEXT;
        bytes += t->cells[k].length + 1;
    }
    if (!named) return true;
    t->names = malloc((size_t)t->columns * sizeof *t->names);
    t->name_text = malloc(bytes);
    if (!t->names || !t->name_text) return failure_memory(f);
    char *to = t->name_text;
    for (int k = 0; k < t->columns; k++) {
        memcpy(to, t->cells[k].text, t->cells[k].length);
        to[t->cells[k].length] = 0;
        t->names[k] = to;
        to += t->cells[k].length + 1;
    }
    return true;
}

static bool add_row(data_table *t, const data_line *line, failure *f) {
    if (t->rows == t->line_room) {
        int64_t  room = t->line_room ? 2 * t->line_room : 64;
        int64_t *grown = realloc(t->lines, (size_t)room * sizeof *grown);
        if (!grown) return failure_memory(f);
        t->lines = grown;
        t->line_room = room;
    }
    t->lines[t->rows++] = line->number;
    return true;
}

static bool is_empty(const data_line *line) {
    const char *p = line->start;
    while (p < line->stop && blank(*p)) p++;
    return p == line->stop || *p == '#';
}

/* Cuts lines from … to. The first line that is not empty may hold names. */
static bool cut(data_table *t, size_t size, int64_t from, int64_t to, failure *f) {
    data_line line = {0};
    int64_t   first = 0;
    while (data_line_next(t, size, &line) && line.number <= to) {
        if (line.number < from || is_empty(&line)) continue;
        if (memchr(line.start, 0, (size_t)(line.stop - line.start)))
            return bad_line(t, &line, "has a byte 0: this is no text in UTF-8; save it as UTF-8, or as CSV", f);
        if (!first) t->separator = find_separator(&line);
        int count = cut_line(t, &line, t->rows * t->columns, f);
        if (count < 0) return false;
        if (!first) {
            first = line.number;
            t->columns = count;
            if (!take_names(t, f)) return false;
            if (t->names) continue;
        }
        if (count != t->columns)
            return failure_set(f, EXIT_RUN, "file",
                               "line %lld of %.200s has %d cell%s, and line %lld has %d (cells stand between %s); a # "
                               "before a line leaves it out",
                               (long long)line.number, t->path, count, count == 1 ? "" : "s", (long long)first,
                               t->columns, data_separator_name(t));
        if (!add_row(t, &line, f)) return false;
    }
    return true;
}

bool data_table_parse(data_table *t, const char *path, char *text, size_t size, failure *f) {
    int64_t from = 1, to = INT64_MAX;
    *t = (data_table){.path = path, .text = text};
    if (data_nist_is(t, size)) {
        if (!data_nist_lines(t, size, &from, &to, f)) return false;
    }
    return cut(t, size, from, to, f);
}

bool data_table_read(data_table *t, const char *path, failure *f) {
    size_t size = 0;
    *t = (data_table){.path = path};
    char *text = source_text(path, "the data", MOST_BYTES, &size, f);
    return text && data_table_parse(t, strcmp(path, "-") == 0 ? "the standard input" : path, text, size, f);
}

void data_table_free(data_table *t) {
    free(t->text);
    free(t->cells);
    free(t->lines);
    free(t->names);
    free(t->name_text);
    *t = (data_table){0};
}

int data_table_find(const data_table *t, const char *name) {
    int found = COLUMN_NONE;
    for (int k = 0; t->names && k < t->columns; k++) {
        if (strcmp(t->names[k], name) != 0) continue;
        if (found != COLUMN_NONE) return COLUMN_TWICE;
        found = k;
    }
    return found;
}
