/* convert.h: one element of any dtype as a C number, and back: the library's only set of
 * conversions.
 *
 * Each conversion rounds once. Floats to integers saturate and NaN becomes 0; integers to narrower
 * integers wrap; anything non-zero (NaN too) becomes true. base/half.h rounds to the half formats.
 * element.c makes functions for single values from these, backend/cpu/copy.c makes loops. */
#ifndef COT_CONVERT_H
#define COT_CONVERT_H

#include "base/half.h"

#include <stdint.h>

/* The limits are floats that are exact. A number between them converts without overflow. */
static inline int64_t saturate_i64(double v) {
    if (v >= 0x1p63) return INT64_MAX;
    if (v < -0x1p63) return INT64_MIN;
    return v == v ? (int64_t)v : 0;
}

static inline int32_t saturate_i32(double v) {
    if (v >= 0x1p31) return INT32_MAX;
    if (v <= -0x1p31) return INT32_MIN;
    return v == v ? (int32_t)v : 0;
}

static inline uint8_t saturate_u8(double v) {
    if (v >= 255) return 255;
    return v > 0 ? (uint8_t)v : 0;
}

/* An i64 as a double that rounds to any narrower format as the i64 itself would. If it does not fit
 * into 53 bits, the lost bits leave a sticky bit behind (rounding to odd). Then rounding twice
 * equals rounding once. */
static inline double sticky_f64(int64_t v) {
    uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;
    if (u >> 53) u = (u & ~(uint64_t)2047) | ((u & 2047) ? 2048 : 0);
    return v < 0 ? -(double)u : (double)u;
}

static inline uint16_t bf16_from_i64(int64_t v) { return cot__bf16_from_f64(sticky_f64(v)); }
static inline uint16_t f16_from_i64(int64_t v) { return cot__f16_from_f64(sticky_f64(v)); }

/* The C type in which each dtype is stored, and the C type as which a stored value is read: float,
 * double, int64_t or int32_t. */
typedef double   stored_F64;
typedef float    stored_F32;
typedef uint16_t stored_BF16;
typedef uint16_t stored_F16;
typedef int64_t  stored_I64;
typedef int32_t  stored_I32;
typedef uint8_t  stored_U8;
typedef uint8_t  stored_BOOL;

#define READ_F64(s) (s)
#define READ_F32(s) (s)
#define READ_BF16(s) cot__f32_from_bf16(s)
#define READ_F16(s) cot__f32_from_f16(s)
#define READ_I64(s) (s)
#define READ_I32(s) (s)
#define READ_U8(s) ((int32_t)(s))
#define READ_BOOL(s) ((int32_t)((s) != 0))

#define BY_CLASS(v, from_f64, from_f32, from_i64, from_i32)                                                            \
    _Generic((v), double: from_f64, float: from_f32, int64_t: from_i64, int32_t: from_i32)(v)

static inline int64_t i64_from_i64(int64_t v) { return v; }
static inline int32_t i32_from_i64(int64_t v) { return (int32_t)(uint32_t)(uint64_t)v; }
static inline uint8_t u8_from_i64(int64_t v) { return (uint8_t)(uint64_t)v; }

#define WRITE_F64(v) ((double)(v))
#define WRITE_F32(v) ((float)(v))
#define WRITE_BF16(v) BY_CLASS(v, cot__bf16_from_f64, cot__bf16_from_f32, bf16_from_i64, cot__bf16_from_f64)
#define WRITE_F16(v) BY_CLASS(v, cot__f16_from_f64, cot__f16_from_f32, f16_from_i64, cot__f16_from_f64)
#define WRITE_I64(v) BY_CLASS(v, saturate_i64, saturate_i64, i64_from_i64, i64_from_i64)
#define WRITE_I32(v) BY_CLASS(v, saturate_i32, saturate_i32, i32_from_i64, i32_from_i64)
#define WRITE_U8(v) BY_CLASS(v, saturate_u8, saturate_u8, u8_from_i64, u8_from_i64)
#define WRITE_BOOL(v) ((uint8_t)((v) != 0))

#define EACH_DTYPE(X) X(F64) X(F32) X(BF16) X(F16) X(I64) X(I32) X(U8) X(BOOL)

#endif
