/* pool.c: pooling over windows of the last one, two or three axes.
 *
 * max_pool has two results: the largest element of each window, and which one that is, the first of
 * equals, counted in the window. Once the second stands, the first is linear in x: max_take takes
 * the chosen elements, and its transpose max_unpool puts them back. avg_pool and avg_unpool are
 * linear and each other's transposes. All leading axes are alike: planes. */
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"
#include "ops/kinks.h"
#include "ops/structural.h"

/* operands of max_take and max_unpool; results of max_pool */
enum { VALUES, CHOSEN };

/* ---- windows --------------------------------------------------------------------------------- */

/* Attributes are [exclude,] then window, stride, padding and x's extents, as many each as spatial
 * axes. */
static int flags_of(int op) { return op == OP_avg_pool || op == OP_avg_unpool; }
static int space_of(const cot__job *j) { return ((int)j->attr->nints - flags_of(j->op)) / 4; }

/* The geometry behind a job whose pooled array has this shape. */
static cot__pool geometry_of(const cot__job *j, int ndim, const int64_t *pooled) {
    cot__pool      g = {1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}};
    int            space = space_of(j);
    const int64_t *ints = j->attr->ints + flags_of(j->op);
    g.planes = cot__count(ndim - space, pooled);
    for (int i = 0, to = 3 - space; i < space; i++, to++) {
        g.window[to] = ints[i], g.stride[to] = ints[space + i], g.before[to] = ints[2 * space + i],
        g.x[to] = ints[3 * space + i];
        g.z[to] = pooled[ndim - space + i];
    }
    return g;
}

/* x's shape with other spatial extents. */
static cot_shape shaped(cot_shape s, int space, const int64_t extent[3]) {
    for (int i = 0; i < space; i++) s.dim[s.ndim - space + i] = extent[3 - space + i];
    return s;
}

/* As many attributes as one, two or three spatial axes have, and an operand that has these axes. */
static bool has_space(const cot__job *j, int operands) {
    int flags = flags_of(j->op);
    if (!cot__job_has(j, operands, operands, flags + 4)) return false;
    int space = space_of(j), ndim = j->x[VALUES].ndim;
    if ((int)j->attr->nints != flags + 4 * space || space > 3)
        return cot__job_illegal(j, "%d attributes of windows", (int)j->attr->nints - flags);
    return ndim >= space || cot__job_illegal(j, "an operand of %d axes, where %d are spatial", ndim, space);
}

/* Do the windows lie as the public functions lay them? Then each begins before the padding behind x
 * and ends after the one in front, so it holds an element if x does. */
static bool check_windows(const cot__job *j, const cot__pool *g) {
    double  elements = 1;
    int64_t least = flags_of(j->op) ? 0 : 1; /* an empty maximum does not exist */
    for (int a = 0; a < 3; a++) {
        int64_t w = g->window[a], s = g->stride[a], p = g->before[a];
        if (w < 1 || w > INT32_MAX || s < 1 || s > INT32_MAX || p < 0 || p > w / 2)
            return cot__job_illegal(j, "a window of %lld elements, stride %lld, padding %lld", (long long)w,
                                    (long long)s, (long long)p);
        if (g->x[a] < least || g->z[a] < 1 || cot__size_mul(g->z[a] - 1, s) >= cot__size_add(g->x[a], p))
            return cot__job_illegal(j, "%lld windows at stride %lld over %lld elements", (long long)g->z[a],
                                    (long long)s, (long long)g->x[a]);
        elements *= (double)w;
    }
    return elements <= INT32_MAX || cot__job_illegal(j, "a window of %.0f elements", elements);
}

/* ---- the types ------------------------------------------------------------------------------- */

/* z pools operand 0. Its spatial extents are asked for, as in ceil mode there may be one window
 * more. */
static bool pooled_infer(const cot__job *j, cot_dtype dtype, cot__type *z) {
    if (!has_space(j, 1)) return false;
    const cot__view *x = &j->x[0];
    int              space = space_of(j), lead = x->ndim - space, skip = z->shape.ndim - space;
    int64_t          extent[3];
    if (skip < 0 || z->shape.ndim > COT_MAX_NDIM)
        return cot__job_illegal(j, "a result of %d axes, where %d are spatial", z->shape.ndim, space);
    for (int i = 0; i < space; i++) extent[i] = z->shape.dim[skip + i];
    z->dtype = dtype;
    z->shape.ndim = x->ndim;
    for (int i = 0; i < x->ndim; i++) z->shape.dim[i] = i < lead ? x->shape[i] : extent[i - lead];
    cot__pool g = geometry_of(j, x->ndim, z->shape.dim);
    return check_windows(j, &g) && cot__job_shape(j, 0, x->ndim, shaped(z->shape, space, g.x).dim);
}

static bool dtype_kept_infer(const cot__job *j, cot__type *z) {
    return pooled_infer(j, j->n > 0 ? j->x[0].dtype : COT_F64, z);
}
static bool avg_pool_infer(const cot__job *j, cot__type *z) { return dtype_kept_infer(j, z) && cot__job_float(j, 0); }

static int  max_pool_results(const cot__job *j) { return (void)j, 2; }
static bool max_pool_infer(const cot__job *j, cot__type *z) {
    if (!dtype_kept_infer(j, &z[VALUES])) return false;
    z[CHOSEN] = (cot__type){COT_I32, z[VALUES].shape};
    return true;
}

/* The choice has the shape of the pooled array. */
static bool max_take_infer(const cot__job *j, cot__type *z) {
    if (!has_space(j, 2) || !cot__job_dtype(j, CHOSEN, COT_I32)) return false;
    int space = space_of(j);
    *z = (cot__type){j->x[VALUES].dtype, cot__view_extents(&j->x[CHOSEN])};
    if (z->shape.ndim < space) return cot__job_illegal(j, "a choice of %d axes", z->shape.ndim);
    cot__pool g = geometry_of(j, z->shape.ndim, z->shape.dim);
    cot_shape x = shaped(z->shape, space, g.x);
    return check_windows(j, &g) && cot__job_shape(j, VALUES, x.ndim, x.dim);
}

/* Operand 0 is pooled; z has the extents of the attributes. */
static bool unpooled_infer(const cot__job *j, int operands, cot__type *z) {
    if (!has_space(j, operands) || !cot__job_float(j, VALUES)) return false;
    const cot__view *x = &j->x[VALUES];
    cot__pool        g = geometry_of(j, x->ndim, x->shape);
    *z = (cot__type){x->dtype, shaped(cot__view_extents(x), space_of(j), g.x)};
    return check_windows(j, &g);
}

static bool avg_unpool_infer(const cot__job *j, cot__type *z) { return unpooled_infer(j, 1, z); }
static bool max_unpool_infer(const cot__job *j, cot__type *z) {
    return unpooled_infer(j, 2, z) && cot__job_dtype(j, CHOSEN, COT_I32) &&
           cot__job_shape(j, CHOSEN, j->x[VALUES].ndim, j->x[VALUES].shape);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Halves are pooled in f32; integers are compared as they are. */
static cot_dtype kernel_dtype(cot_dtype d) { return cot__dtype_is_float(d) ? cot__dtype_compute(d) : d; }

/* ---- max_pool -------------------------------------------------------------------------------- */

static int64_t max_pool_workspace(const cot__job *j) {
    cot_dtype dtype = kernel_dtype(j->z.dtype);
    return cot__size_add(cot__pack_bytes(&j->x[0], dtype), cot__pack_bytes(&j->z, dtype));
}

static void max_pool_run(const cot__job *j) {
    cot__pool   g = geometry_of(j, j->z.ndim, j->z.shape);
    cot_dtype   dtype = kernel_dtype(j->z.dtype);
    char       *at = j->workspace;
    const void *x = cot__pack_operand(j, 0, dtype, &at);
    void       *z = cot__pack_room(&j->z, dtype, &at);
    j->backend->max_pool(&g, dtype, x, z, j->more[CHOSEN - 1].data);
    cot__unpack(j, &j->z, dtype, z);
}

/* z = x at the chosen elements. */
static int64_t max_take_workspace(const cot__job *j) {
    return cot__size_add(cot__pack_bytes(&j->x[VALUES], j->x[VALUES].dtype), cot__pack_bytes(&j->x[CHOSEN], COT_I32));
}

static void max_take_run(const cot__job *j) {
    cot__pool   g = geometry_of(j, j->z.ndim, j->z.shape);
    char       *at = j->workspace;
    const void *x = cot__pack_operand(j, VALUES, j->z.dtype, &at), *chosen = cot__pack_operand(j, CHOSEN, COT_I32, &at);
    j->backend->pool_take(&g, cot__dtype_size(j->z.dtype), x, chosen, j->z.data);
}

static int64_t max_unpool_workspace(const cot__job *j) {
    cot_dtype dtype = kernel_dtype(j->z.dtype);
    int64_t   operands = cot__size_add(cot__pack_bytes(&j->x[VALUES], dtype), cot__pack_bytes(&j->x[CHOSEN], COT_I32));
    return cot__size_add(operands, cot__pack_bytes(&j->z, dtype));
}

static void max_unpool_run(const cot__job *j) {
    cot__pool   g = geometry_of(j, j->x[VALUES].ndim, j->x[VALUES].shape);
    cot_dtype   dtype = kernel_dtype(j->z.dtype);
    char       *at = j->workspace;
    const void *x = cot__pack_operand(j, VALUES, dtype, &at), *chosen = cot__pack_operand(j, CHOSEN, COT_I32, &at);
    void       *z = cot__pack_room(&j->z, dtype, &at);
    j->backend->pool_put(&g, dtype, x, chosen, z);
    cot__unpack(j, &j->z, dtype, z);
}

/* Another operation on the windows of r's node; `pooled` is the shape that it is asked for. */
static cot_var record_like(cot__rule *r, int op, int n, const cot_var *xs, cot_shape pooled) {
    static const char *const what[] = {"first", "index"};
    const char              *name = cot__op_of(op)->name;
    const cot__attr         *of = cot__rule_attr(r);
    cot__type                asked = {.shape = pooled};
    uint32_t                 args[2];
    for (int k = 0; k < n; k++)
        if (!cot__enter(r->t, xs[k], name, what[k], &args[k])) return INVALID(r->t);
    cot__attr *attr = cot__attr_make(r->t, name, (int)of->nints, of->ints, 0, NULL);
    return attr ? cot__record(r->t, name, op, n, args, attr, &asked) : INVALID(r->t);
}

/* max_unpool or max_take of v, at the elements that the node chose. */
static cot_var at_chosen(cot__rule *r, int op, cot_var v, cot_var chosen) {
    return record_like(r, op, 2, (cot_var[]){v, chosen}, (cot_shape){0});
}

/* What ReLU holds back it holds back of the maxima too, which are fewer: the largest of a window is
 * positive where the element is that it chose. So of relu before max_pool the adjoint is masked
 * where it is pooled, and relu's own rule has nothing left to do. All other elements are 0, as they
 * would be. */
static void max_pool_vjp(cot__rule *r) {
    cot__rule relu, *to = r;
    cot_var   g = r->g;
    if (cot__rule_past(r, VALUES, OP_relu, &relu)) {
        to = &relu;
        g = cot_where(cot_greater(cot__rule_z(r), 0.0), g, 0.0);
    }
    cot__give(to, VALUES, at_chosen(r, OP_max_unpool, g, cot__rule_result_of(r, CHOSEN)));
}
static void max_pool_jvp(cot__rule *r) {
    r->tangent = at_chosen(r, OP_max_take, r->tangents[VALUES], cot__rule_result_of(r, CHOSEN));
}
static void max_take_vjp(cot__rule *r) {
    cot__give(r, VALUES, at_chosen(r, OP_max_unpool, r->g, cot__rule_x(r, CHOSEN)));
}
static void max_unpool_vjp(cot__rule *r) {
    cot__give(r, VALUES, at_chosen(r, OP_max_take, r->g, cot__rule_x(r, CHOSEN)));
}

#define GEOMETRY "window,stride,padding,extent:l"
const cot__op cot__op_max_pool       = {.name      = "max_pool",
                                        .batch     = cot__batch_shift,
                                        .attrs     = GEOMETRY,
                                        .kind      = KIND_GENERIC,
                                        .formula   = "z[q] = max x over window q, at its element i[q]; x̄[i[q]] += z̄[q]",
                                        .vjp       = max_pool_vjp,
                                        .jvp       = max_pool_jvp,
                                        .results   = max_pool_results,
                                        .infer     = max_pool_infer,
                                        .asks      = COT__ASKS_SHAPE,
                                        .workspace = max_pool_workspace,
                                        .run       = max_pool_run,
                                        .cost      = {.each_x = 1},
                                        .operands  = "x",
                                        .functions = "max_pool1d max_pool2d max_pool3d",
                                        .kinks     = cot__pool_kinks,
                                        .choice    = {.from = COT__CHOOSES_IN_WINDOW}};
const cot__op cot__op_max_take       = {.name      = "max_take",
                                        .batch     = cot__batch_shift,
                                        .attrs     = GEOMETRY,
                                        .kind      = KIND_LINEAR,
                                        .inactive  = 1u << CHOSEN,
                                        .saves     = 1u << CHOSEN,
                                        .formula   = "z[q] = x[index[q] of window q]; x̄[index[q] of window q] += z̄[q]",
                                        .vjp       = max_take_vjp,
                                        .infer     = max_take_infer,
                                        .workspace = max_take_workspace,
                                        .run       = max_take_run,
                                        .cost      = {.none = "moves data"},
                                        .operands  = "x index",
                                        .choice    = {.from = COT__CHOOSES_IN_WINDOW}};
const cot__op cot__op_max_unpool     = {.name      = "max_unpool",
                                        .batch     = cot__batch_shift,
                                        .attrs     = GEOMETRY,
                                        .kind      = KIND_LINEAR,
                                        .inactive  = 1u << CHOSEN,
                                        .saves     = 1u << CHOSEN,
                                        .formula   = "z[index[q] of window q] += x[q]; x̄[q] += z̄[index[q] of window q]",
                                        .vjp      = max_unpool_vjp,
                                        .infer     = max_unpool_infer,
                                        .workspace = max_unpool_workspace,
                                        .run      = max_unpool_run,
                                        .cost      = {.each_x = 1},
                                        .operands  = "x index",
                                        .choice    = {.from = COT__CHOOSES_IN_WINDOW, .puts = true}};

/* ---- avg_pool -------------------------------------------------------------------------------- */

static int64_t average_workspace(const cot__job *j) {
    cot_dtype dtype = kernel_dtype(j->z.dtype);
    return cot__size_add(cot__pack_bytes(&j->x[0], dtype), cot__pack_bytes(&j->z, dtype));
}

static void average_run(const cot__job *j) {
    bool             spread = j->op == OP_avg_unpool;
    const cot__view *pooled = spread ? &j->x[0] : &j->z;
    cot__pool        g = geometry_of(j, pooled->ndim, pooled->shape);
    cot_dtype        dtype = kernel_dtype(j->z.dtype);
    char            *at = j->workspace;
    const void      *x = cot__pack_operand(j, 0, dtype, &at);
    void            *z = cot__pack_room(&j->z, dtype, &at);
    (spread ? j->backend->avg_unpool : j->backend->avg_pool)(&g, dtype, cot__job_int(j, 0) != 0, x, z);
    cot__unpack(j, &j->z, dtype, z);
}

static void avg_pool_vjp(cot__rule *r) { cot__give(r, 0, record_like(r, OP_avg_unpool, 1, &r->g, (cot_shape){0})); }
static void avg_unpool_vjp(cot__rule *r) {
    cot__give(r, 0, record_like(r, OP_avg_pool, 1, &r->g, cot__rule_shape(r, 0)));
}

const cot__op cot__op_avg_pool   = {.name      = "avg_pool",
                                    .batch     = cot__batch_shift,
                                    .attrs     = "exclude_padding:f " GEOMETRY,
                                    .kind      = KIND_LINEAR,
                                    .vjp       = avg_pool_vjp,
                                    .infer     = avg_pool_infer,
                                    .asks      = COT__ASKS_SHAPE,
                                    .workspace = average_workspace,
                                    .run       = average_run,
                                    .formula   = "z[q] = Σ x over window q / n; x̄ over window q += z̄[q] / n",
                                    .cost      = {.each_x = 1},
                                    .operands  = "x",
                                    .functions = "avg_pool1d avg_pool2d avg_pool3d"};
const cot__op cot__op_avg_unpool = {.name      = "avg_unpool",
                                    .batch     = cot__batch_shift,
                                    .attrs     = "exclude_padding:f " GEOMETRY,
                                    .kind      = KIND_LINEAR,
                                    .vjp      = avg_unpool_vjp,
                                    .infer     = avg_unpool_infer,
                                    .workspace = average_workspace,
                                    .run      = average_run,
                                    .formula   = "z over window q += x[q] / n; x̄[q] += Σ z̄ over window q / n",
                                    .cost      = {.each_z = 1},
                                    .operands  = "x"};

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

/* The attributes of an operation on these windows, and the shape of what pools x. */
static cot__attr *attr_of(cot_tape *t, const char *op, uint32_t x, const cot__pool *g, int space, int flags,
                          bool exclude, cot_shape *pooled) {
    int64_t ints[1 + 4 * 3] = {exclude};
    for (int i = 0, from = 3 - space; i < space; i++, from++) {
        ints[flags + i] = g->window[from], ints[flags + space + i] = g->stride[from];
        ints[flags + 2 * space + i] = g->before[from], ints[flags + 3 * space + i] = g->x[from];
    }
    *pooled = shaped(cot__shape_at(t, x), space, g->z);
    return cot__attr_make(t, op, flags + 4 * space, ints, 0, NULL);
}

static cot_var largest(const char *op, int space, cot_var x, const cot_pool_options *o) {
    uint32_t  i;
    cot__pool g;
    cot_tape *t = enter(op, space, false, x, o, &i, &g);
    if (!t) return cot__invalid(1, &x);
    const char *before = cot__ask(t, op);
    cot__type   asked = {0};
    cot__attr  *attr = attr_of(t, "max_pool", i, &g, space, 0, false, &asked.shape);
    cot_var     z = attr ? cot__record(t, "max_pool", OP_max_pool, 1, &i, attr, &asked) : INVALID(t);
    cot__asked(t, before);
    return z;
}

static cot_var mean(const char *op, int space, cot_var x, const cot_pool_options *o) {
    uint32_t  i;
    cot__pool g;
    cot_tape *t = enter(op, space, true, x, o, &i, &g);
    if (!t) return cot__invalid(1, &x);
    const char *before = cot__ask(t, op);
    cot__type   asked = {0};
    cot__attr  *attr = attr_of(t, "avg_pool", i, &g, space, 1, o->exclude_padding, &asked.shape);
    cot_var     z = attr ? cot__record(t, "avg_pool", OP_avg_pool, 1, &i, attr, &asked) : INVALID(t);
    cot__asked(t, before);
    return z;
}

cot_var cot_max_pool1d(cot_var x, cot_pool_options options) { return largest("max_pool1d", 1, x, &options); }
cot_var cot_max_pool2d(cot_var x, cot_pool_options options) { return largest("max_pool2d", 2, x, &options); }
cot_var cot_max_pool3d(cot_var x, cot_pool_options options) { return largest("max_pool3d", 3, x, &options); }
cot_var cot_avg_pool1d(cot_var x, cot_pool_options options) { return mean("avg_pool1d", 1, x, &options); }
cot_var cot_avg_pool2d(cot_var x, cot_pool_options options) { return mean("avg_pool2d", 2, x, &options); }
cot_var cot_avg_pool3d(cot_var x, cot_pool_options options) { return mean("avg_pool3d", 3, x, &options); }
