/* Memory for time: 64 layers of which nothing is kept but what lies between 8 segments. On the way
 * back each segment runs again, once, and the gradients have the same bits. */
#include <cotangent.h>
#include <stdio.h>
#include <string.h>

enum { LAYERS = 64, ROWS = 256, WIDTH = 64 };

static int layer(int64_t k, int n, const cot_var *xs, cot_var *ys, void *user) {
    const cot_var *w = user;
    (void)n;
    ys[0] = cot_tanh(cot_matmul(xs[0], w[k]));
    return 0;
}

/* Some numbers between -1/4 and 1/4. */
static const double *numbers(int n, unsigned seed) {
    static double to[ROWS * WIDTH];
    for (int k = 0; k < n; k++) {
        seed  = seed * 1664525u + 1013904223u;
        to[k] = ((double)(seed >> 8) / 16777216 - 0.5) / 2;
    }
    return to;
}

/* One sweep on a tape of its own, in so many segments (0: none); the peak in bytes. */
static int64_t sweep(int64_t segments, double *gradient) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   w[LAYERS], x = cot_tensor(t, COT_F64, COT_SHAPE(ROWS, WIDTH), numbers(ROWS * WIDTH, 1));
    for (int k = 0; k < LAYERS; k++)
        w[k] = cot_tensor(t, COT_F64, COT_SHAPE(WIDTH, WIDTH), numbers(WIDTH * WIDTH, 2 + (unsigned)k));
    if (segments) cot_checkpoint_sequential(layer, w, LAYERS, segments, 1, &x, &x);
    for (int k = 0; !segments && k < LAYERS; k++) {
        cot_var before = x;
        layer(k, 1, &before, &x, w);
    }
    cot_backward(cot_mean(cot_square(x), COT_ALL));
    cot_read_grad(w[0], gradient, WIDTH * WIDTH);
    int64_t peak = cot_tape_peak_bytes(t);
    if (cot_tape_status(t)) printf("%s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return peak;
}

int main(void) {
    static double all[WIDTH * WIDTH], parts[WIDTH * WIDTH];
    int64_t       most = sweep(0, all), less = sweep(8, parts);
    printf("8 segments of 8 layers take %s of the memory\n", 2 * less < most ? "less than half" : "half or more");
    printf("the gradients have %s bits\n", memcmp(all, parts, sizeof all) ? "other" : "the same");
    return 0;
}
