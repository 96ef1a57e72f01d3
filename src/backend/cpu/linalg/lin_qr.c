/* lin_qr.c: QR by Householder reflections, in blocks of columns. */
#include "backend/cpu/linalg/lin.h"

#define LIN_TEMPLATE "backend/cpu/linalg/lin_qr.inc"
#include "backend/cpu/linalg/lin_types.h"

bool cot__lin_qr(const cot_allocator *al, const cot__view *a, const cot__view *packed) {
    double       m = (double)a->shape[a->ndim - 2], n = (double)a->shape[a->ndim - 1];
    bool         large = n > COT__LIN_BASE;
    double       work = m * n + 2 * n + (large ? cot__lin_block_work(m, n) : 0);
    cot__lin_job j = {.al = al, .a = a, .z = packed, .one = a->dtype == COT_F64 ? one_f64 : one_f32};
    return cot__lin_run(&j, cot__lin_count(a, 2), 4 * m * n * n, work * cot__dtype_size(a->dtype), large);
}
