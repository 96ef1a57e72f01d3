/* least_squares.h: nonlinear least squares by the method of Levenberg and Marquardt: finds
 * parameters b that minimise the sum of the squares of r(b) = data - model(b). It knows nothing of
 * expressions: two functions give residuals and Jacobian.
 *
 * May call: libc, base. Must not touch: expressions, files, terminals. */
#ifndef COT_CLI_LEAST_SQUARES_H
#define COT_CLI_LEAST_SQUARES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct least_squares {
    int64_t rows;
    int     n;    /* number of parameters, at most rows */
    double  size; /* the norm of the data: smaller differences are rounding */
    int     most_iterations;
    /* the relative error of the parameters that is good enough. At or below this constant the fit
     * goes on to the last digit */
    double  tolerance;
#define LEAST_SQUARES_TOLERANCE 1e-10
    /* Computes r (rows) at b (n). False: the fit cannot go on, and the caller knows why. Values
     * that are not finite only mean that a step was too long. */
    bool (*residuals)(void *user, const double *b, double *r);
    /* Computes the derivatives of the model at the point where residuals was called last: (n,
     * rows), a row for each parameter. */
    bool (*jacobian)(void *user, double *j);
    void *user;
} least_squares;

typedef enum fit_end {
    FIT_CONVERGED,
    FIT_LIMIT,     /* most_iterations were done */
    FIT_STALLED,   /* no step makes the sum smaller, but the point is no minimum */
    FIT_SINGULAR,  /* stationary, but some parameters can move without effect */
    FIT_BAD_START, /* residuals are not finite at the start */
    FIT_BAD_SLOPE, /* derivatives are not finite at the present point */
    FIT_ABANDONED, /* a function returned false */
    FIT_MEMORY
} fit_end;

typedef struct fit_result {
    double  rss;
    /* standard deviation of the residuals, sqrt(rss / (rows - n)); NaN without degrees of
     * freedom */
    double  sd;
    int64_t iterations;   /* steps tried */
    /* relative change of the parameters by one more Gauss-Newton step; NaN if there is none */
    double  change;
    double *errors;       /* (n) standard errors; NaN if there are none */
    /* (n) if the Jacobian at the end is singular: parameters that can move without effect */
    bool   *undetermined;
    bool    singular;     /* the Jacobian at the end is singular */
} fit_result;

/* b holds the start and receives the end; r receives the residuals there. errors and undetermined
 * are arrays of the caller. */
fit_end least_squares_fit(const least_squares *p, double *b, double *r, fit_result *out);

#endif
