/* models.c: see models.h. tools/bench_memory_torch.py has the same nets in PyTorch. */
#include "memory/models.h"

#include <stdint.h>
#include <stdlib.h>

#ifdef BENCH_SMALL
#define SIZED(full, small) (small)
#else
#define SIZED(full, small) (full)
#endif

enum { LAYERS = SIZED(64, 8), WIDTH = SIZED(1024, 32), BATCH = SIZED(512, 16) };
enum { CONVS = SIZED(16, 4), CHANNELS = SIZED(32, 4), SIDE = SIZED(32, 8), IMAGES = SIZED(32, 2), CLASSES = 10 };
enum { BLOCKS = SIZED(12, 2), EMBED = SIZED(256, 16), HEADS = 4, CONTEXT = SIZED(128, 8), TEXTS = 8, TOKENS = 256 };

/* Numbers between -1 and 1. */
static cot_var numbers(cot_tape *t, cot_shape shape) {
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++) n *= shape.dim[i];
    float   *to = malloc((size_t)n * sizeof *to);
    unsigned seed = 1;
    for (int64_t k = 0; to && k < n; k++) {
        seed = seed * 1664525u + 1013904223u;
        to[k] = (float)((double)(seed >> 8) / 8388608 - 1);
    }
    cot_var x = cot_data(t, COT_F32, shape, to);
    free(to);
    return x;
}

/* 0, 7919, 2 · 7919, … below `below`. */
static cot_var whole(cot_tape *t, cot_shape shape, int64_t n, int64_t below) {
    int64_t *to = malloc((size_t)n * sizeof *to);
    for (int64_t k = 0; to && k < n; k++) to[k] = k * 7919 % below;
    cot_var x = cot_data(t, COT_I64, shape, to);
    free(to);
    return x;
}

static cot_var deep_input(cot_tape *t) { return numbers(t, COT_SHAPE(BATCH, WIDTH)); }

static cot_var deep_net(cot_params *p, cot_var x) {
    for (int i = 0; i < LAYERS; i++) {
        cot_params_push_number(p, i);
        x = cot_tanh(cot_nn_linear(p, "fc", x, WIDTH));
        cot_params_pop(p);
    }
    return x;
}

static cot_var deep_loss(cot_var y, cot_var x) { return cot_mse(y, x); }

static cot_var cnn_input(cot_tape *t) { return numbers(t, COT_SHAPE(IMAGES, 3, SIDE, SIDE)); }

static cot_var cnn_net(cot_params *p, cot_var x) {
    cot_conv_options same = {.padding = {1, 1}};
    for (int i = 0; i < CONVS; i++) {
        cot_params_push_number(p, i);
        x = cot_relu(cot_nn_conv(p, "conv", x, CHANNELS, COT_SHAPE(3, 3), true, same));
        cot_params_pop(p);
    }
    return cot_nn_dense(p, "head", cot_mean(x, COT_AXES(2, 3)), CLASSES);
}

static cot_var cnn_loss(cot_var y, cot_var x) {
    return cot_softmax_cross_entropy(y, whole(cot_tape_of(x), COT_SHAPE(IMAGES), IMAGES, CLASSES));
}

static cot_var gpt_input(cot_tape *t) { return whole(t, COT_SHAPE(TEXTS, CONTEXT), TEXTS * CONTEXT, TOKENS); }

static cot_var gpt_net(cot_params *p, cot_var tokens) {
    cot_nn_attention_options o = {.heads = HEADS, .causal = true};
    cot_var                  x = cot_nn_embedding(p, "wte", tokens, TOKENS, EMBED, -1);
    for (int i = 0; i < BLOCKS; i++) {
        cot_params_push_number(p, i);
        x = cot_add(x, cot_nn_attention(p, "attn", cot_nn_layer_norm(p, "ln1", x, 0), &o));
        cot_var h = cot_nn_dense(p, "fc", cot_nn_layer_norm(p, "ln2", x, 0), 4 * EMBED);
        x = cot_add(x, cot_nn_dense(p, "proj", cot_gelu(h), EMBED));
        cot_params_pop(p);
    }
    return cot_nn_linear(p, "head", cot_nn_layer_norm(p, "ln", x, 0), TOKENS);
}

static cot_var gpt_loss(cot_var y, cot_var x) {
    return cot_softmax_cross_entropy(cot_reshape(y, COT_SHAPE(TEXTS * CONTEXT, TOKENS)),
                                     cot_reshape(x, COT_SHAPE(TEXTS * CONTEXT)));
}

const model models[MODELS] = {
    {"deep", "64 dense layers of 1024, batch 512 (deep_ckpt without segments)", deep_net, deep_input, deep_loss},
    {"cnn", "16 convolutions of 32 channels, 32 images of 32 x 32", cnn_net, cnn_input, cnn_loss},
    {"gpt", "a GPT of 12 blocks of 256, 8 texts of 128 tokens", gpt_net, gpt_input, gpt_loss},
};
