/* blocks_f32.c: block kernels of the elementwise operations in f32 (bf16 and f16 are computed here
 * too). */
#include "base/math/special.h"
#include "backend/cpu/elementwise/blocks.h"

#define T float
#define F(name) cot__##name##f
#define S(name) name##f
#define N(name) name##_f32
#include "backend/cpu/elementwise/blocks.inc"
