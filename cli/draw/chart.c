/* chart.c: the same curves, ranges and ticks as SVG and as text. A terminal's cell is eight dots of
 * Braille, two beside each other and four below each other; without colour, and with several
 * curves, it is one letter. */
#include "draw/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

enum { WIDTH = 800, HEIGHT = 500, LEFT = 90, INNER = 690, MOST_NAMES = 64 };

void chart_measure(chart *c) {
    c->x = c->y = (svg_range){0, 0};
    bool first  = true;
    for (int k = 0; k < c->n; k++) {
        const chart_series *s   = &c->series[k];
        bool                any = false;
        for (int64_t i = 0; i < s->n && !any; i++) any = isfinite(s->y[i]);
        if (!any) continue;
        svg_range x = svg_range_of(s->n, s->x), y = svg_range_of(s->n, s->y);
        c->x  = first ? x : svg_range_join(c->x, x);
        c->y  = first ? y : svg_range_join(c->y, y);
        first = false;
    }
    if (first) c->x = c->y = (svg_range){0, 1};
}

void chart_svg(const chart *c, FILE *out, const char *description) {
    const char *names[MOST_NAMES];
    char class[32], colour[8];
    int n = c->n < MOST_NAMES ? c->n : MOST_NAMES;
    for (int k = 0; k < n; k++) names[k] = c->series[k].name;
    svg_open(out, WIDTH, HEIGHT, c->title, strlen(c->title), description);
    double    top = svg_legend(out, LEFT, INNER, n, names);
    svg_panel p   = {out, LEFT, top, INNER, HEIGHT - 54 - top, c->x, c->y, c->log_y};
    if (p.height < 100) p.height = 100;
    svg_axes(&p, c->x_label, c->y_label, true);
    for (int k = 0; k < c->n; k++) {
        const chart_series *s = &c->series[k];
        svg_colour(k, colour);
        snprintf(class, sizeof class, "line %s%s", s->smooth ? "raw " : "", colour);
        svg_line(&p, class, s->n, s->x, s->y);
        snprintf(class, sizeof class, "line %s", colour);
        if (s->smooth)
            svg_line(&p, class, s->n, s->x, s->smooth);
        else if (s->n < 60 && s->n > 0) {
            snprintf(class, sizeof class, "dots %s", colour);
            svg_points(&p, class, s->n, s->x, s->y);
        }
    }
    svg_close(out);
}

/* ---- in a terminal --------------------------------------------------------------------------- */

static const int  terminal_colours[SVG_COLOURS] = {34, 31, 32, 35, 33, 36, 95, 37};
static const char letters[]                     = "*+ox#@%&";

typedef struct canvas {
    const chart *c;
    int          columns, rows; /* cells */
    int          across, down;  /* dots of a cell: 2 and 4, or 1 and 1 */
    uint8_t     *dots, *who;    /* of each cell: its dots; the number of its curve + 1 */
} canvas;

static double part_of(svg_range r, double v) { return (v / 2 - r.low / 2) / (r.high / 2 - r.low / 2); }

/* The row of a height, in units of dots; 0 is above. */
static double row_of(const canvas *v, double y, int down) { return (1 - part_of(v->c->y, y)) * (v->rows * down - 1); }

static void dot(canvas *v, double x, double y, int k) {
    static const uint8_t bits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    /* where a range is nearly none, a place may be no number, or too large for an integer */
    double               right = round(x), below = round(y);
    if (!(right >= 0 && below >= 0 && right < v->columns * v->across && below < v->rows * v->down)) return;
    int column = (int)right, row = (int)below;
    int at = row / v->down * v->columns + column / v->across;
    v->dots[at] |= bits[row % v->down][column % v->across];
    v->who[at] = (uint8_t)(k % SVG_COLOURS + 1);
}

static void curve(canvas *v, int k) {
    const chart_series *s     = &v->c->series[k];
    const double       *y     = s->smooth ? s->smooth : s->y;
    bool                going = false;
    double              x0 = 0, y0 = 0;
    for (int64_t i = 0; i < s->n; i++) {
        bool finite = isfinite(s->x[i]) && isfinite(y[i]);
        if (finite) {
            double x1 = part_of(v->c->x, s->x[i]) * (v->columns * v->across - 1), y1 = row_of(v, y[i], v->down);
            double steps = going ? fmin(ceil(fmax(fabs(x1 - x0), fabs(y1 - y0))), 4000) : 0;
            for (double j = 1; j < steps; j++) dot(v, x0 + (x1 - x0) * j / steps, y0 + (y1 - y0) * j / steps, k);
            dot(v, x1, y1, k);
            x0 = x1, y0 = y1;
        }
        going = finite && !s->points;
    }
}

static void cell(const canvas *v, FILE *out, int at, bool colour) {
    unsigned code = 0x2800u + v->dots[at];
    if (!v->dots[at]) {
        putc(' ', out);
        return;
    }
    if (colour) fprintf(out, "\033[%dm", terminal_colours[v->who[at] - 1]);
    if (v->down == 1)
        putc(letters[v->who[at] - 1], out);
    else
        fprintf(out, "\xe2%c%c", (char)(0x80u | (code >> 6 & 0x3fu)), (char)(0x80u | (code & 0x3fu)));
    if (colour) fputs("\033[0m", out);
}

/* The numbers below the axis, each below its mark unless it would meet the last one. */
static void below(const canvas *v, FILE *out, int left) {
    double ticks[SVG_TICKS], step = 1;
    int    n = svg_ticks(v->c->x, v->columns / 12 + 2, ticks, &step), column = 0;
    char   buf[40];
    fprintf(out, "%*s└", left, "");
    for (int i = 0, k = 0; i < v->columns; i++) {
        while (k < n && round(part_of(v->c->x, ticks[k]) * (v->columns - 1)) < i) k++;
        fputs(k < n && round(part_of(v->c->x, ticks[k]) * (v->columns - 1)) == i ? "┬" : "─", out);
    }
    fprintf(out, "\n%*s ", left, "");
    for (int k = 0; k < n; k++) {
        int wide = (int)strlen(svg_tick_text(ticks[k], step, buf));
        int at   = (int)round(part_of(v->c->x, ticks[k]) * (v->columns - 1)) - wide / 2;
        if (at < 0) at = 0;
        if (at + wide > v->columns) at = v->columns - wide;
        if (at < column + (column > 0)) continue;
        fprintf(out, "%*s%s", at - column, "", buf);
        column = at + wide;
    }
    fprintf(out, "\n%*s%s\n", left + 1 + (v->columns - (int)strlen(v->c->x_label)) / 2, "", v->c->x_label);
}

static void write_canvas(const canvas *v, FILE *out, bool colour) {
    double       ticks[SVG_TICKS], step = 1;
    const chart *c    = v->c;
    int          most = v->rows / 3 + 1, left = 0;
    int          n = c->log_y ? svg_log_ticks(c->y, most, ticks) : svg_ticks(c->y, most, ticks, &step);
    char         texts[SVG_TICKS][40];
    for (int k = 0; k < n; k++) {
        if (c->log_y)
            svg_log_tick_text(ticks[k], texts[k]);
        else
            svg_tick_text(ticks[k], step, texts[k]);
        if ((int)strlen(texts[k]) > left) left = (int)strlen(texts[k]);
    }
    for (int row = 0; row < v->rows; row++) {
        int k = 0;
        while (k < n && (int)round(row_of(v, ticks[k], 1)) != row) k++;
        fprintf(out, "%*s %s", left, k < n ? texts[k] : "", k < n ? "┤" : "│");
        int last = v->columns;
        while (last > 0 && !v->dots[row * v->columns + last - 1]) last--;
        for (int i = 0; i < last; i++) cell(v, out, row * v->columns + i, colour);
        putc('\n', out);
    }
    below(v, out, left + 1);
}

static void write_legend(const chart *c, FILE *out, bool colour, bool marked) {
    for (int k = 0; k < c->n; k++) {
        if (colour)
            fprintf(out, "\033[%dm━━\033[0m ", terminal_colours[k % SVG_COLOURS]);
        else if (marked)
            fprintf(out, "%c ", letters[k % SVG_COLOURS]);
        fprintf(out, "%s%s", c->series[k].name, k + 1 < c->n ? "   " : "\n");
    }
}

bool chart_text(const chart *c, FILE *out, int width, int height, bool colour) {
    bool   marked = !colour && c->n > 1;
    canvas v      = {c, width - 14, height, marked ? 1 : 2, marked ? 1 : 4, NULL, NULL};
    if (v.columns < 10) v.columns = 10;
    size_t cells = (size_t)v.columns * (size_t)v.rows;
    v.dots       = calloc(2 * cells, 1);
    if (!v.dots) return false;
    v.who = v.dots + cells;
    for (int k = 0; k < c->n; k++) curve(&v, k);
    fprintf(out, "%s\n", c->title);
    write_legend(c, out, colour, marked);
    write_canvas(&v, out, colour);
    free(v.dots);
    return true;
}
