/* kernels.h: pure kernels on views: copies and casts, reductions, matrix products, gathers and
 * scatters.
 *
 * Nothing here knows of tapes or derivatives. Shapes have been checked by the caller; zero-size
 * arrays are fine everywhere. Results depend on shapes and values only: fixed reduction trees, no
 * contraction.
 *
 * May call: base, rules. Must not touch: tapes, nodes, vars, derivatives. */
#ifndef COT_KERNELS_H
#define COT_KERNELS_H

#include "base/base.h"

/* dst = src, same shape, any strides, any dtypes: the library's one cast. Floats to integers
 * saturate and NaN becomes 0; integers to narrower integers wrap; anything non-zero (NaN too)
 * becomes true. dst and src do not overlap. */
void cot__copy(const cot__view *dst, const cot__view *src);

/* The same for one element: p of dtype d as f64 / i64, and back. */
double  cot__load_f64(const void *p, cot_dtype d);
int64_t cot__load_i64(const void *p, cot_dtype d);
void    cot__store_f64(void *p, cot_dtype d, double v);
void    cot__store_i64(void *p, cot_dtype d, int64_t v);

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

/* Reductions. `axes` is a bit mask of the axes of x that go; z has x's rank with extent 1 there
 * (any strides). sum: pairwise tree, bf16/f16 accumulate in f32, integers wrap, bool counts (z is
 * I64) max, min: propagate NaN; x has at least one element along the reduced axes argmax, argmin:
 * exactly one axis; z is I64; the first of equals; a NaN wins as in NumPy any, all: z is bool.
 * norm2: sqrt(sum x²), scaled so that nothing overflows or underflows. logsumexp: stable,
 * max-shifted; all -inf gives -inf, any +inf gives +inf. */
typedef enum cot__reduction {
    COT__SUM, COT__MAX, COT__MIN, COT__ARGMAX, COT__ARGMIN, COT__ANY, COT__ALL, COT__NORM2, COT__LOGSUMEXP
} cot__reduction;
void cot__reduce(cot__reduction what, const cot__view *x, uint32_t axes, const cot__view *z);
/* The same for an x that is not written, but would be at x->data, among what the recipe makes: with
 * the same bits. False, and nothing is done: writing it first is better. */
struct cot__recipe;
bool cot__reduce_made(cot__reduction what, const cot__view *x, const struct cot__recipe *made, uint32_t axes,
                      const cot__view *z);

/* Softmax and log-softmax along one axis, stable; z like x. */
void cot__softmax(const cot__view *x, int axis, bool logarithm, const cot__view *z);

/* C(m,n) = A(m,k) B(k,n) + (accumulate ? C : 0), f64 or f32, any row and column strides (so every
 * transpose is free). One chain over k per element in a fixed order, so the bits do not depend on
 * m, n or tiling. Returns false when the packing buffer cannot be allocated. bf16 and f16 are
 * multiplied with f32 accumulation, integers wrap (any way). */
typedef struct cot__matrix { void *data; int64_t rows, cols, row_stride, col_stride; } cot__matrix;
bool cot__gemm(const cot_allocator *al, cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool accumulate);
/* The same for f64 and f32 inside a part of cot__parallel: on this thread, in scratch memory of the
 * caller's. */
void   cot__gemm_alone(cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool accumulate, void *scratch);
size_t cot__gemm_scratch(cot_dtype d, int64_t rows, int64_t cols, int64_t depth);
/* Rows first … end - 1 of c = a b with depth 1, f64 or f32, on this thread; the rows of c are
 * contiguous. The same bits. */
void cot__outer_rows(cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, int64_t first, int64_t end);

/* z = x with axis replaced by the positions in `index` (any integer dtype, contiguous order, n of
 * them); negative positions count from the end. The caller has checked the range.
 * take: z.shape = x.shape[:axis] + index.shape + x.shape[axis+1:]. scatter_add: x[.., index, ..] +=
 * u, u shaped like take's z; equal positions add up in order. */
void cot__take(const cot__view *x, int axis, const cot__view *index, const cot__view *z);
void cot__scatter_add(const cot__view *x, int axis, const cot__view *index, const cot__view *u);
/* along: index has x's rank, same extents except along axis: z[i,j] = x[i, index[i,j]] and its
 * transpose. */
void cot__take_along(const cot__view *x, int axis, const cot__view *index, const cot__view *z);
void cot__scatter_add_along(const cot__view *x, int axis, const cot__view *index, const cot__view *u);

/* Scans along one axis, carried in f64 or i64; z like x (integers: z is I64). reverse: from the
 * end. recurrence: z[0] = b[0], z[k] = b[k] + a[k] z[k-1]; reverse: z[n-1] = b[n-1], z[k] = b[k] +
 * a[k+1] z[k+1], its transpose in b. a[0] is never read. strong: in the product a zero wins over
 * anything. cumargmax: z (integers that hold it) is the place of the largest (smallest) element so
 * far, the first of equals; the first NaN wins. */
void cot__cumsum(const cot__view *x, int axis, bool reverse, const cot__view *z);
void cot__recurrence(const cot__view *a, const cot__view *b, int axis, bool reverse, bool strong, const cot__view *z);
void cot__cumargmax(const cot__view *x, int axis, bool smallest, const cot__view *z);

/* The order of x along an axis: z (I64) is like x with any extent k <= x's along the axis: the
 * places of the k first, equal elements in their order. -0 equals 0; a NaN is above everything, so
 * it comes last, descending first. scratch: cot__argsort_scratch bytes. */
size_t cot__argsort_scratch(const cot__view *x, int axis, int64_t k);
void   cot__argsort(const cot__view *x, int axis, bool descending, const cot__view *z, void *scratch);
/* z[i] = how many of the sorted vector are < v[i] (right: <= v[i]), in the same order; both of one
 * dtype. */
void cot__searchsorted(const cot__view *sorted, const cot__view *v, bool right, int64_t *z);
/* The first i with x[i] < x[i-1] of a vector; -1: it is sorted. */
int64_t cot__first_descent(const cot__view *x);
/* Random numbers: element i of z (row-major memory, a float dtype) comes from word pair i of the
 * key alone. Of its 64 bits (first word, second word) let k be the upper 53 for f64, or 24 for f32,
 * bf16 and f16, and u = k 2^-53 or k 2^-24. All is computed in f64 and rounded once. uniform: low +
 * u (high - low), at most the largest number of z's dtype below high; low and high are numbers of
 * that dtype normal: Φ⁻¹(v), gumbel: -log(-log v), with v = u plus half a step: never 0 or 1
 * keep:    high where the 53 bits of u are >= low, else 0 */
typedef enum cot__draw_kind { COT__UNIFORM, COT__NORMAL, COT__GUMBEL, COT__KEEP } cot__draw_kind;
void cot__draw(cot__draw_kind kind, cot_key key, const cot__view *z, double low, double high);

/* Rows of n elements, normalised: y = (x - μ) r with the row's mean μ and r = (variance +
 * eps)^-1/2; rms: μ = 0. All arrays are row-major and of one dtype, F64 or F32; weight and bias
 * have n elements, or are NULL. `stats` is NULL, or memory for (rows,2) elements of μ and r: they
 * are written there, or read if they are known.
 * normalize:         z = y · weight + bias
 * normalize_back:    z = r (h - mean h - y mean(h y)), h = g · weight; rms: without mean h. Rows
 *                    where h is 0 give 0, whatever x is
 * normalize_weights: z (2,n): Σ g y and Σ g over the rows; where g is 0 nothing is added, whatever
 * y is. `scratch` has
 *                    cot__normalize_scratch bytes. */
typedef struct cot__rows { int64_t rows, n; double eps; bool rms; cot_dtype dtype; void *stats; bool known; } cot__rows;
void   cot__normalize(const cot__rows *r, const void *x, const void *weight, const void *bias, void *z);
void   cot__normalize_back(const cot__rows *r, const void *x, const void *weight, const void *g, void *z);
size_t cot__normalize_scratch(const cot__rows *r);
void   cot__normalize_weights(const cot__rows *r, const void *x, const void *g, void *scratch, void *z);
/* Attention: z = softmax(scale q kᵀ + bias, masked) v, all with equal leading axes: q (…,T,d), k
 * (…,S,d), v (…,S,e), mask (bool) and bias (…,T,S). lse (…,T), contiguous in the computing type, is
 * the log of each query's sum of exponentials, -inf without a key. Backward takes g, the adjoint of
 * z, with z and lse, and writes dq, dk, dv. Floats have one dtype; z, g, dq, dk, dv are contiguous
 * (g need not be). `memory` is cot__attention_bytes of room, which is negative when no memory could
 * hold it. */
typedef struct cot__attention {
    cot__view q, k, v, mask, bias; /* mask.data, bias.data NULL: none */
    bool      causal;              /* query i sees keys 0 … i */
    double    scale;
    cot__view z, lse, g, dq, dk, dv;
    /* for tests: so many instruction sets narrower than the machine's */
    int       narrower;
} cot__attention;
int64_t cot__attention_bytes(const cot__attention *a, bool backward);
void    cot__attention_forward(const cot__attention *a, void *memory);
void    cot__attention_backward(const cot__attention *a, void *memory);

/* m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g², w = keep w - rate m / (sqrt(v) spread + eps): n
 * elements of F64 or F32 each, row-major. */
typedef struct cot__adamw_pass {
    cot_dtype   dtype;
    int64_t     n;
    void       *w, *m, *v;
    const void *g;
    double      keep, b1, b2, rate, spread, eps;
} cot__adamw_pass;
void cot__adamw(const cot__adamw_pass *p);

#endif
