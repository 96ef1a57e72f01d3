/* uniform.c: the counter seed·2^32 + i + 1 times an odd constant, mixed (splitmix64), 53 bits of it. */
#include "uniform.h"

double uniform_at(uint64_t seed, uint64_t i, double scale) {
    uint64_t z = ((seed << 32) + i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    z ^= z >> 31;
    return (2.0 * (double)(z >> 11) * 0x1p-53 - 1.0) * scale;
}
