/* gemm_kernels.c: the kernels of the matrix product, from one template for each float type and
 * instruction set, the widest of which is chosen. */
#include "backend/cpu/fused.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/turn.h"

#include <string.h>

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("nounroll")
#else
#define UNROLL _Pragma("GCC unroll 32")
#define ROLLED _Pragma("GCC unroll 1")
#endif

/* The compiler shall not know where a pointer came from: it would keep one for every column. */
#define OPAQUE(p) __asm__("" : "+r"(p))

enum {
    AHEAD    = 8, /* depths fetched before they are packed */
    DOTS     = 8, /* chains side by side: as many as hide the latency of one */
    /* Runs read side by side that processors fetch by themselves: an AMD of family 26 reads eight
     * at the speed of memory, and at two thirds of it if instructions fetch them, too; twice as
     * many are slower unless these do. */
    FOLLOWED = 8,
    LATER    = 32, /* lines of a column after which what is fetched from memory is used */
};

#if COT__HAS_FAST

#define T float
#define V cot__f32x4
#define N(name) name##_f32
#define MR 6
#define NV 2
#define TARGET COT__BASELINE
#define FMADD(a, b, c) ((a) * (b) + (c))
#define FMADD1 FMADD
#define AT_ONCE 8
#define SQUARE 4
#include "backend/cpu/gemm/gemm_template.h"

#define T double
#define V cot__f64x2
#define N(name) name##_f64
#define MR 6
#define NV 2
#define TARGET COT__BASELINE
#define FMADD(a, b, c) ((a) * (b) + (c))
#define FMADD1 FMADD
#define AT_ONCE 8
#define SQUARE 2
#include "backend/cpu/gemm/gemm_template.h"

#endif

/* Portable bits in plain C. */
#define T float
#define V cot__f32x4
#define N(name) name##_f32_portable
#define MR 3
#define NV 1
#define TARGET COT__BASELINE
#define FMADD cot__exact_f32x4
#define FMADD1 COT__FMAF
#define AT_ONCE 1
#define SQUARE 4
#include "backend/cpu/gemm/gemm_template.h"

#define T double
#define V cot__f64x2
#define N(name) name##_f64_portable
#define MR 3
#define NV 1
#define TARGET COT__BASELINE
#define FMADD cot__exact_f64x2
#define FMADD1 COT__FMA
#define AT_ONCE 1
#define SQUARE 2
#include "backend/cpu/gemm/gemm_template.h"

#if defined(__aarch64__)

#define TURN_F64(r)                                                                                                    \
    do {                                                                                                               \
        float64x2_t a = (float64x2_t)r[0], b_ = (float64x2_t)r[1];                                                     \
        r[0] = (V)vzip1q_f64(a, b_), r[1] = (V)vzip2q_f64(a, b_);                                                      \
    } while (0)
#define TURN_F32(r)                                                                                                    \
    do {                                                                                                               \
        float32x4_t low = vzip1q_f32((float32x4_t)r[0], (float32x4_t)r[1]),                                            \
                    high = vzip2q_f32((float32x4_t)r[0], (float32x4_t)r[1]),                                           \
                    low_ = vzip1q_f32((float32x4_t)r[2], (float32x4_t)r[3]),                                           \
                    high_ = vzip2q_f32((float32x4_t)r[2], (float32x4_t)r[3]);                                          \
        r[0] = (V)vzip1q_f64((float64x2_t)low, (float64x2_t)low_);                                                     \
        r[1] = (V)vzip2q_f64((float64x2_t)low, (float64x2_t)low_);                                                     \
        r[2] = (V)vzip1q_f64((float64x2_t)high, (float64x2_t)high_);                                                   \
        r[3] = (V)vzip2q_f64((float64x2_t)high, (float64x2_t)high_);                                                   \
    } while (0)

/* 24 sums in 32 registers. */
#define T float
#define V cot__f32x4
#define N(name) name##_f32_neon
#define MR 6
#define NV 4
#define TARGET
#define FMADD cot__fused_f32x4
#define FMADD1 __builtin_fmaf
#define AT_ONCE 8
#define SQUARE 4
#define GATHER(p, x) (cot__f32x4)vld1q_f32(p[0] + (x))
#define TURN TURN_F32
#define GROUPS 2
#define BEHIND 0
#include "backend/cpu/gemm/gemm_template.h"

#define T double
#define V cot__f64x2
#define N(name) name##_f64_neon
#define MR 6
#define NV 4
#define TARGET
#define FMADD cot__fused_f64x2
#define FMADD1 __builtin_fma
#define AT_ONCE 8
#define SQUARE 2
#define GATHER(p, x) (cot__f64x2)vld1q_f64(p[0] + (x))
#define TURN TURN_F64
#define GROUPS 4
#define BEHIND 0
#include "backend/cpu/gemm/gemm_template.h"

#endif

#if defined(__x86_64__)

/* The 16 bytes at x elements behind each pointer of p, side by side in a register; and the squares
 * within its quarters turned: interleaved once in f64, twice in f32. */
#define GATHER_F32_AVX2(p, x)                                                                                          \
    _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p[0] + (x))), _mm_loadu_ps(p[1] + (x)), 1)
#define GATHER_F64_AVX2(p, x)                                                                                          \
    _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(p[0] + (x))), _mm_loadu_pd(p[1] + (x)), 1)
#define GATHER_F64_AVX512(p, x)                                                                                        \
    _mm512_mask_broadcast_f64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(p[0] + (x))), 0xf0, _mm256_loadu_pd(p[1] + (x)))
#define RUN_F32(p) _mm256_castps_pd(_mm256_loadu_ps(p))
#define GATHER_F32_AVX512(p, x)                                                                                        \
    _mm512_castpd_ps(                                                                                                  \
        _mm512_mask_broadcast_f64x4(_mm512_castpd256_pd512(RUN_F32(p[0] + (x))), 0xf0, RUN_F32(p[1] + (x))))
#define TURN_F64(prefix, r)                                                                                            \
    do {                                                                                                               \
        V low = prefix##_unpacklo_pd(r[0], r[1]);                                                                      \
        r[1] = prefix##_unpackhi_pd(r[0], r[1]);                                                                       \
        r[0] = low;                                                                                                    \
    } while (0)
#define TURN_F32(prefix, r)                                                                                            \
    do {                                                                                                               \
        V a = prefix##_unpacklo_ps(r[0], r[1]), b_ = prefix##_unpackhi_ps(r[0], r[1]);                                 \
        V c = prefix##_unpacklo_ps(r[2], r[3]), d = prefix##_unpackhi_ps(r[2], r[3]);                                  \
        r[0] = prefix##_shuffle_ps(a, c, 0x44), r[1] = prefix##_shuffle_ps(a, c, 0xee);                                \
        r[2] = prefix##_shuffle_ps(b_, d, 0x44), r[3] = prefix##_shuffle_ps(b_, d, 0xee);                              \
    } while (0)

/* Runs of 32 bytes of two columns in a register: what was turned within quarters is put in order by
 * quarters. */
#define QUARTERS(type, low, high)                                                                                      \
    do {                                                                                                               \
        V even = _mm512_shuffle_##type(low, high, 0x88);                                                               \
        high = _mm512_shuffle_##type(low, high, 0xdd);                                                                 \
        low = even;                                                                                                    \
    } while (0)
#define TURN_F64_AVX512(r)                                                                                             \
    do {                                                                                                               \
        TURN_F64(_mm512, (r));                                                                                         \
        TURN_F64(_mm512, (r + 2));                                                                                     \
        UNROLL for (int h = 0; h < 2; h++) QUARTERS(f64x2, r[h], r[h + 2]);                                            \
    } while (0)
#define TURN_F32_AVX512(r)                                                                                             \
    do {                                                                                                               \
        TURN_F32(_mm512, (r));                                                                                         \
        TURN_F32(_mm512, (r + 4));                                                                                     \
        UNROLL for (int h = 0; h < 4; h++) QUARTERS(f32x4, r[h], r[h + 4]);                                            \
    } while (0)

#define T float
#define V __m256
#define N(name) name##_f32_avx2
#define MR 6
#define NV 2
#define TARGET __attribute__((target("avx2,fma")))
#define FMADD _mm256_fmadd_ps
#define FMADD1 __builtin_fmaf
#define AT_ONCE 8
#define SQUARE 4
#define GATHER GATHER_F32_AVX2
#define TURN(r) TURN_F32(_mm256, r)
#define GROUPS 2
#define BEHIND 4
#include "backend/cpu/gemm/gemm_template.h"

#define T double
#define V __m256d
#define N(name) name##_f64_avx2
#define MR 6
#define NV 2
#define TARGET __attribute__((target("avx2,fma")))
#define FMADD _mm256_fmadd_pd
#define FMADD1 __builtin_fma
#define AT_ONCE 8
#define SQUARE 4
#define GATHER GATHER_F64_AVX2
#define TURN(r) TURN_F64(_mm256, r)
#define GROUPS 2
#define BEHIND 0
#define FAR_BEHIND 8
#include "backend/cpu/gemm/gemm_template.h"

#define T float
#define V __m512
#define N(name) name##_f32_avx512
#define MR 12
#define NV 2
#define NARROW
#define TARGET __attribute__((target("avx512f,avx2,fma")))
#define FMADD _mm512_fmadd_ps
#define FMADD1 __builtin_fmaf
#define AT_ONCE 8
#define SQUARE 4
#define GATHER GATHER_F32_AVX512
#define TURN TURN_F32_AVX512
#define RUN 32
#define BESIDE 4
#define GROUPS 2
#define BEHIND 4
#define FAR_DOTS dots_f32_avx2 /* 16 places of memory at a time, not 32; in f64 eight, not 16 */
#include "backend/cpu/gemm/gemm_template.h"

#define T double
#define V __m512d
#define N(name) name##_f64_avx512
#define MR 12
#define NV 2
#define NARROW
#define TARGET __attribute__((target("avx512f,avx2,fma")))
#define FMADD _mm512_fmadd_pd
#define FMADD1 __builtin_fma
#define AT_ONCE 8
#define SQUARE 4
#define GATHER GATHER_F64_AVX512
#define TURN TURN_F64_AVX512
#define RUN 32
#define BESIDE 2
#define GROUPS 2
#define BEHIND 4
#define FAR_DOTS dots_f64_avx2
#include "backend/cpu/gemm/gemm_template.h"

#endif

const cot__gemm_kernels *cot__gemm_kernels_of(cot_dtype d) {
#if defined(__x86_64__)
    if (cot__cpu_isa() == COT__ISA_AVX512) return d == COT_F32 ? &kernels_f32_avx512 : &kernels_f64_avx512;
    if (cot__cpu_isa() == COT__ISA_AVX2) return d == COT_F32 ? &kernels_f32_avx2 : &kernels_f64_avx2;
#elif defined(__aarch64__)
    if (cot__cpu_isa() == COT__ISA_NEON) return d == COT_F32 ? &kernels_f32_neon : &kernels_f64_neon;
#endif
#if COT__HAS_FAST
    if (cot__cpu_bits() == COT__BITS_FAST) return d == COT_F32 ? &kernels_f32 : &kernels_f64;
#endif
    return d == COT_F32 ? &kernels_f32_portable : &kernels_f64_portable;
}
