/* svg.c: draws in panels. Differences are computed from halved numbers, because a range may be as
 * wide as all doubles and its width would overflow. */
#include "draw/svg.h"

#include "base/number.h"
#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* more points, or corners of a line, than this are thinned out */
enum { MANY_POINTS = 20000, MANY_CORNERS = 4000 };

static const char style[] =
    "text{font:13px system-ui,sans-serif;fill:#222}.title{font-size:15px;font-weight:600}.back{fill:#fff}"
    ".frame{fill:none;stroke:#555}.grid{stroke:#ddd}.data{stroke:#1565c0}.fit{fill:none;stroke:#d84315;stroke-width:2}"
    ".zero{fill:none;stroke:#555;stroke-dasharray:4 3}.point{fill:none;stroke-width:5;stroke-linecap:round}"
    ".line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}.raw{stroke-width:1;opacity:.35}"
    ".dots{stroke:currentColor}.bar{fill:currentColor}"
    ".c0{color:#1565c0}.c1{color:#d84315}.c2{color:#2e7d32}.c3{color:#7b1fa2}.c4{color:#a66a00}.c5{color:#00838f}"
    ".c6{color:#c2185b}.c7{color:#546e7a}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.back{fill:#161616}.frame,.zero{stroke:#aaa}.grid{stroke:#333}"
    ".data{stroke:#64b5f6}.fit{stroke:#ff8a65}.c0{color:#64b5f6}.c1{color:#ff8a65}.c2{color:#81c784}.c3{color:#ce93d8}"
    ".c4{color:#ffca28}.c5{color:#4dd0e1}.c6{color:#f48fb1}.c7{color:#b0bec5}}";

const char *svg_colour(int k, char *buf) {
    snprintf(buf, 8, "c%d", k % SVG_COLOURS);
    return buf;
}

svg_range svg_range_of(int64_t n, const double *v) {
    svg_range r = {INFINITY, -INFINITY};
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) continue;
        r.low = fmin(r.low, v[i]);
        r.high = fmax(r.high, v[i]);
    }
    if (!(r.low <= r.high)) r = (svg_range){0, 0};
    double half = r.high / 2 - r.low / 2, margin = 0.06 * half;
    double size = fmax(fabs(r.low), fabs(r.high));
    /* all numbers are the same */
    if (half <= 1e-12 * size || size == 0) margin = size > 0 ? 0.1 * size : 1;
    return (svg_range){fmax(r.low - margin, -1.7e308), fmin(r.high + margin, 1.7e308)};
}

svg_range svg_range_join(svg_range a, svg_range b) { return (svg_range){fmin(a.low, b.low), fmax(a.high, b.high)}; }

int svg_ticks(svg_range r, int most, double ticks[SVG_TICKS], double *step) {
    static const double round[] = {1, 2, 5, 10};
    double              wanted = (r.high / 2 - r.low / 2) * (2.0 / (most > SVG_TICKS ? SVG_TICKS : most));
    double              power = pow(10, floor(log10(wanted)));
    int                 k = 0, n = 0;
    if (!(wanted > 0) || !isfinite(wanted) || !(power > 0)) return 0;
    while (k < 3 && round[k] * power < wanted) k++;
    *step = round[k] * power;
    for (double i = ceil(r.low / *step); i * *step <= r.high && n < SVG_TICKS; i++) {
        ticks[n] = i * *step + 0.0;                     /* + 0.0 turns -0 into 0 */
        if (n > 0 && !(ticks[n] > ticks[n - 1])) break; /* ticks are closer than numbers can be */
        n++;
    }
    return n;
}

int svg_log_ticks(svg_range r, int most, double ticks[SVG_TICKS]) {
    static const double parts[] = {0, 0.3010299956639812, 0.6989700043360189}; /* of 1, 2, 5 */
    double              decades = floor(r.high) - ceil(r.low) + 1;
    int                 n = 0;
    if (most > SVG_TICKS) most = SVG_TICKS;
    double every = decades > most ? ceil(decades / most) : 1;
    int    fine = decades < 3 ? 3 : 1;
    double first = floor(r.low / every);
    for (int j = 0; j <= SVG_TICKS && n < SVG_TICKS; j++) {
        double k = (first + j) * every;
        for (int i = 0; i < fine && n < SVG_TICKS; i++)
            if (k + parts[i] >= r.low && k + parts[i] <= r.high) ticks[n++] = k + parts[i];
    }
    return n;
}

const char *svg_log_tick_text(double tick, char *buf) {
    double power = floor(tick + 1e-9), digit = round(pow(10, tick - power));
    if (power >= -4 && power <= 5) cot__format(buf, 40, "%.*f", power < 0 ? (int)-power : 0, digit * pow(10, power));
    else cot__format(buf, 40, "%.0fe%.0f", digit, power);
    return buf;
}

const char *svg_tick_text(double tick, double step, char *buf) {
    /* the decimal place that changes from tick to tick */
    int last = (int)floor(log10(step) + 1e-9);
    if (tick == 0) snprintf(buf, 40, "0");
    else if (fabs(tick) < 1e6 && last >= -6) cot__format(buf, 40, "%.*f", last < 0 ? -last : 0, tick);
    else {
        int digits = (int)floor(log10(fabs(tick)) + 1e-9) - last;
        cot__format(buf, 40, "%.*e", digits < 0 ? 0 : digits > 16 ? 16 : digits, tick);
    }
    return buf;
}

void svg_text(FILE *out, const char *s, size_t n, size_t most) {
    for (; n > 0 && most > 0; most--) {
        unsigned char c = (unsigned char)*s;
        size_t        length = cot__utf8(s, n);
        /* U+FFFE and U+FFFF are not allowed in XML */
        bool forbidden = length == 3 && memcmp(s, "\xef\xbf\xbe", 2) == 0 && (unsigned char)s[2] >= 0xbe;
        if (most == 1 && n > (length ? length : 1)) fputs("…", out);
        else if (c == '<') fputs("&lt;", out);
        else if (c == '>') fputs("&gt;", out);
        else if (c == '&') fputs("&amp;", out);
        else if (c == '"') fputs("&quot;", out);
        else if (c == '\n' || c == '\t' || c == '\r') fputc(' ', out);
        else if (length == 0 || c < 0x20 || forbidden) fputs("\xef\xbf\xbd", out);
        else fwrite(s, 1, length, out);
        length = length ? length : 1;
        s += length;
        n -= length;
    }
}

void svg_open(FILE *out, int width, int height, const char *title, size_t n, const char *description) {
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "role=\"img\">\n<title>",
            width, height, width, height);
    svg_text(out, title, n, 4000);
    fputs("</title>\n<desc>", out);
    svg_text(out, description, strlen(description), 4000);
    fprintf(out, "</desc>\n<style>%s</style>\n<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", style, width,
            height);
    fprintf(out, "<text class=\"title\" x=\"%d\" y=\"26\" text-anchor=\"middle\">", width / 2);
    svg_text(out, title, n, 90);
    fputs("</text>\n", out);
}

void svg_close(FILE *out) { fputs("</svg>\n", out); }

static double part(svg_range r, double v) { return (v / 2 - r.low / 2) / (r.high / 2 - r.low / 2); }

/* Points far outside of the panel need no exact place. */
static double bounded(double v) { return fmax(-1e5, fmin(1e5, v)); }

static double place_x(const svg_panel *p, double v) { return bounded(p->left + p->width * part(p->x, v)); }
static double place_y(const svg_panel *p, double v) { return bounded(p->top + p->height * (1 - part(p->y, v))); }

void svg_label(FILE *out, double x, double y, const char *more, const char *text) {
    cot__write(out, "<text x=\"%.1f\" y=\"%.1f\"%s%s>", x, y, *more ? " " : "", more);
    svg_text(out, text, strlen(text), 60);
    fputs("</text>\n", out);
}

void svg_axes(const svg_panel *p, const char *x_label, const char *y_label, bool x_numbers) {
    double ticks[SVG_TICKS], step, right = p->left + p->width, bottom = p->top + p->height;
    char   buf[40], turned[96];
    int    n = svg_ticks(p->x, 9, ticks, &step);
    for (int k = 0; k < n; k++) {
        double at = place_x(p, ticks[k]);
        cot__write(p->out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", at, p->top, at,
                   bottom);
        if (x_numbers) svg_label(p->out, at, bottom + 18, "text-anchor=\"middle\"", svg_tick_text(ticks[k], step, buf));
    }
    int most = p->height > 200 ? 9 : 5;
    n = !y_label ? 0 : p->log_y ? svg_log_ticks(p->y, most, ticks) : svg_ticks(p->y, most, ticks, &step);
    for (int k = 0; k < n; k++) {
        double at = place_y(p, ticks[k]);
        cot__write(p->out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", p->left, at,
                   right, at);
        svg_label(p->out, p->left - 6, at + 4, "text-anchor=\"end\"",
                  p->log_y ? svg_log_tick_text(ticks[k], buf) : svg_tick_text(ticks[k], step, buf));
    }
    cot__write(p->out, "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", p->left,
               p->top, p->width, p->height);
    if (x_numbers) svg_label(p->out, p->left + p->width / 2, bottom + 38, "text-anchor=\"middle\"", x_label);
    if (!y_label) return;
    double middle = p->top + p->height / 2;
    cot__format(turned, sizeof turned, "text-anchor=\"middle\" transform=\"rotate(-90 18 %.1f)\"", middle);
    svg_label(p->out, 18, middle, turned, y_label);
}

/* Of many points only one is drawn in each square of one unit, a fifth of a point's width. A viewer
 * need not draw a million points that cover each other. */
bool svg_points(const svg_panel *p, const char *class, int64_t n, const double *x, const double *y) {
    size_t wide = (size_t)p->width + 1, high = (size_t)p->height + 1;
    bool  *taken = n > MANY_POINTS ? calloc(wide * high, sizeof *taken) : NULL;
    if (n > MANY_POINTS && !taken) return false;
    fprintf(p->out, "<path class=\"point %s\" d=\"", class);
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i])) continue;
        double right = place_x(p, x[i]), down = place_y(p, y[i]), column = right - p->left, row = down - p->top;
        if (taken && column >= 0 && column < (double)wide && row >= 0 && row < (double)high) {
            bool *at = &taken[(size_t)row * wide + (size_t)column];
            if (*at) continue;
            *at = true;
        }
        cot__write(p->out, "M%.1f %.1fh0", right, down);
    }
    fputs("\"/>\n", p->out);
    free(taken);
    return true;
}

/* A line is written corner by corner. A thinned one waits until it leaves a column of one unit,
 * then writes the lowest, the highest and the last place in it, which look like all of them. */
typedef struct pen {
    FILE  *out;
    bool   going, thin, waits;
    double column, low, high, last;
} pen;

static void corner(pen *q, double x, double y) {
    cot__write(q->out, "%c%.1f %.1f", q->going ? 'L' : 'M', x, y);
    q->going = true;
}

static void leave_column(pen *q) {
    if (!q->waits) return;
    corner(q, q->column, q->low);
    if (q->high != q->low) corner(q, q->column, q->high);
    if (q->last != q->high) corner(q, q->column, q->last);
    q->waits = false;
}

static void draw_to(pen *q, double x, double y) {
    if (!q->thin) {
        corner(q, x, y);
        return;
    }
    if (q->waits && round(x) == q->column) {
        q->low = fmin(q->low, y);
        q->high = fmax(q->high, y);
        q->last = y;
        return;
    }
    leave_column(q);
    *q = (pen){q->out, q->going, true, true, round(x), y, y, y};
}

void svg_line(const svg_panel *p, const char *class, int64_t n, const double *x, const double *y) {
    pen q = {.out = p->out, .thin = n > MANY_CORNERS};
    cot__write(p->out, "<svg x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><path class=\"%s\" d=\"", p->left,
               p->top, p->width, p->height, class);
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(x[i]) && isfinite(y[i])) {
            draw_to(&q, place_x(p, x[i]) - p->left, place_y(p, y[i]) - p->top);
        } else {
            leave_column(&q);
            q.going = false;
        }
    }
    leave_column(&q);
    fputs("\"/></svg>\n", p->out);
}

/* Where the next entry of a legend stands, between left and right. */
typedef struct pencil {
    double left, right, x, y;
} pencil;

static void put_key(FILE *out, pencil *at, const svg_key *key) {
    double wide = (key->class ? 34 : 8) + 7.6 * (double)strlen(key->name);
    if (at->x > at->left && at->x + wide > at->right) at->x = at->left, at->y += 20;
    double x = at->x, y = at->y;
    at->x += wide + 16;
    if (!out) return;
    if (key->point) cot__write(out, "<path class=\"point %s\" d=\"M%.1f %.1fh0\"/>\n", key->class, x + 10, y - 4);
    else if (key->class) cot__write(out, "<path class=\"%s\" d=\"M%.1f %.1fh20\"/>\n", key->class, x, y - 4);
    svg_label(out, x + (key->class ? 26 : 0), y, "", key->name);
}

double svg_keys(FILE *out, double left, double width, int n, const svg_key *keys) {
    pencil at = {left, left + width, left, 50};
    for (int k = 0; k < n; k++) put_key(out, &at, &keys[k]);
    return at.y + 14;
}

double svg_legend(FILE *out, double left, double width, int n, const char *const *names) {
    pencil at = {left, left + width, left, 50};
    char   class[16], colour[8];
    for (int k = 0; k < n; k++) {
        snprintf(class, sizeof class, "line %s", svg_colour(k, colour));
        put_key(out, &at, &(svg_key){names[k], class, false});
    }
    return at.y + 14;
}
