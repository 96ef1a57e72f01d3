/* chart.h: curves over one axis, as SVG and in a terminal. */
#ifndef COT_CLI_CHART_H
#define COT_CLI_CHART_H

#include "draw/svg.h"

typedef struct chart_series {
    const char   *name;
    int64_t       n;
    const double *x, *y;
    const double *smooth; /* drawn above y, which is then faint; NULL: only y */
    bool          points; /* in a terminal: no line joins them */
} chart_series;

typedef struct chart {
    const char         *title, *x_label, *y_label;
    bool                log_y; /* y, smooth and the range are logarithms to the base 10 */
    int                 n;
    const chart_series *series;
    svg_range           x, y;
} chart;

/* Sets the ranges from what the series hold. */
void chart_measure(chart *c);
/* The whole picture. `description` is for those who cannot see it. */
void chart_svg(const chart *c, FILE *out, const char *description);
/* At most `width` columns and about `height` lines, in dots of Braille. Several curves without
 * colour are drawn in letters. False when memory is short. */
bool chart_text(const chart *c, FILE *out, int width, int height, bool colour);

#endif
