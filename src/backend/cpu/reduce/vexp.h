/* vexp.h: what softmax and logsumexp do with a row, in vectors where the processor has them. An
 * element's bits depend on its value alone. */
#ifndef COT_VEXP_H
#define COT_VEXP_H

#include "base/cpu.h"

#include <stdint.h>

/* z[i] = e^(x[i] - shift); z may be x. */
void cot__exp_less_f64(int64_t n, const double *x, double shift, double *z);
void cot__exp_less_f32(int64_t n, const float *x, float shift, float *z);

/* z[i] /= by */
void cot__divide_f64(int64_t n, double *z, double by);
void cot__divide_f32(int64_t n, float *z, float by);

/* z[i] = (x[i] - a) - b; z may be x. */
void cot__less_f64(int64_t n, const double *x, double a, double b, double *z);
void cot__less_f32(int64_t n, const float *x, float a, float b, float *z);

/* The largest of n >= 1 elements, by the chains of a leaf of a reduction; NaN if one is. */
double cot__most_f64(int64_t n, const double *x);
float  cot__most_f32(int64_t n, const float *x);

/* z[i] = e^x[i] */
static inline void cot__exp_f64(int64_t n, const double *x, double *z) { cot__exp_less_f64(n, x, 0, z); }
static inline void cot__exp_f32(int64_t n, const float *x, float *z) { cot__exp_less_f32(n, x, 0, z); }

#endif
