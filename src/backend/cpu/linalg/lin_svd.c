/* lin_svd.c: singular values by one-sided Jacobi rotations, which find small ones as precisely as
 * large ones. */
#include "backend/cpu/linalg/lin.h"

#define LIN_TEMPLATE "backend/cpu/linalg/lin_svd.inc"
#include "backend/cpu/linalg/lin_types.h"

bool cot__lin_svd(const cot_allocator *al, const cot__view *a, const cot__view *packed, uint8_t *bad) {
    double m = (double)a->shape[a->ndim - 2], n = (double)a->shape[a->ndim - 1], k = m < n ? m : n, l = m < n ? n : m;
    double       work = 8 * k + (2 * k * l + k * k + k + singular_work_f64(k, l)) * cot__dtype_size(a->dtype);
    cot__lin_job j = {.al = al, .a = a, .z = packed, .bad = bad, .one = a->dtype == COT_F64 ? one_f64 : one_f32};
    return cot__lin_run(&j, cot__lin_count(a, 2), 60 * k * k * l, work, k > COT__LIN_BASE);
}
