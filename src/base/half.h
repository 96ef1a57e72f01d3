/* Conversions between float, double and the two 16-bit formats, on bit patterns:
 * f16 is IEEE binary16, bf16 the upper half of a float.
 *
 * Narrowing rounds once, to nearest even, with subnormals, and overflows to
 * infinity.  A NaN stays a NaN: it is made quiet, which also keeps one whose
 * payload lies in the dropped bits from turning into an infinity, and the payload
 * bits that fit are kept.  Widening is exact; from f16 a NaN is made quiet, as
 * the processors' own instructions do, from bf16 it is the plain shift. */
#ifndef COT_BASE_HALF_H
#define COT_BASE_HALF_H

#include <stdint.h>

static inline uint32_t cot__bits_from_f32(float x) {
    union { float x; uint32_t u; } bits = {x};
    return bits.u;
}

static inline float cot__f32_from_bits(uint32_t u) {
    union { uint32_t u; float x; } bits = {u};
    return bits.x;
}

static inline float cot__f32_from_bf16(uint16_t h) { return cot__f32_from_bits((uint32_t)h << 16); }

static inline uint16_t cot__bf16_from_f32(float x) {
    uint32_t u = cot__bits_from_f32(x);
    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(u >> 16 | 0x40);
    /* Half an ulp less one, plus one if the kept part is odd.  A carry into the
     * exponent is right as it is, up to and including infinity. */
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float cot__f32_from_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, a = h & 0x7fff;
    if (a >= 0x7c00) /* infinity or NaN */
        return cot__f32_from_bits(sign | 0x7f800000 | (a & 0x3ff) << 13 | (a > 0x7c00 ? 0x400000u : 0));
    if (a >= 0x400)
        /* 112 = 127 - 15, the biases */
        return cot__f32_from_bits(sign | ((a << 13) + (112u << 23)));
    float m = (float)a * 0x1p-24f; /* subnormal: exact, and a normal float */
    return cot__f32_from_bits(sign | cot__bits_from_f32(m));
}

static inline uint16_t cot__f16_from_f32(float x) {
    uint32_t u = cot__bits_from_f32(x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    if (a > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x1ff));
    if (a >= 0x47800000) /* 2^16: beyond the range without further ado */
        return (uint16_t)(sign | 0x7c00);
    if (a >= 0x38800000) { /* 2^-14: normal.  65520 and up carry into infinity */
        a -= 112u << 23;
        return (uint16_t)(sign | (a + 0xfff + (a >> 13 & 1)) >> 13);
    }
    if (a < 0x33000000) /* 2^-25, half the least subnormal; itself it ties to 0 below */
        return (uint16_t)sign;
    /* A subnormal counts units of 2^-24: drop 126 - exponent bits of the significand. */
    uint32_t drop = 126 - (a >> 23), m = (a & 0x7fffff) | 0x800000;
    uint32_t q = m >> drop, rest = m & ((1u << drop) - 1), half = 1u << (drop - 1);
    return (uint16_t)(sign | (q + (rest > half || (rest == half && (q & 1)))));
}

/* Double to float rounded to odd: toward zero, and the last bit set if anything was
 * lost.  That bit can only break a later tie the way the lost part would have, so
 * that rounding on to 16 bits rounds as if once. */
static inline float cot__f32_odd_from_f64(double x) {
    float f = (float)x;
    if ((double)f == x || x != x)
        return f;
    uint32_t u = cot__bits_from_f32(f);
    double ax = x < 0 ? -x : x, af = f < 0 ? -(double)f : (double)f;
    if (af > ax)
        u -= 1; /* from infinity too, to the largest float, which is odd */
    return cot__f32_from_bits(u | 1);
}

static inline uint16_t cot__f16_from_f64(double x) { return cot__f16_from_f32(cot__f32_odd_from_f64(x)); }
static inline uint16_t cot__bf16_from_f64(double x) { return cot__bf16_from_f32(cot__f32_odd_from_f64(x)); }

#endif
