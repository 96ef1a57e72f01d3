/* random.c: arrays of random numbers. backend/backend.h says what each element is. */
#include "backend/cpu/strip.h"
#include "base/parallel.h"
#include "base/math/drawn.h"
#include "base/half.h"

typedef struct draw {
    cot__draw_kind kind;
    cot_key        key;
    cot__view      z;
    int64_t        n, parts;
    double         low, high, top; /* top: the largest number below high */
} draw;

/* v[i] for elements first … first + n, n <= COT__BLOCK */
static void draw_block(const draw *d, int64_t first, int n, double *v) {
    uint32_t       a[COT__BLOCK], b[COT__BLOCK];
    bool           fine = d->z.dtype == COT_F64 || d->kind == COT__KEEP;
    const uint64_t m = UINT64_C(1) << (fine ? 53 : 24);
    uint64_t       k[COT__BLOCK];
    cot__random_words(d->key, (uint64_t)first, n, a, b);
    if (fine)
        for (int i = 0; i < n; i++) k[i] = cot__drawn_fine(a[i], b[i]);
    else
        for (int i = 0; i < n; i++) k[i] = cot__drawn_coarse(a[i]);
    double step = 1 / (double)m, low = d->low, high = d->high;
    switch (d->kind) {
    case COT__UNIFORM:
        for (int i = 0; i < n; i++) v[i] = cot__drawn_uniform(k[i], step, low, high, d->top);
        break;
    case COT__NORMAL:
        for (int i = 0; i < n; i++) v[i] = cot__drawn_normal(k[i], m);
        break;
    case COT__GUMBEL:
        for (int i = 0; i < n; i++) v[i] = cot__drawn_gumbel(k[i], m);
        break;
    case COT__KEEP:
        for (int i = 0; i < n; i++) v[i] = cot__drawn_keep(k[i], step, low, high);
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

/* Fisher and Yates: from the end, each place changes with one of those up to it. Of 2^64 equally
 * likely words a place gets its share up to one: a bias below n / 2^64. */
void cot__permutation(cot_key key, const cot__view *to) {
    uint32_t a[COT__BLOCK], b[COT__BLOCK];
    int64_t *z = to->data, n = to->shape[0];
    for (int64_t i = 0; i < n; i++) z[i] = i;
    for (int64_t i = n - 1, k = COT__BLOCK; i > 0; i--, k++) {
        if (k == COT__BLOCK) cot__random_words(key, (uint64_t)(n - 1 - i), COT__BLOCK, a, b), k = 0;
        int64_t j = (int64_t)cot__drawn_share((uint64_t)a[k] << 32 | b[k], (uint64_t)i + 1), kept = z[i];
        z[i] = z[j];
        z[j] = kept;
    }
}
