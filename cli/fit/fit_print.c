/* fit_print.c: prints the result of a fit, in words and as JSON. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "fit/fit.h"
#include "problem/names.h"
#include "trace/lines/grid.h"

const char *fit_point(const fit *x, char *buf, size_t size) {
    size_t used = 0;
    char   number[32];
    buf[0] = 0;
    for (int k = 0; k < x->p.n && used < size; k++)
        used += (size_t)snprintf(buf + used, size - used, "%s%.60s = %s", k ? ", " : "", x->p.inputs[k].name,
                                 cot__shortest(x->b[k], number));
    return buf;
}

const char *fit_row(const fit *x, int64_t row, char *buf, size_t size) {
    size_t used = 0;
    char   number[32];
    buf[0] = 0;
    for (int k = 0; k < x->column_count && used < size; k++)
        used += (size_t)snprintf(buf + used, size - used, "%s%.60s = %s", k ? ", " : ", where ", x->columns[k].name,
                                 cot__shortest(x->columns[k].values[row], number));
    if (used && used + 1 < size) memcpy(buf + used, ",", 2);
    return buf;
}

const char *fit_marked(const fit *x, const bool *marked, int *count, char *buf, size_t size) {
    const char *names[64];
    *count = 0;
    for (int k = 0; k < x->p.n && *count < 64; k++)
        if (marked[k]) names[(*count)++] = x->p.inputs[k].name;
    return list_names(*count, names, buf, size);
}

/* Explains why the fit did not converge; "" when it did. */
static const char *explain(const fit *x, const cot__fit_result *r, cot_fit_end end, char *buf, size_t size) {
    char        list[400], more[512] = "";
    int         count;
    const char *plural = r->iterations == 1 ? "" : "s";
    buf[0] = 0;
    if (end == COT_FIT_CONVERGED) return buf;
    if (r->singular) {
        fit_marked(x, r->undetermined, &count, list, sizeof list);
        snprintf(more, sizeof more, "; where it stands, the Jacobian is singular: the data do not determine %s", list);
    }
    if (end == COT_FIT_STALLED)
        snprintf(buf, size,
                 "no convergence: no step makes the residual sum of squares smaller, yet this is no minimum; is the "
                 "model smooth "
                 "there?%s",
                 more);
    else if (isnan(r->change))
        snprintf(buf, size, "no convergence in %lld iteration%s%s; try another start", (long long)r->iterations, plural,
                 more);
    else
        cot__format(
            buf, size,
            "no convergence in %lld iteration%s: the next step would still change a parameter by %.2g of itself; "
            "try another start, or more with --max-iterations",
            (long long)r->iterations, plural, r->change);
    return buf;
}

static void print_json_numbers(cot__json *j, const fit *x, const char *key, const double *values) {
    cot__json_key(j, key);
    cot__json_open(j, '{');
    for (int k = 0; k < x->p.n; k++) {
        cot__json_key(j, x->p.inputs[k].name);
        if (isnan(values[k])) cot__json_null(j);
        else cot__json_number(j, values[k]);
    }
    cot__json_close(j, '}');
}

/* Half of the interval of each parameter, as a number of standard errors. */
static double half_width(const fit *x) { return fit_student(x->table.rows - x->p.n); }

static void print_intervals(cot__json *j, const fit *x, const double *errors) {
    double t = half_width(x);
    cot__json_key(j, "interval");
    cot__json_open(j, '{');
    for (int k = 0; k < x->p.n; k++) {
        cot__json_key(j, x->p.inputs[k].name);
        if (isnan(errors[k])) {
            cot__json_null(j);
            continue;
        }
        cot__json_open(j, '[');
        cot__json_number(j, x->b[k] - t * errors[k]);
        cot__json_number(j, x->b[k] + t * errors[k]);
        cot__json_close(j, ']');
    }
    cot__json_close(j, '}');
}

static void print_as_json(const fit *x, FILE *out, const cot__fit_result *r, bool converged, const char *why) {
    cot__json j = cot__json_to(out);
    cot__json_open(&j, '{');
    print_json_numbers(&j, x, "params", x->b);
    print_json_numbers(&j, x, "stderr", r->errors);
    print_intervals(&j, x, r->errors);
    cot__json_key(&j, "rss");
    cot__json_number(&j, r->rss);
    cot__json_key(&j, "iterations");
    cot__json_integer(&j, r->iterations);
    cot__json_key(&j, "converged");
    cot__json_bool(&j, converged);
    cot__json_key(&j, "residual_sd");
    if (isnan(r->sd)) cot__json_null(&j);
    else cot__json_number(&j, r->sd);
    cot__json_key(&j, "rows");
    cot__json_integer(&j, x->table.rows);
    if (!converged) {
        cot__json_key(&j, "message");
        cot__json_string(&j, why);
    }
    cot__json_close(&j, '}');
    fputs("\n", out);
}

static bool print_parameters(const fit *x, FILE *out, look how, const cot__fit_result *r) {
    cot__grid g = {.columns = 4, .column = {COT__LEFT, COT__LEFT, COT__LEFT, COT__LEFT}, .colour = how.colour};
    double    t = half_width(x);
    char      text[80], low[32], high[32];
    cot__grid_put(&g, NULL, "");
    cot__grid_put(&g, NULL, "value");
    cot__grid_put(&g, NULL, "standard error");
    cot__grid_put(&g, NULL, "95 % confidence interval");
    for (int k = 0; k < x->p.n; k++) {
        double v = x->b[k], error = r->errors[k];
        cot__grid_put(&g, "\033[1;36m", x->p.inputs[k].name);
        cot__grid_put(&g, NULL, fit_rounded(v, error, text));
        cot__grid_put(&g, NULL, isnan(error) ? "unknown" : fit_rounded(error, error, text));
        snprintf(text, sizeof text, "%s … %s", fit_rounded(v - t * error, error, low),
                 fit_rounded(v + t * error, error, high));
        cot__grid_put(&g, NULL, isnan(error) ? "" : text);
    }
    return cot__grid_print(out, &g);
}

void fit_print(const fit *x, FILE *out, look how, const cot__fit_result *r, cot_fit_end end) {
    char why[1024], number[32];
    bool converged = end == COT_FIT_CONVERGED;
    explain(x, r, end, why, sizeof why);
    if (x->p.o->json) {
        print_as_json(x, out, r, converged, why);
        return;
    }
    if (!print_parameters(x, out, how, r)) failure_memory(x->f);
    cot__format(number, sizeof number, "%.6g", r->rss);
    fprintf(out, "\nresidual sum of squares      %s\n", number);
    cot__format(number, sizeof number, "%.6g", r->sd);
    fprintf(out, "residual standard deviation  %s\n",
            isnan(r->sd) ? "unknown: as many parameters as rows" : number);
    fprintf(out, "rows                         %lld\n", (long long)x->table.rows);
    if (converged)
        fprintf(out, "converged in %lld iteration%s\n", (long long)r->iterations, r->iterations == 1 ? "" : "s");
    else fprintf(out, "%s%s%s\n", how.colour ? "\033[1;31m" : "", why, how.colour ? "\033[0m" : "");
}
