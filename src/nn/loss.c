/* loss.c: the cross entropy with class weights, smoothed targets and rows that do not count, in
 * recorded operations. bf16 and f16 are computed in f32 and rounded at the end. */
#include "nn/nn.h"

#include "ops/structural.h"

/* Σ w log p over the classes, w NULL of tape: 1. */
static cot_var over_classes(cot_var log_p, cot_var w) {
    return cot_sum(w.tape ? cot_smul(w, log_p) : log_p, COT_AXES(-1));
}

static cot_var of_labels(cot_var log_p, cot_var labels, cot_var w, const cot_cross_entropy_options *o, double classes) {
    cot_var counts = o->ignore ? cot_not_equal(labels, cot_integer(o->ignored)) : cot_greater_equal(labels, 0);
    cot_var safe   = o->ignore ? cot_where(counts, labels, cot_integer(0)) : labels;
    cot_var one    = cot__take_along_for(COT__FOR_NN_CROSS_ENTROPY, log_p, cot_expand_dims(safe, -1), -1);
    one            = cot_squeeze(one, COT_AXES(-1));
    cot_var each   = w.tape ? cot__take_for(COT__FOR_NN_CROSS_ENTROPY, w, safe, 0) : cot_full_like(one, 1);
    if (o->ignore) each = cot_where(counts, each, 0), counts = cot_cast(counts, cot_dtype_of(log_p));
    cot_var sum = cot_mul(1 - o->smoothing, cot_sum(cot_smul(each, one), COT_ALL));
    if (o->smoothing > 0) {
        cot_var all = over_classes(log_p, w);
        if (o->ignore) all = cot_smul(counts, all);
        sum = cot_add(sum, cot_mul(o->smoothing / classes, cot_sum(all, COT_ALL)));
    }
    return cot_neg(cot_div(sum, cot_sum(each, COT_ALL)));
}

static cot_var of_probabilities(cot_var log_p, cot_var q, cot_var w, const cot_cross_entropy_options *o,
                                double classes) {
    q = cot_cast(q, cot_dtype_of(log_p));
    if (o->smoothing > 0) q = cot_add(cot_mul(1 - o->smoothing, q), o->smoothing / classes);
    return cot_neg(cot_mean(over_classes(cot_smul(q, log_p), w), COT_ALL));
}

cot_var cot_nn_cross_entropy(cot_var logits, cot_var targets, const cot_cross_entropy_options *options) {
    cot_cross_entropy_options o = options ? *options : (cot_cross_entropy_options){0};
    if (o.smoothing == 0 && !o.ignore && !o.weights.tape) return cot_softmax_cross_entropy(logits, targets);
    cot_var   xs[2] = {logits, targets};
    uint32_t  i, j;
    cot_tape *t = cot__tape_of(2, xs);
    if (!t || !cot__operand(t, logits, "nn_cross_entropy", "logits", &i) ||
        !cot__operand(t, targets, "nn_cross_entropy", "targets", &j))
        return cot__invalid(2, xs);
    cot_shape s = cot__shape_at(t, i), of = cot__shape_at(t, j);
    cot_dtype d      = cot__dtype_at(&t->nodes[i]);
    bool      labels = !cot__dtype_is_float(cot__dtype_at(&t->nodes[j]));
    cot_shape want   = s;
    if (labels) want.ndim--;
    if (s.ndim < 1 || !cot__dtype_is_float(d) || !cot__same_shape(&want, &of)) {
        char a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
        return cot__fail(
            t, COT_SHAPE,
            "[nn_cross_entropy] logits %s, targets %s; float logits have classes along the last axis, labels "
            "have the other axes, probabilities all",
            cot__shape_text_at(t, i, a), cot__shape_text_at(t, j, b));
    }
    cot_shape w = o.weights.tape ? cot_shape_of(o.weights) : COT_SHAPE(s.dim[s.ndim - 1]);
    if (!(o.smoothing >= 0 && o.smoothing <= 1) || w.ndim != 1 || w.dim[0] != s.dim[s.ndim - 1])
        return cot__fail(
            t, COT_VALUE,
            "[nn_cross_entropy] a smoothing of %g, weights of %d axes; smoothing is from 0 to 1, and weights "
            "are a vector, one for each of %lld classes",
            o.smoothing, w.ndim, (long long)s.dim[s.ndim - 1]);
    cot_var log_p = cot_log_softmax(cot_cast(logits, cot__dtype_compute(d)), -1), weights = o.weights;
    if (weights.tape) weights = cot_cast(weights, cot_dtype_of(log_p));
    double classes = (double)s.dim[s.ndim - 1];
    return cot_cast((labels ? of_labels : of_probabilities)(log_p, targets, weights, &o, classes), d);
}
