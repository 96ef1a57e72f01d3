/* elementary.h: the elementary functions of single numbers, and those put together from them. They
 * are the functions of vmath.h, so a number gets the bits that an element of a tensor gets, on
 * every processor: no machine's libm shows in a result.
 *
 *   double cot__exp(double x);  float cot__expf(float x);  and so on for each name below
 *
 * Any argument is allowed. 2 ulp, with the values of C's Annex F at zeros and infinities; NaN gives
 * NaN but for pow and hypot, as there. tests/base/test_ulps.c holds them to it.
 *
 *   sigmoid      1 / (1 + e^-x)              log_sigmoid  its logarithm
 *   log1pexp     log(1 + e^x), or softplus   logaddexp    log(e^x + e^y), 2 ulp of max(|x|, |y|)
 *   gelu         x erfc(-x / sqrt 2) / 2     silu         x sigmoid(x)
 *   gelu_tanh    x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2
 *   mish         x tanh(log(1 + e^x))        (the last four are -0 at -inf)
 *
 * On x86 there are two versions, one with fused multiply-add as an instruction (elementary_fma.c)
 * and one with software_fma.h; both have the same bits. elementary.c chooses.
 *
 * May call: cpu.h. Must not touch: memory, threads, tapes. */
#ifndef COT_ELEMENTARY_H
#define COT_ELEMENTARY_H

#define COT__ELEMENTARY_UNARY(FUNCTION)                                                                                \
    FUNCTION(exp) FUNCTION(exp2) FUNCTION(expm1) FUNCTION(log) FUNCTION(log2) FUNCTION(log10) FUNCTION(log1p)          \
    FUNCTION(asin) FUNCTION(acos) FUNCTION(atan) FUNCTION(sinh) FUNCTION(cosh) FUNCTION(tanh)                          \
    FUNCTION(asinh) FUNCTION(acosh) FUNCTION(atanh) FUNCTION(erf) FUNCTION(erfc) FUNCTION(cbrt)                        \
    FUNCTION(sigmoid) FUNCTION(log_sigmoid) FUNCTION(log1pexp)                                                         \
    FUNCTION(gelu) FUNCTION(gelu_tanh) FUNCTION(silu) FUNCTION(mish)
/* whose large arguments vmath.h leaves out */
#define COT__ELEMENTARY_TRIG(FUNCTION) FUNCTION(sin) FUNCTION(cos) FUNCTION(tan)
#define COT__ELEMENTARY_BINARY(FUNCTION) FUNCTION(pow) FUNCTION(atan2) FUNCTION(hypot) FUNCTION(logaddexp)

#define DECLARE(name)                                                                                                  \
    double cot__##name(double x);                                                                                      \
    float  cot__##name##f(float x);
COT__ELEMENTARY_UNARY(DECLARE)
COT__ELEMENTARY_TRIG(DECLARE)
#undef DECLARE
#define DECLARE(name)                                                                                                  \
    double cot__##name(double x, double y);                                                                            \
    float  cot__##name##f(float x, float y);
COT__ELEMENTARY_BINARY(DECLARE)
#undef DECLARE

/* What is left of x after whole multiples of y are taken away; it has the sign of x. Exact. */
double cot__fmod(double x, double y);
float  cot__fmodf(float x, float y);

/* These are exact, or rounded once, wherever they come from. */
#define cot__fabs __builtin_fabs
#define cot__sqrt __builtin_sqrt
#define cot__floor __builtin_floor
#define cot__ceil __builtin_ceil
#define cot__rint __builtin_rint
#define cot__trunc __builtin_trunc
#define cot__fabsf __builtin_fabsf
#define cot__sqrtf __builtin_sqrtf
#define cot__floorf __builtin_floorf
#define cot__ceilf __builtin_ceilf
#define cot__rintf __builtin_rintf
#define cot__truncf __builtin_truncf

/* |x| = r + lo + a whole number of quarter turns, of which the last two bits are given; |r| is at
 * most pi/4. For finite |x| >= 2^16, both signs; -x gives the negatives. See trig_far.c. */
typedef struct cot__turns {
    double   r, lo;
    unsigned quarters;
} cot__turns;
cot__turns cot__trig_reduce(double x);

#endif
