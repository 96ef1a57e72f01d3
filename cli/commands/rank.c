/* rank.c: relative sensitivities x/f * df/dx: by how many percent the value changes if an input
 * changes by one. Each element of an array is an input of its own. Where the value is 0 there is no
 * percent of it, and x * df/dx stands instead. */
#include "commands/rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "draw/bars.h"
#include "io/memory_file.h"
#include "problem/expression.h"
#include "problem/results.h"

enum { TOP = 20, NAME = 96 };

typedef struct ranked {
    const problem_input *of;
    int64_t              element;
    double               at, derivative, sensitivity;
} ranked;

typedef struct ranking {
    const problem *p;
    double         value;
    int64_t        n;   /* of all elements */
    ranked        *all; /* in order, the greatest magnitude first */
    int            shown;
    bar           *bars; /* of those that are shown */
    char (*names)[NAME];
    int64_t zeros, bad; /* inputs that are 0; sensitivities that are not finite */
} ranking;

bool rank_usage(const options *o, failure *f) {
    if (!o->rank && o->svg) return failure_usage(f, "--svg draws what --rank lists; give both");
    if (!o->rank && o->top) return failure_usage(f, "--top says how many inputs --rank lists; give both");
    if (o->rank && o->seed) return failure_usage(f, "--rank is for a value of one element, which needs no --seed");
    if (o->json && o->svg && strcmp(o->svg, "-") == 0)
        return failure_usage(f, "only one of --json and --svg - can go to the standard output");
    return true;
}

/* Numbers that are not finite come last. */
static int by_magnitude(const void *a, const void *b) {
    const ranked *l = a, *r = b;
    double        x = isfinite(l->sensitivity) ? fabs(l->sensitivity) : -1,
           y        = isfinite(r->sensitivity) ? fabs(r->sensitivity) : -1;
    if (x != y) return x > y ? -1 : 1;
    if (l->of != r->of) return l->of < r->of ? -1 : 1;
    return l->element < r->element ? -1 : 1;
}

/* x, x[3], W[1,2] */
static void name_of(const ranked *r, char *buf) {
    cot_shape s    = r->of->value.shape;
    int64_t   rest = r->element, at[COT_MAX_NDIM];
    int       used = snprintf(buf, NAME, "%.40s", r->of->name);
    if (r->of->sparse.row) {
        snprintf(buf + used, NAME - (size_t)used, "[%lld,%lld]", (long long)r->of->sparse.row[r->element],
                 (long long)r->of->sparse.column[r->element]);
        return;
    }
    for (int k = s.ndim; k-- > 0; rest /= s.dim[k]) at[k] = rest % s.dim[k];
    for (int k = 0; k < s.ndim && used < NAME - 24; k++)
        used += snprintf(buf + used, NAME - (size_t)used, "%c%lld%s", k ? ',' : '[', (long long)at[k],
                         k + 1 == s.ndim ? "]" : "");
}

/* `points` holds the inputs' elements, one input after the other, as `gradient` their
 * derivatives. */
static void fill(ranking *r, int n, problem_input *const *of, const double *points, const double *gradient) {
    int64_t at = 0;
    for (int k = 0; k < n; k++) {
        for (int64_t i = 0; i < of[k]->value.size; i++, at++) {
            double x = points[at], d = gradient[at];
            double s   = x == 0 && isfinite(d) ? 0 : r->value == 0 ? x * d : x / r->value * d;
            r->all[at] = (ranked){of[k], i, x, d, s};
            r->zeros += x == 0 && isfinite(d);
            r->bad += !isfinite(s);
        }
    }
    qsort(r->all, (size_t)r->n, sizeof *r->all, by_magnitude);
    for (int k = 0; k < r->shown; k++) {
        name_of(&r->all[k], r->names[k]);
        r->bars[k] = (bar){r->names[k], r->all[k].sensitivity};
    }
}

/* What a reader has to know beside the bars, in sentences, each with its new line. */
static void remarks(const ranking *r, FILE *out) {
    if (r->value == 0) fputs("The value is 0, so nothing is a percent of it: ranked by x*df/dx, not x/f*df/dx.\n", out);
    if (r->zeros)
        cot__write(out,
                   "%lld input%s 0, where a change in percent is no change: %s sensitivity is 0 whatever the "
                   "derivative.\n",
                   (long long)r->zeros, r->zeros == 1 ? " is" : "s are", r->zeros == 1 ? "its" : "their");
    if (r->bad)
        fprintf(out, "%lld sensitivit%s not finite; `cotangent explain` says why.\n", (long long)r->bad,
                r->bad == 1 ? "y is" : "ies are");
    if (r->shown < r->n)
        cot__write(out, "%lld more are not shown, none above %.3g in magnitude.\n", (long long)(r->n - r->shown),
                   fabs(r->all[r->shown].sensitivity));
}

static const char *measure(const ranking *r) { return r->value == 0 ? "x*df/dx" : "x/f*df/dx"; }

static void as_json(const ranking *r, FILE *out, failure *f) {
    memory_file said;
    cot__json   j = cot__json_to(out);
    if (!memory_file_open(&said, f)) return;
    remarks(r, said.file);
    if (memory_file_close(&said, f)) {
        cot__json_open(&j, '{');
        cot__json_key(&j, "value"), cot__json_number(&j, r->value);
        cot__json_key(&j, "measure"), cot__json_string(&j, measure(r));
        cot__json_key(&j, "rank"), cot__json_open(&j, '[');
        for (int k = 0; k < r->shown; k++) {
            cot__json_open(&j, '{');
            cot__json_key(&j, "name"), cot__json_string(&j, r->names[k]);
            cot__json_key(&j, "sensitivity"), cot__json_number(&j, r->all[k].sensitivity);
            cot__json_key(&j, "derivative"), cot__json_number(&j, r->all[k].derivative);
            cot__json_key(&j, "at"), cot__json_number(&j, r->all[k].at);
            cot__json_close(&j, '}');
        }
        cot__json_close(&j, ']');
        if (said.size) cot__json_key(&j, "remarks"), cot__json_string_n(&j, said.text, said.size - 1);
        result_note(r->p, out, &j);
        cot__json_close(&j, '}');
        fputs("\n", out);
    }
    memory_file_free(&said);
}

static void as_svg(const void *x, FILE *to, failure *f) {
    const ranking *r = x;
    char           title[120], text[200], number[32];
    (void)f;
    snprintf(title, sizeof title, "%.*s", (int)(r->p->length < 100 ? r->p->length : 100), r->p->text);
    snprintf(text, sizeof text, "sensitivities %s of %d input%s; the value is %s", measure(r), r->shown,
             r->shown == 1 ? "" : "s", cot__shortest(r->value, number));
    bars_svg(to, title, text, r->value == 0 ? "x · df/dx" : "x/f · df/dx: percent of f for a percent of the input",
             r->shown, r->bars);
}

static void as_text(const ranking *r, FILE *out, look how) {
    char number[32];
    fprintf(out, "value = %s, sensitivities %s:\n", cot__shortest(r->value, number), measure(r));
    bars_text(out, how.width, how.colour, r->shown, r->bars);
    remarks(r, out);
    result_note(r->p, out, NULL);
}

static bool read_points(ranking *r, int n, problem_input *const *of, double *points, failure *f) {
    cot_read_as(r->p->y, COT_F64, &r->value, 1);
    for (int k = 0; k < n; points += of[k++]->value.size) cot_read_as(of[k]->var, COT_F64, points, of[k]->value.size);
    return cot_tape_status(r->p->t) == COT_OK || tape_failure(r->p->t, f);
}

void rank_print(const problem *p, FILE *out, look how, int n, problem_input *const *of, const double *gradient,
                failure *f) {
    const options *o   = p->o;
    ranking        r   = {.p = p};
    int            top = o->top ? o->top : TOP;
    for (int k = 0; k < n; k++) r.n += of[k]->value.size;
    r.shown        = r.n < top ? (int)r.n : top;
    double *points = malloc(((size_t)r.n + 1) * sizeof *points);
    r.all          = malloc(((size_t)r.n + 1) * sizeof *r.all);
    r.bars         = malloc(((size_t)r.shown + 1) * sizeof *r.bars);
    r.names        = malloc(((size_t)r.shown + 1) * sizeof *r.names);
    if (!points || !r.all || !r.bars || !r.names)
        failure_memory(f);
    else if (read_points(&r, n, of, points, f)) {
        fill(&r, n, of, points, gradient);
        if (o->svg) memory_file_put(o->svg, as_svg, &r, out, f);
        if (f->status == EXIT_FINE && o->json)
            as_json(&r, out, f);
        else if (f->status == EXIT_FINE && !(o->svg && strcmp(o->svg, "-") == 0))
            as_text(&r, out, how);
    }
    free(points);
    free(r.all);
    free(r.bars);
    free(r.names);
}
