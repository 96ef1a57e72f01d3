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

/* 1 or -1, by the lengths of its cycles. A cycle is counted at its smallest element. What is no
 * permutation ends too: at what is no place, or after n steps. */
static double permutation_sign(const int64_t *p, int64_t stride, int64_t n) {
    bool odd = false;
    for (int64_t i = 0; i < n; i++) {
        int64_t length = 1, at = p[i * stride];
        for (; at > i && at < n && length < n; at = p[at * stride]) length++;
        if (at == i) odd ^= (length & 1) == 0;
    }
    return odd ? -1 : 1;
}

/* sign · scale and the exponent of 2, so that a product neither overflows nor underflows on the
 * way. */
static double determinant(const cot__view *f, const cot__view *p, int64_t i, bool logarithm, double *log_sum) {
    int64_t     n = f->shape[f->ndim - 1], step = f->stride[f->ndim - 2] + f->stride[f->ndim - 1];
    const char *a = cot__lin_at(f, 2, i);
    double      product = permutation_sign(cot__lin_at(p, 1, i), p->stride[p->ndim - 1], n), sum = 0;
    int64_t     exponent = 0;
    for (int64_t k = 0; k < n; k++) {
        double d = cot__load_f64(a + k * step * cot__dtype_size(f->dtype), f->dtype);
        int    e = 0;
        if (logarithm) {
            sum += cot__log(fabs(d));
            product *= d > 0 ? 1 : d < 0 ? -1 : d;
            continue;
        }
        product = frexp(product * d, &e);
        exponent += e;
    }
    *log_sum = sum;
    return logarithm ? product : ldexp(product, exponent > 4000 ? 4000 : exponent < -4000 ? -4000 : (int)exponent);
}

void cot__lin_lu_det(const cot__view *factors, const cot__view *permutation, bool logarithm, const cot__view *z) {
    /* The determinant of an empty matrix is 1, so these count too. */
    for (int64_t i = 0, count = cot__count(z->ndim, z->shape); i < count; i++) {
        double sum, det = determinant(factors, permutation, i, logarithm, &sum);
        cot__store_f64((char *)z->data + i * cot__dtype_size(z->dtype), z->dtype, logarithm ? sum : det);
    }
}

void cot__lin_lu_sign(const cot__view *factors, const cot__view *permutation, const cot__view *z) {
    for (int64_t i = 0, count = cot__count(z->ndim, z->shape); i < count; i++) {
        double sum, sign = determinant(factors, permutation, i, true, &sum);
        cot__store_f64((char *)z->data + i * cot__dtype_size(z->dtype), z->dtype, sign);
    }
}

void cot__lin_lu_pack(const cot__view *factors, const cot__view *packed) {
    for (int64_t i = 0, count = cot__lin_count(packed, 2); i < count; i++)
        if (factors->dtype == COT_F64) pack_f64(factors, packed, i);
        else pack_f32(factors, packed, i);
}
