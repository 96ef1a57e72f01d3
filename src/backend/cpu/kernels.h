/* kernels.h: the CPU's kernels on views that several files of this folder share: copies, cursors,
 * reductions, matrix products, gathers and scatters, order, draws, passes of networks.
 *
 * What each computes is told where the table has it (backend/backend.h). The layers above call
 * them through that table only.
 *
 * May call: base, rules, the table. Must not touch: tapes, nodes, vars, derivatives. */
#ifndef COT_KERNELS_H
#define COT_KERNELS_H

#include "backend/backend.h"

void cot__copy(const cot__view *dst, const cot__view *src);
void cot__fill(const cot__view *v, double value);

/* A cursor hands out the elements of a view in row-major order, block by block, as dtype `as` (F64,
 * F32 or I64). cot__cursor_load returns a pointer to the next n <= COT__BLOCK elements: into the
 * array itself when they lie contiguously in the right dtype, otherwise `buf` after gathering and
 * converting them. cot__cursor_store writes n elements from `block` (of dtype `as`) to the next
 * positions, converting; cot__cursor_add adds them to what is there. A cursor over a view of one
 * element with all strides 0 (a broadcast scalar) fills `buf` once and then reuses it. */
typedef struct cot__cursor {
    cot__view view;
    cot_dtype as;
    bool      direct;   /* contiguous and dtype == as */
    bool      constant; /* every element is the same one */
    int       filled;   /* how many elements of buf hold a constant already */
    int       ndim;     /* after merging adjacent axes */
    int64_t   shape[COT_MAX_NDIM], stride[COT_MAX_NDIM], index[COT_MAX_NDIM];
    int64_t   offset;   /* of the next element, in elements */
} cot__cursor;

void        cot__cursor_open(cot__cursor *c, const cot__view *v, cot_dtype as);
void        cot__cursor_seek(cot__cursor *c, int64_t at); /* to the element of that number */
const void *cot__cursor_load(cot__cursor *c, int n, void *buf);
void        cot__cursor_store(cot__cursor *c, int n, const void *block);
void        cot__cursor_add(cot__cursor *c, int n, const void *block);

void cot__reduce(cot__reduction what, const cot__view *x, uint32_t axes, const cot__view *z);
bool cot__reduce_made(cot__reduction what, const cot__view *x, const cot__recipe *made, uint32_t axes,
                      const cot__view *z);

void cot__mean_squares(const cot__view *x, const cot__view *y, const cot__view *z);
void cot__mean_labelled(const cot__view *p, const cot__view *labels, bool logarithm, const cot__view *z);
void cot__mean_weighted(const cot__view *p, const cot__view *q, bool logarithm, const cot__view *z);

void cot__softmax(const cot__view *x, int axis, bool logarithm, const cot__view *z);

typedef struct cot__matrix { void *data; int64_t rows, cols, row_stride, col_stride; } cot__matrix;
/* Memory that a caller lends for as long as a kernel runs. */
typedef struct cot__lent { void *memory; size_t bytes; } cot__lent;
/* C(m,n) = A(m,k) B(k,n) + (accumulate ? C : 0), any row and column strides. It is as fast as it
 * can be in cot__gemm_workspace(d, m, n, k) bytes (NULL where that is 0), or, where the columns of
 * C are contiguous and not its rows, in those of (n, m). What is enough for a product is enough for
 * every smaller one of that dtype: with less than its own it only shares out less of its work. */
void   cot__gemm(cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool accumulate, cot__lent room);
size_t cot__gemm_workspace(cot_dtype d, int64_t rows, int64_t cols, int64_t depth);
/* The same for f64 and f32 inside a part of cot__parallel: on this thread. */
void   cot__gemm_alone(cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool accumulate, cot__lent room);
size_t cot__gemm_alone_workspace(cot_dtype d, int64_t rows, int64_t cols, int64_t depth);
/* Rows first … end - 1 of c = a b with depth 1, f64 or f32, on this thread; the rows of c are
 * contiguous. The same bits. */
void cot__outer_rows(cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, int64_t first, int64_t end);
/* bf16 products with bits of their own (gemm_bf16.c): are there instructions for it, and is it
 * large enough? Then c = a b, whose rows are contiguous, with memory of these bytes. */
bool   cot__gemm_bf16_takes(cot_dtype d, int64_t rows, int64_t cols, int64_t depth);
size_t cot__gemm_bf16_workspace(int64_t rows, int64_t cols, int64_t depth);
void   cot__gemm_bf16(cot__matrix a, cot__matrix b, cot__matrix c, void *memory);
size_t cot__matmul_workspace(const cot__view *a, const cot__view *b, int64_t m, int64_t n);
void   cot__matmul(const cot__view *a, const cot__view *b, void *c, int64_t m, int64_t n, void *scratch);
/* The same where bits need not be kept. */
size_t cot__matmul_fast_workspace(const cot__view *a, const cot__view *b, int64_t m, int64_t n);
void   cot__matmul_fast(const cot__view *a, const cot__view *b, void *c, int64_t m, int64_t n, void *scratch);

void cot__bad_position(const cot__view *index, int64_t extent, bool wrap, int64_t *status);
void    cot__take(const cot__view *x, int axis, const cot__view *index, const cot__view *z);
void    cot__scatter_add(const cot__view *x, int axis, const cot__view *index, const cot__view *u);
void    cot__take_along(const cot__view *x, int axis, const cot__view *index, const cot__view *z);
void    cot__scatter_add_along(const cot__view *x, int axis, const cot__view *index, const cot__view *u);

void    cot__ravel_index(const cot__view *index, int d, const int64_t *extent, const cot__view *places);
void    cot__last_writer(const cot__view *index, const cot__view *writers);
void    cot__nonzero(const cot__view *mask, const cot__view *places, int64_t *status);
void    cot__one_hot(const cot__view *index, const cot__view *z);

void cot__equal_to(const int32_t *which, int32_t value, const cot__view *z);
void cot__pick(const cot__picks *p);

void cot__cumsum(const cot__view *x, int axis, bool reverse, const cot__view *z);
void cot__recurrence(const cot__view *a, const cot__view *b, int axis, bool reverse, bool strong, const cot__view *z);
void cot__cumargmax(const cot__view *x, int axis, bool smallest, const cot__view *z);

int64_t cot__argsort_scratch(const cot__view *x, int axis, int64_t k);
void    cot__argsort(const cot__view *x, int axis, bool descending, const cot__view *z, void *scratch);
void    cot__searchsorted(const cot__view *sorted, const cot__view *v, bool right, const cot__view *z);
void    cot__first_descent(const cot__view *x, int64_t *status);

void cot__draw(cot__draw_kind kind, cot_key key, const cot__view *z, double low, double high);
void cot__permutation(cot_key key, const cot__view *z);

#endif
