/* gpt.c: a decoder-only transformer of 4 layers, pre-norm, tied head: forward, backward, AdamW.
 * Shapes in comments: B batch, T positions, D width, H heads, V tokens. */
#include "workloads/compiled.h"

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

/* The loss; p: all weights. */
static cot_var loss_of(const cot_var *p, cot_var input, cot_var target) {
    cot_var x = cot_reshape(cot_add(cot_take(p[TOKENS], input, 0), p[PLACES]), COT_SHAPE(ROWS, WIDTH));
    for (int l = 0; l < LAYERS; l++) {
        const cot_var *w = p + LAYER0 + l * PER_LAYER;
        x = cot_add(x, attend(normalised(x, w[NORM1], w[NORM1_BIAS]), w));
        cot_var up = cot_gelu_tanh(dense(normalised(x, w[NORM2], w[NORM2_BIAS]), w, UP));
        x = cot_add(x, dense(up, w, DOWN));
    }
    /* (B·T, V) */
    cot_var logits = cot_matmul(normalised(x, p[NORM], p[NORM_BIAS]), cot_transpose(p[TOKENS]));
    return cot_softmax_cross_entropy(logits, target);
}

static double gpt_function(void *state) {
    const gpt *g = state;
    double     value = cot_value(loss_of(g->p, g->input, g->target));
    check(g->t);
    cot_tape_rewind(g->t, g->start);
    return value;
}

static double gpt_descend(gpt *g, bool step) {
    cot_var loss = loss_of(g->p, g->input, g->target);
    double  value = cot_value(loss);
    cot_backward(loss);
    if (step) cot_adamw_step(COUNT, g->p, g->m, g->v, (cot_adamw){++g->step, 1e-4, 0.9, 0.999, 1e-8, 0.01});
    check(g->t);
    cot_tape_zero_grads(g->t);
    cot_tape_rewind(g->t, g->start);
    return value;
}
static double gpt_gradient(void *state) { return gpt_descend(state, false); }
static double gpt_step(void *state) { return gpt_descend(state, true); }

static void gpt_destroy(void *state) {
    gpt *g = state;
    for (int k = 0; k < COUNT; k++) free(g->m[k]), free(g->v[k]);
    cot_tape_destroy(g->t);
    free(g);
}

const workload gpt_workloads[3] = {
    {"gpt_nano", "f32", make_gpt, gpt_step, gpt_destroy, 5.567428, SIZED(1e-6, 0), NULL},
    {"gpt_nano_function", "f32", make_gpt, gpt_function, gpt_destroy, 5.567428, SIZED(1e-6, 0), NULL},
    {"gpt_nano_gradient", "f32", make_gpt, gpt_gradient, gpt_destroy, 5.567428, SIZED(1e-6, 0), NULL},
};

/* ---- as a program ---------------------------------------------------------------------------- */

/* Inputs: weights, their two moments, tokens, targets, and the number of the step. */
enum { M = COUNT, V = 2 * COUNT, IN = 3 * COUNT, GOAL, STEP, ALL };

static int loss(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cot_var *given = user;
    (void)n, (void)m;
    ys[0] = loss_of(xs, given[IN], given[GOAL]);
    return 0;
}

/* Outputs: the loss, weights, moments. */
static int descend(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var g[COUNT];
    (void)n, (void)m, (void)user;
    if (cot_value_and_grad(loss, (void *)(uintptr_t)xs, COUNT, xs, &ys[0], g) != COT_OK) return 1;
    static const cot_optim_options adamw = {.kind = COT_ADAMW, .decay = 0.01};
    return cot_optim_record(&adamw, cot_number(1e-4), xs[STEP], COUNT, g, xs, NULL, ys + 1) != COT_OK;
}

static void before(compiled *c) { *(int64_t *)(uintptr_t)c->in[STEP] = c->step; }

/* Weights as make_gpt makes them, row-major. */
static cot_shape shape_of(int k) {
    static const cot_shape each[PER_LAYER] = {
        {2, {WIDTH, 3 * WIDTH}}, {1, {3 * WIDTH}}, {2, {WIDTH, WIDTH}}, {1, {WIDTH}}, {2, {WIDTH, 4 * WIDTH}},
        {1, {4 * WIDTH}}, {2, {4 * WIDTH, WIDTH}}, {1, {WIDTH}}, {1, {WIDTH}}, {1, {WIDTH}}, {1, {WIDTH}},
        {1, {WIDTH}}};
    if (k >= LAYER0) return each[(k - LAYER0) % PER_LAYER];
    return k == TOKENS ? COT_SHAPE(VOCABULARY, WIDTH) : k == PLACES ? COT_SHAPE(POSITIONS, WIDTH) : COT_SHAPE(WIDTH);
}

static void give(compiled *c, int k, int64_t size, float *data) {
    c->in[k] = compiled_take(c, data);
    c->out[1 + k] = data;
    c->in[M + k] = c->out[1 + M + k] = compiled_take(c, must(calloc((size_t)size, sizeof(float))));
    c->in[V + k] = c->out[1 + V + k] = compiled_take(c, must(calloc((size_t)size, sizeof(float))));
}

static void give_weights(compiled *c) {
    for (int k = 0; k < COUNT; k++) {
        static const int order[] = {QKV, OUT, UP, DOWN};
        cot_shape        shape = shape_of(k);
        int64_t          size = shape.dim[0] * (shape.ndim == 2 ? shape.dim[1] : 1);
        int              part = k < LAYER0 ? -1 : (k - LAYER0) % PER_LAYER, at = 0;
        bool             norm = k == NORM || part == NORM1 || part == NORM2;
        if (shape.ndim == 1) {
            float *data = must(calloc((size_t)size, sizeof *data));
            for (int64_t i = 0; norm && i < size; i++) data[i] = 1;
            give(c, k, size, data);
            continue;
        }
        while (part >= 0 && order[at] != part) at++;
        uint64_t seed = part < 0 ? 100 + (uint64_t)k : 102 + 4 * (uint64_t)((k - LAYER0) / PER_LAYER) + (uint64_t)at;
        give(c, k, size, uniform_f32(seed, size, 0.02 * sqrt(3)));
    }
}

static void give_tokens(compiled *c, int at) {
    int64_t *token = compiled_take(c, must(malloc(ROWS * sizeof *token)));
    int64_t *target = compiled_take(c, must(malloc(ROWS * sizeof *target)));
    for (int64_t i = 0; i < ROWS; i++) token[i] = 7919 * i % VOCABULARY, target[i] = (31 * token[i] + 1) % VOCABULARY;
    c->in[at] = token, c->in[at + 1] = target;
}

static const cot_type tokens_type = {COT_I64, {2, {BATCH, POSITIONS}}}, targets_type = {COT_I64, {1, {ROWS}}};

static void *compiled_gpt_make(void) {
    cot_type types[ALL];
    for (int k = 0; k < 3 * COUNT; k++) types[k] = (cot_type){COT_F32, shape_of(k % COUNT)};
    types[IN] = tokens_type;
    types[GOAL] = targets_type;
    types[STEP] = (cot_type){COT_I64, COT_SCALAR};
    compiled *c = compiled_make(descend, NULL, ALL, types, 1 + 3 * COUNT);
    give_weights(c);
    give_tokens(c, IN);
    c->in[STEP] = compiled_take(c, must(malloc(sizeof(int64_t))));
    c->out[0] = compiled_take(c, must(malloc(sizeof(float))));
    c->before = before;
    c->result = compiled_first_float;
    return c;
}

/* Inputs: weights, tokens, targets. */
static int loss_alone(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = loss_of(xs, xs[COUNT], xs[COUNT + 1]);
    return 0;
}

static void *make_alone(loss_goal goal) {
    cot_type types[COUNT + 2];
    asked    a = {loss_alone, NULL, COUNT, goal};
    for (int k = 0; k < COUNT; k++) types[k] = (cot_type){COT_F32, shape_of(k)};
    types[COUNT] = tokens_type, types[COUNT + 1] = targets_type;
    compiled *c = compiled_make(compiled_asked, &a, COUNT + 2, types, outputs_of(&a));
    give_weights(c); /* with moments that no input takes */
    give_tokens(c, COUNT);
    compiled_outputs(c, &a, types);
    return c;
}
static void *compiled_gpt_value(void) { return make_alone(VALUE); }
static void *compiled_gpt_slope(void) { return make_alone(GRADIENTS); }

const workload gpt_compiled_workloads[3] = {
    COMPILED("gpt_nano", "f32", compiled_gpt_make, 5.567428, SIZED(1e-6, 0)),
    COMPILED("gpt_nano_gradient", "f32", compiled_gpt_slope, 5.567428, SIZED(1e-6, 0)),
    COMPILED("gpt_nano_function", "f32", compiled_gpt_value, 5.567428, SIZED(1e-6, 0)),
};
