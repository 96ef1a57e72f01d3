/* recipe_rows.c: products of a number and a row, written, added up or folded as they are made.
 *
 * The bits are those of separate passes, whatever the width of the registers: rows are done element
 * by element, and the fold is that of a leaf in reduce_template.h: LANES chains, value i going to
 * chain i % LANES, folded by halves. (Registers of 64 bytes were measured and are no faster.) */
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
#define FOLDED(v) (v[0] + v[1])
#define N(name) name##_f64
#include "backend/cpu/gemm/recipe_rows.h"
#define T float
#define FOLDED(v) ((v[0] + v[2]) + (v[1] + v[3]))
#define N(name) name##_f32
#include "backend/cpu/gemm/recipe_rows.h"
#undef TARGET
#undef BYTES

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2")))
#define BYTES 32
#define T double
#define FOLDED(v) (v[0] + v[1])
#define N(name) name##_f64_avx2
#include "backend/cpu/gemm/recipe_rows.h"
#define T float
#define FOLDED(v) ((v[0] + v[2]) + (v[1] + v[3]))
#define N(name) name##_f32_avx2
#include "backend/cpu/gemm/recipe_rows.h"
#undef TARGET
#undef BYTES
#endif

const cot__row_kernels *cot__row_kernels_of(cot_dtype dtype) {
    static const cot__row_kernels kernels[][2] = {
        {{row_f64, leaves_f64}, {row_f32, leaves_f32}},
#if defined(__x86_64__)
        {{row_f64_avx2, leaves_f64_avx2}, {row_f32_avx2, leaves_f32_avx2}},
#endif
    };
    return &kernels[COUNTOF(kernels) > 1 && cot__cpu_isa() >= COT__ISA_AVX2][dtype == COT_F32];
}
