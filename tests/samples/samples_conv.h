/* samples_conv.h: convolution and pooling for samples.h. */
#ifndef ROWS

SAMPLE(s_conv1d) {
    UNUSED;
    return cot_conv1d(x[0], x[1], COT_CONV(.stride = {2}, .padding = {1}, .padding_after = {1}));
}
SAMPLE(s_conv1d_groups) {
    UNUSED;
    return cot_conv1d(x[0], x[1], COT_CONV(.groups = 2, .dilation = {2}, .padding_before = {3}));
}
SAMPLE(s_conv2d) {
    UNUSED;
    return cot_conv2d(cot_expand_dims(x[0], 0), cot_expand_dims(x[1], 1),
                      COT_CONV(.groups = 2, .padding = {1, 0}, .stride = {1, 2}));
}
SAMPLE(s_conv3d) {
    UNUSED;
    return cot_conv3d(cot_reshape(x[0], COT_SHAPE(1, 1, 2, 3, 3)), cot_reshape(x[1], COT_SHAPE(2, 1, 2, 1, 2)),
                      COT_CONV(.padding = {1, 0, 1}));
}
SAMPLE(s_conv_transpose) {
    UNUSED;
    return cot_conv_transpose1d(x[0], x[1], COT_CONV(.stride = {2}, .padding = {1}, .output_padding = {1}));
}
SAMPLE(s_conv_transpose2d) {
    UNUSED;
    return cot_conv_transpose2d(cot_expand_dims(x[0], 0), cot_expand_dims(x[1], 1),
                                COT_CONV(.groups = 2, .dilation = {1, 2}, .stride = {3, 1}));
}
SAMPLE(s_conv_square) { UNUSED; return cot_conv1d(x[0], x[0], COT_CONV(.padding = {1})); }
/* the adjoint of a kernel: in a gradient */
SAMPLE(s_conv_weight) {
    UNUSED;
    cot_var g, y = cot_conv1d(x[0], x[1], COT_CONV(.stride = {2}, .padding = {1}));
    /* scaled, so that the terms are of the order of 1 */
    cot_grad_of(cot_sum(cot_mul(0.05, cot_mul(y, y)), COT_ALL), 1, x + 1, &g);
    return g;
}
SAMPLE(s_max_pool) { UNUSED; return cot_max_pool1d(x[0], COT_POOL(.window = {3}, .stride = {1}, .padding = {1})); }
SAMPLE(s_max_pool2d) { UNUSED; return cot_max_pool2d(x[0], COT_POOL(.window = {2, 2})); }
SAMPLE(s_max_pool3d) {
    UNUSED;
    return cot_max_pool3d(x[0], COT_POOL(.window = {2, 2, 1}, .stride = {1, 1, 1}, .ceil_mode = true));
}
/* forward mode of max_pool */
SAMPLE(s_max_take) {
    UNUSED;
    cot_var y = cot_max_pool1d(x[0], COT_POOL(.window = {3}, .stride = {2}));
    return cot_jvp(y, 1, x, (cot_var[]){cot_sin(x[0])});
}
/* the transpose of max_pool: in a gradient */
SAMPLE(s_max_unpool) {
    UNUSED;
    cot_var g, y = cot_max_pool1d(x[0], COT_POOL(.window = {3}, .stride = {2}));
    cot_grad_of(cot_sum(cot_mul(y, cot_mul(y, y)), COT_ALL), 1, x, &g);
    return g;
}
SAMPLE(s_avg_pool) {
    UNUSED;
    return cot_avg_pool2d(x[0],
                          COT_POOL(.window = {3, 2}, .stride = {1, 2}, .padding = {1, 1}, .exclude_padding = true));
}
SAMPLE(s_avg_pool3d) {
    UNUSED;
    return cot_avg_pool3d(x[0],
                          COT_POOL(.window = {2, 2, 2}, .stride = {1, 2, 1}, .padding = {0, 1, 1}, .ceil_mode = true));
}
SAMPLE(s_avg_unpool) {
    UNUSED;
    cot_var g, y = cot_avg_pool1d(x[0], COT_POOL(.window = {3}, .stride = {2}, .padding = {1}));
    cot_grad_of(cot_sum(cot_mul(y, cot_mul(y, y)), COT_ALL), 1, x, &g);
    return g;
}

#else

    {"conv", s_conv1d, 2, {{3, 2, 2, 5}, {3, 3, 2, 3}}},
    {"conv", s_conv1d_groups, 2, {{3, 1, 4, 5}, {3, 2, 2, 3}}},
    {"conv", s_conv2d, 2, {{3, 2, 3, 4}, {3, 4, 2, 2}}},
    {"conv", s_conv3d, 2, {{1, 18}, {1, 8}}},
    {"conv", s_conv_square, 1, {{3, 2, 2, 3}}},
    {"conv_transpose", s_conv_transpose, 2, {{3, 1, 2, 3}, {3, 2, 2, 3}}},
    {"conv_transpose", s_conv_transpose2d, 2, {{3, 2, 2, 3}, {3, 2, 2, 2}}},
    {"conv_weight", s_conv_weight, 2, {{3, 1, 2, 5}, {3, 2, 2, 3}}},
    {"max_pool", s_max_pool2d, 1, {{3, 2, 4, 5}}},
    {"max_pool", s_max_pool3d, 1, {{3, 2, 3, 2}}},
    {"max_pool", s_max_pool, 1, {{2, 2, 5}}},
    {"max_take", s_max_take, 1, {{2, 2, 7}}},
    {"max_unpool", s_max_unpool, 1, {{2, 2, 7}}},
    {"avg_pool", s_avg_pool, 1, {{3, 2, 3, 4}}},
    {"avg_pool", s_avg_pool3d, 1, {{3, 2, 3, 4}}},
    {"avg_unpool", s_avg_unpool, 1, {{2, 2, 6}}},

#endif
