/* elementary.c: see elementary.h. On x86 the version with software_fma.h, and the choice between it
 * and elementary_fma.c; elsewhere the only version. */
#if defined(__x86_64__)
#include "base/cpu.h"
#include "base/math/elementary_fma.h"

/* Without FMA each multiply-add is a call, so what functions share may be one, too: a copy of it in
 * each of them took 34 kB. */
#define VM static inline
#define DOUBLE(name) static inline double name##_plain
#define FLOAT(name) static inline float name##f_plain
#include "base/math/elementary.inc"

/* A comparison and a jump, without a frame, are all that stands before the function. */
#define FUSES (atomic_load_explicit(&cot__cpu_chosen, memory_order_relaxed) > COT__ISA_PLAIN + 1)
#define UNFUSED static __attribute__((noinline))

/* Also the first call, before the instruction set is chosen. */
#define FUNCTION(name)                                                                                                 \
    UNFUSED double name##_unfused(double x) { return cot__cpu_fuses() ? cot__##name##_fma(x) : name##_plain(x); }      \
    UNFUSED float  name##f_unfused(float x) { return cot__cpu_fuses() ? cot__##name##f_fma(x) : name##f_plain(x); }    \
    double cot__##name(double x) { return __builtin_expect(FUSES, 1) ? cot__##name##_fma(x) : name##_unfused(x); }     \
    float  cot__##name##f(float x) { return __builtin_expect(FUSES, 1) ? cot__##name##f_fma(x) : name##f_unfused(x); }
COT__ELEMENTARY_UNARY(FUNCTION)
COT__ELEMENTARY_TRIG(FUNCTION)
#undef FUNCTION
#define FUNCTION(name)                                                                                                 \
    UNFUSED double name##_unfused(double x, double y) {                                                                \
        return cot__cpu_fuses() ? cot__##name##_fma(x, y) : name##_plain(x, y);                                        \
    }                                                                                                                  \
    UNFUSED float name##f_unfused(float x, float y) {                                                                  \
        return cot__cpu_fuses() ? cot__##name##f_fma(x, y) : name##f_plain(x, y);                                      \
    }                                                                                                                  \
    double cot__##name(double x, double y) {                                                                           \
        return __builtin_expect(FUSES, 1) ? cot__##name##_fma(x, y) : name##_unfused(x, y);                            \
    }                                                                                                                  \
    float cot__##name##f(float x, float y) {                                                                           \
        return __builtin_expect(FUSES, 1) ? cot__##name##f_fma(x, y) : name##f_unfused(x, y);                          \
    }
COT__ELEMENTARY_BINARY(FUNCTION)
#undef FUNCTION
#else
#define DOUBLE(name) double cot__##name
#define FLOAT(name) float cot__##name##f
#include "base/math/elementary.inc"
#endif
