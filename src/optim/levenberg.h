/* levenberg.h: nonlinear least squares by the method of Levenberg and Marquardt: finds
 * parameters b that minimise the sum of the squares of r(b) = data - model(b). It knows nothing of
 * expressions: two functions give residuals and Jacobian.
 *
 * In plain numbers: it knows no tape. cot_least_squares and the command `fit` give it theirs. */
#ifndef COT_LEVENBERG_H
#define COT_LEVENBERG_H

#include "base/base.h"

typedef struct cot__least_squares {
    cot_allocator al; /* none: libc's */
    int64_t       rows;
    int           n;    /* number of parameters, at most rows */
    double        size; /* the norm of the data: smaller differences are rounding */
    int           most_iterations;
    /* the relative error of the parameters that is good enough. At or below this constant the fit
     * goes on to the last digit */
    double tolerance;
#define COT__FIT_TOLERANCE 1e-10
    /* Computes r (rows) at b (n). False: the fit cannot go on, and the caller knows why. Values
     * that are not finite only mean that a step was too long. */
    bool (*residuals)(void *user, const double *b, double *r);
    /* Computes the derivatives of the model at the point where residuals was called last: (n,
     * rows), a row for each parameter. */
    bool (*jacobian)(void *user, double *j);
    void *user;
} cot__least_squares;

typedef struct cot__fit_result {
    double rss;
    /* standard deviation of the residuals, sqrt(rss / (rows - n)); NaN without degrees of
     * freedom */
    double  sd;
    int64_t iterations; /* steps tried */
    /* relative change of the parameters by one more Gauss-Newton step; NaN if there is none */
    double  change;
    double *errors; /* (n) standard errors; NaN if there are none */
    /* (n) if the Jacobian at the end is singular: parameters that can move without effect */
    bool *undetermined;
    bool  singular; /* the Jacobian at the end is singular */
} cot__fit_result;

/* b holds the start and receives the end; r receives the residuals there. errors and undetermined
 * are arrays of the caller. */
cot_fit_end cot__least_squares_fit(const cot__least_squares *p, double *b, double *r, cot__fit_result *out);

#endif
