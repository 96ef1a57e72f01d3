/* Remainders, powers of integers, and the float twins.  See special.h. */
#include "special.h"

#include <math.h>

double cot__remainder(double x, double y) {
    double r = cot__fmod(x, y);
    if (r == 0)
        return copysign(0.0, y);
    return (r < 0) != (y < 0) ? r + y : r; /* a NaN passes through the sum or as it is */
}

int64_t cot__ifmod(int64_t x, int64_t y) {
    /* INT64_MIN % -1 traps although its value, 0, is as harmless as any. */
    return y == 0 || y == -1 ? 0 : x % y;
}

int64_t cot__iremainder(int64_t x, int64_t y) {
    int64_t r = cot__ifmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

int64_t cot__ipow(int64_t base, int64_t exp) {
    if (exp < 0) {
        if (base == -1)
            return exp % 2 == 0 ? 1 : -1;
        return base == 1;
    }
    uint64_t r = 1, b = (uint64_t)base; /* unsigned, where wrapping is defined */
    for (; exp != 0; exp >>= 1, b *= b)
        if (exp & 1)
            r *= b;
    /* The conversion of the upper half to int64_t is the implementation's to define;
     * this form has one meaning everywhere. */
    return r <= INT64_MAX ? (int64_t)r : -(int64_t)(UINT64_MAX - r) - 1;
}

float cot__erfinvf(float x) { return (float)cot__erfinv((double)x); }
float cot__lgammaf(float x) { return (float)cot__lgamma((double)x); }
float cot__digammaf(float x) { return (float)cot__digamma((double)x); }
float cot__polygammaf(int n, float x) { return (float)cot__polygamma(n, (double)x); }
float cot__remainderf(float x, float y) { return (float)cot__remainder((double)x, (double)y); }
