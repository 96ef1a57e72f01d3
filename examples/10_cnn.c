/* A convolutional network that tells bars from bars: 12x12 images with a horizontal, a vertical or
 * a slanting bar in noise.
 *
 * Convolution, layer norm, max pooling, dropout and AdamW; weights, images and dropped elements all
 * come from keys, so every run is the same run. A key is used once: cot_key_fold makes a new one
 * for each step. */
#include <cotangent.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 12, CLASSES = 3, BATCH = 48, KERNELS = 8, DENSE = KERNELS * SIDE * SIDE / 4, STEPS = 80 };
enum { KERNEL, GAIN, SHIFT, WEIGHT, BIAS, PARAMETERS };

/* Noise, and in image i a bar of class i % 3, somewhere. */
static cot_var draw(cot_tape *t, cot_key key) {
    static float pixel[BATCH][SIDE][SIDE];
    cot_key      keys[2];
    double       where[BATCH];
    cot_key_split(key, 2, keys);
    cot_read(cot_uniform(t, keys[0], COT_F64, COT_SHAPE(BATCH), 2, SIDE - 2), where, BATCH);
    for (int i = 0; i < BATCH; i++)
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                int at[CLASSES] = {y, x, (x + y) / 2};
                pixel[i][y][x] = at[i % CLASSES] == (int)where[i] ? 1 : 0;
            }
    cot_var noise = cot_normal(t, keys[1], COT_F32, COT_SHAPE(BATCH, 1, SIDE, SIDE));
    return cot_add(cot_data(t, COT_F32, COT_SHAPE(BATCH, 1, SIDE, SIDE), pixel), cot_mul(0.3, noise));
}

/* (BATCH, 1, SIDE, SIDE) -> (BATCH, CLASSES) */
static cot_var network(const cot_var *p, cot_var x, double drop, cot_key key) {
    x = cot_conv2d(x, p[KERNEL], COT_CONV(.padding = {2, 2}));
    x = cot_relu(cot_layer_norm(x, p[GAIN], p[SHIFT], -2, 1e-5)); /* over each picture */
    x = cot_max_pool2d(x, COT_POOL(.window = {2, 2}));
    x = cot_dropout(cot_reshape(x, COT_SHAPE(BATCH, DENSE)), drop, key);
    return cot_add(cot_matmul(x, p[WEIGHT]), p[BIAS]);
}

int main(void) {
    cot_tape *t = cot_tape_create(NULL);
    cot_key   key = cot_key_of(7), part[4];
    int64_t   labels[BATCH];
    cot_key_split(key, 4, part); /* kernels, weights, training, trial */
    for (int i = 0; i < BATCH; i++) labels[i] = i % CLASSES;

    cot_var p[PARAMETERS] = {
        [KERNEL] = cot_leaf(cot_mul(0.2, cot_normal(t, part[0], COT_F32, COT_SHAPE(KERNELS, 1, 5, 5)))),
        [GAIN] = cot_leaf(cot_ones(t, COT_F32, COT_SHAPE(SIDE, SIDE))),
        [SHIFT] = cot_tensor(t, COT_F32, COT_SHAPE(SIDE, SIDE), NULL),
        [WEIGHT] = cot_leaf(cot_mul(0.05, cot_normal(t, part[1], COT_F32, COT_SHAPE(DENSE, CLASSES)))),
        [BIAS] = cot_tensor(t, COT_F32, COT_SHAPE(CLASSES), NULL),
    };
    cot_var target = cot_data(t, COT_I64, COT_SHAPE(BATCH), labels);
    void   *m[PARAMETERS], *v[PARAMETERS]; /* AdamW's moments are ours to keep */
    for (int k = 0; k < PARAMETERS; k++) {
        m[k] = calloc((size_t)cot_size(p[k]), sizeof(float));
        v[k] = calloc((size_t)cot_size(p[k]), sizeof(float));
        if (!m[k] || !v[k]) return 1;
    }

    cot_mark mark = cot_tape_mark(t);
    double   first = 0, last = 0;
    for (int step = 1; step <= STEPS; step++) {
        cot_key now[2];
        cot_key_split(cot_key_fold(part[2], (uint64_t)step), 2, now); /* images, dropped elements */
        cot_var loss = cot_softmax_cross_entropy(network(p, draw(t, now[0]), 0.2, now[1]), target);
        cot_backward(loss);
        last = cot_value(loss);
        if (step == 1) first = last;
        if (step % (STEPS / 8) == 0) printf("step %3d  loss %.3f\n", step, last);
        cot_adamw_step(PARAMETERS, p, m, v, (cot_adamw){.step = step, .rate = 0.003, .decay = 0.01});
        cot_tape_zero_grads(t);
        cot_tape_rewind(t, mark);
    }

    /* New images, nothing dropped. */
    int64_t answer[BATCH], right = 0;
    cot_read_as(cot_argmax(network(p, draw(t, part[3]), 0, part[3]), COT_AXES(1)), COT_I64, answer, BATCH);
    for (int i = 0; i < BATCH; i++) right += answer[i] == labels[i];
    printf("loss %.3f at the start, %.3f at the end; %d of %d new images right\n", first, last, (int)right, BATCH);

    int wrong = cot_tape_status(t) != COT_OK || !(last < first / 2) || right < BATCH * 9 / 10;
    if (wrong) fprintf(stderr, "a result is off. %s\n", cot_tape_message(t));
    for (int k = 0; k < PARAMETERS; k++) free(m[k]), free(v[k]);
    cot_tape_destroy(t);
    return wrong;
}
