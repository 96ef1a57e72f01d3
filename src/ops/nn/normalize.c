/* normalize.c: the operations behind the normalisations of norms.c.
 *
 * layer_norm and rms_norm are one operation each, L(x, weight, bias) = y · weight + bias with y =
 * (x - μ) r. Its adjoints are operations too, and each rule is written in the others, so every
 * order exists at the speed of a kernel. With J = ∂y/∂x = r (I - 11ᵀ/n - y yᵀ/n), which is
 * symmetric (rms: without 11ᵀ/n):
 *   norm_back    B(x, g, s, weight) = J (g · weight)    what x receives
 *   norm_weights P(x, g, s) = (Σ g y, Σ g), (2,n)       what weight and bias receive
 *   norm_known   L(x, weight, bias), given s
 * where s holds μ and r of each row. It is the second result of layer_norm and rms_norm, which have
 * one where a rule may ask for it. Nothing goes back through s: J accounts for all that x does. */
#include "rules/structural_ids.h"
#include "backend/elements.h"
#include "ops/nn/nn.h"
#include "ops/structural.h"

/* ---- rows ------------------------------------------------------------------------------------ */

static bool legal_eps(const cot__caller *op, double eps) {
    return (eps >= 0 && isfinite(eps)) ||
           cot__refuse(op, COT_VALUE, "eps is %g; it must be finite and at least 0", eps);
}

bool cot__check_eps(cot_tape *t, const char *op, double eps) {
    cot__caller caller = cot__tape_caller(t, op);
    return legal_eps(&caller, eps);
}

static cot_axes axes_between(int from, int to, bool keep) {
    cot_axes a = {0, keep, {0}};
    for (int k = from; k < to; k++) a.axis[a.n++] = k;
    return a;
}

/* ---- the jobs -------------------------------------------------------------------------------- */

/* Attributes; attr->number is eps. Of layer_norm and rms_norm KEEPS, too: the statistics are a
 * result. */
enum { AXIS, RMS, NORM_INTS, KEEPS = NORM_INTS };
/* operands of norm_back and norm_weights; the weight may be absent */
enum { BACK_X, BACK_G, BACK_STATS, BACK_WEIGHT };
/* of norm_known, where weight and bias may follow as in layer_norm */
enum { KNOWN_X, KNOWN_STATS, KNOWN_WEIGHT, KNOWN_BIAS, MOST_OPERANDS };
/* results of layer_norm and rms_norm */
enum { Z, STATS };

/* Does it find the statistics itself? */
static bool is_finder(int op) { return op == OP_layer_norm || op == OP_rms_norm; }
static bool is_kept(const cot__attr *a) { return a->nints > KEEPS && a->ints[KEEPS]; }

/* The shape of the statistics: (…,2). Of empty rows, of which there may be any number, nothing. */
static cot_shape stats_shape(const cot__view *x, int axis) {
    cot_shape s = {axis + 1, {0}};
    for (int k = 0; k < axis; k++) s.dim[k] = x->shape[k];
    s.dim[axis] = cot__count(x->ndim - axis, x->shape + axis) ? 2 : 0;
    return s;
}

/* Operand k has the dtype of x and these extents. */
static bool is_like(const cot__job *j, int k, int ndim, const int64_t *shape) {
    return cot__job_dtype(j, k, j->x[0].dtype) && cot__job_shape(j, k, ndim, shape);
}

/* The first operand has a dtype that kernels know, and operands from `parameters` on are like its
 * axes from AXIS on. */
static bool norm_operands(const cot__job *j, int least, int most, int parameters) {
    int ints = is_finder(j->op) ? NORM_INTS + 1 : NORM_INTS;
    if (!cot__job_has(j, least, most, ints) || !cot__job_axis(j, AXIS, j->x[0].ndim)) return false;
    const cot__view *x = &j->x[0];
    int              axis = (int)cot__job_int(j, AXIS);
    if (x->dtype != COT_F64 && !cot__job_dtype(j, 0, COT_F32)) return false;
    for (int k = parameters; k < j->n; k++)
        if (!is_like(j, k, x->ndim - axis, x->shape + axis)) return false;
    return legal_eps(j->caller, j->attr->number);
}

/* The same for an operation that reads the statistics, its operand `at`. */
static bool reading_operands(const cot__job *j, int at, int most) {
    if (!norm_operands(j, at + 1, most, at + 1)) return false;
    cot_shape stats = stats_shape(&j->x[0], (int)cot__job_int(j, AXIS));
    return is_like(j, at, stats.ndim, stats.dim);
}
static bool back_operands(const cot__job *j, int most) {
    return reading_operands(j, BACK_STATS, most) && is_like(j, BACK_G, j->x[0].ndim, j->x[0].shape);
}

static int norm_results(const cot__job *j) { return j->attr && is_kept(j->attr) ? 2 : 1; }

static bool norm_infer(const cot__job *j, cot__type *z) {
    if (!norm_operands(j, 1, 3, 1)) return false;
    const cot__view *x = &j->x[0];
    z[Z] = (cot__type){x->dtype, cot__view_extents(x)};
    if (is_kept(j->attr)) z[STATS] = (cot__type){x->dtype, stats_shape(x, (int)cot__job_int(j, AXIS))};
    return true;
}

static bool norm_known_infer(const cot__job *j, cot__type *z) {
    if (!reading_operands(j, KNOWN_STATS, MOST_OPERANDS)) return false;
    *z = (cot__type){j->x[0].dtype, cot__view_extents(&j->x[0])};
    return true;
}

static bool norm_back_infer(const cot__job *j, cot__type *z) {
    if (!back_operands(j, BACK_WEIGHT + 1)) return false;
    *z = (cot__type){j->x[0].dtype, cot__view_extents(&j->x[0])};
    return true;
}

static bool norm_weights_infer(const cot__job *j, cot__type *z) {
    if (!back_operands(j, BACK_WEIGHT)) return false;
    int axis = (int)cot__job_int(j, AXIS);
    *z = (cot__type){j->x[0].dtype, COT_SHAPE(2, cot__count(j->x[0].ndim - axis, j->x[0].shape + axis))};
    return true;
}

static cot__rows rows_of(const cot__job *j) {
    const cot__view *x = &j->x[0];
    int              axis = (int)cot__job_int(j, AXIS);
    return (cot__rows){.rows  = cot__count(axis, x->shape),
                       .n     = cot__count(x->ndim - axis, x->shape + axis),
                       .eps   = j->attr->number,
                       .rms   = cot__job_int(j, RMS) != 0,
                       .dtype = x->dtype};
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
    const void *x[MOST_OPERANDS] = {NULL};
    char       *at = j->workspace;
    bool        known = j->op == OP_norm_known;
    for (int k = 0; k < j->n; k++) x[k] = cot__pack_operand(j, k, r.dtype, &at);
    r.known = !is_finder(j->op);
    r.stats = r.known ? (void *)(uintptr_t)x[known ? KNOWN_STATS : BACK_STATS]
                      : is_kept(j->attr) ? j->more[STATS - 1].data : NULL;
    if (j->op == OP_norm_weights) j->backend->normalize_weights(&r, x[BACK_X], x[BACK_G], at, j->z.data);
    else if (j->op == OP_norm_back) j->backend->normalize_back(&r, x[BACK_X], x[BACK_WEIGHT], x[BACK_G], j->z.data);
    else j->backend->normalize(&r, x[0], x[1 + known], x[2 + known], j->z.data);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* How an operation of this file normalises: attributes of its node. */
typedef struct manner { int axis; bool rms; double eps; } manner;

static bool has_derivative(const cot_tape *t, const uint32_t *xs, int n) {
    for (int k = 0; k < n; k++)
        if (t->active_mask & t->nodes[xs[k]].flags & COT__ACTIVE) return true;
    return false;
}

/* Makes n operands dense and records. */
static cot_var push(cot_tape *t, int op, uint32_t *xs, int n, manner m, bool keeps) {
    const char *name = cot__op_of(op)->name;
    int64_t     ints[] = {m.axis, m.rms, keeps};
    for (int k = 0; k < n; k++)
        if ((xs[k] = cot__dense(t, xs[k])) == COT__NONE) return INVALID(t);
    cot__attr *attr = cot__attr_make(t, name, is_finder(op) ? KEEPS + 1 : NORM_INTS, ints, n > 2 ? n : 0, xs);
    if (!attr) return INVALID(t);
    attr->number = m.eps;
    return cot__record(t, name, op, n, xs, attr, NULL);
}

/* Records on those of the vars that there are, of one dtype, F64 or F32, with their shapes
 * checked. */
static cot_var record(int op, manner m, int most, const cot_var *all, bool keeps) {
    cot_tape *t = all[0].tape;
    uint32_t  xs[MOST_OPERANDS];
    int       n = 0;
    for (; n < most && !cot__is_absent(all[n]); n++)
        if (!cot__enter(t, all[n], cot__op_of(op)->name, "", &xs[n])) return INVALID(t);
    return push(t, op, xs, n, m, keeps || (is_finder(op) && has_derivative(t, xs, n)));
}

static cot_var ones_like(manner m, cot_var x) {
    return cot_ones(x.tape, cot_dtype_of(x), cot__shape_from(cot_shape_of(x), m.axis));
}

static cot_var found(manner m, cot_var x, cot_var weight, cot_var bias, bool keeps) {
    if (cot__is_absent(weight) && !cot__is_absent(bias)) weight = ones_like(m, x);
    return record(m.rms ? OP_rms_norm : OP_layer_norm, m, 3, (cot_var[]){x, weight, bias}, keeps);
}

cot_var cot__normalized(cot_var x, cot_var weight, cot_var bias, int axis, bool rms, double eps) {
    return found((manner){axis, rms, eps}, x, weight, bias, false);
}

static cot_var normalized(manner m, cot_var x, cot_var stats, cot_var weight, cot_var bias) {
    return record(OP_norm_known, m, MOST_OPERANDS, (cot_var[]){x, stats, weight, bias}, false);
}

static cot_var back(manner m, cot_var x, cot_var g, cot_var stats, cot_var w) {
    return record(OP_norm_back, m, BACK_WEIGHT + 1, (cot_var[]){x, g, stats, w}, false);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static manner manner_of(const cot__rule *r) {
    const cot__attr *a = cot__rule_attr(r);
    return (manner){(int)a->ints[AXIS], a->ints[RMS] != 0, a->number};
}

static int     operands(const cot__rule *r) { return cot__nargs(cot__rule_node(r)); }
static cot_var operand(cot__rule *r, int k) { return k < operands(r) ? cot__rule_x(r, k) : COT_NONE; }
static bool    wants(const cot__rule *r, int k) { return k < operands(r) && cot__rule_wants(r, k); }
static bool    moves(const cot__rule *r, int k) {
       return k < operands(r) && !cot__failed(r->tangents[k]) && r->tangents[k].tape;
}

/* The statistics of the node's x. A node that was recorded while nobody wanted a derivative does
 * not have them. */
static cot_var stats_of(cot__rule *r) {
    int op = cot__rule_node(r)->op;
    if (!is_finder(op)) return cot__rule_x(r, op == OP_norm_known ? KNOWN_STATS : BACK_STATS);
    if (is_kept(cot__rule_attr(r))) return cot__rule_result_of(r, STATS);
    return cot__result_of(found(manner_of(r), cot__rule_x(r, 0), COT_NONE, COT_NONE, true), STATS);
}

/* Where weight and bias stand. */
static int weight_of(const cot__rule *r) { return is_finder(cot__rule_node(r)->op) ? 1 : KNOWN_WEIGHT; }

static cot_var sum_rows(manner m, cot_var v) { return cot_sum(v, axes_between(0, m.axis, false)); }

/* Row `which` of (2,n) in the shape that weight and bias have. */
static cot_var parameter(cot__rule *r, manner m, cot_var pair, int which) {
    return cot_reshape(cot_index(pair, 0, which), cot__shape_from(cot__rule_shape(r, 0), m.axis));
}

static void norm_vjp(cot__rule *r) {
    manner  m = manner_of(r);
    int     w = weight_of(r), b = w + 1;
    cot_var x = cot__rule_x(r, 0), stats = wants(r, 0) || wants(r, w) ? stats_of(r) : COT_NONE;
    if (wants(r, 0)) cot__give(r, 0, back(m, x, r->g, stats, operand(r, w)));
    if (wants(r, w)) {
        cot_var pair = record(OP_norm_weights, m, BACK_WEIGHT, (cot_var[]){x, r->g, stats}, false);
        cot__give(r, w, parameter(r, m, pair, 0));
        if (wants(r, b)) cot__give(r, b, parameter(r, m, pair, 1));
    } else if (wants(r, b)) cot__give(r, b, sum_rows(m, r->g));
}

static void norm_jvp(cot__rule *r) {
    manner  m = manner_of(r);
    int     w = weight_of(r), b = w + 1;
    cot_var x = cot__rule_x(r, 0), stats = moves(r, 0) || moves(r, w) ? stats_of(r) : COT_NONE, dz = COT_NONE;
    if (moves(r, 0)) {
        dz = back(m, x, r->tangents[0], stats, COT_NONE);
        if (operands(r) > w) dz = cot_smul(dz, operand(r, w));
    }
    if (moves(r, w)) {
        cot_var part = cot_smul(normalized(m, x, stats, COT_NONE, COT_NONE), r->tangents[w]);
        dz = cot__is_absent(dz) ? part : cot_add(dz, part);
    }
    if (moves(r, b))
        dz = cot__is_absent(dz) ? cot_broadcast_to(r->tangents[b], cot__rule_shape(r, 0)) : cot_add(dz, r->tangents[b]);
    r->tangent = dz;
}

/* Any operation of this file on other operands. A batch leaves weights out. */
static cot_var norm_apply(cot__rule *r, const cot_var *xs) {
    return record(cot__rule_node(r)->op, manner_of(r), operands(r), xs, is_kept(cot__rule_attr(r)));
}

const cot__op cot__op_layer_norm = {
    .name         = "layer_norm",
    .sweeps_alone = true,
    .batch        = cot__batch_norm,
    .attrs        = "from:a rms:f keeps:f eps:n",
    .kind         = KIND_GENERIC,
    .saves        = 3u,
    .vjp          = norm_vjp,
    .jvp          = norm_jvp,
    .results      = norm_results,
    .infer        = norm_infer,
    .workspace    = norm_workspace,
    .run          = norm_run,
    .apply        = norm_apply,
    .formula      = "z = y·w + b, y = (x - μ) r; x̄ += r (h - mean h - y mean(h y)), h = z̄·w; w̄ += Σ z̄ y, b̄ += Σ z̄",
    /* mean 1, variance 3, scale and shift 4 */
    .cost         = {.each_x = 8},
    .linear       = 2u | 4u,
    .rows         = 1,
    .operands     = "x w b",
    .functions    = "group_norm"};
const cot__op cot__op_rms_norm = {.name         = "rms_norm",
                                  .sweeps_alone = true,
                                  .batch        = cot__batch_norm,
                                  .attrs        = "from:a rms:f keeps:f eps:n",
                                  .kind         = KIND_GENERIC,
                                  .saves        = 3u,
                                  .vjp          = norm_vjp,
                                  .jvp          = norm_jvp,
                                  .results      = norm_results,
                                  .infer        = norm_infer,
                                  .workspace    = norm_workspace,
                                  .run          = norm_run,
                                  .apply        = norm_apply,
                                  .formula      = "z = y·w, y = x r; x̄ += r (h - y mean(h y)), h = z̄·w; w̄ += Σ z̄ y",
                                  .cost         = {.each_x = 4},
                                  .linear       = 2u,
                                  .rows         = 1,
                                  .operands     = "x w"};

const cot__op cot__op_norm_known = {.name         = "norm_known",
                                    .sweeps_alone = true,
                                    .batch        = cot__batch_norm,
                                    .attrs        = "from:a rms:f eps:n",
                                    .kind         = KIND_GENERIC,
                                    .inactive     = 1u << KNOWN_STATS,
                                    .saves        = 7u,
                                    .vjp          = norm_vjp,
                                    .jvp          = norm_jvp,
                                    .infer        = norm_known_infer,
                                    .workspace    = norm_workspace,
                                    .run          = norm_run,
                                    .apply        = norm_apply,
                                    .formula      = "z = y·w + b, y = (x - μ) r, s = (μ, r); x̄ += J (z̄·w), w̄ += Σ z̄ y, "
                                                    "b̄ += Σ z̄",
                                    .cost         = {.each_x = 4},
                                    .linear       = 1u << KNOWN_WEIGHT | 1u << KNOWN_BIAS,
                                    .rows         = KNOWN_WEIGHT,
                                    .operands     = "x s w b"};

/* Σ a b over each row, kept as a column */
static cot_var inner(cot__rule *r, manner m, cot_var a, cot_var b) {
    return cot_sum(cot_smul(a, b), axes_between(m.axis, cot__rule_shape(r, 0).ndim, true));
}

/* B = J h, h = g·w, with the adjoint u: ḡ = w·Ju, w̄ = Σ g·Ju, and, as ∂r/∂x = -r² y / n and ∂y/∂x =
 * J, x̄ = ∂⟨u, J h⟩/∂x = -(r / n) (⟨u, Jh⟩ y + ⟨h, y⟩ Ju + ⟨u, y⟩ Jh). */
static void norm_back_vjp(cot__rule *r) {
    manner  m = manner_of(r);
    bool    weighted = operands(r) > BACK_WEIGHT;
    cot_var x = cot__rule_x(r, BACK_X), stats = stats_of(r), u = r->g, ju = back(m, x, u, stats, COT_NONE);
    if (wants(r, BACK_G)) cot__give(r, BACK_G, weighted ? cot_smul(ju, operand(r, BACK_WEIGHT)) : ju);
    if (wants(r, BACK_WEIGHT)) cot__give(r, BACK_WEIGHT, sum_rows(m, cot_smul(ju, operand(r, BACK_G))));
    if (!wants(r, BACK_X)) return;
    cot_shape shape = cot__rule_shape(r, 0);
    cot_axes  along = axes_between(m.axis, shape.ndim, true);
    cot_var   h = operand(r, BACK_G), y = normalized(m, x, stats, COT_NONE, COT_NONE);
    if (weighted) h = cot_smul(h, operand(r, BACK_WEIGHT));
    cot_var jh = back(m, x, h, stats, COT_NONE);
    cot_var variance = m.rms ? cot_mean(cot_square(x), along) : cot_variance(x, along);
    cot_var scale = cot_div(cot_rsqrt(cot_add(variance, m.eps)), -(double)cot__count(along.n, shape.dim + m.axis));
    cot_var a = cot_smul(inner(r, m, u, jh), y), b = cot_smul(inner(r, m, h, y), ju),
            c = cot_smul(inner(r, m, u, y), jh);
    cot__give(r, BACK_X, cot_smul(cot_add(cot_add(a, b), c), scale));
}

/* g is multiplied by w. */
static int norm_back_factor(int k, int n) {
    bool either = k == BACK_G || k == BACK_WEIGHT;
    return either && n > BACK_WEIGHT ? BACK_G + BACK_WEIGHT - k : -1;
}

const cot__op cot__op_norm_back = {
    .name         = "norm_back",
    .sweeps_alone = true,
    .batch        = cot__batch_norm,
    .attrs        = "from:a rms:f eps:n",
    .kind         = KIND_GENERIC,
    .inactive     = 1u << BACK_STATS,
    .saves        = 0xfu,
    .vjp          = norm_back_vjp,
    .infer        = norm_back_infer,
    .workspace    = norm_workspace,
    .run          = norm_run,
    .apply        = norm_apply,
    .formula      = "z = J h, h = g·w, J = ∂y/∂x; x̄ += -(r/n) ((z̄·Jh) y + (h·y) Jz̄ + (z̄·y) Jh), "
                    "ḡ += w·Jz̄, w̄ += Σ g·Jz̄",
    .cost         = {.each_x = 9},
    .linear       = 1u << BACK_G | 1u << BACK_WEIGHT,
    .factor       = norm_back_factor,
    .rows         = BACK_WEIGHT,
    .operands     = "x g s w"};

/* P = (Σ g y, Σ g) with the adjoint (u, v): ḡ = y·u + v, x̄ = J (g·u). */
static void norm_weights_vjp(cot__rule *r) {
    manner  m = manner_of(r);
    cot_var x = cot__rule_x(r, BACK_X), stats = stats_of(r), u = parameter(r, m, r->g, 0), v = parameter(r, m, r->g, 1);
    if (wants(r, BACK_X)) cot__give(r, BACK_X, back(m, x, operand(r, BACK_G), stats, u));
    if (wants(r, BACK_G)) cot__give(r, BACK_G, normalized(m, x, stats, u, v));
}

const cot__op cot__op_norm_weights = {.name         = "norm_weights",
                                      .sweeps_alone = true,
                                      .batch        = cot__batch_norm_weights,
                                      .attrs        = "start:a rms:f eps:n",
                                      .kind         = KIND_GENERIC,
                                      .inactive     = 1u << BACK_STATS,
                                      .saves        = 7u,
                                      .vjp          = norm_weights_vjp,
                                      .infer        = norm_weights_infer,
                                      .workspace    = norm_workspace,
                                      .run          = norm_run,
                                      .apply        = norm_apply,
                                      .formula      = "z = (Σ g y, Σ g); x̄ += J (g·z̄[0]), ḡ += y·z̄[0] + z̄[1]",
                                      .cost         = {.each_x = 5},
                                      .linear       = 1u << BACK_G,
                                      .operands     = "x g s"};
