/* Logistic functions, remainders, and the float twins.  See special.h. */
#include "special.h"
#include "special_poly.h"

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
    /* the rounding of 1 + e would be one too many for 2 ulp */
    return e < 0.25 ? e - e * (e / (1 + e)) : e / (1 + e);
}

/* a * e^(x + dx) for x < -40, where e^x may leave the normal numbers before a multiplies it: times
 * 2^100, and back. */
static double times_small_exp(double a, double x, double dx) {
    /* 100 log 2; x + hi is exact */
    const double hi = 0x1.1542457337d40p+6, lo = 0x1.70e35b9e44ec3p-45;
    if (x < -800)
        return copysign(0, a);
    double e = exp(x + hi), p = a * e;
    return (p + (cot__product_error(a, e, p) + p * (dx + lo))) * 0x1p-100;
}

/* x / (1 + e^-(v + dv)), v having the sign of x: numerator and denominator as pairs, so that little
 * more than the errors of the exponential and of the last rounding remain. */
static double times_sigmoid(double x, double v, double dv) {
    if (v > 40) /* e^-v is below half an ulp of 1; NaN falls through */
        return x;
    if (v < -600)
        return times_small_exp(x, v, dv);
    if (x == 0) /* keeps its sign */
        return x;
    double e = exp(v < 0 ? v : -v), d = 1 + e, dd = (1 - d) + e;
    double n = v < 0 ? x * e : x, dn = v < 0 ? cot__product_error(x, e, n) + n * dv : 0;
    double q = n / d, m = q * d;
    dd -= v < 0 ? -e * dv : e * dv;
    return q + (((n - m) - cot__product_error(q, d, m)) + (dn - q * dd)) / d;
}

double cot__silu(double x) { return times_sigmoid(x, x, 0); }

/* 2 sqrt(2/pi), and the same times 0.044715: the argument of a large exponential has to be known
 * beyond double, as an error of half an ulp of u becomes u/2 ulps of the result. */
double cot__gelu_tanh(double x) {
    const double c_hi = 0x1.9884533d43651p+0, c_lo = -0x1.cbc0d30ebfd15p-54, d_hi = 0x1.2444f2a4d8b4bp-4,
                 d_lo = -0x1.6c843a29d1c70p-61;
    /* (1 + tanh u) / 2 = 1 / (1 + e^(-2u)), so this is x times a logistic. */
    if (x > 40)
        return x;
    if (x < -40)
        return -0.0;
    /* 2u = v + dv = x * (C + D x^2) in twice the working precision. */
    double s = x * x, ds = cot__product_error(x, x, s);
    double t = d_hi * s, dt = cot__product_error(d_hi, s, t) + (d_hi * ds + d_lo * s);
    double c = c_hi + t, b = c - c_hi;
    double dc = (c_hi - (c - b)) + (t - b) + (dt + c_lo);
    double v = x * c, dv = cot__product_error(x, c, v) + x * dc;
    return times_sigmoid(x, v, dv);
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

/* tanh(log w) = (w^2 - 1) / (w^2 + 1) with w = 1 + e^x: n/d with n = e^2 + 2e and d = n + 2. On the
 * right both over e^2x. */
double cot__mish(double x) {
    if (x > 40 || x == 0)
        return x;
    if (x < -40)
        return times_small_exp(x, x, 0);
    double e = exp(x < 0 ? x : -x), p = e * e, dp = cot__product_error(e, e, p), n, dn, d, dd;
    if (x < 0) {
        n = 2 * e + p, dn = ((2 * e - n) + p) + dp;
        d = 2 + n, dd = ((2 - d) + n) + dn;
    } else {
        n = 1 + 2 * e, dn = (1 - n) + 2 * e;
        d = n + 2 * p, dd = ((n - d) + 2 * p) + (dn + 2 * dp);
    }
    double q = n / d, m = q * d, dq = (((n - m) - cot__product_error(q, d, m)) + (dn - q * dd)) / d, r = x * q;
    return r + (cot__product_error(x, q, r) + x * dq);
}

double cot__cbrt(double x) {
    double y = cbrt(x); /* glibc's is good to 4 ulp */
    if (y == 0 || !isfinite(y))
        return y;
    /* One step of Newton's, the cube in twice the precision; far from the least and largest
     * numbers, for that. */
    double scale = fabs(y) < 0x1p-200 ? 0x1p150 : fabs(y) > 0x1p200 ? 0x1p-150 : 1, m = x * (scale * scale * scale);
    y *= scale;
    double s = y * y, ds = cot__product_error(y, y, s), c = s * y, dc = cot__product_error(s, y, c) + ds * y;
    return (y - ((c - m) + dc) / (3 * s)) / scale;
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
float cot__erfcf(float x) { return (float)cot__erfc((double)x); }
float cot__geluf(float x) { return (float)cot__gelu((double)x); }
float cot__siluf(float x) { return (float)cot__silu((double)x); }
float cot__cbrtf(float x) { return (float)cot__cbrt((double)x); }
float cot__mishf(float x) { return (float)cot__mish((double)x); }
float cot__gelu_tanhf(float x) { return (float)cot__gelu_tanh((double)x); }
float cot__remainderf(float x, float y) { return (float)cot__remainder((double)x, (double)y); }
