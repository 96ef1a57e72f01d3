/* csr.h: products with sparse matrices in compressed rows. backend/backend.h says what each
 * computes.
 *
 * May call: base, the shared kernels, reductions, products of vectors. Must not touch: tapes,
 * nodes, vars. */
#ifndef COT_CPU_CSR_H
#define COT_CPU_CSR_H

#include "backend/cpu/kernels.h"

/* Element b of a batch: where its last `keep` axes begin. */
static inline void *cot__csr_at(const cot__view *v, int keep, int64_t b) {
    int64_t offset = 0;
    for (int k = v->ndim - keep - 1; k >= 0; k--) offset += b % v->shape[k] * v->stride[k], b /= v->shape[k];
    return (char *)v->data + offset * cot__dtype_size(v->dtype);
}

void cot__csr_matmul(const cot__compressed *a, const cot__view *values, const cot__view *x, const cot__view *z);
void cot__csr_sddmm(const cot__compressed *a, const cot__view *x, const cot__view *y, const cot__view *values);
void cot__csr_softmax(const cot__compressed *a, const cot__view *values, const cot__view *z);

#endif
