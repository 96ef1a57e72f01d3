/* uniform.c: multiplies the counter seed·2^32 + i + 1 by an odd constant, mixes it (splitmix64),
 * and takes 53 bits. */
#include "problem/uniform.h"

#include "base/random.h"

double uniform_at(uint64_t seed, uint64_t i, double scale) {
    return (2.0 * (double)(cot__mixed((seed << 32) + i) >> 11) * 0x1p-53 - 1.0) * scale;
}
