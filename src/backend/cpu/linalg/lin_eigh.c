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

static double room_of(cot_dtype d, int64_t n) {
    if (cot__lapack_takes(n, n)) return cot__lapack_eigh_work(d, n);
    double panels = (double)cot__gemm_workspace(d, n, n, 2 * COT__LIN_BASE), blocks = cot__lin_block_room(d, n, n);
    return panels > blocks ? panels : blocks;
}

static cot__lin_plan plan_of(const cot__view *a) {
    double n = (double)a->shape[a->ndim - 1];
    return (cot__lin_plan){.count = cot__lin_count(a, 2),
                           .cost = 9 * n * n * n,
                           .work = (n * n + n + cot__lin_eigen_work(n) + 2 * n + 2) * cot__dtype_size(a->dtype),
                           .shared = n > COT__LIN_BASE ? room_of(a->dtype, (int64_t)n) : -1,
                           .tells = true};
}

int64_t cot__lin_eigh_workspace(const cot__view *a) {
    cot__lin_plan p = plan_of(a);
    return cot__lin_bytes(&p);
}

void cot__lin_eigh(const cot__view *a, const cot__view *v, const cot__view *w, void *scratch, int64_t *status) {
    cot__lin_plan p = plan_of(a);
    cot__lin_job  j = {.a = a, .z = v, .more = {w}, .one = a->dtype == COT_F64 ? one_f64 : one_f32};
    cot__lin_run(&j, &p, scratch, status);
}
