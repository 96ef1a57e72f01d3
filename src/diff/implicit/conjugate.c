/* conjugate.c: A x = b by conjugate gradients, where A is symmetric and positive definite. Three
 * vectors are kept, whatever the number of steps; GMRES keeps one for each.
 *
 * The residual that steps carry on drifts from b - A x by rounding. Where it is small enough, the
 * true one is computed and the search goes on from there, until that is small too. */
#include "diff/implicit/system.h"

#include "base/math/vectors.h"

#include <math.h>
#include <string.h>

static bool not_positive(const cot__system *a, double bend, int step) {
    return cot__refuse(a->caller, COT_VALUE,
                       "the function is not positive definite: p·a(p) is %g for the direction p of step %d; without "
                       ".positive_definite any linear function is solved",
                       bend, step);
}

/* r = b / scale - A x, and its square. */
static bool look(const cot__system *a, const double *b, double scale, const double *x, double *r, double *square) {
    if (!a->apply(a->ctx, x, r)) return false;
    for (int64_t k = 0; k < a->size; k++) r[k] = b[k] / scale - r[k];
    *square = cot__dot_chain(a->size, r, r);
    return true;
}

bool cot__conjugate_gradients(const cot__system *a, const double *b, double *x, double *work, double goal, int most,
                              int *steps) {
    int64_t n = a->size;
    double *r = work, *p = r + n, *q = p + n, square, before = INFINITY, most_of_b = cot__largest(n, b);
    if (most_of_b == 0 || !isfinite(most_of_b)) return true; /* the residual says so */
    double scale = cot__power_near(most_of_b);
    for (int64_t k = 0; k < n; k++) r[k] = b[k] / scale; /* x is 0 */
    square = cot__dot_chain(n, r, r);
    goal *= sqrt(square);
    while (*steps < most && sqrt(square) > goal && square < before) {
        before = square; /* a search that gains nothing is the last */
        memcpy(p, r, (size_t)n * sizeof *p);
        while (*steps < most && sqrt(square) > goal) {
            ++*steps;
            if (!a->apply(a->ctx, p, q)) return false;
            double bend = cot__dot_chain(n, p, q), step = square / bend;
            if (bend <= 0) return not_positive(a, bend, *steps);
            if (!isfinite(step)) break; /* the residual says so */
            for (int64_t k = 0; k < n; k++) x[k] += step * p[k], r[k] -= step * q[k];
            double next = cot__dot_chain(n, r, r), turn = next / square;
            for (int64_t k = 0; k < n; k++) p[k] = r[k] + turn * p[k];
            square = next;
        }
        if (!look(a, b, scale, x, r, &square)) return false;
    }
    for (int64_t k = 0; k < n; k++) x[k] *= scale;
    return true;
}

/* u·A v and v·A u of two vectors, whose images are there. */
bool cot__system_is_symmetric(const cot__system *a, const double *u, const double *v, const double *of_u,
                              const double *of_v) {
    int64_t n = a->size;
    double  there = cot__dot_chain(n, u, of_v), back = cot__dot_chain(n, v, of_u);
    double  size = cot__length(n, u) * cot__length(n, of_v) + cot__length(n, v) * cot__length(n, of_u);
    if (!(fabs(there - back) > sqrt(cot__eps_of(a->dtype)) * size)) return true;
    return cot__refuse(a->caller, COT_VALUE,
                       "the function is not symmetric: u·a(v) and v·a(u) differ by %.2g of their size; without "
                       ".positive_definite any linear function is solved",
                       fabs(there - back) / size);
}
