/* vexp.c: rows one element at a time, and the choice of a vector version. */
#include "backend/cpu/reduce/vexp.h"
#include "base/math/elementary.h"

#define ONE_BY_ONE
#define N(name) name##_plain
#include "backend/cpu/reduce/vexp.inc"

#define DECLARE(T, F, isa)                                                                                             \
    void cot__exp_less_##F##isa(int64_t, const T *, T, T *);                                                           \
    void cot__divide_##F##isa(int64_t, T *, T);                                                                        \
    void cot__less_##F##isa(int64_t, const T *, T, T, T *);                                                            \
    T    cot__most_##F##isa(int64_t, const T *);
#define BY_ISA(isa) DECLARE(double, f64, isa) DECLARE(float, f32, isa)
#if defined(__x86_64__)
BY_ISA(_avx2) BY_ISA(_avx512)
#define EACH(name) {name##_plain, name##_avx2, name##_avx512}
#elif defined(__aarch64__)
BY_ISA(_neon)
#define EACH(name) {name##_plain, name##_neon}
#else
#define EACH(name) {name##_plain}
#endif

#define CHOICES(T, F)                                                                                                  \
    void cot__exp_less_##F(int64_t n, const T *x, T shift, T *z) {                                                     \
        static void (*const exp_less[COT__ISAS])(int64_t, const T *, T, T *) = EACH(cot__exp_less_##F);                \
        exp_less[cot__cpu_isa()](n, x, shift, z);                                                                      \
    }                                                                                                                  \
    void cot__divide_##F(int64_t n, T *z, T by) {                                                                      \
        static void (*const divide[COT__ISAS])(int64_t, T *, T) = EACH(cot__divide_##F);                               \
        divide[cot__cpu_isa()](n, z, by);                                                                              \
    }                                                                                                                  \
    void cot__less_##F(int64_t n, const T *x, T a, T b, T *z) {                                                        \
        static void (*const less[COT__ISAS])(int64_t, const T *, T, T, T *) = EACH(cot__less_##F);                     \
        less[cot__cpu_isa()](n, x, a, b, z);                                                                           \
    }                                                                                                                  \
    T cot__most_##F(int64_t n, const T *x) {                                                                           \
        static T (*const most[COT__ISAS])(int64_t, const T *) = EACH(cot__most_##F);                                   \
        return most[cot__cpu_isa()](n, x);                                                                             \
    }
CHOICES(double, f64)
CHOICES(float, f32)
