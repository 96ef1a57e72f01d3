/* blocks.c: the tables of block kernels by instruction set and compute type. */
#include "backend/cpu/elementwise/blocks.h"

#if defined(__x86_64__)
extern const cot__block_kernels cot__blocks_f64_avx2[], cot__blocks_f32_avx2[], cot__blocks_f64_avx512[],
    cot__blocks_f32_avx512[];
#elif defined(__aarch64__)
extern const cot__block_kernels cot__blocks_f64_neon[], cot__blocks_f32_neon[];
#endif

const cot__block_kernels *const cot__vector_blocks[COT__ISAS][2] = {
    [COT__ISA_PLAIN] = {cot__blocks_f64, cot__blocks_f32},
#if defined(__x86_64__)
    [COT__ISA_AVX2] = {cot__blocks_f64_avx2, cot__blocks_f32_avx2},
    [COT__ISA_AVX512] = {cot__blocks_f64_avx512, cot__blocks_f32_avx512},
#elif defined(__aarch64__)
    [COT__ISA_NEON] = {cot__blocks_f64_neon, cot__blocks_f32_neon},
#endif
};
