/* models.h: small nets that are trained for two steps, for the tests of memory. Each leaves a
 * number for every gradient, in which all its bits take part. */
#ifndef COT_TEST_MODELS_H
#define COT_TEST_MODELS_H

#include <stdint.h>

#include <cotangent.h>
#include <cotangent_nn.h>

enum { MODEL_NUMBERS = 512, MODEL_STEPS = 2 };

/* A net, and an input for it. The loss is the mean of the squares of what it gives. */
typedef struct model {
    cot_net   net;
    cot_dtype dtype; /* of the input */
    cot_shape shape;
} model;

/* All bits of n bytes, as a number. */
static inline double bits_of(const unsigned char *bytes, size_t n) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) h = (h ^ bytes[i]) * 1099511628211u;
    return (double)(h >> 12);
}

/* ---- nets ------------------------------------------------------------------------------------ */

static inline cot_var deep_net(cot_params *p, cot_var x) {
    for (int i = 0; i < 64; i++) {
        cot_params_push_number(p, i);
        x = cot_tanh(cot_nn_linear(p, "fc", x, 32));
        cot_params_pop(p);
    }
    return x;
}

static inline cot_var conv_net(cot_params *p, cot_var x) {
    for (int i = 0; i < 16; i++) {
        cot_params_push_number(p, i);
        cot_conv_options same = {.padding = {1, 1}};
        x = cot_relu(cot_nn_conv(p, "conv", x, 4, COT_SHAPE(3, 3), true, same));
        if (i % 4 == 3) x = cot_nn_batch_norm(p, "norm", x, 0, 0);
        if (i % 4 == 1) x = cot_nn_dropout(p, "drop", x, 0.25);
        cot_params_pop(p);
    }
    return cot_nn_dense(p, "head", cot_mean(x, COT_AXES(2, 3)), 10);
}

static inline cot_var block_net(cot_params *p, cot_var tokens) {
    enum { WIDTH = 32 };
    cot_var x = cot_nn_embedding(p, "wte", tokens, 50, WIDTH, -1);
    for (int i = 0; i < 12; i++) {
        cot_params_push_number(p, i);
        cot_nn_attention_options o = {.heads = 4, .causal = true};
        cot_var a = cot_nn_attention(p, "attn", cot_nn_layer_norm(p, "ln1", x, 0), &o);
        x = cot_add(x, cot_nn_dropout(p, "drop", a, 0.1));
        cot_var h = cot_nn_dense(p, "fc", cot_nn_layer_norm(p, "ln2", x, 0), 4 * WIDTH);
        x = cot_add(x, cot_nn_dense(p, "proj", cot_gelu(h), WIDTH));
        cot_params_pop(p);
    }
    return cot_nn_linear(p, "head", cot_nn_layer_norm(p, "ln", x, 0), 50);
}

/* Few wide layers. */
static inline cot_var wide_net(cot_params *p, cot_var x) {
    x = cot_relu(cot_nn_dense(p, "one", x, 128));
    x = cot_relu(cot_nn_dense(p, "two", x, 128));
    return cot_nn_dense(p, "three", x, 10);
}

/* Neighbours on a ring, both ways, and the node itself. */
static inline cot_var graph_net(cot_params *p, cot_var x) {
    for (int i = 0; i < 3; i++) {
        cot_params_push_number(p, i);
        cot_var h = cot_nn_linear(p, "fc", cot_nn_dropout(p, "drop", x, 0.5), 24);
        cot_var on = cot_concat(2, (cot_var[]){cot_slice(h, 0, 1, COT_END, 1), cot_slice(h, 0, 0, 1, 1)}, 0);
        x = cot_relu(cot_div(cot_add(cot_add(h, on), cot_flip(on, COT_AXES(0))), 3));
        cot_params_pop(p);
    }
    return x;
}

static model deep_stack[1]   = {{deep_net, COT_F32, {2, {256, 32}}}};
static model convolutions[1] = {{conv_net, COT_F32, {4, {8, 3, 12, 12}}}};
static model transformer[1]  = {{block_net, COT_I64, {2, {16, 16}}}};

/* ---- training -------------------------------------------------------------------------------- */

static inline cot_var model_input(cot_tape *t, const model *m) {
    static float   floats[1 << 14];
    static int64_t whole[1 << 10];
    for (int i = 0; i < 1 << 14; i++) floats[i] = (float)((i * 7919) % 1009) / 1009 - 0.5f;
    for (int i = 0; i < 1 << 10; i++) whole[i] = (i * 7919) % 50;
    return cot_data(t, m->dtype, m->shape, m->dtype == COT_I64 ? (void *)whole : floats);
}

/* Two steps of gradient descent; numbers[0 …): the losses, then one for each gradient of the last
 * step. Runs to its end whatever fails. */
static inline void model_run(model *m, cot_tape *t, double *numbers) {
    static double buffer[1 << 16];
    int          n = 0, at = 0;
    cot_params  *p = cot_params_create(t);
    cot_var      x = model_input(t, m);
    cot_params_init(p, m->net, x, cot_key_of(3));
    const cot_var *w = cot_params_vars(p, &n);
    for (int step = 0; step < MODEL_STEPS; step++) {
        cot_mark mark = cot_tape_mark(t);
        cot_params_set_key(p, cot_key_of((uint64_t)step));
        cot_var loss = cot_mean(cot_square(m->net(p, x)), COT_ALL);
        cot_backward(loss);
        numbers[at++] = cot_value(loss);
        if (cot_tape_status(t) != COT_OK) break; /* the rewind would clear it */
        if (step == MODEL_STEPS - 1) break;
        cot_tape_rewind(t, mark);
        cot_sgd_step(n, w, 0.1);
        cot_tape_zero_grads(t);
    }
    for (int k = 0; k < n && at < MODEL_NUMBERS && cot_tape_status(t) == COT_OK; k++) {
        int64_t size = cot_size(w[k]);
        cot_read_grad(w[k], buffer, size);
        numbers[at++] = bits_of((const unsigned char *)buffer, (size_t)size * sizeof *buffer);
    }
    cot_params_destroy(p);
}

#endif
