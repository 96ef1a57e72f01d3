/* levenberg.c: Levenberg-Marquardt with Nielsen's control of the damping, followed by
 * Gauss-Newton steps down to rounding.
 *
 * Every step solves min |[J D⁻¹; √μ I] z - [r; 0]| by orthogonal transformations, where D holds the
 * norms of J's columns. The normal equations, which square the condition, are never formed, and the
 * units of the parameters do not matter. Near a minimum the sum of squares is flat to half of the
 * digits and cannot tell one point from another. There a step is good if the next step is
 * shorter. */
#include "optim/levenberg.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/math/elementary.h"
#include "base/math/vectors.h"
#include "optim/householder.h"
#include "optim/squares.h"

typedef struct work {
    const cot__least_squares *p;
    int64_t                   m;
    int                       n, rank;
    double                   *b, *r;         /* the present point and its residuals */
    double                   *trial, *moved; /* another point (n), and the residuals there (m) */
    double                   *jacobian;      /* (n, m): J D⁻¹, and then its R */
    double                   *slopes;        /* (m): Qᵀr */
    double                   *d;             /* (n) norms of J's columns, 1 for a column of zeros */
    /* (n) the largest norm of each column so far, which damping uses */
    double *most;
    /* (n) norms of the rows of R⁻¹, by parameter: standard errors for sd 1, times d */
    double *inverse;
    double *newton;         /* (n) the Gauss-Newton step, D δ */
    double *damped, *right; /* (n, 2n), (2n): the damped problem */
    /* (n) each: a step D δ; a solution in the order of R; a point to return to */
    double *z, *solved, *kept;
    double *start;
    int    *perm, *order;
    double  rss, change, length, offset, memory;
    int64_t iterations, limit;
} work;

/* Settings of one attempt. The first attempt takes long steps, and the damping counts the largest
 * former length of each column (Moré), which keeps parameters from running off to where the model
 * is flat. The second begins with short steps. The third has little memory, so it moves along
 * narrow valleys. */
typedef struct attempt {
    double damping, memory;
} attempt;
static const attempt attempts[] = {{1e-4, 1}, {1e4, 1}, {1e-4, 1e-3}};
enum { ATTEMPTS = sizeof attempts / sizeof *attempts };

/* Finds the parameters that take part in a direction that R maps to zero: column k of R, behind the
 * rank, is a combination of the columns before it. */
static void find_undetermined(work *w, bool *undetermined) {
    for (int k = w->rank; k < w->n; k++) {
        cot__householder_solve(w->m, w->n, w->rank, w->jacobian, w->jacobian + k * w->m, w->z);
        double most = 1;
        for (int j = 0; j < w->rank; j++) most = fmax(most, fabs(w->z[j]));
        for (int j = 0; j < w->rank; j++)
            if (fabs(w->z[j]) > 1e-6 * most) undetermined[w->perm[j]] = true;
        undetermined[w->perm[k]] = true;
    }
}

static void invert(work *w) {
    int64_t m = w->m;
    for (int j = 0; j < w->n; j++) w->inverse[j] = 0;
    for (int k = 0; k < w->rank; k++) { /* column k of R⁻¹ */
        for (int i = 0; i < w->n; i++) w->right[i] = i == k;
        cot__householder_solve(m, w->n, k + 1, w->jacobian, w->right, w->z);
        for (int i = 0; i <= k; i++) {
            double *norm = &w->inverse[w->perm[i]];
            *norm        = cot__hypot(*norm, w->z[i]);
        }
    }
}

/* Computes the next Gauss-Newton step, and its size relative to the parameters. Moves within the
 * rounding of the data count as zero. */
static void measure(work *w) {
    int64_t dof = w->m - w->n;
    double  sd = dof > 0 ? sqrt(w->rss / (double)dof) : 0, noise = 8 * DBL_EPSILON * w->p->size;
    double  norm = sqrt(w->rss);
    cot__householder_solve(w->m, w->n, w->rank, w->jacobian, w->slopes, w->z);
    for (int k = 0; k < w->n; k++) w->newton[w->perm[k]] = w->z[k];
    invert(w);
    w->change = 0;
    w->length = cot__length(w->n, w->newton);
    w->offset = norm > 0 ? cot__length(w->rank, w->slopes) / norm : 0;
    for (int j = 0; j < w->n; j++) {
        double step = fabs(w->newton[j]), of = fmax(fabs(w->b[j]) * w->d[j], sd * w->inverse[j]);
        if (step <= noise * w->inverse[j]) continue;
        w->change = fmax(w->change, of > 0 ? step / of : (double)INFINITY);
    }
    if (w->rank < w->n) w->change = (double)NAN;
}

/* Computes J at the point where residuals was called last, its QR, and the values that follow from
 * it. */
static cot_fit_end factor(work *w) {
    if (!w->p->jacobian(w->p->user, w->jacobian)) return COT_FIT_ABANDONED;
    for (int j = 0; j < w->n; j++) {
        double *column = w->jacobian + j * w->m, norm = cot__length(w->m, column);
        if (!isfinite(norm)) return COT_FIT_BAD_SLOPE;
        w->d[j]    = norm > 0 ? norm : 1;
        w->most[j] = fmax(w->most[j], norm);
        for (int64_t i = 0; i < w->m; i++) column[i] /= w->d[j];
    }
    memcpy(w->slopes, w->r, (size_t)w->m * sizeof *w->r);
    cot__householder_qr(w->m, w->n, w->jacobian, w->slopes, w->perm);
    double least = 16 * DBL_EPSILON * ((double)w->n + sqrt((double)w->m)) * fabs(w->jacobian[0]);
    w->rank      = 0;
    while (w->rank < w->n && fabs(w->jacobian[w->rank * w->m + w->rank]) > least) w->rank++;
    measure(w);
    return COT_FIT_CONVERGED;
}

/* How much more a parameter is damped than its column says, because the column was longer once. */
static double held(const work *w, int j) { return fmax(1, w->memory * w->most[j] / w->d[j]); }

/* Writes D δ of the damped problem to z, in the order of the parameters. Returns the decrease of
 * the sum that the linear model promises. */
static double damped_step(work *w, double mu) {
    int     n    = w->n;
    double  root = sqrt(mu), promised = 0;
    int64_t tall = 2 * n;
    memset(w->damped, 0, (size_t)(tall * n) * sizeof *w->damped);
    memset(w->right, 0, (size_t)tall * sizeof *w->right);
    for (int k = 0; k < n; k++) {
        memcpy(w->damped + k * tall, w->jacobian + k * w->m, (size_t)(k + 1) * sizeof *w->damped);
        w->damped[k * tall + n + k] = root * held(w, w->perm[k]);
        w->right[k]                 = w->slopes[k];
    }
    cot__householder_qr(tall, n, w->damped, w->right, w->order);
    cot__householder_solve(tall, n, n, w->damped, w->right, w->z);
    double *solved = w->solved;
    for (int k = 0; k < n; k++) solved[w->order[k]] = w->z[k];
    for (int k = 0; k < n; k++) { /* |R z|² + 2 μ |z|² */
        double row = 0;
        for (int j = k; j < n; j++) row += w->jacobian[j * w->m + k] * solved[j];
        double pull = root * held(w, w->perm[k]) * solved[k];
        promised += row * row + 2 * pull * pull;
    }
    for (int k = 0; k < n; k++) w->z[w->perm[k]] = solved[k];
    return promised;
}

/* trial = b + D⁻¹ z. False when that is b again. */
static bool set_trial(work *w, const double *z) {
    bool differs = false;
    for (int j = 0; j < w->n; j++) {
        w->trial[j] = w->b[j] + z[j] / w->d[j];
        differs     = differs || w->trial[j] != w->b[j];
    }
    return differs;
}

static void go_there(work *w, double rss) {
    memcpy(w->b, w->trial, (size_t)w->n * sizeof *w->b);
    memcpy(w->r, w->moved, (size_t)w->m * sizeof *w->r);
    w->rss = rss;
}

/* Goes back to b after a trial that was not accepted. */
static cot_fit_end come_back(work *w) {
    return w->p->residuals(w->p->user, w->b, w->r) ? factor(w) : COT_FIT_ABANDONED;
}

/* Gauss-Newton steps as long as each is shorter than the one before: to the last digit, unless the
 * tolerance asks for less. */
static cot_fit_end polish(work *w) {
    double noise = DBL_EPSILON * w->p->size, enough = w->p->tolerance > COT__FIT_TOLERANCE ? w->p->tolerance : 0;
    while (w->rank == w->n && w->length > 0 && !(w->change <= enough) && w->iterations < w->limit &&
           set_trial(w, w->newton)) {
        double before = w->rss, length = w->length;
        w->iterations++;
        if (!w->p->residuals(w->p->user, w->trial, w->moved)) return COT_FIT_ABANDONED;
        double rss = cot__squares_sum(w->m, w->moved);
        if (!(rss <= before * (1 + 1e-8) + noise * noise * (double)w->m)) return come_back(w);
        memcpy(w->kept, w->b, (size_t)w->n * sizeof *w->b);
        go_there(w, rss);
        cot_fit_end end = factor(w);
        if (end == COT_FIT_ABANDONED) return end;
        if (end == COT_FIT_CONVERGED && w->length < 0.98 * length) continue;
        if (end == COT_FIT_CONVERGED && w->length <= length) break;
        memcpy(w->b, w->kept, (size_t)w->n * sizeof *w->b);
        w->rss = before;
        return come_back(w);
    }
    return COT_FIT_CONVERGED;
}

static cot_fit_end iterate(work *w, attempt way) {
    const cot__least_squares *p  = w->p;
    double                    mu = way.damping, growth = 2, near = 1e-3;
    w->memory = way.memory;
    memset(w->most, 0, (size_t)w->n * sizeof *w->most);
    if (!p->residuals(p->user, w->b, w->r)) return COT_FIT_ABANDONED;
    w->rss = cot__squares_sum(w->m, w->r);
    if (!isfinite(w->rss)) return COT_FIT_BAD_START;
    cot_fit_end end = factor(w);
    while (end == COT_FIT_CONVERGED) {
        if (w->rank == w->n && (w->change <= near || w->offset <= near)) {
            end = polish(w);
            if (end != COT_FIT_CONVERGED || w->change <= p->tolerance) return end;
            near = fmin(near, fmax(w->change, w->offset)) / 10;
        }
        bool moved = false;
        while (!moved) {
            if (w->iterations >= w->limit) return COT_FIT_LIMIT;
            double promised = damped_step(w, mu);
            /* The sum no longer changes. A minimum is then known to half of the digits of the
             * offset. */
            if (!(promised > DBL_EPSILON / 4 * w->rss) || !set_trial(w, w->z) || mu > 1e40)
                return w->rank < w->n ? COT_FIT_SINGULAR : w->offset <= 1e-6 ? COT_FIT_CONVERGED : COT_FIT_STALLED;
            w->iterations++;
            if (!p->residuals(p->user, w->trial, w->moved)) return COT_FIT_ABANDONED;
            double rss  = cot__squares_sum(w->m, w->moved);
            double gain = isfinite(rss) ? cot__squares_decrease(w->m, w->r, w->moved) / promised : -1;
            moved       = gain > 1e-4;
            if (moved) {
                double c = 2 * gain - 1;
                go_there(w, rss);
                mu     = fmax(mu * fmax(1.0 / 3, 1 - c * c * c), 1e-20);
                growth = 2;
            } else {
                mu *= growth;
                growth *= 2;
            }
        }
        end = factor(w);
    }
    return end;
}

static void finish(work *w, cot_fit_end end, cot__fit_result *out) {
    int64_t dof = w->m - w->n;
    bool known  = end == COT_FIT_CONVERGED || end == COT_FIT_LIMIT || end == COT_FIT_STALLED || end == COT_FIT_SINGULAR;
    out->rss    = w->rss;
    out->sd     = dof > 0 ? sqrt(w->rss / (double)dof) : (double)NAN;
    out->iterations = w->iterations;
    out->change     = known ? w->change : (double)NAN;
    out->singular   = known && w->rank < w->n;
    for (int j = 0; j < w->n; j++) {
        out->errors[j]       = known && !out->singular ? out->sd * w->inverse[j] / w->d[j] : (double)NAN;
        out->undetermined[j] = false;
    }
    if (out->singular) find_undetermined(w, out->undetermined);
}

/* Takes all memory in one piece. NULL when memory is short. */
static double *furnish(work *w, size_t bytes) {
    size_t  m = (size_t)w->m, n = (size_t)w->n;
    double *room = cot__alloc(&w->p->al, bytes), *p = room;
    if (!room) return NULL;
    memset(room, 0, bytes);
    double **const lists[] = {&w->b, &w->trial, &w->d, &w->most, &w->inverse, &w->newton, &w->z, &w->solved, &w->kept};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++, p += n) *lists[k] = p;
    w->right    = p, p += 2 * n;
    w->damped   = p, p += 2 * n * n;
    w->r        = p, p += m;
    w->moved    = p, p += m;
    w->slopes   = p, p += m;
    w->start    = p, p += n;
    w->jacobian = p, p += m * n;
    w->perm     = (int *)(void *)p;
    w->order    = w->perm + n;
    return room;
}

/* Is the end of this attempt better than the best so far? A minimum is, unless another attempt
 * reached a lower sum without finding a minimum. */
static bool better(cot_fit_end end, double rss, cot_fit_end best, double best_rss) {
    if (end == COT_FIT_CONVERGED) return best == COT_FIT_CONVERGED ? rss < best_rss : rss <= best_rss * (1 + 1e-6);
    return rss < best_rss;
}

cot_fit_end cot__least_squares_fit(const cot__least_squares *p, double *b, double *r, cot__fit_result *out) {
    work   w = {.p = p, .m = p->rows, .n = p->n, .rss = (double)NAN, .change = (double)NAN};
    size_t m = (size_t)p->rows, n = (size_t)p->n;
    /* matrices and vectors, and two orders of columns */
    size_t      bytes = (m * (n + 3) + 2 * n * n + 12 * n) * sizeof(double) + 2 * n * sizeof(int);
    double     *room  = furnish(&w, bytes);
    cot_fit_end best = COT_FIT_MEMORY, end = COT_FIT_LIMIT;
    *out = (cot__fit_result){.rss = (double)INFINITY, .errors = out->errors, .undetermined = out->undetermined};
    if (room) memcpy(w.start, b, n * sizeof *b);
    for (int k = 0; k < ATTEMPTS && room && end != COT_FIT_CONVERGED; k++) {
        int64_t left = p->most_iterations - w.iterations;
        if (k > 0 && left <= 0) break;
        w.limit = w.iterations + (k + 1 < ATTEMPTS ? (left + 1) / 2 : left);
        memcpy(w.b, w.start, n * sizeof *b);
        end = iterate(&w, attempts[k]);
        if (end == COT_FIT_CONVERGED && w.rank < w.n) end = COT_FIT_SINGULAR;
        bool hopeless = end == COT_FIT_ABANDONED || end == COT_FIT_BAD_START;
        if (hopeless || k == 0 || better(end, w.rss, best, out->rss)) {
            best = end;
            memcpy(b, w.b, n * sizeof *b);
            memcpy(r, w.r, m * sizeof *r);
            finish(&w, end, out);
        }
        if (hopeless) break;
    }
    out->iterations = w.iterations;
    cot__free(&p->al, room, bytes);
    return best;
}
