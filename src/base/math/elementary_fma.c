/* elementary_fma.c: the elementary functions for processors with FMA as an instruction;
 * CMakeLists.txt gives this file the option. elementary.c calls them. */
#if defined(__x86_64__)
#define DOUBLE(name) double cot__##name##_fma
#define FLOAT(name) float cot__##name##f_fma
#include "base/math/elementary_fma.h"
#include "base/math/elementary.inc"
#else
typedef int cot__not_fma;
#endif
