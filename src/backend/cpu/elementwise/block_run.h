/* block_run.h: elementwise kernels over views, taken apart: a run is prepared once and may then be
 * done range by range. */
#ifndef COT_BLOCK_RUN_H
#define COT_BLOCK_RUN_H

#include "backend/cpu/elementwise/blocks.h"

/* A run of elementwise kernels over one set of operands: z = value(xs), or for each output out (+)=
 * partial(g, xs, z). Element i of each output depends on element i of the views alone, so any range
 * of elements can be run by itself. */
typedef struct cot__output {
    cot__partial_kernel partial;
    cot__view           to;
    bool                accumulate;
    /* a plain array that is only written: the kernel may write there itself */
    bool                direct;
    int                 g;      /* which of the views is g */
} cot__output;

typedef struct cot__block_run {
    cot__value_kernel value; /* NULL: partials */
    cot__value_kernel add;   /* of two blocks; see is_simple */
    int               cost;  /* of an element, in additions */
    cot_dtype         compute;
    int               n, arity, outputs; /* views: xs, or xs, z, and the gs */
    cot__view         x[7]; /* data NULL: not read */
    cot__output       out[3];
    bool              plain, simple; /* all of it plain arrays, one direct output; see is_simple */
    int64_t           size, parts;
} cot__block_run;

/* z = op(xs), or the terms of cot__block_run_partials; nothing is done yet. */
void cot__block_run_of_value(cot__block_run *r, int op, cot_dtype compute, int n, const cot__view *xs,
                             const cot__view *z);
void cot__block_run_of_partials(cot__block_run *r, int op, cot_dtype compute, int n, const cot__view *xs,
                                const cot__view *z, int count, const cot__term *terms);
/* to = from, of one dtype. */
void cot__block_run_of_copy(cot__block_run *r, const cot__view *to, const cot__view *from);
/* Chooses the way; the views stay as they are then. */
void cot__block_run_prepare(cot__block_run *r);
/* Blocks full of numbers that repeat (the 2 of 2·x), kept from one range or run to the next; count
 * and next are 0 at first. */
enum { COT__LONG = 512, COT__REPEATED = 3 }; /* on the stack: programs may have small ones */
typedef struct cot__repeated {
    int count, next;
    struct {
        uint64_t bits;
        int      size, filled;
        union {
            uint64_t u64[COT__LONG];
            uint32_t u32[2 * COT__LONG];
        };
    } block[COT__REPEATED];
} cot__repeated;
/* Elements start … stop - 1; start is a multiple of COT__BLOCK. */
void cot__block_run_range(const cot__block_run *r, int64_t start, int64_t stop, cot__repeated *repeated);
/* All elements, on the pool's threads where that pays. */
void cot__block_run_now(cot__block_run *r);

/* Row-major without gaps, and of that dtype. */
static inline bool cot__is_plain(const cot__view *v, cot_dtype dtype) {
    return v->dtype == dtype && cot__is_contiguous(v->ndim, v->shape, v->stride);
}
/* One element that stands for all: every stride 0. */
static inline bool cot__repeats(const cot__view *v) {
    for (int i = 0; i < v->ndim; i++)
        if (v->stride[i] != 0 && v->shape[i] != 1) return false;
    return true;
}

#endif
