/* vexp.c: e^x one by one, and the choice of a vector version. */
#include "backend/cpu/reduce/vexp.h"
#include "base/math/elementary.h"

static void exp_f64_plain(int n, const double *x, double *z) {
    for (int i = 0; i < n; i++) z[i] = cot__exp(x[i]);
}

static void exp_f32_plain(int n, const float *x, float *z) {
    for (int i = 0; i < n; i++) z[i] = cot__expf(x[i]);
}

typedef void exp_f64_fn(int, const double *, double *);
typedef void exp_f32_fn(int, const float *, float *);

#if defined(__x86_64__)
exp_f64_fn cot__exp_f64_avx2, cot__exp_f64_avx512;
exp_f32_fn cot__exp_f32_avx2, cot__exp_f32_avx512;
static exp_f64_fn *const exp_f64[COT__ISAS] = {exp_f64_plain, cot__exp_f64_avx2, cot__exp_f64_avx512};
static exp_f32_fn *const exp_f32[COT__ISAS] = {exp_f32_plain, cot__exp_f32_avx2, cot__exp_f32_avx512};
#elif defined(__aarch64__)
exp_f64_fn cot__exp_f64_neon;
exp_f32_fn cot__exp_f32_neon;
static exp_f64_fn *const exp_f64[COT__ISAS] = {exp_f64_plain, cot__exp_f64_neon};
static exp_f32_fn *const exp_f32[COT__ISAS] = {exp_f32_plain, cot__exp_f32_neon};
#else
static exp_f64_fn *const exp_f64[COT__ISAS] = {exp_f64_plain};
static exp_f32_fn *const exp_f32[COT__ISAS] = {exp_f32_plain};
#endif

void cot__exp_f64(int n, const double *x, double *z) { exp_f64[cot__cpu_isa()](n, x, z); }
void cot__exp_f32(int n, const float *x, float *z) { exp_f32[cot__cpu_isa()](n, x, z); }
