/* Scalar special functions: pure, thread-safe, no global state; made of elementary.h and plain
 * arithmetic, so that they have the same bits on every machine.
 *
 * The promises below are in ulp (units in the last place of the exact result)
 * for round to nearest, without -ffast-math; tests/base/test_special.c holds the
 * functions to them.  Where a function crosses
 * zero, and the comment says "absolute", the error is counted in ulps of the
 * named quantity, since the result itself has lost its leading digits.
 *
 * NaN in gives NaN out.  A function that tends to a limit at an infinity takes
 * that limit there.  Every double function has a float twin (suffix f) that is
 * computed in double and rounded once more: under 0.51 ulp of float away from
 * the zeros spoken of below.
 *
 * May call: elementary.h. Must not touch: memory, threads, tapes. */
#ifndef COT_BASE_SPECIAL_H
#define COT_BASE_SPECIAL_H

#include "base/math/elementary.h"

#include <math.h>
#include <stdint.h>

/* Inverse of erf: +-inf at +-1, NaN outside [-1, 1].  2 ulp. */
double cot__erfinv(double x);
/* The same with a logarithm of the caller's, good to 1 ulp. */
double cot__erfinv_by(double (*logarithm)(double), double x);

/* log|Gamma(x)|; +inf at 0, at the negative integers and at both infinities.
 * 5 ulp for x > -1/4, also next to its zeros at 1 and 2.  Below: 5 ulp, absolute
 * in |log(pi / (x sin(pi x)))| + lgamma(-x), of which it is the difference. */
double cot__lgamma(double x);

/* psi = lgamma'.  psi(+-0) = -+inf, NaN at negative integers and -inf.  4 ulp
 * for x > 0, also next to the zero at 1.4616.  For x < 0: 4 ulp, absolute in
 * pi*|cot(pi x)| + |psi(1 - x)|, of which psi is the difference. */
double cot__digamma(double x);

/* The n-th derivative of psi; NaN for n < 0, n == 0 is psi itself.
 * At +-0 the one-sided limit; at negative integers and -inf: +inf for odd n at
 * the integers (both sides agree), otherwise NaN.
 * x > 0: 5 ulp for n <= 1000.  x < 0: 5 ulp, absolute for even n (which cross
 * zero) in n!/d^(n+1), d being the distance to the nearest pole.
 * Above n = 1000 it goes through logarithms and the error grows like n. */
double cot__polygamma(int n, double x);

/* x - floor(x / y) * y, with the sign of y, as NumPy's remainder: NaN for y == 0
 * or x infinite; a zero result has the sign of y.  Exact where x and y have one
 * sign, otherwise rounded once. */
double cot__remainder(double x, double y);

/* Integer remainder with the sign of y (remainder) or of x (fmod); 0 for y == 0. */
int64_t cot__iremainder(int64_t x, int64_t y);
int64_t cot__ifmod(int64_t x, int64_t y);

/* base^exp modulo 2^64.  A negative exponent truncates the exact value toward
 * zero: +-1 for base +-1, else 0 (base 0 included). */
int64_t cot__ipow(int64_t base, int64_t exp);

float cot__erfinvf(float x);
float cot__lgammaf(float x);
float cot__digammaf(float x);
float cot__polygammaf(int n, float x);
float cot__remainderf(float x, float y);

#endif
