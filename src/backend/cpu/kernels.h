/* kernels.h: pure kernels on views: copies and casts, reductions, matrix products, gathers and scatters.
 *
 * Nothing here knows of tapes or derivatives. Shapes have been checked by the caller; zero-size arrays are fine everywhere.
 * Results depend on shapes and values only: fixed reduction trees, no contraction. */
#ifndef COT_KERNELS_H
#define COT_KERNELS_H

#include "base/base.h"

/* dst = src, same shape, any strides, any dtypes: the library's one cast. Floats to integers saturate and NaN becomes 0;
 * integers to narrower integers wrap; anything non-zero (NaN too) becomes true. dst and src do not overlap. */
void cot__copy(const cot__view *dst, const cot__view *src);

/* The same for one element: p of dtype d as f64 / i64, and back. */
double  cot__load_f64(const void *p, cot_dtype d);
int64_t cot__load_i64(const void *p, cot_dtype d);
void    cot__store_f64(void *p, cot_dtype d, double v);
void    cot__store_i64(void *p, cot_dtype d, int64_t v);

/* A cursor hands out the elements of a view in row-major order, block by block, as dtype `as` (F64, F32 or I64).
 * cot__cursor_load returns a pointer to the next n <= COT__BLOCK elements: into the array itself when they lie
 * contiguously in the right dtype, otherwise `buf` after gathering and converting them. cot__cursor_store writes n elements
 * from `block` (of dtype `as`) to the next positions, converting; cot__cursor_add adds them to what is there.
 * A cursor over a view of one element with all strides 0 (a broadcast scalar) fills `buf` once and then reuses it. */
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
const void *cot__cursor_load(cot__cursor *c, int n, void *buf);
void        cot__cursor_store(cot__cursor *c, int n, const void *block);
void        cot__cursor_add(cot__cursor *c, int n, const void *block);

/* Reductions. `axes` is a bit mask of the axes of x that go; z has x's rank with extent 1 there (any strides).
 * sum:  pairwise tree, bf16/f16 accumulate in f32, integers wrap, bool counts (z is I64)
 * max, min: propagate NaN; x has at least one element along the reduced axes
 * argmax, argmin: exactly one axis; z is I64; the first of equals; a NaN wins as in NumPy
 * any, all: z is bool.  norm2: sqrt(sum x²), scaled so that nothing overflows or underflows. logsumexp: stable, max-shifted;
 * all -inf gives -inf, any +inf gives +inf. */
typedef enum cot__reduction {
    COT__SUM, COT__MAX, COT__MIN, COT__ARGMAX, COT__ARGMIN, COT__ANY, COT__ALL, COT__NORM2, COT__LOGSUMEXP
} cot__reduction;
void cot__reduce(cot__reduction what, const cot__view *x, uint32_t axes, const cot__view *z);

/* Softmax and log-softmax along one axis, stable; z like x. */
void cot__softmax(const cot__view *x, int axis, bool logarithm, const cot__view *z);

/* C(m,n) = A(m,k) B(k,n) + (accumulate ? C : 0), f64 or f32, any row and column strides (so every transpose is free).
 * One chain over k per element in a fixed order, so the bits do not depend on m, n or tiling. Returns false when the
 * packing buffer cannot be allocated. bf16 and f16 are multiplied with f32 accumulation, integers wrap (any way). */
typedef struct cot__matrix { void *data; int64_t rows, cols, row_stride, col_stride; } cot__matrix;
bool cot__gemm(const cot_allocator *al, cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool accumulate);

/* z = x with axis replaced by the positions in `index` (any integer dtype, contiguous order, n of them); negative positions count
 * from the end. The caller has checked the range with cot__index_check, which returns -1 or the first bad place. */
int64_t cot__index_check(const cot__view *index, int64_t extent);
/* take: z.shape = x.shape[:axis] + index.shape + x.shape[axis+1:].  scatter_add: x[.., index, ..] += u, u shaped like take's z;
 * equal positions add up in order. */
void cot__take(const cot__view *x, int axis, const cot__view *index, const cot__view *z);
void cot__scatter_add(const cot__view *x, int axis, const cot__view *index, const cot__view *u);
/* along: index has x's rank, same extents except along axis: z[i,j] = x[i, index[i,j]] and its transpose. */
void cot__take_along(const cot__view *x, int axis, const cot__view *index, const cot__view *z);
void cot__scatter_add_along(const cot__view *x, int axis, const cot__view *index, const cot__view *u);

/* Attention: z = softmax(scale q kᵀ + bias, masked) v, all with equal leading axes: q (…,T,d), k (…,S,d), v (…,S,e), mask (bool) and bias
 * (…,T,S). lse (…,T), contiguous in the computing type, is the log of each query's sum of exponentials, -inf without a key. Backward
 * takes g, the adjoint of z, with z and lse, and writes dq, dk, dv. Floats have one dtype; z, g, dq, dk, dv are contiguous (g need not
 * be). `memory` is cot__attention_bytes of room, which is negative when no memory could hold it. */
typedef struct cot__attention {
    cot__view q, k, v, mask, bias; /* mask.data, bias.data NULL: none */
    bool      causal;              /* query i sees keys 0 … i */
    double    scale;
    cot__view z, lse, g, dq, dk, dv;
    int       narrower;            /* for tests: so many instruction sets narrower than the machine's */
} cot__attention;
int64_t cot__attention_bytes(const cot__attention *a, bool backward);
void    cot__attention_forward(const cot__attention *a, void *memory);
void    cot__attention_backward(const cot__attention *a, void *memory);

/* m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g², w = keep w - rate m / (sqrt(v) spread + eps): n elements of F64 or F32 each, row-major. */
typedef struct cot__adamw_pass {
    cot_dtype   dtype;
    int64_t     n;
    void       *w, *m, *v;
    const void *g;
    double      keep, b1, b2, rate, spread, eps;
} cot__adamw_pass;
void cot__adamw(const cot__adamw_pass *p);

#endif
