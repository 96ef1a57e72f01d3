/* index.c: elements chosen by arrays of positions: take, take_along_axis, their transposes
 * scatter_add and scatter_add_along, and one_hot.
 *
 * All are linear in the values; positions carry no derivative. Elements only move and add, so a
 * zero adjoint stays a zero. */
#include "rules/structural_ids.h"
#include "ops/costs.h"
#include "ops/structural.h"

enum { VALUES, POSITIONS, UPDATES };

/* Enters x and indices and checks the axis; the positions themselves are checked by the caller. */
static cot_tape *enter(const char *op, cot_var x, cot_var indices, int *axis, uint32_t *index) {
    cot_tape *t = cot__tape_of(2, (cot_var[]){x, indices});
    if (!t || !cot__enter(t, x, op, "first", &index[VALUES]) || !cot__enter(t, indices, op, "index", &index[POSITIONS]))
        return NULL;
    return cot__check_axis(t, op, *axis, cot__ndim_at(t, index[VALUES]), axis) ? t : NULL;
}

static cot__attr *axis_attr(cot_tape *t, const char *op, int axis) {
    return cot__attr_make(t, op, 1, (int64_t[]){axis}, 0, NULL);
}

static int axis_of(const cot__rule *r) { return (int)cot__rule_attr(r)->ints[0]; }

/* ---- take: x.shape[:axis] + indices.shape + x.shape[axis+1:] --------------------------------- */

cot_var cot__take_as(const char *op, cot_var x, cot_var indices, int axis) {
    uint32_t    index[2];
    cot_tape   *t = enter(op, x, indices, &axis, index);
    cot_shape   shape;
    cot__result r;
    if (!t) return cot__invalid(1, &x);
    if (!cot__taken_shape(t, op, index[VALUES], index[POSITIONS], axis, &shape)) return INVALID(t);
    cot__view v = cot__view_read(t, index[VALUES]);
    if (!cot__check_positions(t, op, "indices", index[POSITIONS], v.shape[axis], true)) return INVALID(t);
    cot__view  p = cot__view_read(t, index[POSITIONS]);
    cot__attr *attr = axis_attr(t, op, axis);
    if (!attr || !cot__result_open(t, &r, op, v.dtype, shape.ndim, shape.dim)) return INVALID(t);
    t->backend->take(&v, axis, &p, &r.view);
    return cot__result_push(t, &r, OP_take, 2, index, attr);
}

cot_var cot_take(cot_var x, cot_var indices, int axis) { return cot__take_as("take", x, indices, axis); }

static void take_vjp(cot__rule *r) { cot__give_scatter(r, VALUES, r->g, cot__rule_x(r, POSITIONS), axis_of(r), false); }
static cot_var take_apply(cot__rule *r, const cot_var *xs) { return cot_take(xs[VALUES], xs[POSITIONS], axis_of(r)); }

const cot__op cot__op_take = {.name = "take", .batch = cot__batch_take, .attrs = "axis:a", .kind = KIND_LINEAR,
                              .inactive = 1u << POSITIONS,
                              .saves = 1u << POSITIONS,
                              .formula = "z = x[indices]; x̄[indices] += z̄", .vjp = take_vjp, .apply = take_apply,
                              .cost = {.none = "moves data"},
                              .operands = "x indices",
                              .functions = "embedding",
                              .choice = {.from = COT__CHOOSES_ON_AXIS}};

/* ---- take_along_axis: the shape of indices --------------------------------------------------- */

static bool aligned(cot_tape *t, const char *op, const uint32_t *index, int axis) {
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    cot_shape x = cot__shape_at(t, index[VALUES]), p = cot__shape_at(t, index[POSITIONS]);
    bool      fits = x.ndim == p.ndim;
    for (int k = 0; fits && k < x.ndim; k++) fits = k == axis || x.dim[k] == p.dim[k];
    if (!fits)
        cot__fail(t, COT_SHAPE, "[%s] x has shape %s, indices %s; they agree in all extents but the one along axis %d",
                  op, cot__shape_text(x.ndim, x.dim, a), cot__shape_text(p.ndim, p.dim, b), axis);
    return fits && cot__check_positions(t, op, "indices", index[POSITIONS], x.dim[axis], true);
}

cot_var cot_take_along_axis(cot_var x, cot_var indices, int axis) {
    uint32_t    index[2];
    cot_tape   *t = enter("take_along_axis", x, indices, &axis, index);
    cot__result r;
    if (!t) return cot__invalid(1, &x);
    if (!aligned(t, "take_along_axis", index, axis)) return INVALID(t);
    cot__view  v = cot__view_read(t, index[VALUES]), p = cot__view_read(t, index[POSITIONS]);
    cot__attr *attr = axis_attr(t, "take_along_axis", axis);
    if (!attr || !cot__result_open(t, &r, "take_along_axis", v.dtype, p.ndim, p.shape)) return INVALID(t);
    t->backend->take_along(&v, axis, &p, &r.view);
    return cot__result_push(t, &r, OP_take_along_axis, 2, index, attr);
}

static void along_vjp(cot__rule *r) { cot__give_scatter(r, VALUES, r->g, cot__rule_x(r, POSITIONS), axis_of(r), true); }
static cot_var along_apply(cot__rule *r, const cot_var *xs) {
    return cot_take_along_axis(xs[VALUES], xs[POSITIONS], axis_of(r));
}

const cot__op cot__op_take_along_axis = {.name     = "take_along_axis",
                                         .batch    = cot__batch_shift,
                                         .attrs    = "axis:a",
                                         .kind     = KIND_LINEAR,
                                         .inactive = 1u << POSITIONS,
                                         .saves    = 1u << POSITIONS,
                                         .formula  = "z[i,j] = x[i, indices[i,j]]; x̄[i, indices[i,j]] += z̄[i,j]",
                                         .vjp      = along_vjp,
                                         .apply    = along_apply,
                                         .cost     = {.none = "moves data"},
                                         .operands = "x indices",
                                         .choice   = {.from = COT__CHOOSES_ON_AXIS, .along = true}};

/* ---- scatter_add: z = x, z[indices] += updates ----------------------------------------------- */

static bool is_half(cot_dtype d) { return d == COT_BF16 || d == COT_F16; }

bool cot__scatter(cot_tape *t, const char *op, const cot__view *x, int axis, const cot__view *index, const cot__view *u,
                  bool along) {
    void (*add)(const cot__view *, int, const cot__view *, const cot__view *) =
        along ? t->backend->scatter_add_along : t->backend->scatter_add;
    if (!is_half(x->dtype)) {
        add(x, axis, index, u);
        return true;
    }
    int64_t x_stride[COT_MAX_NDIM], u_stride[COT_MAX_NDIM];
    int64_t nx = cot__count(x->ndim, x->shape), nu = cot__count(u->ndim, u->shape);
    size_t  bytes = (size_t)(nx + nu) * sizeof(float);
    float  *wide = cot__device_alloc(t, bytes);
    if (!wide) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes to sum halves in f32", op, bytes);
        return false;
    }
    cot__strides(x->ndim, x->shape, x_stride);
    cot__strides(u->ndim, u->shape, u_stride);
    cot__view xw = {wide, COT_F32, x->ndim, x->shape, x_stride}, uw = {wide + nx, COT_F32, u->ndim, u->shape, u_stride};
    t->backend->copy(&xw, x);
    t->backend->copy(&uw, u);
    add(&xw, axis, index, &uw);
    t->backend->copy(x, &xw);
    cot__device_free(t, wide, bytes);
    return true;
}

static cot_var scatter(int op, cot_tape *t, uint32_t *index, cot_var updates, int axis, const cot_shape *shape) {
    const char *name = cot__op_of(op)->name;
    char        a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    cot__result r;
    if (!cot__enter(t, updates, name, "updates", &index[UPDATES])) return INVALID(t);
    cot_dtype dtype = cot__dtype_at(&t->nodes[index[VALUES]]);
    if (!cot__is_number(updates)) dtype = cot__dtype_promote(dtype, cot__dtype_at(&t->nodes[index[UPDATES]]));
    /* a fraction next to integers */
    else if ((uintptr_t)updates.tape == 1 && !cot__dtype_is_float(dtype)) dtype = COT_F64;
    if ((index[VALUES] = cot__as(t, index[VALUES], dtype)) == COT__NONE) return INVALID(t);
    if ((index[UPDATES] = cot__as(t, index[UPDATES], dtype)) == COT__NONE) return INVALID(t);
    if (cot__ndim_at(t, index[UPDATES]) == 0 && shape->ndim > 0) {
        /* one number for all positions */
        cot_var wide = cot_broadcast_to(VAR(t, index[UPDATES]), *shape);
        if (cot__failed(wide)) return INVALID(t);
        index[UPDATES] = cot__index(wide);
    }
    cot_shape u = cot__shape_at(t, index[UPDATES]);
    if (!cot__same_shape(&u, shape))
        return cot__fail(t, COT_SHAPE, "[%s] the updates have shape %s; the positions ask for %s", name,
                         cot__shape_text(u.ndim, u.dim, a), cot__shape_text(shape->ndim, shape->dim, b));
    cot__view x = cot__view_read(t, index[VALUES]), p = cot__view_read(t, index[POSITIONS]),
              v     = cot__view_read(t, index[UPDATES]);
    cot__attr *attr = cot__attr_make(t, name, 1, (int64_t[]){axis}, 3, index);
    if (!attr || !cot__result_open(t, &r, name, dtype, x.ndim, x.shape)) return INVALID(t);
    t->backend->copy(&r.view, &x);
    if (!cot__scatter(t, name, &r.view, axis, &p, &v, op == OP_scatter_add_along)) return INVALID(t);
    return cot__result_push(t, &r, op, 3, index, attr);
}

cot_var cot_scatter_add(cot_var x, cot_var indices, cot_var updates, int axis) {
    uint32_t  index[3];
    cot_tape *t = enter("scatter_add", x, indices, &axis, index);
    cot_shape shape;
    if (!t) return cot__invalid(1, &x);
    if (!cot__taken_shape(t, "scatter_add", index[VALUES], index[POSITIONS], axis, &shape)) return INVALID(t);
    int64_t extent = cot__view_read(t, index[VALUES]).shape[axis];
    if (!cot__check_positions(t, "scatter_add", "indices", index[POSITIONS], extent, true)) return INVALID(t);
    return scatter(OP_scatter_add, t, index, updates, axis, &shape);
}

cot_var cot__scatter_add_along_axis(cot_var x, cot_var indices, cot_var updates, int axis) {
    uint32_t  index[3];
    cot_tape *t = enter("scatter_add_along", x, indices, &axis, index);
    if (!t) return cot__invalid(1, &x);
    if (!aligned(t, "scatter_add_along", index, axis)) return INVALID(t);
    cot_shape shape = cot__shape_at(t, index[POSITIONS]);
    return scatter(OP_scatter_add_along, t, index, updates, axis, &shape);
}

static void scatter_add_vjp(cot__rule *r) {
    cot__give(r, VALUES, r->g);
    if (cot__rule_wants(r, UPDATES)) cot__give(r, UPDATES, cot_take(r->g, cot__rule_x(r, POSITIONS), axis_of(r)));
}

static void scatter_add_along_vjp(cot__rule *r) {
    cot__give(r, VALUES, r->g);
    if (cot__rule_wants(r, UPDATES))
        cot__give(r, UPDATES, cot_take_along_axis(r->g, cot__rule_x(r, POSITIONS), axis_of(r)));
}

static cot_var scatter_add_apply(cot__rule *r, const cot_var *xs) {
    return cot_scatter_add(xs[VALUES], xs[POSITIONS], xs[UPDATES], axis_of(r));
}
static cot_var scatter_add_along_apply(cot__rule *r, const cot_var *xs) {
    return cot__scatter_add_along_axis(xs[VALUES], xs[POSITIONS], xs[UPDATES], axis_of(r));
}

/* One addition for each element of the updates. */
static double scatter_cost(const cot_tape *t, uint32_t node) { return cot__operand_size(t, node, UPDATES); }

const cot__op cot__op_scatter_add       = {.name     = "scatter_add",
                                           .batch    = cot__batch_scatter,
                                           .attrs    = "axis:a",
                                           .kind     = KIND_LINEAR,
                                           .inactive = 1u << POSITIONS,
                                           .saves    = 1u << POSITIONS,
                                           .formula  = "z = x, z[indices] += u; x̄ += z̄, ū += z̄[indices]",
                                           .vjp      = scatter_add_vjp,
                                           .apply    = scatter_add_apply,
                                           .cost     = {.more = scatter_cost},
                                           .operands = "x indices u",
                                           .choice   = {.from = COT__CHOOSES_ON_AXIS, .puts = true}};
const cot__op cot__op_scatter_add_along = {
    .name     = "scatter_add_along",
    .batch    = cot__batch_shift,
    .attrs    = "axis:a",
    .kind     = KIND_LINEAR,
    .inactive = 1u << POSITIONS,
    .saves    = 1u << POSITIONS,
    .formula  = "z = x, z[i, indices[i,j]] += u[i,j]; x̄ += z̄, ū[i,j] += z̄[i, indices[i,j]]",
    .vjp      = scatter_add_along_vjp,
    .apply    = scatter_add_along_apply,
    .cost     = {.more = scatter_cost},
    .operands = "x indices u",
    .choice   = {.from = COT__CHOOSES_ON_AXIS, .along = true, .puts = true}};

/* ---- one_hot --------------------------------------------------------------------------------- */

cot_var cot_one_hot(cot_var indices, int64_t n, cot_dtype dtype) {
    uint32_t    i;
    cot_tape   *t = cot__enter(NULL, indices, "one_hot", "index", &i);
    cot__result r;
    if (!t) return cot__invalid(1, &indices);
    if (!cot__check_dtype(t, "one_hot", dtype)) return INVALID(t);
    cot_shape shape = cot__shape_at(t, i);
    if (shape.ndim < COT_MAX_NDIM) shape.dim[shape.ndim] = n;
    shape.ndim++;
    if (!cot__check_shape(t, "one_hot", &shape) || !cot__check_positions(t, "one_hot", "indices", i, n, true))
        return INVALID(t);
    if (!cot__result_open(t, &r, "one_hot", dtype, shape.ndim, shape.dim)) return INVALID(t);
    cot__view p = cot__view_read(t, i);
    t->backend->one_hot(&p, &r.view);
    return cot__result_push(t, &r, OP_one_hot, 1, &i, NULL);
}

static cot_var one_hot_apply(cot__rule *r, const cot_var *xs) {
    cot_shape z = cot__shape_at(r->t, r->node);
    return cot_one_hot(xs[0], z.dim[z.ndim - 1], cot__dtype_at(cot__rule_node(r)));
}

const cot__op cot__op_one_hot = {.name = "one_hot", .batch = cot__batch_shift, .kind = KIND_NONE,
                                 .formula = "z[.., k] = 1 where indices[..] = k, else 0",
                                 .apply = one_hot_apply,
                                 .cost = {.none = "moves data"},
                                 .operands = "x"};
