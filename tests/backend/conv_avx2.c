/* The convolution kernels as built for a machine without AVX-512: test_conv.c compares them with
 * the definition. */
#define COT__CONV_ISA 1
#define cot__conv_run conv_avx2
#define cot__conv_bytes conv_avx2_bytes
#include "backend/cpu/conv/conv.c"
