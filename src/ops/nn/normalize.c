/* normalize.c: layer, rms, group and batch normalisation.
 *
 * layer_norm and rms_norm are one operation each, L(x, weight, bias) = y · weight + bias with y =
 * (x - μ) r. Its adjoints are operations too, and each rule is written in the others, so every
 * order exists at the speed of a kernel. With J = ∂y/∂x = r (I - 11ᵀ/n - y yᵀ/n), which is
 * symmetric (rms: without 11ᵀ/n):
 *   norm_back    B(x, g, weight) = J (g · weight)       what x receives
 *   norm_weights P(x, g) = (Σ g y, Σ g), (2,n)          what weight and bias receive
 * A group normalisation is a layer normalisation of another shape. Batch normalisation is composed:
 * its statistics are results too. */
#include "rules/structural_ids.h"
#include "backend/elements.h"
#include "ops/structural.h"

/* ---- rows ------------------------------------------------------------------------------------ */

static bool is_absent(cot_var x) { return !x.tape; }

static bool legal_eps(const cot__caller *op, double eps) {
    return (eps >= 0 && isfinite(eps)) ||
           cot__refuse(op, COT_VALUE, "eps is %g; it must be finite and at least 0", eps);
}

static bool check_eps(cot_tape *t, const char *op, double eps) {
    cot__caller caller = cot__tape_caller(t, op);
    return legal_eps(&caller, eps);
}

/* The axes from `axis` on, and those before it. */
static cot_axes axes_between(int from, int to, bool keep) {
    cot_axes a = {0, keep, {0}};
    for (int k = from; k < to; k++) a.axis[a.n++] = k;
    return a;
}

static cot_shape shape_from(cot_shape x, int axis) {
    cot_shape s = {x.ndim - axis, {0}};
    for (int k = axis; k < x.ndim; k++) s.dim[k - axis] = x.dim[k];
    return s;
}

/* ---- the jobs -------------------------------------------------------------------------------- */

/* Attributes; attr->number is eps. */
enum { AXIS, RMS, NORM_INTS };

/* Operands of one dtype that kernels know, the first `full` like x and the others like the axes
 * from AXIS on. */
static bool norm_operands(const cot__job *j, int least, int most, int full) {
    if (!cot__job_has(j, least, most, NORM_INTS) || !cot__job_axis(j, AXIS, j->x[0].ndim)) return false;
    const cot__view *x = &j->x[0];
    int              axis = (int)cot__job_int(j, AXIS);
    if (x->dtype != COT_F64 && !cot__job_dtype(j, 0, COT_F32)) return false;
    for (int k = 1; k < j->n; k++) {
        int from = k < full ? 0 : axis;
        if (!cot__job_dtype(j, k, x->dtype) || !cot__job_shape(j, k, x->ndim - from, x->shape + from)) return false;
    }
    return legal_eps(j->caller, j->attr->number);
}

static bool norm_infer(const cot__job *j, cot__type *z) {
    if (!norm_operands(j, 1, 3, 1)) return false;
    *z = (cot__type){j->x[0].dtype, cot__view_extents(&j->x[0])};
    return true;
}

static bool norm_back_infer(const cot__job *j, cot__type *z) {
    if (!norm_operands(j, 2, 3, 2)) return false;
    *z = (cot__type){j->x[0].dtype, cot__view_extents(&j->x[0])};
    return true;
}

static bool norm_weights_infer(const cot__job *j, cot__type *z) {
    if (!norm_operands(j, 2, 2, 2)) return false;
    int axis = (int)cot__job_int(j, AXIS);
    *z = (cot__type){j->x[0].dtype, COT_SHAPE(2, cot__count(j->x[0].ndim - axis, j->x[0].shape + axis))};
    return true;
}

/* beside[0] gets mean and r of each row of x, (rows,2). beside[1] holds what an earlier run on the
 * same x wrote there. */
static cot__rows rows_of(const cot__job *j) {
    const cot__view *x = &j->x[0];
    int              axis = (int)cot__job_int(j, AXIS);
    bool             known = j->beside[1].data != NULL;
    return (cot__rows){cot__count(axis, x->shape),
                       cot__count(x->ndim - axis, x->shape + axis),
                       j->attr->number,
                       cot__job_int(j, RMS) != 0,
                       x->dtype,
                       j->beside[known].data,
                       known};
}

static int64_t norm_workspace(const cot__job *j) {
    int64_t bytes = 0;
    if (j->op == OP_norm_weights) {
        cot__rows r = rows_of(j);
        bytes = j->backend->normalize_workspace(&r);
    }
    for (int k = 0; bytes >= 0 && k < j->n; k++)
        bytes = cot__size_add(bytes, cot__pack_bytes(&j->x[k], j->x[0].dtype));
    return bytes;
}

static void norm_run(const cot__job *j) {
    cot__rows   r = rows_of(j);
    const void *x[3] = {NULL, NULL, NULL};
    char       *at = j->workspace;
    for (int k = 0; k < j->n; k++) x[k] = cot__pack_operand(j, k, r.dtype, &at);
    if (j->op == OP_norm_weights) j->backend->normalize_weights(&r, x[0], x[1], at, j->z.data);
    else if (j->op == OP_norm_back) j->backend->normalize_back(&r, x[0], x[2], x[1], j->z.data);
    else j->backend->normalize(&r, x[0], x[1], x[2], j->z.data);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* How an operation of this file normalises: attributes of its node. stats: mean and r of each row
 * of x, or NULL. A rule hands them on to the operations it records, all on the same x, which
 * therefore live no longer than they do. */
typedef struct manner { int axis; bool rms; double eps; void *stats; } manner;

static bool has_derivative(const cot_tape *t, const uint32_t *xs, int n) {
    for (int k = 0; k < n; k++)
        if (t->active_mask & t->nodes[xs[k]].flags & COT__ACTIVE) return true;
    return false;
}

/* Room for what becomes statistics of the node: in the arena, or in a tensor of the device that
 * nobody else sees. Both last as long as the node. NULL after a failure. */
static void *room_for_stats(cot_tape *t, const char *name, cot_dtype dtype, const int64_t shape[2]) {
    cot__result z;
    if (cot__on_host(t->backend)) return cot__arena(t, (size_t)(shape[0] * 2 * cot__dtype_size(dtype)), name);
    return cot__result_open(t, &z, name, dtype, 2, shape) ? z.view.data : NULL;
}

/* Makes n operands dense and records. Statistics that are known are read, and others are written
 * where a rule will want them. */
static cot_var push(cot_tape *t, int op, uint32_t *xs, int n, manner m) {
    const char    *name = cot__op_of(op)->name;
    cot__recording r;
    for (int k = 0; k < n; k++)
        if ((xs[k] = cot__dense(t, xs[k])) == COT__NONE) return INVALID(t);
    cot__attr *attr = cot__attr_make(t, name, NORM_INTS, (int64_t[]){m.axis, m.rms}, n > 2 ? n : 0, n > 2 ? xs : NULL);
    if (!attr) return INVALID(t);
    attr->number = m.eps;
    if (!cot__record_open(&r, t, name, op, n, xs, attr, NULL)) return INVALID(t);
    int64_t   shape[2] = {cot__count(m.axis, r.job.x[0].shape), 2}, stride[2] = {2, 1};
    cot_dtype dtype = r.job.x[0].dtype;
    bool      known = m.stats != NULL, empty = cot__view_size(&r.job.x[0]) == 0;
    if (!known && !empty && has_derivative(t, xs, n) && !(m.stats = room_for_stats(t, name, dtype, shape)))
        return INVALID(t);
    attr->pointer = m.stats;
    r.job.beside[known] = (cot__view){m.stats, dtype, 2, shape, stride};
    return cot__record_run(&r) ? cot__record_push(&r) : INVALID(t);
}

/* On vars of one dtype, F64 or F32, with their shapes checked; weight and bias may be absent, a
 * bias without weight too. */
static cot_var record(int op, manner m, cot_var x, cot_var second, cot_var third) {
    cot_tape *t = x.tape;
    uint32_t  xs[3];
    int       n = 1;
    if (op != OP_norm_back && is_absent(second) && !is_absent(third))
        second = cot_ones(t, cot_dtype_of(x), shape_from(cot_shape_of(x), m.axis));
    cot_var all[3] = {x, second, third};
    while (n < 3 && !is_absent(all[n])) n++;
    for (int k = 0; k < n; k++)
        if (!cot__enter(t, all[k], cot__op_of(op)->name, "", &xs[k])) return INVALID(t);
    return push(t, op, xs, n, m);
}

static int norm_of(manner m) { return m.rms ? OP_rms_norm : OP_layer_norm; }

static cot_var normalized(manner m, cot_var x, cot_var w, cot_var b) { return record(norm_of(m), m, x, w, b); }
static cot_var back(manner m, cot_var x, cot_var g, cot_var w) { return record(OP_norm_back, m, x, g, w); }

/* ---- rules ----------------------------------------------------------------------------------- */

static manner manner_of(const cot__rule *r) {
    const cot__attr *a = cot__rule_attr(r);
    return (manner){(int)a->ints[0], a->ints[1] != 0, a->number, (void *)(uintptr_t)a->pointer};
}

static int     operands(const cot__rule *r) { return cot__nargs(cot__rule_node(r)); }
static cot_var operand(cot__rule *r, int k) { return k < operands(r) ? cot__rule_x(r, k) : COT_NONE; }
static bool    wants(const cot__rule *r, int k) { return k < operands(r) && cot__rule_wants(r, k); }
static bool    moves(const cot__rule *r, int k) {
       return k < operands(r) && !cot__failed(r->tangents[k]) && r->tangents[k].tape;
}

static cot_var sum_rows(manner m, cot_var v) { return cot_sum(v, axes_between(0, m.axis, false)); }

/* Row `which` of (2,n) in the shape that weight and bias have. */
static cot_var parameter(cot__rule *r, manner m, cot_var pair, int which) {
    return cot_reshape(cot_index(pair, 0, which), shape_from(cot__rule_shape(r, 0), m.axis));
}

static void norm_vjp(cot__rule *r) {
    manner  m = manner_of(r);
    cot_var x = cot__rule_x(r, 0);
    if (wants(r, 0)) cot__give(r, 0, back(m, x, r->g, operand(r, 1)));
    if (wants(r, 1)) {
        cot_var pair = record(OP_norm_weights, m, x, r->g, COT_NONE);
        cot__give(r, 1, parameter(r, m, pair, 0));
        if (wants(r, 2)) cot__give(r, 2, parameter(r, m, pair, 1));
    } else if (wants(r, 2)) cot__give(r, 2, sum_rows(m, r->g));
}

static void norm_jvp(cot__rule *r) {
    manner  m = manner_of(r);
    cot_var x = cot__rule_x(r, 0), dz = COT_NONE;
    if (moves(r, 0)) {
        dz = back(m, x, r->tangents[0], COT_NONE);
        if (operands(r) > 1) dz = cot_smul(dz, operand(r, 1));
    }
    if (moves(r, 1)) {
        cot_var part = cot_smul(normalized(m, x, COT_NONE, COT_NONE), r->tangents[1]);
        dz = is_absent(dz) ? part : cot_add(dz, part);
    }
    if (moves(r, 2))
        dz = is_absent(dz) ? cot_broadcast_to(r->tangents[2], cot__rule_shape(r, 0)) : cot_add(dz, r->tangents[2]);
    r->tangent = dz;
}

/* Any operation of this file on other operands: their means and scales are not the node's, whose
 * attributes hold these, and a batch leaves weights out. */
static cot_var norm_apply(cot__rule *r, const cot_var *xs) {
    manner m = manner_of(r);
    int    n = operands(r);
    m.stats = NULL;
    return record(cot__rule_node(r)->op, m, xs[0], n > 1 ? xs[1] : COT_NONE, n > 2 ? xs[2] : COT_NONE);
}

const cot__op cot__op_layer_norm = {
    .name         = "layer_norm",
    .sweeps_alone = true,
    .batch        = cot__batch_norm,
    .attrs        = "from:a rms:f eps:n",
    .kind         = KIND_GENERIC,
    .saves        = 3u,
    .vjp          = norm_vjp,
    .jvp          = norm_jvp,
    .infer        = norm_infer,
    .workspace    = norm_workspace,
    .run          = norm_run,
    .apply        = norm_apply,
    .formula      = "z = y·w + b, y = (x - μ) r; x̄ += r (h - mean h - y mean(h y)), h = z̄·w; w̄ += Σ z̄ y, b̄ += Σ z̄",
    /* mean 1, variance 3, scale and shift 4 */
    .cost         = {.each_x = 8},
    .linear       = 2u | 4u,
    .operands     = "x w b",
    .functions    = "group_norm"};
const cot__op cot__op_rms_norm = {.name         = "rms_norm",
                                  .sweeps_alone = true,
                                  .batch        = cot__batch_norm,
                                  .attrs        = "from:a rms:f eps:n",
                                  .kind         = KIND_GENERIC,
                                  .saves        = 3u,
                                  .vjp          = norm_vjp,
                                  .jvp          = norm_jvp,
                                  .infer        = norm_infer,
                                  .workspace    = norm_workspace,
                                  .run          = norm_run,
                                  .apply        = norm_apply,
                                  .formula      = "z = y·w, y = x r; x̄ += r (h - y mean(h y)), h = z̄·w; w̄ += Σ z̄ y",
                                  .cost         = {.each_x = 4},
                                  .linear       = 2u,
                                  .operands     = "x w"};

/* Σ a b over each row, kept as a column */
static cot_var inner(cot__rule *r, manner m, cot_var a, cot_var b) {
    return cot_sum(cot_smul(a, b), axes_between(m.axis, cot__rule_shape(r, 0).ndim, true));
}

/* B = J h, h = g·w, with the adjoint u: ḡ = w·Ju, w̄ = Σ g·Ju, and, as ∂r/∂x = -r² y / n and ∂y/∂x =
 * J, x̄ = ∂⟨u, J h⟩/∂x = -(r / n) (⟨u, Jh⟩ y + ⟨h, y⟩ Ju + ⟨u, y⟩ Jh). */
static void norm_back_vjp(cot__rule *r) {
    manner  m = manner_of(r);
    bool    weighted = operands(r) > 2;
    cot_var x = cot__rule_x(r, 0), u = r->g, ju = back(m, x, u, COT_NONE);
    if (wants(r, 1)) cot__give(r, 1, weighted ? cot_smul(ju, operand(r, 2)) : ju);
    if (wants(r, 2)) cot__give(r, 2, sum_rows(m, cot_smul(ju, operand(r, 1))));
    if (!wants(r, 0)) return;
    cot_shape shape = cot__rule_shape(r, 0);
    cot_axes  along = axes_between(m.axis, shape.ndim, true);
    cot_var   h = operand(r, 1), y = normalized(m, x, COT_NONE, COT_NONE);
    if (weighted) h = cot_smul(h, operand(r, 2));
    cot_var jh = back(m, x, h, COT_NONE);
    cot_var variance = m.rms ? cot_mean(cot_square(x), along) : cot_variance(x, along);
    cot_var scale = cot_div(cot_rsqrt(cot_add(variance, m.eps)), -(double)cot__count(along.n, shape.dim + m.axis));
    cot_var a = cot_smul(inner(r, m, u, jh), y), b = cot_smul(inner(r, m, h, y), ju),
            c = cot_smul(inner(r, m, u, y), jh);
    cot__give(r, 0, cot_smul(cot_add(cot_add(a, b), c), scale));
}

/* g is multiplied by w. */
static int norm_back_factor(int k, int n) { return k > 0 && n > 2 ? 3 - k : -1; }

const cot__op cot__op_norm_back = {
    .name         = "norm_back",
    .sweeps_alone = true,
    .batch        = cot__batch_norm,
    .attrs        = "from:a rms:f eps:n",
    .kind         = KIND_GENERIC,
    .saves        = 7u,
    .vjp          = norm_back_vjp,
    .infer        = norm_back_infer,
    .workspace    = norm_workspace,
    .run          = norm_run,
    .apply        = norm_apply,
    .formula      = "z = J h, h = g·w, J = ∂y/∂x; x̄ += -(r/n) ((z̄·Jh) y + (h·y) Jz̄ + (z̄·y) Jh), "
                    "ḡ += w·Jz̄, w̄ += Σ g·Jz̄",
    .cost         = {.each_x = 9},
    .linear       = 2u | 4u,
    .factor       = norm_back_factor,
    .operands     = "x g w"};

/* P = (Σ g y, Σ g) with the adjoint (u, v): ḡ = y·u + v, x̄ = J (g·u). */
static void norm_weights_vjp(cot__rule *r) {
    manner  m = manner_of(r);
    cot_var x = cot__rule_x(r, 0), u = parameter(r, m, r->g, 0), v = parameter(r, m, r->g, 1);
    if (wants(r, 0)) cot__give(r, 0, back(m, x, operand(r, 1), u));
    if (wants(r, 1)) cot__give(r, 1, normalized(m, x, u, v));
}

const cot__op cot__op_norm_weights = {.name         = "norm_weights",
                                      .sweeps_alone = true,
                                      .batch        = cot__batch_norm_weights,
                                      .attrs        = "start:a rms:f eps:n",
                                      .kind         = KIND_GENERIC,
                                      .saves        = 3u,
                                      .vjp          = norm_weights_vjp,
                                      .infer        = norm_weights_infer,
                                      .workspace    = norm_workspace,
                                      .run          = norm_run,
                                      .apply        = norm_apply,
                                      .formula      = "z = (Σ g y, Σ g); x̄ += J (g·z̄[0]), ḡ += y·z̄[0] + z̄[1]",
                                      .cost         = {.each_x = 5},
                                      .linear       = 2u,
                                      .operands     = "x g"};

/* ---- layer and rms --------------------------------------------------------------------------- */

static const char *const operand_names[3] = {"x", "weight", "bias"};

/* Enters x, weight, bias; the latter two may be absent (given: which of them are there). All get
 * one dtype. */
static cot_tape *enter_parameters(const char *op, cot_var xs[3], bool given[3]) {
    cot_var     list[3];
    const char *names[3];
    uint32_t    index[3];
    int         n = 0;
    for (int k = 0; k < 3; k++)
        if ((given[k] = k == 0 || !is_absent(xs[k]))) names[n] = operand_names[k], list[n++] = xs[k];
    cot_tape *t = cot__enter_all(op, names, n, list, true, index);
    for (int k = 0, i = 0; t && k < 3; k++)
        if (given[k]) xs[k] = VAR(t, index[i]), i++;
    return t;
}

/* Has node i, which messages call `what`, the shape that x asks of it? */
static bool check_parameter(cot_tape *t, const char *op, const char *what, cot_shape x, uint32_t i, cot_shape want) {
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT], c[COT__SHAPE_TEXT];
    cot_shape s = cot__shape_at(t, i);
    if (cot__same_shape(&s, &want)) return true;
    cot__fail(t, COT_SHAPE, "[%s] x of shape %s needs a %s of shape %s; this one has %s", op,
              cot__shape_text(x.ndim, x.dim, a), what, cot__shape_text(want.ndim, want.dim, b),
              cot__shape_text(s.ndim, s.dim, c));
    return false;
}

static bool check_parameters(cot_tape *t, const char *op, const cot_var xs[3], const bool given[3], cot_shape want) {
    cot_shape x = cot__shape_at(t, cot__index(xs[0]));
    for (int k = 1; k < 3; k++)
        if (given[k] && !check_parameter(t, op, operand_names[k], x, cot__index(xs[k]), want)) return false;
    return true;
}

/* bf16 and f16 are computed in f32. */
static cot_dtype widen(cot_var xs[3], const bool given[3]) {
    cot_dtype d = cot_dtype_of(xs[0]);
    for (int k = 0; k < 3; k++)
        if (given[k]) xs[k] = cot_cast(xs[k], cot__dtype_compute(d));
    return d;
}

static cot_var norm(int op, cot_var x, cot_var weight, cot_var bias, int axis, double eps) {
    const char *name = cot__op_of(op)->name;
    cot_var     xs[3] = {x, weight, bias};
    bool        given[3];
    cot_tape   *t = enter_parameters(name, xs, given);
    if (!t) return cot__invalid(1, &x);
    cot_shape shape = cot__shape_at(t, cot__index(xs[0]));
    if (!check_eps(t, name, eps) || !cot__check_axis(t, name, axis, shape.ndim, &axis) ||
        !check_parameters(t, name, xs, given, shape_from(shape, axis)))
        return INVALID(t);
    cot_dtype d = widen(xs, given);
    return cot_cast(record(op, (manner){axis, op == OP_rms_norm, eps, NULL}, xs[0], xs[1], xs[2]), d);
}

cot_var cot_layer_norm(cot_var x, cot_var weight, cot_var bias, int axis, double eps) {
    return norm(OP_layer_norm, x, weight, bias, axis, eps);
}
cot_var cot_rms_norm(cot_var x, cot_var weight, int axis, double eps) {
    return norm(OP_rms_norm, x, weight, COT_NONE, axis, eps);
}

/* ---- group ----------------------------------------------------------------------------------- */

/* z · weight + bias, both (C) along the axes that `shape` has at more than 1 */
static cot_var scaled(cot_var z, const cot_var xs[3], const bool given[3], cot_shape shape) {
    if (given[1]) z = cot_mul(z, cot_reshape(xs[1], shape));
    return given[2] ? cot_add(z, cot_reshape(xs[2], shape)) : z;
}

cot_var cot_group_norm(cot_var x, int64_t groups, cot_var weight, cot_var bias, double eps) {
    static const char name[] = "group_norm";
    cot_var           xs[3] = {x, weight, bias};
    bool              given[3];
    cot_tape         *t = enter_parameters(name, xs, given);
    char              text[COT__SHAPE_TEXT];
    if (!t) return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, cot__index(xs[0]));
    if (!check_eps(t, name, eps)) return INVALID(t);
    if (s.ndim < 2)
        return cot__fail(t, COT_SHAPE, "[group_norm] x has shape %s; axis 0 is the batch and axis 1 the channels",
                         cot__shape_text(s.ndim, s.dim, text));
    if (groups < 1 || s.dim[1] % groups)
        return cot__fail(t, COT_SHAPE, "[group_norm] %lld channels in %lld groups; the groups must divide the channels",
                         (long long)s.dim[1], (long long)groups);
    if (!check_parameters(t, name, xs, given, COT_SHAPE(s.dim[1]))) return INVALID(t);
    cot_dtype d = widen(xs, given);
    cot_shape grouped = COT_SHAPE(s.dim[0], groups, s.dim[1] / groups * cot__count(s.ndim - 2, s.dim + 2));
    cot_shape channels = cot__kept_shape(s, ~2u);
    cot_var   y = normalized((manner){2, false, eps, NULL}, cot_reshape(xs[0], grouped), COT_NONE, COT_NONE);
    return cot_cast(scaled(cot_reshape(y, s), xs, given, channels), d);
}

/* ---- batch ----------------------------------------------------------------------------------- */

/* x's shape with the axes of the mask gone. */
static cot_shape shape_without_axes(cot_shape x, uint32_t mask) {
    cot_shape s;
    cot__reduced_shape(&s, x.ndim, x.dim, mask, false);
    return s;
}

cot_var cot_batch_norm(cot_var x, cot_axes axes, cot_var weight, cot_var bias, double eps, cot_var *mean,
                       cot_var *variance) {
    static const char name[] = "batch_norm";
    cot_var           xs[3] = {x, weight, bias};
    bool              given[3];
    cot_tape         *t = enter_parameters(name, xs, given);
    uint32_t          mask;
    if (mean) *mean = cot__invalid(1, &x);
    if (variance) *variance = cot__invalid(1, &x);
    if (!t) return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, cot__index(xs[0]));
    if (!check_eps(t, name, eps) || !cot__check_axes(t, name, axes, s.ndim, &mask) ||
        !check_parameters(t, name, xs, given, shape_without_axes(s, mask)))
        return INVALID(t);
    axes.keepdims = true;
    cot_dtype d = widen(xs, given);
    cot_var   m = cot_mean(xs[0], axes), away = cot_sub(xs[0], m), v = cot_mean(cot_square(away), axes);
    cot_var   scale = cot_rsqrt(cot_add(v, eps)), z;
    cot_shape kept = cot__kept_shape(s, mask);
    /* a small product instead of a large one */
    if (given[1]) scale = cot_mul(scale, cot_reshape(xs[1], kept)), given[1] = false;
    z = scaled(cot_mul(away, scale), xs, given, kept);
    /* x, over no axes */
    if (mean) *mean = cot__unchanged(cot_cast(cot_reshape(m, shape_without_axes(s, mask)), d), COT__COPY);
    if (variance) *variance = cot_cast(cot_reshape(v, shape_without_axes(s, mask)), d);
    return cot_cast(z, d);
}

cot_var cot_batch_norm_inference(cot_var x, cot_axes axes, cot_var mean, cot_var variance, cot_var weight, cot_var bias,
                                 double eps) {
    static const char        name[] = "batch_norm_inference";
    static const char *const names[2] = {"mean", "variance"};
    cot_var                  xs[3] = {x, weight, bias}, statistics[2] = {mean, variance};
    bool                     given[3];
    cot_tape                *t = enter_parameters(name, xs, given);
    uint32_t                 mask, i;
    if (!t) return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, cot__index(xs[0]));
    if (!check_eps(t, name, eps) || !cot__check_axes(t, name, axes, s.ndim, &mask)) return INVALID(t);
    cot_shape want = shape_without_axes(s, mask), kept = cot__kept_shape(s, mask);
    if (!check_parameters(t, name, xs, given, want)) return INVALID(t);
    cot_dtype d = widen(xs, given);
    for (int k = 0; k < 2; k++) {
        if (!cot__enter(t, statistics[k], name, names[k], &i) || !check_parameter(t, name, names[k], s, i, want))
            return INVALID(t);
        statistics[k] = cot_reshape(cot_cast(VAR(t, i), cot__dtype_compute(d)), kept);
    }
    cot_var scale = cot_rsqrt(cot_add(statistics[1], eps));
    if (given[1]) scale = cot_mul(scale, cot_reshape(xs[1], kept)), given[1] = false;
    return cot_cast(scaled(cot_mul(cot_sub(xs[0], statistics[0]), scale), xs, given, kept), d);
}
