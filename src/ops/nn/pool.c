/* pool.c: pooling over windows of the last one, two or three axes.
 *
 * max_pool is recorded as two nodes: max_pool_index, which element of each window is its first
 * maximum, without derivative; and max_pool, which takes these elements and is linear in x. Its
 * transpose max_unpool puts them back, and its transpose is max_pool again. avg_pool and avg_unpool
 * are linear and each other's transposes. All leading axes are alike: planes. */
#include "rules/structural_ids.h"
#include "ops/kinks.h"
#include "ops/structural.h"

enum { VALUES, CHOSEN };

/* The geometry behind a node, one of whose arrays is `pooled`. Attributes are [exclude,] then
 * window, stride, padding and x's extents, as many each as spatial axes. */
static cot__pool geometry_of(const cot_tape *t, const cot__attr *attr, int flags, uint32_t pooled, int *space) {
    cot__pool g = {1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}};
    *space = ((int)attr->nints - flags) / 4;
    const int64_t *ints = attr->ints + flags;
    cot_shape      z = cot__shape_at(t, pooled);
    g.planes = cot__count(z.ndim - *space, z.dim);
    for (int i = 0, to = 3 - *space; i < *space; i++, to++) {
        g.window[to] = ints[i], g.stride[to] = ints[*space + i], g.before[to] = ints[2 * *space + i],
        g.x[to] = ints[3 * *space + i];
        g.z[to] = z.dim[z.ndim - *space + i];
    }
    return g;
}

/* ---- values in the dtype that kernels know --------------------------------------------------- */

typedef struct flat { const void *data; void *copy; size_t bytes; } flat;

/* The elements of v, contiguous and in `dtype`: themselves or a copy. */
static bool flatten(cot_tape *t, const char *op, const cot__view *v, cot_dtype dtype, flat *f) {
    *f = (flat){v->data, NULL, 0};
    if (v->dtype == dtype && cot__is_contiguous(v->ndim, v->shape, v->stride)) return true;
    int64_t stride[COT_MAX_NDIM];
    f->bytes = (size_t)(cot__count(v->ndim, v->shape) * cot__dtype_size(dtype)) + 1;
    f->copy = cot__device_alloc(t, f->bytes);
    if (!f->copy) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes to copy x", op, f->bytes);
        return false;
    }
    cot__strides(v->ndim, v->shape, stride);
    t->backend->copy(&(cot__view){f->copy, dtype, v->ndim, v->shape, stride}, v);
    f->data = f->copy;
    return true;
}

/* Room for a result in `dtype`: its own, or a copy that `deliver` rounds. */
static bool prepare(cot_tape *t, const char *op, const cot__view *z, cot_dtype dtype, flat *f) {
    *f = (flat){z->data, NULL, 0};
    if (z->dtype == dtype) return true;
    f->bytes = (size_t)(cot__count(z->ndim, z->shape) * cot__dtype_size(dtype)) + 1;
    f->copy = cot__device_alloc(t, f->bytes);
    f->data = f->copy;
    if (!f->copy)
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for the result before rounding", op, f->bytes);
    return f->copy != NULL;
}

static void *room(const flat *f, const cot__view *z) { return f->copy ? f->copy : z->data; }

static void deliver(cot_tape *t, const cot__view *z, cot_dtype dtype, flat *f) {
    if (!f->copy) return;
    t->backend->copy(z, &(cot__view){f->copy, dtype, z->ndim, z->shape, z->stride});
    cot__device_free(t, f->copy, f->bytes);
}

static void drop(cot_tape *t, flat *f) {
    cot__device_free(t, f->copy, f->bytes);
}

/* x's shape with other spatial extents. */
static cot_shape shaped(cot_shape s, int space, const int64_t extent[3]) {
    for (int i = 0; i < space; i++) s.dim[s.ndim - space + i] = extent[3 - space + i];
    return s;
}

static cot__attr *attr_of(cot_tape *t, const char *op, const cot__pool *g, int space, int flags, bool exclude) {
    int64_t ints[1 + 4 * 3] = {exclude};
    for (int i = 0, from = 3 - space; i < space; i++, from++) {
        ints[flags + i] = g->window[from], ints[flags + space + i] = g->stride[from];
        ints[flags + 2 * space + i] = g->before[from], ints[flags + 3 * space + i] = g->x[from];
    }
    return cot__attr_make(t, op, flags + 4 * space, ints, 0, NULL);
}

/* ---- max_pool -------------------------------------------------------------------------------- */

/* z = x at the chosen elements: what max_pool is once the choice stands. */
static cot_var take(cot_tape *t, const cot__pool *g, int space, uint32_t x, uint32_t chosen) {
    const char *op = "max_pool";
    cot_shape   shape = shaped(cot__shape_at(t, x), space, g->z);
    cot__result r;
    flat        f;
    cot__view   v = cot__view_read(t, x), p = cot__view_read(t, chosen);
    cot__attr  *attr = attr_of(t, op, g, space, 0, false);
    if (!attr || !cot__result_open(t, &r, op, v.dtype, shape.ndim, shape.dim) || !flatten(t, op, &v, v.dtype, &f))
        return INVALID(t);
    t->backend->pool_take(g, cot__dtype_size(v.dtype), f.data, p.data, r.view.data);
    drop(t, &f);
    return cot__result_push(t, &r, OP_max_pool, 2, (uint32_t[]){x, chosen}, attr);
}

static cot_var put(cot_tape *t, const cot__pool *g, int space, uint32_t z, uint32_t chosen) {
    const char *op = "max_unpool";
    cot_shape   shape = shaped(cot__shape_at(t, z), space, g->x);
    cot__result r;
    flat        f, to;
    cot__view   v = cot__view_read(t, z), p = cot__view_read(t, chosen);
    cot_dtype   dtype = cot__dtype_compute(v.dtype);
    cot__attr  *attr = attr_of(t, op, g, space, 0, false);
    if (!attr || !cot__result_open(t, &r, op, v.dtype, shape.ndim, shape.dim) || !flatten(t, op, &v, dtype, &f))
        return INVALID(t);
    bool done = prepare(t, op, &r.view, dtype, &to);
    if (done) {
        t->backend->pool_put(g, dtype, f.data, p.data, room(&to, &r.view));
        deliver(t, &r.view, dtype, &to);
    }
    drop(t, &f);
    return done ? cot__result_push(t, &r, OP_max_unpool, 2, (uint32_t[]){z, chosen}, attr) : INVALID(t);
}

/* Both results in one pass over x; only then are they recorded, the choice alone if wanted. */
static cot_var max_pool(cot_tape *t, const cot__pool *g, int space, uint32_t x, bool choice_alone) {
    const char *op = "max_pool";
    cot_shape   shape = shaped(cot__shape_at(t, x), space, g->z);
    cot__result index, r;
    flat        f, to;
    cot__view   v = cot__view_read(t, x);
    /* Integers are compared as they are. */
    cot_dtype   dtype = cot__dtype_is_float(v.dtype) ? cot__dtype_compute(v.dtype) : v.dtype;
    cot__attr  *attr = attr_of(t, op, g, space, 0, false);
    if (!attr || !cot__check_shape(t, op, &shape) ||
        !cot__result_open(t, &index, "max_pool_index", COT_I32, shape.ndim, shape.dim) ||
        !cot__result_open(t, &r, op, v.dtype, shape.ndim, shape.dim) || !flatten(t, op, &v, dtype, &f))
        return INVALID(t);
    bool done = prepare(t, op, &r.view, dtype, &to);
    if (done) {
        t->backend->max_pool(g, dtype, f.data, room(&to, &r.view), index.view.data);
        deliver(t, &r.view, dtype, &to);
    }
    drop(t, &f);
    if (!done) return INVALID(t);
    cot_var chosen = cot__result_push(t, &index, OP_max_pool_index, 1, &x, attr);
    if (choice_alone || cot__failed(chosen)) return chosen;
    return cot__result_push(t, &r, OP_max_pool, 2, (uint32_t[]){x, cot__index(chosen)}, attr);
}

/* The geometry of a node for another operand x, whose leading axes may be others. */
static cot__pool geometry_for(cot__rule *r, int flags, uint32_t pooled, uint32_t x, int *space) {
    cot__pool g = geometry_of(r->t, cot__rule_attr(r), flags, pooled, space);
    cot_shape s = cot__shape_at(r->t, x);
    g.planes = cot__count(s.ndim - *space, s.dim);
    return g;
}

static cot_var max_pool_index_apply(cot__rule *r, const cot_var *xs) {
    int      space;
    uint32_t x;
    if (!cot__enter(r->t, xs[0], "max_pool", "first", &x)) return INVALID(r->t);
    cot__pool g = geometry_for(r, 0, r->node, x, &space);
    return max_pool(r->t, &g, space, x, true);
}

static cot_var record_take(cot__rule *r, cot_var x, cot_var chosen, uint32_t pooled) {
    int       space;
    uint32_t  xs[2];
    if (!cot__enter(r->t, x, "max_pool", "first", &xs[VALUES]) ||
        !cot__enter(r->t, chosen, "max_pool", "index", &xs[CHOSEN]))
        return INVALID(r->t);
    if ((xs[CHOSEN] = cot__dense(r->t, xs[CHOSEN])) == COT__NONE) return INVALID(r->t);
    cot__pool g = geometry_for(r, 0, pooled, xs[VALUES], &space);
    return take(r->t, &g, space, xs[VALUES], xs[CHOSEN]);
}

static cot_var record_put(cot__rule *r, cot_var z, cot_var chosen, uint32_t pooled) {
    int       space;
    uint32_t  xs[2];
    if (!cot__enter(r->t, z, "max_unpool", "first", &xs[VALUES]) ||
        !cot__enter(r->t, chosen, "max_unpool", "index", &xs[CHOSEN]))
        return INVALID(r->t);
    if ((xs[CHOSEN] = cot__dense(r->t, xs[CHOSEN])) == COT__NONE) return INVALID(r->t);
    cot__pool g = geometry_for(r, 0, pooled, xs[VALUES], &space);
    return put(r->t, &g, space, xs[VALUES], xs[CHOSEN]);
}

/* In both nodes the choice has the shape of the pooled array. */
static void max_pool_vjp(cot__rule *r) {
    cot__give(r, VALUES, record_put(r, r->g, cot__rule_x(r, CHOSEN), cot__rule_arg(r, CHOSEN)));
}
static void max_unpool_vjp(cot__rule *r) {
    cot__give(r, VALUES, record_take(r, r->g, cot__rule_x(r, CHOSEN), cot__rule_arg(r, CHOSEN)));
}
static cot_var max_pool_apply(cot__rule *r, const cot_var *xs) {
    return record_take(r, xs[VALUES], xs[CHOSEN], cot__rule_arg(r, CHOSEN));
}
static cot_var max_unpool_apply(cot__rule *r, const cot_var *xs) {
    return record_put(r, xs[VALUES], xs[CHOSEN], cot__rule_arg(r, CHOSEN));
}

#define GEOMETRY "window,stride,padding,extent:l"
const cot__op cot__op_max_pool_index = {.name     = "max_pool_index",
                                        .batch    = cot__batch_shift,
                                        .attrs    = GEOMETRY,
                                        .kind     = KIND_NONE,
                                        .apply    = max_pool_index_apply,
                                        .formula =
                                            "z[q] = the first i with x[i] = max over window q, counted in the window",
                                        .cost     = {.each_x = 1},
                                        .operands = "x"};
const cot__op cot__op_max_pool       = {.name      = "max_pool",
                                        .batch     = cot__batch_shift,
                                        .attrs     = GEOMETRY,
                                        .kind      = KIND_LINEAR,
                                        .inactive  = 1u << CHOSEN,
                                        .saves     = 1u << CHOSEN,
                                        .formula   = "z[q] = x[index[q] of window q]; x̄[index[q] of window q] += z̄[q]",
                                        .vjp       = max_pool_vjp,
                                        .apply     = max_pool_apply,
                                        .cost      = {.none = "moves data"},
                                        .operands  = "x index",
                                        .functions = "max_pool1d max_pool2d max_pool3d",
                                        .kinks     = cot__pool_kinks,
                                        .choice    = {.from = COT__CHOOSES_IN_WINDOW}};
const cot__op cot__op_max_unpool     = {.name     = "max_unpool",
                                        .batch    = cot__batch_shift,
                                        .attrs    = GEOMETRY,
                                        .kind     = KIND_LINEAR,
                                        .inactive = 1u << CHOSEN,
                                        .saves    = 1u << CHOSEN,
                                        .formula  = "z[index[q] of window q] += x[q]; x̄[q] += z̄[index[q] of window q]",
                                        .vjp      = max_unpool_vjp,
                                        .apply    = max_unpool_apply,
                                        .cost     = {.each_x = 1},
                                        .operands = "x index",
                                        .choice   = {.from = COT__CHOOSES_IN_WINDOW, .puts = true}};

/* ---- avg_pool -------------------------------------------------------------------------------- */

static cot_var average(cot_tape *t, const cot__pool *g, int space, bool exclude, bool spread, uint32_t x) {
    int         id = spread ? OP_avg_unpool : OP_avg_pool;
    const char *op = cot__op_of(id)->name;
    cot_shape   shape = shaped(cot__shape_at(t, x), space, spread ? g->x : g->z);
    cot__result r;
    flat        f, to;
    cot__view   v = cot__view_read(t, x);
    cot_dtype   dtype = cot__dtype_compute(v.dtype);
    cot__attr  *attr = attr_of(t, op, g, space, 1, exclude);
    if (!attr || !cot__check_shape(t, op, &shape) || !cot__result_open(t, &r, op, v.dtype, shape.ndim, shape.dim) ||
        !flatten(t, op, &v, dtype, &f))
        return INVALID(t);
    bool done = prepare(t, op, &r.view, dtype, &to);
    if (done) {
        (spread ? t->backend->avg_unpool : t->backend->avg_pool)(g, dtype, exclude, f.data, room(&to, &r.view));
        deliver(t, &r.view, dtype, &to);
    }
    drop(t, &f);
    return done ? cot__result_push(t, &r, id, 1, &x, attr) : INVALID(t);
}

/* The operation of r's node, or its transpose, on x. */
static cot_var record_average(cot__rule *r, bool spread, cot_var x) {
    int       space;
    uint32_t  i;
    bool      unpool = cot__rule_node(r)->op == OP_avg_unpool;
    if (!cot__enter(r->t, x, "avg_pool", "first", &i)) return INVALID(r->t);
    cot__pool g = geometry_for(r, 1, unpool ? cot__rule_arg(r, 0) : r->node, i, &space);
    return average(r->t, &g, space, cot__rule_attr(r)->ints[0] != 0, spread, i);
}

static void    avg_pool_vjp(cot__rule *r) { cot__give(r, 0, record_average(r, true, r->g)); }
static void    avg_unpool_vjp(cot__rule *r) { cot__give(r, 0, record_average(r, false, r->g)); }
static cot_var avg_pool_apply(cot__rule *r, const cot_var *xs) { return record_average(r, false, xs[0]); }
static cot_var avg_unpool_apply(cot__rule *r, const cot_var *xs) { return record_average(r, true, xs[0]); }

const cot__op cot__op_avg_pool   = {.name      = "avg_pool",
                                    .batch     = cot__batch_shift,
                                    .attrs     = "exclude_padding:f " GEOMETRY,
                                    .kind      = KIND_LINEAR,
                                    .vjp       = avg_pool_vjp,
                                    .apply     = avg_pool_apply,
                                    .formula   = "z[q] = Σ x over window q / n; x̄ over window q += z̄[q] / n",
                                    .cost      = {.each_x = 1},
                                    .operands  = "x",
                                    .functions = "avg_pool1d avg_pool2d avg_pool3d"};
const cot__op cot__op_avg_unpool = {.name     = "avg_unpool",
                                    .batch    = cot__batch_shift,
                                    .attrs    = "exclude_padding:f " GEOMETRY,
                                    .kind     = KIND_LINEAR,
                                    .vjp      = avg_unpool_vjp,
                                    .apply    = avg_unpool_apply,
                                    .formula  = "z over window q += x[q] / n; x̄[q] += Σ z̄ over window q / n",
                                    .cost     = {.each_z = 1},
                                    .operands = "x"};

/* ---- options --------------------------------------------------------------------------------- */

/* Windows along an axis of n elements: the last may reach beyond in ceil mode, but starts before
 * the padding behind. */
static int64_t windows(int64_t n, int64_t window, int64_t stride, int64_t padding, bool ceil_mode) {
    int64_t z = cot__size_windows(n + 2 * padding + (ceil_mode ? stride - 1 : 0), window, stride);
    return ceil_mode && (z - 1) * stride >= n + padding ? z - 1 : z;
}

static bool check_axis(cot_tape *t, const char *op, const cot_pool_options *o, int space, bool largest, int a,
                       int64_t n) {
    long long w = o->window[a], s = o->stride[a], p = o->padding[a];
    if (a >= space) {
        if (!w && !s && !p) return true;
        cot__fail(t, COT_VALUE,
                  "[%s] window[%d], stride[%d] and padding[%d] are %lld, %lld and %lld, but there %s; leave the rest 0",
                  op, a, a, a, w, s, p, space == 1 ? "is 1 spatial axis" : "are 2 spatial axes");
        return false;
    }
    if (w < 1 || w > INT32_MAX || s < 0 || s > INT32_MAX)
        cot__fail(t, COT_VALUE,
                  "[%s] window[%d] is %lld and stride[%d] %lld; a window has 1 to %d elements, a stride is 0 to %d", op,
                  a, w, a, s, INT32_MAX, INT32_MAX);
    else if (p < 0 || p > w / 2)
        cot__fail(t, COT_VALUE, "[%s] padding[%d] is %lld for a window of %lld; it may be up to half the window", op, a,
                  p, w);
    else if (n + 2 * p < w) /* p is at most half of 2^31 */
        cot__fail(
            t, COT_SHAPE,
            "[%s] the window has %lld elements along spatial axis %d, which has %lld with its padding; it must fit", op,
            w, a, (long long)n + 2 * p);
    else if (n == 0 && largest)
        cot__fail(t, COT_SHAPE, "[%s] spatial axis %d has no elements, only padding; an empty maximum does not exist",
                  op, a);
    else return true;
    return false;
}

static cot_tape *enter(const char *op, int space, bool real, cot_var x, const cot_pool_options *o, uint32_t *i,
                       cot__pool *g) {
    static const char *const name[] = {"first"};
    char      text[COT__SHAPE_TEXT];
    cot_tape *t = cot__enter_all(op, name, 1, &x, real, i);
    if (!t) return NULL;
    cot_shape s = cot__shape_at(t, *i);
    if (s.ndim < space) {
        cot__fail(t, COT_SHAPE, "[%s] x has shape %s; it needs %d spatial axes", op,
                  cot__shape_text(s.ndim, s.dim, text), space);
        return NULL;
    }
    *g = (cot__pool){cot__count(s.ndim - space, s.dim), {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}};
    double elements = 1;
    for (int a = 0; a < 3; a++) {
        int64_t n = a < space ? s.dim[s.ndim - space + a] : 1;
        int     to = 3 - space + a;
        if (!check_axis(t, op, o, space, !real, a, n)) return NULL;
        if (a >= space) continue;
        g->x[to] = n, g->window[to] = o->window[a], g->stride[to] = o->stride[a] ? o->stride[a] : o->window[a],
        g->before[to] = o->padding[a];
        g->z[to] = windows(n, g->window[to], g->stride[to], g->before[to], o->ceil_mode);
        elements *= (double)g->window[to];
    }
    if (elements <= INT32_MAX) return t;
    cot__fail(t, COT_LIMIT, "[%s] the window has %.0f elements; it may have up to %d", op, elements, INT32_MAX);
    return NULL;
}

static cot_var largest(const char *op, int space, cot_var x, const cot_pool_options *o) {
    uint32_t  i;
    cot__pool g;
    cot_tape *t = enter(op, space, false, x, o, &i, &g);
    if (!t) return cot__invalid(1, &x);
    const char *before = cot__ask(t, op);
    cot_var     z = max_pool(t, &g, space, i, false);
    cot__asked(t, before);
    return z;
}

static cot_var mean(const char *op, int space, cot_var x, const cot_pool_options *o) {
    uint32_t  i;
    cot__pool g;
    cot_tape *t = enter(op, space, true, x, o, &i, &g);
    if (!t) return cot__invalid(1, &x);
    const char *before = cot__ask(t, op);
    cot_var     z = average(t, &g, space, o->exclude_padding, false, i);
    cot__asked(t, before);
    return z;
}

cot_var cot_max_pool1d(cot_var x, cot_pool_options options) { return largest("max_pool1d", 1, x, &options); }
cot_var cot_max_pool2d(cot_var x, cot_pool_options options) { return largest("max_pool2d", 2, x, &options); }
cot_var cot_max_pool3d(cot_var x, cot_pool_options options) { return largest("max_pool3d", 3, x, &options); }
cot_var cot_avg_pool1d(cot_var x, cot_pool_options options) { return mean("avg_pool1d", 1, x, &options); }
cot_var cot_avg_pool2d(cot_var x, cot_pool_options options) { return mean("avg_pool2d", 2, x, &options); }
cot_var cot_avg_pool3d(cot_var x, cot_pool_options options) { return mean("avg_pool3d", 3, x, &options); }
