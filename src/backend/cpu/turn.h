/* turn.h: squares of a few vectors, transposed in registers, for tiles of matrices. */
#ifndef COT_CPU_TURN_H
#define COT_CPU_TURN_H

#include "backend/cpu/fused.h"

#include <string.h>

#if defined(__clang__)
#define COT__UNROLL _Pragma("unroll")
#else
#define COT__UNROLL _Pragma("GCC unroll 4")
#endif

/* A square of 16 bytes by 16 bytes, transposed: rows `rs` apart become rows `ts` apart. */
#if defined(__has_builtin)
#define TURNS __has_builtin(__builtin_shufflevector)
#else
#define TURNS 0
#endif
#if TURNS
#define MIX __builtin_shufflevector
static inline void turn_f32(float *to, int64_t ts, const float *from, int64_t rs) {
    cot__f32x4 r[4], c[4];
    COT__UNROLL for (int i = 0; i < 4; i++) memcpy(&r[i], from + i * rs, sizeof *r);
    cot__f32x4 a = MIX(r[0], r[1], 0, 4, 1, 5), b = MIX(r[0], r[1], 2, 6, 3, 7), d = MIX(r[2], r[3], 0, 4, 1, 5),
          e = MIX(r[2], r[3], 2, 6, 3, 7);
    c[0] = MIX(a, d, 0, 1, 4, 5), c[1] = MIX(a, d, 2, 3, 6, 7), c[2] = MIX(b, e, 0, 1, 4, 5),
    c[3] = MIX(b, e, 2, 3, 6, 7);
    COT__UNROLL for (int i = 0; i < 4; i++) memcpy(to + i * ts, &c[i], sizeof *c);
}
static inline void turn_f64(double *to, int64_t ts, const double *from, int64_t rs) {
    cot__f64x2 r[2];
    COT__UNROLL for (int i = 0; i < 2; i++) memcpy(&r[i], from + i * rs, sizeof *r);
    cot__f64x2 c[2] = {MIX(r[0], r[1], 0, 2), MIX(r[0], r[1], 1, 3)};
    COT__UNROLL for (int i = 0; i < 2; i++) memcpy(to + i * ts, &c[i], sizeof *c);
}
#if defined(__x86_64__)
typedef double f64x4 __attribute__((vector_size(32)));
static inline __attribute__((always_inline, target("avx2"))) void turn_f64_avx2(double *to, int64_t ts,
                                                                                const double *from, int64_t rs) {
    f64x4 r[4], c[4];
    COT__UNROLL for (int i = 0; i < 4; i++) memcpy(&r[i], from + i * rs, sizeof *r);
    f64x4 a = MIX(r[0], r[1], 0, 4, 2, 6), b = MIX(r[0], r[1], 1, 5, 3, 7), d = MIX(r[2], r[3], 0, 4, 2, 6),
          e = MIX(r[2], r[3], 1, 5, 3, 7);
    c[0] = MIX(a, d, 0, 1, 4, 5), c[1] = MIX(b, e, 0, 1, 4, 5), c[2] = MIX(a, d, 2, 3, 6, 7),
    c[3] = MIX(b, e, 2, 3, 6, 7);
    COT__UNROLL for (int i = 0; i < 4; i++) memcpy(to + i * ts, &c[i], sizeof *c);
}
#endif
#undef MIX
#else
static inline void turn_f32(float *to, int64_t ts, const float *from, int64_t rs) {
    (void)to, (void)ts, (void)from, (void)rs;
}
static inline void turn_f64(double *to, int64_t ts, const double *from, int64_t rs) {
    (void)to, (void)ts, (void)from, (void)rs;
}
#define turn_f64_avx2 turn_f64
#endif
#define turn_f32_avx2 turn_f32
#define turn_f32_avx512 turn_f32
#define turn_f64_avx512 turn_f64_avx2
#define turn_f32_neon turn_f32
#define turn_f64_neon turn_f64
#define turn_f32_portable turn_f32
#define turn_f64_portable turn_f64

#endif
