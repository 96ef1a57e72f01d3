/* lin_cholesky.c: Cholesky factors. Recursive in the columns, so that most work is in matrix
 * products. */
#include "backend/cpu/linalg/lin.h"
#include "base/math/elementary.h"

#define LIN_TEMPLATE "backend/cpu/linalg/lin_cholesky.inc"
#include "backend/cpu/linalg/lin_types.h"

static cot__lin_plan plan_of(const cot__view *a) {
    int64_t n = a->shape[a->ndim - 1];
    double  side = (double)n;
    bool    large = n > COT__LIN_BASE;
    return (cot__lin_plan){.count = cot__lin_count(a, 2),
                           .cost = side * side * side / 3,
                           .work = large ? side * side * cot__dtype_size(a->dtype) : 0,
                           .shared = large ? (double)cot__gemm_workspace(a->dtype, n, n, n) : -1,
                           .tells = true};
}

int64_t cot__lin_cholesky_workspace(const cot__view *a) {
    cot__lin_plan p = plan_of(a);
    return cot__lin_bytes(&p);
}

void cot__lin_cholesky(const cot__view *a, void *scratch, int64_t *status) {
    cot__lin_plan p = plan_of(a);
    cot__lin_job  j = {.a = a, .one = a->dtype == COT_F64 ? one_f64 : one_f32};
    cot__lin_run(&j, &p, scratch, status);
}
