/* backend.h: everything that a device must do, as one table of functions.
 *
 * What the folder does: src/backend computes on arrays. cpu/ is the backend of the host: its door
 * is cpu/table/cpu.h. A device is another table of the same type, in a folder of its own.
 *
 * May call: base, job, rules. Must not touch: tapes, nodes, storages, derivatives. Kernels see
 * views and plain numbers, and the caller has checked shapes and dtypes. Zero-size arrays are fine
 * everywhere.
 *
 * The layers above reach a kernel through the table of the tape whose values they compute
 * (`t->backend->reduce(…)`), never by its symbol, and they reach elements through `read`, `write`,
 * `copy_in` and `copy_out`. tests/house/check_backend_door.sh holds them to the first, and
 * tests/backend/guarded.h to the second.
 *
 * Promises of every entry: the result depends on shapes and values only, so that it has the same
 * bits whatever the number of threads. An entry that needs workspace tells how much, from shapes
 * alone, and is given it. Bad data (an index out of range, a singular matrix) is reported in status
 * words: how many things, and the number of the first; it never ends the process.
 *
 * An entry may return before its work is done: no entry returns what depends on elements. Work is
 * done in the order in which it was begun. What an entry is given on the host (views, shapes,
 * numbers, lists) it has read when it returns; memory that is freed may still be in use by work
 * that was begun before. `read`, `copy_out`, `pick` and `sync` wait. (The CPU is done when it
 * returns; no backend makes use of this yet.)
 *
 * Operands, results, workspaces and status words lie in memory of the backend, arrays of rank 0
 * too. From the host come: plain numbers of elementwise runs (cot__number_view), what `write` and
 * `copy_in` bring and `read` and `copy_out` fetch, the list of `equal_to`, the lists and values of
 * `pick`. AdamW's moments are the caller's, so they travel to a device and back in each step;
 * states that a loop spills to files travel, too. cot_wrap is refused where the backend has memory
 * of its own. */
#ifndef COT_BACKEND_H
#define COT_BACKEND_H

#include "backend/recipe.h"
#include "backend/runs.h"
#include "base/element.h"

/* ---- words of the entries -------------------------------------------------------------------- */

typedef enum cot__reduction {
    COT__SUM, COT__MAX, COT__MIN, COT__ARGMAX, COT__ARGMIN, COT__ANY, COT__ALL, COT__NORM2, COT__LOGSUMEXP
} cot__reduction;

typedef enum cot__draw_kind { COT__UNIFORM, COT__NORMAL, COT__GUMBEL, COT__KEEP } cot__draw_kind;

/* Rows of n elements, normalised: y = (x - μ) r with the row's mean μ and r = (variance +
 * eps)^-1/2; rms: μ = 0. All arrays are row-major and of one dtype, F64 or F32; weight and bias
 * have n elements, or are NULL. `stats` is NULL, or memory for (rows,2) elements of μ and r: they
 * are written there, or read if they are known. */
typedef struct cot__rows { int64_t rows, n; double eps; bool rms; cot_dtype dtype; void *stats; bool known; } cot__rows;

/* z = softmax(scale q kᵀ + bias, masked) v, all with equal leading axes: q (…,T,d), k (…,S,d), v
 * (…,S,e), mask (bool) and bias (…,T,S). lse (…,T), contiguous in the computing type, is the log of
 * each query's sum of exponentials, -inf without a key. Floats have one dtype; z, g, dq, dk, dv are
 * contiguous (g need not be). */
typedef struct cot__attention {
    cot__view q, k, v, mask, bias; /* mask.data, bias.data NULL: none */
    int64_t   causal;              /* query i sees keys 0 … i + causal - 1; 0: all */
    double    scale;
    cot__view z, lse, g, dq, dk, dv;
    /* for tests: so many instruction sets narrower than the machine's */
    int       narrower;
} cot__attention;

/* What an optimiser may keep beside a weight: moving averages of its gradient and of the gradient's
 * square, a velocity, and a moving average of the weight itself. */
enum { COT__MEAN, COT__SQUARE, COT__VELOCITY, COT__AVERAGE, COT__STATES };
/* A step of an optimiser over n elements of F64 or F32 each, row-major, by the formulas of
 * rules/words/updates.h. */
typedef struct cot__update {
    cot_dtype      dtype;
    cot_optim_kind kind;
    bool           nesterov;
    int64_t        n;
    void          *w;
    const void    *g;                  /* NULL: only the average of weights follows */
    void          *state[COT__STATES]; /* NULL: it keeps none such */
    double         rate, decay, keep, momentum, b1, b2, spread, eps, average;
} cot__update;

/* A convolution is one trilinear form, read in three directions:
 *
 *   Σ x[n, c, q·stride + k·dilation − before] · w[o, c, k] · z[n, o, q] over images n, channels c
 *     and o, taps k, places q */
enum { COT__SPACE = 3 }; /* spatial axes; fewer have leading extents of 1 */
typedef struct cot__conv {
    int64_t batch, groups, in, out;  /* images, groups, channels of x, channels of z */
    int64_t x[COT__SPACE], k[COT__SPACE], z[COT__SPACE];                  /* extents */
    /* before: zeros in front of x */
    int64_t stride[COT__SPACE], dilation[COT__SPACE], before[COT__SPACE];
} cot__conv;

/* z from (x, w), x from (z, w), w from (x, z). */
typedef enum cot__conv_pass { COT__CONV_OUTPUT, COT__CONV_INPUT, COT__CONV_WEIGHT } cot__conv_pass;

/* Windows over planes. Arrays are contiguous, `planes` times three spatial axes (leading ones may
 * be 1). Every window holds at least one element. */
typedef struct cot__pool {
    int64_t planes;
    /* before: padding on either side, which holds no elements */
    int64_t x[3], z[3], window[3], stride[3], before[3];
} cot__pool;

typedef enum cot__fft_kind {
    /* (…, n, …, 2) to the same: z[k] = s Σ x[j] exp(∓2πi jk/n); s = scaled ? 1/n : 1 */
    COT__FFT_COMPLEX,
    COT__FFT_REAL,    /* (…, n, …) to (…, n/2+1, …, 2):     z[k] = w[k] Σ x[j] exp(-2πi jk/n) */
    COT__FFT_HALF     /* its transpose, the other way:      z[j] = Σ w[k] Re(x[k] exp(+2πi jk/n)) */
} cot__fft_kind;

/* w[k]: 1; scaled: 1/n where k is its own mirror image (0, and n/2 of an even n), 2/n elsewhere. So
 * HALF scaled is NumPy's irfft, whose imaginary parts at those k do not count, and REAL and HALF
 * with the same flag are transposes. */
typedef struct cot__fft_job {
    cot__fft_kind kind;
    int           axis;    /* of x and z; the last axis of a complex array, of extent 2, is none */
    int64_t       n;       /* at least 1 */
    bool          inverse; /* COMPLEX: exp(+…) */
    bool          scaled;
} cot__fft_job;

/* How a triangular system is to be read. The public flags of cot_triangular_solve have these
 * values. */
enum { COT__LIN_UPPER = 1, COT__LIN_TRANSPOSED = 2, COT__LIN_UNIT = 4, COT__LIN_RIGHT = 8 };

/* The pattern of a sparse matrix, in memory of the backend: row i has entries start[i] … start[i+1]
 * - 1, entry e stands in column[e], and its value is the one of number order[e] (NULL: e). It may
 * come from a file: what is not so is left out, and nothing outside of the arrays is read. */
typedef struct cot__compressed {
    int64_t        rows, entries;
    const int32_t *start, *column, *order;
} cot__compressed;

/* Entries of a sparse matrix in products: values[entry[k]] = products[lane[k]][source[k]] for k =
 * first … first + n - 1; entry NULL: values[k]. No two entries have one place. The lists and values
 * lie on the host. */
typedef struct cot__picks {
    int64_t              first, n;
    const double *const *products;
    const uint8_t       *lane;
    const int32_t       *source;
    const uint32_t      *entry;
    double              *values;
} cot__picks;

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct cot__backend {
    const char *name;
    /* the same device, with products whose bits are not those of docs/bits.md, for tapes and
     * programs that allow it (`fast`); NULL: it has none */
    const struct cot__backend *fast;
    /* 0-d values live in the nodes of the tape, and the host computes with them; every entry must
     * be able to load from there. Otherwise each is an array of rank 0 on the device. Plain numbers
     * stay on the host (cot__number_view). */
    bool        scalars_in_nodes;
    /* It computes nothing (hollow.c): what is on its tapes has shapes, and no numbers. */
    bool        hollow;

    /* ---- memory ---- */

    /* Room for elements, 64-byte aligned, and its return; NULL when there is none. A backend that
     * leaves both NULL computes in memory of the host: elements then lie behind the header of their
     * storage, in one block of the tape's allocator. */
    void *(*alloc)(const cot_allocator *al, size_t bytes);
    void (*free)(const cot_allocator *al, void *memory, size_t bytes);
    /* Elements first … first + n - 1 of v, counted row-major, to or from the host, where they lie
     * side by side in dtype `as`, F64, F32 or I64, or v's own. n <= COT__BLOCK. */
    void (*read)(const cot__view *v, int64_t first, int n, cot_dtype as, void *host);
    void (*write)(const cot__view *v, int64_t first, int n, cot_dtype as, const void *host);
    /* `copy` from the host and to it. */
    void (*copy_in)(const cot__view *dst, const cot__view *host);
    void (*copy_out)(const cot__view *host, const cot__view *src);
    /* Returns when all work that was begun is done. */
    void (*sync)(void);

    /* ---- whole arrays ---- */

    /* dst = src, same shape, any strides, any dtypes: the library's one cast (base/convert.h). dst
     * and src do not overlap. */
    void (*copy)(const cot__view *dst, const cot__view *src);
    /* Every element of v = value, in v's dtype. */
    void (*fill)(const cot__view *v, double value);

    /* ---- elementwise work ---- */

    /* Does the runs of a stage, one after the other or block by block together: the result is the
     * same (runs.h). bf16 and f16 are computed in f32 and rounded once, integers in i64. 0-d
     * results have the bits of recorded scalars. */
    void (*elementwise)(cot__stage *work);
    /* Writes all elements of an array that was only described, to r->data. */
    void (*make)(const cot__recipe *r);

    /* ---- reductions and scans ---- */

    /* `axes` is a bit mask of the axes of x that go; z has x's rank with extent 1 there (any
     * strides). sum: pairwise tree, bf16/f16 accumulate in f32, integers wrap, bool counts (z is
     * I64); max, min: propagate NaN; x has at least one element along the reduced axes; argmax,
     * argmin: exactly one axis; z is I64; the first of equals; a NaN wins as in NumPy; any, all: z
     * is bool; norm2: sqrt(sum x²), scaled so that nothing overflows or underflows; logsumexp:
     * stable, max-shifted; all -inf gives -inf, any +inf gives +inf. */
    void (*reduce)(cot__reduction what, const cot__view *x, uint32_t axes, const cot__view *z);
    /* The same for an x that is not written, but would be at x->data, among what the recipe makes:
     * with the same bits. False, and nothing is done: writing it first is better. Without a recipe
     * it only tells. */
    bool (*reduce_made)(cot__reduction what, const cot__view *x, const cot__recipe *made, uint32_t axes,
                        const cot__view *z);
    /* z (a float, 0-d) = the mean of (x - y)² of two arrays of one shape, in f64, block by
     * block. */
    void (*mean_squares)(const cot__view *x, const cot__view *y, const cot__view *z);
    /* z (a float, 0-d) = the mean of -log p[row, label] over the rows of p, in f64: labels are
     * integers and in range, one for each row. logarithm: the logarithm of p is still to be
     * taken. */
    void (*mean_labelled)(const cot__view *p, const cot__view *labels, bool logarithm, const cot__view *z);
    /* The same of -Σ q log p, where q is not 0. */
    void (*mean_weighted)(const cot__view *p, const cot__view *q, bool logarithm, const cot__view *z);
    /* Softmax and log-softmax along one axis, stable; z like x. */
    void (*softmax)(const cot__view *x, int axis, bool logarithm, const cot__view *z);
    /* Scans along one axis, carried in f64 or i64; z like x (integers: z is I64). reverse: from the
     * end. */
    void (*cumsum)(const cot__view *x, int axis, bool reverse, const cot__view *z);
    /* z[0] = b[0], z[k] = b[k] + a[k] z[k-1]; reverse: z[n-1] = b[n-1], z[k] = b[k] + a[k+1]
     * z[k+1], its transpose in b. a[0] is never read. strong: in the product a zero wins over
     * anything. */
    void (*recurrence)(const cot__view *a, const cot__view *b, int axis, bool reverse, bool strong, const cot__view *z);
    /* z (integers that hold it) is the place of the largest (smallest) element so far, the first of
     * equals; the first NaN wins. */
    void (*cumargmax)(const cot__view *x, int axis, bool smallest, const cot__view *z);

    /* ---- matrix products ---- */

    /* c = a b for each index of the leading axes, which a and b share: a (…,m,k) or (k,), b (…,k,n)
     * or (k,); c has m n elements for each, row-major. Any strides of a and b, so every transpose
     * is free. One chain over k per element in a fixed order, so the bits do not depend on m, n or
     * tiling. bf16 and f16 are multiplied with f32 accumulation, integers wrap. Products of depth 1
     * are outer products. scratch: matmul_workspace bytes, NULL where that is 0. */
    size_t (*matmul_workspace)(const cot__view *a, const cot__view *b, int64_t m, int64_t n);
    void (*matmul)(const cot__view *a, const cot__view *b, void *c, int64_t m, int64_t n, void *scratch);

    /* ---- sparse matrices ---- */

    /* F64 or F32, all of one dtype, with equal leading axes of any strides; rows of x and y, and
     * the values, lie side by side, and results are row-major. matmul: z (…,rows,k) = a x for
     * values (…,entries) and x (…,columns,k): one chain from 0 over the entries of a row, each
     * product and sum rounded. sddmm: values[e] = the dot product of row i of x (…,rows,k) and row
     * column[e] of y (…,columns,k), e in row i; an entry without a place is 0. softmax: over the
     * entries of each row, as `softmax` does; both have no order. */
    void (*csr_matmul)(const cot__compressed *a, const cot__view *values, const cot__view *x, const cot__view *z);
    void (*csr_sddmm)(const cot__compressed *a, const cot__view *x, const cot__view *y, const cot__view *values);
    void (*csr_softmax)(const cot__compressed *a, const cot__view *values, const cot__view *z);

    /* ---- positions ---- */

    /* Looks for elements of an array of integers that are no position on an axis of this extent.
     * status[0] = 1 if there is one, and status[1] the number of the first, counted row-major; else
     * status[0] = 0. wrap: negative ones count from the end. */
    void (*bad_position)(const cot__view *index, int64_t extent, bool wrap, int64_t *status);
    /* take: z.shape = x.shape[:axis] + index.shape + x.shape[axis+1:]. `index` has any integer
     * dtype; negative positions count from the end; all have been checked with bad_position.
     * scatter_add: x[.., index, ..] += u, u shaped like take's z; equal positions add up in
     * order. */
    void (*take)(const cot__view *x, int axis, const cot__view *index, const cot__view *z);
    void (*scatter_add)(const cot__view *x, int axis, const cot__view *index, const cot__view *u);
    /* The index has x's rank, same extents except along axis: z[i,j] = x[i, index[i,j]] and its
     * transpose. */
    void (*take_along)(const cot__view *x, int axis, const cot__view *index, const cot__view *z);
    void (*scatter_add_along)(const cot__view *x, int axis, const cot__view *index, const cot__view *u);

    /* places (I64, index.shape[:-1], row-major) = the number, counted row-major in an array of
     * these d extents, of the d coordinates along the last axis of index, which are in range. For
     * d = 1 that axis may be missing. */
    void (*ravel_index)(const cot__view *index, int d, const int64_t *extent, const cot__view *places);
    /* writers[p] (I64, a vector) = the last element of index that is p, counted row-major; -1:
     * there is none. */
    void (*last_writer)(const cot__view *index, const cot__view *writers);
    /* The numbers of the elements that are not zero, in order, as many as `places` (I64, a
     * row-major vector) holds, then -1; status[0] = how many. places NULL: counts them all. */
    void (*nonzero)(const cot__view *mask, const cot__view *places, int64_t *status);
    /* z[.., k] = 1 where index[..] = k, else 0; z is row-major. */
    void (*one_hot)(const cot__view *index, const cot__view *z);

    /* z[k] = 1 where which[k], a list of the host, is the value, else 0; z is row-major. */
    void (*equal_to)(const int32_t *which, int32_t value, const cot__view *z);
    void (*pick)(const cot__picks *p);

    /* ---- order ---- */

    /* The order of x along an axis: z (I64) is like x with any extent k <= x's along the axis: the
     * places of the k first, equal elements in their order. -0 equals 0; a NaN is above everything,
     * so it comes last, descending first. scratch: argsort_workspace bytes, which is negative when
     * no memory could hold it. */
    int64_t (*argsort_workspace)(const cot__view *x, int axis, int64_t k);
    void (*argsort)(const cot__view *x, int axis, bool descending, const cot__view *z, void *scratch);
    /* z[i] = how many of the sorted vector are < v[i] (right: <= v[i]), in the same order; both of
     * one dtype. z (I64) is like v, row-major. */
    void (*searchsorted)(const cot__view *sorted, const cot__view *v, bool right, const cot__view *z);
    /* Looks for elements x[i] < x[i-1] of a vector: status as bad_position gives it. */
    void (*first_descent)(const cot__view *x, int64_t *status);

    /* ---- random numbers ---- */

    /* Element i of z (row-major memory, a float dtype) comes from word pair i of the key alone. Of
     * its 64 bits (first word, second word) let k be the upper 53 for f64, or 24 for f32, bf16 and
     * f16, and u = k 2^-53 or k 2^-24. All is computed in f64 and rounded once. uniform: low + u
     * (high - low), at most the largest number of z's dtype below high; low and high are numbers of
     * that dtype; normal: Φ⁻¹(v), gumbel: -log(-log v), with v = u plus half a step: never 0 or 1;
     * keep: high where the 53 bits of u are >= low, else 0 */
    void (*draw)(cot__draw_kind kind, cot_key key, const cot__view *z, double low, double high);

    /* z (I64, a row-major vector of extent n) = 0 … n - 1 in an order drawn from the key, by Fisher
     * and Yates. */
    void (*permutation)(cot_key key, const cot__view *z);

    /* ---- networks ---- */

    /* z = y · weight + bias */
    void (*normalize)(const cot__rows *r, const void *x, const void *weight, const void *bias, void *z);
    /* z = r (h - mean h - y mean(h y)), h = g · weight; rms: without mean h. Rows where h is 0 give
     * 0, whatever x is. */
    void (*normalize_back)(const cot__rows *r, const void *x, const void *weight, const void *g, void *z);
    /* z (2,n): Σ g y and Σ g over the rows; where g is 0 nothing is added, whatever y is. scratch:
     * normalize_workspace bytes, which is negative when no memory could hold it. */
    int64_t (*normalize_workspace)(const cot__rows *r);
    void (*normalize_weights)(const cot__rows *r, const void *x, const void *g, void *scratch, void *z);
    /* Backward takes g, the adjoint of z, with z and lse, and writes dq, dk, dv. `memory` has
     * attention_workspace bytes, which is negative when no memory could hold it. */
    int64_t (*attention_workspace)(const cot__attention *a, bool backward);
    void (*attention_forward)(const cot__attention *a, void *memory);
    void (*attention_backward)(const cot__attention *a, void *memory);
    /* Views of five axes: x (batch, in, …), w (out, in/groups, …), z (batch, out, …); floats of one
     * dtype; the result is contiguous. bf16 and f16 are computed in f32 and rounded once. `memory`
     * has conv_workspace bytes, which follow from shapes and strides; negative: no memory could
     * hold them. */
    int64_t (*conv_workspace)(const cot__conv *g, cot__conv_pass pass, const cot__view *a, const cot__view *b,
                              const cot__view *result);
    void (*conv)(const cot__conv *g, cot__conv_pass pass, const cot__view *a, const cot__view *b,
                 const cot__view *result, void *memory);
    /* Of dtype F64, F32 or any integers: z[q] = the largest element of window q (a NaN counts as
     * larger), index[q] = which one, the first of equals, counted row-major over the whole
     * window. */
    void (*max_pool)(const cot__pool *g, cot_dtype dtype, const void *x, void *z, int32_t *index);
    /* z[q] = the element of window q that index[q] names; elements of any `size`. What names no
     * element of its plane takes 0, and puts nothing. */
    void (*pool_take)(const cot__pool *g, int size, const void *x, const int32_t *index, void *z);
    /* Its transpose, F64 or F32: x = 0, then the named element += z[q]. */
    void (*pool_put)(const cot__pool *g, cot_dtype dtype, const void *z, const int32_t *index, void *x);
    /* F64 or F32. z[q] = Σ window q / count, where count is the window's size with its padding, or
     * only the elements it has; and the transpose. */
    void (*avg_pool)(const cot__pool *g, cot_dtype dtype, bool exclude, const void *x, void *z);
    void (*avg_unpool)(const cot__pool *g, cot_dtype dtype, bool exclude, const void *z, void *x);

    /* ---- optimisers ---- */

    void (*update)(const cot__update *p);

    /* ---- Fourier transforms ---- */

    /* Any float dtypes; computed in f64 for f64, else in f32. scratch: fft_workspace bytes, which
     * is negative when no memory could hold it. */
    int64_t (*fft_workspace)(const cot__fft_job *job, const cot__view *x);
    void (*fft)(const cot__fft_job *job, const cot__view *x, const cot__view *z, void *scratch);

    /* ---- linear algebra ----
     *
     * A batch is a view, F64 or F32, whose last two axes are the matrix and whose leading axes
     * count the matrices, in row-major order. Operands that are only read may have any strides;
     * results and what is worked on in place are row-major. A matrix that cannot be factored is NaN
     * in the result, and the others are not touched by it; status[0] becomes how many there were,
     * status[1] the number of the first. scratch: what the entry of that name with _workspace
     * tells, negative when no memory could hold it. */

    /* a (m,n) becomes L below its diagonal and U from there up, L U = a[permutation]; permutation
     * (…, m) is i64. A singular matrix is fine. */
    int64_t (*lu_workspace)(const cot__view *a);
    void (*lu)(const cot__view *a, const cot__view *permutation, void *scratch);
    /* z = a⁻¹ b, or a⁻ᵀ b, from what lu made of a. An exact zero on U's diagonal is bad. */
    int64_t (*lu_solve_workspace)(const cot__view *factors, const cot__view *b);
    void (*lu_solve)(const cot__view *factors, const cot__view *permutation, const cot__view *b, bool transposed,
                     const cot__view *z, void *scratch, int64_t *status);
    /* det a, or (log) log |det a|; z (…). */
    void (*lu_det)(const cot__view *factors, const cot__view *permutation, bool logarithm, const cot__view *z);
    /* The sign of det a: 1, -1, or 0; NaN for NaN. */
    void (*lu_sign)(const cot__view *factors, const cot__view *permutation, const cot__view *z);
    /* What lu made of a, apart: L (m,k) and U (k,n), k = min(m, n). */
    void (*lu_split)(const cot__view *factors, const cot__view *l, const cot__view *u);
    /* b becomes a⁻¹ b (or b a⁻¹, …: flags), a triangular; the other half of a is not read. A zero
     * on the diagonal is bad, but the numbers are left as the divisions made them. */
    int64_t (*triangular_workspace)(const cot__view *a, const cot__view *b);
    void (*triangular)(const cot__view *a, int flags, const cot__view *b, void *scratch, int64_t *status);
    /* a becomes L, lower, L Lᵀ = a; only the lower half of a is read. bad: not positive
     * definite. */
    int64_t (*cholesky_workspace)(const cot__view *a);
    void (*cholesky)(const cot__view *a, void *scratch, int64_t *status);
    /* a (m,n) = Q R, m >= n, Q (m,n), R (n,n). Signs as in LAPACK: each reflection sends a column
     * to minus the sign of its leading element. */
    int64_t (*qr_workspace)(const cot__view *a);
    void (*qr)(const cot__view *a, const cot__view *q, const cot__view *r, void *scratch);
    /* a (n,n), symmetric, = V diag(w) Vᵀ; w ascends. The sign of an eigenvector: its first element
     * of (to a thousandth) the largest magnitude is positive. bad: no convergence. NaN or
     * infinities in a: NaN. */
    int64_t (*eigh_workspace)(const cot__view *a);
    void (*eigh)(const cot__view *a, const cot__view *v, const cot__view *w, void *scratch, int64_t *status);
    /* a (m,n) = U diag(s) Vᵀ, U (m,k), Vᵀ (k,n), k = min(m, n); s descends. Signs: as above, by the
     * columns of U. */
    int64_t (*svd_workspace)(const cot__view *a);
    void (*svd)(const cot__view *a, const cot__view *u, const cot__view *s, const cot__view *vt, void *scratch,
                int64_t *status);
} cot__backend;

#endif
