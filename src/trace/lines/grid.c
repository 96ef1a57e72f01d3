/* grid.c: see grid.h. */
#include "trace/lines/grid.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "trace/lines/lines.h"

typedef struct cot__grid_cell {
    const char *ink;
    char       *text;
} cell;

enum { GAP = 2, NARROWEST = 8 };

void cot__grid_put(cot__grid *g, const char *ink, const char *text) {
    if (g->count == g->room) {
        int64_t room = g->room ? 2 * g->room : 64;
        cell   *more = realloc(g->cells, (size_t)room * sizeof *more);
        if (!more) {
            g->short_of_memory = true;
            return;
        }
        g->cells = more;
        g->room = room;
    }
    size_t n = strlen(text) + 1;
    char  *own = malloc(n);
    if (!own) {
        g->short_of_memory = true;
        return;
    }
    memcpy(own, text, n);
    g->cells[g->count++] = (cell){ink, own};
}

void cot__grid_integer(cot__grid *g, int64_t v) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)v);
    cot__grid_put(g, NULL, text);
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* Room for any cell, and for the "…" of one that is cut. */
static size_t longest(const cot__grid *g) {
    size_t most = 0;
    for (int64_t i = 0; i < g->count; i++)
        if (strlen(g->cells[i].text) > most) most = strlen(g->cells[i].text);
    return most + sizeof "…";
}

/* The part of a cell that stands in this line of so many columns, in `buf`, which has room for
 * every cell; *rest becomes what is left for the lines below. */
static void take(cot__grid_column kind, int columns, const char **rest, char *buf, size_t size) {
    size_t n = kind == COT__WRAP ? cot__line(*rest, columns) : strlen(*rest);
    if (kind == COT__CUT) cot__fit(*rest, columns, buf, size);
    else memcpy(buf, *rest, n), buf[n] = 0;
    *rest += n;
    *rest += **rest == '\n' ? 1 : strspn(*rest, " ");
}

/* ---- widths ---------------------------------------------------------------------------------- */

static bool gives_way(const cot__grid *g, int k) { return g->column[k] == COT__CUT || g->column[k] == COT__WRAP; }

/* The cells of a row, up to the last one that is not empty. */
static int used(const cot__grid *g, int64_t row) {
    int n = g->columns;
    while (n > 0 && !*g->cells[row * g->columns + n - 1].text) n--;
    return n;
}

/* The columns of a cell, as long as nothing gives way. */
static int columns_of(cot__grid_column kind, const char *text, char *buf, size_t size) {
    int most = 0;
    do {
        take(kind == COT__WRAP ? COT__WRAP : COT__LEFT, INT_MAX, &text, buf, size);
        int n = cot__columns(buf);
        if (n > most) most = n;
    } while (*text);
    return most;
}

static void measure(const cot__grid *g, int *width, char *buf, size_t size) {
    for (int64_t r = 0; r < g->count / g->columns; r++) {
        int n = used(g, r);
        for (int k = 0; k < n; k++) {
            int  w = columns_of(g->column[k], g->cells[r * g->columns + k].text, buf, size);
            bool free = k == n - 1 && k < g->columns - 1 && g->column[k] != COT__RIGHT;
            if (!free && w > width[k]) width[k] = w;
        }
    }
    int total = GAP * (g->columns - 1);
    for (int k = 0; k < g->columns; k++) total += width[k];
    while (g->width && total > g->width) {
        int widest = -1;
        for (int k = 0; k < g->columns; k++)
            if (gives_way(g, k) && width[k] > NARROWEST && (widest < 0 || width[k] > width[widest])) widest = k;
        if (widest < 0) break;
        width[widest]--, total--;
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Writes one line of a row. `rest` has what is still to be written of each cell. */
static void put_line(FILE *out, const cot__grid *g, int64_t row, const int *width, const char **rest, char *text,
                     size_t size) {
    int owed = 0; /* blanks before the next text */
    for (int k = 0, at = 0, n = used(g, row); k < n; at += width[k++] + GAP) {
        const char *ink = g->cells[row * g->columns + k].ink;
        bool        right = g->column[k] == COT__RIGHT, all = k == n - 1 && g->width - at > width[k];
        take(g->column[k], all ? g->width - at : width[k], &rest[k], text, size);
        int pad = width[k] - cot__columns(text);
        if (!*text) {
            owed += width[k] + GAP;
            continue;
        }
        fprintf(out, "%*s", owed + (right ? pad : 0), "");
        if (g->colour && ink) fprintf(out, "%s%s\x1b[0m", ink, text);
        else fputs(text, out);
        owed = GAP + (right ? 0 : pad);
    }
    fputc('\n', out);
}

bool cot__grid_print(FILE *out, cot__grid *g) {
    int         width[COT__GRID_COLUMNS] = {0};
    const char *rest[COT__GRID_COLUMNS];
    size_t      size = longest(g);
    char       *text = malloc(size);
    bool        fine = text && !g->short_of_memory;
    if (fine) measure(g, width, text, size);
    for (int64_t r = 0; fine && r < g->count / g->columns; r++) {
        bool more = true;
        for (int k = 0; k < g->columns; k++) rest[k] = g->cells[r * g->columns + k].text;
        while (more) {
            put_line(out, g, r, width, rest, text, size);
            more = false;
            for (int k = 0; k < g->columns; k++) more = more || *rest[k];
        }
    }
    free(text);
    for (int64_t i = 0; i < g->count; i++) free(g->cells[i].text);
    free(g->cells);
    g->cells = NULL;
    g->count = g->room = 0;
    return fine;
}
