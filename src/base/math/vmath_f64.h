/* vmath_f64.h: vmath.h for double, names ending in _vf64, and the functions that exist in double
 * only. */
#ifndef COT_VMATH_F64_H
#define COT_VMATH_F64_H

#include "base/math/software_fma.h"
#include "base/math/vmath_horner.h"
#include "base/math/vmath_polynomials.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define T double
#define U uint64_t
#define M(name) name##_vf64
#define FMA COT__FMA
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
#define TWO_DOWN 0x1p-512
#define LEAST_NORMAL 0x1p-1022
#define SQRT_HALF_BITS UINT64_C(0x3fe6a09e667f3bcd)
#define TINY 0x1p-54
#define EXP_LEAST -800.0
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
#include "base/math/vmath.h"

/* ---- inverse functions ----------------------------------------------------------------------- */

/* atan(num/den) for num >= 0, den >= 0, or pi less that. With t = least/most, or (least -
 * most)/(least + most) where that is more than tan(pi/8), it is ±atan(t) and a multiple of pi/4.
 * `fine` takes back what t has lost to rounding. */
VM double atan_ratio_vf64(double num, double den, bool back, bool fine) {
    bool   swap = num > den;
    double most = swap ? num : den, least = swap ? den : num;
    bool   mid = least > 0.41421356237309505 * most;
    double up = mid ? least - most : least, down = mid ? least + most : most, t = up / down, dt = 0;
    if (fine) {
        double d_up = mid ? least - (most + up) : 0, d_down = mid ? (most - down) + least : 0;
        dt = (FMA(-t, down, up) + (d_up - t * d_down)) / down;
        dt = FMA(-t * t, dt, dt);
    }
    double z = t * t, r = FMA(t * z, HORNER(z, POLY(POLY_ATAN)), dt);
    double base = mid ? 0.5 * PIO2_1 : 0, rest = mid ? 0.5 * PIO2_2 : 0;
    base = swap ? PIO2_1 - base : base, rest = swap ? PIO2_2 - rest : rest;
    t = swap ? -t : t, r = swap ? -r : r;
    double whole = 2 * PIO2_1 - base, whole_rest = ((2 * PIO2_1 - whole) - base) + (2 * PIO2_2 - rest);
    base = back ? whole : base, rest = back ? whole_rest : rest;
    t = back ? -t : t, r = back ? -r : r;
    return base + (t + (r + rest));
}

VM double atan_vf64(double x) {
    double a = FABS(x), r = atan_ratio_vf64(a, 1, false, false);
    return COPYSIGN(a < TINY ? a : r, x);
}

/* Scaled, so that sums do not overflow and remainders do not vanish. Of two infinities or zeros the
 * quotient is 1 or 0, as Annex F has it. */
VM double atan2_parts_vf64(double y, double x, bool fine) {
    double a = FABS(y), b = FABS(x), most = a > b ? a : b;
    double scale = most > 0x1p1000 ? 0x1p-4 : most < 0x1p-400 ? 0x1p600 : 1;
    bool   far = most == INFINITY;
    double num = far ? (a == INFINITY ? 1 : 0 * a) : a * scale, den = far ? (b == INFINITY ? 1 : 0 * b) : b * scale;
    return COPYSIGN(atan_ratio_vf64(num, most == 0 ? 1 : den, COPYSIGN(1, x) < 0, fine), y);
}
/* for float */
VM double atan2_rough_vf64(double y, double x) { return atan2_parts_vf64(y, x, false); }
VM double atan2_vf64(double y, double x) { return atan2_parts_vf64(y, x, true); }

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

/* log(a + sqrt(a^2 + 1)) = log1p(a + a^2/(1 + sqrt(a^2 + 1))); far out log(a) + log(2), by the same
 * logarithm. */
VM double asinh_vf64(double x) {
    double a = FABS(x), c = a > 0x1p60 ? 0x1p60 : a, z = c * c;
    double d = 1 + SQRT(z + 1), q = z / d, t = c + q;
    double r = log1p_sum_vf64(a > 0x1p60 ? a : t, a > 0x1p60 ? 0 : (c - t) + q) + (a > 0x1p60 ? LN2_HI : 0);
    return COPYSIGN(a < 0x1p-28 ? a : r, x);
}

/* log(x + sqrt(x^2 - 1)) = log1p(t + sqrt(t^2 + 2t)), t = x - 1 */
VM double acosh_vf64(double x) {
    double t = (x > 0x1p60 ? 0x1p60 : x) - 1, p = FMA(t, t, 2 * t), q = SQRT(p), u = t + q;
    double dq = (FMA(-q, q, p) + FMA(t, t, 2 * t - p)) / (q > 0 ? 2 * q : 1);
    double r = log1p_sum_vf64(x > 0x1p60 ? x : u, x > 0x1p60 ? 0 : ((q - u) + t) + dq) + (x > 0x1p60 ? LN2_HI : 0);
    return x < 1 ? NAN : r;
}

VM double atanh_vf64(double x) {
    double a = FABS(x), t = 2 * a, d = 1 - a;
    double q = t * a / d, u = t + q;
    double r = 0.5 * log1p_sum_vf64(u, (t > q ? (t - u) + q : (q - u) + t));
    r = a < 1 ? r : a == 1 ? INFINITY : NAN;
    return COPYSIGN(a < 0x1p-28 ? a : r, x);
}

/* ---- others ---------------------------------------------------------------------------------- */

VM double hypot_vf64(double x, double y) {
    double a = FABS(x), b = FABS(y), most = a > b ? a : b, least = a > b ? b : a;
    double scale = most > 0x1p500    ? 0x1p-600
                   : most < 0x1p-400 ? 0x1p600
                                     : 1,
           back  = most > 0x1p500    ? 0x1p600
                   : most < 0x1p-400 ? 0x1p-600
                                     : 1;
    double m = most * scale, l = least * scale;
    double h = l * l, s = FMA(m, m, h), r = SQRT(s) * back;
    return ((a == INFINITY) | (b == INFINITY)) ? INFINITY : r; /* also beside NaN */
}

/* sin/cos as in sin_of; `fine` with what the last addition of each lost. */
VM double tan_of_vf64(reduced_vf64 v, bool fine) {
    double       r = v.r, z = r * r, h = 0.5 * z, one = 1 - h;
    double s_rest = FMA(z * r, HORNER(z, POLY(POLY_SIN)), FMA(-h, v.lo, v.lo)), s = r + s_rest, ds = (r - s) + s_rest;
    double c_rest = ((1 - one) - h) + FMA(z * z, HORNER(z, POLY(POLY_COS)), -r * v.lo), c = one + c_rest,
           dc        = (one - c) + c_rest;
    bool         odd = (to_bits_vf64(v.shifted) & 1) != 0;
    double       num = odd ? -c : s, dnum = odd ? -dc : ds, den = odd ? s : c, dden = odd ? ds : dc;
    double       inverse = 1 / den, q = num * inverse;
    return fine ? FMA(FMA(-q, den, num) + (dnum - q * dden), inverse, q) : q;
}
VM double tan_parts_vf64(double x, bool fine) {
    double q = tan_of_vf64(trig_reduce_vf64(x), fine);
    q = FABS(x) < TINY ? x : q;
    return trig_is_near_vf64(x) ? q : NAN;
}
VM double tan_rough_vf64(double x) { return tan_parts_vf64(x, false); }
VM double tan_vf64(double x) { return tan_parts_vf64(x, true); }

/* The cube root of x = 2^(3k+j) (1 + f), |j| <= 1: a polynomial and a step of Halley's, to
 * 1e-15. */
typedef struct cube { double m, root, scale; } cube;
VM cube cbrt_parts_vf64(double a) {
    parts_vf64 v = log_parts_vf64(a);
    double     shifted = FMA(v.k, 0x1.5555555555555p-2, ROUNDER), j = FMA(-3, shifted - ROUNDER, v.k);
    double     m = (1 + v.f) * (j > 0 ? 2 : j < 0 ? 0.5 : 1);
    double     y     = HORNER(v.f, POLY_CBRT_mid) * (j > 0   ? 0x1.428a2f98d728bp+0
                                                     : j < 0 ? 0x1.965fea53d6e3dp-1
                                                             : 1),
           c         = y * y * y;
    double     scale = from_bits_vf64((to_bits_vf64(shifted) - to_bits_vf64(ROUNDER) + BIAS) << MANTISSA);
    return (cube){m, y * FMA(2, m, c) / FMA(2, c, m), scale};
}
VM double cbrt_rough_vf64(double x) {
    double a = FABS(x);
    cube   v = cbrt_parts_vf64(a);
    return ((a > 0) & (a < INFINITY)) ? COPYSIGN(v.root * v.scale, x) : x;
}
VM double cbrt_vf64(double x) {
    double a = FABS(x);
    cube   v = cbrt_parts_vf64(a);
    double s = v.root * v.root, ds = FMA(v.root, v.root, -s), c = s * v.root, dc = FMA(s, v.root, -c) + ds * v.root;
    /* Newton's step, the cube in twice the precision */
    double r = v.root - ((c - v.m) + dc) / (3 * s);
    return ((a > 0) & (a < INFINITY)) ? COPYSIGN(r * v.scale, x) : x;
}

#include "base/math/vmath_erf_f64.h"
#include "base/math/vmath_pow.h"

#include "base/math/vmath_undef.h"
#endif
