/* pool_avx2.h: rows of 2 by 2 windows in f32, eight at a time; included by pool.c. The same results
 * as the rows of pool_template.h.
 *
 * Deinterleaving leaves lanes in the order 0 1 4 5 2 3 6 7; the last step puts them right. The end
 * of a row is done again together with what is before it; a shorter row is loaded and stored
 * through masks. */

#define AVX2 __attribute__((target("avx2")))

/* a > b, or a is NaN and b is not: a bit mask. */
static inline __attribute__((always_inline)) AVX2 __m256 larger_avx2(__m256 a, __m256 b) {
    return _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_NLE_UQ), _mm256_cmp_ps(b, b, _CMP_ORD_Q));
}

static inline __attribute__((always_inline)) AVX2 __m256i in_order_avx2(__m256 v) {
    return _mm256_permute4x64_epi64(_mm256_castps_si256(v), 0xd8);
}

/* The first n lanes, of 8 at most. */
static inline __attribute__((always_inline)) AVX2 __m256i lanes_avx2(int64_t n) {
    static const int32_t lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const void *)(lanes + 8 - n));
}

/* The maxima of eight windows, whose elements are the upper and lower halves of a and b, and the
 * places of the maxima. */
static inline __attribute__((always_inline)) AVX2 void max_of_8_avx2(__m256 a0, __m256 a1, __m256 b0, __m256 b1,
                                                                     __m256i *z, __m256i *index) {
    __m256 left = _mm256_shuffle_ps(a0, a1, 0x88), right = _mm256_shuffle_ps(a0, a1, 0xdd);
    __m256 left_low = _mm256_shuffle_ps(b0, b1, 0x88), right_low = _mm256_shuffle_ps(b0, b1, 0xdd);
    __m256 l = larger_avx2(left_low, left), r = larger_avx2(right_low, right);
    left = _mm256_blendv_ps(left, left_low, l);
    right = _mm256_blendv_ps(right, right_low, r);
    __m256 more = larger_avx2(right, left), less = larger_avx2(left, right);
    /* equal, and only the left one is below */
    __m256 take = _mm256_or_ps(more, _mm256_andnot_ps(_mm256_or_ps(less, r), l));
    __m256 two = _mm256_castsi256_ps(_mm256_set1_epi32(2)), one = _mm256_castsi256_ps(_mm256_set1_epi32(1));
    __m256 at = _mm256_blendv_ps(_mm256_and_ps(l, two), _mm256_or_ps(_mm256_and_ps(r, two), one), take);
    *z = in_order_avx2(_mm256_blendv_ps(left, right, take));
    *index = in_order_avx2(at);
}

/* A row of fewer than 8. */
static AVX2 void max_short_2x2_avx2(const float *a, const float *b, float *z, int32_t *index, int64_t n) {
    int64_t rest = n > 4 ? n - 4 : 0;
    __m256i first = lanes_avx2(2 * (n - rest)), second = lanes_avx2(2 * rest), few = lanes_avx2(n), max, at;
    /* no address beyond the row is made up */
    const float *more = rest ? a + 8 : a, *more_low = rest ? b + 8 : b;
    max_of_8_avx2(_mm256_maskload_ps(a, first), _mm256_maskload_ps(more, second), _mm256_maskload_ps(b, first),
                  _mm256_maskload_ps(more_low, second), &max, &at);
    _mm256_maskstore_epi32((int *)(void *)z, few, max);
    _mm256_maskstore_epi32(index, few, at);
    cot__written(z, (size_t)n * sizeof *z);
    cot__written(index, (size_t)n * sizeof *index);
}

static AVX2 void max_row_2x2_avx2(const float *a, const float *b, float *z, int32_t *index, int64_t n) {
    __m256i max, at;
    if (n < 8) {
        max_short_2x2_avx2(a, b, z, index, n);
        return;
    }
    for (int64_t w = 0; w < n; w = w + 16 > n && w + 8 < n ? n - 8 : w + 8) {
        const float *upper = a + 2 * w, *lower = b + 2 * w;
        max_of_8_avx2(_mm256_loadu_ps(upper), _mm256_loadu_ps(upper + 8), _mm256_loadu_ps(lower),
                      _mm256_loadu_ps(lower + 8), &max, &at);
        _mm256_storeu_si256((void *)(z + w), max);
        _mm256_storeu_si256((void *)(index + w), at);
    }
}

/* Two rows of eight: what goes to the places `first` and `first` + 1 of each window. */
static inline __attribute__((always_inline)) AVX2 void put_of_8_avx2(__m256 v, __m256i index, int first, __m256 to[2]) {
    __m256 even = _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_cmpeq_epi32(index, _mm256_set1_epi32(first))));
    __m256 odd = _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_cmpeq_epi32(index, _mm256_set1_epi32(first + 1))));
    __m256 low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
    to[0] = _mm256_permute2f128_ps(low, high, 0x20);
    to[1] = _mm256_permute2f128_ps(low, high, 0x31);
}

static inline __attribute__((always_inline)) AVX2 void put_8_avx2(__m256 v, __m256i index, int first, float *to) {
    __m256 both[2];
    put_of_8_avx2(v, index, first, both);
    _mm256_storeu_ps(to, both[0]);
    _mm256_storeu_ps(to + 8, both[1]);
}

static inline __attribute__((always_inline)) AVX2 void put_few_avx2(__m256 v, __m256i index, int first, float *to,
                                                                    int64_t n) {
    __m256  both[2];
    int64_t rest = n > 4 ? n - 4 : 0;
    put_of_8_avx2(v, index, first, both);
    _mm256_maskstore_ps(to, lanes_avx2(2 * (n - rest)), both[0]);
    if (rest) _mm256_maskstore_ps(to + 8, lanes_avx2(2 * rest), both[1]);
    cot__written(to, (size_t)(2 * n) * sizeof *to);
}

static AVX2 void put_row_2x2_avx2(const float *z, const int32_t *index, float *a, float *b, int64_t n) {
    if (n < 8) {
        __m256  v = _mm256_maskload_ps(z, lanes_avx2(n));
        __m256i i = _mm256_maskload_epi32(index, lanes_avx2(n));
        put_few_avx2(v, i, 0, a, n);
        put_few_avx2(v, i, 2, b, n);
        return;
    }
    for (int64_t w = 0; w < n; w = w + 16 > n && w + 8 < n ? n - 8 : w + 8) {
        __m256  v = _mm256_loadu_ps(z + w);
        __m256i i = _mm256_loadu_si256((const void *)(index + w));
        put_8_avx2(v, i, 0, a + 2 * w);
        put_8_avx2(v, i, 2, b + 2 * w);
    }
}

#undef AVX2
