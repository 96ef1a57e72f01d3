/* A training step compiled once: the function below is recorded, turned into a program, and run on
 * plain arrays. The new parameters are written over the old ones. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>

enum { POINTS = 64, HIDDEN = 16, PARAMETERS = 4 };

/* xs: two layers of weights and biases, then inputs and targets. */
static int loss(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    cot_var hidden = cot_tanh(cot_add(cot_matmul(xs[4], xs[0]), xs[1]));
    ys[0] = cot_mse(cot_add(cot_matmul(hidden, xs[2]), xs[3]), xs[5]);
    return 0;
}

/* The same inputs and the rate; gives the loss and the parameters after a step downhill. */
static int step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var grads[PARAMETERS + 2];
    (void)m;
    if (cot_value_and_grad(loss, user, n - 1, xs, &ys[0], grads) != COT_OK) return 1;
    for (int k = 0; k < PARAMETERS; k++) ys[1 + k] = cot_sub(xs[k], cot_mul(xs[n - 1], grads[k]));
    return 0;
}

int main(void) {
    static float w1[HIDDEN], b1[HIDDEN], w2[HIDDEN], b2[1], x[POINTS], y[POINTS];
    float        value = 0, rate = 0.1f;
    for (int i = 0; i < HIDDEN; i++) w1[i] = (float)sin(3 * i + 1), w2[i] = 0.3f * (float)cos(5 * i);
    for (int i = 0; i < POINTS; i++) x[i] = 4.0f * (float)i / (POINTS - 1) - 2, y[i] = (float)sin(2 * x[i]);

    const cot_type types[] = {{COT_F32, COT_SHAPE(1, HIDDEN)}, {COT_F32, COT_SHAPE(HIDDEN)},
                              {COT_F32, COT_SHAPE(HIDDEN, 1)}, {COT_F32, COT_SHAPE(1)},
                              {COT_F32, COT_SHAPE(POINTS, 1)}, {COT_F32, COT_SHAPE(POINTS, 1)},
                              {COT_F32, COT_SCALAR}};
    /* the parameters come back in their own memory */
    const cot_compile_options options = {.donate = (const int[]){0, 1, 2, 3}, .donations = PARAMETERS};
    cot_program              *p = cot_compile(step, NULL, 7, types, 1 + PARAMETERS, &options);
    cot_run                  *r = cot_run_create(p);

    const void *inputs[] = {w1, b1, w2, b2, x, y, &rate};
    void       *outputs[] = {&value, w1, b1, w2, b2};
    for (int i = 0; i <= 2000; i++) {
        if (cot_program_run(r, inputs, outputs) != COT_OK) break;
        if (i % 500 == 0) printf("step %4d  loss %.4f\n", i, value);
    }
    if (cot_run_status(r) != COT_OK) printf("%s\n", cot_run_message(r));
    cot_run_destroy(r);
    cot_program_destroy(p);
    return value < 0.003f ? 0 : 1;
}
