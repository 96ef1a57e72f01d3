/* fft.h: discrete Fourier transforms along one axis: the entry `fft` of the table, and the plan
 * that fft.c and its template share.
 *
 * May call: base, the shared kernels. Must not touch: tapes, nodes, vars. */
#ifndef COT_FFT_H
#define COT_FFT_H

#include "backend/cpu/kernels.h"

/* Any float dtypes, x's and z's the same; computed in f64 for f64, else in f32. Rows are done in
 * parallel. scratch: what the first tells. */
int64_t cot__fft_workspace(const cot__fft_job *job, const cot__view *x);
void    cot__fft(const cot__fft_job *job, const cot__view *x, const cot__view *z, void *scratch);

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
    /* n + 1 if a real row of 2n numbers is transformed as n complex ones; else 0, and twist is
     * NULL */
    int64_t twists;
    void   *twist[2];      /* exp(-2πi k/2n) for k <= n */
} cot__fft_plan;

/* Rows in groups of `lanes`, which are transformed side by side: element j of row r of a group is
 * at j * lanes + r. */
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
