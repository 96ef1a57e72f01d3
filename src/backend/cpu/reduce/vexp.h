/* vexp.h: e^x over arrays, in vectors where the processor has them: the exponentials of softmax and
 * logsumexp. */
#ifndef COT_VEXP_H
#define COT_VEXP_H

#include "base/cpu.h"

/* z[i] = e^x[i]; z may be x. An element's bits depend on its value alone. */
void cot__exp_f64(int n, const double *x, double *z);
void cot__exp_f32(int n, const float *x, float *z);

#endif
