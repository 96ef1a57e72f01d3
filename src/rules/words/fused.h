/* fused.h: fma without a call where the processor has the instruction, which the baseline build may
 * not assume. Same bits either way: both round once. */
#ifndef COT_FUSED_H
#define COT_FUSED_H

#include "base/math/software_fma.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__FMA__)
/* Are the functions below inlined? Code that asks this before it loads values into registers need
 * not save these registers around a call. */
static inline int    cot__fma_is_inline(void) { return __builtin_cpu_supports("fma"); }
static inline double cot__fma(double a, double b, double c) {
    if (!__builtin_cpu_supports("fma")) return cot__fma_called(a, b, c);
    __asm__("vfmadd213sd %2, %1, %0" : "+x"(a) : "x"(b), "x"(c));
    return a;
}
static inline float cot__fmaf(float a, float b, float c) {
    if (!__builtin_cpu_supports("fma")) return cot__fmaf_called(a, b, c);
    __asm__("vfmadd213ss %2, %1, %0" : "+x"(a) : "x"(b), "x"(c));
    return a;
}
#else
static inline int    cot__fma_is_inline(void) { return 1; }
static inline double cot__fma(double a, double b, double c) { return COT__FMA(a, b, c); }
static inline float  cot__fmaf(float a, float b, float c) { return COT__FMAF(a, b, c); }
#endif

#endif
