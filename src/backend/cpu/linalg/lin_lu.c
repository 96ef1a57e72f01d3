/* lin_lu.c: LU with partial pivoting, systems solved with it, and determinants.
 *
 * The first of equal pivots is taken. Recursive in the columns, so that most work is in matrix
 * products. */
#include "backend/cpu/linalg/lin.h"

#define LIN_TEMPLATE "backend/cpu/linalg/lin_lu.inc"
#include "backend/cpu/linalg/lin_types.h"

bool cot__lin_lu(const cot_allocator *al, const cot__view *a, const cot__view *permutation) {
    double       m = (double)a->shape[a->ndim - 2], n = (double)a->shape[a->ndim - 1], k = m < n ? m : n;
    bool         large = k > COT__LIN_BASE;
    cot__lin_job j     = {
            .al = al, .a = a, .permutation = permutation, .one = a->dtype == COT_F64 ? one_lu_f64 : one_lu_f32};
    return cot__lin_run(&j, cot__lin_count(permutation, 1), m * n * k, large ? k * n * cot__dtype_size(a->dtype) : 0,
                        large);
}

bool cot__lin_lu_solve(const cot_allocator *al, const cot__view *factors, const cot__view *permutation,
                       const cot__view *b, bool transposed, const cot__view *z, uint8_t *bad) {
    double       n = (double)factors->shape[factors->ndim - 1], size = n * (double)b->shape[b->ndim - 1];
    cot__lin_job j = {.al          = al,
                      .a           = factors,
                      .b           = b,
                      .z           = z,
                      .permutation = permutation,
                      .flags       = transposed,
                      .bad         = bad,
                      .one         = b->dtype == COT_F64 ? one_solve_f64 : one_solve_f32};
    return cot__lin_run(&j, cot__lin_count(z, 2), 2 * n * size, 2 * size * cot__dtype_size(b->dtype),
                        n > COT__LIN_BASE);
}

/* 1 or -1, by the lengths of its cycles. A cycle is counted at its smallest element. */
static double permutation_sign(const int64_t *p, int64_t n) {
    bool odd = false;
    for (int64_t i = 0; i < n; i++) {
        int64_t length = 1, at = p[i];
        for (; at > i; at = p[at]) length++;
        if (at == i) odd ^= (length & 1) == 0;
    }
    return odd ? -1 : 1;
}

/* sign · scale and the exponent of 2, so that a product neither overflows nor underflows on the
 * way. */
static double determinant(const cot__view *f, const int64_t *p, int64_t i, bool logarithm, double *log_sum) {
    int64_t     n = f->shape[f->ndim - 1];
    const char *a = (const char *)f->data + i * n * n * cot__dtype_size(f->dtype);
    double      product = permutation_sign(p + i * n, n), sum = 0;
    int64_t     exponent = 0;
    for (int64_t k = 0; k < n; k++) {
        double d = cot__load_f64(a + k * (n + 1) * cot__dtype_size(f->dtype), f->dtype);
        int    e = 0;
        if (logarithm) {
            sum += log(fabs(d));
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
        double sum, det = determinant(factors, permutation->data, i, logarithm, &sum);
        cot__store_f64((char *)z->data + i * cot__dtype_size(z->dtype), z->dtype, logarithm ? sum : det);
    }
}

void cot__lin_lu_sign(const cot__view *factors, const cot__view *permutation, const cot__view *z) {
    for (int64_t i = 0, count = cot__count(z->ndim, z->shape); i < count; i++) {
        double sum, sign = determinant(factors, permutation->data, i, true, &sum);
        cot__store_f64((char *)z->data + i * cot__dtype_size(z->dtype), z->dtype, sign);
    }
}

void cot__lin_lu_pack(const cot__view *factors, const cot__view *packed) {
    for (int64_t i = 0, count = cot__lin_count(packed, 2); i < count; i++)
        if (factors->dtype == COT_F64) pack_f64(factors, packed, i);
        else pack_f32(factors, packed, i);
}
