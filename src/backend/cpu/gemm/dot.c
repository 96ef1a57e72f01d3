/* dot.c: products of two vectors: sums with the tree of reductions (reduce_template.h).
 *
 * x·y is the sum of the rounded products x[i] y[i], with that tree: 16 chains in leaves of
 * COT__BLOCK, leaves combined in pairs. So it runs along contiguous memory in vectors of any width,
 * needs no fused multiply-add, and has the bits of a sum over x * y, but for a sum of -0, which
 * becomes 0 as in every product. Where strides are not 1 a few leaves at a time are gathered. */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/leaves.h"

enum {
    LEVELS = 48, /* COT__BLOCK * 2^LEVELS exceeds any array */
    SOME   = 8 << 10, /* bytes of either vector that a kernel is given at a time */
    NODE   = 32, /* leaves whose sums are paired without counting */
    PARTS  = 64, /* most parts of a long product: each but the last is a subtree */
};

typedef struct dot {
    const cot__leaves *kernel;
    bool               wide; /* f64 */
    const char        *x, *y;
    int64_t            xs, ys, n;
    int64_t            each; /* terms of a part */
    char              *sums; /* of the parts */
} dot;

static int size_of(const dot *d) { return d->wide ? 8 : 4; }

/* n terms from `at` on, side by side: where they are, or copied to `room`. */
static const void *run_of(const dot *d, const char *x, int64_t stride, int64_t at, int64_t n, void *room) {
    x += at * stride * size_of(d);
    if (stride == 1) return x;
    for (int64_t i = 0; i < n; i++)
        if (d->wide) ((double *)room)[i] = ((const double *)(const void *)x)[i * stride];
        else ((float *)room)[i] = ((const float *)(const void *)x)[i * stride];
    return room;
}

/* What a binary counter keeps: sums of 2^k leaves each. f32 sums are added as such. */
typedef struct tree { double sum[LEVELS]; int top; } tree;

static double pair(const dot *d, double a, double b) { return d->wide ? a + b : (double)((float)a + (float)b); }
static void   take(const dot *d, tree *t, int64_t leaf, double sum) {
      for (; leaf & 1; leaf >>= 1) sum = pair(d, t->sum[--t->top], sum);
      t->sum[t->top++] = sum;
}
static double total(const dot *d, tree *t) {
    double sum = t->sum[--t->top];
    while (t->top > 0) sum = pair(d, t->sum[--t->top], sum);
    return sum;
}
static double sum_at(const dot *d, const void *sums, int64_t i) {
    return d->wide ? ((const double *)sums)[i] : (double)((const float *)sums)[i];
}

/* The node above all of 2^k leaves. */
static double folded(const dot *d, void *sums, int64_t n) {
    for (; n > 1; n /= 2)
        for (int64_t i = 0; i < n / 2; i++)
            if (d->wide) ((double *)sums)[i] = ((double *)sums)[2 * i] + ((double *)sums)[2 * i + 1];
            else ((float *)sums)[i] = ((float *)sums)[2 * i] + ((float *)sums)[2 * i + 1];
    return sum_at(d, sums, 0);
}

/* Terms from … to - 1; `from` begins a leaf. Where they lie side by side a kernel is given the
 * leaves of a whole node, and of what is left of them fewer. */
static double sum_of(const dot *d, int64_t from, int64_t to) {
    double     a[SOME / 8], b[SOME / 8], sums[NODE];
    const bool lie = d->xs == 1 && d->ys == 1;
    tree       t = {.top = 0};
    int64_t    leaf = 0, at = from, most = SOME / size_of(d);
    for (; lie && to - at >= NODE * COT__BLOCK; at += NODE * COT__BLOCK, leaf += NODE) {
        d->kernel->dots(d->x + at * size_of(d), d->y + at * size_of(d), NODE, sums);
        take(d, &t, leaf / NODE, folded(d, sums, NODE));
    }
    for (int64_t n; at < to; at += n) {
        n = cot__least(most, to - at);
        const void *x = run_of(d, d->x, d->xs, at, n, a), *y = run_of(d, d->y, d->ys, at, n, b);
        int64_t     whole = n / COT__BLOCK, rest = n % COT__BLOCK, skip = whole * COT__BLOCK * size_of(d);
        d->kernel->dots(x, y, whole, sums);
        if (rest)
            d->kernel->dot((const char *)x + skip, (const char *)y + skip, (int)rest,
                           (char *)sums + whole * size_of(d));
        for (int64_t i = 0; i < whole + (rest > 0); i++) take(d, &t, leaf++, sum_at(d, sums, i));
    }
    return total(d, &t);
}

static void part_of(void *ctx, int64_t part) {
    const dot *d = ctx;
    double     sum = sum_of(d, part * d->each, cot__least(d->n, (part + 1) * d->each));
    if (d->wide) ((double *)(void *)d->sums)[part] = sum;
    else ((float *)(void *)d->sums)[part] = (float)sum;
}

/* A part of 2^c leaves folds to the node that the whole tree has above them. */
static double shared(dot *d) {
    double sums[PARTS];
    tree   t = {.top = 0};
    int64_t parts = (d->n + d->each - 1) / d->each, whole = d->n / d->each;
    d->sums = (char *)sums;
    cot__spread_of(d->n)(parts, part_of, d);
    for (int64_t k = 0; k < whole; k++) take(d, &t, k, sum_at(d, sums, k));
    if (whole < parts) t.sum[t.top++] = sum_at(d, sums, whole);
    return total(d, &t);
}

void cot__gemm_dot(cot_dtype dtype, bool alone, cot__matrix x, cot__matrix y, void *z, bool add) {
    dot d = {.kernel = cot__leaves_of(dtype),
             .wide   = dtype == COT_F64,
             .x      = x.data,
             .y      = y.data,
             .xs     = x.col_stride,
             .ys     = y.row_stride,
             .n      = x.cols,
             .each   = COT__BLOCK};
    while (d.each * PARTS < d.n || d.each < cot__grain / 4) d.each *= 2;
    double sum = pair(&d, alone || d.n < 2 * d.each ? sum_of(&d, 0, d.n) : shared(&d), 0);
    if (d.wide) *(double *)z = add ? *(double *)z + sum : sum;
    else *(float *)z = add ? *(float *)z + (float)sum : (float)sum;
}
