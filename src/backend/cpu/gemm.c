/* gemm.c: matrix products.
 *
 * f32 and f64 run the template for the widest instruction set the machine has; the half formats are widened to f32 and
 * rounded once at the end; integers multiply modulo 2^64. On one machine the bits of an element depend on its row of A, its column of B
 * and its old value, and on nothing else: every path keeps the same chain. Shapes are the caller's to check. */
#include "backend/cpu/strip.h"
#include "base/cpu.h"
#include "base/parallel.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

enum {
    KC      = 384,          /* depth of a block; part of the definition of the result */
    ROWS    = 1536,         /* of A and … */
    COLUMNS = 1024,         /* … columns of B that are packed at a time, at most, … */
    PACKED  = 8 << 20,      /* … as deep as this many bytes hold */
    PARTS   = 16,           /* into which a chunk of C is cut, at least, where there are columns enough */
    SPAN    = 256,          /* columns summed at a time without packing */
    DOTS    = 8,            /* chains side by side: as many as hide the latency of one */
    TINY    = 16 * 16 * 16, /* products of at most this many terms are not worth packing */
};

static bool is_small(int64_t m, int64_t n, int64_t k) { return m == 1 || n == 1 || m * n <= TINY / k; }
static bool is_large(int64_t m, int64_t n, int64_t k) { return (double)m * (double)n * (double)k >= 32 * (double)cot__grain; }

/* Who runs the parts: cot__parallel, or the caller alone. */
typedef void cot__spread(int64_t parts, void (*run)(void *ctx, int64_t part), void *ctx);
static void spread_here(int64_t parts, void (*run)(void *ctx, int64_t part), void *ctx) {
    for (int64_t part = 0; part < parts; part++) run(ctx, part);
}

static inline cot__matrix transposed(cot__matrix m) {
    return (cot__matrix){m.data, m.cols, m.rows, m.col_stride, m.row_stride};
}

typedef float  f32x4 __attribute__((vector_size(16)));
typedef double f64x2 __attribute__((vector_size(16)));

/* A square of 16 bytes by 16 bytes, transposed: rows `rs` apart become rows `ts` apart. */
#if defined(__has_builtin)
#define TURNS __has_builtin(__builtin_shufflevector)
#else
#define TURNS 0
#endif
#if TURNS
#define MIX __builtin_shufflevector
static inline void turn_f32(float *to, int64_t ts, const float *from, int64_t rs) {
    f32x4 r[4], c[4];
    for (int i = 0; i < 4; i++) memcpy(&r[i], from + i * rs, sizeof *r);
    f32x4 a = MIX(r[0], r[1], 0, 4, 1, 5), b = MIX(r[0], r[1], 2, 6, 3, 7), d = MIX(r[2], r[3], 0, 4, 1, 5), e = MIX(r[2], r[3], 2, 6, 3, 7);
    c[0] = MIX(a, d, 0, 1, 4, 5), c[1] = MIX(a, d, 2, 3, 6, 7), c[2] = MIX(b, e, 0, 1, 4, 5), c[3] = MIX(b, e, 2, 3, 6, 7);
    for (int i = 0; i < 4; i++) memcpy(to + i * ts, &c[i], sizeof *c);
}
static inline void turn_f64(double *to, int64_t ts, const double *from, int64_t rs) {
    f64x2 r[2];
    for (int i = 0; i < 2; i++) memcpy(&r[i], from + i * rs, sizeof *r);
    f64x2 c[2] = {MIX(r[0], r[1], 0, 2), MIX(r[0], r[1], 1, 3)};
    for (int i = 0; i < 2; i++) memcpy(to + i * ts, &c[i], sizeof *c);
}
#undef MIX
#else
static inline void turn_f32(float *to, int64_t ts, const float *from, int64_t rs) { (void)to, (void)ts, (void)from, (void)rs; }
static inline void turn_f64(double *to, int64_t ts, const double *from, int64_t rs) { (void)to, (void)ts, (void)from, (void)rs; }
#endif
#define turn_f32_avx2 turn_f32
#define turn_f64_avx2 turn_f64
#define turn_f32_avx512 turn_f32
#define turn_f64_avx512 turn_f64

#define T float
#define V f32x4
#define N(name) name##_f32
#define MR 6
#define NV 2
#define TARGET
#define FMADD(a, b, c) ((a) * (b) + (c))
#define FMADD1 FMADD
#include "backend/cpu/gemm_template.h"

#define T double
#define V f64x2
#define N(name) name##_f64
#define MR 6
#define NV 2
#define TARGET
#define FMADD(a, b, c) ((a) * (b) + (c))
#define FMADD1 FMADD
#include "backend/cpu/gemm_template.h"

#if defined(__x86_64__)

#define T float
#define V __m256
#define N(name) name##_f32_avx2
#define MR 6
#define NV 2
#define TARGET __attribute__((target("avx2,fma")))
#define FMADD _mm256_fmadd_ps
#define FMADD1 __builtin_fmaf
#include "backend/cpu/gemm_template.h"

#define T double
#define V __m256d
#define N(name) name##_f64_avx2
#define MR 6
#define NV 2
#define TARGET __attribute__((target("avx2,fma")))
#define FMADD _mm256_fmadd_pd
#define FMADD1 __builtin_fma
#include "backend/cpu/gemm_template.h"

#define T float
#define V __m512
#define N(name) name##_f32_avx512
#define MR 12
#define NV 2
#define TARGET __attribute__((target("avx512f,avx2,fma")))
#define FMADD _mm512_fmadd_ps
#define FMADD1 __builtin_fmaf
#include "backend/cpu/gemm_template.h"

#define T double
#define V __m512d
#define N(name) name##_f64_avx512
#define MR 12
#define NV 2
#define TARGET __attribute__((target("avx512f,avx2,fma")))
#define FMADD _mm512_fmadd_pd
#define FMADD1 __builtin_fma
#include "backend/cpu/gemm_template.h"

#endif

typedef struct variant {
    bool (*gemm[2])(const cot_allocator *al, void *scratch, cot__matrix a, cot__matrix b, cot__matrix c, bool add); /* f64, f32 */
    size_t (*scratch[2])(int64_t rows, int64_t cols, int64_t depth);
} variant;

static const variant *chosen(void) {
#if defined(__x86_64__)
    static const variant avx512 = {{gemm_f64_avx512, gemm_f32_avx512}, {scratch_f64_avx512, scratch_f32_avx512}};
    static const variant avx2 = {{gemm_f64_avx2, gemm_f32_avx2}, {scratch_f64_avx2, scratch_f32_avx2}};
    if (cot__cpu_isa() == COT__ISA_AVX512) return &avx512;
    if (cot__cpu_isa() == COT__ISA_AVX2) return &avx2;
#endif
    static const variant baseline = {{gemm_f64, gemm_f32}, {scratch_f64, scratch_f32}};
    return &baseline;
}

static bool gemm_float(const cot_allocator *al, cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool add) {
    return chosen()->gemm[d == COT_F32](al, NULL, a, b, c, add);
}

/* Either side may be packed as the other, when the product is done transposed. */
size_t cot__gemm_scratch(cot_dtype d, int64_t rows, int64_t cols, int64_t depth) {
    size_t (*scratch)(int64_t rows, int64_t cols, int64_t depth) = chosen()->scratch[d == COT_F32];
    size_t p = scratch(rows, cols, depth), q = scratch(cols, rows, depth);
    return p > q ? p : q;
}

void cot__gemm_alone(cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool accumulate, void *scratch) {
    if (c.rows == 0 || c.cols == 0) return;
    if (a.cols > 0) chosen()->gemm[d == COT_F32](NULL, scratch, a, b, c, accumulate);
    else if (!accumulate) cot__gemm(NULL, d, a, b, c, false); /* zeros: nothing is allocated */
}

/* Copies between matrices of two dtypes through the library's one cast. */
static void copy_matrix(cot_dtype to, cot__matrix dst, cot_dtype from, cot__matrix src) {
    const int64_t   shape[2] = {src.rows, src.cols};
    const int64_t   ds[2] = {dst.row_stride, dst.col_stride}, ss[2] = {src.row_stride, src.col_stride};
    const cot__view d = {dst.data, to, 2, shape, ds}, s = {src.data, from, 2, shape, ss};
    cot__copy(&d, &s);
}

static bool gemm_half(const cot_allocator *al, cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool add) {
    int64_t na = a.rows * a.cols, nb = b.rows * b.cols, nc = c.rows * c.cols;
    size_t  bytes = (size_t)(na + nb + nc) * sizeof(float);
    float  *wide  = cot__alloc(al, bytes);
    if (!wide) return false;
    cot__matrix wa = {wide, a.rows, a.cols, a.cols, 1}, wb = {wide + na, b.rows, b.cols, b.cols, 1};
    cot__matrix wc = {wide + na + nb, c.rows, c.cols, c.cols, 1};
    copy_matrix(COT_F32, wa, d, a);
    copy_matrix(COT_F32, wb, d, b);
    if (add) copy_matrix(COT_F32, wc, d, c);
    bool done = gemm_float(al, COT_F32, wa, wb, wc, add);
    if (done) copy_matrix(d, c, COT_F32, wc);
    cot__free(al, wide, bytes);
    return done;
}

/* Rows of c, a block of columns at a time; unsigned, because integers wrap. */
static void gemm_integer(cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool add) {
    uint64_t       sum[COT__BLOCK], row[COT__BLOCK];
    int            size = cot__dtype_size(d);
    cot__strip_fn *load = cot__strip(COT_I64, d), *store = cot__strip(d, COT_I64);
    for (int64_t i = 0; i < c.rows; i++)
        for (int64_t j = 0; j < c.cols; j += COT__BLOCK) {
            int64_t n  = c.cols - j < COT__BLOCK ? c.cols - j : COT__BLOCK;
            char   *to = (char *)c.data + (i * c.row_stride + j * c.col_stride) * size;
            if (add) load(sum, 1, to, c.col_stride, n);
            else memset(sum, 0, sizeof(sum));
            for (int64_t p = 0; p < a.cols; p++) {
                uint64_t s = (uint64_t)cot__load_i64((char *)a.data + (i * a.row_stride + p * a.col_stride) * size, d);
                load(row, 1, (char *)b.data + (p * b.row_stride + j * b.col_stride) * size, b.col_stride, n);
                for (int64_t l = 0; l < n; l++) sum[l] += s * row[l];
            }
            store(to, c.col_stride, sum, 1, n);
        }
}

bool cot__gemm(const cot_allocator *al, cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool accumulate) {
    if (c.rows == 0 || c.cols == 0 || (a.cols == 0 && accumulate)) return true;
    if (a.cols == 0) {
        double zero = 0;
        copy_matrix(d, c, COT_F64, (cot__matrix){&zero, c.rows, c.cols, 0, 0});
        return true;
    }
    if (d == COT_F64 || d == COT_F32) return gemm_float(al, d, a, b, c, accumulate);
    if (cot__dtype_is_float(d)) return gemm_half(al, d, a, b, c, accumulate);
    gemm_integer(d, a, b, c, accumulate);
    return true;
}
