/* elementary_fma.h: cot__exp_fma(x), cot__expf_fma(x) and so on: the functions of elementary.h with
 * FMA as an instruction. */
#ifndef COT_ELEMENTARY_FMA_H
#define COT_ELEMENTARY_FMA_H

#include "base/math/elementary.h"

#define DECLARE(name)                                                                                                  \
    double cot__##name##_fma(double x);                                                                                \
    float  cot__##name##f_fma(float x);
COT__ELEMENTARY_UNARY(DECLARE)
COT__ELEMENTARY_TRIG(DECLARE)
#undef DECLARE
#define DECLARE(name)                                                                                                  \
    double cot__##name##_fma(double x, double y);                                                                      \
    float  cot__##name##f_fma(float x, float y);
COT__ELEMENTARY_BINARY(DECLARE)
#undef DECLARE

#endif
