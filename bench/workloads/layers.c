/* layers.c: mlp, cnn and gpt_nano again, written with the layers of the library.
 *
 * They begin with the same numbers as the ones put together by hand, and must give the same digits
 * (tests/house/check_compiled_workloads.sh): their times beside those are what layers cost. */
#include "workloads/workloads.h"

enum { VOCABULARY = 256, POSITIONS = 128, BATCH = SIZED(8, 4), BLOCKS = SIZED(4, 2), HEADS = 4, WIDTH = 128 };

typedef struct model {
    cot_tape      *t;
    cot_params    *p;
    cot_mark       start;
    cot_net        net;
    cot_var        x, target;
    const int64_t *sizes; /* of an mlp, 0 behind the last */
    int            count;
    void         **moment; /* two for each leaf; NULL: SGD */
    int64_t        step;
    bool           squared;
} model;

/* Runs the net once, then gives weights, what has two axes or more, the numbers of seed, seed + 1,
 * … Biases are 0. No scales: 1/sqrt of the first extent. */
static void begin(model *m, uint64_t seed, int scales, const double *scale) {
    cot_params_init_with(m->p, "*.bias", (cot_init){COT_INIT_CONSTANT, 0});
    cot_params_init(m->p, m->net, m->x, cot_key_of(0));
    check(m->t);
    const cot_var *w = cot_params_vars(m->p, &m->count);
    for (int k = 0, at = 0; k < m->count; k++) {
        cot_shape s = cot_shape_of(w[k]);
        if (s.ndim < 2) continue;
        double by   = scales ? scale[at < scales ? at : scales - 1] : 1 / sqrt((double)s.dim[0]);
        float *data = uniform_f32(seed + (uint64_t)at++, cot_size(w[k]), by);
        cot_assign_data(w[k], data);
        free(data);
    }
    m->start = cot_tape_mark(m->t);
}

static model *make(cot_net net) {
    model *m = must(calloc(1, sizeof *m));
    m->t     = must(cot_tape_create(NULL));
    m->p     = must(cot_params_create(m->t));
    m->net   = net;
    cot_params_set_user(m->p, m);
    return m;
}

static double layers_step(void *state) {
    model         *m = state;
    const cot_var *w = cot_params_vars(m->p, NULL);
    cot_var        y = m->net(m->p, m->x), loss = (m->squared ? cot_mse : cot_softmax_cross_entropy)(y, m->target);
    double         value = cot_value(loss);
    cot_backward(loss);
    if (m->moment)
        cot_adamw_step(m->count, w, m->moment, m->moment + m->count,
                       (cot_adamw){++m->step, 1e-4, 0.9, 0.999, 1e-8, 0.01});
    else
        cot_sgd_step(m->count, w, 0.01);
    check(m->t);
    cot_tape_zero_grads(m->t);
    cot_tape_rewind(m->t, m->start);
    return value;
}

static void layers_destroy(void *state) {
    model *m = state;
    for (int k = 0; m->moment && k < 2 * m->count; k++) free(m->moment[k]);
    free(m->moment);
    cot_params_destroy(m->p);
    cot_tape_destroy(m->t);
    free(m);
}

static cot_var labels(cot_tape *t, int64_t n, int64_t classes) {
    int64_t *y = must(malloc((size_t)n * sizeof *y));
    for (int64_t i = 0; i < n; i++) y[i] = i % classes;
    cot_var v = cot_data(t, COT_I64, COT_SHAPE(n), y);
    free(y);
    return v;
}

static cot_var inputs(cot_tape *t, uint64_t seed, cot_shape shape) {
    int64_t n = 1;
    for (int k = 0; k < shape.ndim; k++) n *= shape.dim[k];
    float  *data = uniform_f32(seed, n, 1);
    cot_var x    = cot_data(t, COT_F32, shape, data);
    free(data);
    return x;
}

/* ---- mlp ------------------------------------------------------------------------------------- */

static cot_var mlp(cot_params *p, cot_var x) {
    static const char *const names[] = {"fc1", "fc2", "fc3"};
    const int64_t           *n       = ((const model *)cot_params_user(p))->sizes;
    for (int k = 1; n[k]; k++) {
        x = cot_nn_dense(p, names[k - 1], x, n[k]);
        if (n[k + 1]) x = cot_relu(x);
    }
    return x;
}

static void *make_small(void) {
    static const int64_t sizes[] = {10, 32, 32, 1, 0};
    model               *m       = make(mlp);
    m->sizes = sizes, m->squared = true;
    m->x      = inputs(m->t, 1, COT_SHAPE(16, 10));
    m->target = inputs(m->t, 2, COT_SHAPE(16, 1));
    return begin(m, 10, 0, NULL), m;
}

static void *make_mlp(void) {
    static const int64_t sizes[] = {784, 512, 512, 10, 0};
    model               *m       = make(mlp);
    m->sizes                     = sizes;
    m->x                         = inputs(m->t, 1, COT_SHAPE(128, 784));
    m->target                    = labels(m->t, 128, 10);
    return begin(m, 10, 0, NULL), m;
}

/* ---- cnn ------------------------------------------------------------------------------------- */

static cot_var cnn(cot_params *p, cot_var x) {
    x = cot_nn_conv(p, "conv1", x, 16, COT_SHAPE(5, 5), true, COT_CONV(.padding = {2, 2}));
    x = cot_max_pool2d(cot_relu(x), COT_POOL(.window = {2, 2}));
    x = cot_nn_conv(p, "conv2", x, 32, COT_SHAPE(5, 5), true, COT_CONV(.padding = {2, 2}));
    x = cot_max_pool2d(cot_relu(x), COT_POOL(.window = {2, 2}));
    return cot_nn_dense(p, "fc", cot_reshape(x, COT_SHAPE(64, -1)), 10);
}

static void *make_cnn(void) {
    model *m  = make(cnn);
    m->x      = inputs(m->t, 6, COT_SHAPE(64, 1, 28, 28));
    m->target = labels(m->t, 64, 10);
    return begin(m, 40, 3, (double[]){0.2, 0.05, 0.025}), m;
}

/* ---- gpt_nano -------------------------------------------------------------------------------- */

static cot_var gpt(cot_params *p, cot_var tokens) {
    cot_var x = cot_nn_embedding(p, "wte", tokens, VOCABULARY, WIDTH, COT_NO_PADDING);
    x = cot_add(x, cot_nn_parameter(p, "wpe", COT_SHAPE(POSITIONS, WIDTH), x, (cot_init){COT_INIT_NORMAL, 0.02}));
    for (int l = 0; l < BLOCKS; l++) {
        cot_params_push_number(p, l);
        cot_nn_attention_options o = {.heads = HEADS, .causal = true};
        x                          = cot_add(x, cot_nn_attention(p, "attn", cot_nn_layer_norm(p, "ln1", x, 0), &o));
        cot_var up                 = cot_gelu_tanh(cot_nn_dense(p, "up", cot_nn_layer_norm(p, "ln2", x, 0), 4 * WIDTH));
        x                          = cot_add(x, cot_nn_dense(p, "down", up, WIDTH));
        cot_params_pop(p);
    }
    return cot_matmul(cot_nn_layer_norm(p, "ln", x, 0), cot_transpose(cot_params_get(p, "wte.weight")));
}

static void *make_gpt(void) {
    model  *m = make(gpt);
    int64_t token[BATCH * POSITIONS], target[BATCH * POSITIONS];
    for (int64_t i = 0; i < BATCH * POSITIONS; i++)
        token[i] = 7919 * i % VOCABULARY, target[i] = (31 * token[i] + 1) % VOCABULARY;
    m->x      = cot_data(m->t, COT_I64, COT_SHAPE(BATCH, POSITIONS), token);
    m->target = cot_data(m->t, COT_I64, COT_SHAPE(BATCH, POSITIONS), target);
    begin(m, 100, 1, (double[]){0.02 * sqrt(3)});
    m->moment = must(calloc(2 * (size_t)m->count, sizeof *m->moment));
    for (int k = 0; k < 2 * m->count; k++)
        m->moment[k] = must(calloc((size_t)cot_size(cot_params_vars(m->p, NULL)[k % m->count]), sizeof(float)));
    return m;
}

const workload layer_workloads[4] = {
    {"mlp_small_layers", "f32", make_small, layers_step, layers_destroy, 0.270273, 3e-6, NULL},
    {"mlp_layers", "f32", make_mlp, layers_step, layers_destroy, 2.302103, 1e-6, NULL},
    {"cnn_layers", "f32", make_cnn, layers_step, layers_destroy, 2.295677, 1e-6, NULL},
    {"gpt_nano_layers", "f32", make_gpt, layers_step, layers_destroy, 5.567428, SIZED(1e-6, 0), NULL},
};
