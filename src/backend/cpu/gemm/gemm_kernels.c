/* gemm_kernels.c: the kernels of the matrix product, from one template for each float type and
 * instruction set, the widest of which is chosen. */
#include "backend/cpu/gemm/gemm.h"
#include "base/cpu.h"

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
    AHEAD = 8, /* depths fetched before they are packed */
    DOTS  = 8, /* chains side by side: as many as hide the latency of one */
};

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
    UNROLL for (int i = 0; i < 4; i++) memcpy(&r[i], from + i * rs, sizeof *r);
    f32x4 a = MIX(r[0], r[1], 0, 4, 1, 5), b = MIX(r[0], r[1], 2, 6, 3, 7), d = MIX(r[2], r[3], 0, 4, 1, 5),
          e = MIX(r[2], r[3], 2, 6, 3, 7);
    c[0] = MIX(a, d, 0, 1, 4, 5), c[1] = MIX(a, d, 2, 3, 6, 7), c[2] = MIX(b, e, 0, 1, 4, 5),
    c[3] = MIX(b, e, 2, 3, 6, 7);
    UNROLL for (int i = 0; i < 4; i++) memcpy(to + i * ts, &c[i], sizeof *c);
}
static inline void turn_f64(double *to, int64_t ts, const double *from, int64_t rs) {
    f64x2 r[2];
    UNROLL for (int i = 0; i < 2; i++) memcpy(&r[i], from + i * rs, sizeof *r);
    f64x2 c[2] = {MIX(r[0], r[1], 0, 2), MIX(r[0], r[1], 1, 3)};
    UNROLL for (int i = 0; i < 2; i++) memcpy(to + i * ts, &c[i], sizeof *c);
}
#if defined(__x86_64__)
typedef double f64x4 __attribute__((vector_size(32)));
static inline __attribute__((always_inline, target("avx2"))) void turn_f64_avx2(double *to, int64_t ts,
                                                                                const double *from, int64_t rs) {
    f64x4 r[4], c[4];
    UNROLL for (int i = 0; i < 4; i++) memcpy(&r[i], from + i * rs, sizeof *r);
    f64x4 a = MIX(r[0], r[1], 0, 4, 2, 6), b = MIX(r[0], r[1], 1, 5, 3, 7), d = MIX(r[2], r[3], 0, 4, 2, 6),
          e = MIX(r[2], r[3], 1, 5, 3, 7);
    c[0] = MIX(a, d, 0, 1, 4, 5), c[1] = MIX(b, e, 0, 1, 4, 5), c[2] = MIX(a, d, 2, 3, 6, 7),
    c[3] = MIX(b, e, 2, 3, 6, 7);
    UNROLL for (int i = 0; i < 4; i++) memcpy(to + i * ts, &c[i], sizeof *c);
}
#endif
#undef MIX
#else
static inline void turn_f32(float *to, int64_t ts, const float *from, int64_t rs) {
    (void)to, (void)ts, (void)from, (void)rs;
}
static inline void turn_f64(double *to, int64_t ts, const double *from, int64_t rs) {
    (void)to, (void)ts, (void)from, (void)rs;
}
#define turn_f64_avx2 turn_f64
#endif
#define turn_f32_avx2 turn_f32
#define turn_f32_avx512 turn_f32
#define turn_f64_avx512 turn_f64_avx2

#define T float
#define V f32x4
#define N(name) name##_f32
#define MR 6
#define NV 2
#define TARGET COT__BASELINE
#define FMADD(a, b, c) ((a) * (b) + (c))
#define FMADD1 FMADD
#define SQUARE 4
#include "backend/cpu/gemm/gemm_template.h"

#define T double
#define V f64x2
#define N(name) name##_f64
#define MR 6
#define NV 2
#define TARGET COT__BASELINE
#define FMADD(a, b, c) ((a) * (b) + (c))
#define FMADD1 FMADD
#define SQUARE 2
#include "backend/cpu/gemm/gemm_template.h"

#if defined(__x86_64__)

#define T float
#define V __m256
#define N(name) name##_f32_avx2
#define MR 6
#define NV 2
#define TARGET __attribute__((target("avx2,fma")))
#define FMADD _mm256_fmadd_ps
#define FMADD1 __builtin_fmaf
#define SQUARE 4
#include "backend/cpu/gemm/gemm_template.h"

#define T double
#define V __m256d
#define N(name) name##_f64_avx2
#define MR 6
#define NV 2
#define TARGET __attribute__((target("avx2,fma")))
#define FMADD _mm256_fmadd_pd
#define FMADD1 __builtin_fma
#define SQUARE 4
#include "backend/cpu/gemm/gemm_template.h"

#define T float
#define V __m512
#define N(name) name##_f32_avx512
#define MR 12
#define NV 2
#define TARGET __attribute__((target("avx512f,avx2,fma")))
#define FMADD _mm512_fmadd_ps
#define FMADD1 __builtin_fmaf
#define SQUARE 4
#include "backend/cpu/gemm/gemm_template.h"

#define T double
#define V __m512d
#define N(name) name##_f64_avx512
#define MR 12
#define NV 2
#define TARGET __attribute__((target("avx512f,avx2,fma")))
#define FMADD _mm512_fmadd_pd
#define FMADD1 __builtin_fma
#define SQUARE 4
#include "backend/cpu/gemm/gemm_template.h"

#endif

const cot__gemm_kernels *cot__gemm_kernels_of(cot_dtype d) {
#if defined(__x86_64__)
    if (cot__cpu_isa() == COT__ISA_AVX512) return d == COT_F32 ? &kernels_f32_avx512 : &kernels_f64_avx512;
    if (cot__cpu_isa() == COT__ISA_AVX2) return d == COT_F32 ? &kernels_f32_avx2 : &kernels_f64_avx2;
#endif
    return d == COT_F32 ? &kernels_f32 : &kernels_f64;
}
