/* lbfgs.c: cot_lbfgs_minimize: minimising a function of leaves with the limited-memory method of
 * Broyden, Fletcher, Goldfarb and Shanno.
 *
 * All vectors are doubles over all elements of the leaves, and sums over them have a fixed order.
 * The leaves always hold the point that was evaluated last. */
#include "base/math/vectors.h"
#include "optim/flat.h"
#include "optim/line_search.h"

#include <float.h>
#include <string.h>

typedef struct descent {
    cot__flat flat;
    int64_t   n;
    int       history, kept, newest; /* pairs that are remembered, and the last of them */
    double   *x, *g;                 /* the present point and its gradient */
    double   *d;                     /* a direction */
    double   *moved, *slopes;        /* the point that was tried last, and its gradient */
    double   *s, *y;                 /* (history, n) steps, and changes of the gradient */
    double   *rho, *alpha;           /* (history) 1 / sᵀy; what the first of two loops found */
    double    value;
    double    tried; /* the value at `moved` */
    int64_t   evaluations;
} descent;

/* Value and gradient at w->moved, which becomes what the leaves hold of it. */
static bool evaluate(descent *w) {
    cot__flat *f = &w->flat;
    double     one = 1;
    w->evaluations++;
    if (!cot__flat_record(f, w->moved) || !cot__flat_read(f, w->moved)) return false;
    w->tried = cot_value(f->y);
    memset(w->slopes, 0, (size_t)w->n * sizeof *w->slopes);
    if (f->t->status != COT_OK || !cot_requires_grad(f->y)) return f->t->status == COT_OK;
    return cot_vjps(1, 1, &f->y, &one, f->n, f->xs, w->slopes) == COT_OK;
}

static bool along(void *user, double a, double *value, double *slope) {
    descent *w = user;
    for (int64_t i = 0; i < w->n; i++) w->moved[i] = w->x[i] + a * w->d[i];
    if (!evaluate(w)) return false;
    *value = w->tried;
    *slope = cot__dot(w->n, w->slopes, w->d);
    return true;
}

static void add(int64_t n, double factor, const double *x, double *to) {
    for (int64_t i = 0; i < n; i++) to[i] += factor * x[i];
}

/* d = -H g by two loops over what is remembered. Returns the slope along it. */
static double direct(descent *w) {
    int64_t n = w->n;
    for (int64_t i = 0; i < n; i++) w->d[i] = -w->g[i];
    for (int k = 0; k < w->kept; k++) { /* newest first */
        int j = (w->newest - k + w->history) % w->history;
        w->alpha[j] = w->rho[j] * cot__dot(n, w->s + j * n, w->d);
        add(n, -w->alpha[j], w->y + j * n, w->d);
    }
    if (w->kept) {
        const double *y = w->y + w->newest * n;
        double        scale = 1 / (w->rho[w->newest] * cot__dot(n, y, y));
        for (int64_t i = 0; i < n; i++) w->d[i] *= scale;
    }
    for (int k = w->kept; k-- > 0;) {
        int j = (w->newest - k + w->history) % w->history;
        add(n, w->alpha[j] - w->rho[j] * cot__dot(n, w->y + j * n, w->d), w->s + j * n, w->d);
    }
    return cot__dot(n, w->g, w->d);
}

/* Goes to the point that was tried last, and remembers the step if the function bends up along
 * it. */
static void go_there(descent *w) {
    int64_t n = w->n;
    int     next = w->kept ? (w->newest + 1) % w->history : 0;
    double *s = w->s + next * n, *y = w->y + next * n;
    for (int64_t i = 0; i < n; i++) s[i] = w->moved[i] - w->x[i], y[i] = w->slopes[i] - w->g[i];
    double bend = cot__dot(n, s, y);
    memcpy(w->x, w->moved, (size_t)n * sizeof *w->x);
    memcpy(w->g, w->slopes, (size_t)n * sizeof *w->g);
    w->value = w->tried;
    if (!(bend > DBL_EPSILON * cot__dot(n, y, y)) || !isfinite(1 / bend)) {
        if (w->kept == w->history) w->kept--; /* the oldest was written over */
        return;
    }
    w->rho[next] = 1 / bend;
    w->newest = next;
    if (w->kept < w->history) w->kept++;
}

/* One step. COT_FIT_LIMIT: it moved, and goes on. */
static cot_fit_end step(descent *w) {
    double slope = direct(w);
    if (!(slope < 0)) w->kept = 0, slope = direct(w);
    if (!(slope < 0)) return COT_FIT_STALLED; /* the gradient was not within the tolerance */
    double        a = w->kept ? 1 : fmin(1, 1 / cot__length(w->n, w->g));
    cot__line     line = {along, w, w->value, slope};
    cot__line_end end = cot__line_search(&line, &a);
    if (end == COT__LINE_FAILED) return COT_FIT_ABANDONED;
    if (end == COT__LINE_NONE) {
        /* a decrease of this size cannot be seen in the value */
        if (-slope <= 64 * DBL_EPSILON * fabs(w->value)) return COT_FIT_CONVERGED;
        if (!w->kept) return COT_FIT_STALLED;
        w->kept = 0; /* once more along the gradient */
        return COT_FIT_LIMIT;
    }
    bool still = memcmp(w->moved, w->x, (size_t)w->n * sizeof *w->x) == 0;
    go_there(w);
    return still ? COT_FIT_STALLED : COT_FIT_LIMIT;
}

static cot_fit_end minimise(descent *w, const cot_lbfgs_options *o, int64_t *iterations) {
    if (!cot__flat_read(&w->flat, w->moved) || !evaluate(w)) return COT_FIT_ABANDONED;
    memcpy(w->x, w->moved, (size_t)w->n * sizeof *w->x);
    memcpy(w->g, w->slopes, (size_t)w->n * sizeof *w->g);
    w->value = w->tried;
    if (!isfinite(w->value) || !isfinite(cot__largest(w->n, w->g))) return COT_FIT_BAD_START;
    for (*iterations = 0;; ++*iterations) {
        if (cot__largest(w->n, w->g) <= o->tolerance) return COT_FIT_CONVERGED;
        if (*iterations >= o->iterations) return COT_FIT_LIMIT;
        cot_fit_end end = step(w);
        if (end != COT_FIT_LIMIT) return end;
    }
}

/* Puts the present point into the leaves, and says how it ended. */
static void finish(descent *w, cot_fit_end end, int64_t iterations, cot_lbfgs_report *report) {
    static const char *const ends[] = {[COT_FIT_LIMIT] = "it did all iterations",
                                       [COT_FIT_STALLED] = "no step along the gradient makes the function smaller",
                                       [COT_FIT_BAD_START] = "the function is not finite at the start"};
    cot_tape *t = w->flat.t;
    if (end == COT_FIT_ABANDONED) w->value = (double)NAN;
    else cot_tape_rewind(t, w->flat.start);
    const double *x = w->x;
    for (int k = 0; k < w->flat.n && end != COT_FIT_ABANDONED; k++) {
        cot__assign_doubles(t, cot__index(w->flat.xs[k]), x);
        x += cot_size(w->flat.xs[k]);
    }
    if (report) *report = (cot_lbfgs_report){end, w->value, cot__largest(w->n, w->g), iterations, w->evaluations};
    else if (end != COT_FIT_CONVERGED && end != COT_FIT_ABANDONED)
        cot__fail(t, COT_VALUE, "[lbfgs_minimize] no minimum after %lld iterations: %s, where it is %g",
                  (long long)iterations, ends[end], w->value);
}

static void run(descent *w, const cot_lbfgs_options *o, cot_lbfgs_report *report) {
    cot_tape *t = w->flat.t;
    size_t    n = (size_t)w->n, h = (size_t)o->history, bytes = (n * (5 + 2 * h) + 2 * h) * sizeof(double);
    int64_t   iterations = 0;
    double   *room = n < SIZE_MAX / sizeof(double) / (7 + 4 * h) ? cot__alloc(&t->cache.below, bytes) : NULL;
    if (!room) {
        cot__fail(t, COT_MEMORY, "[lbfgs_minimize] out of memory: %zu bytes for %zu numbers", bytes, n);
        return;
    }
    memset(room, 0, bytes);
    w->history = o->history;
    w->x = room, w->g = room + n, w->d = room + 2 * n, w->moved = room + 3 * n, w->slopes = room + 4 * n;
    w->s = room + 5 * n, w->y = w->s + h * n, w->rho = w->y + h * n, w->alpha = w->rho + h;
    cot_fit_end end = minimise(w, o, &iterations);
    finish(w, end, iterations, report);
    cot__free(&t->cache.below, room, bytes);
}

cot_status cot_lbfgs_minimize(int n, const cot_var *xs, cot_function f, void *user, const cot_lbfgs_options *options,
                              cot_lbfgs_report *report) {
    cot_lbfgs_options o = options ? *options : (cot_lbfgs_options){0};
    descent           w = {.kept = 0};
    if (o.history == 0) o.history = 10;
    if (o.iterations == 0) o.iterations = 1000;
    if (o.tolerance == 0) o.tolerance = 1e-8;
    if (report) *report = (cot_lbfgs_report){COT_FIT_ABANDONED, (double)NAN, (double)NAN, 0, 0};
    if (!cot__flat_open(&w.flat, "lbfgs_minimize", n, xs, f, user, true)) return cot__status_of(n, xs);
    cot_tape *t = w.flat.t;
    w.n = w.flat.size;
    if (o.history < 0 || o.history > 1000 || o.iterations < 0 || !cot__is_rate(o.tolerance))
        cot__fail(t, COT_VALUE,
                  "[lbfgs_minimize] history %d, iterations %lld, tolerance %g; none is negative, and the history is at "
                  "most 1000",
                  o.history, (long long)o.iterations, o.tolerance);
    else run(&w, &o, report);
    cot__flat_close(&w.flat);
    return t->status;
}
