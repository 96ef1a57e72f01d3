/* lin_cholesky.c: Cholesky factors. Recursive in the columns, so that most work is in matrix
 * products. */
#include "backend/cpu/linalg/lin.h"

#define LIN_TEMPLATE "backend/cpu/linalg/lin_cholesky.inc"
#include "backend/cpu/linalg/lin_types.h"

bool cot__lin_cholesky(const cot_allocator *al, const cot__view *a, uint8_t *bad) {
    double       n = (double)a->shape[a->ndim - 1];
    bool         large = n > COT__LIN_BASE;
    cot__lin_job j = {.al = al, .a = a, .bad = bad, .one = a->dtype == COT_F64 ? one_f64 : one_f32};
    return cot__lin_run(&j, cot__lin_count(a, 2), n * n * n / 3, large ? n * n * cot__dtype_size(a->dtype) : 0, large);
}
