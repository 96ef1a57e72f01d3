/* cotangent.h as the examples include it here: what differentiates is looked at (by_tiers.h). */
#include "../../../include/cotangent.h"

#include "../by_tiers.h"
