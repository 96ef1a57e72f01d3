/* uniform.h: uniform(seed, [shape], scale): numbers made from a counter, so that any language can
 * make the same ones. */
#ifndef COT_CLI_UNIFORM_H
#define COT_CLI_UNIFORM_H

#include <stdint.h>

/* Element i in row-major order: between -scale and scale. */
double uniform_at(uint64_t seed, uint64_t i, double scale);

#endif
