/* vmath_f64.h: vmath.h for double, names ending in _vf64, and the functions that exist in double only. */
#ifndef COT_VMATH_F64_H
#define COT_VMATH_F64_H

#include "base/vmath_horner.h"
#include "base/vmath_polynomials.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define T double
#define U uint64_t
#define M(name) name##_vf64
#define FMA __builtin_fma
#define SQRT __builtin_sqrt
#define FABS __builtin_fabs
#define COPYSIGN __builtin_copysign
#define POLY(name) name##_f64
#define ROUNDER 0x1.8p52
#define INTEGER 0x1p52
#define MANTISSA 52
#define BIAS 1023
#define P_DIGITS 54
#define TWO_P 0x1p54
#define LEAST_NORMAL 0x1p-1022
#define SQRT_HALF_BITS UINT64_C(0x3fe6a09e667f3bcd)
#define TINY 0x1p-54
#define EXP_LEAST -750.0
#define EXP_MOST 710.0
#define EXPM1_LEAST -40.0
#define TANH_MOST 20.0
#define TRIG_MOST 0x1p20
#define LN2_HI 0x1.62e42fefa39efp-1
#define LN2_LO 0x1.abc9e3b39803fp-56
#define LOG2E_HI 0x1.71547652b82fep+0
#define LOG2E_LO 0x1.777d0ffda0d24p-56
#define LOG10E_HI 0x1.bcb7b1526e50ep-2
#define LOG10E_LO 0x1.95355baaafad3p-57
#define LOG10_2_HI 0x1.34413509f79ffp-2
#define LOG10_2_LO -0x1.9dc1da994fd21p-59
#define PIO2_1 0x1.921fb54442d18p+0
#define PIO2_2 0x1.1a62633145c07p-54
#define PIO2_3 -0x1.f1976b7ed8fbcp-110
#include "base/vmath.h"

/* ---- inverse functions ----------------------------------------------------------------------------------------------------- */

/* atan(num/den) for num >= 0, den >= 0: of t = num/den, (num - den)/(num + den) or -den/num, whichever is within tan(pi/8). */
VM double atan_ratio_vf64(double num, double den) {
    bool   far = num > 2.4142135623730950 * den, mid = num > 0.41421356237309505 * den;
    double up = far ? -den : mid ? num - den : num, down = far ? num : mid ? num + den : den;
    double base = far ? PIO2_1 : mid ? 0.5 * PIO2_1 : 0, rest = far ? PIO2_2 : mid ? 0.5 * PIO2_2 : 0;
    double t = up / down, z = t * t;
    return base + (t + FMA(t * z, HORNER(z, POLY(POLY_ATAN)), rest));
}

VM double atan_vf64(double x) {
    double a = FABS(x), r = atan_ratio_vf64(a, 1);
    return COPYSIGN(a < TINY ? a : r, x);
}

/* In double good to about 3 ulp: used for float. */
VM double atan2_vf64(double y, double x) {
    double a = FABS(y), b = FABS(x), r = atan_ratio_vf64(a, b);
    r = x < 0 ? (2 * PIO2_1 - r) + 2 * PIO2_2 : r;
    return COPYSIGN(r, y); /* 0/0, inf/inf: NaN, and libm decides */
}

/* asin(s) = s + s z P(z) for z = s^2 <= 1/4; beyond, asin(a) = pi/2 - 2 asin(sqrt((1 - a)/2)). */
typedef struct asin_parts { double s, p; bool far; } asin_parts;
VM asin_parts asin_parts_vf64(double a) {
    bool   far = a > 0.5;
    double z = far ? FMA(-0.5, a, 0.5) : a * a, s = far ? SQRT(z) : a;
    return (asin_parts){s, z * HORNER(z, POLY(POLY_ASIN)), far};
}

VM double asin_vf64(double x) {
    double     a = FABS(x);
    asin_parts v = asin_parts_vf64(a);
    double     hi = PIO2_1 - 2 * v.s, lo = (PIO2_1 - hi) - 2 * v.s;
    double     near = FMA(v.s, v.p, v.s), far = hi + FMA(-2 * v.s, v.p, lo + PIO2_2), r = v.far ? far : near;
    return COPYSIGN(a < TINY ? a : r, x);
}

VM double acos_vf64(double x) {
    asin_parts v = asin_parts_vf64(FABS(x));
    double     w = FMA(v.s, v.p, v.s); /* asin(s) */
    double     near = PIO2_1 - (x - FMA(-COPYSIGN(v.s, x), v.p, PIO2_2));
    double     left = 2 * (PIO2_1 - (w - PIO2_2)), right = 2 * w;
    return !v.far ? near : x < 0 ? left : right;
}

/* log(a + sqrt(a^2 + 1)) = log1p(a + a^2/(1 + sqrt(a^2 + 1))) */
VM double asinh_vf64(double x) {
    double a = FABS(x), c = a > 0x1p500 ? 0x1p500 : a, z = c * c;
    double d = 1 + SQRT(z + 1), q = z / d;
    double t = c + q, far = log_vf64(a) + LN2_HI;
    double r = a > 0x1p28 ? far : log1p_sum_vf64(t, (c - t) + q);
    return COPYSIGN(a < 0x1p-28 ? a : r, x);
}

VM double atanh_vf64(double x) {
    double a = FABS(x), t = 2 * a, d = 1 - a;
    double q = t * a / d, u = t + q;
    double r = 0.5 * log1p_sum_vf64(u, (t > q ? (t - u) + q : (q - u) + t));
    r = a < 1 ? r : a == 1 ? INFINITY : NAN;
    return COPYSIGN(a < 0x1p-28 ? a : r, x);
}

/* ---- error functions ------------------------------------------------------------------------------------------------------- */

/* erfc(a) for a >= 1: e^(-a^2) P(t)/(a + 4), t = (a - 4)/(a + 4). To 3 ulp, so it serves erf alone: libm's erfc is as fast. */
VM double erfc_far_vf64(double a) {
    double c = a > 28 ? 28 : a;
    double s = c * c, ds = FMA(c, c, -s);
    double d = c + 4, u = 1 / d, du = u * (FMA(-u, d, 1) - u * (c - (d - 4))); /* u + du = 1/(a + 4) */
    double t = FMA(-8, u, 1) - 8 * du, p = HORNER_CHAIN(t, POLY(POLY_ERFCX)); /* terms cancel: one chain loses less */
    double q = p * u, dq = FMA(p, u, -q) + p * du;
    double e = exp_sum_vf64(-s, -ds);
    return FMA(e, q, e * dq);
}

VM double erf_vf64(double x) {
    double a = FABS(x), near = FMA(a, HORNER(a * a, POLY(POLY_ERF)), a), far = 1 - erfc_far_vf64(a);
    return COPYSIGN(a < 1 ? near : far, x);
}

/* ---- activations ----------------------------------------------------------------------------------------------------------- */

VM double mish_vf64(double x) {
    double c = x > 40 ? 40 : x, e = exp_vf64(c), m = e * (e + 2);
    double r = x * (m / (m + 2));
    r = x > 40 ? x : r;
    return x < -700 ? (x < -800 ? -0.0 : NAN) : r; /* in between e^x goes subnormal before x multiplies it */
}

/* x times a logistic, its argument in twice the precision: see special_erf.c. */
VM double gelu_tanh_vf64(double x) {
    const double c_hi = 0x1.9884533d43651p+0, c_lo = -0x1.cbc0d30ebfd15p-54, d_hi = 0x1.2444f2a4d8b4bp-4, d_lo = -0x1.6c843a29d1c70p-61;
    double       y = x > 40 ? 40 : x < -40 ? -40 : x;
    double       s = y * y, ds = FMA(y, y, -s);
    double       t = d_hi * s, dt = FMA(d_hi, s, -t) + FMA(d_hi, ds, d_lo * s);
    double       c = c_hi + t, b = c - c_hi, dc = ((c_hi - (c - b)) + (t - b)) + (dt + c_lo);
    double       v = y * c, dv = FMA(y, c, -v) + y * dc;
    double       e = exp_sum_vf64(v < 0 ? v : -v, v < 0 ? dv : -dv);
    double       r = (v < 0 ? y * e : y) / (1 + e);
    r = x > 40 ? x : r;
    return v < -700 ? (x < -40 ? -0.0 : NAN) : r;
}

/* ---- others ---------------------------------------------------------------------------------------------------------------- */

VM double hypot_vf64(double x, double y) {
    double a = FABS(x), b = FABS(y), most = a > b ? a : b, least = a > b ? b : a;
    double scale = most > 0x1p500 ? 0x1p-600 : most < 0x1p-400 ? 0x1p600 : 1, back = most > 0x1p500 ? 0x1p600 : most < 0x1p-400 ? 0x1p-600 : 1;
    double m = most * scale, l = least * scale;
    double h = l * l, s = FMA(m, m, h), r = SQRT(s) * back;
    return most == INFINITY || a != a || b != b ? NAN : r;
}

VM double tan_rough_vf64(double x) { return sin_vf64(x) / cos_vf64(x); }

#include "base/vmath_undef.h"
#endif
