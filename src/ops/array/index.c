/* index.c: elements chosen by arrays of positions: take, take_along_axis, their transposes
 * scatter_add and scatter_add_along, and one_hot.
 *
 * All are linear in the values; positions carry no derivative. Elements only move and add, so a
 * zero adjoint stays a zero. */
#include "rules/structural_ids.h"
#include "ops/costs.h"
#include "ops/structural.h"

enum { VALUES, POSITIONS, UPDATES };

/* Enters x and indices and checks the axis. */
static cot_tape *enter(const char *op, cot_var x, cot_var indices, int *axis, uint32_t *index) {
    cot_tape *t = cot__tape_of(2, (cot_var[]){x, indices});
    if (!t || !cot__enter(t, x, op, "first", &index[VALUES]) || !cot__enter(t, indices, op, "index", &index[POSITIONS]))
        return NULL;
    return cot__check_axis(t, op, *axis, cot__ndim_at(t, index[VALUES]), axis) ? t : NULL;
}

static int axis_of(const cot__rule *r) { return (int)cot__rule_attr(r)->ints[0]; }
static int axis_in(const cot__job *j) { return (int)cot__job_int(j, 0); }

/* So many operands, an axis of the values, and integers for positions. */
static bool has_positions(const cot__job *j, int n) {
    return cot__job_has(j, n, n, 1) && cot__job_axis(j, 0, j->x[VALUES].ndim) &&
           cot__job_integers(j, POSITIONS, cot__asker_what(cot__asker_of(j->attr)));
}

static bool positions_asked(const cot__job *j, cot__positions *asked) {
    const cot__view *p = &j->x[POSITIONS];
    bool             wrap = cot__asker_wraps(cot__asker_of(j->attr));
    /* labels are one for each row, and positions with an axis more */
    bool             rows = !wrap && j->record->choice.along && p->shape[p->ndim - 1] == 1;
    *asked = (cot__positions){POSITIONS, j->x[VALUES].shape[axis_in(j)], wrap, rows};
    return true;
}

static bool positions_check(const cot__job *j) {
    cot__positions asked;
    const char    *what = cot__asker_what(cot__asker_of(j->attr));
    positions_asked(j, &asked);
    return asked.rows ? cot__job_positions_in(j, POSITIONS, 0, what, asked.extent, false)
                      : cot__job_positions(j, POSITIONS, what, asked.extent, asked.wrap);
}

static cot_var record(cot_tape *t, const char *name, cot__asker who, int op, int n, const uint32_t *index, int axis) {
    cot__attr *attr = cot__attr_make(t, name, 1, (int64_t[]){axis}, n > 2 ? n : 0, n > 2 ? index : NULL);
    if (!attr) return INVALID(t);
    attr->number = who == cot__op_of(op)->asker ? COT__FOR_ITSELF : who;
    return cot__record(t, name, op, n, index, attr, NULL);
}

/* Of a rule whose operation asks for no positions of the user's it is this one that asks. */
static cot__asker unless_itself(cot__asker who, int op) {
    return who == COT__FOR_ITSELF ? (cot__asker)cot__op_of(op)->asker : who;
}

/* ---- take: x.shape[:axis] + indices.shape + x.shape[axis+1:] --------------------------------- */

static bool take_infer(const cot__job *j, cot__type *z) {
    if (!has_positions(j, 2)) return false;
    z->dtype = j->x[VALUES].dtype;
    z->shape = cot__taken_shape(&j->x[VALUES], &j->x[POSITIONS], axis_in(j));
    return true;
}

static void take_run(const cot__job *j) { j->backend->take(&j->x[VALUES], axis_in(j), &j->x[POSITIONS], &j->z); }

static cot_var take(const char *op, cot__asker who, cot_var x, cot_var indices, int axis) {
    uint32_t  index[2];
    cot_tape *t = enter(op, x, indices, &axis, index);
    return t ? record(t, op, who, OP_take, 2, index, axis) : cot__invalid(1, &x);
}

cot_var cot__take_as(const char *op, cot_var x, cot_var indices, int axis) {
    return take(op, COT__FOR_ITSELF, x, indices, axis);
}
cot_var cot__take_for(cot__asker who, cot_var x, cot_var indices, int axis) {
    who = unless_itself(who, OP_take);
    return take(cot__asker_name(who), who, x, indices, axis);
}

cot_var cot_take(cot_var x, cot_var indices, int axis) { return cot__take_for(COT__FOR_TAKE, x, indices, axis); }

static void take_vjp(cot__rule *r) { cot__give_scatter(r, VALUES, r->g, cot__rule_x(r, POSITIONS), axis_of(r), false); }

const cot__op cot__op_take = {.name = "take", .batch = cot__batch_take, .attrs = "axis:a", .kind = KIND_LINEAR,
                              .inactive = 1u << POSITIONS,
                              .saves = 1u << POSITIONS,
                              .formula = "z = x[indices]; x̄[indices] += z̄", .vjp = take_vjp,
                              .infer = take_infer, .check = positions_check, .positions = positions_asked,
                              .asker = COT__FOR_TAKE,
                              .run = take_run,
                              .cost = {.none = "moves data"},
                              .operands = "x indices",
                              .functions = "embedding",
                              .choice = {.from = COT__CHOOSES_ON_AXIS}};

/* ---- take_along_axis: the shape of indices --------------------------------------------------- */

static bool aligned(const cot__caller *c, const cot__view *x, const cot__view *p, int axis) {
    char a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    bool fits = x->ndim == p->ndim;
    for (int k = 0; fits && k < x->ndim; k++) fits = k == axis || x->shape[k] == p->shape[k];
    return fits ||
           cot__refuse(c, COT_SHAPE, "x has shape %s, indices %s; they agree in all extents but the one along axis %d",
                       cot__shape_text(x->ndim, x->shape, a), cot__shape_text(p->ndim, p->shape, b), axis);
}

static bool along_infer(const cot__job *j, cot__type *z) {
    if (!has_positions(j, 2) || !aligned(j->caller, &j->x[VALUES], &j->x[POSITIONS], axis_in(j))) return false;
    cot__type_like(z, j->x[VALUES].dtype, &j->x[POSITIONS]);
    return true;
}

static void along_run(const cot__job *j) {
    j->backend->take_along(&j->x[VALUES], axis_in(j), &j->x[POSITIONS], &j->z);
}

cot_var cot__take_along_for(cot__asker who, cot_var x, cot_var indices, int axis) {
    uint32_t    index[2];
    const char *name = cot__asker_name(who = unless_itself(who, OP_take_along_axis));
    cot_tape   *t = enter(name, x, indices, &axis, index);
    return t ? record(t, name, who, OP_take_along_axis, 2, index, axis) : cot__invalid(1, &x);
}

cot_var cot_take_along_axis(cot_var x, cot_var indices, int axis) {
    return cot__take_along_for(COT__FOR_TAKE_ALONG_AXIS, x, indices, axis);
}

static void along_vjp(cot__rule *r) { cot__give_scatter(r, VALUES, r->g, cot__rule_x(r, POSITIONS), axis_of(r), true); }

const cot__op cot__op_take_along_axis = {.name     = "take_along_axis",
                                         .batch    = cot__batch_shift,
                                         .attrs    = "axis:a",
                                         .kind     = KIND_LINEAR,
                                         .inactive = 1u << POSITIONS,
                                         .saves    = 1u << POSITIONS,
                                         .formula  = "z[i,j] = x[i, indices[i,j]]; x̄[i, indices[i,j]] += z̄[i,j]",
                                         .vjp      = along_vjp,
                                         .infer    = along_infer,
                                         .check    = positions_check,
                                         .positions = positions_asked,
                                         .asker    = COT__FOR_TAKE_ALONG_AXIS,
                                         .run      = along_run,
                                         .cost     = {.none = "moves data"},
                                         .operands = "x indices",
                                         .choice   = {.from = COT__CHOOSES_ON_AXIS, .along = true}};

/* ---- scatter_add: z = x, z[indices] += updates ----------------------------------------------- */

static bool is_half(cot_dtype d) { return d == COT_BF16 || d == COT_F16; }

/* Copies in f32: of halves, x and u. */
static int64_t scatter_workspace(const cot__view *x, const cot__view *u) {
    size_t  bytes;
    int64_t added = cot__view_size(u);
    if (!is_half(x->dtype) || added == 0) return 0;
    return cot__size_bytes(cot__size_add(cot__view_size(x), added), sizeof(float), &bytes) ? (int64_t)bytes : -1;
}

static void scatter(const cot__backend *b, const cot__view *x, int axis, const cot__view *index, const cot__view *u,
                    bool along, float *workspace) {
    void (*add)(const cot__view *, int, const cot__view *, const cot__view *) =
        along ? b->scatter_add_along : b->scatter_add;
    if (cot__view_size(u) == 0) return;
    if (!is_half(x->dtype)) {
        add(x, axis, index, u);
        return;
    }
    int64_t x_stride[COT_MAX_NDIM], u_stride[COT_MAX_NDIM];
    cot__strides(x->ndim, x->shape, x_stride);
    cot__strides(u->ndim, u->shape, u_stride);
    cot__view xw = {workspace, COT_F32, x->ndim, x->shape, x_stride},
              uw = {workspace + cot__view_size(x), COT_F32, u->ndim, u->shape, u_stride};
    b->copy(&xw, x);
    b->copy(&uw, u);
    add(&xw, axis, index, &uw);
    b->copy(x, &xw);
}

bool cot__scatter(cot_tape *t, const char *op, const cot__view *x, int axis, const cot__view *index, const cot__view *u,
                  bool along) {
    int64_t bytes = scatter_workspace(x, u);
    void   *workspace = NULL;
    if (bytes && !(workspace = cot__workspace_open(t, op, bytes))) return false;
    scatter(t->backend, x, axis, index, u, along, workspace);
    if (bytes) cot__workspace_close(t, workspace, bytes);
    return true;
}

/* Both records: the updates have the shape that the positions ask for. */
static bool scatter_infer(const cot__job *j, const cot_shape *shape, cot__type *z) {
    char             a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    const cot__view *x = &j->x[VALUES], *u = &j->x[UPDATES];
    cot_shape        given = cot__view_extents(u);
    z->dtype = x->dtype;
    z->shape = *shape;
    if (!cot__job_check_type(j, z) || !cot__job_dtype(j, UPDATES, x->dtype)) return false;
    cot__type_like(z, x->dtype, x);
    return cot__same_shape(&given, shape) ||
           cot__refuse(j->caller, COT_SHAPE, "the updates have shape %s; the positions ask for %s",
                       cot__shape_text(u->ndim, u->shape, a), cot__shape_text(shape->ndim, shape->dim, b));
}

static bool scatter_add_infer(const cot__job *j, cot__type *z) {
    if (!has_positions(j, 3)) return false;
    cot_shape shape = cot__taken_shape(&j->x[VALUES], &j->x[POSITIONS], axis_in(j));
    return scatter_infer(j, &shape, z);
}

static bool scatter_add_along_infer(const cot__job *j, cot__type *z) {
    if (!has_positions(j, 3) || !aligned(j->caller, &j->x[VALUES], &j->x[POSITIONS], axis_in(j))) return false;
    cot_shape shape = cot__view_extents(&j->x[POSITIONS]);
    return scatter_infer(j, &shape, z);
}

static int64_t scatter_add_workspace(const cot__job *j) { return scatter_workspace(&j->x[VALUES], &j->x[UPDATES]); }

static void run_scatter(const cot__job *j, bool along) {
    j->backend->copy(&j->z, &j->x[VALUES]);
    scatter(j->backend, &j->z, axis_in(j), &j->x[POSITIONS], &j->x[UPDATES], along, j->workspace);
}
static void scatter_add_run(const cot__job *j) { run_scatter(j, false); }
static void scatter_add_along_run(const cot__job *j) { run_scatter(j, true); }

/* Brings the updates to the dtype of the result, and one number for all positions to `shape`. */
static cot_var record_scatter(int op, const char *name, cot__asker who, cot_tape *t, uint32_t *index, cot_var updates,
                              int axis, const cot_shape *shape) {
    if (!cot__enter(t, updates, name, "updates", &index[UPDATES])) return INVALID(t);
    cot_dtype dtype = cot__dtype_at(&t->nodes[index[VALUES]]);
    if (!cot__is_number(updates)) dtype = cot__dtype_promote(dtype, cot__dtype_at(&t->nodes[index[UPDATES]]));
    /* a fraction next to integers */
    else if ((uintptr_t)updates.tape == 1 && !cot__dtype_is_float(dtype)) dtype = COT_F64;
    if ((index[VALUES] = cot__as(t, index[VALUES], dtype)) == COT__NONE) return INVALID(t);
    if ((index[UPDATES] = cot__as(t, index[UPDATES], dtype)) == COT__NONE) return INVALID(t);
    if (cot__ndim_at(t, index[UPDATES]) == 0 && shape->ndim > 0) {
        cot_var wide = cot_broadcast_to(VAR(t, index[UPDATES]), *shape);
        if (cot__failed(wide)) return INVALID(t);
        index[UPDATES] = cot__index(wide);
    }
    return record(t, name, who, op, 3, index, axis);
}

cot_var cot__scatter_add_for(cot__asker who, cot_var x, cot_var indices, cot_var updates, int axis) {
    uint32_t    index[3];
    const char *name = cot__asker_name(who = unless_itself(who, OP_scatter_add));
    cot_tape   *t = enter(name, x, indices, &axis, index);
    if (!t) return cot__invalid(1, &x);
    cot__view v = cot__layout_at(t, index[VALUES]), p = cot__layout_at(t, index[POSITIONS]);
    cot_shape shape = cot__taken_shape(&v, &p, axis);
    return cot__check_shape(t, name, &shape)
               ? record_scatter(OP_scatter_add, name, who, t, index, updates, axis, &shape)
               : INVALID(t);
}

cot_var cot_scatter_add(cot_var x, cot_var indices, cot_var updates, int axis) {
    return cot__scatter_add_for(COT__FOR_SCATTER_ADD, x, indices, updates, axis);
}

cot_var cot__scatter_add_along_for(cot__asker who, cot_var x, cot_var indices, cot_var updates, int axis) {
    uint32_t    index[3];
    const char *name = cot__asker_name(who = unless_itself(who, OP_scatter_add_along));
    cot_tape   *t = enter(name, x, indices, &axis, index);
    if (!t) return cot__invalid(1, &x);
    cot_shape shape = cot__shape_at(t, index[POSITIONS]);
    return record_scatter(OP_scatter_add_along, name, who, t, index, updates, axis, &shape);
}

static void scatter_add_vjp(cot__rule *r) {
    cot__give(r, VALUES, r->g);
    if (cot__rule_wants(r, UPDATES))
        cot__give(r, UPDATES, cot__take_for(cot__rule_asker(r), r->g, cot__rule_x(r, POSITIONS), axis_of(r)));
}

static void scatter_add_along_vjp(cot__rule *r) {
    cot__give(r, VALUES, r->g);
    if (cot__rule_wants(r, UPDATES))
        cot__give(r, UPDATES, cot__take_along_for(cot__rule_asker(r), r->g, cot__rule_x(r, POSITIONS), axis_of(r)));
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
                                           .infer    = scatter_add_infer,
                                           .check    = positions_check,
                                           .positions = positions_asked,
                                           .asker = COT__FOR_SCATTER_ADD,
                                           .workspace = scatter_add_workspace,
                                           .run      = scatter_add_run,
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
    .infer    = scatter_add_along_infer,
    .check    = positions_check,
    .positions = positions_asked,
    .asker = COT__FOR_SCATTER_ADD_ALONG,
    .workspace = scatter_add_workspace,
    .run      = scatter_add_along_run,
    .cost     = {.more = scatter_cost},
    .operands = "x indices u",
    .choice   = {.from = COT__CHOOSES_ON_AXIS, .along = true, .puts = true}};

/* ---- one_hot --------------------------------------------------------------------------------- */

/* How many there are is the last extent of the shape that is asked for. */
static bool one_hot_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, 0) || !cot__job_check_type(j, z)) return false;
    int  ndim = j->x[0].ndim;
    bool fits = z->shape.ndim == ndim + 1;
    for (int k = 0; fits && k < ndim; k++) fits = z->shape.dim[k] == j->x[0].shape[k];
    return fits ? cot__job_integers(j, 0, "indices") : cot__job_illegal(j, "another shape than that of the indices");
}

static bool one_hot_check(const cot__job *j) {
    return cot__job_positions(j, 0, "indices", j->z.shape[j->z.ndim - 1], true);
}

static void one_hot_run(const cot__job *j) { j->backend->one_hot(&j->x[0], &j->z); }

cot_var cot_one_hot(cot_var indices, int64_t n, cot_dtype dtype) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, indices, "one_hot", "index", &i);
    if (!t) return cot__invalid(1, &indices);
    cot__type asked = {dtype, cot__shape_at(t, i)};
    if (asked.shape.ndim < COT_MAX_NDIM) asked.shape.dim[asked.shape.ndim] = n;
    asked.shape.ndim++;
    return cot__record(t, "one_hot", OP_one_hot, 1, &i, NULL, &asked);
}

const cot__op cot__op_one_hot = {.name = "one_hot", .batch = cot__batch_shift, .kind = KIND_NONE,
                                 .formula = "z[.., k] = 1 where indices[..] = k, else 0",
                                 .infer = one_hot_infer, .asks = COT__ASKS_DTYPE | COT__ASKS_SHAPE,
                                 .check = one_hot_check, .run = one_hot_run,
                                 .cost = {.none = "moves data"},
                                 .operands = "x"};
