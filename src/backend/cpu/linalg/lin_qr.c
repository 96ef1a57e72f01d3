/* lin_qr.c: QR by Householder reflections, in blocks of columns. */
#include "backend/cpu/linalg/lin.h"

#define LIN_TEMPLATE "backend/cpu/linalg/lin_qr.inc"
#include "backend/cpu/linalg/lin_types.h"

static cot__lin_plan plan_of(const cot__view *a) {
    double m = (double)a->shape[a->ndim - 2], n = (double)a->shape[a->ndim - 1];
    bool   large = n > COT__LIN_BASE;
    double work = m * n + 2 * n + (large ? cot__lin_block_work(m, n) : 0);
    return (cot__lin_plan){.count = cot__lin_count(a, 2),
                           .cost = 4 * m * n * n,
                           .work = work * cot__dtype_size(a->dtype),
                           .shared = large ? cot__lin_block_room(a->dtype, (int64_t)m, (int64_t)n) : -1};
}

int64_t cot__lin_qr_workspace(const cot__view *a) {
    cot__lin_plan p = plan_of(a);
    return cot__lin_bytes(&p);
}

void cot__lin_qr(const cot__view *a, const cot__view *q, const cot__view *r, void *scratch) {
    cot__lin_plan p = plan_of(a);
    cot__lin_job  j = {.a = a, .z = q, .more = {r}, .one = a->dtype == COT_F64 ? one_f64 : one_f32};
    cot__lin_run(&j, &p, scratch, NULL);
}
