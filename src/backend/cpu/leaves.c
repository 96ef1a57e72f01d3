/* leaves.c: see leaves.h. */
#include "backend/cpu/leaves.h"
#include "backend/cpu/fused.h"

#include <string.h>

/* gcc makes vectors of 256 bits unless it is told otherwise; clang has no such attribute. With the
 * checks of a sanitizer in each step clang takes minutes for what it unrolls. */
#if defined(__clang__) && defined(COT_SANITIZED)
#define UNROLL
#define AVX512 "avx512f"
#elif defined(__clang__)
#define UNROLL _Pragma("unroll")
#define AVX512 "avx512f"
#else
#define AVX512 "avx512f,prefer-vector-width=512"
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* chains of a leaf: enough to hide the latency of an addition in 16-byte registers */
enum { LANES = 16 };

#define T double
#define V cot__f64x2
#define Q cot__f64x2
#define FOLDED(v) (v[0] + v[1])
#define N(name) name##_f64
#define TARGET
#include "backend/cpu/leaf_template.h"
#define T float
#define V cot__f32x4
#define Q cot__f32x4
#define FOLDED(v) ((v[0] + v[2]) + (v[1] + v[3]))
#define N(name) name##_f32
#define TARGET
#include "backend/cpu/leaf_template.h"

#if defined(__x86_64__)
#define T double
#define V __m256d
#define Q cot__f64x2
#define FOLDED(v) (v[0] + v[1])
#define N(name) name##_f64_avx2
#define TARGET __attribute__((target("avx2")))
#include "backend/cpu/leaf_template.h"
#define T float
#define V __m256
#define Q cot__f32x4
#define FOLDED(v) ((v[0] + v[2]) + (v[1] + v[3]))
#define N(name) name##_f32_avx2
#define TARGET __attribute__((target("avx2")))
#include "backend/cpu/leaf_template.h"
#define T double
#define V __m512d
#define Q cot__f64x2
#define FOLDED(v) (v[0] + v[1])
#define N(name) name##_f64_avx512
#define TARGET __attribute__((target(AVX512)))
#include "backend/cpu/leaf_template.h"
#define T float
#define V __m512
#define Q cot__f32x4
#define FOLDED(v) ((v[0] + v[2]) + (v[1] + v[3]))
#define N(name) name##_f32_avx512
#define TARGET __attribute__((target(AVX512)))
#include "backend/cpu/leaf_template.h"
#endif

#define LEAVES(suffix)                                                                                                 \
    {sums_##suffix, sum_##suffix, dots_##suffix, dot_##suffix, add_##suffix, columns_##suffix}
const cot__leaves *cot__leaves_of(cot_dtype d) {
    static const cot__leaves leaves[][2] = {
        {LEAVES(f64), LEAVES(f32)},
#if defined(__x86_64__)
        {LEAVES(f64_avx2), LEAVES(f32_avx2)},
        {LEAVES(f64_avx512), LEAVES(f32_avx512)},
#endif
    };
    return &leaves[COUNTOF(leaves) > 1 ? cot__cpu_isa() : 0][d == COT_F32];
}
