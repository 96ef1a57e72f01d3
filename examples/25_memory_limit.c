/* A memory limit: the same gradients to the bit, in less memory.
 *
 * A net of 48 layers is differentiated without a limit, which tells how much memory that takes
 * above its weights and gradients. Under a limit the tape drops activations that it can compute
 * again, and computes them when the way back needs them. The code that records is the same. */
#include <cotangent.h>
#include <stdio.h>
#include <string.h>

enum { LAYERS = 48, WIDTH = 64, BATCH = 128 };

/* The gradient of the first weights under a limit of so many bytes (0: none); returns the peak. */
static long long gradient(long long limit, double *grad) {
    static float start[WIDTH * WIDTH], x[BATCH * WIDTH];
    for (int i = 0; i < WIDTH * WIDTH; i++) start[i] = (float)((i * 7919) % 1009 - 504) / 504 / 8;
    for (int i = 0; i < BATCH * WIDTH; i++) x[i] = (float)((i * 104729) % 997) / 997;
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = limit});
    cot_var   w[LAYERS], h = cot_data(t, COT_F32, COT_SHAPE(BATCH, WIDTH), x);
    for (int i = 0; i < LAYERS; i++) w[i] = cot_tensor(t, COT_F32, COT_SHAPE(WIDTH, WIDTH), start);
    for (int i = 0; i < LAYERS; i++) h = cot_tanh(cot_matmul(h, w[i]));
    cot_backward(cot_mean(cot_square(h), COT_ALL));
    cot_read_grad(w[0], grad, WIDTH * WIDTH);
    long long peak = cot_tape_status(t) == COT_OK ? (long long)cot_tape_peak_bytes(t) : -1;
    if (peak < 0) fprintf(stderr, "%s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return peak;
}

int main(void) {
    static double whole[WIDTH * WIDTH], less[WIDTH * WIDTH];
    long long     peak = gradient(0, whole);
    int           wrong = peak <= 0;
    for (int percent = 50; percent >= 30; percent -= 10) {
        long long limit = peak * percent / 100, used = gradient(limit, less);
        int       same = memcmp(whole, less, sizeof whole) == 0;
        printf("a limit of %d %% of the peak: %s, gradients %s\n", percent,
               used >= 0 && used <= limit ? "kept" : "passed", same ? "the same to the bit" : "different");
        wrong |= !same || used < 0 || used > limit;
    }
    return wrong;
}
