/* system.c: A x = b, where A is not a matrix but a linear function. Few unknowns make it one. */
#include "diff/implicit/system.h"
#include "base/math/elementary.h"
#include "base/math/vectors.h"
#include "base/random.h"

#include <string.h>

/* DENSE: up to so many unknowns A becomes a matrix. RESTART: vectors kept between restarts of
 * GMRES. TESTED: vectors that looking for linearity takes */
enum { DENSE = 64, RESTART = 40, TESTED = 6 };

bool cot__system_is_dense(int64_t size, bool positive_definite) { return size <= DENSE && !positive_definite; }

static bool is_dense(const cot__system *a) { return cot__system_is_dense(a->size, a->options.positive_definite); }

size_t cot__system_bytes(int64_t size, bool positive_definite) {
    int64_t vectors = positive_definite ? 0 : size > DENSE ? RESTART + 2 : size + 1;
    if (vectors < TESTED) vectors = TESTED;
    if (size > INT64_MAX / 16 / vectors) return SIZE_MAX;
    return (size_t)(vectors * size) * sizeof(double) + 8;
}

/* ---- few unknowns: a matrix ------------------------------------------------------------------ */

/* Writes the norm of the matrix to *size. A singular matrix gives NaN, which the error about the
 * residual reports. */
static bool solve_dense(const cot__system *a, const double *b, double *x, double *work, double *size) {
    int64_t n = a->size;
    /* matrix holds rows of the transpose of A */
    double *row = work, *matrix = work + n;
    for (int64_t j = 0; j < n; j++) {
        memset(row, 0, (size_t)n * sizeof *row);
        row[j] = 1;
        if (!a->apply(a->ctx, row, matrix + j * n)) return false;
    }
    *size = sqrt(cot__dot_chain(n * n, matrix, matrix));
    return a->eliminate(a->ctx, matrix, b, x);
}

/* ---- many: GMRES ----------------------------------------------------------------------------- */

/* One cycle from x. v is an orthonormal basis of the space that A spans from the residual;
 * rotations find the least residual in it. work: RESTART + 2 vectors. Returns the norm of the
 * residual before the cycle, or -1 after an error. *steps counts applications of A, up to
 * `most`. */
static double gmres_cycle(const cot__system *a, const double *b, double *x, double *work, double goal, int most,
                          int *steps) {
    int64_t n = a->size;
    double  h[RESTART + 1][RESTART], c[RESTART], s[RESTART], g[RESTART + 1] = {0}, y[RESTART];
    double *v = work, *w = work + (RESTART + 1) * n;
    int     k = 0;
    if (!a->apply(a->ctx, x, v)) return -1;
    for (int64_t i = 0; i < n; i++) v[i] = b[i] - v[i];
    double start = sqrt(cot__dot_chain(n, v, v));
    if (!(start > goal)) return start;
    for (int64_t i = 0; i < n; i++) v[i] /= start;
    for (g[0] = start; k < RESTART && *steps < most && fabs(g[k]) > goal; k++) {
        ++*steps;
        if (!a->apply(a->ctx, v + k * n, w)) return -1;
        for (int pass = 0; pass < 2; pass++) /* two passes of orthogonalisation are enough */
            for (int j = 0; j <= k; j++) {
                double d = cot__dot_chain(n, v + j * n, w);
                h[j][k] = pass ? h[j][k] + d : d;
                for (int64_t i = 0; i < n; i++) w[i] -= d * v[j * n + i];
            }
        h[k + 1][k] = sqrt(cot__dot_chain(n, w, w));
        if (h[k + 1][k] > 0)
            for (int64_t i = 0; i < n; i++) v[(k + 1) * n + i] = w[i] / h[k + 1][k];
        for (int j = 0; j < k; j++) {
            double p = h[j][k], q = h[j + 1][k];
            h[j][k] = c[j] * p + s[j] * q;
            h[j + 1][k] = -s[j] * p + c[j] * q;
        }
        double r = cot__hypot(h[k][k], h[k + 1][k]);
        if (!(r > 0)) break; /* A is singular here */
        c[k] = h[k][k] / r, s[k] = h[k + 1][k] / r;
        bool last = h[k + 1][k] == 0;
        h[k][k] = r;
        g[k + 1] = -s[k] * g[k];
        g[k] *= c[k];
        if (last) { k++; break; }
    }
    for (int j = k - 1; j >= 0; j--) {
        double sum = g[j];
        for (int i = j + 1; i < k; i++) sum -= h[j][i] * y[i];
        y[j] = sum / h[j][j];
    }
    for (int j = 0; j < k; j++)
        for (int64_t i = 0; i < n; i++) x[i] += y[j] * v[j * n + i];
    return start;
}

static bool residual_of(const cot__system *a, const double *b, const double *x, double *work, double *norm) {
    if (!a->apply(a->ctx, x, work)) return false;
    for (int64_t i = 0; i < a->size; i++) work[i] -= b[i];
    *norm = cot__length_chain(a->size, work);
    return true;
}

double cot__solve_tolerance(const cot_solve_options *options, cot_dtype dtype, double for_f64, double for_f32) {
    if (options->tolerance > 0) return options->tolerance;
    return dtype == COT_F64 ? for_f64 : dtype == COT_F32 ? for_f32 : 5e-2;
}

/* The most that |A x - b| may be, relative to |b|. Elimination leaves rounding errors in A x, which
 * are large against b where x is large. Without a tolerance they are allowed up to a third of the
 * digits. Beyond that A is singular to rounding, and x could be any vector. */
static double residual_allowed(const cot__system *a, double relative, double terms) {
    if (!is_dense(a) || a->options.tolerance > 0) return relative;
    return fmin(relative * (1 + terms), cot__third_of_digits(a->dtype));
}

static const char *matrix_of(const cot__system *s) {
    return strcmp(s->caller->name, "minimize") ? "∂F/∂x" : "∂²f/∂x²";
}

/* The system of a step or a derivative was not solved: tells the caller, and is always false.
 * `infinite` names the value that is not finite, or is NULL. */
static bool solve_failed(const cot__system *a, double reached, double allowed, int steps, int most,
                         const char *infinite) {
    const char *matrix = matrix_of(a);
    if (infinite)
        return cot__refuse(a->caller, COT_VALUE, "%s was not found: %s is not finite there", a->wanted, infinite);
    return cot__refuse(
        a->caller, COT_VALUE,
        "%s was not found: its linear system has a residual of %g times its right side after %d of at most %d steps, "
        "at most %g is taken; %s is singular there, or nearly%s",
        a->wanted, reached, steps, most, allowed, matrix,
        steps < most || is_dense(a) ? "" : ", or more .iterations find it");
}

/* The residual of x is too large, or NaN. */
static bool refuse_solution(const cot__system *a, double norm, double residual, double size, double allowed,
                            int steps, int most) {
    double reached = fabs(residual / norm); /* NaN may have a sign */
    bool   dense = is_dense(a);
    if (dense) steps = most = (int)a->size;
    if (a->wanted)
        return solve_failed(a, reached, allowed, steps, most,
                            !isfinite(norm)                     ? "the right side"
                            : isfinite(dense ? size : residual) ? NULL
                                                                : matrix_of(a));
    return cot__refuse(
        a->caller, COT_VALUE,
        "the solver did not converge: after %d steps the residual is %g times the right side, at most %g is taken; the "
        "system is singular or too badly conditioned, or the function not linear",
        steps, reached, allowed);
}

bool cot__system_solve(const cot__system *a, const double *b, double *x, double *work) {
    int64_t n = a->size;
    bool    dense = is_dense(a);
    double  norm = cot__length_chain(n, b), residual = 0, size = 0;
    double  relative = cot__solve_tolerance(&a->options, a->dtype, 1e-12, 1e-5);
    int     steps = 0, most = cot__system_most(&a->options);
    memset(x, 0, (size_t)n * sizeof *x);
    bool ok = dense ? solve_dense(a, b, x, work, &size) : true, positive = a->options.positive_definite;
    if (positive) ok = cot__conjugate_gradients(a, b, x, work, relative, most, &steps);
    while (ok && !dense && !positive) {
        int    done = steps;
        double before = gmres_cycle(a, b, x, work, relative * norm, most, &steps);
        /* NaN is reported below */
        ok = !(before < 0);
        if (!(before > relative * norm) || steps >= most || steps == done) break;
    }
    ok = ok && residual_of(a, b, x, work, &residual);
    double allowed = residual_allowed(a, relative, size * sqrt(cot__dot_chain(n, x, x)) / norm);
    if (!ok || residual == 0 || (isfinite(norm) && residual <= allowed * norm)) return ok;
    return refuse_solution(a, norm, residual, size, allowed, steps, most);
}

/* ---- is it linear? --------------------------------------------------------------------------- */

/* Tests A (u + v) = A u + A v, where u is the solution x (another vector if x is 0) and v is as
 * large. A function that is not linear may still have been solved, but its derivative would be
 * another one. Half the digits count as rounding. Values that are not finite are reported
 * elsewhere. */
bool cot__system_is_linear(const cot__system *a, const double *x, double *work) {
    int64_t n = a->size;
    double *v = work, *u = v + n, *sum = u + n, *of_u = sum + n, *of_v = of_u + n, *of_sum = of_v + n;
    double  scale = sqrt(cot__dot_chain(n, x, x) / (double)n);
    for (int64_t k = 0; k < n; k++) {
        v[k] = (scale > 0 ? scale : 1) * cot__mixed_direction((uint64_t)k);
        u[k] = scale > 0 ? x[k] : cot__mixed_direction((uint64_t)(n + k));
        sum[k] = u[k] + v[k];
    }
    if (!a->apply(a->ctx, u, of_u) || !a->apply(a->ctx, v, of_v) || !a->apply(a->ctx, sum, of_sum)) return false;
    if (a->options.positive_definite && !cot__system_is_symmetric(a, u, v, of_u, of_v)) return false;
    double size = sqrt(cot__dot_chain(n, of_u, of_u)) + sqrt(cot__dot_chain(n, of_v, of_v)) +
                  sqrt(cot__dot_chain(n, of_sum, of_sum));
    for (int64_t k = 0; k < n; k++) of_sum[k] -= of_u[k] + of_v[k];
    double off = sqrt(cot__dot_chain(n, of_sum, of_sum));
    if (!(off > sqrt(cot__eps_of(a->dtype)) * size)) return true;
    return cot__refuse(a->caller, COT_VALUE,
                       "the function is not linear: f(u + v) is not f(u) + f(v), by %.2g of their size; for other "
                       "equations there is cot_root",
                       off / size);
}
