/* samples_nn.h: normalisation, losses, embeddings and random operations, for samples.h. */
#ifndef ROWS

SAMPLE(s_layer_norm) { UNUSED; return cot_layer_norm(x[0], x[1], x[2], -1, 0.1); }
SAMPLE(s_layer_norm_plain) { UNUSED; return cot_layer_norm(x[0], COT_NONE, COT_NONE, 1, 0.1); }
SAMPLE(s_layer_norm_bias) { UNUSED; return cot_layer_norm(cot_transpose(x[0]), COT_NONE, x[1], -1, 0.1); }
SAMPLE(s_layer_norm_axes) { UNUSED; return cot_layer_norm(x[0], x[1], COT_NONE, 1, 0.1); }
SAMPLE(s_rms_norm) { UNUSED; return cot_rms_norm(x[0], x[1], -1, 0.1); }
SAMPLE(s_rms_norm_plain) { UNUSED; return cot_rms_norm(x[0], COT_NONE, 0, 0.1); }
/* the adjoints: in a gradient */
SAMPLE(s_norm_back) {
    UNUSED;
    cot_var g[2];
    cot_grad_of(cot_sum(cot_sin(cot_layer_norm(x[0], x[1], COT_NONE, -1, 0.3)), COT_ALL), 2, x, g);
    return g[0];
}
SAMPLE(s_rms_norm_back) {
    UNUSED;
    cot_var g[2];
    cot_grad_of(cot_sum(cot_sin(cot_rms_norm(x[0], x[1], -1, 0.3)), COT_ALL), 2, x, g);
    return g[0];
}
SAMPLE(s_norm_weights) {
    UNUSED;
    cot_var g[3];
    cot_grad_of(cot_sum(cot_sin(cot_layer_norm(x[0], x[1], x[2], -1, 0.3)), COT_ALL), 3, x, g);
    return cot_concat(2, g + 1, 0);
}
SAMPLE(s_rms_norm_weights) {
    UNUSED;
    cot_var g[2];
    cot_grad_of(cot_sum(cot_sin(cot_rms_norm(x[0], x[1], -1, 0.3)), COT_ALL), 2, x, g);
    return g[1];
}
/* what forward mode along weights makes */
SAMPLE(s_norm_known) {
    UNUSED;
    return cot_jvp(cot_layer_norm(x[0], x[1], COT_NONE, -1, 0.3), 1, x + 1, (cot_var[]){cot_sin(x[1])});
}
SAMPLE(s_group_norm) { UNUSED; return cot_group_norm(x[0], 2, x[1], x[2], 0.1); }
SAMPLE(s_batch_norm) { UNUSED; return cot_batch_norm(x[0], COT_AXES(0, 2), x[1], x[2], 0.1, NULL, NULL); }
SAMPLE(s_batch_norm_statistics) {
    UNUSED;
    cot_var mean, variance, z = cot_batch_norm(x[0], COT_AXES(0), COT_NONE, COT_NONE, 0.1, &mean, &variance);
    return cot_add(z, cot_mul(mean, variance));
}
SAMPLE(s_batch_norm_inference) {
    UNUSED;
    return cot_batch_norm_inference(x[0], COT_AXES(0), x[1], cot_square(x[2]), x[1], COT_NONE, 0.1);
}
SAMPLE(s_embedding) {
    UNUSED;
    return cot_embedding(x[0], indices(x[0].tape, COT_SHAPE(2, 2), (int64_t[]){0, 2, -1, 1}), COT_NO_PADDING);
}
SAMPLE(s_bce) { UNUSED; return cot_bce_with_logits(x[0], x[1]); }
SAMPLE(s_nll) { UNUSED; return cot_nll(x[0], indices(x[0].tape, COT_SHAPE(2), (int64_t[]){2, 0})); }
SAMPLE(s_nll_weights) { UNUSED; return cot_nll(x[0], x[1]); }
SAMPLE(s_huber) { UNUSED; return cot_huber(x[0], x[1], 1.25); }
SAMPLE(s_kl_div) { UNUSED; return cot_kl_div(x[0], cot_add(cot_sigmoid(x[1]), 0.1)); }
SAMPLE(s_cosine) { UNUSED; return cot_cosine_similarity(cot_add(cot_square(x[0]), 0.5), cot_add(x[1], 3.0), 1, 1e-8); }
SAMPLE(s_dropout) { UNUSED; return cot_dropout(cot_sin(x[0]), 0.4, cot_key_of(7)); }
SAMPLE(s_shuffle) { UNUSED; return cot_shuffle(cot_key_of(5), x[0], 1); }
/* a reparametrised sample, with the same noise in f32 and f64 */
SAMPLE(s_normal) {
    UNUSED;
    cot_var noise = cot_cast(cot_normal(x[0].tape, cot_key_of(3), COT_F32, COT_SHAPE(2, 3)), cot_dtype_of(x[0]));
    return cot_add(x[0], cot_mul(cot_exp(x[1]), noise));
}

SAMPLE(s_draw_at) {
    UNUSED;
    cot_var two   = indices(x[0].tape, (cot_shape){0, {0}}, (int64_t[]){2}),
            noise = cot_cast(cot_normal(x[0].tape, cot_key_at(cot_key_of(3), two), COT_F32, COT_SHAPE(2, 3)),
                             cot_dtype_of(x[0]));
    return cot_add(cot_dropout(x[0], 0.4, cot_key_at(cot_key_of(7), two)), cot_mul(cot_exp(x[1]), noise));
}
static cot_key second_key(cot_tape *t) {
    return cot_key_at(cot_key_of(4), indices(t, (cot_shape){0, {0}}, (int64_t[]){2}));
}
SAMPLE(s_bernoulli) {
    UNUSED;
    cot_var chosen = cot_bernoulli(x[0].tape, second_key(x[0].tape), cot_sigmoid(x[0]), COT_SHAPE(2, 3));
    return cot_where(chosen, x[0], cot_mul(x[0], x[0]));
}
SAMPLE(s_categorical) {
    UNUSED;
    return cot_take(x[0], cot_categorical(second_key(x[0].tape), cot_cast(x[0], COT_F64), 1), 1);
}

#else

    {"layer_norm", s_layer_norm, 3, {{2, 3, 4}, {1, 4}, {1, 4}}},
    {"layer_norm", s_layer_norm_plain, 1, {{3, 2, 2, 3}}},
    {"layer_norm", s_layer_norm_bias, 2, {{2, 4, 3}, {1, 4}}},
    {"layer_norm", s_layer_norm_axes, 2, {{3, 2, 2, 3}, {2, 2, 3}}},
    {"rms_norm", s_rms_norm, 2, {{2, 3, 4}, {1, 4}}},
    {"rms_norm", s_rms_norm_plain, 1, {{2, 2, 3}}},
    {"norm_known", s_norm_known, 2, {{2, 2, 4}, {1, 4}}},
    {"norm_back", s_norm_back, 2, {{2, 2, 4}, {1, 4}}},
    {"norm_back", s_rms_norm_back, 2, {{2, 2, 4}, {1, 4}}},
    {"norm_weights", s_norm_weights, 3, {{2, 2, 4}, {1, 4}, {1, 4}}},
    {"norm_weights", s_rms_norm_weights, 2, {{2, 2, 4}, {1, 4}}},
    {"layer_norm", s_group_norm, 3, {{3, 2, 4, 2}, {1, 4}, {1, 4}}},
    {NULL, s_batch_norm, 3, {{3, 2, 3, 2}, {1, 3}, {1, 3}}},
    {NULL, s_batch_norm_statistics, 1, {{2, 4, 3}}},
    {NULL, s_batch_norm_inference, 3, {{2, 4, 3}, {1, 3}, {1, 3}}},
    {"take", s_embedding, 1, {{2, 3, 2}}},
    {NULL, s_bce, 2, {{2, 2, 3}, {2, 2, 3}}},
    {"take_along_axis", s_nll, 1, {{2, 2, 3}}},
    {NULL, s_nll_weights, 2, {{2, 2, 3}, {2, 2, 3}}},
    {NULL, s_huber, 2, {{2, 2, 3}, {2, 2, 3}}},
    {NULL, s_kl_div, 2, {{2, 2, 3}, {2, 2, 3}}},
    {NULL, s_cosine, 2, {{2, 2, 3}, {2, 2, 3}}},
    {NULL, s_dropout, 1, {{2, 2, 3}}},
    {"take", s_shuffle, 1, {{2, 2, 3}}},
    {NULL, s_normal, 2, {{2, 2, 3}, {0}}},

#endif
