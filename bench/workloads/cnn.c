/* cnn.c: two convolutions with ReLU and pooling, a dense layer: forward, backward, a gradient
 * step. */
#include "workloads/compiled.h"

enum { BATCH = 64, SIDE = 28, CLASSES = 10, FEATURES = 1568 };
enum { CONV1, BIAS1, CONV2, BIAS2, DENSE, BIAS3, COUNT };

typedef struct cnn {
    cot_tape *t;
    cot_mark  start;
    cot_var   x, target, p[COUNT];
} cnn;

static void *cnn_make(void) {
    cnn      *c = must(calloc(1, sizeof *c));
    cot_tape *t = c->t = must(cot_tape_create(NULL));
    float    *x = uniform_f32(6, BATCH * SIDE * SIDE, 1);
    int64_t   label[BATCH];
    for (int i = 0; i < BATCH; i++) label[i] = i % CLASSES;
    c->x = cot_data(t, COT_F32, COT_SHAPE(BATCH, 1, SIDE, SIDE), x);
    c->target = cot_data(t, COT_I64, COT_SHAPE(BATCH), label);
    c->p[CONV1] = weights(t, 40, COT_SHAPE(16, 1, 5, 5), 0.2);
    c->p[BIAS1] = cot_tensor(t, COT_F32, COT_SHAPE(16, 1, 1), NULL);
    c->p[CONV2] = weights(t, 41, COT_SHAPE(32, 16, 5, 5), 0.05);
    c->p[BIAS2] = cot_tensor(t, COT_F32, COT_SHAPE(32, 1, 1), NULL);
    c->p[DENSE] = weights(t, 42, COT_SHAPE(FEATURES, CLASSES), 0.025);
    c->p[BIAS3] = cot_tensor(t, COT_F32, COT_SHAPE(CLASSES), NULL);
    free(x);
    c->start = cot_tape_mark(t);
    return c;
}

static cot_var layer(cot_var x, cot_var w, cot_var b) {
    cot_var z = cot_add(cot_conv2d(x, w, COT_CONV(.padding = {2, 2})), b);
    return cot_max_pool2d(cot_relu(z), COT_POOL(.window = {2, 2}));
}

static cot_var cnn_loss(const cnn *c) {
    cot_var h = layer(layer(c->x, c->p[CONV1], c->p[BIAS1]), c->p[CONV2], c->p[BIAS2]);
    cot_var z = cot_add(cot_matmul(cot_reshape(h, COT_SHAPE(BATCH, FEATURES)), c->p[DENSE]), c->p[BIAS3]);
    return cot_softmax_cross_entropy(z, c->target);
}

static double cnn_function(void *state) {
    const cnn *c = state;
    double     value = cot_value(cnn_loss(c));
    check(c->t);
    cot_tape_rewind(c->t, c->start);
    return value;
}

static double cnn_descend(cnn *c, bool step) {
    cot_var loss = cnn_loss(c);
    double  value = cot_value(loss);
    cot_backward(loss);
    if (step) cot_sgd_step(COUNT, c->p, 0.01);
    check(c->t);
    cot_tape_zero_grads(c->t);
    cot_tape_rewind(c->t, c->start);
    return value;
}
static double cnn_gradient(void *state) { return cnn_descend(state, false); }
static double cnn_step(void *state) { return cnn_descend(state, true); }

static void cnn_destroy(void *state) {
    cot_tape_destroy(((cnn *)state)->t);
    free(state);
}

static cot_var recorded_loss(void *state) { return cnn_loss(state); }

const recorded cnn_recorded = {"cnn", cnn_make, recorded_loss, cnn_step, cnn_destroy};

const workload cnn_workloads[3] = {
    {"cnn", "f32", cnn_make, cnn_step, cnn_destroy, 2.295677, 1e-6, NULL},
    {"cnn_function", "f32", cnn_make, cnn_function, cnn_destroy, 2.295677, 1e-6, NULL},
    {"cnn_gradient", "f32", cnn_make, cnn_gradient, cnn_destroy, 2.295677, 1e-6, NULL},
};

/* ---- as a program ---------------------------------------------------------------------------- */

enum { X = COUNT, TARGET, ALL };

static int network(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var h = layer(layer(xs[X], xs[CONV1], xs[BIAS1]), xs[CONV2], xs[BIAS2]);
    (void)n, (void)m, (void)user;
    ys[0] = cot_softmax_cross_entropy(
        cot_add(cot_matmul(cot_reshape(h, COT_SHAPE(BATCH, FEATURES)), xs[DENSE]), xs[BIAS3]), xs[TARGET]);
    return 0;
}
static void *make_compiled(loss_goal goal) {
    static const cot_type types[ALL] = {
        {COT_F32, {4, {16, 1, 5, 5}}},     {COT_F32, {3, {16, 1, 1}}}, {COT_F32, {4, {32, 16, 5, 5}}},
        {COT_F32, {3, {32, 1, 1}}},        {COT_F32, {2, {FEATURES, CLASSES}}}, {COT_F32, {1, {CLASSES}}},
        {COT_F32, {4, {BATCH, 1, SIDE, SIDE}}}, {COT_I64, {1, {BATCH}}}};
    static const double scale[ALL] = {0.2, 0, 0.05, 0, 0.025, 0, 1, 0};
    static const uint64_t seed[ALL] = {40, 0, 41, 0, 42, 0, 6, 0};
    asked     a = {network, NULL, COUNT, goal};
    compiled *c = compiled_make(compiled_asked, &a, ALL, types, outputs_of(&a));
    for (int k = 0; k < TARGET; k++) {
        int64_t size = 1;
        for (int i = 0; i < types[k].shape.ndim; i++) size *= types[k].shape.dim[i];
        c->in[k] = compiled_take(c, uniform_f32(seed[k], size, scale[k]));
    }
    int64_t *label = compiled_take(c, must(malloc(BATCH * sizeof *label)));
    for (int i = 0; i < BATCH; i++) label[i] = i % CLASSES;
    c->in[TARGET] = label;
    compiled_outputs(c, &a, types);
    return c;
}
MAKES(cnn_compiled, make_compiled)

const workload cnn_compiled_workloads[3] = {TRAINED("cnn", cnn_compiled, 2.295677, 1e-6)};
