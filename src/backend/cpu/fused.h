/* fused.h: multiply-adds that round once, for kernels whose bits are the same on every processor:
 * the types of vectors that every machine has, NEON's instructions, and exact software for the
 * plain kernels where portable bits are asked for (base/cpu.h). */
#ifndef COT_FUSED_H
#define COT_FUSED_H

#include "base/cpu.h"
#include "base/math/software_fma.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

typedef float  cot__f32x4 __attribute__((vector_size(16)));
typedef double cot__f64x2 __attribute__((vector_size(16)));

#define COT__INLINED static inline __attribute__((always_inline))

/* On x86-64 each element is a call already, for processors that are rare by now: one call around
 * them takes 4 kB less. */
#if defined(__x86_64__)
#define COT__EXACT static __attribute__((noinline, unused))
#else
#define COT__EXACT COT__INLINED
#endif
COT__EXACT cot__f32x4 cot__exact_f32x4(cot__f32x4 a, cot__f32x4 b, cot__f32x4 c) {
    for (int l = 0; l < 4; l++) c[l] = COT__FMAF(a[l], b[l], c[l]);
    return c;
}
COT__EXACT cot__f64x2 cot__exact_f64x2(cot__f64x2 a, cot__f64x2 b, cot__f64x2 c) {
    for (int l = 0; l < 2; l++) c[l] = COT__FMA(a[l], b[l], c[l]);
    return c;
}

#if defined(__aarch64__)
COT__INLINED cot__f32x4 cot__fused_f32x4(cot__f32x4 a, cot__f32x4 b, cot__f32x4 c) {
    return (cot__f32x4)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
COT__INLINED cot__f64x2 cot__fused_f64x2(cot__f64x2 a, cot__f64x2 b, cot__f64x2 c) {
    return (cot__f64x2)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
#endif

/* Whether there are plain kernels that round products and sums; elsewhere plain ones are
 * portable. */
#define COT__HAS_FAST (COT__ISAS > 1)

#endif
