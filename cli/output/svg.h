/* svg.h: axes with points and curves, as SVG. Colours are classes of a style sheet that knows light
 * and dark. */
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
} svg_panel;

/* The range of the finite ones among n numbers, a little wider; and joined with another range. */
svg_range svg_range_of(int64_t n, const double *v);
svg_range svg_range_join(svg_range a, svg_range b);

/* At most `most` ticks, at round numbers in order; their number. step is their distance. */
enum { SVG_TICKS = 12 };
int svg_ticks(svg_range r, int most, double ticks[SVG_TICKS], double *step);
/* A tick as a label, with the digits that tell it from the next; buf of 40 bytes. */
const char *svg_tick_text(double tick, double step, char *buf);

/* Text between tags: escaped, what XML does not allow becomes U+FFFD, at most `most` characters
 * (then …). */
void svg_text(FILE *out, const char *s, size_t n, size_t most);

/* The whole picture: title is also what a screen reader says, before the description. */
void svg_open(FILE *out, int width, int height, const char *title, size_t n, const char *description);
void svg_close(FILE *out);

/* Frame, grid, ticks and labels; numbers below the x axis only when wanted. */
void svg_axes(const svg_panel *p, const char *x_label, const char *y_label, bool x_numbers);
/* Points of a class; those that are not finite are left out. */
bool svg_points(const svg_panel *p, const char *class, int64_t n, const double *x, const double *y);
/* A line through points, interrupted where they are not finite. Outside of the panel it is cut. */
void svg_line(const svg_panel *p, const char *class, int64_t n, const double *x, const double *y);

#endif
