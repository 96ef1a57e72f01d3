/* random.c: arrays of random numbers. backend/backend.h says what each element is. */
#include "backend/cpu/strip.h"
#include "base/parallel.h"
#include "base/half.h"
#include "base/random.h"
#include "base/math/special.h"

typedef struct draw {
    cot__draw_kind kind;
    cot_key        key;
    cot__view      z;
    int64_t        n, parts;
    double         low, high, top; /* top: the largest number below high */
} draw;

static inline uint64_t bits_53(uint32_t a, uint32_t b) { return ((uint64_t)a << 32 | b) >> 11; }

/* -log((2k + 1) / 2m) for k < m, to a few ulp also where that is near 1: the distance from 1 is
 * exact. */
static double minus_log(uint64_t k, uint64_t m) {
    double step = 0.5 / (double)m, v = (double)(2 * k + 1) * step, rest = (double)(2 * (m - k) - 1) * step;
    if (rest > 0.25) return -cot__plain_log(v);
    /* -log(1 - rest) = 2 atanh(rest / (2 - rest)) */
    double s = rest / (2 - rest), q = s * s, sum = 0;
    for (int i = 19; i >= 1; i -= 2) sum = sum * q + 1.0 / i;
    return 2 * s * sum;
}

/* v[i] for elements first … first + n, n <= COT__BLOCK */
static void draw_block(const draw *d, int64_t first, int n, double *v) {
    uint32_t       a[COT__BLOCK], b[COT__BLOCK];
    bool           fine = d->z.dtype == COT_F64 || d->kind == COT__KEEP;
    const uint64_t m = UINT64_C(1) << (fine ? 53 : 24);
    uint64_t       k[COT__BLOCK];
    cot__random_words(d->key, (uint64_t)first, n, a, b);
    if (fine)
        for (int i = 0; i < n; i++) k[i] = bits_53(a[i], b[i]);
    else
        for (int i = 0; i < n; i++) k[i] = a[i] >> 8;
    double step = 1 / (double)m, low = d->low, high = d->high, length = high - low;
    /* the length overflowed: use a mean of the ends */
    bool   far = isinf(length);
    switch (d->kind) {
    case COT__UNIFORM:
        for (int i = 0; i < n; i++) {
            double u = (double)(int64_t)k[i] * step, w = far ? low * (1 - u) + high * u : low + u * length;
            v[i] = w < d->top ? w : d->top;
        }
        break;
    case COT__NORMAL: /* 2v - 1 = (2k + 1 - m) / m is exact */
        for (int i = 0; i < n; i++)
            v[i] = 1.4142135623730950488 *
                   cot__erfinv_by(cot__plain_log, (double)((int64_t)(2 * k[i] + 1) - (int64_t)m) * step);
        break;
    case COT__GUMBEL:
        for (int i = 0; i < n; i++) v[i] = -cot__plain_log(minus_log(k[i], m));
        break;
    case COT__KEEP:
        for (int i = 0; i < n; i++) v[i] = (double)(int64_t)k[i] * step >= low ? high : 0;
        break;
    }
}

static void draw_part(void *ctx, int64_t part) {
    const draw *d = ctx;
    int64_t     blocks = (d->n + COT__BLOCK - 1) / COT__BLOCK;
    int64_t     stop = cot__part_start(blocks, d->parts, part + 1) * COT__BLOCK;
    double      v[COT__BLOCK];
    if (stop > d->n) stop = d->n;
    for (int64_t i = cot__part_start(blocks, d->parts, part) * COT__BLOCK; i < stop; i += COT__BLOCK) {
        int len = stop - i < COT__BLOCK ? (int)(stop - i) : COT__BLOCK;
        draw_block(d, i, len, v);
        cot__strip(d->z.dtype, COT_F64)(cot__at(&d->z, i), 1, v, 1, len);
    }
}

/* The neighbour of a finite number of that dtype, toward -inf. */
static double below(double x, cot_dtype dtype) {
    if (dtype == COT_F64) return nextafter(x, -INFINITY);
    if (dtype == COT_F32) return (double)nextafterf((float)x, -INFINITY);
    uint16_t h = dtype == COT_BF16 ? cot__bf16_from_f64(x) : cot__f16_from_f64(x);
    h = x == 0 ? 0x8001 : (uint16_t)(x > 0 ? h - 1 : h + 1);
    return (double)(dtype == COT_BF16 ? cot__f32_from_bf16(h) : cot__f32_from_f16(h));
}

void cot__draw(cot__draw_kind kind, cot_key key, const cot__view *z, double low, double high) {
    draw d = {kind, key, *z,   cot__count(z->ndim, z->shape),
              1,    low, high, kind == COT__UNIFORM ? below(high, z->dtype) : 0};
    enum { COST = 64 }; /* additions that a number costs, about */
    d.parts = cot__parts((d.n + COT__BLOCK - 1) / COT__BLOCK, COST * COT__BLOCK, 256);
    cot__parallel(d.parts, draw_part, &d);
}

/* The upper half of the product. */
static uint64_t product_high(uint64_t x, uint64_t y) {
    uint64_t x0 = (uint32_t)x, x1 = x >> 32, y0 = (uint32_t)y, y1 = y >> 32;
    uint64_t middle = x1 * y0 + (x0 * y0 >> 32), carry = x0 * y1 + (uint32_t)middle;
    return x1 * y1 + (middle >> 32) + (carry >> 32);
}

/* Fisher and Yates: from the end, each place changes with one of those up to it. Of 2^64 equally
 * likely words a place gets its share up to one: a bias below n / 2^64. */
void cot__permutation(cot_key key, const cot__view *to) {
    uint32_t a[COT__BLOCK], b[COT__BLOCK];
    int64_t *z = to->data, n = to->shape[0];
    for (int64_t i = 0; i < n; i++) z[i] = i;
    for (int64_t i = n - 1, k = COT__BLOCK; i > 0; i--, k++) {
        if (k == COT__BLOCK) cot__random_words(key, (uint64_t)(n - 1 - i), COT__BLOCK, a, b), k = 0;
        int64_t j = (int64_t)product_high((uint64_t)a[k] << 32 | b[k], (uint64_t)i + 1), kept = z[i];
        z[i] = z[j];
        z[j] = kept;
    }
}
