/* Logistic functions, remainders, and the float twins.  See special.h. */
#include "special.h"

#include <math.h>

double cot__log1pexp(double x) {
    if (x > 40)
        return x; /* e^-x is below half an ulp of x */
    /* The exponential never exceeds 1, so nothing overflows, and for x < 0 this
     * is log1p(e^x), which keeps the left tail. */
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* Small x: x - x^3 M(x^2)/D(x^2), where (D - z M)/D is the ninth convergent of
 * tanh(x)/x = 1/(1 + z/(3 + z/(5 + ...))), z = x^2: its error is under 1e-20
 * there, and the subtracted part is so small that its rounding hardly counts.
 * Beyond, 1 - 2/(e^2x + 1), where at most half is taken away. */
double cot__tanh(double x) {
    double a = fabs(x), z = x * x;
    if (a < 0x1p-28) /* keeps the sign of 0 */
        return x;
    if (a < 0.625) {
        double m = 11486475 + z * (810810 + z * (12870 + z * 44));
        double d = 34459425 + z * (16216200 + z * (945945 + z * (13860 + z * 45)));
        return x - x * z * (m / d);
    }
    if (a > 20) /* e^-40 is below half an ulp of 1; NaN falls through */
        return copysign(1, x);
    return copysign(1 - 2 / (exp(2 * a) + 1), x);
}

double cot__sigmoid(double x) {
    if (x >= 0)
        return 1 / (1 + exp(-x));
    double e = exp(x);
    return e / (1 + e);
}

double cot__log_sigmoid(double x) { return -cot__log1pexp(-x); }

double cot__logaddexp(double a, double b) {
    if (a == b)
        return a + 0x1.62e42fefa39efp-1; /* log 2; also the way out for equal infinities */
    double d = a - b;
    if (d > 0)
        return a + log1p(exp(-d));
    if (d < 0)
        return b + log1p(exp(d));
    return a + b; /* a NaN */
}

double cot__mish(double x) {
    if (x > 40)
        return x;
    if (x < -40) {
        /* tanh(log(1 + e^x)) is e^x to full precision.  The square keeps e^x from
         * going subnormal before x multiplies it. */
        if (x < -800)
            return -0.0;
        double h = exp(0.5 * x);
        return x * h * h;
    }
    /* tanh(log w) = (w^2 - 1) / (w^2 + 1) with w = 1 + e: every term is positive. */
    double e = exp(x), m = e * (e + 2);
    return x * (m / (m + 2));
}

double cot__remainder(double x, double y) {
    double r = fmod(x, y);
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
float cot__log1pexpf(float x) { return (float)cot__log1pexp((double)x); }
float cot__tanhf(float x) { return (float)cot__tanh((double)x); }
float cot__sigmoidf(float x) { return (float)cot__sigmoid((double)x); }
float cot__log_sigmoidf(float x) { return (float)cot__log_sigmoid((double)x); }
float cot__logaddexpf(float a, float b) { return (float)cot__logaddexp((double)a, (double)b); }
float cot__normcdff(float x) { return (float)cot__normcdf((double)x); }
float cot__normpdff(float x) { return (float)cot__normpdf((double)x); }
float cot__mishf(float x) { return (float)cot__mish((double)x); }
float cot__gelu_tanhf(float x) { return (float)cot__gelu_tanh((double)x); }
float cot__remainderf(float x, float y) { return (float)cot__remainder((double)x, (double)y); }
