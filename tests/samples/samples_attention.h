/* samples_attention.h: attention for samples.h. Functions come first; rows of the table if ROWS is
 * defined. */
#ifndef ROWS

static cot_var truths(cot_tape *t, cot_shape shape, const uint8_t *b) { return cot_data(t, COT_BOOL, shape, b); }

SAMPLE(s_attention) { UNUSED; return cot_attention(x[0], x[1], x[2], NULL); }
SAMPLE(s_attention_causal) {
    UNUSED;
    return cot_attention(x[0], x[1], x[2], &(cot_attention_options){.causal = true, .scale = 0.7});
}
/* the last query sees no key */
SAMPLE(s_attention_masked) {
    UNUSED;
    cot_var mask = truths(x[0].tape, COT_SHAPE(3, 3), (uint8_t[]){1, 0, 1, 0, 1, 1, 0, 0, 0});
    return cot_attention(x[0], x[1], x[2], &(cot_attention_options){.mask = mask});
}
/* a bias with a derivative, with a mask, over keys that serve as values too */
SAMPLE(s_attention_biased) {
    UNUSED;
    cot_var mask = truths(x[0].tape, COT_SHAPE(3), (uint8_t[]){1, 0, 1});
    return cot_attention(x[0], x[1], x[1], &(cot_attention_options){.bias = x[2], .mask = mask});
}
/* the fused derivative, as part of a gradient: all three of them */
SAMPLE(s_attention_backward) {
    UNUSED;
    cot_var g[3], y = cot_attention(x[0], x[1], x[2], &(cot_attention_options){.causal = true});
    cot_grad_of(cot_sum(cot_mul(y, cot_mul(y, y)), COT_ALL), 3, x, g);
    return cot_concat(3, g, 0);
}
SAMPLE(s_attention_backward_biased) {
    UNUSED;
    cot_var g[3], y = cot_attention(x[0], x[1], x[0], &(cot_attention_options){.bias = x[2]});
    cot_grad_of(cot_sum(cot_mul(y, y), COT_ALL), 3, x, g);
    return cot_concat(2, g, 0);
}

#else

    {"attention", s_attention, 3, {{2, 2, 2}, {2, 3, 2}, {2, 3, 1}}},
    {"attention", s_attention, 3, {{3, 2, 2, 2}, {3, 1, 3, 2}, {2, 3, 2}}},
    {"attention", s_attention_causal, 3, {{2, 3, 2}, {2, 2, 2}, {2, 2, 2}}},
    {"attention", s_attention_causal, 3, {{2, 2, 2}, {2, 3, 2}, {2, 3, 2}}},
    {"attention", s_attention_masked, 3, {{2, 3, 2}, {2, 3, 2}, {2, 3, 2}}},
    {"attention", s_attention_biased, 3, {{2, 2, 2}, {2, 3, 2}, {2, 2, 3}}},
    {"attention", s_attention_biased, 3, {{3, 2, 2, 2}, {2, 3, 2}, {2, 2, 1}}},
    {"attention_backward", s_attention_backward, 3, {{2, 2, 2}, {2, 2, 2}, {2, 2, 2}}},
    {"attention_backward", s_attention_backward_biased, 3, {{2, 2, 2}, {2, 2, 2}, {2, 2, 2}}},

#endif
