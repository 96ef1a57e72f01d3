/* vector_words_f64.h: F(name) and S(name) of kernel_vocabulary.h for vector kernels of double: the
 * functions of vmath_f64.h and builtins. The functions below the line are calls;
 * blocks_vector.inc leaves out their operations. */
#ifndef COT_VECTOR_WORDS_F64_H
#define COT_VECTOR_WORDS_F64_H

#include "base/math/special.h"
#include "base/math/vmath_f64.h"

#define fabs_vf64 __builtin_fabs
#define sqrt_vf64 __builtin_sqrt
#define floor_vf64 __builtin_floor
#define ceil_vf64 __builtin_ceil
#define rint_vf64 __builtin_rint
#define trunc_vf64 __builtin_trunc
#define cot__fma_vf64 COT__FMA
#define cot__tanh_vf64 tanh_vf64
#define cot__sigmoid_vf64 sigmoid_vf64
#define cot__log_sigmoid_vf64 log_sigmoid_vf64
#define cot__log1pexp_vf64 log1pexp_vf64
#define cot__logaddexp_vf64 logaddexp_vf64
#define cot__mish_vf64 mish_vf64
#define cot__silu_vf64 silu_vf64
#define cot__log10_vf64 log10_vf64
#define cot__acosh_vf64 acosh_vf64
#define cot__gelu_vf64 gelu_vf64
#define cot__erfc_vf64 erfc_vf64
#define cot__cbrt_vf64 cbrt_vf64
#define cot__gelu_tanh_vf64 gelu_tanh_vf64
/* ---- */
#define fmod_vf64 cot__fmod
#define cot__erfinv_vf64 cot__erfinv
#define cot__lgamma_vf64 cot__lgamma
#define cot__digamma_vf64 cot__digamma
#define cot__polygamma_vf64 cot__polygamma
#define cot__remainder_vf64 cot__remainder

#endif
