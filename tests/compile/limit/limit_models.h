/* limit_models.h: training steps of small nets as functions to compile, for tests of programs under
 * a memory limit. The first inputs are data, the others weights; outputs are the loss and the
 * gradient by each weight. */
#ifndef COT_LIMIT_MODELS_H
#define COT_LIMIT_MODELS_H

#include "support/body_test.h"

#include <cotangent.h>
#include <cotangent_program.h>

enum { MOST_INPUTS = 80 };

typedef struct limit_model {
    const char *name;
    cot_fn      loss;
    int         data, inputs;
    cot_type    type[MOST_INPUTS];
} limit_model;

/* ---- 48 dense layers ------------------------------------------------------------------------- */

enum { DEEP_LAYERS = 48, DEEP_WIDTH = 48, DEEP_BATCH = 512 };

BODY(deep_loss) {
    UNUSED;
    cot_var x = xs[0];
    for (int i = 2; i < n; i++) x = cot_tanh(cot_matmul(x, xs[i]));
    ys[0] = cot_mse(x, xs[1]);
    return 0;
}

static inline limit_model deep_model(void) {
    limit_model m = {"deep stack", deep_loss, 2, 2 + DEEP_LAYERS, {{0}}};
    for (int i = 0; i < m.inputs; i++)
        m.type[i] = (cot_type){COT_F32, COT_SHAPE(i < 2 ? DEEP_BATCH : DEEP_WIDTH, DEEP_WIDTH)};
    return m;
}

/* ---- ten convolutions with norms, dropout and pools ------------------------------------------ */

enum { CNN_LAYERS = 10, CNN_CHANNELS = 6 };

/* xs: the step, images, then a kernel, and weight and bias of its norm, for each layer. */
BODY(cnn_loss) {
    UNUSED;
    cot_var x = xs[1], mean, variance;
    cot_key key = cot_key_at(cot_key_of(7), xs[0]);
    for (int i = 0; i < CNN_LAYERS; i++) {
        const cot_var *w = xs + 2 + 3 * i;
        x = cot_conv2d(x, w[0], COT_CONV(.padding = {1, 1}));
        x = cot_relu(cot_batch_norm(x, COT_AXES(0, 2, 3), w[1], w[2], 1e-5, &mean, &variance));
        if (i == 4) x = cot_max_pool2d(x, (cot_pool_options){.window = {2, 2}});
        if (i % 3 == 2) x = cot_dropout(x, 0.25, key);
    }
    ys[0] = cot_mean(cot_square(x), COT_ALL);
    return 0;
}

static inline limit_model cnn_model(void) {
    limit_model m = {"convolutions", cnn_loss, 2, 2 + 3 * CNN_LAYERS, {{0}}};
    m.type[0] = (cot_type){COT_I64, COT_SCALAR};
    m.type[1] = (cot_type){COT_F32, COT_SHAPE(8, 3, 20, 20)};
    for (int i = 0; i < CNN_LAYERS; i++) {
        m.type[2 + 3 * i] = (cot_type){COT_F32, COT_SHAPE(CNN_CHANNELS, i ? CNN_CHANNELS : 3, 3, 3)};
        m.type[3 + 3 * i] = m.type[4 + 3 * i] = (cot_type){COT_F32, COT_SHAPE(CNN_CHANNELS)};
    }
    return m;
}

/* ---- six blocks of a transformer ------------------------------------------------------------- */

enum { GPT_BLOCKS = 6, GPT_WIDTH = 32, GPT_HEADS = 2, GPT_BATCH = 8, GPT_TOKENS = 32, GPT_WORDS = 24, GPT_EACH = 8 };

static inline cot_var gpt_heads(cot_var x) {
    x = cot_reshape(x, COT_SHAPE(GPT_BATCH, GPT_TOKENS, GPT_HEADS, GPT_WIDTH / GPT_HEADS));
    return cot_permute(x, COT_AXES(0, 2, 1, 3));
}

/* w: norm, q, k, v, out, norm, up, down. */
static inline cot_var gpt_block(cot_var x, const cot_var *w) {
    cot_var h = cot_layer_norm(x, w[0], COT_NONE, -1, 1e-5);
    cot_var a = cot_attention(gpt_heads(cot_matmul(h, w[1])), gpt_heads(cot_matmul(h, w[2])),
                              gpt_heads(cot_matmul(h, w[3])), &(cot_attention_options){.causal = true});
    a = cot_reshape(cot_permute(a, COT_AXES(0, 2, 1, 3)), COT_SHAPE(GPT_BATCH * GPT_TOKENS, GPT_WIDTH));
    x = cot_add(x, cot_matmul(a, w[4]));
    h = cot_layer_norm(x, w[5], COT_NONE, -1, 1e-5);
    return cot_add(x, cot_matmul(cot_gelu(cot_matmul(h, w[6])), w[7]));
}

/* xs: tokens, targets, embeddings, then the weights of blocks. */
BODY(gpt_loss) {
    UNUSED;
    cot_var x = cot_take(xs[2], xs[0], 0);
    for (int i = 0; i < GPT_BLOCKS; i++) x = gpt_block(x, xs + 3 + GPT_EACH * i);
    ys[0] = cot_mean(cot_softmax_cross_entropy(cot_matmul(x, cot_transpose(xs[2])), xs[1]), COT_ALL);
    return 0;
}

static inline limit_model gpt_model(void) {
    limit_model m = {"transformer", gpt_loss, 2, 3 + GPT_EACH * GPT_BLOCKS, {{0}}};
    const int   rows[GPT_EACH] = {0, 1, 1, 1, 1, 0, 1, 4}, columns[GPT_EACH] = {1, 1, 1, 1, 1, 1, 4, 1};
    m.type[0] = m.type[1] = (cot_type){COT_I64, COT_SHAPE(GPT_BATCH * GPT_TOKENS)};
    m.type[2] = (cot_type){COT_F32, COT_SHAPE(GPT_WORDS, GPT_WIDTH)};
    for (int i = 3; i < m.inputs; i++) {
        int j = (i - 3) % GPT_EACH, width = columns[j] * GPT_WIDTH;
        cot_shape shape = rows[j] ? COT_SHAPE(rows[j] * GPT_WIDTH, width) : COT_SHAPE(width);
        m.type[i] = (cot_type){COT_F32, shape};
    }
    return m;
}

/* ---- the step -------------------------------------------------------------------------------- */

/* The loss as a function of the weights; the data are behind them. */
typedef struct limit_loss { const limit_model *m; const cot_var *data; } limit_loss;

static inline int limit_loss_of(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const limit_loss *l = user;
    cot_var           all[MOST_INPUTS];
    for (int i = 0; i < l->m->data; i++) all[i] = l->data[i];
    for (int i = 0; i < n; i++) all[l->m->data + i] = xs[i];
    return l->m->loss(l->m->inputs, all, m, ys, NULL);
}

static inline int limit_step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const limit_model *model = user;
    limit_loss         l = {model, xs};
    (void)m;
    cot_value_and_grad(limit_loss_of, &l, n - model->data, xs + model->data, &ys[0], ys + 1);
    return cot_tape_status(xs[0].tape) == COT_OK ? 0 : 1;
}

static inline cot_program *limit_compile(limit_model *m, const cot_compile_options *o) {
    return cot_compile(limit_step, m, m->inputs, m->type, 1 + m->inputs - m->data, o);
}

#endif
