/* elementary.c: see elementary.h. On x86 the version with software_fma.h, and the choice between it
 * and elementary_fma.c; elsewhere the only version. */
#if defined(__x86_64__)
#include "base/cpu.h"
#include "base/math/elementary_fma.h"

#define DOUBLE(name) static __attribute__((noinline)) double name##_plain
#define FLOAT(name) static __attribute__((noinline)) float name##f_plain
#include "base/math/elementary.inc"

#define FUNCTION(name)                                                                                                 \
    double cot__##name(double x) { return cot__cpu_fuses() ? cot__##name##_fma(x) : name##_plain(x); }                 \
    float  cot__##name##f(float x) { return cot__cpu_fuses() ? cot__##name##f_fma(x) : name##f_plain(x); }
COT__ELEMENTARY_UNARY(FUNCTION)
COT__ELEMENTARY_TRIG(FUNCTION)
#undef FUNCTION
#define FUNCTION(name)                                                                                                 \
    double cot__##name(double x, double y) { return cot__cpu_fuses() ? cot__##name##_fma(x, y) : name##_plain(x, y); } \
    float  cot__##name##f(float x, float y) {                                                                          \
        return cot__cpu_fuses() ? cot__##name##f_fma(x, y) : name##f_plain(x, y);                                      \
    }
COT__ELEMENTARY_BINARY(FUNCTION)
#undef FUNCTION
#else
#define DOUBLE(name) double cot__##name
#define FLOAT(name) float cot__##name##f
#include "base/math/elementary.inc"
#endif
