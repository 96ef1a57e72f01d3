/* runs.h: elementwise work as data: which operation over which views, and what may be done
 * together.
 *
 * A run is one elementwise operation over one set of operands: z = op(xs), or for each output
 * out (+)= partial(g, xs, z), or a copy. Element i of each output depends on element i of the views
 * alone, so any range of elements can be run by itself. A stage is a list of runs over arrays of
 * one size that may be done block by block together. The entry `elementwise` of a backend does a
 * stage; a device prints its kernels from the same rules. */
#ifndef COT_RUNS_H
#define COT_RUNS_H

#include "base/base.h"

enum { COT__RUN_VIEWS = 7, COT__RUN_OUTPUTS = 3, COT__STAGE_RUNS = 32, COT__STAGE_MOVED = 16 };
enum { COT__RUN_COPY = -1 }; /* to = from, converted where dtypes differ */

/* What the CPU's blocks are made of: n elements, contiguous, of one compute type. Unused operands
 * are NULL. */
typedef void (*cot__value_kernel)(int n, const void *x, const void *y, const void *w, void *z);
typedef void (*cot__partial_kernel)(int n, const void *g, const void *x, const void *y, const void *w, const void *z,
                                    void *out);

/* A partial of an operation times g, written to out or added to what is there. */
typedef struct cot__term { int k; bool accumulate; cot__view g, out; } cot__term;

typedef struct cot__output {
    cot__view to;
    int       k; /* which partial; -1: the value */
    int       g; /* which of the views is g */
    bool      accumulate;
    /* the CPU's notes */
    bool                direct; /* a plain array, only written: the kernel may write there itself */
    cot__partial_kernel partial;
} cot__output;

typedef struct cot__block_run {
    int         op;         /* or COT__RUN_COPY */
    int         cost;       /* of an element, in additions */
    cot_dtype   compute;
    int         n, arity, outputs; /* views: xs, or xs, z, and the gs */
    cot__view   x[COT__RUN_VIEWS]; /* data NULL: not read */
    cot__output out[COT__RUN_OUTPUTS];
    bool        values;     /* one output, the value; else partials */
    /* the CPU's notes */
    bool              plain, simple; /* all of it plain arrays, one direct output; see is_simple */
    cot__value_kernel value; /* NULL: partials */
    cot__value_kernel add;   /* of two blocks; see is_simple */
    int64_t           size, parts;
} cot__block_run;

typedef struct cot__stage {
    cot__block_run *run;
    int             count;
    int64_t         size, cost;  /* elements of each; of an element, all runs together */
    int64_t         block_bytes; /* of an array that should be done at a time */
    /* NULL, or for each run: bit i says that view i (outputs come after COT__RUN_VIEWS) lies in
     * memory that nobody reads after the stage, and that the stage writes before it reads. Every
     * block may then use the same piece of it. At most COT__STAGE_MOVED runs have such views. */
    const uint16_t *moves;
    int64_t         parts, step; /* the CPU's notes */
} cot__stage;

/* z = op(xs) for views of z's shape (0-d operands repeat); z may be one of the operands. */
void cot__block_run_of_value(cot__block_run *r, int op, cot_dtype compute, int n, const cot__view *xs,
                             const cot__view *z);
/* For each of `count` terms, in one pass: out = (accumulate ? out : 0) + partial k of op at (xs, z)
 * applied to g. Terms with one `out` are added in order. The first out, if it is not accumulated,
 * may be the g of the terms itself. */
void cot__block_run_of_partials(cot__block_run *r, int op, cot_dtype compute, int n, const cot__view *xs,
                                const cot__view *z, int count, const cot__term *terms);
/* to = from, converted as the entry `copy` of a backend does where the dtypes differ. */
void cot__block_run_of_copy(cot__block_run *r, const cot__view *to, const cot__view *from);

/* The same, done now, alone. */
struct cot__backend;
void cot__run_now(const struct cot__backend *b, cot__block_run *r);
void cot__run_value(const struct cot__backend *b, int op, cot_dtype compute, int n, const cot__view *xs,
                    const cot__view *z);
void cot__run_partials(const struct cot__backend *b, int op, cot_dtype compute, int n, const cot__view *xs,
                       const cot__view *z, int count, const cot__term *terms);

/* A plain number of the host, in the computing type, as an operand of a run. It is the one view of
 * a run that does not lie in memory of the backend, and its shape tells. */
extern const int64_t    cot__no_axes_of_number[1];
static inline cot__view cot__number_view(const void *number, cot_dtype compute) {
    return (cot__view){(void *)(uintptr_t)number, compute, 0, cot__no_axes_of_number, cot__no_axes_of_number};
}
static inline bool cot__is_number_view(const cot__view *v) { return v->shape == cot__no_axes_of_number; }

/* Row-major without gaps, and of that dtype. */
static inline bool cot__is_dense(const cot__view *v, cot_dtype dtype) {
    return v->dtype == dtype && cot__is_contiguous(v->ndim, v->shape, v->stride);
}
/* One element that stands for all: every stride 0. */
static inline bool cot__repeats(const cot__view *v) {
    for (int i = 0; i < v->ndim; i++)
        if (v->stride[i] != 0 && v->shape[i] != 1) return false;
    return true;
}

#endif
