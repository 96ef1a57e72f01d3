/* uniform.c: the counter seed·2^32 + i + 1 times an odd constant, mixed (splitmix64), 53 bits of
 * it. */
#include "problem/uniform.h"

#include "base/random.h"

double uniform_at(uint64_t seed, uint64_t i, double scale) {
    return (2.0 * (double)(cot__mixed((seed << 32) + i) >> 11) * 0x1p-53 - 1.0) * scale;
}
