/* network.c: softmax and the losses, each one node whose value is stable where the composition
 * would not be.
 *
 * Rows run along the last axis; a loss is the mean over rows, a 0-d value, accumulated in f64.
 * Targets are integer labels (one for each row) or weights shaped like the predictions; a target of
 * 0 contributes nothing, whatever it meets. */
#include "rules/structural_ids.h"
#include "backend/elements.h"
#include "ops/nn/nn.h"
#include "ops/precision.h"
#include "ops/structural.h"

/* ---- softmax --------------------------------------------------------------------------------- */

static bool softmax_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, 1) || !cot__job_float(j, 0) || !cot__job_axis(j, 0, j->x[0].ndim)) return false;
    *z = (cot__type){j->x[0].dtype, cot__view_extents(&j->x[0])};
    return true;
}

static void softmax_run(const cot__job *j) {
    j->backend->softmax(&j->x[0], (int)cot__job_int(j, 0), j->op == OP_log_softmax, &j->z);
}

static cot_var push_softmax(int op, cot_var x, int axis) {
    const char *name = cot__op_of(op)->name;
    uint32_t    i;
    cot_tape   *t = cot__enter(NULL, x, name, "", &i);
    if (!t) return cot__invalid(1, &x);
    if (!cot__check_axis(t, name, axis, cot__ndim_at(t, i), &axis)) return INVALID(t);
    if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[i])) && (i = cot__as(t, i, COT_F64)) == COT__NONE)
        return INVALID(t);
    cot__attr *attr = cot__attr_make(t, name, 1, (int64_t[]){axis}, 0, NULL);
    return attr ? cot__record(t, name, op, 1, &i, attr, NULL) : INVALID(t);
}

cot_var cot_softmax(cot_var x, int axis) { return push_softmax(OP_softmax, x, axis); }
cot_var cot_log_softmax(cot_var x, int axis) { return push_softmax(OP_log_softmax, x, axis); }

static cot_var sum_along(cot__rule *r, cot_var v) { return cot_sum(v, COT_KEEP((int)cot__rule_attr(r)->ints[0])); }

/* bf16 and f16 go through f32, so that the sum neither overflows nor is rounded before it is
 * subtracted. */
static cot_var widened(cot__rule *r, cot_var v) {
    return cot_cast(v, cot__dtype_compute(cot__dtype_at(cot__rule_node(r))));
}

/* The Jacobian diag(z) - z zᵀ is symmetric: one formula for both modes, z (v - Σ z v). */
static cot_var softmax_product(cot__rule *r, cot_var v) {
    cot_var z = widened(r, cot__rule_z(r)), zv = cot_smul(widened(r, v), z);
    return cot_cast(cot_sub(zv, cot_smul(sum_along(r, zv), z)), cot__dtype_at(cot__rule_node(r)));
}

static void softmax_vjp(cot__rule *r) { cot__give(r, 0, softmax_product(r, r->g)); }
static void softmax_jvp(cot__rule *r) { r->tangent = softmax_product(r, r->tangents[0]); }

const cot__op cot__op_softmax = {.name = "softmax", .batch = cot__batch_shift, .attrs = "axis:a", .kind = KIND_GENERIC,
                                 .saves = COT__SAVES_Z,
                                 .vjp = softmax_vjp, .jvp = softmax_jvp, .infer = softmax_infer, .run = softmax_run,
                                 .formula = "z = exp(x) / Σ exp(x); x̄ += z (z̄ - Σ z z̄)",
                                 /* max, subtract, exp, add, divide */
                                 .cost = {.each_x = 5},
                                 .rows = 1,
                                 .operands = "x"};

static void log_softmax_vjp(cot__rule *r) {
    cot_var g = widened(r, r->g), p = cot_exp(widened(r, cot__rule_z(r)));
    cot__give(r, 0, cot_cast(cot_sub(g, cot_smul(sum_along(r, g), p)), cot__dtype_at(cot__rule_node(r))));
}

static void log_softmax_jvp(cot__rule *r) {
    cot_var dx = widened(r, r->tangents[0]), p = cot_exp(widened(r, cot__rule_z(r)));
    r->tangent = cot_cast(cot_sub(dx, sum_along(r, cot_smul(dx, p))), cot__dtype_at(cot__rule_node(r)));
}

const cot__op cot__op_log_softmax = {.name     = "log_softmax",
                                     .batch    = cot__batch_shift,
                                     .attrs    = "axis:a",
                                     .kind     = KIND_GENERIC,
                                     .saves    = COT__SAVES_Z,
                                     .vjp      = log_softmax_vjp,
                                     .jvp      = log_softmax_jvp,
                                     .infer    = softmax_infer,
                                     .run      = softmax_run,
                                     .formula  = "z = x - log Σ exp(x); x̄ += z̄ - exp(z) Σ z̄",
                                     /* max, subtract, exp, add, subtract */
                                     .cost     = {.each_x = 5},
                                     .rows     = 1,
                                     .operands = "x"};

/* ---- cross entropies ------------------------------------------------------------------------- */

enum { PREDICTION, TARGET };

static bool is_labels(const cot_tape *t, uint32_t target) {
    return !cot__dtype_is_float(cot__dtype_at(&t->nodes[target]));
}

/* Floats: the predictions' shape. Labels: that shape without the last axis. */
static bool check_shapes(const cot__caller *op, cot_shape p, cot_shape q, bool labels) {
    cot_shape want = p;
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT], c[COT__SHAPE_TEXT];
    if (p.ndim == 0 || p.dim[p.ndim - 1] == 0)
        return cot__refuse(op, COT_SHAPE,
                           "the predictions have shape %s; the last axis holds the classes, at least one",
                           cot__shape_text(p.ndim, p.dim, a));
    want.ndim -= labels;
    return cot__same_shape(&q, &want) ||
           cot__refuse(op, COT_SHAPE, "predictions of shape %s need %s of shape %s; these have %s",
                       cot__shape_text(p.ndim, p.dim, a), labels ? "labels" : "targets",
                       cot__shape_text(want.ndim, want.dim, b), cot__shape_text(q.ndim, q.dim, c));
}

bool cot__check_targets(cot_tape *t, const char *op, const uint32_t xs[2]) {
    cot_shape   p = cot__shape_at(t, xs[PREDICTION]), q = cot__shape_at(t, xs[TARGET]);
    bool        labels = is_labels(t, xs[TARGET]);
    cot__caller caller = cot__tape_caller(t, op);
    return check_shapes(&caller, p, q, labels);
}

cot_tape *cot__enter_targets(const char *op, cot_var prediction, cot_var target, uint32_t xs[2]) {
    cot_tape *t = cot__tape_of(2, (cot_var[]){prediction, target});
    if (!t || !cot__enter(t, prediction, op, "prediction", &xs[PREDICTION]) ||
        !cot__enter(t, target, op, "target", &xs[TARGET]))
        return NULL;
    cot_dtype d = cot__dtype_at(&t->nodes[xs[PREDICTION]]);
    if (!cot__dtype_is_float(d) && (xs[PREDICTION] = cot__as(t, xs[PREDICTION], d = COT_F64)) == COT__NONE) return NULL;
    d = cot__precision_of(t, op, d);
    if ((xs[PREDICTION] = cot__as(t, xs[PREDICTION], d)) == COT__NONE) return NULL;
    if (!is_labels(t, xs[TARGET]) && (xs[TARGET] = cot__as(t, xs[TARGET], d)) == COT__NONE) return NULL;
    return t;
}

static bool has_labels(const cot__job *j) { return !cot__dtype_is_float(j->x[TARGET].dtype); }

static bool cross_entropy_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 2, 2, 0) || !cot__job_float(j, PREDICTION)) return false;
    cot_shape p = cot__view_extents(&j->x[PREDICTION]), q = cot__view_extents(&j->x[TARGET]);
    *z = (cot__type){j->x[PREDICTION].dtype, {0}};
    return check_shapes(j->caller, p, q, has_labels(j)) && (has_labels(j) ? cot__job_integers(j, TARGET, "labels")
                                                                          : cot__job_dtype(j, TARGET, z->dtype));
}

/* A label names a position on the last axis of the predictions. */
static bool cross_entropy_check(const cot__job *j) {
    const cot__view *p = &j->x[PREDICTION];
    return !has_labels(j) || cot__job_positions(j, TARGET, "labels", p->shape[p->ndim - 1], false);
}

static bool labels_asked(const cot__job *j, cot__positions *asked) {
    const cot__view *p = &j->x[PREDICTION];
    *asked = (cot__positions){TARGET, p->shape[p->ndim - 1], false, false};
    return has_labels(j);
}

static void write_loss(const cot__job *j, const cot__view *p, bool logarithm) {
    (has_labels(j) ? j->backend->mean_labelled : j->backend->mean_weighted)(p, &j->x[TARGET], logarithm, &j->z);
}

static void cross_entropy_run(const cot__job *j) { write_loss(j, &j->x[PREDICTION], true); }

/* The logarithms of the probabilities, in the computing type. */
static int64_t softmax_cross_entropy_workspace(const cot__job *j) {
    const cot__view *x = &j->x[PREDICTION];
    return cot__view_size(x) * cot__dtype_size(cot__dtype_compute(x->dtype));
}

static void softmax_cross_entropy_run(const cot__job *j) {
    const cot__view *x = &j->x[PREDICTION];
    int64_t          stride[COT_MAX_NDIM];
    cot__view        log_p = {j->workspace, cot__dtype_compute(x->dtype), x->ndim, x->shape, stride};
    cot__strides(x->ndim, x->shape, stride);
    j->backend->softmax(x, x->ndim - 1, true, &log_p);
    write_loss(j, &log_p, false);
}

static cot_var push_cross_entropy(int op, cot_var prediction, cot_var target) {
    uint32_t  xs[2];
    cot_tape *t = cot__enter_targets(cot__op_of(op)->name, prediction, target, xs);
    return t ? cot__record(t, cot__op_of(op)->name, op, 2, xs, NULL, NULL) : cot__invalid(1, &prediction);
}

cot_var cot_softmax_cross_entropy(cot_var logits, cot_var targets) {
    return push_cross_entropy(OP_softmax_cross_entropy, logits, targets);
}
cot_var cot_cross_entropy(cot_var probabilities, cot_var targets) {
    return push_cross_entropy(OP_cross_entropy, probabilities, targets);
}

/* z̄ / rows: what each row receives */
static cot_var row_share(cot__rule *r) {
    cot_shape p = cot__rule_shape(r, PREDICTION);
    return cot_div(r->g, (double)cot__count(p.ndim - 1, p.dim));
}

/* Labels as positions for take_along_axis: (…, 1). */
static cot_var label_positions(cot__rule *r) { return cot_expand_dims(cot__rule_x(r, TARGET), -1); }

static void softmax_cross_entropy_vjp(cot__rule *r) {
    cot_var x = cot__rule_x(r, PREDICTION), share = row_share(r);
    if (cot__rule_wants(r, PREDICTION)) {
        cot_var p = cot_softmax(x, -1), excess;
        if (is_labels(r->t, cot__rule_arg(r, TARGET))) {
            excess = cot__scatter_add_along_for(cot__rule_asker(r), p, label_positions(r), cot_number(-1), -1);
        } else {
            cot_var q = cot__rule_x(r, TARGET);
            excess = cot_sub(cot_mul(p, cot_sum(q, COT_KEEP(-1))), q);
        }
        cot__give(r, PREDICTION, cot_smul(share, excess));
    }
    if (cot__rule_wants(r, TARGET)) cot__give(r, TARGET, cot_neg(cot_smul(share, cot_log_softmax(x, -1))));
}

const cot__op cot__op_softmax_cross_entropy = {
    .name      = "softmax_cross_entropy",
    .batch     = cot__batch_loss,
    .kind      = KIND_GENERIC,
    .saves     = 3u,
    .vjp       = softmax_cross_entropy_vjp,
    .infer     = cross_entropy_infer,
    .check     = cross_entropy_check,
    .positions = labels_asked,
    .asker     = COT__FOR_SOFTMAX_CROSS_ENTROPY,
    .workspace = softmax_cross_entropy_workspace,
    .run       = softmax_cross_entropy_run,
    .formula   = "z = mean of -Σ q log softmax(x); x̄ += z̄ (softmax(x) Σ q - q) / rows, q̄ += -z̄ log softmax(x) / rows",
    /* as softmax, and the product with the target */
    .cost      = {.each_x = 6},
    .linear    = 1u << TARGET,
    .operands  = "x q"};

static void cross_entropy_vjp(cot__rule *r) {
    cot_var p = cot__rule_x(r, PREDICTION), share = cot_neg(row_share(r));
    if (is_labels(r->t, cot__rule_arg(r, TARGET))) {
        cot_var at = label_positions(r), chosen = cot__take_along_for(cot__rule_asker(r), p, at, -1);
        cot__give_scatter(r, PREDICTION, cot_sdiv(share, chosen), at,
                          cot__rule_shape(r, PREDICTION).ndim - 1, true);
        return;
    }
    if (cot__rule_wants(r, PREDICTION)) cot__give(r, PREDICTION, cot_sdiv(cot_smul(share, cot__rule_x(r, TARGET)), p));
    if (cot__rule_wants(r, TARGET)) cot__give(r, TARGET, cot_smul(share, cot_log(p)));
}

const cot__op cot__op_cross_entropy = {.name     = "cross_entropy",
                                       .batch    = cot__batch_loss,
                                       .kind     = KIND_GENERIC,
                                       .saves    = 3u,
                                       .vjp      = cross_entropy_vjp,
                                       .infer    = cross_entropy_infer,
                                       .check    = cross_entropy_check,
                                       .positions = labels_asked,
                                       .asker    = COT__FOR_CROSS_ENTROPY,
                                       .run      = cross_entropy_run,
                                       .formula  = "z = mean of -Σ q log p; p̄ += -z̄ q / p / rows, q̄ += -z̄ log p / rows",
                                       /* log, multiply, add */
                                       .cost     = {.each_x = 3},
                                       .linear   = 1u << TARGET,
                                       .operands = "p q"};

/* ---- mse ------------------------------------------------------------------------------------- */

bool cot__match_shapes(cot_tape *t, const char *op, uint32_t xs[2]) {
    cot_shape s[2] = {cot__shape_at(t, xs[0]), cot__shape_at(t, xs[1])};
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    if (cot__same_shape(&s[0], &s[1])) return true;
    int small = s[0].ndim == 0 ? 0 : s[1].ndim == 0 ? 1 : -1;
    if (small < 0) {
        cot__fail(t, COT_SHAPE, "[%s] the operands have shapes %s and %s; they must be equal, or one a scalar: "
                  "this does not broadcast, and cot_reshape or cot_broadcast_to say what is meant", op,
                  cot__shape_text(s[0].ndim, s[0].dim, a), cot__shape_text(s[1].ndim, s[1].dim, b));
        return false;
    }
    cot_var wide = cot_broadcast_to(VAR(t, xs[small]), s[1 - small]);
    xs[small] = cot__index(wide);
    return !cot__failed(wide);
}

static bool mse_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 2, 2, 0) || !cot__job_float(j, 0) || !cot__job_dtype(j, 1, j->x[0].dtype)) return false;
    *z = (cot__type){j->x[0].dtype, {0}};
    return cot__job_shape(j, 1, j->x[0].ndim, j->x[0].shape);
}

static void mse_run(const cot__job *j) { j->backend->mean_squares(&j->x[0], &j->x[1], &j->z); }

cot_var(cot_mse)(cot_var x, cot_var y) {
    static const char *const names[] = {"left", "right"};
    uint32_t    xs[2];
    cot_tape   *t = cot__enter_all("mse", names, 2, (cot_var[]){x, y}, true, xs);
    if (!t) return cot__invalid(2, (cot_var[]){x, y});
    return cot__match_shapes(t, "mse", xs) ? cot__record(t, "mse", OP_mse, 2, xs, NULL, NULL) : INVALID(t);
}

static void mse_vjp(cot__rule *r) {
    double  n = (double)cot__size_at(r->t, cot__rule_arg(r, 0));
    cot_var v = cot_smul(cot_mul(r->g, 2 / n), cot_sub(cot__rule_x(r, 0), cot__rule_x(r, 1)));
    if (cot__rule_wants(r, 0)) cot__give(r, 0, v);
    if (cot__rule_wants(r, 1)) cot__give(r, 1, cot_neg(v));
}

const cot__op cot__op_mse = {.name = "mse", .batch = cot__batch_loss, .kind = KIND_GENERIC, .saves = 3u, .vjp = mse_vjp,
                             .infer = mse_infer, .run = mse_run,
                             .formula = "z = mean of (x - y)²; x̄ += 2 z̄ (x - y) / n, ȳ += -2 z̄ (x - y) / n",
                             /* subtract, square, add */
                             .cost = {.each_x = 3},
                             .operands = "x y"};
