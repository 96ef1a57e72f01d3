/* gpt.c: a decoder-only transformer of 4 layers, pre-norm, tied head: forward, backward, AdamW.
 * Shapes in comments: B batch, T positions, D width, H heads, V tokens. */
#include "workloads/workloads.h"

enum {
    VOCABULARY = 256,
    POSITIONS  = 128,
    BATCH      = SIZED(8, 4),
    LAYERS     = SIZED(4, 2),
    HEADS      = 4,
    WIDTH      = 128,
    EACH       = WIDTH / HEADS,
    ROWS       = BATCH * POSITIONS
};
/* weights of a layer */
enum { QKV, QKV_BIAS, OUT, OUT_BIAS, UP, UP_BIAS, DOWN, DOWN_BIAS, NORM1, NORM1_BIAS, NORM2, NORM2_BIAS, PER_LAYER };
enum { TOKENS, PLACES, NORM, NORM_BIAS, LAYER0, COUNT = LAYER0 + LAYERS * PER_LAYER };

typedef struct gpt {
    cot_tape *t;
    cot_mark  start;
    cot_var   p[COUNT], input, target;
    void     *m[COUNT], *v[COUNT];
    int64_t   step;
} gpt;

static cot_var full_leaf(cot_tape *t, int64_t n, float value) {
    float *data = must(malloc((size_t)n * sizeof *data));
    for (int64_t i = 0; i < n; i++) data[i] = value;
    cot_var x = cot_tensor(t, COT_F32, COT_SHAPE(n), data);
    free(data);
    return x;
}

static void *make_gpt(void) {
    const double scale = 0.02 * sqrt(3);
    uint64_t     seed = 100;
    gpt         *g = must(calloc(1, sizeof *g));
    cot_tape    *t = g->t = must(cot_tape_create(NULL));
    g->p[TOKENS] = weights(t, seed++, COT_SHAPE(VOCABULARY, WIDTH), scale);
    g->p[PLACES] = weights(t, seed++, COT_SHAPE(POSITIONS, WIDTH), scale);
    for (int l = 0; l < LAYERS; l++) {
        cot_var *p = g->p + LAYER0 + l * PER_LAYER;
        p[QKV] = weights(t, seed++, COT_SHAPE(WIDTH, 3 * WIDTH), scale);
        p[OUT] = weights(t, seed++, COT_SHAPE(WIDTH, WIDTH), scale);
        p[UP] = weights(t, seed++, COT_SHAPE(WIDTH, 4 * WIDTH), scale);
        p[DOWN] = weights(t, seed++, COT_SHAPE(4 * WIDTH, WIDTH), scale);
        p[QKV_BIAS] = full_leaf(t, 3 * WIDTH, 0), p[OUT_BIAS] = full_leaf(t, WIDTH, 0);
        p[UP_BIAS] = full_leaf(t, 4 * WIDTH, 0), p[DOWN_BIAS] = full_leaf(t, WIDTH, 0);
        p[NORM1] = full_leaf(t, WIDTH, 1), p[NORM1_BIAS] = full_leaf(t, WIDTH, 0);
        p[NORM2] = full_leaf(t, WIDTH, 1), p[NORM2_BIAS] = full_leaf(t, WIDTH, 0);
    }
    g->p[NORM] = full_leaf(t, WIDTH, 1), g->p[NORM_BIAS] = full_leaf(t, WIDTH, 0);
    int64_t token[ROWS], target[ROWS];
    for (int64_t i = 0; i < ROWS; i++) token[i] = 7919 * i % VOCABULARY, target[i] = (31 * token[i] + 1) % VOCABULARY;
    g->input = cot_data(t, COT_I64, COT_SHAPE(BATCH, POSITIONS), token);
    g->target = cot_data(t, COT_I64, COT_SHAPE(ROWS), target);
    for (int k = 0; k < COUNT; k++) {
        size_t n = (size_t)cot_size(g->p[k]);
        g->m[k] = must(calloc(n, sizeof(float)));
        g->v[k] = must(calloc(n, sizeof(float)));
    }
    g->start = cot_tape_mark(t);
    return g;
}

/* (x - mean) / sqrt(variance + eps) · weight + bias over the last axis */
static cot_var normalised(cot_var x, cot_var weight, cot_var bias) { return cot_layer_norm(x, weight, bias, -1, 1e-5); }

static cot_var dense(cot_var x, const cot_var *p, int k) { return cot_add(cot_matmul(x, p[k]), p[k + 1]); }

/* x (B·T, D) -> (B·T, D) */
static cot_var attend(cot_var x, const cot_var *p) {
    cot_var qkv = cot_reshape(dense(x, p, QKV), COT_SHAPE(BATCH, POSITIONS, 3, HEADS, EACH)), part[3];
    qkv = cot_permute(qkv, COT_AXES(2, 0, 3, 1, 4)); /* (3, B, H, T, D/H) */
    for (int i = 0; i < 3; i++) part[i] = cot_index(qkv, 0, i);
    cot_var z = cot_attention(part[0], part[1], part[2], &(cot_attention_options){.causal = true});
    return dense(cot_reshape(cot_permute(z, COT_AXES(0, 2, 1, 3)), COT_SHAPE(ROWS, WIDTH)), p, OUT);
}

static double gpt_step(void *state) {
    gpt    *g = state;
    cot_var x = cot_add(cot_take(g->p[TOKENS], g->input, 0), g->p[PLACES]); /* (B, T, D) */
    x = cot_reshape(x, COT_SHAPE(ROWS, WIDTH));
    for (int l = 0; l < LAYERS; l++) {
        const cot_var *p = g->p + LAYER0 + l * PER_LAYER;
        x = cot_add(x, attend(normalised(x, p[NORM1], p[NORM1_BIAS]), p));
        cot_var up = cot_gelu_tanh(dense(normalised(x, p[NORM2], p[NORM2_BIAS]), p, UP));
        x = cot_add(x, dense(up, p, DOWN));
    }
    /* (B·T, V) */
    cot_var logits = cot_matmul(normalised(x, g->p[NORM], g->p[NORM_BIAS]), cot_transpose(g->p[TOKENS]));
    cot_var loss = cot_softmax_cross_entropy(logits, g->target);
    double  value = cot_value(loss);
    cot_backward(loss);
    cot_adamw_step(COUNT, g->p, g->m, g->v, (cot_adamw){++g->step, 1e-4, 0.9, 0.999, 1e-8, 0.01});
    check(g->t);
    cot_tape_zero_grads(g->t);
    cot_tape_rewind(g->t, g->start);
    return value;
}

static void gpt_destroy(void *state) {
    gpt *g = state;
    for (int k = 0; k < COUNT; k++) free(g->m[k]), free(g->v[k]);
    cot_tape_destroy(g->t);
    free(g);
}

const workload gpt_workload = {"gpt_nano", "f32", make_gpt, gpt_step, gpt_destroy, 5.567428, SIZED(1e-6, 0)};
