/* fft.h: discrete Fourier transforms along one axis: what the operations call, and the plan that
 * fft.c and its template share.
 *
 * May call: base, the shared kernels. Must not touch: tapes, nodes, vars. */
#ifndef COT_FFT_H
#define COT_FFT_H

#include "backend/cpu/kernels.h"

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

/* Any float dtypes; computed in f64 for f64, else in f32. Rows are done in parallel. False when
 * memory cannot be had. */
bool cot__fft(const cot_allocator *al, const cot__fft_job *job, const cot__view *x, const cot__view *z);

/* The smallest number of the form 2^a 3^b 5^c that is at least n: a length whose transform is
 * fast. */
int64_t cot__fft_fast_length(int64_t n);

/* ---- between fft.c and its templates --------------------------------------------------------- */

/* A complex transform of length n: of factors 2, 3, 4 and 5, or, with another prime in n, by way of
 * a convolution of length m (Bluestein). Tables are split into real and imaginary parts, of the
 * working type. */
typedef struct cot__fft_plan {
    int64_t n, m;          /* m = n unless chirped */
    bool    chirped;
    int     factors, factor[64]; /* of m */
    const void *loops;     /* of fft_passes.h, for the working type and the machine */
    void   *root[2];       /* m: exp(-2πi j/m) */
    void   *chirp[2];      /* n: exp(-πi j²/n) */
    void   *kernel[2];     /* m: the transform of the conjugate chirp, over m */
    /* n + 1, when a real row of 2n numbers goes as n complex ones; else 0, and */
    int64_t twists;
    void   *twist[2];      /* exp(-2πi k/2n) for k <= n, is NULL */
} cot__fft_plan;

/* Rows in groups of `lanes`, which are transformed side by side: element j of row r of a group at j
 * * lanes + r. */
typedef struct cot__fft_work {
    cot__fft_job  job;
    cot__fft_plan plan;
    cot__view     x, z;
    int64_t       rows, lanes, groups, parts;
    size_t        room;    /* bytes of each part's buffers */
    char         *buffers;
    void (*group)(const struct cot__fft_work *w, int64_t first, int64_t lanes, void *buffer);
} cot__fft_work;

/* Where row r of a view begins, in elements. */
int64_t cot__fft_row(const cot__view *v, int axis, bool is_complex, int64_t r);
/* exp(-2πi j/n), to the last bit or nearly. */
void cot__fft_root(int64_t j, int64_t n, double *re, double *im);

#endif
