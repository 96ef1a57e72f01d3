/* search.h: finding x with F(x) = 0, or the least of a function whose gradient F is, in numbers
 * (search.c). It knows neither tapes nor programs: F is called. */
#ifndef COT_SEARCH_H
#define COT_SEARCH_H

#include "diff/implicit/system.h"

/* Vectors x and v are elements in `dtype`, others are f64. Calls that return bool return false
 * after telling of an error. */
typedef struct cot__search {
    const cot__caller *caller;
    bool               least; /* a minimum is asked for */
    cot_solve_options  options;
    cot_dtype          dtype;
    int64_t            size;
    void              *ctx;
    double (*residual)(void *ctx, const void *x);                      /* |F|; NaN after an error */
    bool (*bend)(void *ctx, const void *x, const void *v, double *dy); /* ∂F/∂x v */
    /* the step of Newton's method at x, rounded to `dtype`; unless a minimum is asked for */
    bool (*step)(void *ctx, const void *x, double *step);
    /* the function and its gradient F; of a minimum */
    bool (*at)(void *ctx, const void *x, double *f, double *gradient);
    /* a solver of the user's, and its code; NULL: there is none */
    int (*solver)(void *ctx, void *x);
    /* the first error that was told of, and its sentence in memory of `room` bytes; `forget`
     * forgets it */
    const cot_status  *status;
    char              *message;
    size_t             room;
    void (*forget)(void *ctx);
} cot__search;

/* Bytes that it needs at `work`; SIZE_MAX: more than there can be. */
size_t cot__search_bytes(int64_t size);
/* x holds the start and receives the solution. False after telling of an error. */
bool cot__search_go(const cot__search *s, void *x, void *work);

/* Options for a linear system with ∂F/∂x: more iterations where more steps were asked for, and the
 * usual tolerance of linear_solve. */
static inline cot_solve_options cot__search_linear(const cot_solve_options *o) {
    return (cot_solve_options){.iterations = o->iterations > 1000 ? o->iterations : 0};
}
/* What a system for a step, and one for a derivative, is called in messages. */
#define COT__FOR_A_STEP "a step of Newton's method"
#define COT__FOR_A_DERIVATIVE "the derivative of the solution"

#endif
