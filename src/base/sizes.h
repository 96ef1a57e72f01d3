/* sizes.h: arithmetic on sizes: numbers that users give, and results computed from them before they
 * are checked.
 *
 * Sums and products do not wrap: they end at COT__SIZE_MOST (or its opposite), a size that no array
 * has and that every check of a shape refuses (cot__check_shape, cot__checked_size). So an extent
 * may be computed first and checked once. After such a check plain products are safe: all extents
 * of an accepted shape, with 0 counted as 1, have a product below 2^59. */
#ifndef COT_SIZES_H
#define COT_SIZES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COT__SIZE_MOST INT64_MAX

static inline int64_t cot__size_add(int64_t a, int64_t b) {
    int64_t z;
    return !__builtin_add_overflow(a, b, &z) ? z : a < 0 ? -COT__SIZE_MOST : COT__SIZE_MOST;
}

static inline int64_t cot__size_sub(int64_t a, int64_t b) {
    int64_t z;
    return !__builtin_sub_overflow(a, b, &z) ? z : a < 0 ? -COT__SIZE_MOST : COT__SIZE_MOST;
}

static inline int64_t cot__size_mul(int64_t a, int64_t b) {
    int64_t z;
    return !__builtin_mul_overflow(a, b, &z) ? z : (a < 0) != (b < 0) ? -COT__SIZE_MOST : COT__SIZE_MOST;
}

/* The size of -a. */
static inline int64_t cot__size_neg(int64_t a) { return cot__size_sub(0, a); }

/* The product of n extents, none negative, in which 0 counts as 1. Strides are made of the other
 * extents, so their product must be representable too. */
static inline int64_t cot__size_product(int n, const int64_t *extent) {
    int64_t size = 1;
    for (int k = 0; k < n; k++) size = cot__size_mul(size, extent[k] > 0 ? extent[k] : 1);
    return size;
}

/* Bytes of `count` elements of `size` bytes. False if no allocation could have as many. */
static inline bool cot__size_bytes(int64_t count, int64_t size, size_t *bytes) {
    int64_t all = cot__size_mul(count, size);
    *bytes = (size_t)all;
    return count >= 0 && all < COT__SIZE_MOST / 2 && (uint64_t)all <= PTRDIFF_MAX;
}

/* The number of elements that n taps, `dilation` apart, reach over; 0 for no taps. */
static inline int64_t cot__size_reach(int64_t n, int64_t dilation) {
    return n > 0 ? cot__size_add(cot__size_mul(n - 1, dilation), 1) : 0;
}

/* The number of windows of `reach` elements, `stride` apart, within n elements, where reach <=
 * n. */
static inline int64_t cot__size_windows(int64_t n, int64_t reach, int64_t stride) {
    return cot__size_sub(n, reach) / stride + 1;
}

/* The smallest number of the form 2^a 3^b 5^c that is at least n: a length whose transform is
 * fast. */
static inline int64_t cot__fft_fast_length(int64_t n) {
    int64_t best = INT64_MAX;
    for (int64_t five = 1;; five *= 5) {
        for (int64_t odd = five;; odd *= 3) {
            int64_t even = odd;
            while (even < n && even <= INT64_MAX / 2) even *= 2;
            if (even >= n && even < best) best = even;
            if (odd >= n || odd > INT64_MAX / 3) break;
        }
        if (five >= n || five > INT64_MAX / 5) return best;
    }
}

#endif
