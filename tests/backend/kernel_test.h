/* kernel_test.h: random arrays for tests of kernels, and how close a result must be.
 *
 * Arrays are drawn with permuted, skipped, negative and zero strides inside a larger buffer. */
#ifndef KERNEL_TEST_H
#define KERNEL_TEST_H

#include "backend/cpu/kernels.h"
#include "base/cpu.h"
#include "base/half.h"
#include "base/parallel.h"

#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- random arrays --------------------------------------------------------------------------- */

static uint64_t seed = 0x9e3779b97f4a7c15;

static inline uint64_t draw(void) { /* xorshift* */
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return seed * 0x2545f4914f6cdd1d;
}

static inline int    below(int n) { return (int)((draw() >> 33) % (uint64_t)n); }
/* in [-1, 1) */
static inline double uniform(void) { return (double)(int64_t)(draw() >> 11) * 0x1p-52 - 1; }

typedef struct array {
    cot__view v;
    int64_t   shape[COT_MAX_NDIM], stride[COT_MAX_NDIM];
    void     *memory;
} array;

enum { ALLOW_ZERO = 1, CONTIGUOUS = 2 };

/* v points into *a itself, so arrays are filled in place and never copied. */
static inline void make(array *a, cot_dtype d, int ndim, const int64_t *shape, int flags) {
    int     order[COT_MAX_NDIM];
    int64_t total = 1, base = 0;
    for (int i = 0; i < ndim; i++) order[i] = i;
    for (int i = ndim - 1; i > 0 && !(flags & CONTIGUOUS); i--) {
        int j = below(i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (int k = ndim - 1; k >= 0; k--) {
        int     i     = order[k];
        int64_t steps = flags & CONTIGUOUS ? 1 : 1 + (below(4) == 0);
        a->shape[i]   = shape[i];
        a->stride[i]  = total * steps;
        total *= (shape[i] > 0 ? shape[i] : 1) * steps;
        if (flags & CONTIGUOUS) continue;
        if ((flags & ALLOW_ZERO) && below(5) == 0) a->stride[i] = 0;
        else if (below(4) == 0) {
            base += a->stride[i] * (shape[i] > 0 ? shape[i] - 1 : 0);
            a->stride[i] = -a->stride[i];
        }
    }
    a->memory = calloc((size_t)total, (size_t)cot__dtype_size(d));
    assert_non_null(a->memory);
    a->v = (cot__view){(char *)a->memory + base * cot__dtype_size(d), d, ndim, a->shape, a->stride};
}

static inline void drop(array *a) { free(a->memory); }

static inline void *at(const cot__view *v, const int64_t *index) {
    int64_t o = 0;
    for (int i = 0; i < v->ndim; i++) o += index[i] * v->stride[i];
    return (char *)v->data + o * cot__dtype_size(v->dtype);
}

/* Next index in row-major order. */
static inline bool next(int ndim, const int64_t *shape, int64_t *index) {
    for (int i = ndim - 1; i >= 0; i--) {
        if (++index[i] < shape[i]) return true;
        index[i] = 0;
    }
    return false;
}

#define EACH(index, view)                                                                                              \
    for (int64_t index[COT_MAX_NDIM] = {0}, go_ = cot__count((view).ndim, (view).shape) > 0; go_;                      \
         go_ = next((view).ndim, (view).shape, index))

static inline int random_shape(int64_t *shape, int most_axes, int most_extent, bool zeros) {
    int ndim = below(most_axes + 1);
    for (int i = 0; i < ndim; i++) shape[i] = below(4) == 0 ? 1 : 1 + below(most_extent);
    if (zeros && ndim > 0 && below(10) == 0) shape[below(ndim)] = 0;
    return ndim;
}

static const double  specials[] = {0.0,
                                   -0.0,
                                   1,
                                   -1,
                                   0.5,
                                   -0.5,
                                   2.5,
                                   254.9,
                                   255,
                                   256,
                                   300,
                                   -3,
                                   65504,
                                   65520,
                                   1e-7,
                                   6e-8,
                                   1e-40,
                                   1e-310,
                                   2147483647,
                                   2147483648,
                                   -2147483648.0,
                                   -2147483649.0,
                                   0x1p62,
                                   0x1p63,
                                   -0x1p63,
                                   1e19,
                                   -1e19,
                                   3.4e38,
                                   3.5e38,
                                   1e300,
                                   -1e300,
                                   INFINITY,
                                   -INFINITY,
                                   NAN,
                                   1 + 0x1p-8,
                                   1 + 0x1p-8 + 0x1p-40,
                                   1 + 0x1p-11,
                                   1 + 0x1p-11 + 0x1p-40,
                                   16777217};
static const int64_t integers[] = {0,
                                   1,
                                   -1,
                                   127,
                                   128,
                                   255,
                                   256,
                                   257,
                                   -256,
                                   INT32_MAX,
                                   (int64_t)INT32_MAX + 1,
                                   INT32_MIN,
                                   (int64_t)INT32_MIN - 1,
                                   INT64_MAX,
                                   INT64_MIN,
                                   0x123456789abcdef,
                                   16777217,
                                   (1ll << 53) + 1,
                                   (1ll << 62) + (1ll << 54),
                                   (1ll << 62) + (1ll << 54) + 1,
                                   (1ll << 62) + (1ll << 54) - 1};

static inline void fill(const array *a, bool special) {
    EACH(i, a->v) {
        void *p = at(&a->v, i);
        if (!cot__dtype_is_float(a->v.dtype))
            cot__store_i64(p, a->v.dtype, special ? integers[below(COUNTOF(integers))] : below(7) - 3);
        else cot__store_f64(p, a->v.dtype, special ? specials[below(COUNTOF(specials))] : uniform());
    }
}

/* ---- numbers --------------------------------------------------------------------------------- */

static inline long double read_any(const void *p, cot_dtype d) {
    switch (d) {
    case COT_F64: return *(const double *)p;
    case COT_F32: return *(const float *)p;
    case COT_BF16: return cot__f32_from_bf16(*(const uint16_t *)p);
    case COT_F16: return cot__f32_from_f16(*(const uint16_t *)p);
    case COT_I64: return *(const int64_t *)p;
    case COT_I32: return *(const int32_t *)p;
    default: return *(const uint8_t *)p;
    }
}

static inline bool same(long double a, long double b) {
    return (a != a && b != b) || (a == b && signbit(a) == signbit(b));
}

/* Integers have no signed zero. */
static inline bool same_as(cot_dtype d, long double a, long double b) {
    return cot__dtype_is_float(d) ? same(a, b) : a == b;
}

static inline double unit(cot_dtype d) {
    static const double u[COT_DTYPE_COUNT] = {0x1p-53, 0x1p-24, 0x1p-8, 0x1p-11, 0, 0, 0, 0};
    return u[d];
}

/* |got - want| within `ulps` units of z's and the compute type's rounding, relative to scale. */
static inline void check_close(const char *what, cot_dtype d, long double got, long double want, long double scale,
                               double ulps) {
    if (same(got, want) || got == want) return;
    long double bound = scale * (ulps * unit(cot__dtype_compute(d)) + (d == COT_F64 || d == COT_F32 ? 0 : unit(d)));
    bound += d == COT_F16 ? 0x1p-24L : d == COT_F64 ? 0x1p-1074L : 0x1p-149L;
    if (!(fabsl(got - want) <= bound))
        fail_msg("%s %s: %Lg, want %Lg within %Lg", what, cot__dtype_name(d), got, want, bound);
}

#endif
