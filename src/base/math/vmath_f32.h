/* vmath_f32.h: vmath.h for float, names ending in _vf32. What is rare, or loses too much in float,
 * is done in double. */
#ifndef COT_VMATH_F32_H
#define COT_VMATH_F32_H

#include "base/math/vmath_f64.h"

#define T float
#define U uint32_t
#define M(name) name##_vf32
#define FMA COT__FMAF
#define SQRT __builtin_sqrtf
#define FABS __builtin_fabsf
#define COPYSIGN __builtin_copysignf
#define POLY(name) name##_f32
#define ROUNDER 0x1.8p23f
#define INTEGER 0x1p23f
#define MANTISSA 23
#define BIAS 127
#define P_DIGITS 25
#define TWO_P 0x1p25f
#define TWO_DOWN 0x1p-64f
#define LEAST_NORMAL 0x1p-126f
#define SQRT_HALF_BITS UINT32_C(0x3f3504f3)
#define TINY 0x1p-25f
#define EXP_LEAST -106.0f
#define EXP_MOST 88.8f
#define EXPM1_LEAST -20.0f
#define TANH_MOST 10.0f
#define TRIG_MOST 0x1p16f
#define LN2_HI 0x1.62e43p-1f
#define LN2_LO -0x1.05c61p-29f
#define LOG2E_HI 0x1.715476p+0f
#define LOG2E_LO 0x1.4ae0cp-26f
#define LOG10E_HI 0x1.bcb7b2p-2f
#define LOG10E_LO -0x1.5b235ep-27f
#define LOG10_2_HI 0x1.344136p-2f
#define LOG10_2_LO -0x1.ec10cp-27f
#define PIO2_1 0x1.921fb6p+0f
#define PIO2_2 -0x1.777a5cp-25f
#define PIO2_3 -0x1.ee59dap-50f
#define SINGLE
#include "base/math/vmath.h"

/* Beyond 0.9 as 1 - e^(a P(a)). */
VM float erf_vf32(float x) {
    float a = FABS(x), c = a > 4 ? 4 : a;
    float near = FMA(a, HORNER(a * a, POLY(POLY_ERF)), a), far = 1 - exp_near_vf32(c * HORNER(c, POLY(POLY_LOG_ERFC)));
    return COPYSIGN(a < 0.9f ? near : far, x);
}

#define WIDE(name, from)                                                                                               \
    VM float name##_vf32(float x) { return (float)from##_vf64((double)x); }
#define WIDE2(name, from)                                                                                              \
    VM float name##_vf32(float x, float y) { return (float)from##_vf64((double)x, (double)y); }
WIDE(tan, tan_rough)
WIDE(atan, atan)
WIDE(asin, asin)
WIDE(acos, acos)
WIDE(asinh, asinh)
WIDE(atanh, atanh)
WIDE(acosh, acosh)
WIDE(cbrt, cbrt_rough)
WIDE2(atan2, atan2_rough)
WIDE2(pow, pow_rough)
#undef WIDE
#undef WIDE2

/* What follows wants 1e-9 of a double and gets by with shorter polynomials. */
VM double exp_mid(double x) {
    double c = between_vf64(-700, x, 700);
    double shifted = COT__FMA(c, 1.44269504088896340736, 0x1.8p52), n = shifted - 0x1.8p52;
    double r = COT__FMA(n, -0.69314718055994530942, c);
    double scale = from_bits_vf64((to_bits_vf64(shifted) - to_bits_vf64(0x1.8p52) + 1023) << 52);
#undef FMA
#define FMA COT__FMA
    return scale * (1 + FMA(r * r, HORNER(r, POLY_EXP_mid, 0.5), r));
}

VM double erfc_mid(double x) {
    double a = __builtin_fabs(x), c = a > 28 ? 28 : a;
    double u = 1 / (c + 4), t = FMA(-8, u, 1), far = exp_mid(-c * c) * (HORNER(t, POLY_ERFCX_mid) * u);
    double near = FMA(-x, HORNER(x * x, POLY_ERF_mid), 1 - x);
    return a < 1 ? near : x < 0 ? 2 - far : far;
}

VM float erfc_vf32(float x) { return (float)erfc_mid((double)x); }
VM float gelu_vf32(float x) {
    double v = (double)x, r = v * (0.5 * erfc_mid(v * -0.70710678118654752440));
    return (float)(x < -30 ? -0.0 : r);
}
VM float mish_vf32(float x) {
    double v = (double)x, e = exp_mid(v > 40 ? 40 : v), m = e * (e + 2), r = v * (m / (m + 2));
    return (float)(v > 40 ? v : v < -200 ? -0.0 : r);
}
VM float silu_vf32(float x) {
    double v = (double)x, r = v / (1 + exp_mid(-v));
    return (float)(x < -200 ? -0.0 : r);
}
VM float gelu_tanh_vf32(float x) {
    double v = (double)x, r = v / (1 + exp_mid(-v * FMA(0.071354816272600248, v * v, 1.5957691216057307117)));
    return (float)(x < -30 ? -0.0 : r);
}

VM float hypot_vf32(float x, float y) {
    double a = (double)x, b = (double)y;
    bool   far = (FABS(x) == INFINITY) | (FABS(y) == INFINITY); /* also beside NaN */
    return far ? (float)INFINITY : (float)__builtin_sqrt(a * a + b * b);
}

#include "base/math/vmath_undef.h"
#endif
