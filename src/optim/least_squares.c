/* least_squares.c: cot_least_squares: residuals that are recorded, and their Jacobian by forward
 * sweeps, for the method in plain numbers (levenberg.c). */
#include "base/math/vectors.h"
#include "optim/flat.h"
#include "optim/levenberg.h"

#include <string.h>

/* Parameters of a dense problem. */
enum { MOST = 10000 };

typedef struct fitting {
    cot__flat flat;
    int64_t   rows;
    double   *units; /* (N, N): a direction for each parameter */
} fitting;

static bool residuals(void *user, const double *b, double *r) {
    fitting *x = user;
    if (!cot__flat_record(&x->flat, b)) return false;
    if (cot_size(x->flat.y) != x->rows) {
        cot__fail(x->flat.t, COT_SHAPE, "[least_squares] the function gave %lld residuals, and %lld before",
                  (long long)cot_size(x->flat.y), (long long)x->rows);
        return false;
    }
    return cot_read(x->flat.y, r, x->rows) == COT_OK;
}

/* The method wants the derivatives of a model, whose residuals are data - model. */
static bool jacobian(void *user, double *j) {
    fitting *x = user;
    int      n = (int)x->flat.size;
    int64_t  size = x->rows * n;
    memset(j, 0, (size_t)size * sizeof *j);
    if (!cot_requires_grad(x->flat.y)) return true;
    if (cot_jvps(n, x->flat.n, x->flat.xs, x->units, 1, &x->flat.y, j) != COT_OK) return false;
    for (int64_t i = 0; i < size; i++) j[i] = -j[i];
    return true;
}

/* Records f once, to learn how many residuals there are and how large. */
static bool measure(fitting *x, cot__least_squares *p, double *b) {
    cot_tape *t = x->flat.t;
    if (!cot__flat_read(&x->flat, b) || !cot__flat_record(&x->flat, b)) return false;
    x->rows = p->rows = cot_size(x->flat.y);
    if (x->flat.size > x->rows)
        cot__fail(t, COT_SHAPE,
                  "[least_squares] %lld parameters and %lld residuals; there are at least as many of these",
                  (long long)x->flat.size, (long long)x->rows);
    return t->status == COT_OK;
}

/* y is recorded at b. */
static cot_fit_end fit(fitting *x, cot__least_squares *p, double *b, cot__fit_result *out) {
    int64_t n = x->flat.size;
    size_t  bytes = (size_t)x->rows * sizeof(double);
    double *r = cot__alloc(&p->al, bytes);
    if (!r) return COT_FIT_MEMORY;
    for (int64_t k = 0; k < n; k++) x->units[k * n + k] = 1;
    if (cot_read(x->flat.y, r, x->rows) != COT_OK) {
        cot__free(&p->al, r, bytes);
        return COT_FIT_ABANDONED;
    }
    double size = cot__length(x->rows, r);
    if (p->size == 0 && isfinite(size)) p->size = size;
    cot_fit_end end = cot__least_squares_fit(p, b, r, out);
    cot__free(&p->al, r, bytes);
    return end;
}

static void tell(cot_tape *t, cot_fit_end end, const cot__fit_result *r, int64_t n, cot_least_squares_report *report) {
    static const char *const ends[] = {[COT_FIT_LIMIT] = "it did all iterations",
                                       [COT_FIT_STALLED] = "no step makes the sum smaller",
                                       [COT_FIT_SINGULAR] = "some parameters can move without effect",
                                       [COT_FIT_BAD_START] = "residuals are not finite at the start",
                                       [COT_FIT_BAD_SLOPE] = "derivatives are not finite"};
    if (end == COT_FIT_MEMORY) cot__fail(t, COT_MEMORY, "[least_squares] out of memory: the Jacobian");
    if (!report && end != COT_FIT_CONVERGED && t->status == COT_OK)
        cot__fail(t, COT_VALUE, "[least_squares] no minimum after %lld steps: %s, and the sum of squares is %g",
                  (long long)r->iterations, ends[end], r->rss);
    if (!report) return;
    *report = (cot_least_squares_report){end,           r->rss, r->sd, r->change, r->iterations,
                                         report->errors, report->undetermined};
    if (report->errors) memcpy(report->errors, r->errors, (size_t)n * sizeof *r->errors);
    if (report->undetermined) memcpy(report->undetermined, r->undetermined, (size_t)n * sizeof *r->undetermined);
}

/* With b (N), errors (N), units (N, N) and flags (N) in one piece. */
static void run(fitting *x, cot__least_squares *p, char *room, cot_least_squares_report *report) {
    size_t          n = (size_t)x->flat.size;
    double         *b = (double *)(void *)room;
    cot__fit_result r = {.rss = (double)NAN, .sd = (double)NAN, .change = (double)NAN, .errors = b + n,
                         .undetermined = (bool *)(b + n * (n + 2))};
    x->units = b + 2 * n;
    cot_fit_end end = measure(x, p, b) ? fit(x, p, b, &r) : COT_FIT_ABANDONED;
    bool        moved = end != COT_FIT_ABANDONED && end != COT_FIT_MEMORY;
    if (moved) cot_tape_rewind(x->flat.t, x->flat.start);
    for (int k = 0; moved && k < x->flat.n; k++) {
        cot__assign_doubles(x->flat.t, cot__index(x->flat.xs[k]), b);
        b += cot_size(x->flat.xs[k]);
    }
    tell(x->flat.t, end, &r, (int64_t)n, report);
}

cot_status cot_least_squares(int n, const cot_var *xs, cot_function f, void *user,
                             const cot_least_squares_options *options, cot_least_squares_report *report) {
    cot_least_squares_options o = options ? *options : (cot_least_squares_options){0};
    fitting                   x;
    if (report) report->end = COT_FIT_ABANDONED;
    if (!cot__flat_open(&x.flat, "least_squares", n, xs, f, user, false)) return cot__status_of(n, xs);
    cot_tape          *t = x.flat.t;
    cot__least_squares p = {.al = t->cache.below, .n = (int)x.flat.size, .size = o.size, .user = &x,
                            .most_iterations = o.iterations > INT32_MAX ? INT32_MAX
                                               : o.iterations           ? (int)o.iterations
                                                                        : 1000,
                            .tolerance = o.tolerance != 0 ? o.tolerance : COT__FIT_TOLERANCE,
                            .residuals = residuals, .jacobian = jacobian};
    if (o.iterations < 0 || !cot__is_rate(o.tolerance) || !cot__is_rate(o.size))
        cot__fail(t, COT_VALUE, "[least_squares] iterations %lld, tolerance %g, size %g; they must not be negative",
                  (long long)o.iterations, o.tolerance, o.size);
    if (x.flat.size < 1 || x.flat.size > MOST)
        cot__fail(t, COT_SHAPE, "[least_squares] %lld parameters; there are 1 to %d", (long long)x.flat.size, MOST);
    size_t size = (size_t)x.flat.size, bytes = size * (size + 2) * sizeof(double) + size * sizeof(bool);
    char  *room = t->status == COT_OK ? cot__alloc(&p.al, bytes) : NULL;
    if (room) {
        memset(room, 0, bytes);
        run(&x, &p, room, report);
    } else
        cot__fail(t, COT_MEMORY, "[least_squares] out of memory: %zu bytes for %zu parameters", bytes, size);
    cot__free(&p.al, room, bytes);
    cot__flat_close(&x.flat);
    return t->status;
}
