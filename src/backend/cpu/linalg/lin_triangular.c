/* lin_triangular.c: triangular systems. */
#include "backend/cpu/linalg/lin.h"

#define LIN_TEMPLATE "backend/cpu/linalg/lin_triangular.inc"
#include "backend/cpu/linalg/lin_types.h"

bool cot__lin_triangular(const cot_allocator *al, const cot__view *a, int flags, const cot__view *b, uint8_t *bad) {
    double n = (double)a->shape[a->ndim - 1], size = (double)b->shape[b->ndim - 1] * (double)b->shape[b->ndim - 2];
    bool         large = n > COT__LIN_BASE;
    cot__lin_job j     = {
            .al = al, .a = a, .b = b, .flags = flags, .bad = bad, .one = a->dtype == COT_F64 ? one_f64 : one_f32};
    return cot__lin_run(&j, cot__lin_count(b, 2), n * size, large ? size * cot__dtype_size(a->dtype) : 0, large);
}
