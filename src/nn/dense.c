/* dense.c: x @ weight + bias, and rows of a table. */
#include "nn/nn.h"

cot_var cot__layer_dense(cot_params *p, const char *weight, const char *bias, cot_var x, int64_t units) {
    cot__view v = cot__layout_at(p->on, cot__index(x)); /* the layer is open: x is a value */
    if (v.ndim < 1 || units < 1)
        return cot__fail(p->on, COT_SHAPE, "[%s] x has %d axes, the layer %lld units; it needs 1 or more of each",
                         p->op, v.ndim, (long long)units);
    int64_t   in   = v.shape[v.ndim - 1];
    /* which dtype is asked where parameters are made */
    cot__wish wish = {.name    = weight,
                      .shape   = {2, {in, units}},
                      .dtype   = p->making ? cot__params_dtype(p, x) : COT_F32,
                      .how     = {COT_INIT_UNIFORM, 0},
                      .fan_in  = (double)in,
                      .fan_out = (double)units};
    cot_var y = cot_matmul(x, cot__layer_get(p, &wish));
    if (!bias) return y;
    wish.name = bias, wish.shape.ndim = 1, wish.shape.dim[0] = units;
    return cot_add(y, cot__layer_get(p, &wish));
}

cot_var cot_nn_dense(cot_params *p, const char *name, cot_var x, int64_t units) {
    if (!cot__layer_open(p, "nn_dense", name, &x)) return cot__layer_none(p, x);
    return cot__layer_close(p, cot__layer_dense(p, "weight", "bias", x, units));
}

cot_var cot_nn_linear(cot_params *p, const char *name, cot_var x, int64_t units) {
    if (!cot__layer_open(p, "nn_linear", name, &x)) return cot__layer_none(p, x);
    return cot__layer_close(p, cot__layer_dense(p, "weight", NULL, x, units));
}

cot_var cot_nn_embedding(cot_params *p, const char *name, cot_var indices, int64_t rows, int64_t width,
                         int64_t padding) {
    if (!cot__layer_open(p, "nn_embedding", name, &indices)) return cot__layer_none(p, indices);
    if (rows < 1 || width < 1)
        return cot__layer_close(p, cot__fail(p->on, COT_SHAPE,
                                             "[nn_embedding] %lld rows of width %lld; both are 1 or more",
                                             (long long)rows, (long long)width));
    cot__wish wish = {"weight",
                      {2, {rows, width}},
                      cot__params_dtype(p, indices),
                      false,
                      {COT_INIT_NORMAL, 0},
                      (double)rows,
                      (double)width,
                      padding == COT_NO_PADDING ? 0 : 1 + (padding < 0 ? padding + rows : padding)};
    return cot__layer_close(p, cot_embedding(cot__layer_get(p, &wish), indices, padding));
}
