/* recipe_rows.c: products of a number and a row, written, added up or folded as they are made.
 *
 * The bits are those of separate passes, whatever the width of the registers: rows are done element
 * by element, and the fold is that of a leaf in reduce_template.h: LANES chains, value i going to
 * chain i % LANES, folded by halves. */
#include "backend/cpu/gemm/recipe.h"
#include "base/cpu.h"

#include <string.h>

enum { LANES = 16 };

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

#define TARGET
#define BYTES 16
#define T double
#define AT_ONCE 2
#define FOLDED(v) (v[0] + v[1])
#define N(name) name##_f64
#include "backend/cpu/gemm/recipe_rows.h"
#define T float
#define AT_ONCE 2
#define FOLDED(v) ((v[0] + v[2]) + (v[1] + v[3]))
#define N(name) name##_f32
#include "backend/cpu/gemm/recipe_rows.h"
#undef TARGET
#undef BYTES

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2")))
#define BYTES 32
#define T double
#define AT_ONCE 2
#define FOLDED(v) (v[0] + v[1])
#define N(name) name##_f64_avx2
#include "backend/cpu/gemm/recipe_rows.h"
#define T float
#define AT_ONCE 4
#define FOLDED(v) ((v[0] + v[2]) + (v[1] + v[3]))
#define N(name) name##_f32_avx2
#include "backend/cpu/gemm/recipe_rows.h"
#undef TARGET
#undef BYTES

#define TARGET __attribute__((target("avx512f,avx2")))
#define BYTES 64
#define T double
#define AT_ONCE 4
#define FOLDED(v) (v[0] + v[1])
#define N(name) name##_f64_avx512
#include "backend/cpu/gemm/recipe_rows.h"
#define T float
#define AT_ONCE 8
#define FOLDED(v) ((v[0] + v[2]) + (v[1] + v[3]))
#define N(name) name##_f32_avx512
#include "backend/cpu/gemm/recipe_rows.h"
#undef TARGET
#undef BYTES
#endif

const cot__row_kernels *cot__row_kernels_of(cot_dtype dtype) {
    static const cot__row_kernels kernels[][2] = {
        {{row_f64, leaves_f64}, {row_f32, leaves_f32}},
#if defined(__x86_64__)
        {{row_f64_avx2, leaves_f64_avx2}, {row_f32_avx2, leaves_f32_avx2}},
        {{row_f64_avx512, leaves_f64_avx512}, {row_f32_avx512, leaves_f32_avx512}},
#endif
    };
    int set = cot__cpu_isa() == COT__ISA_AVX512 ? 2 : cot__cpu_isa() == COT__ISA_AVX2;
    return &kernels[set < COUNTOF(kernels) ? set : 0][dtype == COT_F32];
}
