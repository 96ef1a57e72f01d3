/* lin_lu.c: LU with partial pivoting, systems solved with it, and determinants.
 *
 * The first of equal pivots is taken. Recursive in the columns, so that most work is in matrix
 * products. */
#include "backend/cpu/linalg/lin.h"
#include "base/math/elementary.h"

#define LIN_TEMPLATE "backend/cpu/linalg/lin_lu.inc"
#include "backend/cpu/linalg/lin_types.h"

/* Its permutation has elements where a matrix has none. */
static cot__lin_plan plan_of(const cot__view *a) {
    int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1], k = m < n ? m : n;
    bool    large = k > COT__LIN_BASE;
    return (cot__lin_plan){.count = m == 0 ? 0 : cot__count(a->ndim - 2, a->shape),
                           .cost = (double)m * (double)n * (double)k,
                           .work = large ? (double)k * (double)n * cot__dtype_size(a->dtype) : 0,
                           .shared = large ? (double)cot__gemm_workspace(a->dtype, m, n, k) : -1};
}

int64_t cot__lin_lu_workspace(const cot__view *a) {
    cot__lin_plan p = plan_of(a);
    return cot__lin_bytes(&p);
}

void cot__lin_lu(const cot__view *a, const cot__view *permutation, void *scratch) {
    cot__lin_plan p = plan_of(a);
    cot__lin_job  j = {.a = a, .permutation = permutation, .one = a->dtype == COT_F64 ? one_lu_f64 : one_lu_f32};
    cot__lin_run(&j, &p, scratch, NULL);
}

static cot__lin_plan plan_of_solve(const cot__view *factors, const cot__view *b) {
    int64_t n = factors->shape[factors->ndim - 1], k = b->shape[b->ndim - 1];
    double  size = (double)n * (double)k;
    return (cot__lin_plan){.count = cot__lin_count(b, 2),
                           .cost = 2 * (double)n * size,
                           .work = 2 * size * cot__dtype_size(b->dtype),
                           .shared = n > COT__LIN_BASE ? cot__lin_system_room(b->dtype, n, k) : -1,
                           .tells = true};
}

int64_t cot__lin_lu_solve_workspace(const cot__view *factors, const cot__view *b) {
    cot__lin_plan p = plan_of_solve(factors, b);
    return cot__lin_bytes(&p);
}

void cot__lin_lu_solve(const cot__view *factors, const cot__view *permutation, const cot__view *b, bool transposed,
                       const cot__view *z, void *scratch, int64_t *status) {
    cot__lin_plan p = plan_of_solve(factors, b);
    cot__lin_job  j = {.a           = factors,
                       .b           = b,
                       .z           = z,
                       .permutation = permutation,
                       .flags       = transposed,
                       .one         = b->dtype == COT_F64 ? one_solve_f64 : one_solve_f32};
    cot__lin_run(&j, &p, scratch, status);
}

typedef enum number { DETERMINANT, LOGARITHM, SIGN } number;

static double number_of(const cot__view *f, const cot__view *p, int64_t i, number what) {
    int64_t     n = f->shape[f->ndim - 1], step = f->stride[f->ndim - 2] + f->stride[f->ndim - 1];
    const void *d = cot__lin_at(f, 2, i);
    bool        wide = f->dtype == COT_F64;
    if (what == LOGARITHM) return wide ? logarithm_of_f64(d, step, n) : logarithm_of_f32(d, step, n);
    double sign = permutation_sign_f64(cot__lin_at(p, 1, i), p->stride[p->ndim - 1], n);
    if (what == SIGN) return wide ? sign_of_f64(d, step, n, sign) : sign_of_f32(d, step, n, sign);
    return wide ? product_of_f64(d, step, n, sign) : product_of_f32(d, step, n, sign);
}

/* The determinant of an empty matrix is 1, so these count too. */
static void write_numbers(const cot__view *factors, const cot__view *permutation, number what, const cot__view *z) {
    for (int64_t i = 0, count = cot__count(z->ndim, z->shape); i < count; i++)
        cot__store_f64((char *)z->data + i * cot__dtype_size(z->dtype), z->dtype,
                       number_of(factors, permutation, i, what));
}

void cot__lin_lu_det(const cot__view *factors, const cot__view *permutation, bool logarithm, const cot__view *z) {
    write_numbers(factors, permutation, logarithm ? LOGARITHM : DETERMINANT, z);
}

void cot__lin_lu_sign(const cot__view *factors, const cot__view *permutation, const cot__view *z) {
    write_numbers(factors, permutation, SIGN, z);
}

void cot__lin_lu_split(const cot__view *factors, const cot__view *l, const cot__view *u) {
    for (int64_t i = 0, count = cot__lin_count(factors, 2); i < count; i++)
        if (factors->dtype == COT_F64) split_f64(factors, l, u, i);
        else split_f32(factors, l, u, i);
}
