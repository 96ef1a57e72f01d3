/* dense.c: x @ weight + bias. */
#include "nn/nn.h"

static cot_var dense(cot_params *p, const char *op, const char *name, cot_var x, int64_t units, bool bias) {
    if (!cot__layer_open(p, op, name, x)) return cot__layer_none(p, x);
    return cot__layer_close(p, cot__layer_dense(p, "weight", bias ? "bias" : NULL, x, units));
}

cot_var cot__layer_dense(cot_params *p, const char *weight, const char *bias, cot_var x, int64_t units) {
    cot_shape s = cot_shape_of(x);
    if (s.ndim < 1 || units < 1)
        return cot__fail(p->on, COT_SHAPE,
                         "[%s] x has %d axes, the layer %lld units; x needs one, and units are 1 or more", p->op,
                         s.ndim, (long long)units);
    double    in = (double)s.dim[s.ndim - 1];
    cot_dtype d  = cot__params_dtype(p, x);
    cot__wish w  = {weight, {2, {s.dim[s.ndim - 1], units}}, d, false, {COT_INIT_UNIFORM, 0}, in, (double)units};
    cot__wish b  = {bias, {1, {units}}, d, false, {COT_INIT_UNIFORM, 0}, in, (double)units};
    cot_var   y  = cot_matmul(x, cot__layer_get(p, &w));
    return bias ? cot_add(y, cot__layer_get(p, &b)) : y;
}

cot_var cot_nn_dense(cot_params *p, const char *name, cot_var x, int64_t units) {
    return dense(p, "nn_dense", name, x, units, true);
}

cot_var cot_nn_linear(cot_params *p, const char *name, cot_var x, int64_t units) {
    return dense(p, "nn_linear", name, x, units, false);
}
