/* losses.c: embeddings, and losses composed of recorded operations.
 *
 * bf16 and f16 are computed in f32 and rounded at the end. Products with a target or a weight are
 * strong: a zero contributes nothing, whatever it meets. */
#include "ops/nn/nn.h"
#include "ops/structural.h"

cot_var cot_embedding(cot_var table, cot_var indices, int64_t padding) {
    uint32_t  i;
    cot_tape *t = cot__tape_of(2, (cot_var[]){table, indices});
    char      text[COT__SHAPE_TEXT];
    if (!t || !cot__enter(t, table, "embedding", "table", &i)) return cot__invalid(1, &table);
    cot_shape s = cot__shape_at(t, i);
    if (s.ndim != 2)
        return cot__fail(t, COT_SHAPE, "[embedding] the table has shape %s; it must be a matrix, a row for each index",
                         cot__shape_text(s.ndim, s.dim, text));
    if (padding != COT_NO_PADDING && (padding < -s.dim[0] || padding >= s.dim[0]))
        return cot__fail(t, COT_VALUE, "[embedding] the padding row is %lld, but the table has %lld rows",
                         (long long)padding, (long long)s.dim[0]);
    cot_var z = cot__take_for(COT__FOR_EMBEDDING, VAR(t, i), indices, 0);
    if (padding == COT_NO_PADDING || cot__failed(z)) return z;
    /* an index may name it from either end */
    int64_t row = padding < 0 ? padding + s.dim[0] : padding;
    cot_var here =
        cot_logical_or(cot_equal(indices, cot_integer(row)), cot_equal(indices, cot_integer(row - s.dim[0])));
    return cot_where(cot_expand_dims(here, -1), cot_detach(z), z);
}

/* x and y in one dtype, at least f32, of equal shapes or one a scalar. *d: the dtype of the
 * loss. */
static cot_tape *enter_pair(const char *op, cot_var *x, cot_var *y, cot_dtype *d) {
    static const char *const names[] = {"left", "right"};
    uint32_t                 xs[2];
    cot_tape                *t = cot__enter_all(op, names, 2, (cot_var[]){*x, *y}, true, xs);
    if (!t || !cot__match_shapes(t, op, xs)) return NULL;
    *d = cot__dtype_at(&t->nodes[xs[0]]);
    *x = cot_cast(VAR(t, xs[0]), cot__dtype_compute(*d));
    *y = cot_cast(VAR(t, xs[1]), cot__dtype_compute(*d));
    return t;
}

static cot_var invalid_pair(cot_var x, cot_var y) { return cot__invalid(2, (cot_var[]){x, y}); }

/* t·softplus(-x) + (1 - t)·softplus(x): both terms are exact to the end of their tails, where
 * softplus(x) - t·x cancels. */
cot_var(cot_bce_with_logits)(cot_var logits, cot_var targets) {
    cot_var   x = logits, q = targets;
    cot_dtype d;
    if (!enter_pair("bce_with_logits", &x, &q, &d)) return invalid_pair(logits, targets);
    cot_var hit = cot_smul(q, cot_softplus(cot_neg(x))), miss = cot_smul(cot_sub(1, q), cot_softplus(x));
    return cot_cast(cot_mean(cot_add(hit, miss), COT_ALL), d);
}

/* With c = d clamped to ±delta: c (d - c/2). */
cot_var(cot_huber)(cot_var x, cot_var y, double delta) {
    cot_var   a = x, b = y;
    cot_dtype d;
    cot_tape *t = enter_pair("huber", &a, &b, &d);
    if (!t) return invalid_pair(x, y);
    if (!(delta > 0)) return cot__fail(t, COT_VALUE, "[huber] delta is %g; it must be positive", delta);
    cot_var away = cot_sub(a, b), near = cot_clamp(away, -delta, delta);
    return cot_cast(cot_mean(cot_mul(near, cot_sub(away, cot_mul(near, 0.5))), COT_ALL), d);
}

/* Σ over the last axis, then the mean over rows */
static cot_var mean_of_rows(cot_var v) { return cot_mean(cot_sum(v, COT_AXES(-1)), COT_ALL); }

cot_var cot_nll(cot_var log_probabilities, cot_var targets) {
    uint32_t  xs[2];
    cot_tape *t = cot__enter_targets("nll", log_probabilities, targets, xs);
    if (!t) return cot__invalid(1, &log_probabilities);
    if (!cot__check_targets(t, "nll", xs)) return INVALID(t);
    cot_dtype d = cot__dtype_at(&t->nodes[xs[0]]), wide = cot__dtype_compute(d);
    cot_var   x = VAR(t, xs[0]), q = VAR(t, xs[1]);
    if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[xs[1]]))) {
        cot_var chosen = cot__take_along_for(COT__FOR_NLL, x, cot_expand_dims(q, -1), -1);
        return cot_cast(cot_neg(cot_mean(cot_cast(chosen, wide), COT_ALL)), d);
    }
    return cot_cast(cot_neg(mean_of_rows(cot_smul(cot_cast(q, wide), cot_cast(x, wide)))), d);
}

cot_var cot_kl_div(cot_var log_probabilities, cot_var targets) {
    uint32_t  xs[2];
    cot_tape *t = cot__enter_targets("kl_div", log_probabilities, targets, xs);
    if (!t) return cot__invalid(1, &log_probabilities);
    if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[xs[1]])))
        return cot__fail(t, COT_DTYPE,
                         "[kl_div] the targets have dtype %s; they must be probabilities, and cot_nll takes labels",
                         cot__dtype_name(cot__dtype_at(&t->nodes[xs[1]])));
    if (!cot__check_targets(t, "kl_div", xs)) return INVALID(t);
    cot_dtype d = cot__dtype_at(&t->nodes[xs[0]]), wide = cot__dtype_compute(d);
    cot_var x = cot_cast(VAR(t, xs[0]), wide), q = cot_cast(VAR(t, xs[1]), wide);
    return cot_cast(mean_of_rows(cot_smul(q, cot_sub(cot_log(q), x))), d);
}

/* Each vector is divided by its own length first, so that nothing overflows. */
cot_var cot_cosine_similarity(cot_var x, cot_var y, int axis, double eps) {
    static const char *const names[] = {"left", "right"};
    uint32_t                 xs[2];
    cot_tape                *t = cot__enter_all("cosine_similarity", names, 2, (cot_var[]){x, y}, true, xs);
    cot_var                  unit[2];
    if (!t) return invalid_pair(x, y);
    if (!(eps > 0)) return cot__fail(t, COT_VALUE, "[cosine_similarity] eps is %g; it must be positive", eps);
    if (!cot__match_shapes(t, "cosine_similarity", xs)) return INVALID(t);
    if (!cot__check_axis(t, "cosine_similarity", axis, cot__ndim_at(t, xs[0]), &axis)) return INVALID(t);
    cot_dtype d = cot__dtype_at(&t->nodes[xs[0]]);
    for (int k = 0; k < 2; k++) {
        cot_var v = cot_cast(VAR(t, xs[k]), cot__dtype_compute(d));
        unit[k] = cot_div(v, cot_maximum(cot_norm(v, 2, COT_KEEP(axis)), eps));
    }
    return cot_cast(cot_sum(cot_mul(unit[0], unit[1]), COT_AXES(axis)), d);
}
