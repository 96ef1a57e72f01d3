/* recipe_leaf.c: leaves of sums over products of a column and a row, or over their squares, that are never in memory.
 *
 * The bits are those of the leaves of reduce_template.h over written elements: LANES chains, value i going to chain i % LANES, folded by halves.
 * Chains are kept in registers, whatever the width of these: each is added up in the same order. */
#include "backend/cpu/recipe.h"
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
#define N(name) name##_f64
#include "backend/cpu/recipe_leaf.h"
#define T float
#define N(name) name##_f32
#include "backend/cpu/recipe_leaf.h"
#undef TARGET
#undef BYTES

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2")))
#define BYTES 32
#define T double
#define N(name) name##_f64_avx2
#include "backend/cpu/recipe_leaf.h"
#define T float
#define N(name) name##_f32_avx2
#include "backend/cpu/recipe_leaf.h"
#undef TARGET
#undef BYTES

#define TARGET __attribute__((target("avx512f")))
#define BYTES 64
#define T double
#define N(name) name##_f64_avx512
#include "backend/cpu/recipe_leaf.h"
#define T float
#define N(name) name##_f32_avx512
#include "backend/cpu/recipe_leaf.h"
#undef TARGET
#undef BYTES
#define EACH(name) {name, name##_avx2, name##_avx512}
#elif defined(__aarch64__)
#define EACH(name) {name, name}
#else
#define EACH(name) {name}
#endif

cot__leaf_f64 *cot__leaf_sum_f64(bool squared) {
    static cot__leaf_f64 *const leaf[2][COT__ISAS] = {EACH(sum_f64), EACH(squares_f64)};
    return leaf[squared][cot__cpu_isa()];
}

cot__leaf_f32 *cot__leaf_sum_f32(bool squared) {
    static cot__leaf_f32 *const leaf[2][COT__ISAS] = {EACH(sum_f32), EACH(squares_f32)};
    return leaf[squared][cot__cpu_isa()];
}
