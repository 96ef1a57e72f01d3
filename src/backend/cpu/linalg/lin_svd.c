/* lin_svd.c: singular values by one-sided Jacobi rotations, which find small ones as precisely as
 * large ones. */
#include "backend/cpu/linalg/lin.h"

#define LIN_TEMPLATE "backend/cpu/linalg/lin_svd.inc"
#include "backend/cpu/linalg/lin_types.h"

static double most(double x, double y) { return x > y ? x : y; }

/* The products with x (k,l), those of the eigenvectors of x xᵀ, and those of the directions. */
static double room_of(cot_dtype d, int64_t k, int64_t l) {
    if (cot__lapack_takes(k, l)) return cot__lapack_svd_work(d, k, l);
    double inner = (double)cot__gemm_workspace(d, k, k, l), turned = (double)cot__gemm_workspace(d, k, l, k);
    double panels = (double)cot__gemm_workspace(d, k, k, 2 * COT__LIN_BASE);
    return most(most(inner, turned), most(panels, cot__lin_block_room(d, l, k)));
}

static cot__lin_plan plan_of(const cot__view *a) {
    double m = (double)a->shape[a->ndim - 2], n = (double)a->shape[a->ndim - 1], k = m < n ? m : n, l = m < n ? n : m;
    return (cot__lin_plan){
        .count = cot__lin_count(a, 2),
        .cost = 60 * k * k * l,
        .work = 8 * k + (2 * k * l + k * k + k + singular_work_f64(k, l)) * cot__dtype_size(a->dtype),
        .shared = k > COT__LIN_BASE ? room_of(a->dtype, (int64_t)k, (int64_t)l) : -1,
        .tells = true};
}

int64_t cot__lin_svd_workspace(const cot__view *a) {
    cot__lin_plan p = plan_of(a);
    return cot__lin_bytes(&p);
}

void cot__lin_svd(const cot__view *a, const cot__view *u, const cot__view *s, const cot__view *vt, void *scratch,
                  int64_t *status) {
    cot__lin_plan p = plan_of(a);
    cot__lin_job  j = {.a = a, .z = u, .more = {s, vt}, .one = a->dtype == COT_F64 ? one_f64 : one_f32};
    cot__lin_run(&j, &p, scratch, status);
}
