/* software_fma.h: a b + c rounded once, on processors without the instruction: the bits of the
 * instruction for every argument, also where the result overflows, is subnormal, a zero or NaN.
 *
 *   cot__software_fma(a, b, c), cot__software_fmaf(a, b, c)
 *   COT__FMA(a, b, c), COT__FMAF(a, b, c)   the instruction where the file is compiled for it, else
 *                                           a call of the software: one rounding either way
 *
 * The float version is a straight line, so loops over it become vectors. The double version is one
 * in the middle of the range; the rest is a call.
 *
 * Rounding to odd means: if a sum is not exact, take that one of its two neighbours whose last bit
 * is 1. Such a number can be rounded again, to two bits less or fewer, as if it were exact. */
#ifndef COT_SOFTWARE_FMA_H
#define COT_SOFTWARE_FMA_H

#include <stdint.h>

/* a b + c for any doubles, by integers. */
double cot__fma_by_integers(double a, double b, double c);

/* The same functions without inlining: where size counts more than time. */
double cot__fma_called(double a, double b, double c);
float  cot__fmaf_called(float a, float b, float c);

#if defined(__FMA__) || defined(__aarch64__)
#define COT__FMA __builtin_fma
#define COT__FMAF __builtin_fmaf
#else
#define COT__FMA cot__fma_called
#define COT__FMAF cot__fmaf_called
#endif

/* a + b rounded to odd. Beside an infinity or NaN the error is NaN, and the sum stays. */
static inline double cot__sum_to_odd(double a, double b) {
    double   sum = a + b, back = sum - a, error = (a - (sum - back)) + (b - back);
    uint64_t bits = ((union { double d; uint64_t u; }){.d = sum}).u;
    uint64_t away = ((error > 0) == (sum > 0)) ? 1 : UINT64_MAX;
    uint64_t even = (bits & 1) ^ 1, inexact = (uint64_t)((error > 0) | (error < 0));
    bits += away & (0 - (even & inexact));
    return ((union { uint64_t u; double d; }){.u = bits}).d;
}

/* The product is exact in double, and a double has more than two bits over a float. */
static inline float cot__software_fmaf(float a, float b, float c) {
    return (float)cot__sum_to_odd((double)a * (double)b, (double)c);
}

/* Is |x| between 2^-480 and 2^480? */
static inline int cot__is_middling(double x) {
    uint64_t bits = ((union { double d; uint64_t u; }){.d = x}).u;
    return (bits >> 52 & 0x7ff) - (1023 - 480) < 960;
}

/* The product as hi + lo from halves of 26 bits (Dekker), the sum of the three as high + (something
 * rounded to odd), after Boldo and Melquiond. The factors are such that nothing overflows, and that
 * all parts are whole multiples of the least subnormal. */
static inline double cot__fma_of_middling(double a, double b, double c) {
    double s = 0x1.0000002p27 * a, t = 0x1.0000002p27 * b, ah = s - (s - a), bh = t - (t - b), al = a - ah, bl = b - bh;
    double hi = a * b, lo = ((ah * bh - hi) + ah * bl + al * bh) + al * bl;
    double u = c + lo, bu = u - c, du = (c - (u - bu)) + (lo - bu);
    double v = hi + u, bv = v - hi, dv = (hi - (v - bv)) + (u - bv);
    return v + cot__sum_to_odd(du, dv);
}

static inline double cot__software_fma(double a, double b, double c) {
    double size = c < 0 ? -c : c; /* a zero or a subnormal number is welcome */
    if (cot__is_middling(a) && cot__is_middling(b) && size < 0x1p1000) return cot__fma_of_middling(a, b, c);
    return cot__fma_by_integers(a, b, c);
}

#endif
