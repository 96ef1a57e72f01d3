/* outer.c: products of a column and a row: one pass that writes every element once, as fast as
 * memory takes them.
 *
 * The bits are those of cot__gemm with depth 1, whose chain is a·b + 0: a product that is -0
 * becomes 0. */
#include "backend/cpu/kernels.h"

/* Rows first … end - 1 of z = a b: a row is one number times b, which is gathered once where it is
 * strided. */
#define OUTER(T, name)                                                                                                 \
    static void name(cot__matrix a, cot__matrix b, cot__matrix z, int64_t first, int64_t end) {                        \
        T buf[COT__BLOCK];                                                                                             \
        for (int64_t j = 0, n; j < z.cols; j += n) {                                                                   \
            const T *row = (const T *)b.data + j * b.col_stride;                                                       \
            n            = b.col_stride == 1 || z.cols - j < COT__BLOCK ? z.cols - j : COT__BLOCK;                     \
            for (int64_t k = 0; k < n && b.col_stride != 1; k++) buf[k] = row[k * b.col_stride];                       \
            if (b.col_stride != 1) row = buf;                                                                          \
            for (int64_t i = first; i < end; i++) {                                                                    \
                const T x      = ((const T *)a.data)[i * a.row_stride];                                                \
                T *restrict to = (T *)z.data + i * z.row_stride + j;                                                   \
                for (int64_t k = 0; k < n; k++) to[k] = x * row[k] + (T)0;                                             \
            }                                                                                                          \
        }                                                                                                              \
    }
OUTER(double, outer_f64)
OUTER(float, outer_f32)

void cot__outer_rows(cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix z, int64_t first, int64_t end) {
    (d == COT_F64 ? outer_f64 : outer_f32)(a, b, z, first, end);
}
