/* lin_eigh.c: eigenvalues and eigenvectors of symmetric matrices: Householder's tridiagonal form,
 * then QL steps with implicit shifts. */
#include "backend/cpu/linalg/lin.h"

#include "base/cpu.h"
#include "base/parallel.h"

/* Rows that a loop reads and writes are different ones: without a test, and a second loop, for
 * those that are not. */
#ifdef __clang__
#define APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define APART _Pragma("GCC ivdep")
#endif

#define LIN_TEMPLATE "backend/cpu/linalg/lin_eigh.inc"
#include "backend/cpu/linalg/lin_types.h"

bool cot__lin_eigh(const cot_allocator *al, const cot__view *a, const cot__view *packed, uint8_t *bad) {
    double       n = (double)a->shape[a->ndim - 1];
    double       work = (n * n + n + cot__lin_eigen_work(n) + 2 * n + 2) * cot__dtype_size(a->dtype);
    cot__lin_job j = {.al = al, .a = a, .z = packed, .bad = bad, .one = a->dtype == COT_F64 ? one_f64 : one_f32};
    return cot__lin_run(&j, cot__lin_count(a, 2), 9 * n * n * n, work, n > COT__LIN_BASE);
}
