/* blocks_f64.c: block kernels of the elementwise operations in f64. */
#include "base/math/special.h"
#include "backend/cpu/elementwise/blocks.h"

#define T double
#define F(name) cot__##name
#define S(name) name
#define N(name) name##_f64
#include "backend/cpu/elementwise/blocks.inc"
