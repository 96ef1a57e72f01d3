/* products.h: products of a Jacobian with several seeds or tangents, in numbers (products.c).
 *
 * May call: base, rules, backend, tape, ops, the engine, second derivatives, batches. Must not
 * touch: what is recorded: products are numbers. */
#ifndef COT_PRODUCTS_H
#define COT_PRODUCTS_H

#include "diff/engine/sweep.h"

/* The vars on one side of a Jacobian, seen as one vector. */
typedef struct cot__side {
    cot_tape *t;
    int       n;
    uint32_t *index;
    int64_t   size; /* number of elements of all vars */
    /* every var has one element. size == n does not say so, because some vars may have none */
    bool      each_one;
    uint32_t  lo, hi;
} cot__side;

/* The same as `each_one`, for vars that are known to be values of a tape. */
bool cot__each_one(int n, const cot_var *vars);

/* Checks the vars and finds their nodes. Close it also after a failure, which has set the error. */
bool cot__side_open(cot__side *s, cot_tape *t, const char *op, bool inputs, int n, const cot_var *vars);
void cot__side_close(cot__side *s);

/* Where directions come from and products go. Either as rows, one for each lane: a row of `in` has
 * the elements of all seeded vars, a row of `out` those of all results. Or, with both NULL, through
 * functions:
 *   seed   fills `to`, row by row in the node's dtype: elements from `at` on of a direction
 *   take   is handed elements from `at` on of a product, NULL: zeros. An array stays until
 *          `done` has returned, up to COT__HELD lanes of up to COT__HELD_VARS results. False after
 *          setting the error.
 *   done   is called when all has been taken */
typedef struct cot__directions {
    int           lanes;
    const double *in;
    double       *out;
    void (*seed)(void *ctx, int lane, int64_t at, const cot__view *to);
    bool (*take)(void *ctx, int lane, int64_t at, int64_t size, const cot__view *from);
    void (*done)(void *ctx);
    void *ctx;
} cot__directions;

enum { COT__HELD = 10, COT__HELD_VARS = 32 };

/* cot_vjps (reverse) and cot_jvps for the public function `op`. With 0 lanes only the checks are
 * done. After a failure the results are undefined. */
cot_status cot__products_of(const char *op, bool reverse, int m, const cot_var *ys, int n, const cot_var *xs,
                            const cot__directions *d);
cot_status cot__products(const char *op, bool reverse, int lanes, int m, const cot_var *ys, int n, const cot_var *xs,
                         const double *in, double *out);

/* Bytes that one of them keeps of its own, besides what a sweep does. */
size_t cot__product_keeps(int m, int n);

/* Is every node that a sweep between xs and ys can meet an f64 scalar that the runs over scalars
 * know? */
bool cot__all_scalar(cot_tape *t, const char *op, uint32_t lo, uint32_t hi, const cot__side *ys);
/* One sweep over such nodes; `used` of its lanes hold directions. Seeds, tangents and results are
 * rows. */
void cot__reverse_products(cot__side *ys, cot__side *xs, const cot__scalar_runs *runs, int used, const double *seeds,
                           double *out);
void cot__forward_products(cot__side *xs, cot__side *ys, const cot__scalar_runs *runs, int used, const double *tangents,
                           double *out);

/* Plays all directions as batches (product_batch.c). False: batches do not apply, and nothing was
 * done. */
bool cot__products_batched(const char *op, bool reverse, const cot__side *from, const cot__side *to,
                           const cot__directions *d);
/* The largest value on the way has at most cot__batch_elements elements in a batch. A batch has at
 * least cot__batch_from directions: recording the body costs as much as about that many sweeps.
 * (Tests change both.) */
extern int64_t cot__batch_elements, cot__batch_from;

#endif
