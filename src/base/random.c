/* random.c: the generator and the keys. See random.h. */
#include "base/random.h"

static inline uint32_t rotated(uint32_t x, int by) { return x << by | x >> (32 - by); }

/* Five times four rounds, a word of the key schedule after each four. One call a counter; the loop
 * over counters vectorises. */
void cot__random_words(cot_key key, uint64_t first, int n, uint32_t *restrict a, uint32_t *restrict b) {
    const uint32_t k0 = key.word[0], k1 = key.word[1], k2 = k0 ^ k1 ^ 0x1bd11bdau;
    for (int i = 0; i < n; i++) {
        uint64_t counter = first + (uint64_t)i;
        uint32_t x = (uint32_t)(counter >> 32) + k0, y = (uint32_t)counter + k1;
#define ROUND(by) x += y, y = rotated(y, by) ^ x;
#define FOUR_ODD ROUND(13) ROUND(15) ROUND(26) ROUND(6)
#define FOUR_EVEN ROUND(17) ROUND(29) ROUND(16) ROUND(24)
        FOUR_ODD x += k1, y += k2 + 1;
        FOUR_EVEN x += k2, y += k0 + 2;
        FOUR_ODD x += k0, y += k1 + 3;
        FOUR_EVEN x += k1, y += k2 + 4;
        FOUR_ODD x += k2, y += k0 + 5;
#undef FOUR_ODD
#undef FOUR_EVEN
#undef ROUND
        a[i] = x;
        b[i] = y;
    }
}

/* ---- keys ------------------------------------------------------------------------------------ */

cot_key cot_key_of(uint64_t seed) { return (cot_key){.word = {(uint32_t)(seed >> 32), (uint32_t)seed}}; }

/* A step stays, to be folded in last: so folds need no tape. */
cot_key cot_key_fold(cot_key key, uint64_t data) {
    cot_key z = key;
    cot__random_words(key, data, 1, &z.word[0], &z.word[1]);
    return z;
}

void cot_key_split(cot_key key, int n, cot_key *out) {
    for (int i = 0; out && i < n; i++) out[i] = cot_key_fold(key, (uint64_t)i);
}

/* ---- a logarithm ----------------------------------------------------------------------------- */

/* x = m 2^e with m within sqrt(1/2) and sqrt(2); log m = 2 atanh(s) with s = (m - 1) / (m + 1), |s|
 * < 0.172: its series to s^23. */
double cot__plain_log(double x) {
    /* e ln2_hi is exact */
    static const double ln2_hi = 0x1.62e42feep-1, ln2_lo = 0x1.a39ef35793c76p-33;
    union { double f; uint64_t u; } m = {x};
    uint64_t shifted = m.u - 0x3fe6a09e667f3bcdu; /* from sqrt(1/2) on */
    int64_t  e = (int64_t)shifted >> 52;
    m.u -= (uint64_t)e << 52;
    double f = m.f - 1, s = f / (2 + f), q = s * s, sum = 1.0 / 23;
    for (int k = 21; k >= 3; k -= 2) sum = sum * q + 1.0 / k;
    /* log m = f - (f²/2 - s (f²/2 + 2 q sum)): the large term f is exact */
    double half = 0.5 * f * f, small = s * (half + 2 * q * sum);
    return (double)e * ln2_hi + (f - (half - (small + (double)e * ln2_lo)));
}
