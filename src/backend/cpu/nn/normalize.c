/* normalize.c: rows normalised to mean 0 and variance 1, the transpose of that, and the sums that
 * weight and bias receive.
 *
 * Parts are ranges of rows. A row's result depends on the row alone; the sums over rows add up part
 * by part, in order. */
#include "backend/cpu/nn/nn.h"
#include "base/cpu.h"
#include "base/parallel.h"

#include <string.h>

enum {
    CHUNK = 4096,    /* elements summed in T before they are added in f64 */
    FLUSH = 64,      /* rows summed in T before they are added in f64 */
    MOST_PARTS = 256,
    MOST_SUMS = 32,  /* parts of a sum over rows: each has memory of its own */
    COST = 4,        /* operations for an element, about */
};

typedef struct rows_job {
    cot__rows   r;
    const void *x, *weight, *bias, *g;
    void       *z;
    int64_t     parts;
    double     *totals; /* (parts, 2n), then as many T */
} rows_job;

/* The widest variant allowed: 0 baseline, 1 AVX2. A build sets it lower to test the narrower
 * one. */
#ifndef COT__NORMALIZE_ISA
#define COT__NORMALIZE_ISA 1
#endif

typedef float  f32x8 __attribute__((vector_size(32)));
typedef double f64x4 __attribute__((vector_size(32)));
typedef float  f32x8_anywhere __attribute__((vector_size(32), aligned(4), may_alias));
typedef double f64x4_anywhere __attribute__((vector_size(32), aligned(8), may_alias));
#define LOAD(p) (*(const U *)(p))

#define T float
#define V f32x8
#define U f32x8_anywhere
#define VL 8
#define N(name) name##_f32
#define TARGET COT__BASELINE
#define TINY 1e-30
#define HUGE_ 1e30
#include "backend/cpu/nn/normalize_template.h"

#define T double
#define V f64x4
#define U f64x4_anywhere
#define VL 4
#define N(name) name##_f64
#define TARGET COT__BASELINE
#define TINY 1e-280
#define HUGE_ 1e280
#include "backend/cpu/nn/normalize_template.h"

#if defined(__x86_64__) && COT__NORMALIZE_ISA > 0
#define T float
#define V f32x8
#define U f32x8_anywhere
#define VL 8
#define N(name) name##_f32_avx2
#define TARGET __attribute__((target("avx2")))
#define TINY 1e-30
#define HUGE_ 1e30
#include "backend/cpu/nn/normalize_template.h"

#define T double
#define V f64x4
#define U f64x4_anywhere
#define VL 4
#define N(name) name##_f64_avx2
#define TARGET __attribute__((target("avx2")))
#define TINY 1e-280
#define HUGE_ 1e280
#include "backend/cpu/nn/normalize_template.h"

#define RUN(name, d, ...)                                                                                              \
    do {                                                                                                               \
        if (cot__cpu_isa() >= COT__ISA_AVX2)                                                                           \
            (d) == COT_F64 ? name##_f64_avx2(__VA_ARGS__) : name##_f32_avx2(__VA_ARGS__);                              \
        else                                                                                                           \
            (d) == COT_F64 ? name##_f64(__VA_ARGS__) : name##_f32(__VA_ARGS__);                                        \
    } while (0)
#else
#define RUN(name, d, ...) ((d) == COT_F64 ? name##_f64(__VA_ARGS__) : name##_f32(__VA_ARGS__))
#endif

static void forward_part(void *ctx, int64_t part) {
    const rows_job *j = ctx;
    RUN(forward, j->r.dtype, j, cot__part_start(j->r.rows, j->parts, part),
        cot__part_start(j->r.rows, j->parts, part + 1));
}

static void backward_part(void *ctx, int64_t part) {
    const rows_job *j = ctx;
    RUN(backward, j->r.dtype, j, cot__part_start(j->r.rows, j->parts, part),
        cot__part_start(j->r.rows, j->parts, part + 1));
}

static void weights_part(void *ctx, int64_t part) {
    const rows_job *j = ctx;
    int64_t from = cot__part_start(j->r.rows, j->parts, part), to = cot__part_start(j->r.rows, j->parts, part + 1),
            n             = j->r.n;
    double         *total = j->totals + part * 2 * n, *room = j->totals + j->parts * 2 * n + part * 2 * n;
    RUN(weights, j->r.dtype, j, from, to, total, (void *)room);
}

static int64_t parts_of(const cot__rows *r, int64_t most) { return cot__parts(r->rows, COST * r->n, most); }
static int64_t sums_of(const cot__rows *r) { return cot__pieces(r->rows, COST * r->n, MOST_SUMS); }

void cot__normalize(const cot__rows *r, const void *x, const void *weight, const void *bias, void *z) {
    rows_job j = {.r = *r, .x = x, .weight = weight, .bias = bias, .z = z, .parts = parts_of(r, MOST_PARTS)};
    if (r->n == 0) return; /* there may be any number of empty rows */
    cot__parallel(j.parts, forward_part, &j);
}

void cot__normalize_back(const cot__rows *r, const void *x, const void *weight, const void *g, void *z) {
    rows_job j = {.r = *r, .x = x, .weight = weight, .g = g, .z = z, .parts = parts_of(r, MOST_PARTS)};
    if (r->n == 0) return;
    cot__parallel(j.parts, backward_part, &j);
}

int64_t cot__normalize_scratch(const cot__rows *r) {
    int64_t bytes = cot__size_mul(sums_of(r) * 4 * (int64_t)sizeof(double), r->n);
    return bytes == COT__SIZE_MOST ? -1 : bytes;
}

void cot__normalize_weights(const cot__rows *r, const void *x, const void *g, void *scratch, void *z) {
    rows_job j = {.r = *r, .x = x, .g = g, .parts = sums_of(r), .totals = scratch};
    if (r->n == 0) return; /* no sums, and no room for them */
    cot__parallel(j.parts, weights_part, &j);
    for (int64_t i = 0; i < 2 * r->n; i++) {
        double sum = 0;
        for (int64_t part = 0; part < j.parts; part++) sum += j.totals[part * 2 * r->n + i];
        if (r->dtype == COT_F64) ((double *)z)[i] = sum;
        else ((float *)z)[i] = (float)sum;
    }
}
