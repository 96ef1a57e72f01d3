/* trig_far.c: large arguments of sine, cosine and tangent, reduced to an eighth of a turn (Payne
 * and Hanek).
 *
 * x = m 2^e, and x 2/pi counts modulo 4 only. Bits of 2/pi that give whole multiples of 4 are left
 * out, then 192 bits are enough: the product has an error below 2^-137 of a quarter turn, and no
 * double is nearer to a multiple of pi/2 than 2^-62 of one. */
#include "base/math/elementary.h"
#include "base/math/special_poly.h"

#include <stdint.h>

/* 2/pi = 0.…, after 64 zeros. */
static const uint64_t two_over_pi[20] = {
    0,
    UINT64_C(0xa2f9836e4e441529), UINT64_C(0xfc2757d1f534ddc0), UINT64_C(0xdb6295993c439041),
    UINT64_C(0xfe5163abdebbc561), UINT64_C(0xb7246e3a424dd2e0), UINT64_C(0x06492eea09d1921c),
    UINT64_C(0xfe1deb1cb129a73e), UINT64_C(0xe88235f52ebb4484), UINT64_C(0xe99c7026b45f7e41),
    UINT64_C(0x3991d639835339f4), UINT64_C(0x9c845f8bbdf9283b), UINT64_C(0x1ff897ffde05980f),
    UINT64_C(0xef2f118b5a0a6d1f), UINT64_C(0x6d367ecf27cb09b7), UINT64_C(0x4f463f669e5fea2d),
    UINT64_C(0x7527bac7ebe5f17b), UINT64_C(0x3d0739f78a5292ea), UINT64_C(0x6bfb5fb11f8d5d08),
    UINT64_C(0x56033046fc7b6bab)};

#define PIO2_HI 0x1.921fb54442d18p+0
#define PIO2_LO 0x1.1a62633145c07p-54

/* 64 bits from bit `at` on. */
static uint64_t window(int at) {
    const uint64_t *w = &two_over_pi[at / 64];
    int             shift = at % 64;
    return shift == 0 ? w[0] : w[0] << shift | w[1] >> (64 - shift);
}

static uint64_t high(uint64_t a, uint64_t b) {
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t mid = ah * bl + (al * bl >> 32), rest = al * bh + (uint32_t)mid;
    return ah * bh + (mid >> 32) + (rest >> 32);
}

/* 2^-n for 0 <= n < 1022 */
static double power_below(int n) { return ((union { uint64_t u; double d; }){.u = (uint64_t)(1023 - n) << 52}).d; }

/* The fraction p[0] p[1] p[2] of a quarter turn, less than a half, times pi/2. */
static void to_radians(const uint64_t p[3], cot__turns *t) {
    int zeros = p[0] ? __builtin_clzll(p[0]) : 64 + __builtin_clzll(p[1] | 1);
    int word = zeros / 64, shift = zeros % 64;
    uint64_t a = p[word], b = p[word + 1], c = word == 0 ? p[2] : 0;
    if (shift) a = a << shift | b >> (64 - shift), b = b << shift | c >> (64 - shift);
    /* 53 bits, and 64 more */
    double hi = (double)(a >> 11) * power_below(53 + zeros);
    double lo = (double)(a << 53 | b >> 11) * power_below(117 + zeros);
    t->r = hi * PIO2_HI;
    t->lo = cot__product_error(hi, PIO2_HI, t->r) + (hi * PIO2_LO + lo * PIO2_HI);
}

cot__turns cot__trig_reduce(double x) {
    uint64_t bits = ((union { double d; uint64_t u; }){.d = x}).u;
    uint64_t m = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    int      at = (int)(bits >> 52 & 0x7ff) - 1075 - 2 + 64;
    uint64_t w[3] = {window(at), window(at + 64), window(at + 128)};
    /* m w modulo 2^192: two bits of quarters, then the fraction */
    uint64_t p[3] = {m * w[0], m * w[1], m * w[2]}, carry = high(m, w[2]);
    p[1] += carry;
    p[0] += high(m, w[1]) + (p[1] < carry);
    cot__turns t = {.quarters = (unsigned)(p[0] >> 62)};
    p[0] = p[0] << 2 | p[1] >> 62, p[1] = p[1] << 2 | p[2] >> 62, p[2] <<= 2;
    int above = p[0] >> 63 != 0; /* more than a half: the next quarter less the rest */
    if (above) {
        p[2] = 0 - p[2], p[1] = ~p[1] + (p[2] == 0), p[0] = ~p[0] + ((p[1] | p[2]) == 0);
        t.quarters++;
    }
    to_radians(p, &t);
    if (above) t.r = -t.r, t.lo = -t.lo;
    if (x < 0) t.r = -t.r, t.lo = -t.lo, t.quarters = 0 - t.quarters;
    return t;
}
