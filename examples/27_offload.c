/* States on disk: a loop whose way back needs more than should be in memory.
 *
 * A rod of 16384 points loses its heat in 200 steps. The way back reads the state before every
 * step, 25 MiB of them together. With `spill` they are kept in a file without a name, and memory
 * holds a few; the gradient is the same to the bit, and no step runs twice, as it would with fewer
 * states. */
#include <cotangent.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 1 << 14, STEPS = 200 };

/* u + a (left + right - 2 u), ends included by going round; a is a leaf outside. */
static int cool(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cot_var *a = user;
    cot_var        around = cot_add(cot_roll(xs[0], 1, 0), cot_roll(xs[0], -1, 0));
    cot_var        u = cot_add(xs[0], cot_mul(*a, cot_sub(around, cot_mul(2.0, xs[0]))));
    ys[0] = cot_mul(u, cot_sub(1.0, cot_mul(0.001, cot_square(u)))); /* it also radiates */
    return n != 1 || m != 1;
}

/* The gradients by the heat at the start and by a; returns the peak in bytes, or -1. */
static long long gradient(const cot_loop_options *options, double *by_start, double *by_a) {
    static double start[POINTS];
    for (int i = 0; i < POINTS; i++) start[i] = (double)((i * 7919) % 1009) / 1009;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   u0 = cot_tensor(t, COT_F64, COT_SHAPE(POINTS), start), a = cot_scalar(t, 0.2), u;
    cot_scan(cool, &a, STEPS, 1, &u0, 0, NULL, &u, 0, NULL, options);
    cot_backward(cot_mean(cot_square(u), COT_ALL));
    cot_read_grad(u0, by_start, POINTS);
    *by_a = cot_grad_value(a);
    long long peak = cot_tape_status(t) == COT_OK ? (long long)cot_tape_peak_bytes(t) : -1;
    if (peak < 0) fprintf(stderr, "%s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return peak;
}

int main(void) {
    static double kept[POINTS], spilled[POINTS];
    double        a[2];
    long long     memory = gradient(&(cot_loop_options){.states = STEPS}, kept, &a[0]);
    long long     disk = gradient(&(cot_loop_options){.states = STEPS, .spill = "."}, spilled, &a[1]);
    int           same = memcmp(kept, spilled, sizeof kept) == 0 && a[0] == a[1];
    int           less = disk > 0 && disk < memory / 4;
    printf("all %d states in memory, then on disk\n", STEPS);
    printf("  the gradients are %s\n", same ? "the same to the bit" : "DIFFERENT");
    printf("  the peak is %s a quarter of what it was\n", less ? "less than" : "NOT");
    return !same || !less;
}
