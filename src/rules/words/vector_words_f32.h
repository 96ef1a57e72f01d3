/* vector_words_f32.h: the same as vector_words_f64.h for float. */
#ifndef COT_VECTOR_WORDS_F32_H
#define COT_VECTOR_WORDS_F32_H

#include "base/math/special.h"
#include "base/math/vmath_f32.h"

#define fabs_vf32 __builtin_fabsf
#define sqrt_vf32 __builtin_sqrtf
#define floor_vf32 __builtin_floorf
#define ceil_vf32 __builtin_ceilf
#define rint_vf32 __builtin_rintf
#define trunc_vf32 __builtin_truncf
#define cot__fma_vf32 COT__FMAF
#define cot__tanh_vf32 tanh_vf32
#define cot__sigmoid_vf32 sigmoid_vf32
#define cot__log_sigmoid_vf32 log_sigmoid_vf32
#define cot__log1pexp_vf32 log1pexp_vf32
#define cot__logaddexp_vf32 logaddexp_vf32
#define cot__mish_vf32 mish_vf32
#define cot__silu_vf32 silu_vf32
#define cot__log10_vf32 log10_vf32
#define cot__acosh_vf32 acosh_vf32
#define cot__gelu_vf32 gelu_vf32
#define cot__erfc_vf32 erfc_vf32
#define cot__cbrt_vf32 cbrt_vf32
#define cot__gelu_tanh_vf32 gelu_tanh_vf32
/* ---- */
#define fmod_vf32 cot__fmodf
#define cot__erfinv_vf32 cot__erfinvf
#define cot__lgamma_vf32 cot__lgammaf
#define cot__digamma_vf32 cot__digammaf
#define cot__polygamma_vf32 cot__polygammaf
#define cot__remainder_vf32 cot__remainderf

#endif
