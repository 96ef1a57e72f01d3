/* pool_avx2.h: rows of 2 by 2 windows in f32, eight at a time; included by pool.c. The same results
 * as the rows of pool_template.h.
 *
 * Deinterleaving leaves lanes in the order 0 1 4 5 2 3 6 7; the last step puts them right. The end
 * of a row is done again together with what is before it. */

#define AVX2 __attribute__((target("avx2")))

/* a > b, or a is NaN and b is not: a bit mask. */
static inline __attribute__((always_inline)) AVX2 __m256 larger_avx2(__m256 a, __m256 b) {
    return _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_NLE_UQ), _mm256_cmp_ps(b, b, _CMP_ORD_Q));
}

static inline __attribute__((always_inline)) AVX2 __m256i in_order_avx2(__m256 v) {
    return _mm256_permute4x64_epi64(_mm256_castps_si256(v), 0xd8);
}

static inline __attribute__((always_inline)) AVX2 void max_8_avx2(const float *a, const float *b, float *z,
                                                                  int32_t *index) {
    __m256 a0 = _mm256_loadu_ps(a), a1 = _mm256_loadu_ps(a + 8), b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
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
    _mm256_storeu_si256((void *)z, in_order_avx2(_mm256_blendv_ps(left, right, take)));
    _mm256_storeu_si256((void *)index, in_order_avx2(at));
}

static AVX2 void max_row_2x2_avx2(const float *a, const float *b, float *z, int32_t *index, int64_t n) {
    if (n < 8) {
        max_row_2x2_f32(a, b, z, index, n);
        return;
    }
    for (int64_t w = 0; w<n; w = w + 16> n && w + 8 < n ? n - 8 : w + 8)
        max_8_avx2(a + 2 * w, b + 2 * w, z + w, index + w);
}

static inline __attribute__((always_inline)) AVX2 void put_8_avx2(__m256 v, __m256i index, int first, float *to) {
    __m256 even = _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_cmpeq_epi32(index, _mm256_set1_epi32(first))));
    __m256 odd = _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_cmpeq_epi32(index, _mm256_set1_epi32(first + 1))));
    __m256 low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
    _mm256_storeu_ps(to, _mm256_permute2f128_ps(low, high, 0x20));
    _mm256_storeu_ps(to + 8, _mm256_permute2f128_ps(low, high, 0x31));
}

static AVX2 void put_row_2x2_avx2(const float *z, const int32_t *index, float *a, float *b, int64_t n) {
    if (n < 8) {
        put_row_2x2_f32(z, index, a, b, n);
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
