/* uniform.h: uniform(seed, [shape], scale), numbers that any language makes alike from a
 * counter. */
#ifndef COT_CLI_UNIFORM_H
#define COT_CLI_UNIFORM_H

#include <stdint.h>

/* Element i, row-major: between -scale and scale. */
double uniform_at(uint64_t seed, uint64_t i, double scale);

#endif
