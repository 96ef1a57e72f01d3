/* bars.c: the longest bar fills what names and numbers leave. */
#include "draw/bars.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "draw/svg.h"
#include "trace/trace.h"

enum { WIDTH = 800, TOP = 44, ROW = 24, MOST_NAME = 32 };

/* The reach of the bars to either side of zero. */
typedef struct reach {
    double left, right;
} reach;

static reach reach_of(int n, const bar *bars) {
    reach r = {0, 0};
    for (int k = 0; k < n; k++) {
        if (!isfinite(bars[k].value)) continue;
        r.left  = fmax(r.left, -bars[k].value);
        r.right = fmax(r.right, bars[k].value);
    }
    return r;
}

/* Four digits; NaN has no sign. The number of its characters. */
static int number(char *text, double v) { return cot__format(text, 40, "%.4g", isnan(v) ? fabs(v) : v); }

/* So many columns to the right, to an eighth of one; the rest of `wide` is blank. */
static void to_the_right(FILE *out, double columns, int wide) {
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int                      eighths = (int)round(8 * columns), whole = eighths / 8, rest = eighths % 8;
    for (int k = 0; k < whole; k++) fputs("█", out);
    fprintf(out, "%s%*s", parts[rest], wide - whole - (rest > 0), "");
}

/* To the left there are whole and half columns only. */
static void to_the_left(FILE *out, double columns, int wide) {
    int halves = (int)round(2 * columns), whole = halves / 2, half = halves % 2;
    fprintf(out, "%*s%s", wide - whole - half, "", half ? "▐" : "");
    for (int k = 0; k < whole; k++) fputs("█", out);
}

void bars_text(FILE *out, int width, bool colour, int n, const bar *bars) {
    reach r     = reach_of(n, bars);
    int   names = 0, numbers = 0;
    char  text[40];
    for (int k = 0; k < n; k++) {
        int name = cot__columns(bars[k].name), digits = number(text, bars[k].value);
        if (name > names) names = name;
        if (digits > numbers) numbers = digits;
    }
    int room = width - names - numbers - 4;
    if (room < 10) room = 10;
    /* both sides have one scale, and the left one has whole columns */
    double all = r.left + r.right, most = room - (r.left > 0 && r.right > 0);
    int    left = r.left > 0 ? (int)ceil(most * (r.left / all) - 1e-9) : 0, right = room - left;
    for (int k = 0; k < n; k++) {
        double v        = bars[k].value;
        bool   negative = v < 0, finite = isfinite(v);
        fprintf(out, "%s%*s  ", bars[k].name, names - cot__columns(bars[k].name), "");
        if (colour) fputs(negative ? "\033[31m" : "\033[34m", out);
        to_the_left(out, finite && negative ? most * (-v / all) : 0, left);
        to_the_right(out, finite && v > 0 ? most * (v / all) : 0, right);
        if (colour) fputs("\033[0m", out);
        number(text, v);
        fprintf(out, "  %*s\n", numbers, text);
    }
}

void bars_svg(FILE *out, const char *title, const char *description, const char *label, int n, const bar *bars) {
    reach  r       = reach_of(n, bars);
    size_t longest = 1;
    char   text[40];
    for (int k = 0; k < n; k++)
        if (strlen(bars[k].name) > longest) longest = strlen(bars[k].name);
    if (longest > MOST_NAME) longest = MOST_NAME;
    double    left = 30 + 7.6 * (double)longest, ends[3] = {-r.left, 0, r.right};
    svg_panel p    = {.out    = out,
                      .left   = left,
                      .top    = TOP,
                      .width  = WIDTH - 90 - left,
                      .height = ROW * n + 8.0,
                      .x      = svg_range_of(3, ends),
                      .y      = {0, 1}};
    double    zero = left + p.width * (-p.x.low / (p.x.high - p.x.low));
    svg_open(out, WIDTH, TOP + ROW * n + 62, title, strlen(title), description);
    svg_axes(&p, label, NULL, true);
    for (int k = 0; k < n; k++) {
        double v = isfinite(bars[k].value) ? bars[k].value : 0, wide = p.width * fabs(v) / (p.x.high - p.x.low);
        double top = TOP + 4 + ROW * k, from = v < 0 ? zero - wide : zero;
        cot__write(out, "<rect class=\"bar %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n",
                   v < 0 ? "c1" : "c0", from, top + 3, wide, ROW - 6);
        svg_label(out, left - 8, top + 16, "text-anchor=\"end\"", bars[k].name);
        number(text, bars[k].value);
        svg_label(out, WIDTH - 84, top + 16, "", text);
    }
    cot__write(out, "<path class=\"frame\" d=\"M%.1f %dv%.1f\"/>\n", zero, TOP, p.height);
    svg_close(out);
}
