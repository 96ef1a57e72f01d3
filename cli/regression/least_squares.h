/* least_squares.h: nonlinear least squares by Levenberg and Marquardt's method: parameters b that
 * make the sum of the squares of r(b) = data - model(b) least. It knows nothing of expressions:
 * residuals and Jacobian come from two functions.
 *
 * May call: libc, base. Must not touch: expressions, files, terminals. */
#ifndef COT_CLI_LEAST_SQUARES_H
#define COT_CLI_LEAST_SQUARES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct least_squares {
    int64_t rows;
    int     n;    /* parameters, at most rows */
    double  size; /* the norm of the data: differences below rounding of it say nothing */
    int     most_iterations;
    /* the relative error of the parameters that is good enough; up to this one, all digits there
     * are */
    double  tolerance;
#define LEAST_SQUARES_TOLERANCE 1e-10
    /* r (rows) at b (n). False: it cannot go on, and the caller knows why. Values that are not
     * finite only make a step too long. */
    bool (*residuals)(void *user, const double *b, double *r);
    /* The derivatives of the model where residuals was called last: (n, rows), a row for each
     * parameter. */
    bool (*jacobian)(void *user, double *j);
    void *user;
} least_squares;

typedef enum fit_end {
    FIT_CONVERGED,
    FIT_LIMIT,     /* most_iterations */
    FIT_STALLED,   /* no step makes the sum smaller, and yet this is no minimum */
    FIT_SINGULAR,  /* stationary, but some parameters can move without any effect */
    FIT_BAD_START, /* residuals are not finite at the start */
    FIT_BAD_SLOPE, /* derivatives are not finite where it stands */
    FIT_ABANDONED, /* a function said so */
    FIT_MEMORY
} fit_end;

typedef struct fit_result {
    double  rss;
    /* of the residuals: sqrt(rss / (rows - n)); NaN without degrees of freedom */
    double  sd;
    int64_t iterations;   /* steps tried */
    /* relative change of the parameters by one more Gauss-Newton step; NaN when there is none */
    double  change;
    double *errors;       /* (n) standard errors; NaN where there are none */
    /* (n) where the Jacobian at the end is singular: parameters that can move without effect */
    bool   *undetermined;
    bool    singular;     /* the Jacobian at the end */
} fit_result;

/* b: the start, and then where it ended; r: the residuals there. errors and undetermined are arrays
 * of the caller. */
fit_end least_squares_fit(const least_squares *p, double *b, double *r, fit_result *out);

#endif
