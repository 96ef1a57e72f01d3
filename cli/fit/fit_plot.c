/* fit_plot.c: the picture of a fit. With one column: data and curve above, residuals below; with
 * more, residuals against fitted values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit/fit.h"
#include "draw/chart.h"
#include "draw/svg.h"

/* HEIGHT: of the panels and what stands below them. */
enum { WIDTH = 800, HEIGHT = 556, LEFT = 90, INNER = 690, CURVE = 600, VALUE = 128 };

/* Computes the curve between the least and the greatest x: points at[CURVE], values out[CURVE]. The
 * model is evaluated on the data and these points together. If the data then get other values than
 * before, the expression mixes rows (a mean, say), and there is no curve. */
static bool make_curve(fit *x, const double *fitted, double *at, double *out) {
    int64_t       m = x->table.rows;
    const double *column = x->columns[0].values;
    double       *both = malloc((size_t)(m + CURVE) * 2 * sizeof *both);
    if (!both) return failure_memory(x->f);
    double *value = both + m + CURVE;
    double  low = column[0], high = column[0], most = 0;
    for (int64_t i = 0; i < m; i++) {
        low = fmin(low, column[i]);
        high = fmax(high, column[i]);
        most = fmax(most, fabs(fitted[i]));
    }
    for (int k = 0; k < CURVE; k++) {
        double part = (double)k / (CURVE - 1);
        at[k] = low * (1 - part) + high * part;
    }
    memcpy(both, column, (size_t)m * sizeof *both);
    memcpy(both + m, at, CURVE * sizeof *both);
    bool fine = fit_curve(x, m + CURVE, both, value);
    for (int64_t i = 0; fine && i < m; i++) fine = fabs(value[i] - fitted[i]) <= 1e-9 * most;
    if (fine) memcpy(out, value + m, CURVE * sizeof *out);
    free(both);
    return fine;
}

static void residuals(const svg_panel *p, const fit *x, const double *against, const char *label) {
    double ends[2] = {p->x.low, p->x.high}, zero[2] = {0, 0};
    svg_axes(p, label, "residual", true);
    svg_line(p, "zero", 2, ends, zero);
    if (!svg_points(p, "data", x->table.rows, against, x->r)) failure_memory(x->f);
}

/* The range of the residuals, with zero in the middle. */
static svg_range residual_range(const fit *x) {
    svg_range r = svg_range_of(x->table.rows, x->r);
    double    most = fmax(fabs(r.low), fabs(r.high));
    return (svg_range){-most, most};
}

static void with_curve(fit *x, FILE *out, double top, const double *fitted) {
    int64_t       m = x->table.rows;
    const double *column = x->columns[0].values;
    double        at[CURVE], curve[CURVE];
    svg_panel     above = {out, LEFT, top, INNER, 310, svg_range_of(m, column), svg_range_of(m, x->y), false};
    svg_panel     below = {out, LEFT, top + 330, INNER, 170, above.x, residual_range(x), false};
    above.y = svg_range_join(above.y, svg_range_of(m, fitted));
    svg_axes(&above, "", x->response_name, false);
    bool fine = svg_points(&above, "data", m, column, x->y);
    if (make_curve(x, fitted, at, curve)) svg_line(&above, "fit", CURVE, at, curve);
    else fine = svg_points(&above, "fit", m, column, fitted) && fine;
    if (!fine) failure_memory(x->f);
    residuals(&below, x, column, x->columns[0].name);
}

/* What a fit found, for a legend: "a = 2.07 ± 0.08", with its standard error where there is one. */
static const char *value_text(const fit *x, const cot__fit_result *r, int k, char buf[VALUE]) {
    char v[32], e[32];
    int  n = snprintf(buf, VALUE, "%.48s = %s", x->p.inputs[k].name, fit_rounded(x->b[k], r->errors[k], v));
    if (!isnan(r->errors[k]))
        snprintf(buf + n, VALUE - (size_t)n, " ± %s", fit_rounded(r->errors[k], r->errors[k], e));
    return buf;
}

/* The legend: data, curve, and the values with their standard errors. */
typedef struct legend {
    int      n;
    svg_key *keys;
    char (*texts)[VALUE];
} legend;

static bool legend_make(legend *l, const fit *x, const cot__fit_result *r) {
    *l = (legend){0};
    l->keys = malloc(((size_t)x->p.n + 2) * sizeof *l->keys);
    l->texts = malloc(((size_t)x->p.n + 1) * sizeof *l->texts);
    if (!l->keys || !l->texts) return failure_memory(x->f);
    l->keys[l->n++] = (svg_key){x->column_count == 1 ? "data" : "residuals", "data", true};
    if (x->column_count == 1) l->keys[l->n++] = (svg_key){"fit, with", "fit", false};
    for (int k = 0; k < x->p.n; k++) l->keys[l->n++] = (svg_key){value_text(x, r, k, l->texts[k]), NULL, false};
    return true;
}

static void legend_free(legend *l) {
    free(l->keys);
    free(l->texts);
}

void fit_plot(fit *x, FILE *out, const cot__fit_result *r) {
    int64_t m = x->table.rows;
    char    point[600], description[1024], number[32];
    legend  l;
    double *fitted = malloc((size_t)m * sizeof *fitted);
    if (!legend_make(&l, x, r) || !fitted) {
        failure_memory(x->f);
        legend_free(&l);
        free(fitted);
        return;
    }
    double top = svg_keys(NULL, LEFT, INNER, l.n, l.keys);
    for (int64_t i = 0; i < m; i++) fitted[i] = x->y[i] - x->r[i];
    snprintf(description, sizeof description, "%lld row%s of %.60s fitted with %s; residual sum of squares %s",
             (long long)m, m == 1 ? "" : "s", x->response_name, fit_point(x, point, sizeof point),
             cot__shortest(r->rss, number));
    svg_open(out, WIDTH, HEIGHT + (int)top, x->p.text, x->p.length, description);
    svg_keys(out, LEFT, INNER, l.n, l.keys);
    if (x->column_count == 1) {
        with_curve(x, out, top, fitted);
    } else {
        svg_panel p = {out, LEFT, top, INNER, 500, svg_range_of(m, fitted), residual_range(x), false};
        residuals(&p, x, fitted, "fitted value");
    }
    svg_close(out);
    legend_free(&l);
    free(fitted);
}

void fit_chart(fit *x, FILE *out, look how) {
    enum { ROWS = 16 };
    int64_t m = x->table.rows;
    double *fitted = malloc((size_t)m * sizeof *fitted), at[CURVE], value[CURVE];
    bool    one = x->column_count == 1;
    char    title[200];
    if (!fitted) {
        failure_memory(x->f);
        return;
    }
    for (int64_t i = 0; i < m; i++) fitted[i] = x->y[i] - x->r[i];
    bool          curve = one && make_curve(x, fitted, at, value);
    const double *column = one ? x->columns[0].values : fitted;
    /* the data lie above the curve */
    chart_series series[2] = {{.name = "fit", .n = CURVE, .x = at, .y = value},
                              {.name = one ? "data" : "residuals", .n = m, .x = column, .points = true}};
    if (!curve) series[0] = (chart_series){.name = "fit", .n = m, .x = column, .y = fitted, .points = true};
    series[1].y = one ? x->y : x->r;
    snprintf(title, sizeof title, "%.*s", x->p.length < 190 ? (int)x->p.length : 190, x->p.text);
    chart c = {.title = title, .x_label = one ? x->columns[0].name : "fitted value", .y_label = x->response_name,
               .n = one ? 2 : 1, .series = one ? series : series + 1};
    chart_measure(&c);
    if (!chart_text(&c, out, how.width, ROWS, how.colour)) failure_memory(x->f);
    fputc('\n', out);
    free(fitted);
}
