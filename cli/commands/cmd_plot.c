/* cmd_plot.c: cotangent plot: the curves of training runs, in the terminal and as SVG. A run may
 * still be going on while its file is read. */
#include "commands/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"
#include "draw/chart.h"
#include "expr/expr.h"
#include "io/memory_file.h"
#include "io/system.h"
#include "problem/names.h"
#include "watch/run_file.h"

enum { MOST_RUNS = 16, MOST_CURVES = 64, MOST_WANTED = 16, LABEL = 120, HEIGHT = 16 };

typedef struct curve {
    const run_file *file;
    const char     *name;
    char            label[LABEL]; /* fit for a terminal */
    int64_t         n, left_out;  /* points; those that a logarithm has none of */
    double         *x, *y, *smooth;
    /* of what the file says; NAN: no finite number */
    double x_low, x_high, y_low, y_high, last;
} curve;

typedef struct plot {
    const options *o;
    run_file      *runs;
    int            run_count, curve_count;
    curve         *curves;
    chart_series  *series;
    chart          c;
    char           title[LABEL], y_label[LABEL];
} plot;

/* ---- what to draw ---------------------------------------------------------------------------- */

/* loss, test/loss, val_loss */
static bool is_loss(const char *name) {
    size_t n = strlen(name);
    return n >= 4 && strcmp(name + n - 4, "loss") == 0 && (n == 4 || strchr("/_", name[n - 5]));
}

static bool is_listed(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strcspn(at, ",") == n && strncmp(at, name, n) == 0) return true;
    return false;
}

/* Every name of --y is in one of the files. */
static bool all_are_there(const plot *p, failure *f) {
    const char *names[MOST_CURVES];
    char        list[600];
    int         n = 0;
    for (int i = 0; i < p->run_count; i++)
        for (int k = 0; k < p->runs[i].n && n < MOST_CURVES; k++) {
            bool known = false;
            for (int j = 0; j < n; j++) known = known || strcmp(names[j], p->runs[i].series[k].name) == 0;
            if (!known) names[n++] = p->runs[i].series[k].name;
        }
    if (n == 0) return failure_set(f, EXIT_RUN, "data", "%.200s has no numbers yet", p->runs[0].path);
    for (const char *at = p->o->y; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char wanted[100];
        bool there = false;
        snprintf(wanted, sizeof wanted, "%.*s", (int)(strcspn(at, ",") % sizeof wanted), at);
        for (int j = 0; j < n; j++) there = there || strcmp(names[j], wanted) == 0;
        if (there) continue;
        const char *near = cot__nearest(wanted, n, names);
        return failure_set(f, EXIT_USAGE, "usage", "--y: there is no '%s'%s%s; there is %.500s", wanted,
                           near ? ", did you mean " : "", near ? near : "", list_names(n, names, list, sizeof list));
    }
    return true;
}

/* Without --y: the losses, or everything where there is none. */
static bool is_wanted(const plot *p, const char *name) {
    if (p->o->y) return is_listed(p->o->y, name);
    bool any = false;
    for (int i = 0; i < p->run_count; i++)
        for (int k = 0; k < p->runs[i].n; k++) any = any || is_loss(p->runs[i].series[k].name);
    return !any || is_loss(name);
}

/* A name for the legend, without what a terminal would obey. */
static void write_label(char *to, size_t size, const char *text) {
    size_t used = strlen(to);
    for (size_t left = strlen(text), n; left > 0 && used + 5 < size; text += n, left -= n) {
        n = cot__utf8_shown(text, left);
        if (n)
            memcpy(to + used, text, n), used += n;
        else
            to[used++] = '?', n = 1;
    }
    to[used] = 0;
}

/* ---- curves ---------------------------------------------------------------------------------- */

static void widen(double v, double *low, double *high) {
    if (!isfinite(v)) return;
    *low  = *low <= v ? *low : v;
    *high = *high >= v ? *high : v;
}

/* The sum of a window that only moves on. Nothing is subtracted, so that one huge number does not
 * spoil those behind it: up to `middle` the ends [k, middle) have been summed beforehand, and
 * behind it what came since. */
typedef struct window {
    const double *v;
    double       *ends; /* of v's size */
    int64_t       low, middle, high, count;
    double        since;
} window;

static void take_next(window *w) {
    double v = w->v[w->high++];
    if (isfinite(v)) w->since += v, w->count++;
}

static void drop_first(window *w) {
    if (w->low == w->middle) {
        double sum = 0;
        for (int64_t k = w->high; k-- > w->low;) w->ends[k] = sum += isfinite(w->v[k]) ? w->v[k] : 0;
        w->middle = w->high;
        w->since  = 0;
    }
    w->count -= isfinite(w->v[w->low++]) ? 1 : 0;
}

/* Means of the finite numbers within `wide` steps, half of them before and half behind; a number
 * that is not finite stays what it is. */
static void make_smooth(curve *c, const double *step, double wide, double *ends) {
    window w = {.v = c->y, .ends = ends};
    for (int64_t i = 0; i < c->n; i++) {
        while (w.high < c->n && (w.high <= i || step[w.high] <= step[i] + wide / 2)) take_next(&w);
        while (w.low < i && step[w.low] <= step[i] - wide / 2) drop_first(&w);
        double sum   = w.since + (w.low < w.middle ? w.ends[w.low] : 0);
        c->smooth[i] = isfinite(c->y[i]) ? sum / (double)w.count : c->y[i];
    }
}

static void make_logarithms(curve *c) {
    for (int64_t i = 0; i < c->n; i++) {
        if (isfinite(c->y[i]) && !(c->y[i] > 0)) c->left_out++;
        c->y[i] = c->y[i] > 0 ? log10(c->y[i]) : NAN;
        if (c->smooth) c->smooth[i] = c->smooth[i] > 0 ? log10(c->smooth[i]) : NAN;
    }
}

static bool make_curve(plot *p, const run_file *file, const run_series *s, failure *f) {
    curve *c = &p->curves[p->curve_count];
    *c       = (curve){.file   = file,
                       .name   = s->name,
                       .n      = s->n,
                       .x_low  = NAN,
                       .x_high = NAN,
                       .y_low  = NAN,
                       .y_high = NAN,
                       .last   = NAN};
    c->x     = malloc(4 * ((size_t)s->n + 1) * sizeof *c->x);
    if (!c->x) return failure_memory(f);
    p->curve_count++;
    c->y = c->x + s->n;
    memcpy(c->x, p->o->x && strcmp(p->o->x, "seconds") == 0 ? s->seconds : s->step, (size_t)s->n * sizeof *c->x);
    memcpy(c->y, s->value, (size_t)s->n * sizeof *c->y);
    for (int64_t i = 0; i < s->n; i++) {
        widen(c->x[i], &c->x_low, &c->x_high);
        widen(c->y[i], &c->y_low, &c->y_high);
    }
    if (s->n) c->last = c->y[s->n - 1];
    if (p->o->smooth > 1) c->smooth = c->y + s->n, make_smooth(c, s->step, p->o->smooth, c->smooth + s->n);
    if (p->o->log) make_logarithms(c);
    return true;
}

/* A curve is named by what tells it from the others. */
static void name_curves(plot *p) {
    bool one_name = true;
    for (int k = 1; k < p->curve_count; k++) one_name = one_name && strcmp(p->curves[k].name, p->curves[0].name) == 0;
    for (int k = 0; k < p->curve_count; k++) {
        curve *c = &p->curves[k];
        if (p->run_count > 1) write_label(c->label, LABEL, c->file->path);
        if (p->run_count > 1 && !one_name) write_label(c->label, LABEL, ": ");
        if (p->run_count == 1 || !one_name) write_label(c->label, LABEL, c->name);
    }
    if (p->run_count == 1)
        write_label(p->title, LABEL, p->runs[0].path);
    else
        snprintf(p->title, LABEL, "%d runs", p->run_count);
    if (one_name) write_label(p->y_label, LABEL, p->curves[0].name);
}

static bool plot_make(plot *p, failure *f) {
    p->curves = calloc(MOST_CURVES, sizeof *p->curves);
    p->series = calloc(MOST_CURVES, sizeof *p->series);
    if (!p->curves || !p->series) return failure_memory(f);
    if (!all_are_there(p, f)) return false;
    for (int i = 0; i < p->run_count; i++) {
        for (int k = 0; k < p->runs[i].n; k++) {
            if (!is_wanted(p, p->runs[i].series[k].name)) continue;
            if (p->curve_count == MOST_CURVES)
                return failure_usage(f, "there are more than %d curves; choose with --y", MOST_CURVES);
            if (!make_curve(p, &p->runs[i], &p->runs[i].series[k], f)) return false;
        }
    }
    name_curves(p);
    for (int k = 0; k < p->curve_count; k++) {
        curve *c     = &p->curves[k];
        p->series[k] = (chart_series){.name = c->label, .n = c->n, .x = c->x, .y = c->y, .smooth = c->smooth};
    }
    p->c = (chart){.title   = p->title,
                   .x_label = p->o->x ? p->o->x : "step",
                   .y_label = p->y_label,
                   .log_y   = p->o->log,
                   .n       = p->curve_count,
                   .series  = p->series};
    chart_measure(&p->c);
    return true;
}

static bool plot_open(plot *p, const options *o, failure *f) {
    *p      = (plot){.o = o};
    p->runs = calloc(MOST_RUNS, sizeof *p->runs);
    if (!p->runs) return failure_memory(f);
    for (int i = 0; i < o->positional_count; i++) {
        p->run_count = i + 1;
        if (!run_file_read(&p->runs[i], o->positionals[i], f)) return false;
    }
    return plot_make(p, f);
}

static void plot_close(plot *p) {
    for (int k = 0; k < p->curve_count; k++) free(p->curves[k].x);
    for (int i = 0; i < p->run_count; i++) run_file_free(&p->runs[i]);
    free(p->curves);
    free(p->series);
    free(p->runs);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void as_svg(const void *x, FILE *to, failure *f) {
    const plot *p = x;
    char        text[600];
    (void)f;
    int n = snprintf(text, sizeof text, "%d curve%s against %s:", p->curve_count, p->curve_count == 1 ? "" : "s",
                     p->c.x_label);
    for (int k = 0; k < p->curve_count && n < 400; k++)
        n += cot__format(text + n, sizeof text - (size_t)n, "%s %s, %lld points, last %.4g", k ? ";" : "",
                         p->curves[k].label, (long long)p->curves[k].n, p->curves[k].last);
    chart_svg(&p->c, to, text);
}

static void range_json(cot__json *j, const char *key, double low, double high) {
    cot__json_key(j, key);
    cot__json_open(j, '[');
    cot__json_number(j, low);
    cot__json_number(j, high);
    cot__json_close(j, ']');
}

static void as_json(const plot *p, FILE *out) {
    cot__json j = cot__json_to(out);
    cot__json_open(&j, '{');
    cot__json_key(&j, "x"), cot__json_string(&j, p->c.x_label);
    cot__json_key(&j, "log"), cot__json_bool(&j, p->o->log);
    cot__json_key(&j, "smooth"), cot__json_integer(&j, p->o->smooth > 1 ? p->o->smooth : 1);
    cot__json_key(&j, "series"), cot__json_open(&j, '[');
    for (int k = 0; k < p->curve_count; k++) {
        const curve *c = &p->curves[k];
        cot__json_open(&j, '{');
        cot__json_key(&j, "file"), cot__json_string(&j, c->file->path);
        cot__json_key(&j, "name"), cot__json_string(&j, c->name);
        cot__json_key(&j, "points"), cot__json_integer(&j, c->n);
        range_json(&j, "x", c->x_low, c->x_high);
        range_json(&j, "y", c->y_low, c->y_high);
        cot__json_key(&j, "last"), cot__json_number(&j, c->last);
        if (c->left_out) cot__json_key(&j, "left_out"), cot__json_integer(&j, c->left_out);
        cot__json_close(&j, '}');
    }
    cot__json_close(&j, ']');
    cot__json_close(&j, '}');
    fputs("\n", out);
}

static void as_text(const plot *p, FILE *out, look how, failure *f) {
    int width = how.width > 120 ? 120 : how.width;
    if (!chart_text(&p->c, out, width, HEIGHT, how.colour)) {
        failure_memory(f);
        return;
    }
    for (int k = 0; k < p->curve_count; k++)
        if (p->curves[k].left_out == 1)
            fprintf(out, "%s: 1 number that is not positive has no logarithm and is left out.\n", p->curves[k].label);
        else if (p->curves[k].left_out)
            fprintf(out, "%s: %lld numbers that are not positive have no logarithm and are left out.\n",
                    p->curves[k].label, (long long)p->curves[k].left_out);
}

static int plot_once(const options *o, FILE *out, look how, bool *ended, int64_t *bytes, failure *f) {
    plot p;
    *ended = true;
    *bytes = 0;
    if (plot_open(&p, o, f)) {
        if (o->svg) memory_file_put(o->svg, as_svg, &p, out, f);
        if (f->status == EXIT_FINE && o->json)
            as_json(&p, out);
        else if (f->status == EXIT_FINE && !o->svg)
            as_text(&p, out, how, f);
    }
    for (int i = 0; i < p.run_count; i++) {
        *ended = *ended && p.runs[i].last >= p.runs[i].steps;
        *bytes += p.runs[i].bytes;
    }
    plot_close(&p);
    return EXIT_FINE;
}

/* Draws on a cleared screen whenever a file has grown, until all runs have done their steps; the
 * last picture is the output of the command. */
static int plot_follow(const options *o, FILE *out, look how, failure *f) {
    for (int64_t before = -1, bytes;;) {
        memory_file m;
        bool        ended;
        if (!memory_file_open(&m, f)) return EXIT_RUN;
        plot_once(o, m.file, how, &ended, &bytes, f);
        bool fine     = memory_file_close(&m, f) && f->status == EXIT_FINE;
        bool none_yet = !fine && strcmp(f->code, "data") == 0;
        if (none_yet) *f = (failure){0};
        if (fine && ended)
            fputs("\033[H\033[2J", out), fwrite(m.text, 1, m.size, out);
        else if (fine && bytes != before)
            fine = system_write(stdout, "\033[H\033[2J", 7, f) && system_write(stdout, m.text, m.size, f);
        memory_file_free(&m);
        if ((!fine && !none_yet) || (fine && ended)) return EXIT_FINE;
        before = bytes;
        system_sleep(0.5);
    }
}

int run_plot(const options *o, FILE *out, look how, failure *f) {
    bool    ended;
    int64_t bytes;
    if (o->positional_count == 0)
        failure_usage(f, "which run? cotangent plot run.jsonl");
    else if (o->positional_count > MOST_RUNS)
        failure_usage(f, "plot takes at most %d runs, not %d", MOST_RUNS, o->positional_count);
    else if (o->json && o->svg && strcmp(o->svg, "-") == 0)
        failure_usage(f, "only one of --json and --svg - can go to the standard output");
    else if (o->follow && (o->svg || o->json))
        failure_usage(f, "--follow draws in the terminal; it does not go together with --svg and --json");
    else if (o->follow && !system_is_terminal(stdout))
        failure_usage(f, "--follow draws again and again, which takes a terminal");
    else if (o->follow)
        return plot_follow(o, out, how, f);
    else
        return plot_once(o, out, how, &ended, &bytes, f);
    return EXIT_USAGE;
}
