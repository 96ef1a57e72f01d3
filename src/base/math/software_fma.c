/* software_fma.c: fma by integers, for factors near the ends of the range. See software_fma.h. */
#include "base/math/software_fma.h"

#include <math.h>

/* 128 bits, times a power of two and a sign elsewhere. */
typedef struct wide { uint64_t hi, lo; } wide;

static uint64_t bits_of(double x) { return ((union { double d; uint64_t u; }){.d = x}).u; }
static double   from_bits(uint64_t u) { return ((union { uint64_t u; double d; }){.u = u}).d; }

static wide left(wide x, int n) { /* 0 <= n < 128 */
    if (n >= 64) return (wide){x.lo << (n - 64), 0};
    return n == 0 ? x : (wide){x.hi << n | x.lo >> (64 - n), x.lo << n};
}

/* What falls off on the right is remembered in the last bit. */
static wide right_sticky(wide x, int n) {
    if (n == 0) return x;
    if (n >= 128) return (wide){0, (x.hi | x.lo) != 0};
    wide kept = n >= 64 ? (wide){0, x.hi >> (n - 64)} : (wide){x.hi >> n, x.hi << (64 - n) | x.lo >> n};
    wide lost = left(x, 128 - n);
    kept.lo |= (lost.hi | lost.lo) != 0;
    return kept;
}

static int leading_zeros(wide x) { return x.hi ? __builtin_clzll(x.hi) : 64 + __builtin_clzll(x.lo); }

static wide times(uint64_t a, uint64_t b) {
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t mid = ah * bl + (al * bl >> 32), rest = al * bh + (uint32_t)mid;
    return (wide){ah * bh + (mid >> 32) + (rest >> 32), a * b};
}

/* x = m 2^e, x finite */
typedef struct number { uint64_t m; int e; } number;
static number number_of(double x) {
    uint64_t bits = bits_of(x), m = bits & ((UINT64_C(1) << 52) - 1);
    int      e = (int)(bits >> 52 & 0x7ff);
    return e == 0 ? (number){m, -1074} : (number){m | UINT64_C(1) << 52, e - 1075};
}

/* x 2^e to the nearest double, ties to even; x is not 0, its last bit may be sticky, and there are
 * enough others below the 53 that count. */
static double rounded(wide x, int e) {
    int zeros = leading_zeros(x), drop = 128 - 53 - zeros;
    if (drop < -1074 - e) drop = -1074 - e; /* subnormal: a fixed last place */
    uint64_t kept;
    if (drop <= 0) kept = left(x, -drop).lo;
    else {
        /* two bits more, the last one sticky */
        wide     two = right_sticky(x, drop >= 2 ? drop - 2 : 0);
        uint64_t m = drop >= 2 ? two.lo : two.lo << 1;
        kept = (m >> 2) + ((m & 3) > 2 || (m & 7) == 6);
    }
    int scale = e + drop; /* at least -1074 */
    if (scale > 1023) scale = 1023;
    double power = scale < -1022 ? from_bits(UINT64_C(1) << (scale + 1074)) : from_bits((uint64_t)(scale + 1023) << 52);
    return (double)kept * power;
}

/* Both moved up to the same leading bit, of which there are two to spare; then the smaller one down
 * to where it belongs. */
static double sum(wide x, int ex, int x_negative, wide y, int ey, int y_negative) {
    int zx = leading_zeros(x) - 2, zy = leading_zeros(y) - 2;
    x = left(x, zx), ex -= zx;
    y = left(y, zy), ey -= zy;
    if (ex < ey || (ex == ey && (x.hi < y.hi || (x.hi == y.hi && x.lo < y.lo)))) {
        wide w = x;
        int  e = ex, n = x_negative;
        x = y, ex = ey, x_negative = y_negative;
        y = w, ey = e, y_negative = n;
    }
    y = right_sticky(y, ex - ey);
    if (x_negative != y_negative) y = (wide){~y.hi + (y.lo == 0), 0 - y.lo};
    wide   s = {x.hi + y.hi, x.lo + y.lo};
    s.hi += s.lo < x.lo;
    if ((s.hi | s.lo) == 0) return 0.0;
    double r = rounded(s, ex);
    return x_negative ? -r : r;
}

double cot__fma_by_integers(double a, double b, double c) {
    /* exact, or not finite */
    if (a == 0 || b == 0 || !isfinite(a) || !isfinite(b)) return a * b + c;
    if (!isfinite(c)) return c;
    number p = number_of(a), q = number_of(b), r = number_of(c);
    int    negative = (int)((bits_of(a) ^ bits_of(b)) >> 63);
    wide   product = times(p.m, q.m);
    if (c == 0) return negative ? -rounded(product, p.e + q.e) : rounded(product, p.e + q.e);
    return sum(product, p.e + q.e, negative, (wide){0, r.m}, r.e, (int)(bits_of(c) >> 63));
}

double cot__fma_called(double a, double b, double c) { return cot__software_fma(a, b, c); }
float  cot__fmaf_called(float a, float b, float c) { return cot__software_fmaf(a, b, c); }
