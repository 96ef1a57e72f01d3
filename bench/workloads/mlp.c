/* mlp.c: dense layers with ReLU: forward, backward, a gradient step. */
#include "workloads/workloads.h"

enum { MOST_LAYERS = 3 };

typedef struct mlp {
    cot_tape *t;
    cot_mark  start;
    cot_var   x, target, p[2 * MOST_LAYERS]; /* weights, then biases */
    int       layers;
    bool      squared;
} mlp;

static void *mlp_make(int64_t batch, int layers, const int64_t *sizes, bool squared) {
    mlp    *m = must(calloc(1, sizeof *m));
    int64_t classes = sizes[layers];
    m->t = must(cot_tape_create(NULL));
    m->layers = layers;
    m->squared = squared;
    float *x = uniform_f32(1, batch * sizes[0], 1);
    m->x = cot_data(m->t, COT_F32, COT_SHAPE(batch, sizes[0]), x);
    free(x);
    if (squared) {
        float *y = uniform_f32(2, batch * classes, 1);
        m->target = cot_data(m->t, COT_F32, COT_SHAPE(batch, classes), y);
        free(y);
    } else {
        int64_t *y = must(malloc((size_t)batch * sizeof *y));
        for (int64_t i = 0; i < batch; i++) y[i] = i % classes;
        m->target = cot_data(m->t, COT_I64, COT_SHAPE(batch), y);
        free(y);
    }
    for (int i = 0; i < layers; i++) {
        m->p[i] = weights(m->t, 10 + (uint64_t)i, COT_SHAPE(sizes[i], sizes[i + 1]), 1 / sqrt((double)sizes[i]));
        m->p[layers + i] = cot_tensor(m->t, COT_F32, COT_SHAPE(sizes[i + 1]), NULL);
    }
    m->start = cot_tape_mark(m->t);
    return m;
}

static cot_var mlp_loss(mlp *m) {
    cot_var h = m->x;
    for (int i = 0; i < m->layers; i++) {
        h = cot_add(cot_matmul(h, m->p[i]), m->p[m->layers + i]);
        if (i + 1 < m->layers) h = cot_relu(h);
    }
    return m->squared ? cot_mse(h, m->target) : cot_softmax_cross_entropy(h, m->target);
}

/* The loss alone, recorded without derivatives. */
static double mlp_function(void *state) {
    mlp *m = state;
    cot_no_grad_open(m->t);
    double value = cot_value(mlp_loss(m));
    cot_no_grad_close(m->t);
    check(m->t);
    cot_tape_rewind(m->t, m->start);
    return value;
}

static double mlp_gradient(void *state) {
    mlp    *m = state;
    cot_var loss = mlp_loss(m);
    double  value = cot_value(loss);
    cot_backward(loss);
    check(m->t);
    cot_tape_zero_grads(m->t);
    cot_tape_rewind(m->t, m->start);
    return value;
}

/* One example of the batch: its loss and the gradients of all parameters. */
static int one_example(int n, const cot_var *xs, int count, cot_var *ys, void *user) {
    mlp    *m = user;
    cot_var h = xs[0];
    (void)n;
    for (int i = 0; i < m->layers; i++) {
        h = cot_add(cot_matmul(h, m->p[i]), m->p[m->layers + i]);
        if (i + 1 < m->layers) h = cot_relu(h);
    }
    ys[0] = m->squared ? cot_mse(h, xs[1]) : cot_softmax_cross_entropy(h, xs[1]);
    return cot_grad_of(ys[0], count - 1, m->p, ys + 1) == COT_OK ? 0 : 1;
}

/* The norm of each example's gradient. The gradients themselves would be written only if elements
 * were read (bench/per_example measures both). */
static double mlp_each(void *state) {
    mlp    *m = state;
    cot_var xs[2] = {m->x, m->target}, ys[1 + 2 * MOST_LAYERS];
    cot_vmap(one_example, m, 2, xs, NULL, 1 + 2 * m->layers, ys, NULL);
    double  value = cot_value(cot_mean(ys[0], COT_ALL));
    cot_var squares = COT_NONE;
    for (int k = 0; k < 2 * m->layers; k++) {
        cot_var one = cot_sum(cot_square(ys[1 + k]), k < m->layers ? COT_AXES(1, 2) : COT_AXES(1));
        squares = k ? cot_add(squares, one) : one;
    }
    double norms = cot_value(cot_sum(cot_sqrt(squares), COT_ALL));
    check(m->t);
    cot_tape_rewind(m->t, m->start);
    return isfinite(norms) ? value : norms;
}

static double mlp_step(void *state) {
    mlp    *m = state;
    cot_var loss = mlp_loss(m);
    double  value = cot_value(loss);
    cot_backward(loss);
    cot_sgd_step(2 * m->layers, m->p, 0.01);
    check(m->t);
    cot_tape_zero_grads(m->t);
    cot_tape_rewind(m->t, m->start);
    return value;
}

static void mlp_destroy(void *state) {
    cot_tape_destroy(((mlp *)state)->t);
    free(state);
}

static void *make_small(void) { return mlp_make(16, 3, (int64_t[]){10, 32, 32, 1}, true); }
static void *make_mlp(void) { return mlp_make(128, 3, (int64_t[]){784, 512, 512, 10}, false); }
static void *make_wide(void) { return mlp_make(512, 3, (int64_t[]){1024, 4096, 4096, 1000}, false); }

static cot_var recorded_loss(void *state) { return mlp_loss(state); }

const recorded mlp_recorded = {"mlp", make_mlp, recorded_loss, mlp_step, mlp_destroy};

/* The known losses have six or seven digits. */
const workload mlp_workloads[11] = {
    {"mlp_small", "f32", make_small, mlp_step, mlp_destroy, 0.270273, 3e-6, NULL},
    {"mlp", "f32", make_mlp, mlp_step, mlp_destroy, 2.302103, 1e-6, NULL},
    {"mlp_wide", "f32", make_wide, mlp_step, mlp_destroy, 6.907989, 1e-6, NULL},
    {"mlp_wide_function", "f32", make_wide, mlp_function, mlp_destroy, 6.907989, 1e-6, NULL},
    {"mlp_wide_gradient", "f32", make_wide, mlp_gradient, mlp_destroy, 6.907989, 1e-6, NULL},
    {"mlp_small_gradient", "f32", make_small, mlp_gradient, mlp_destroy, 0.270273, 3e-6, NULL},
    {"mlp_small_function", "f32", make_small, mlp_function, mlp_destroy, 0.270273, 3e-6, NULL},
    {"mlp_function", "f32", make_mlp, mlp_function, mlp_destroy, 2.302103, 1e-6, NULL},
    {"mlp_small_each", "f32", make_small, mlp_each, mlp_destroy, 0.270273, 3e-6, NULL},
    {"mlp_gradient", "f32", make_mlp, mlp_gradient, mlp_destroy, 2.302103, 1e-6, NULL},
    {"mlp_each", "f32", make_mlp, mlp_each, mlp_destroy, 2.302103, 1e-6, NULL},
};
