/* system.h: solving A x = b in numbers, where A is a linear function that is called (system.c). It
 * knows neither tapes nor programs. */
#ifndef COT_SYSTEM_H
#define COT_SYSTEM_H

#include "job/job.h"

typedef struct cot__system {
    const cot__caller *caller;
    /* what the solution is for the caller, for messages ("the derivative of the solution"). NULL: a
     * solution */
    const char        *wanted;
    cot_solve_options  options;
    cot_dtype          dtype; /* in which A computes */
    int64_t            size;
    void              *ctx;
    /* out = A v. False after telling the caller. */
    bool (*apply)(void *ctx, const double *v, double *out);
    /* The solution of Mᵀ x = b with a matrix M of few columns (cot__system_is_dense), and NaN where
     * it is singular. False after telling the caller. */
    bool (*eliminate)(void *ctx, const double *m, const double *b, double *x);
} cot__system;

/* Does it become a matrix? One that is positive definite never does. */
bool cot__system_is_dense(int64_t size, bool positive_definite);
/* Bytes that the functions below need at `work`; SIZE_MAX: more than there can be. */
size_t cot__system_bytes(int64_t size, bool positive_definite);
/* The most steps of a method that goes step by step. */
static inline int cot__system_most(const cot_solve_options *o) { return o->iterations > 0 ? o->iterations : 1000; }
/* Solves it. False after telling the caller. */
bool cot__system_solve(const cot__system *s, const double *b, double *x, double *work);
/* Is A linear, and symmetric if that was said, as far as one sees at the solution x? Otherwise
 * tells the caller. */
bool cot__system_is_linear(const cot__system *s, const double *x, double *work);

/* From x = 0, for a positive definite A, of b divided by a power of two, so that squares are
 * numbers: until |b - A x| is at most `goal` |b|, or *steps, which counts applications of A for
 * steps, `most`. work: three vectors. False after telling the caller. */
bool cot__conjugate_gradients(const cot__system *s, const double *b, double *x, double *work, double goal, int most,
                              int *steps);
bool cot__system_is_symmetric(const cot__system *s, const double *u, const double *v, const double *of_u,
                              const double *of_v);

double cot__solve_tolerance(const cot_solve_options *options, cot_dtype dtype, double for_f64, double for_f32);
/* About ∛eps. A residual that is a larger part of the terms of the equation means that the solution
 * is worth nothing. */
static inline double cot__third_of_digits(cot_dtype dtype) {
    return dtype == COT_F64 ? 0x1p-17 : dtype == COT_F32 ? 0x1p-8 : dtype == COT_F16 ? 0x1p-3 : 0x1p-2;
}
/* The distance from 1 to the next number. */
static inline double cot__eps_of(cot_dtype dtype) {
    return dtype == COT_F64 ? 0x1p-52 : dtype == COT_F32 ? 0x1p-23 : dtype == COT_F16 ? 0x1p-10 : 0x1p-7;
}

#endif
