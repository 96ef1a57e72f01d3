/* product_batch.c: many directions as one batch, in numbers.
 *
 * Small tensors cost more to dispatch than to compute, and a matrix times 64 vectors is one matrix
 * product. So the sweep for one direction is recorded once, as the body of a vmap, and played for a
 * batch of directions: each operation of the sweep then serves all directions.
 *
 * The results have the same bits as sweeps one by one (a zero may have another sign). This holds
 * because recorded rules have the bits of sweeps in numbers, and an element of a batch has the bits
 * of the element alone. Operations for which it does not hold say so in their record
 * (sweeps_alone).
 *
 * A batch is a shorter way to the same result. Where it does not apply or fails, products.c sweeps
 * one direction after the other, and reports what is wrong. */
#include "diff/products/products.h"
#include "diff/batch/vmap.h"
#include "ops/structural.h"
#include "tape/region.h"

#include <string.h>

int64_t cot__batch_elements = 1 << 17, cot__batch_from = 8;

/* All values of a batch stay in memory until it has been played: at most 16 MB in f64. */
enum { ALL_ELEMENTS = 1 << 21 };
/* Elementwise work on more elements than this takes longer than its dispatch. There block kernels
 * are better: they do a whole partial in one pass, and a recorded partial takes several. */
enum { CHEAP_ELEMENTS = 64 };

/* ---- does it apply? -------------------------------------------------------------------------- */

/* Can the node be part of a batch? A sweep in numbers stops at a scalar adjoint of 0. A recorded
 * sweep goes on, and a rule may make NaN of 0 and an infinity. */
static bool can_batch(const cot__node *n) {
    const cot__op *op = cot__op_of(n->op);
    if (!cot__has_axes(n) || !cot__dtype_is_float(cot__dtype_at(n))) return false;
    if (n->op < OP_structural || op->kind == KIND_SOURCE || op->kind == KIND_PICK) return true;
    return op->batch && !op->sweeps_alone;
}

/* How many directions a batch has: the largest value on the way from xs to ys must stay in a cache,
 * and all values in a few megabytes. 0: no batch. */
static int64_t batch_extent(cot_tape *t, const cot__side *xs, const cot__side *ys, int lanes) {
    uint32_t lo = xs->lo, hi = ys->hi;
    uint8_t *needed = lo <= hi ? cot__needed(t, lo, hi, ys->n, ys->index, COT__EDGES_MOVING) : NULL;
    int64_t  largest = 1, all = 1;
    bool     ok = needed != NULL, products = false;
    for (uint32_t i = lo; ok && i <= hi; i++) {
        const cot__node *n = &t->nodes[i];
        if (!(needed[i - lo] & 1) || !(n->flags & COT__ACTIVE)) continue;
        int64_t size = cot__size_at(t, i);
        ok = can_batch(n);
        products |= cot__op_of(n->op)->kind == KIND_BILINEAR;
        largest = size > largest ? size : largest;
        all = cot__size_add(all, size);
    }
    if (needed) cot__list_free(t, needed, (size_t)(hi - lo) + 1);
    if (!ok || (!products && largest > CHEAP_ELEMENTS)) return 0;
    int64_t most = cot__batch_elements / largest, fit = ALL_ELEMENTS / all;
    most = most < fit ? most : fit;
    return most < lanes ? most : lanes;
}

/* ---- one sweep as a body --------------------------------------------------------------------- */

typedef struct one_sweep {
    const char      *op;
    bool             reverse;
    const cot__side *from, *to;
    uint32_t        *tangents; /* forward: the inputs of the body as nodes */
} one_sweep;

static int record_sweep(int n, const cot_var *given, int m, cot_var *results, void *user) {
    const one_sweep *s = user;
    cot_tape        *t = s->from->t;
    for (int k = 0; k < n; k++) s->tangents[k] = cot__index(given[k]);
    if (s->reverse) cot__vjp_recorded(t, s->op, n, s->from->index, given, m, s->to->index, results);
    else cot__jvp_recorded(t, s->op, m, s->to->index, n, s->from->index, s->tangents, results);
    return 0;
}

/* ---- directions in, products out ------------------------------------------------------------- */

/* The strides of a batch of values whose elements lie in rows of `row` elements. */
static void row_strides(const cot_shape *batch, int64_t row, int64_t *stride) {
    cot__strides(batch->ndim, batch->dim, stride);
    stride[0] = row;
}

/* A batch of directions for value k of `from`. Its elements begin at `at` in each row of `in`. */
static cot_var directions(const cot__side *from, int k, int64_t at, const double *in, int64_t extent) {
    cot_tape   *t = from->t;
    uint32_t    i = from->index[k];
    cot_shape   batch = cot__batch_shape(t, extent, cot__shape_at(t, i));
    cot__result r;
    int64_t     stride[COT_MAX_NDIM];
    double     *data;
    if (t->status != COT_OK) return INVALID(t);
    if (!cot__result_open(t, &r, "vmap", cot__dtype_at(&t->nodes[i]), batch.ndim, batch.dim)) return INVALID(t);
    in += at;
    /* the copy of the pointer drops const; the memory is only read */
    memcpy(&data, &in, sizeof data);
    row_strides(&batch, from->size, stride);
    t->backend->copy_in(&r.view, &(cot__view){data, COT_F64, batch.ndim, batch.dim, stride});
    return cot__result_push(t, &r, OP_constant, 0, NULL, NULL);
}

/* Copies product k to `out`. A product that depends on no direction is zeros and has no batch. */
static void take_products(const cot__side *to, int k, int64_t at, cot_var y, bool is_batch, double *out,
                          int64_t extent) {
    cot_tape *t = to->t;
    cot_shape batch = cot__batch_shape(t, extent, cot__shape_at(t, to->index[k]));
    cot__view from = cot__look(t, cot__index(y));
    int64_t   stride[COT_MAX_NDIM], repeated[COT_MAX_NDIM] = {0};
    row_strides(&batch, to->size, stride);
    if (!is_batch) {
        memcpy(repeated + 1, from.stride, (size_t)from.ndim * sizeof *repeated);
        from.stride = repeated;
    }
    from.ndim = batch.ndim, from.shape = batch.dim;
    t->backend->copy_out(&(cot__view){out + at, COT_F64, batch.ndim, batch.dim, stride}, &from);
}

/* ---- all of them ----------------------------------------------------------------------------- */

typedef struct lists {
    cot_var *values, *out; /* inputs and captures of the body; its results */
    bool    *given, *is;   /* which values and results are batches */
} lists;

static bool lists_open(lists *l, cot_tape *t, const cot__region *r) {
    size_t count = (size_t)(r->n + r->captures), m = (size_t)r->m;
    l->values = cot__arena(t, (count + m) * (sizeof *l->values + 1), "vmap");
    if (!l->values) return false;
    l->out = l->values + count;
    l->given = (bool *)(l->out + m);
    l->is = l->given + count;
    for (int k = 0; k < r->n; k++) l->given[k] = true;
    for (int k = 0; k < r->captures; k++) {
        l->values[r->n + k] = VAR(t, r->captured[k]);
        l->given[r->n + k] = false;
    }
    return true;
}

static bool play(const one_sweep *s, const cot__region *r, lists *l, const double *in, double *out, int64_t extent) {
    cot_tape *t = s->from->t;
    for (int64_t k = 0, at = 0; k < s->from->n; at += cot__size_at(t, s->from->index[k++])) {
        l->values[k] = directions(s->from, (int)k, at, in, extent);
        if (t->status != COT_OK) return false;
    }
    if (!cot__play_batched(t, s->op, r, l->values, l->given, extent, l->out, l->is)) return false;
    for (int64_t k = 0, at = 0; k < s->to->n; at += cot__size_at(t, s->to->index[k++]))
        take_products(s->to, (int)k, at, l->out[k], l->is[k], out, extent);
    return true;
}

static const cot__region *record_body(one_sweep *s) {
    cot_tape *t = s->from->t;
    int       n = s->from->n;
    cot_var  *examples = cot__arena(t, (size_t)n * (sizeof *examples + sizeof *s->tangents), s->op);
    if (!examples) return NULL;
    s->tangents = (uint32_t *)(examples + n);
    for (int k = 0; k < n; k++) examples[k] = VAR(t, s->from->index[k]);
    return cot__region_record(t, s->op, record_sweep, s, n, examples, s->to->n);
}

bool cot__products_batched(const char *op, bool reverse, const cot__side *from, const cot__side *to,
                           const cot__directions *d) {
    cot_tape *t = from->t;
    int64_t   extent = 0;
    one_sweep s = {.op = op, .reverse = reverse, .from = from, .to = to};
    lists     l = {0};
    if (!d->in || !d->out || d->lanes < cot__batch_from || t->options.smooth || from->size == 0 || to->size == 0)
        return false;
    extent = batch_extent(t, reverse ? to : from, reverse ? from : to, d->lanes);
    if (extent < 1 || extent < cot__batch_from) return false;
    cot_mark           m = cot__mark(t);
    cot__scope scope = cot__scope_open(t, 0);
    const cot__region *r = record_body(&s);
    bool               ok = r && lists_open(&l, t, r);
    cot_mark           recorded = cot__mark(t);
    for (int64_t lane = 0; ok && lane < d->lanes; lane += extent) {
        int64_t count = d->lanes - lane < extent ? d->lanes - lane : extent;
        ok = play(&s, r, &l, d->in + lane * from->size, d->out + lane * to->size, count);
        cot__rewind(t, recorded);
    }
    cot__scope_close(t, &scope);
    cot__rewind(t, m);
    if (t->status != COT_OK) cot_tape_clear_error(t);
    return ok;
}
