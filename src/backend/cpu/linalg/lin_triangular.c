/* lin_triangular.c: triangular systems. */
#include "backend/cpu/linalg/lin.h"

#define LIN_TEMPLATE "backend/cpu/linalg/lin_triangular.inc"
#include "backend/cpu/linalg/lin_types.h"

static cot__lin_plan plan_of(const cot__view *a, const cot__view *b) {
    int64_t n = a->shape[a->ndim - 1], rows = b->shape[b->ndim - 2], columns = b->shape[b->ndim - 1];
    double  size = (double)rows * (double)columns;
    bool    large = n > COT__LIN_BASE;
    return (cot__lin_plan){.count = cot__lin_count(b, 2),
                           .cost = (double)n * size,
                           .work = large ? size * cot__dtype_size(a->dtype) : 0,
                           .shared = large ? cot__lin_system_room(a->dtype, n, rows == n ? columns : rows) : -1,
                           .tells = true};
}

int64_t cot__lin_triangular_workspace(const cot__view *a, const cot__view *b) {
    cot__lin_plan p = plan_of(a, b);
    return cot__lin_bytes(&p);
}

void cot__lin_triangular(const cot__view *a, int flags, const cot__view *b, void *scratch, int64_t *status) {
    cot__lin_plan p = plan_of(a, b);
    cot__lin_job  j = {.a = a, .b = b, .flags = flags, .one = a->dtype == COT_F64 ? one_f64 : one_f32};
    cot__lin_run(&j, &p, scratch, status);
}
