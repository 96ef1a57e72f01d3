/* The convolution kernels as built for a machine without AVX: test_conv.c compares them with the
 * definition. */
#define COT__CONV_ISA 0
#define COT__CONV_SLAB 4096 /* a few images at a time */
#define cot__conv_run conv_baseline
#define cot__conv_bytes conv_baseline_bytes
#include "backend/cpu/conv/conv.c"
