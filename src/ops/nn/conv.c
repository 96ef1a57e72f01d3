/* conv.c: convolution of any rank and its transposes.
 *
 * Three bilinear operations on one geometry (backend/cpu/conv/conv.h): conv gives z from (x, w),
 * conv_transpose x from (z, w), conv_weight w from (x, z). The adjoints of each are the other two,
 * so the family is closed and every order of derivative is a convolution again. The extents of a
 * result stand in its attributes, because strides leave them open. Layouts and signs are PyTorch's:
 * (N, C, …), (O, C/groups, …), no kernel is flipped. */
#include "rules/structural_ids.h"
#include "ops/costs.h"
#include "ops/structural.h"

enum { LEFT, RIGHT };

/* ---- geometry -------------------------------------------------------------------------------- */

static const int ops[] = {
    [COT__CONV_OUTPUT] = OP_conv, [COT__CONV_INPUT] = OP_conv_transpose, [COT__CONV_WEIGHT] = OP_conv_weight};

static cot__conv_pass pass_of(int op) {
    return op == OP_conv ? COT__CONV_OUTPUT : op == OP_conv_transpose ? COT__CONV_INPUT : COT__CONV_WEIGHT;
}

/* The spatial extents of what a pass computes. */
static int64_t *result_of(cot__conv *g, cot__conv_pass pass) {
    return pass == COT__CONV_OUTPUT ? g->z : pass == COT__CONV_INPUT ? g->x : g->k;
}

/* Attributes: the groups, then stride, dilation, padding and the result's extents, as many each as
 * spatial axes. */
static int space_of(const cot__attr *attr) { return ((int)attr->nints - 1) / 4; }

/* The geometry of a pass over operands of these shapes, whose last axes are spatial. */
static cot__conv geometry_of(cot__conv_pass pass, const cot__attr *attr, const int64_t *a, const int64_t *b) {
    cot__conv      g = {a[0], attr->ints[0], a[1], b[0], {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}};
    int            space = space_of(attr);
    int64_t       *left = pass == COT__CONV_INPUT ? g.z : g.x, *right = pass == COT__CONV_WEIGHT ? g.z : g.k;
    const int64_t *ints = attr->ints + 1;
    if (pass == COT__CONV_INPUT) g.in = cot__size_mul(b[1], g.groups);
    if (pass == COT__CONV_WEIGHT) g.out = b[1];
    for (int i = 0, to = COT__SPACE - space; i < space; i++, to++) {
        left[to] = a[2 + i], right[to] = b[2 + i];
        g.stride[to] = ints[i], g.dilation[to] = ints[space + i], g.before[to] = ints[2 * space + i];
        result_of(&g, pass)[to] = ints[3 * space + i];
    }
    return g;
}

/* Elements that the kernel reaches over along an axis. */
static int64_t reach(const cot__conv *g, int a) { return cot__size_reach(g->k[a], g->dilation[a]); }

/* ---- the jobs -------------------------------------------------------------------------------- */

static cot__conv geometry_of_job(const cot__job *j) {
    return geometry_of(pass_of(j->op), j->attr, j->x[LEFT].shape, j->x[RIGHT].shape);
}

/* Two operands of one float dtype with one, two or three spatial axes. */
static bool has_space(const cot__job *j) {
    if (!cot__job_has(j, 2, 2, 1 + 4)) return false;
    int space = space_of(j->attr);
    if ((int)j->attr->nints != 1 + 4 * space || space > COT__SPACE)
        return cot__job_illegal(j, "%d attributes", (int)j->attr->nints);
    if (j->x[LEFT].ndim != space + 2 || j->x[RIGHT].ndim != space + 2)
        return cot__job_illegal(j, "operands of %d and %d axes, where %d are spatial", j->x[LEFT].ndim,
                                j->x[RIGHT].ndim, space);
    return cot__job_float(j, LEFT) && cot__job_dtype(j, RIGHT, j->x[LEFT].dtype);
}

/* The groups divide the channels, and the operands agree about these and about images. */
static bool check_channels(const cot__job *j, const cot__conv *g) {
    const int64_t *a = j->x[LEFT].shape, *b = j->x[RIGHT].shape;
    int            op = j->op;
    if (g->groups < 1 || g->in % g->groups || g->out % g->groups)
        return cot__job_illegal(j, "%lld groups of %lld and %lld channels", (long long)g->groups, (long long)g->in,
                                (long long)g->out);
    bool fits = op == OP_conv             ? a[1] == cot__size_mul(b[1], g->groups)
                : op == OP_conv_transpose ? a[1] == b[0]
                                          : a[0] == b[0];
    return fits || cot__job_illegal(j, "operands that begin with (%lld,%lld) and (%lld,%lld)", (long long)a[0],
                                    (long long)a[1], (long long)b[0], (long long)b[1]);
}

/* Does the kernel, at all of its places, stay within what the options of the public functions can
 * make of x by padding? Then no place overflows. */
static bool check_places(const cot__job *j, const cot__conv *g) {
    for (int a = 0; a < COT__SPACE; a++) {
        const int64_t most = 2 * (int64_t)INT32_MAX, *extents[3] = {g->x, g->k, g->z};
        for (int i = 0; i < 3; i++)
            if (extents[i][a] < (i > 0) || extents[i][a] > COT__SIZE_MOST / 16)
                return cot__job_illegal(j, "an extent of %lld", (long long)extents[i][a]);
        if (g->stride[a] < 1 || g->stride[a] > INT32_MAX || g->dilation[a] < 1 || g->dilation[a] > INT32_MAX ||
            g->before[a] < 0 || g->before[a] > most)
            return cot__job_illegal(j, "stride %lld, dilation %lld, padding %lld", (long long)g->stride[a],
                                    (long long)g->dilation[a], (long long)g->before[a]);
        if (cot__size_add(cot__size_mul(g->z[a] - 1, g->stride[a]), reach(g, a)) > g->x[a] + g->before[a] + most)
            return cot__job_illegal(j, "%lld places of a kernel over %lld elements", (long long)g->z[a],
                                    (long long)g->x[a]);
    }
    return true;
}

static bool conv_infer(const cot__job *j, cot__type *z) {
    if (!has_space(j)) return false;
    cot__conv g = geometry_of_job(j);
    int       space = space_of(j->attr);
    if (!check_channels(j, &g) || !check_places(j, &g)) return false;
    *z = (cot__type){j->x[LEFT].dtype, {2 + space, {g.batch, j->op == OP_conv ? g.out : g.in}}};
    if (j->op == OP_conv_weight) z->shape.dim[0] = g.out, z->shape.dim[1] = g.in / g.groups;
    for (int i = 0; i < space; i++) z->shape.dim[2 + i] = result_of(&g, pass_of(j->op))[COT__SPACE - space + i];
    return true;
}

/* (N, C, spatial axes) as five axes. */
typedef struct five_axes { int64_t shape[5], stride[5]; cot__view view; } five_axes;
static void with_space(five_axes *to, const cot__view *v) {
    int space = v->ndim - 2;
    for (int a = 0; a < 5; a++) {
        int from = a < 2 ? a : a - 5 + v->ndim;
        to->shape[a] = a < 2 || a >= 5 - space ? v->shape[from] : 1;
        to->stride[a] = a < 2 || a >= 5 - space ? v->stride[from] : 0;
    }
    to->view = (cot__view){v->data, v->dtype, 5, to->shape, to->stride};
}

/* Operands and result, which is row-major. */
typedef struct arrays { five_axes a, b, z; } arrays;
static void arrays_of(arrays *to, const cot__job *j) {
    with_space(&to->a, &j->x[LEFT]);
    with_space(&to->b, &j->x[RIGHT]);
    with_space(&to->z, &j->z);
    cot__strides(5, to->z.shape, to->z.stride);
}

static int64_t conv_workspace(const cot__job *j) {
    cot__conv g = geometry_of_job(j);
    arrays    v;
    arrays_of(&v, j);
    return j->backend->conv_workspace(&g, pass_of(j->op), &v.a.view, &v.b.view, &v.z.view);
}

static void conv_run(const cot__job *j) {
    cot__conv g = geometry_of_job(j);
    arrays    v;
    arrays_of(&v, j);
    j->backend->conv(&g, pass_of(j->op), &v.a.view, &v.b.view, &v.z.view, j->workspace);
}

/* ---- recording ------------------------------------------------------------------------------- */

static cot_var push(cot_tape *t, cot__conv_pass pass, cot__conv *g, int space, const uint32_t xs[2]) {
    const char    *name = cot__op_of(ops[pass])->name;
    const int64_t *extent = result_of(g, pass);
    int64_t        ints[1 + 4 * COT__SPACE] = {g->groups};
    for (int a = 0, from = COT__SPACE - space; a < space; a++) {
        ints[1 + a] = g->stride[from + a];
        ints[1 + space + a] = g->dilation[from + a];
        ints[1 + 2 * space + a] = g->before[from + a];
        ints[1 + 3 * space + a] = extent[from + a];
    }
    cot__attr *attr = cot__attr_make(t, name, 1 + 4 * space, ints, 0, NULL);
    return attr ? cot__record(t, name, ops[pass], 2, xs, attr, NULL) : INVALID(t);
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* Another pass over the geometry of r's node. */
static cot_var record(cot__rule *r, cot__conv_pass pass, cot_var a, cot_var b) {
    const cot__attr *attr = cot__rule_attr(r);
    int              op = cot__rule_node(r)->op;
    cot_shape        left = cot__rule_shape(r, LEFT), right = cot__rule_shape(r, RIGHT);
    cot__conv        g = geometry_of(pass_of(op), attr, left.dim, right.dim);
    uint32_t         xs[2];
    const char      *name = cot__op_of(op)->name;
    if (!cot__enter(r->t, a, name, "left", &xs[LEFT]) || !cot__enter(r->t, b, name, "right", &xs[RIGHT]))
        return INVALID(r->t);
    return push(r->t, pass, &g, space_of(attr), xs);
}

static void conv_vjp(cot__rule *r) {
    if (cot__rule_wants(r, LEFT)) cot__give(r, LEFT, record(r, COT__CONV_INPUT, r->g, cot__rule_x(r, RIGHT)));
    if (cot__rule_wants(r, RIGHT)) cot__give(r, RIGHT, record(r, COT__CONV_WEIGHT, cot__rule_x(r, LEFT), r->g));
}

static void conv_transpose_vjp(cot__rule *r) {
    if (cot__rule_wants(r, LEFT)) cot__give(r, LEFT, record(r, COT__CONV_OUTPUT, r->g, cot__rule_x(r, RIGHT)));
    if (cot__rule_wants(r, RIGHT)) cot__give(r, RIGHT, record(r, COT__CONV_WEIGHT, r->g, cot__rule_x(r, LEFT)));
}

static void conv_weight_vjp(cot__rule *r) {
    if (cot__rule_wants(r, LEFT)) cot__give(r, LEFT, record(r, COT__CONV_INPUT, cot__rule_x(r, RIGHT), r->g));
    if (cot__rule_wants(r, RIGHT)) cot__give(r, RIGHT, record(r, COT__CONV_OUTPUT, cot__rule_x(r, LEFT), r->g));
}

#define GEOMETRY "groups:u stride,dilation,padding,extent:l"
/* Two for each element of the kernel of one channel (extents of axis `channels` of w divided out),
 * and for each of `size` elements. */
static double taps_cost(const cot_tape *t, uint32_t node, double size, double taps, int channels) {
    double extent = cot__operand_extent(t, node, RIGHT, channels);
    return 2 * size * taps / (extent > 0 ? extent : 1);
}
static double conv_cost(const cot_tape *t, uint32_t node) {
    return taps_cost(t, node, (double)cot__size_at(t, node), cot__operand_size(t, node, RIGHT), 0);
}
static double conv_transpose_cost(const cot_tape *t, uint32_t node) {
    return taps_cost(t, node, cot__operand_size(t, node, LEFT), cot__operand_size(t, node, RIGHT), 0);
}
static double conv_weight_cost(const cot_tape *t, uint32_t node) {
    return taps_cost(t, node, cot__operand_size(t, node, RIGHT), (double)cot__size_at(t, node), 1);
}

const cot__op cot__op_conv           = {.name         = "conv",
                                        .sweeps_alone = true,
                                        .batch        = cot__batch_conv,
                                        .attrs        = GEOMETRY,
                                        .kind         = KIND_BILINEAR,
                                        .saves        = 3u,
                                        .rounds       = true,
                                        .vjp          = conv_vjp,
                                        .infer        = conv_infer,
                                        .workspace    = conv_workspace,
                                        .run          = conv_run,
                                        .formula =
                                            "z[n,o,q] = Σ x[n,c, q·stride + k·dilation - padding] w[o,c,k]; "
                                            "x̄ += conv_transpose(z̄, w), w̄ += conv_weight(x, z̄)",
                                        .cost         = {.more = conv_cost},
                                        .operands     = "x w",
                                        .functions    = "conv1d conv2d conv3d"};
const cot__op cot__op_conv_transpose = {.name         = "conv_transpose",
                                        .sweeps_alone = true,
                                        .batch        = cot__batch_conv,
                                        .attrs        = GEOMETRY,
                                        .kind         = KIND_BILINEAR,
                                        .saves        = 3u,
                                        .rounds       = true,
                                        .vjp          = conv_transpose_vjp,
                                        .infer        = conv_infer,
                                        .workspace    = conv_workspace,
                                        .run          = conv_run,
                                        .formula      = "z = convᵀ(x, w); x̄ += conv(z̄, w), w̄ += conv_weight(z̄, x)",
                                        .cost         = {.more = conv_transpose_cost},
                                        .operands     = "x w",
                                        .functions    = "conv_transpose1d conv_transpose2d conv_transpose3d"};
const cot__op cot__op_conv_weight    = {
       .name         = "conv_weight",
       .sweeps_alone = true,
       .batch        = cot__batch_conv,
       .attrs        = GEOMETRY,
       .kind         = KIND_BILINEAR,
       .saves        = 3u,
       .rounds       = true,
       .vjp          = conv_weight_vjp,
       .infer        = conv_infer,
       .workspace    = conv_workspace,
       .run          = conv_run,
       .formula =
           "z[o,c,k] = Σ x[n,c, q·stride + k·dilation - padding] y[n,o,q]; x̄ += conv_transpose(y, z̄), ȳ += conv(x, z̄)",
       .cost         = {.more = conv_weight_cost},
       .operands     = "x y"};

/* ---- options --------------------------------------------------------------------------------- */

/* Checks one option: none negative or absurd, none beyond the spatial axes. The result is
 * right-aligned; 0 becomes `zero`. */
static bool check_option(cot_tape *t, const char *op, const char *name, const int64_t given[3], int space, int64_t zero,
                         int64_t out[COT__SPACE]) {
    for (int a = 0; a < COT__SPACE; a++) {
        long long v = given[a];
        if (v < 0 || v > INT32_MAX) {
            cot__fail(t, COT_VALUE, "[%s] %s[%d] is %lld; it may be 0 to %d", op, name, a, v, INT32_MAX);
            return false;
        }
        if (v && a >= space) {
            cot__fail(t, COT_VALUE, "[%s] %s[%d] is %lld, but there %s; leave the rest 0", op, name, a, v,
                      space == 1 ? "is 1 spatial axis" : "are 2 spatial axes");
            return false;
        }
    }
    for (int a = 0; a < COT__SPACE; a++) {
        int from = a - (COT__SPACE - space);
        out[a] = from >= 0 && given[from] ? given[from] : zero;
    }
    return true;
}

/* Enters x and w and reads what does not depend on the direction: batch, groups, channels, kernel,
 * strides, dilations. `after` are the zeros behind, `more` the output padding. */
static cot_tape *enter(const char *op, int space, bool transposed, cot_var x, cot_var w, const cot_conv_options *o,
                       uint32_t xs[2], cot__conv *g, int64_t after[3], int64_t more[3]) {
    static const char *const names[] = {"first", "weight"};
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    int64_t   both[COT__SPACE];
    cot_tape *t = cot__enter_all(op, names, 2, (cot_var[]){x, w}, true, xs);
    if (!t) return NULL;
    cot_shape sx = cot__shape_at(t, xs[LEFT]), sw = cot__shape_at(t, xs[RIGHT]);
    if (sx.ndim != space + 2 || sw.ndim != space + 2) {
        cot__fail(t, COT_SHAPE,
                  "[%s] x has shape %s, the weight %s; both have two axes for channels and the like, then %d spatial",
                  op, cot__shape_text(sx.ndim, sx.dim, a), cot__shape_text(sw.ndim, sw.dim, b), space);
        return NULL;
    }
    if (!check_option(t, op, "stride", o->stride, space, 1, g->stride) ||
        !check_option(t, op, "dilation", o->dilation, space, 1, g->dilation) ||
        !check_option(t, op, "padding", o->padding, space, 0, both) ||
        !check_option(t, op, "padding_before", o->padding_before, space, 0, g->before) ||
        !check_option(t, op, "padding_after", o->padding_after, space, 0, after) ||
        !check_option(t, op, "output_padding", o->output_padding, space, 0, more))
        return NULL;
    if (o->groups < 0) {
        cot__fail(t, COT_VALUE, "[%s] groups is %lld; it is positive, or 0 for one group", op, (long long)o->groups);
        return NULL;
    }
    g->batch = sx.dim[0], g->groups = o->groups ? o->groups : 1;
    int64_t channels = sx.dim[1], takes = transposed ? sw.dim[0] : cot__size_mul(sw.dim[1], g->groups);
    if (channels % g->groups || sw.dim[0] % g->groups) {
        cot__fail(
            t, COT_SHAPE,
            "[%s] %lld groups, but x has %lld channels and the weight %lld along its first axis; groups divide both",
            op, (long long)g->groups, (long long)channels, (long long)sw.dim[0]);
        return NULL;
    }
    if (channels != takes) {
        cot__fail(t, COT_SHAPE, "[%s] x has %lld channels, the weight %s takes %lld; %s", op, (long long)channels,
                  cot__shape_text(sw.ndim, sw.dim, a), (long long)takes,
                  transposed ? "its first axis is the channels of x"
                             : "groups times its second axis is the channels of x");
        return NULL;
    }
    g->in = transposed ? cot__size_mul(sw.dim[1], g->groups) : channels;
    g->out = sw.dim[0];
    for (int i = 0, to = COT__SPACE - space; i < COT__SPACE; i++) {
        g->before[i] += both[i], after[i] += both[i];
        g->x[i] = g->z[i] = g->k[i] = 1;
        if (i < to) continue;
        g->k[i] = sw.dim[2 + i - to];
        *(transposed ? &g->z[i] : &g->x[i]) = sx.dim[2 + i - to];
        if (g->k[i] > 0) continue;
        cot__fail(t, COT_SHAPE, "[%s] the weight has shape %s; a kernel has at least one element", op,
                  cot__shape_text(sw.ndim, sw.dim, a));
        return NULL;
    }
    return t;
}

static cot_var convolve(const char *op, int space, cot_var x, cot_var w, const cot_conv_options *o) {
    cot__conv g;
    uint32_t  xs[2];
    int64_t   after[COT__SPACE], more[COT__SPACE];
    cot_tape *t = enter(op, space, false, x, w, o, xs, &g, after, more);
    if (!t) return cot__invalid(2, (cot_var[]){x, w});
    for (int a = COT__SPACE - space; a < COT__SPACE; a++) {
        int64_t padded = g.x[a] + g.before[a] + after[a];
        if (more[a])
            return cot__fail(t, COT_VALUE, "[%s] output_padding[%d] is %lld; only transposed convolutions have one", op,
                             a - COT__SPACE + space, (long long)more[a]);
        if (reach(&g, a) > padded)
            return cot__fail(t, COT_SHAPE,
                             "[%s] the kernel reaches over %lld elements of spatial axis %d, which has %lld with its "
                             "padding; it must fit",
                             op, (long long)reach(&g, a), a - COT__SPACE + space, (long long)padded);
        g.z[a] = cot__size_windows(padded, reach(&g, a), g.stride[a]);
    }
    const char *before = cot__ask(t, op);
    cot_var     z = push(t, COT__CONV_OUTPUT, &g, space, xs);
    cot__asked(t, before);
    return z;
}

static cot_var transpose(const char *op, int space, cot_var x, cot_var w, const cot_conv_options *o) {
    cot__conv g;
    uint32_t  xs[2];
    int64_t   after[COT__SPACE], more[COT__SPACE];
    cot_tape *t = enter(op, space, true, x, w, o, xs, &g, after, more);
    if (!t) return cot__invalid(2, (cot_var[]){x, w});
    for (int a = COT__SPACE - space; a < COT__SPACE; a++) {
        int64_t place = a - COT__SPACE + space;
        if (more[a] >= g.stride[a] && more[a] >= g.dilation[a])
            return cot__fail(t, COT_VALUE, "[%s] output_padding[%lld] is %lld; it must be less than stride or dilation",
                             op, (long long)place, (long long)more[a]);
        g.x[a] = cot__size_mul(g.z[a] - 1, g.stride[a]);
        g.x[a] = cot__size_add(cot__size_add(g.x[a], reach(&g, a)), more[a] - g.before[a] - after[a]);
        if (g.z[a] == 0 || g.x[a] < 1)
            return cot__fail(
                t, COT_SHAPE,
                "[%s] %lld elements along spatial axis %lld would become %lld; the result has at least one", op,
                (long long)g.z[a], (long long)place, (long long)(g.z[a] ? g.x[a] : 0));
    }
    const char *before = cot__ask(t, op);
    cot_var     z = push(t, COT__CONV_INPUT, &g, space, xs);
    cot__asked(t, before);
    return z;
}

cot_var cot_conv1d(cot_var x, cot_var w, cot_conv_options options) { return convolve("conv1d", 1, x, w, &options); }
cot_var cot_conv2d(cot_var x, cot_var w, cot_conv_options options) { return convolve("conv2d", 2, x, w, &options); }
cot_var cot_conv3d(cot_var x, cot_var w, cot_conv_options options) { return convolve("conv3d", 3, x, w, &options); }
cot_var cot_conv_transpose1d(cot_var x, cot_var w, cot_conv_options options) {
    return transpose("conv_transpose1d", 1, x, w, &options);
}
cot_var cot_conv_transpose2d(cot_var x, cot_var w, cot_conv_options options) {
    return transpose("conv_transpose2d", 2, x, w, &options);
}
cot_var cot_conv_transpose3d(cot_var x, cot_var w, cot_conv_options options) {
    return transpose("conv_transpose3d", 3, x, w, &options);
}
