/* attention.c: softmax(scale q kᵀ + bias) v, tile by tile, so that memory grows with the sequence
 * and not with its square.
 *
 * Forward keeps, for each query, the running maximum and sum of its weights, and rescales its
 * result when the maximum grows; it saves the log of the sum. Backward computes the weights of a
 * tile again from it. Work is split by shapes only: forward by tiles of queries; backward by head,
 * each from end to end, and where heads are few by chunks of keys. Each chunk has its own sum for
 * dq, and the sums are added in order. So every number of threads gives the same bits. A masked key
 * has weight 0, whatever it holds; a query without keys gives zeros. */
#include "backend/cpu/fused.h"
#include "backend/cpu/nn/nn.h"
#include "backend/cpu/strip.h"
#include "backend/cpu/turn.h"
#include "base/math/elementary.h"
#include "base/parallel.h"

#include <string.h>

/* gcc makes vectors of 256 bits unless it is told otherwise; clang has no such attribute. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#define AVX512 "avx512f,avx512dq,avx2,fma"
#define ONCE __attribute__((noinline))
#else
#define UNROLL _Pragma("GCC unroll 16")
#define AVX512 "avx512f,avx512dq,avx2,fma,prefer-vector-width=512"
/* not copied, because there are many instances of everything */
#define ONCE __attribute__((noinline, noclone))
#endif

enum {
    TILE   = 64, /* queries and keys of a tile; part of the definition of the result, like CHUNKS */
    PAD    = 16, /* columns of tiles are a multiple: every vector divides it */
    PARTS  = 32, /* most parts, because each has tiles of its own */
    CHUNKS = 16, /* heads times chunks of keys that backward aims at */
    ALIGNMENT = 64,
};

/* ---- what a part sees ------------------------------------------------------------------------ */

typedef struct plan {
    cot__view q, k, v, mask, bias, z, lse, g, dq, dk, dv_out;
    int64_t   causal;
    double    scale;
    cot_dtype wide;             /* the type of the computation: F64 or F32 */
    int64_t   heads, queries, keys, tiles; /* heads: all leading axes; tiles of queries */
    int64_t   d, dv;            /* extents of q and k, of v, rounded up to PAD */
    int64_t   parts, chunks;
    char     *memory;           /* of the parts, `stride` bytes each */
    size_t    stride, sum_bytes;
    char     *sums, *deltas;    /* backward: one dq for each head and chunk; Σ z z̄ of each query */
    const struct kernel *kernel;
} plan;

/* The matrix of one head: rows of elements, with the strips that convert them to and from the
 * computing type. */
typedef struct matrix {
    char          *data;
    int64_t        cols, row_bytes, col_stride, size;
    bool           plain; /* rows of the computing type, element beside element */
    cot__strip_fn *load, *store;
} matrix;

static matrix matrix_of(const cot__view *v, int64_t head, cot_dtype wide) {
    int64_t offset = 0, n = v->ndim, size = cot__dtype_size(v->dtype);
    for (int64_t i = n - 3; i >= 0; i--) {
        offset += head % v->shape[i] * v->stride[i];
        head /= v->shape[i];
    }
    return (matrix){(char *)v->data + offset * size, v->shape[n - 1], v->stride[n - 2] * size, v->stride[n - 1], size,
                    v->dtype == wide && v->stride[n - 1] == 1, cot__strip(wide, v->dtype), cot__strip(v->dtype, wide)};
}

/* ---- causal tiles ---------------------------------------------------------------------------- */

/* Query i of a tile sees key j if j < i + edge. So of a product of tiles some columns are not read,
 * or some terms are 0: with queries in rows those from i + edge on, behind what is seen; with keys
 * in rows, those before. A sight is what is seen, in the low bits, and the edge. */
typedef int64_t sight;
enum { NONE_HIDDEN, COLUMNS_BEFORE, COLUMNS_BEHIND, TERMS_BEFORE, TERMS_BEHIND, SIGHTS = 8 };

/* Where a tile is not whole, what is padded counts as seen; so does all if weights of what is
 * hidden are not 0. */
static ONCE sight edge_of(const plan *a, int64_t i0, int64_t rows, int64_t j0, int64_t n, bool zeros) {
    return SIGHTS * (a->causal && rows == TILE && n == TILE && zeros ? i0 + a->causal - j0 : TILE);
}
static inline int64_t what_of(sight s) { return s & (SIGHTS - 1); }
static inline int64_t edge_in(sight s) { return (s - what_of(s)) / SIGHTS; }

static int64_t within(int64_t x, int64_t most) { return x < 0 ? 0 : x < most ? x : most; }

/* ---- the exponential: arguments are at most 0, or about 0 ------------------------------------ */

/* 2^n times a polynomial on [-log 2 / 2, log 2 / 2], within 1.1 ulp; results below 2^-126 become
 * 0. */
static inline __attribute__((always_inline)) float exp_f32(float x) {
    union { float f; int32_t i; } power;
    float in = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;      /* NaN stays */
    /* rounds to an integer: a float of this size has no fraction bits */
    float n = (in * 1.44269504f + 12582912.0f) - 12582912.0f;
    float r = (in - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    power.i = ((int32_t)(n == n ? n : 0) + 127) << 23;
    p *= power.f;
    return x < -87.0f ? 0.0f : x > 88.0f ? INFINITY : p;
}

/* ---- the tiles for each type and instruction set --------------------------------------------- */

#if COT__HAS_FAST

#define T float
#define V cot__f32x4
#define N(name) name##_f32
#define MR 4
#define TARGET COT__BASELINE
#define FMADD(a, b, c) ((a) * (b) + (c))
#define FMADD1 FMADD
#define EXP exp_f32
#define LOG cot__logf
#include "backend/cpu/nn/attention_template.h"

#define T double
#define V cot__f64x2
#define N(name) name##_f64
#define MR 4
#define TARGET COT__BASELINE
#define FMADD(a, b, c) ((a) * (b) + (c))
#define FMADD1 FMADD
#define EXP cot__exp
#define LOG cot__log
#include "backend/cpu/nn/attention_template.h"

#endif

/* Portable bits in plain C, each multiply-add of which is a call: small tiles are as fast. */
#define T float
#define V cot__f32x4
#define N(name) name##_f32_portable
#define MR 2
#define TARGET COT__BASELINE
#define FMADD cot__exact_f32x4
#define FMADD1 COT__FMAF
#define EXP exp_f32
#define LOG cot__logf
#include "backend/cpu/nn/attention_template.h"

#define T double
#define V cot__f64x2
#define N(name) name##_f64_portable
#define MR 2
#define TARGET COT__BASELINE
#define FMADD cot__exact_f64x2
#define FMADD1 COT__FMA
#define EXP cot__exp
#define LOG cot__log
#include "backend/cpu/nn/attention_template.h"

#if defined(__aarch64__)

#define T float
#define V cot__f32x4
#define N(name) name##_f32_neon
#define MR 8
#define TARGET
#define FMADD cot__fused_f32x4
#define FMADD1 __builtin_fmaf
#define EXP exp_f32
#define LOG cot__logf
#include "backend/cpu/nn/attention_template.h"

#define T double
#define V cot__f64x2
#define N(name) name##_f64_neon
#define MR 8
#define TARGET
#define FMADD cot__fused_f64x2
#define FMADD1 __builtin_fma
#define EXP cot__exp
#define LOG cot__log
#include "backend/cpu/nn/attention_template.h"

#endif

#if defined(__x86_64__)

#define T float
#define V __m256
#define N(name) name##_f32_avx2
#define MR 4
#define TARGET __attribute__((target("avx2,fma")))
#define FMADD _mm256_fmadd_ps
#define FMADD1 __builtin_fmaf
#define EXP exp_f32
#define LOG cot__logf
#include "backend/cpu/nn/attention_template.h"

#define T double
#define V __m256d
#define N(name) name##_f64_avx2
#define MR 4
#define TARGET __attribute__((target("avx2,fma")))
#define FMADD _mm256_fmadd_pd
#define FMADD1 __builtin_fma
#define EXP cot__exp
#define LOG cot__log
#include "backend/cpu/nn/attention_template.h"

#define T float
#define V __m512
#define N(name) name##_f32_avx512
#define MR 8
#define TARGET __attribute__((target(AVX512)))
#define FMADD _mm512_fmadd_ps
#define FMADD1 __builtin_fmaf
#define EXP exp_f32
#define LOG cot__logf
#include "backend/cpu/nn/attention_template.h"

#define T double
#define V __m512d
#define N(name) name##_f64_avx512
#define MR 8
#define TARGET __attribute__((target(AVX512)))
#define FMADD _mm512_fmadd_pd
#define FMADD1 __builtin_fma
#define EXP cot__exp
#define LOG cot__log
#include "backend/cpu/nn/attention_template.h"

#endif

typedef struct kernel {
    void (*forward)(const plan *a, int64_t head, int64_t tile, void *memory);
    void (*deltas)(const plan *a, int64_t head, int64_t tile, void *memory);
    void (*backward)(const plan *a, int64_t head, int64_t from, int64_t to, void *memory, void *dq);
    void (*finish)(const plan *a, int64_t head, int64_t tile, const void *sums, int64_t chunks);
} kernel;

#define KERNEL(suffix) {forward_##suffix, deltas_##suffix, backward_##suffix, finish_##suffix}
/* f64, f32; the widest instructions last */
static const kernel portable[2] = {KERNEL(f64_portable), KERNEL(f32_portable)};
static const kernel kernels[][2] = {
#if COT__HAS_FAST
    {KERNEL(f64), KERNEL(f32)},
#endif
#if defined(__x86_64__)
    {KERNEL(f64_avx2), KERNEL(f32_avx2)},
    {KERNEL(f64_avx512), KERNEL(f32_avx512)},
#elif defined(__aarch64__)
    {KERNEL(f64_neon), KERNEL(f32_neon)},
#else
    {KERNEL(f64_portable), KERNEL(f32_portable)},
#endif
};

/* `narrower` instruction sets below the best: a test asks for them. */
static const kernel *kernel_of(cot_dtype wide, int narrower) {
    int isa = COT__ISAS > 1 ? (int)cot__cpu_isa() - narrower : 0;
    if (cot__cpu_isa() == COT__ISA_PLAIN && cot__cpu_bits() == COT__BITS_PORTABLE) return &portable[wide == COT_F32];
    return &kernels[isa > 0 ? isa : 0][wide == COT_F32];
}

/* ---- shapes to parts ------------------------------------------------------------------------- */

static int64_t padded(int64_t n) { return (n + PAD - 1) / PAD * PAD; }
static int64_t tiles_of(int64_t n) { return (n + TILE - 1) / TILE; }

static bool has_elements(const cot__view *v) { return cot__count(v->ndim, v->shape) > 0; }

/* False: the tiles alone would be larger than any memory. */
static bool make_plan(const cot__attention *a, bool backward, plan *p) {
    int     n = a->q.ndim;
    int64_t d = a->q.shape[n - 1], dv = a->v.shape[n - 1], most = INT64_MAX / 16 / TILE / PARTS;
    *p        = (plan){.q      = a->q,
                       .k      = a->k,
                       .v      = a->v,
                       .mask   = a->mask,
                       .bias   = a->bias,
                       .z      = a->z,
                       .lse    = a->lse,
                       .g      = a->g,
                       .dq     = a->dq,
                       .dk     = a->dk,
                       .dv_out = a->dv,
                       .causal = a->causal,
                       .scale  = a->scale};
    p->wide = cot__dtype_compute(a->q.dtype);
    p->kernel = kernel_of(p->wide, a->narrower);
    p->heads = cot__count(n - 2, a->q.shape);
    /* Then nothing is written, whatever the number of heads. */
    if (backward && !has_elements(&a->q) && !has_elements(&a->k) && !has_elements(&a->v)) p->heads = 0;
    p->queries = a->q.shape[n - 2];
    p->keys = a->k.shape[n - 2];
    p->tiles = tiles_of(p->queries);
    if (d > most / 16 || dv > most / 16) return false;
    p->d = padded(d);
    p->dv = padded(dv);
    int64_t size = cot__dtype_size(p->wide), items, cost, floats;
    if (backward) {
        int64_t tiles  = tiles_of(p->keys),
                chunks = p->heads < CHUNKS && p->heads > 0 ? (CHUNKS + p->heads - 1) / p->heads : 1;
        p->chunks = chunks > tiles ? (tiles > 0 ? tiles : 1) : chunks;
        items = p->heads * p->chunks;
        cost = cot__size_mul(p->queries / p->chunks, (p->keys / TILE + 1) * (TILE / 8));
        floats = 4 * TILE * p->d + 3 * TILE * p->dv + 2 * TILE * TILE;
        if (!cot__size_bytes(cot__size_mul(p->tiles * TILE, p->d), size, &p->sum_bytes)) return false;
    } else {
        items = p->heads * p->tiles;
        cost = TILE * (p->keys / 8 + 1);
        floats = 2 * TILE * p->d + 2 * TILE * p->dv + TILE * TILE;
    }
    p->parts = items == 0 ? 0 : cot__parts(items, cot__size_mul(cost / 4, p->d + p->dv), PARTS);
    p->stride = (size_t)(floats * size);
    return true;
}

int64_t cot__attention_bytes(const cot__attention *a, bool backward) {
    plan    p;
    if (!make_plan(a, backward, &p)) return -1;
    /* as large as lse, which exists */
    int64_t deltas = backward ? p.heads * p.queries * cot__dtype_size(p.wide) : 0;
    int64_t sums = backward ? cot__size_mul((int64_t)p.sum_bytes, p.heads * p.chunks) : 0;
    int64_t bytes = cot__size_add(cot__size_add(cot__size_mul((int64_t)p.stride, p.parts), sums), deltas + ALIGNMENT);
    return bytes == COT__SIZE_MOST ? -1 : bytes;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Where tiles begin in memory of attention_bytes: no vector of theirs crosses a line of the
 * cache. */
static char *aligned(void *memory) {
    return (char *)(((uintptr_t)memory + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1));
}

static void run_forward(void *ctx, int64_t part) {
    const plan *p = ctx;
    int64_t     n = p->heads * p->tiles, end = cot__part_start(n, p->parts, part + 1);
    for (int64_t i = cot__part_start(n, p->parts, part); i < end; i++)
        p->kernel->forward(p, i / p->tiles, i % p->tiles, p->memory + (size_t)part * p->stride);
}

static void run_backward(void *ctx, int64_t part) {
    const plan *p = ctx;
    int64_t     n = p->heads * p->chunks, end = cot__part_start(n, p->parts, part + 1), tiles = tiles_of(p->keys);
    for (int64_t i = cot__part_start(n, p->parts, part); i < end; i++)
        p->kernel->backward(p, i / p->chunks, cot__part_start(tiles, p->chunks, i % p->chunks),
                            cot__part_start(tiles, p->chunks, i % p->chunks + 1), p->memory + (size_t)part * p->stride,
                            p->sums + (size_t)i * p->sum_bytes);
}

static void run_finish(void *ctx, int64_t part) {
    const plan *p = ctx;
    int64_t     n = p->heads * p->tiles, end = cot__part_start(n, p->parts, part + 1);
    for (int64_t i = cot__part_start(n, p->parts, part); i < end; i++)
        p->kernel->finish(p, i / p->tiles, i % p->tiles, p->sums + (size_t)(i / p->tiles * p->chunks) * p->sum_bytes,
                          p->chunks);
}

/* The tiles of the products serve here first: part p of these parts uses those of part p. */
static void run_deltas(void *ctx, int64_t part) {
    const plan *p = ctx;
    int64_t     n = p->heads * p->tiles, end = cot__part_start(n, p->parts, part + 1);
    for (int64_t i = cot__part_start(n, p->parts, part); i < end; i++)
        p->kernel->deltas(p, i / p->tiles, i % p->tiles, p->memory + (size_t)part * p->stride);
}

/* Where a head has one chunk, it is done from end to end: its rows stay near. */
static void run_heads(void *ctx, int64_t part) {
    const plan *p = ctx;
    void       *memory = p->memory + (size_t)part * p->stride;
    for (int64_t h = cot__part_start(p->heads, p->parts, part); h < cot__part_start(p->heads, p->parts, part + 1);
         h++) {
        char *sum = p->sums + (size_t)h * p->sum_bytes;
        for (int64_t i = 0; i < p->tiles; i++) p->kernel->deltas(p, h, i, memory);
        p->kernel->backward(p, h, 0, tiles_of(p->keys), memory, sum);
        for (int64_t i = 0; i < p->tiles; i++) p->kernel->finish(p, h, i, sum, 1);
    }
}

void cot__attention_forward(const cot__attention *a, void *memory) {
    plan p;
    if (!make_plan(a, false, &p)) return;
    p.memory = aligned(memory);
    cot__parallel(p.parts, run_forward, &p);
}

void cot__attention_backward(const cot__attention *a, void *memory) {
    plan p;
    if (!make_plan(a, true, &p)) return;
    p.memory = aligned(memory);
    p.sums = p.memory + (size_t)p.parts * p.stride;
    p.deltas = p.sums + p.sum_bytes * (size_t)(p.heads * p.chunks);
    if (p.chunks == 1) {
        cot__parallel(p.parts, run_heads, &p);
        return;
    }
    cot__parallel(p.parts, run_deltas, &p);
    cot__parallel(p.parts, run_backward, &p);
    int64_t items = p.heads * p.tiles;
    p.parts = items == 0 ? 0 : cot__parts(items, TILE * p.d * p.chunks, PARTS);
    cot__parallel(p.parts, run_finish, &p);
}
