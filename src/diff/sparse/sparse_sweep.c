/* sparse_sweep.c: computes the entries of a sparse matrix. All columns (or rows) of a colour are
 * seeded with 1, and the plan's lists say where in the products the entries are.
 *
 * Seeds are written directly to the memory of the sweep. Products are read directly from the memory
 * of the sweep if they are one array of doubles; otherwise they are copied. */
#include "diff/products/products.h"
#include "diff/sparse/sparse.h"

void cot__sparse_seed(const cot_tape *t, const cot_sparse_plan *p, int32_t colour, int64_t from, const cot__view *to) {
    t->backend->equal_to(p->colour + from, colour, to);
}

void cot__sparse_collect(const cot_tape *t, const cot_sparse_plan *p, int32_t group, const double *const *products,
                         double *values) {
    cot__picks picks = {.first = p->entry_start[group], .products = products, .lane = p->lane, .source = p->source,
                        .entry = p->entry, .values = values};
    picks.n = p->entry_start[group + 1] - picks.first;
    t->backend->pick(&picks);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* One group of colours that is being swept. */
typedef struct evaluation {
    const char            *op;
    cot_tape              *t;
    const cot_sparse_plan *p;
    int32_t                group;
    int64_t                to;   /* number of elements of a product */
    bool                   held; /* the sweep keeps all products until they have been read */
    /* copies of products that are not one array of doubles. NULL: no copy was needed yet */
    double                *rows;
    const double          *products[COT__HELD];
    double                *values;
} evaluation;

static void seed(void *ctx, int lane, int64_t at, const cot__view *to) {
    const evaluation *e = ctx;
    cot__sparse_seed(e->t, e->p, e->group * e->p->lanes + lane, at, to);
}

static size_t row_bytes(const evaluation *e) { return (size_t)(e->p->lanes * e->to) * sizeof(double); }

static bool take(void *ctx, int lane, int64_t at, int64_t size, const cot__view *from) {
    evaluation *e = ctx;
    int64_t     stride[COT_MAX_NDIM];
    bool        whole = e->held && from && from->ndim > 0 && size == e->to && from->dtype == COT_F64;
    if (size == 0) return true;
    if (whole && cot__is_contiguous(from->ndim, from->shape, from->stride)) {
        e->products[lane] = from->data;
        return true;
    }
    if (!e->rows && !(e->rows = cot__device_alloc(e->t, row_bytes(e)))) {
        cot__fail(e->t, COT_MEMORY, "[%s] out of memory: %d products of %zu bytes in all", e->op, (int)e->p->lanes,
                  row_bytes(e));
        return false;
    }
    double   *row = e->rows + lane * e->to;
    int64_t   one = 1;
    cot__view all = {row + at, COT_F64, 1, &size, &one};
    e->products[lane] = row;
    if (!from) {
        e->t->backend->fill(&all, 0);
        return true;
    }
    cot__strides(from->ndim, from->shape, stride);
    e->t->backend->copy(&(cot__view){row + at, COT_F64, from->ndim, from->shape, stride}, from);
    return true;
}

static void done(void *ctx) {
    const evaluation *e = ctx;
    cot__sparse_collect(e->t, e->p, e->group, e->products, e->values);
}

/* Computes numbers, without recording, in rows of the host: one sweep carries several products at
 * once. */
static void over_rows(evaluation *e, int m, const cot_var *ys, int n, const cot_var *xs) {
    const cot_sparse_plan *p = e->p;
    int64_t                from = cot__plan_coloured(p);
    size_t                 bytes = (size_t)(p->lanes * from) * sizeof(double);
    double                *in = cot__alloc(&e->t->al, bytes);
    e->rows = cot__device_alloc(e->t, row_bytes(e));
    if (!in || !e->rows)
        cot__fail(e->t, COT_MEMORY, "[%s] out of memory: %d products of %zu bytes in all", e->op, (int)p->lanes,
                  bytes + row_bytes(e));
    for (; e->group < cot__plan_groups(p) && e->t->status == COT_OK; e->group++) {
        int32_t first = e->group * p->lanes, lanes = p->colours - first < p->lanes ? p->colours - first : p->lanes;
        for (int l = 0; l < lanes; l++) {
            cot__sparse_seed(e->t, p, first + l, 0, &(cot__view){in + l * from, COT_F64, 1, &from, NULL});
            e->products[l] = e->rows + l * e->to;
        }
        if (cot__products(e->op, !p->forward, lanes, m, ys, n, xs, in, e->rows) == COT_OK) done(e);
    }
    cot__free(&e->t->al, in, bytes);
}

void cot__sparse_entries(const char *op, cot_tape *t, const cot_sparse_plan *p, int m, const cot_var *ys, int n,
                         const cot_var *xs, double *values) {
    evaluation e = {.op = op, .t = t, .p = p, .to = p->forward ? p->pattern.rows : p->pattern.cols, .values = values};
    e.held = (p->forward ? m : n) <= COT__HELD_VARS;
    if (cot__scalars_in_nodes(t) && cot__each_one(n, xs) && cot__each_one(m, ys))
        over_rows(&e, m, ys, n, xs);
    else
        for (; e.group < cot__plan_groups(p) && t->status == COT_OK; e.group++) {
            int32_t left = p->colours - e.group * p->lanes;
            cot__directions d    = {
                   .lanes = left < p->lanes ? left : p->lanes, .seed = seed, .take = take, .done = done, .ctx = &e};
            cot__products_of(op, !p->forward, m, ys, n, xs, &d);
        }
    cot__device_free(t, e.rows, row_bytes(&e));
}
