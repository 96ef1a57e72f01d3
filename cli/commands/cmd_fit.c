/* cmd_fit.c: cotangent fit: the parameters of an expression from data. */
#include "commands/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/math/vectors.h"
#include "fit/fit.h"
#include "io/memory_file.h"
#include "io/system.h"

/* Names the row that keeps the fit from starting: the first that is not finite, or else the one
 * that is farthest from the data. */
static void bad_start(fit *x, failure *f) {
    char    at[600], there[400];
    int64_t row = 0;
    for (int64_t i = 0; i < x->table.rows && isfinite(x->r[row]); i++)
        if (!(fabs(x->r[i]) <= fabs(x->r[row]))) row = i;
    /* a row that is not finite may be the mistake, and not the start: a logarithm of a negative
     * number */
    char number[32];
    if (isfinite(x->r[row]))
        failure_set(f, EXIT_DISAGREES, "start",
                    "[fit] the model is off by %s in row %lld at the start, %s, and no double holds the sum of such "
                    "squares; choose another, or divide the data by a power of ten",
                    cot__shortest(fabs(x->r[row]), number), (long long)row + 1, fit_point(x, at, sizeof at));
    else
        failure_set(f, EXIT_DISAGREES, "start",
                    "[fit] the model is %s in row %lld%s at the start, %s; choose another, or leave the row out where "
                    "none helps",
                    isnan(x->r[row]) ? "nan" : "infinite", (long long)row + 1, fit_row(x, row, there, sizeof there),
                    fit_point(x, at, sizeof at));
}

/* Reports a fit without a result. True: there is a result, perhaps without convergence. */
static bool has_result(fit *x, const cot__fit_result *r, cot_fit_end end, failure *f) {
    char list[400], at[600];
    int  count;
    switch (end) {
    case COT_FIT_CONVERGED:
    case COT_FIT_LIMIT:
    case COT_FIT_STALLED: return true;
    case COT_FIT_SINGULAR:
        fit_marked(x, r->undetermined, &count, list, sizeof list);
        return failure_set(f, EXIT_DISAGREES, "singular",
                           "[fit] the Jacobian is singular: the data do not determine %s, which can change%s without "
                           "changing the model; it "
                           "stands at %s",
                           list, count == 1 ? "" : " together", fit_point(x, at, sizeof at));
    case COT_FIT_BAD_START: bad_start(x, f); return false;
    case COT_FIT_BAD_SLOPE:
        return failure_set(f, EXIT_DISAGREES, "derivative",
                           "[fit] a derivative of the model is not finite at %s; try another start",
                           fit_point(x, at, sizeof at));
    case COT_FIT_MEMORY: return failure_memory(f);
    case COT_FIT_ABANDONED: break; /* f holds the reason */
    }
    return false;
}

static void put_plot(fit *x, const char *path, FILE *out, const cot__fit_result *r, failure *f) {
    memory_file m;
    if (strcmp(path, "-") == 0) {
        fit_plot(x, out, r);
        return;
    }
    if (!memory_file_open(&m, f)) return;
    fit_plot(x, m.file, r);
    if (memory_file_close(&m, f) && f->status == EXIT_FINE) system_put_file(path, m.text, m.size, f);
    memory_file_free(&m);
}

static int fit_it(fit *x, FILE *out, look how, failure *f) {
    const options     *o = x->p.o;
    cot__least_squares ls = {.rows = x->table.rows,
                             .n = x->p.n,
                             .size = cot__length(x->table.rows, x->y),
                             .most_iterations = o->most_iterations,
                             .tolerance = o->tolerance,
                             .residuals = fit_residuals,
                             .jacobian = fit_jacobian,
                             .user = x};
    cot__fit_result    r = {.errors = calloc((size_t)x->p.n, sizeof *r.errors),
                            .undetermined = calloc((size_t)x->p.n, sizeof *r.undetermined)};
    int                status = EXIT_FINE;
    if (!r.errors || !r.undetermined) {
        failure_memory(f);
    } else {
        x->shown = progress_start("fit", 0);
        cot_fit_end end = cot__least_squares_fit(&ls, x->b, x->r, &r);
        progress_end(&x->shown);
        if (has_result(x, &r, end, f)) {
            status = end == COT_FIT_CONVERGED ? EXIT_FINE : EXIT_DISAGREES;
            if (o->plot) put_plot(x, o->plot, out, &r, f);
            if (o->chart) fit_chart(x, out, how);
            if (!o->plot || strcmp(o->plot, "-") != 0) fit_print(x, out, how, &r, end);
        }
    }
    free(r.errors);
    free(r.undetermined);
    return status;
}

int run_fit(const options *o, FILE *out, look how, failure *f) {
    fit x;
    int status = EXIT_FINE;
    if (o->json && o->plot && strcmp(o->plot, "-") == 0) {
        failure_usage(f, "only one of --json and --plot - can go to the standard output");
        return EXIT_USAGE;
    }
    if (o->chart && (o->json || (o->plot && strcmp(o->plot, "-") == 0))) {
        failure_usage(f, "--chart draws in the terminal; it does not go together with --json and --plot -");
        return EXIT_USAGE;
    }
    if (fit_open(&x, o, f) && fit_start(&x, f)) status = fit_it(&x, out, how, f);
    fit_close(&x);
    return status;
}
