/* runs.h: elementwise work as data: which operation over which views, and what may be done
 * together.
 *
 * A run is one elementwise operation over one set of operands: z = op(xs), or for each output
 * out (+)= partial(g, xs, z), or a copy. Element i of each output depends on element i of the views
 * alone, so any range of elements can be run by itself. A stage is a list of runs over arrays of
 * one size that may be done block by block together. A fold of a stage reduces what a run makes to
 * one element, with the bits of the entry `reduce`; or it is no reduction, but an operation on the
 * rows of arrays (softmax, a norm), whose job is done on the rows of a block. The entry
 * `elementwise` of a backend does a stage; a device prints its kernels from the same rules. */
#ifndef COT_RUNS_H
#define COT_RUNS_H

#include "job/job.h"

enum { COT__RUN_VIEWS = 7, COT__RUN_OUTPUTS = 3, COT__STAGE_RUNS = 32, COT__STAGE_FOLDS = 8 };
enum { COT__STAGE_ROOM = 1 << 18 }; /* elements of all blocks that are worked on at a time */
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

/* An operation each row of whose results is made of the same row of its first operands, or an
 * elementwise one on what folds have made of rows, an element each. The job has the whole arrays,
 * row-major; done on some rows of them, it makes those rows. */
typedef struct cot__stage_rows {
    cot__job job;
    double   number; /* its plain number */
    int      axes;     /* in front of the axes of a row, in operands and results */
    int      operands; /* that have rows, or no axes; the others are the same for all rows */
    int      results;
    /* Bit i: operand i is as `moves` of a stage says; bit COT__RUN_VIEWS: result 0 is. */
    uint16_t moves;
} cot__stage_rows;

/* z, of one element, is the sum, maximum or minimum of all elements of x: the row-major output of a
 * run, or the product; or z has one for each row of x. x is read when `after` runs of the stage
 * have done a block, and the folds before. */
typedef struct cot__stage_fold {
    /* Not NULL: it is this operation, and has but `after` and `row`. */
    const cot__stage_rows *rows;
    int       what; /* a cot__reduction: SUM, MAX or MIN; of rows NORM2 or LOGSUMEXP, too */
    int       after;
    int64_t   row; /* elements of a row; 0: all are reduced to one */
    bool      moves; /* x is as `moves` of a stage says */
    cot__view x, z;
    /* Of the backend: cot__fold_blocks(size) elements of 8 bytes; none for rows. */
    void     *nodes;
} cot__stage_fold;

/* Blocks of a stage with folds are parts of the reduction's tree: one leaf or 2, 4, … of them. So
 * many there are at most. If folds are of rows, all rows have one length, and blocks are whole
 * rows. */
static inline int64_t cot__fold_blocks(int64_t size) { return (size + COT__BLOCK - 1) / COT__BLOCK; }

/* Which elements of a run belong to a block of the stage, where these are not the same: element i
 * of the run belongs to element i + at of the stage, and with a block so many before and behind it
 * are done, too, as later runs read them shifted. Outputs of such runs are moved (see below). */
typedef struct cot__run_span { int64_t at, before, after; } cot__run_span;

/* A product of two matrices that is made, as a whole, before the runs and folds, which read it:
 * c = a b, row-major, with as many elements as the stage. */
typedef struct cot__stage_product {
    cot__view a, b, c;
    void     *workspace; /* as the entry `matmul` has it */
} cot__stage_product;

typedef struct cot__stage {
    cot__block_run *run;
    const cot__stage_product *product; /* NULL: all that is read is there */
    const cot__run_span *span; /* NULL, or one for each run */
    cot__stage_fold      *fold;
    int             folds;
    int             count;
    /* Elements of the longest run; cost of an element, all runs together. */
    int64_t         size, cost;
    int64_t         block_bytes; /* of an array that should be done at a time */
    /* NULL, or for each run: bit i says that view i (outputs come after COT__RUN_VIEWS) lies in
     * memory that nobody reads after the stage, and that the stage writes before it reads. Every
     * block may then use the same piece of it. */
    const uint16_t *moves;
    /* Elements for which there is such memory: COT__STAGE_ROOM, or half of all, but not less than
     * COT__STAGE_ROOM / 4; 0: for all. */
    int64_t         room;
    /* The CPU's notes. ready: those of the runs are written; if the stage is done again, only the
     * data of views may have changed, and none of them may have become NULL or stopped being it.
     * directly: each run is one call for a block. */
    int64_t         parts, step;
    bool            ready, directly;
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
