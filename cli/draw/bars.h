/* bars.h: numbers with names as horizontal bars, as SVG and in a terminal. Bars of negative numbers
 * go to the left of a common zero. */
#ifndef COT_CLI_BARS_H
#define COT_CLI_BARS_H

#include <stdbool.h>
#include <stdio.h>

typedef struct bar {
    const char *name;
    double      value;
} bar;

/* In at most `width` columns: name, bar, number. A number that is not finite has no bar. */
void bars_text(FILE *out, int width, bool colour, int n, const bar *bars);
/* The whole picture; `label` says below the axis what the numbers are. */
void bars_svg(FILE *out, const char *title, const char *description, const char *label, int n, const bar *bars);

#endif
