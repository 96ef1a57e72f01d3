/* csr_sddmm.c: products of two dense matrices at the places of a sparse one, and softmax over the
 * entries of its rows.
 *
 * An entry of the first is the dot product of two rows, with the tree of reductions (gemm/dot.c); a
 * row of the second has the bits that softmax gives of its entries. The pattern is not believed, as
 * in csr_matmul.c: an entry without a place is 0. */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/leaves.h"
#include "backend/cpu/reduce/vexp.h"
#include "backend/cpu/sparse/csr.h"
#include "backend/cpu/split.h"

#include <math.h>

/* ---- sampled products ------------------------------------------------------------------------ */

typedef struct samples {
    const cot__compressed    *a;
    const cot__view   *x, *y, *z;
    const cot__leaves *leaves;
    int64_t            parts; /* of one matrix */
} samples;

/* The dot product of k elements, in the dtype of z; a sum of -0 becomes 0. */
static void dot(const samples *s, const void *x, const void *y, int64_t k, void *z) {
    bool narrow = s->z->dtype == COT_F32;
    if (k > COT__BLOCK)
        cot__gemm_dot(s->z->dtype, true, (cot__matrix){(void *)(uintptr_t)x, 1, k, k, 1},
                      (cot__matrix){(void *)(uintptr_t)y, k, 1, 1, 1}, z, false);
    else if (k > 0) s->leaves->dot(x, y, (int)k, z);
    if (narrow) *(float *)z = k > 0 ? *(float *)z + 0.0f : 0;
    else *(double *)z = k > 0 ? *(double *)z + 0.0 : 0;
}

/* The row of entry e: the last that starts at it or before. */
static int64_t row_of(const cot__compressed *a, int64_t e) {
    int64_t low = 0, high = a->rows;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (a->start[mid + 1] <= e) low = mid + 1;
        else high = mid;
    }
    return low;
}

/* Entries from … to - 1 of one matrix: where rows of x and y begin, and how far apart they are. */
typedef struct sampled {
    const samples *s;
    const char    *x, *y;
    char          *z;
    int64_t        k, xs, ys, from, to;
    uint32_t       columns;
} sampled;

static void dots(const sampled *q) {
    const cot__compressed *a = q->s->a;
    int64_t                size = cot__dtype_size(q->s->z->dtype);
    for (int64_t e = q->from, i = row_of(a, q->from); e < q->to; e++) {
        uint32_t c = (uint32_t)a->column[e];
        while (i < a->rows && a->start[i + 1] <= e) i++;
        bool placed = i < a->rows && c < q->columns;
        dot(q->s, q->x + (placed ? i * q->xs : 0) * size, q->y + (placed ? c * q->ys : 0) * size, placed ? q->k : 0,
            q->z + e * size);
    }
}

/* The same of one column. */
#define PRODUCTS(NAME, T)                                                                                              \
    static void NAME(const sampled *q) {                                                                               \
        const cot__compressed *a = q->s->a;                                                                            \
        const T               *x = (const void *)q->x, *y = (const void *)q->y;                                        \
        T                     *z = (void *)q->z;                                                                       \
        for (int64_t e = q->from, i = row_of(a, q->from); e < q->to; e++) {                                            \
            uint32_t c = (uint32_t)a->column[e];                                                                       \
            while (i < a->rows && a->start[i + 1] <= e) i++;                                                           \
            z[e] = i < a->rows && c < q->columns ? x[i * q->xs] * y[c * q->ys] + 0 : 0;                                \
        }                                                                                                              \
    }
PRODUCTS(products_f64, double)
PRODUCTS(products_f32, float)

static void some_entries(void *ctx, int64_t part) {
    const samples *s = ctx;
    int64_t        b = part / s->parts, at = part % s->parts, n = s->a->entries;
    sampled        q = {.s       = s,
                        .x       = cot__csr_at(s->x, 2, b),
                        .y       = cot__csr_at(s->y, 2, b),
                        .z       = cot__csr_at(s->z, 1, b),
                        .k       = s->x->shape[s->x->ndim - 1],
                        .xs      = s->x->stride[s->x->ndim - 2],
                        .ys      = s->y->stride[s->y->ndim - 2],
                        .from    = cot__part_start(n, s->parts, at),
                        .to      = cot__part_start(n, s->parts, at + 1),
                        .columns = (uint32_t)s->y->shape[s->y->ndim - 2]};
    if (q.k != 1) dots(&q);
    else if (s->z->dtype == COT_F32) products_f32(&q);
    else products_f64(&q);
}

void cot__csr_sddmm(const cot__compressed *a, const cot__view *x, const cot__view *y, const cot__view *values) {
    int64_t k = x->shape[x->ndim - 1], count = cot__count(values->ndim - 1, values->shape);
    if (a->entries == 0 || count == 0) return;
    samples s = {a, x, y, values, cot__leaves_of(values->dtype), 1};
    s.parts = cot__parts(a->entries, 16 + k, COT__MOST_PARTS);
    cot__parallel(count * s.parts, some_entries, &s);
}

/* ---- softmax --------------------------------------------------------------------------------- */

typedef struct softmaxes {
    const cot__compressed *a;
    const cot__view       *x, *z;
    const cot__leaves     *leaves;
    int64_t                parts;
} softmaxes;

/* A row of at most COT__BLOCK entries whose largest is a number; false: it is not. */
#define SHORT(NAME, T, EXP)                                                                                            \
    static bool NAME(const cot__leaves *leaves, int n, const T *x, T *z) {                                             \
        T most = x[0], sum;                                                                                            \
        for (int i = 1; i < n; i++) most = x[i] > most ? x[i] : most;                                                  \
        if (!isfinite(most)) return false;                                                                             \
        for (int i = 0; i < n; i++) z[i] = x[i] - most;                                                                \
        EXP(n, z, z);                                                                                                  \
        leaves->sum(z, n, &sum);                                                                                       \
        for (int i = 0; i < n; i++) z[i] /= sum;                                                                       \
        return true;                                                                                                   \
    }
SHORT(short_f64, double, cot__exp_f64)
SHORT(short_f32, float, cot__exp_f32)

static void softmax_row(const softmaxes *s, int64_t n, void *x, void *z) {
    static const int64_t one = 1;
    bool narrow = s->z->dtype == COT_F32;
    if (n == 0) return;
    if (n <= COT__BLOCK && (narrow ? short_f32(s->leaves, (int)n, x, z) : short_f64(s->leaves, (int)n, x, z))) return;
    cot__softmax(&(cot__view){x, s->x->dtype, 1, &n, &one}, 0, false, &(cot__view){z, s->z->dtype, 1, &n, &one});
}

static void softmax_rows(void *ctx, int64_t part) {
    const softmaxes *s = ctx;
    const cot__compressed  *a = s->a;
    int64_t          b = part / s->parts, at = part % s->parts, size = cot__dtype_size(s->z->dtype);
    char            *x = cot__csr_at(s->x, 1, b), *z = cot__csr_at(s->z, 1, b);
    for (int64_t i = cot__part_start(a->rows, s->parts, at), to = cot__part_start(a->rows, s->parts, at + 1); i < to;
         i++)
        softmax_row(s, a->start[i + 1] - a->start[i], x + a->start[i] * size, z + a->start[i] * size);
}

/* Do the rows follow one another, and hold all entries? */
static bool is_whole(const cot__compressed *a) {
    bool ascends = a->start[0] == 0 && a->start[a->rows] == a->entries;
    for (int64_t i = 0; i < a->rows; i++) ascends &= a->start[i] <= a->start[i + 1];
    return ascends;
}

void cot__csr_softmax(const cot__compressed *a, const cot__view *values, const cot__view *z) {
    int64_t count = cot__count(values->ndim - 1, values->shape);
    if (a->entries == 0 || count == 0) return;
    if (!is_whole(a)) {
        cot__fill(z, 0);
        return;
    }
    softmaxes s = {a, values, z, cot__leaves_of(z->dtype), 1};
    s.parts = cot__parts(a->rows, 16 + 16 * (a->entries / (a->rows ? a->rows : 1)), COT__MOST_PARTS);
    cot__parallel(count * s.parts, softmax_rows, &s);
}
