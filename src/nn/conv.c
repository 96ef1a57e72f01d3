/* conv.c: convolutions of one to three spatial axes, and their transposes, with a bias. */
#include "nn/nn.h"

typedef cot_var (*convolution)(cot_var x, cot_var w, cot_conv_options options);

static cot_var conv(cot_params *p, cot_var x, int64_t channels, const cot_shape *kernel, bool bias,
                    cot_conv_options options, bool transposed) {
    static const convolution run[2][3] = {{cot_conv1d, cot_conv2d, cot_conv3d},
                                          {cot_conv_transpose1d, cot_conv_transpose2d, cot_conv_transpose3d}};
    int                      n         = kernel->ndim;
    int64_t                  groups    = options.groups ? options.groups : 1;
    cot_shape                s = cot_shape_of(x), b = {n + 1, {channels, 1, 1, 1}};
    if (n < 1 || n > 3 || s.ndim != n + 2 || channels < 1 || groups < 1 || s.dim[1] % groups || channels % groups)
        return cot__fail(
            p->on, COT_SHAPE,
            "[%s] a kernel of %d axes, x of %d, %lld channels in, %lld out, %lld groups; kernels have 1 to 3 "
            "axes, x two more, and groups divide both",
            p->op, n, s.ndim, (long long)(s.ndim > 1 ? s.dim[1] : 0), (long long)channels, (long long)groups);
    cot__wish wish = {
        "weight", {n + 2, {channels, s.dim[1] / groups}}, cot__params_dtype(p, x), false, {COT_INIT_UNIFORM, 0}, 0, 0,
        0};
    if (transposed) wish.shape.dim[0] = s.dim[1], wish.shape.dim[1] = channels / groups;
    double taps = 1;
    for (int k = 0; k < n; k++) taps *= (double)(wish.shape.dim[2 + k] = kernel->dim[k]);
    if (!(taps > 0)) return cot__fail(p->on, COT_SHAPE, "[%s] the kernel is empty; its extents are 1 or more", p->op);
    wish.fan_in = taps * (double)wish.shape.dim[1], wish.fan_out = taps * (double)wish.shape.dim[0];
    cot_var y = run[transposed][n - 1](x, cot__layer_get(p, &wish), options);
    if (!bias) return y;
    wish.name = "bias", wish.shape = COT_SHAPE(channels);
    return cot_add(y, cot_reshape(cot__layer_get(p, &wish), b));
}

cot_var cot_nn_conv(cot_params *p, const char *name, cot_var x, int64_t channels, cot_shape kernel, bool bias,
                    cot_conv_options options) {
    if (!cot__layer_open(p, "nn_conv", name, &x)) return cot__layer_none(p, x);
    return cot__layer_close(p, conv(p, x, channels, &kernel, bias, options, false));
}

cot_var cot_nn_conv_transpose(cot_params *p, const char *name, cot_var x, int64_t channels, cot_shape kernel, bool bias,
                              cot_conv_options options) {
    if (!cot__layer_open(p, "nn_conv_transpose", name, &x)) return cot__layer_none(p, x);
    return cot__layer_close(p, conv(p, x, channels, &kernel, bias, options, true));
}
