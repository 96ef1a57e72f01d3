/* deep.c: 64 dense layers, of which only every eighth activation is kept: the others are computed
 * again on the way back. As a program there are no segments, but a memory limit. */
#include "workloads/compiled.h"

enum { LAYERS = SIZED(64, 8), EACH = SIZED(8, 2), WIDTH = SIZED(1024, 64), BATCH = SIZED(512, 32) };

typedef struct deep { cot_tape *t; cot_mark start; cot_var x, target, w[LAYERS]; } deep;

static void *deep_make(void) {
    deep  *d = must(calloc(1, sizeof *d));
    float *x = uniform_f32(29, BATCH * WIDTH, 1), *y = uniform_f32(28, BATCH * WIDTH, 1);
    d->t = must(cot_tape_create(NULL));
    d->x = cot_data(d->t, COT_F32, COT_SHAPE(BATCH, WIDTH), x);
    d->target = cot_data(d->t, COT_F32, COT_SHAPE(BATCH, WIDTH), y);
    free(x), free(y);
    for (int i = 0; i < LAYERS; i++) d->w[i] = weights(d->t, 30 + (uint64_t)i, COT_SHAPE(WIDTH, WIDTH), 0.05);
    d->start = cot_tape_mark(d->t);
    return d;
}

/* xs: the activation, then the weights of a segment. */
static int segment(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var h = xs[0];
    (void)m, (void)user;
    for (int i = 1; i < n; i++) h = cot_tanh(cot_matmul(h, xs[i]));
    ys[0] = h;
    return 0;
}

static cot_var deep_loss(deep *d) {
    cot_var xs[1 + EACH] = {d->x};
    for (int from = 0; from < LAYERS; from += EACH) {
        for (int i = 0; i < EACH; i++) xs[1 + i] = d->w[from + i];
        cot_checkpoint(segment, NULL, 1 + EACH, xs, 1, &xs[0]);
    }
    return cot_mse(xs[0], d->target);
}

static double deep_step(void *state) {
    deep   *d = state;
    cot_var loss = deep_loss(d);
    double  value = cot_value(loss);
    cot_backward(loss);
    check(d->t);
    cot_tape_zero_grads(d->t);
    cot_tape_rewind(d->t, d->start);
    return value;
}

static double deep_function(void *state) {
    deep *d = state;
    cot_no_grad_open(d->t);
    double value = cot_value(deep_loss(d));
    cot_no_grad_close(d->t);
    check(d->t);
    cot_tape_rewind(d->t, d->start);
    return value;
}

static void deep_destroy(void *state) {
    cot_tape_destroy(((deep *)state)->t);
    free(state);
}

/* ---- as a program ---------------------------------------------------------------------------- */

/* xs: weights. The input and the target are behind them. */
static int layers(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cot_var *data = user;
    cot_var        h = data[0];
    (void)m;
    for (int i = 0; i < n; i++) h = cot_tanh(cot_matmul(h, xs[i]));
    ys[0] = cot_mse(h, data[1]);
    return 0;
}

static int loss_and_gradients(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    return cot_value_and_grad(layers, (void *)(uintptr_t)(xs + LAYERS), LAYERS, xs, &ys[0], ys + 1) != COT_OK;
}

static void *compiled_deep_make(void) {
    /* three of four activations, so that the process takes less than PyTorch's with checkpoints
     * every eight layers; then 1 MiB of steps */
    enum { ACTIVATIONS = LAYERS / 4 * 3 };
    cot_compile_options o = {.memory_limit = (int64_t)ACTIVATIONS * BATCH * WIDTH * 4 + (1 << 20)};
    cot_type            types[LAYERS + 2];
    for (int i = 0; i < LAYERS + 2; i++)
        types[i] = (cot_type){COT_F32, COT_SHAPE(i < LAYERS ? WIDTH : BATCH, WIDTH)};
    compiled *c = compiled_make_with(loss_and_gradients, NULL, LAYERS + 2, types, 1 + LAYERS, &o);
    for (int i = 0; i < LAYERS; i++) {
        c->in[i] = compiled_take(c, uniform_f32(30 + (uint64_t)i, WIDTH * WIDTH, 0.05));
        c->out[1 + i] = compiled_take(c, must(malloc(WIDTH * WIDTH * sizeof(float))));
    }
    c->in[LAYERS] = compiled_take(c, uniform_f32(29, BATCH * WIDTH, 1));
    c->in[LAYERS + 1] = compiled_take(c, uniform_f32(28, BATCH * WIDTH, 1));
    c->out[0] = compiled_take(c, must(malloc(sizeof(float))));
    c->result = compiled_first_float;
    return c;
}

const workload deep_workloads[3] = {
    {"deep_ckpt", "f32", deep_make, deep_step, deep_destroy, 0.3332661, SIZED(1e-6, 0), NULL},
    {"deep_ckpt_compiled", "f32", compiled_deep_make, compiled_step, compiled_destroy, 0.3332661, SIZED(1e-6, 0),
     compiled_seconds},
    {"deep_ckpt_function", "f32", deep_make, deep_function, deep_destroy, 0.3332661, SIZED(1e-6, 0), NULL},
};
