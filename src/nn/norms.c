/* norms.c: norms with their weights, the running statistics of batch norms, and dropout. */
#include "nn/nn.h"

static double eps_or(double eps) { return eps == 0 ? 1e-5 : eps; }

static cot_var ones(cot_params *p, const char *name, int64_t n, cot_var x) {
    return cot__layer_vector(p, name, n, x, COT_INIT_ONES);
}
static cot_var zeros(cot_params *p, const char *name, int64_t n, cot_var x) {
    return cot__layer_vector(p, name, n, x, COT_INIT_CONSTANT);
}

/* Opens a layer whose parameters have as many elements as x along an axis; -1: none, and the layer
 * is not open. */
static int64_t open_along(cot_params *p, const char *op, const char *name, cot_var *x, int axis) {
    if (!cot__layer_open(p, op, name, x)) return -1;
    cot_shape s = cot_shape_of(*x);
    if (cot__layer_axes(p, *x, axis < 0 ? 1 : axis + 1)) return s.dim[axis < 0 ? s.ndim + axis : axis];
    cot__layer_close(p, *x);
    return -1;
}

cot_var cot_nn_layer_norm(cot_params *p, const char *name, cot_var x, double eps) {
    int64_t n = open_along(p, "nn_layer_norm", name, &x, -1);
    if (n < 0) return cot__layer_none(p, x);
    cot_var weight = ones(p, "weight", n, x), bias = zeros(p, "bias", n, x);
    return cot__layer_close(p, cot_layer_norm(x, weight, bias, -1, eps_or(eps)));
}

cot_var cot_nn_rms_norm(cot_params *p, const char *name, cot_var x, double eps) {
    int64_t n = open_along(p, "nn_rms_norm", name, &x, -1);
    if (n < 0) return cot__layer_none(p, x);
    return cot__layer_close(p, cot_rms_norm(x, ones(p, "weight", n, x), -1, eps_or(eps)));
}

cot_var cot_nn_group_norm(cot_params *p, const char *name, cot_var x, int64_t groups, double eps) {
    int64_t n = open_along(p, "nn_group_norm", name, &x, 1);
    if (n < 0) return cot__layer_none(p, x);
    cot_var weight = ones(p, "weight", n, x), bias = zeros(p, "bias", n, x);
    return cot__layer_close(p, cot_group_norm(x, groups, weight, bias, eps_or(eps)));
}

/* r becomes (1 - momentum) r + momentum · factor · batch. */
static void follow(cot_params *p, const char *name, cot_var r, cot_var batch, double momentum, double factor) {
    if (p->making || !cot__params_on(p)) return;
    cot_var old = cot_mul(1 - momentum, cot_detach(r)), new = cot_mul(momentum * factor, cot_detach(batch));
    cot_nn_update(p, name, cot_cast(cot_add(old, new), cot_dtype_of(r)));
}

cot_var cot_nn_batch_norm(cot_params *p, const char *name, cot_var x, double momentum, double eps) {
    int64_t n = open_along(p, "nn_batch_norm", name, &x, 1);
    if (n < 0) return cot__layer_none(p, x);
    cot_shape s    = cot_shape_of(x);
    cot_axes  axes = {s.ndim - 1, false, {0}};
    for (int k = 1; k < axes.n; k++) axes.axis[k] = k + 1;
    cot_var weight = ones(p, "weight", n, x), bias = zeros(p, "bias", n, x);
    cot_var mean = zeros(p, "running_mean", n, x), variance = ones(p, "running_var", n, x), m, v;
    if (!p->training)
        return cot__layer_close(p, cot_batch_norm_inference(x, axes, mean, variance, weight, bias, eps_or(eps)));
    cot_var y    = cot_batch_norm(x, axes, weight, bias, eps_or(eps), &m, &v);
    double  each = n > 0 ? (double)(cot_size(x) / n) : 0, rate = momentum == 0 ? 0.1 : momentum;
    follow(p, "running_mean", mean, m, rate, 1);
    follow(p, "running_var", variance, v, rate, each > 1 ? each / (each - 1) : 1);
    return cot__layer_close(p, y);
}

cot_var cot_nn_dropout(cot_params *p, const char *name, cot_var x, double rate) {
    if (!cot__layer_open(p, "nn_dropout", name, &x)) return cot__layer_none(p, x);
    return cot__layer_close(p, p->training ? cot_dropout(x, rate, cot__layer_key(p)) : x);
}
