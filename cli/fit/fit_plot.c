/* fit_plot.c: the picture of a fit. With one column: data and curve above, residuals below; with
 * more, residuals against fitted values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit/fit.h"
#include "draw/svg.h"

enum { WIDTH = 800, HEIGHT = 600, LEFT = 90, TOP = 44, INNER = 690, CURVE = 600 };

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

static void with_curve(fit *x, FILE *out, const double *fitted) {
    int64_t       m = x->table.rows;
    const double *column = x->columns[0].values;
    double        at[CURVE], curve[CURVE];
    svg_panel     above = {out, LEFT, TOP, INNER, 310, svg_range_of(m, column), svg_range_of(m, x->y), false};
    svg_panel     below = {out, LEFT, TOP + 330, INNER, 170, above.x, residual_range(x), false};
    above.y = svg_range_join(above.y, svg_range_of(m, fitted));
    svg_axes(&above, "", x->response_name, false);
    bool fine = svg_points(&above, "data", m, column, x->y);
    if (make_curve(x, fitted, at, curve)) svg_line(&above, "fit", CURVE, at, curve);
    else fine = svg_points(&above, "fit", m, column, fitted) && fine;
    if (!fine) failure_memory(x->f);
    residuals(&below, x, column, x->columns[0].name);
}

void fit_plot(fit *x, FILE *out, const cot__fit_result *r) {
    int64_t m = x->table.rows;
    char    point[600], description[1024], number[32];
    double *fitted = malloc((size_t)m * sizeof *fitted);
    if (!fitted) {
        failure_memory(x->f);
        return;
    }
    for (int64_t i = 0; i < m; i++) fitted[i] = x->y[i] - x->r[i];
    snprintf(description, sizeof description, "%lld rows of %.60s fitted with %s; residual sum of squares %s",
             (long long)m, x->response_name, fit_point(x, point, sizeof point), cot__shortest(r->rss, number));
    svg_open(out, WIDTH, HEIGHT, x->p.text, x->p.length, description);
    if (x->column_count == 1) {
        with_curve(x, out, fitted);
    } else {
        svg_panel p = {out, LEFT, TOP, INNER, 500, svg_range_of(m, fitted), residual_range(x), false};
        residuals(&p, x, fitted, "fitted value");
    }
    svg_close(out);
    free(fitted);
}
