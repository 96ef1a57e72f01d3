/* cnn.c: two convolutions with ReLU and pooling, a dense layer: forward, backward, a gradient
 * step. */
#include "workloads/workloads.h"

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

static double cnn_step(void *state) {
    cnn    *c = state;
    cot_var h = layer(layer(c->x, c->p[CONV1], c->p[BIAS1]), c->p[CONV2], c->p[BIAS2]);
    cot_var z = cot_add(cot_matmul(cot_reshape(h, COT_SHAPE(BATCH, FEATURES)), c->p[DENSE]), c->p[BIAS3]);
    cot_var loss = cot_softmax_cross_entropy(z, c->target);
    double  value = cot_value(loss);
    cot_backward(loss);
    cot_sgd_step(COUNT, c->p, 0.01);
    check(c->t);
    cot_tape_zero_grads(c->t);
    cot_tape_rewind(c->t, c->start);
    return value;
}

static void cnn_destroy(void *state) {
    cot_tape_destroy(((cnn *)state)->t);
    free(state);
}

const workload cnn_workload = {"cnn", "f32", cnn_make, cnn_step, cnn_destroy, 2.295677, 1e-6};
