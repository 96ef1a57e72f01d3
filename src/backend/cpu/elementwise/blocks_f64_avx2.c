/* blocks_f64_avx2.c: vector kernels in f64 for AVX2 and FMA; CMakeLists.txt gives this file the
 * option. */
#if defined(__x86_64__)
#include "backend/cpu/elementwise/blocks.h"
#include "rules/words/vector_words_f64.h"

#define VECTOR_WORDS
#define T double
#define F(name) name##_vf64
#define S(name) name##_vf64
#define N(name) name##_f64_avx2
#define MASK int64_t
#define PLAIN cot__blocks_f64
#define CHUNK 8
#define NEAR trig_is_near_vf64
#include "backend/cpu/elementwise/blocks_vector.inc"
#else
typedef int cot__not_avx2_f64;
#endif
