/* svg.h: axes with points and curves, as SVG. Colours are classes of a style sheet with a light and
 * a dark theme: c0 to c7 for things that have to be told apart.
 *
 * The folder draws what people look at: curves, bars, points and images, as SVG and in a terminal.
 * May call: libc, base, JSON's numbers. Must not touch: expressions, files, tapes. */
#ifndef COT_CLI_SVG_H
#define COT_CLI_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* An interval that holds finite numbers, and round ticks inside it. */
typedef struct svg_range {
    double low, high;
} svg_range;

typedef struct svg_panel {
    FILE     *out;
    double    left, top, width, height; /* in the picture */
    svg_range x, y;
    bool      log_y; /* numbers of y, and the range, are logarithms to the base 10 */
} svg_panel;

/* The range of the finite numbers among n, a little wider; and the union of two ranges. */
svg_range svg_range_of(int64_t n, const double *v);
svg_range svg_range_join(svg_range a, svg_range b);

/* Finds at most `most` ticks at round numbers, in order, and returns how many. step is their
 * distance. */
enum { SVG_TICKS = 12 };
int svg_ticks(svg_range r, int most, double ticks[SVG_TICKS], double *step);
/* The same for a range of logarithms to the base 10: ticks at powers of ten, or at 1, 2 and 5 times
 * them where those are few. */
int svg_log_ticks(svg_range r, int most, double ticks[SVG_TICKS]);
/* The label of such a tick. buf has 40 bytes. */
const char *svg_log_tick_text(double tick, char *buf);
/* A tick as a label, with enough digits to tell it from the next one. buf has 40 bytes. */
const char *svg_tick_text(double tick, double step, char *buf);

/* Writes text between tags: escaped, U+FFFD for characters that XML does not allow, at most `most`
 * characters (then …). */
void svg_text(FILE *out, const char *s, size_t n, size_t most);

/* The number of colours, and the class of the k-th thing: c0, …, then again from c0. buf has 8
 * bytes. */
enum { SVG_COLOURS = 8 };
const char *svg_colour(int k, char *buf);

/* Opens the whole picture. A screen reader reads the title, then the description. */
void svg_open(FILE *out, int width, int height, const char *title, size_t n, const char *description);
void svg_close(FILE *out);

/* Draws frame, grid, ticks and labels. Numbers below the x axis only if x_numbers is set. y_label
 * NULL: the y axis has neither ticks nor label. */
void svg_axes(const svg_panel *p, const char *x_label, const char *y_label, bool x_numbers);
/* Points of a class; those that are not finite are left out. */
bool svg_points(const svg_panel *p, const char *class, int64_t n, const double *x, const double *y);
/* A line through points, interrupted where they are not finite. Outside of the panel it is cut. Of
 * more points than a screen can show, those that stretch the line in its column are kept. */
void svg_line(const svg_panel *p, const char *class, int64_t n, const double *x, const double *y);

/* An entry of a legend: a name beside a stroke, or a point, of a class; only the name without. */
typedef struct svg_key {
    const char *name, *class;
    bool        point;
} svg_key;

/* Entries in rows below the title. Returns the y at which the picture goes on; out NULL: only
 * that. */
double svg_keys(FILE *out, double left, double width, int n, const svg_key *keys);
/* The same of names beside strokes in the colours c0, c1, … */
double svg_legend(FILE *out, double left, double width, int n, const char *const *names);
/* A text at a place; `more` are attributes. */
void svg_label(FILE *out, double x, double y, const char *more, const char *text);

#endif
