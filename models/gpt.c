/* gpt.c: the network, how it begins, and GPT-2's names for its parameters. */
#include "gpt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

cot_status gpt_begin(cot_params *p, const gpt *g) {
    /* what is added to the stream starts smaller, the more often it is added */
    double added = 0.02 / sqrt(2 * (double)g->layers);
    cot_params_init_with(p, "*.weight", (cot_init){COT_INIT_NORMAL, 0.02});
    cot_params_init_with(p, "*.out_proj.weight", (cot_init){COT_INIT_NORMAL, added});
    cot_params_init_with(p, "*.c_proj.weight", (cot_init){COT_INIT_NORMAL, added});
    cot_params_init_with(p, "*.bias", (cot_init){COT_INIT_CONSTANT, 0});
    return cot_params_init_with(p, "*ln_?.weight", (cot_init){COT_INIT_ONES, 0});
}

/* cot_nn_attention, up to rounding, of its parameters, by operations that can be exported. */
static cot_var plain_attention(cot_params *p, const gpt *g, cot_var x) {
    cot_shape s = cot_shape_of(x);
    int64_t   rows = s.dim[0], n = s.dim[1], d = g->width / g->heads;
    cot_var   all = cot_reshape(cot_nn_dense(p, "attn.in_proj", x, 3 * g->width), COT_SHAPE(rows, n, 3, g->heads, d));
    cot_var   part[3], place = cot_arange(x.tape, COT_F32, 0, (double)n, 1);
    for (int k = 0; k < 3; k++) part[k] = cot_permute(cot_index(all, 2, k), COT_AXES(0, 2, 1, 3));
    cot_var near = cot_mul(cot_matmul(part[0], cot_permute(part[1], COT_AXES(0, 1, 3, 2))), 1 / sqrt((double)d));
    cot_var later = cot_less(cot_reshape(place, COT_SHAPE(n, 1)), place);
    cot_var seen = cot_matmul(cot_softmax(cot_where(later, -1e30, near), 3), part[2]);
    return cot_nn_dense(p, "attn.out_proj", cot_reshape(cot_permute(seen, COT_AXES(0, 2, 1, 3)), s), g->width);
}

/* x (B, T, width) */
static cot_var block(cot_params *p, const gpt *g, cot_var x) {
    cot_nn_attention_options causal = {.heads = g->heads, .causal = true, .cache = g->cache};
    cot_var read = cot_nn_layer_norm(p, "ln_1", x, 1e-5);
    cot_var seen = g->plain ? plain_attention(p, g, read) : cot_nn_attention(p, "attn", read, &causal);
    x = cot_add(x, cot_nn_dropout(p, "attn_dropout", seen, g->dropout));
    cot_var up = cot_gelu_tanh(cot_nn_dense(p, "mlp.c_fc", cot_nn_layer_norm(p, "ln_2", x, 1e-5), 4 * g->width));
    cot_var down = cot_nn_dense(p, "mlp.c_proj", up, g->width);
    return cot_add(x, cot_nn_dropout(p, "mlp_dropout", down, g->dropout));
}

cot_var gpt_net(cot_params *p, cot_var tokens) {
    const gpt *g = cot_params_user(p);
    int64_t    n = cot_shape_of(tokens).dim[1], first = g->cache ? g->seen : 0;
    cot_var    x = cot_nn_embedding(p, "wte", tokens, g->vocabulary, g->width, COT_NO_PADDING);
    cot_var    places = cot_nn_parameter(p, "wpe.weight", COT_SHAPE(g->context, g->width), x, (cot_init){0});
    x = cot_nn_dropout(p, "dropout", cot_add(x, cot_slice(places, 0, first, first + n, 1)), g->dropout);
    cot_params_push(p, "h");
    for (int64_t l = 0; l < g->layers; l++) {
        cot_params_push_number(p, l);
        x = block(p, g, x);
        cot_params_pop(p);
    }
    cot_params_pop(p);
    return cot_matmul(cot_nn_layer_norm(p, "ln_f", x, 1e-5), cot_transpose(cot_params_get(p, "wte.weight")));
}

cot_var gpt_loss(cot_params *p, cot_var tokens, cot_var next) {
    const gpt *g = cot_params_user(p);
    int64_t    n = cot_size(tokens);
    cot_var    logits = cot_reshape(gpt_net(p, tokens), COT_SHAPE(n, g->vocabulary));
    return cot_softmax_cross_entropy(logits, cot_reshape(next, COT_SHAPE(n)));
}

cot_optim_options gpt_optim(cot_params *p) {
    static const cot_optim_group groups[] = {{1, 0.1}, {1, 0}};
    cot_params_group(p, "*.bias", 1);
    cot_params_group(p, "*ln_?.weight", 1);
    return (cot_optim_options){.kind = COT_ADAMW, .beta2 = 0.99, .groups = groups, .group_count = 2};
}

/* "h.0.attn.in_proj.weight" is "h.0.attn.c_attn.weight" there, and out_proj c_proj. */
static const char *theirs(const char *name, char *to, size_t size, void *user) {
    static const char *const ours[] = {"attn.in_proj", "attn.out_proj"};
    static const char *const names[] = {"attn.c_attn", "attn.c_proj"};
    (void)user;
    for (int k = 0; k < 2; k++) {
        const char *at = strstr(name, ours[k]);
        if (!at) continue;
        snprintf(to, size, "%.*s%s%s", (int)(at - name), name, names[k], at + strlen(ours[k]));
        return to;
    }
    return name;
}

cot_status gpt_load(cot_params *p, const char *path, char *why, size_t room) {
    /* masks, and the last layer where it is listed though it is the table of tokens */
    static const char *const no_parameters[] = {"*attn.bias", "*attn.masked_bias", "lm_head.weight"};
    cot_file *f = cot_file_open(path, NULL);
    if (!f || cot_file_status(f) == COT_MEMORY) {
        cot_file_close(f);
        snprintf(why, room, "out of memory for the list of %s", path);
        return COT_MEMORY;
    }
    bool             inner = cot_file_find(f, "transformer.wte.weight") >= 0;
    cot_load_options o = {.prefix = inner ? "transformer." : NULL, .rename = theirs, .ignores = 3,
                          .ignore = no_parameters};
    /* a file of ours has our names */
    if (cot_file_find(f, "h.0.attn.in_proj.weight") >= 0) o.rename = NULL;
    cot_file_close(f);
    return cot_params_load(p, path, &o, why, room);
}
