/* drawn.h: one random number from the bits that were drawn for it. backend/backend.h says what each
 * kind is; backend/cpu/random.c makes arrays of them, and exported C has the same text. */
#ifndef COT_DRAWN_H
#define COT_DRAWN_H

#include "base/math/special.h"
#include "base/random.h"

#include <math.h>
#include <stdint.h>

/* Of the two words of a counter: 53 bits for f64, 24 for narrower floats. Below, k is such a number
 * and m what it is less than. */
static inline uint64_t cot__drawn_fine(uint32_t a, uint32_t b) { return ((uint64_t)a << 32 | b) >> 11; }
static inline uint64_t cot__drawn_coarse(uint32_t a) { return a >> 8; }

/* top: the largest number below high */
static inline double cot__drawn_uniform(uint64_t k, double step, double low, double high, double top) {
    double length = high - low, u = (double)(int64_t)k * step;
    /* where the length overflowed, a mean of the ends */
    double w = isinf(length) ? low * (1 - u) + high * u : low + u * length;
    return w < top ? w : top;
}

/* 2v - 1 = (2k + 1 - m) / m is exact. */
static inline double cot__drawn_normal(uint64_t k, uint64_t m) {
    double x = (double)((int64_t)(2 * k + 1) - (int64_t)m) * (1 / (double)m);
    return 1.4142135623730950488 * cot__erfinv_by(cot__plain_log, x);
}

/* -log((2k + 1) / 2m), to a few ulp also where that is near 1: the distance from 1 is exact. */
static inline double cot__drawn_minus_log(uint64_t k, uint64_t m) {
    double step = 0.5 / (double)m, v = (double)(2 * k + 1) * step, rest = (double)(2 * (m - k) - 1) * step;
    if (rest > 0.25) return -cot__plain_log(v);
    /* -log(1 - rest) = 2 atanh(rest / (2 - rest)) */
    double s = rest / (2 - rest), q = s * s, sum = 0;
    for (int i = 19; i >= 1; i -= 2) sum = sum * q + 1.0 / i;
    return 2 * s * sum;
}

static inline double cot__drawn_gumbel(uint64_t k, uint64_t m) {
    return -cot__plain_log(cot__drawn_minus_log(k, m));
}

static inline double cot__drawn_keep(uint64_t k, double step, double rate, double kept) {
    return (double)(int64_t)k * step >= rate ? kept : 0;
}

/* The upper half of the product. */
static inline uint64_t cot__drawn_share(uint64_t x, uint64_t y) {
    uint64_t x0 = (uint32_t)x, x1 = x >> 32, y0 = (uint32_t)y, y1 = y >> 32;
    uint64_t middle = x1 * y0 + (x0 * y0 >> 32), carry = x0 * y1 + (uint32_t)middle;
    return x1 * y1 + (middle >> 32) + (carry >> 32);
}

#endif
