/* blocks_f32_avx512.c: vector kernels in f32 for AVX-512 (F, BW, DQ, VL); CMakeLists.txt gives this
 * file the option. */
#if defined(__x86_64__)
#include "backend/cpu/elementwise/blocks.h"
#include "rules/words/vector_words_f32.h"

#define VECTOR_WORDS
#define T float
#define F(name) name##_vf32
#define S(name) name##_vf32
#define N(name) name##_f32_avx512
#define MASK int32_t
#define PLAIN cot__blocks_f32
#define CHUNK 16
#define NEAR trig_is_near_vf32
#include "backend/cpu/elementwise/blocks_vector.inc"
#else
typedef int cot__not_avx512_f32;
#endif
