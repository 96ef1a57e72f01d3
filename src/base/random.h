/* random.h: numbers from a key and a counter: Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror,
 * Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011).
 *
 * The block cipher maps key and counter, two 32-bit words each, to two random words. There is no
 * state: word pair i of a key is the cipher of i, so any part of a sequence may be computed alone,
 * by any thread. Keys, splits and words are those of JAX (jax.random.key, split, fold_in, bits with
 * partitionable Threefry). */
#ifndef COT_RANDOM_H
#define COT_RANDOM_H

#include <cotangent.h>

/* a[i], b[i] = the words of counter first + i, for i < n; counters are 64 bits, the upper half in
 * the first word. */
void cot__random_words(cot_key key, uint64_t first, int n, uint32_t *restrict a, uint32_t *restrict b);

/* log x for x > 0 that is not subnormal, from additions, products and quotients only: the same bits
 * on every machine, whatever its libm. 1.5 ulp. */
double cot__plain_log(double x);

/* Number i of the sequence splitmix64: scrambled bits for uses without a key. */
static inline uint64_t cot__mixed(uint64_t i) {
    uint64_t z = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Entry i of a direction that is unrelated to the structure of any function: of either sign,
 * between 1 and 2 in size, so that every entry counts. */
static inline double cot__mixed_direction(uint64_t i) {
    uint64_t z = cot__mixed(i);
    double   v = 1 + (double)(z << 1 >> 12) * 0x1p-52;
    return z >> 63 ? -v : v;
}

#endif
