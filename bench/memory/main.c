/* memory: what a step of a deep network takes: the peak of the tape, and the time. First without
 * checkpoints and with √N segments (cot_checkpoint_sequential), then under memory limits, with a
 * folder for what is dear to compute again and without. Layers are dense with tanh, WIDTH numbers
 * wide, f32; all sides take turns, and a time is the least of several. With --model it measures one
 * of three larger nets, and with --draw it draws what was measured (one.h,
 * tools/bench_memory.py). */
#include "memory/one.h"

#include <cotangent.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef BENCH_SMALL
enum { WIDTH = 16, BATCH = 64, LEAST = 16, MOST = 64, LAYERS = 32, SAMPLES = 1 };
#else
enum { WIDTH = 128, BATCH = 512, LEAST = 16, MOST = 1024, LAYERS = 64, SAMPLES = 5 };
#endif

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int layer(int64_t k, int n, const cot_var *xs, cot_var *ys, void *user) {
    const cot_var *w = user;
    (void)n;
    ys[0] = cot_tanh(cot_matmul(xs[0], w[k]));
    return 0;
}

typedef struct net {
    cot_tape *t;
    cot_var   x, w[MOST];
    cot_mark  start;
    int64_t   layers;
} net;

typedef struct sample {
    double seconds, loss, arrays; /* arrays: the peak, in activations of one layer */
} sample;

/* Some numbers between -most and most. */
static const float *numbers(int n, unsigned seed, double most) {
    static float to[BATCH * WIDTH];
    for (int k = 0; k < n; k++) {
        seed  = seed * 1664525u + 1013904223u;
        to[k] = (float)(((double)(seed >> 8) / 8388608 - 1) * most);
    }
    return to;
}

static void make(net *d, int64_t layers, const cot_options *options) {
    d->t      = cot_tape_create(options);
    d->layers = layers;
    if (!d->t) exit(1);
    d->x = cot_tensor(d->t, COT_F32, COT_SHAPE(BATCH, WIDTH), numbers(BATCH * WIDTH, 1, 1));
    for (int64_t k = 0; k < layers; k++)
        d->w[k] = cot_tensor(d->t, COT_F32, COT_SHAPE(WIDTH, WIDTH),
                             numbers(WIDTH * WIDTH, 2 + (unsigned)k, 2 / sqrt(WIDTH)));
    d->start = cot_tape_mark(d->t);
}

/* segments < 0: the layers as they are. */
static sample step(net *d, int64_t segments) {
    cot_var y     = d->x;
    double  start = now();
    if (segments >= 0) cot_checkpoint_sequential(layer, d->w, d->layers, segments, 1, &y, &y);
    for (int64_t k = 0; segments < 0 && k < d->layers; k++) {
        cot_var x = y;
        layer(k, 1, &x, &y, d->w);
    }
    cot_var loss = cot_mean(cot_square(y), COT_ALL);
    cot_backward(loss);
    sample s = {now() - start, cot_value(loss), (double)cot_tape_peak_bytes(d->t) / (4.0 * BATCH * WIDTH)};
    if (cot_tape_status(d->t)) {
        fprintf(stderr, "%s\n", cot_tape_message(d->t));
        exit(1);
    }
    cot_tape_zero_grads(d->t);
    cot_tape_rewind(d->t, d->start);
    return s;
}

static sample best(net *d, int64_t segments, sample least) {
    sample s = step(d, segments);
    if (least.seconds > 0 && least.seconds < s.seconds) s.seconds = least.seconds;
    return s;
}

/* A folder on a disk; a file there has no name. */
static const char *folder(void) {
    const char *named = getenv("TMPDIR");
    return named && *named ? named : "/tmp";
}

enum { SIDES = 2 };

/* A line for a limit of so many per cent of the peak; 0: the first, without one. */
static bool under_limit(int percent, sample *whole) {
    static net sides[SIDES];
    sample     s[SIDES] = {0};
    double     limit = percent / 100.0 * whole->arrays * 4 * BATCH * WIDTH;
    for (int k = 0; k < SIDES; k++)
        make(&sides[k], LAYERS,
             &(cot_options){.memory_limit = (int64_t)limit, .spill = k && percent ? folder() : NULL});
    for (int k = 0; k < SAMPLES * SIDES; k++) s[k % SIDES] = best(&sides[k % SIDES], -1, s[k % SIDES]);
    for (int k = 0; k < SIDES; k++) cot_tape_destroy(sides[k].t);
    if (!percent) *whole = s[0];
    printf("%7d %%  %14.1f %14.1f  %10.1f %10.1f  %4.0f %% %4.0f %%\n", percent ? percent : 100, s[0].arrays,
           s[1].arrays, 1e3 * s[0].seconds, 1e3 * s[1].seconds, 100 * (s[0].seconds / whole->seconds - 1),
           100 * (s[1].seconds / whole->seconds - 1));
    return s[0].loss == whole->loss && s[1].loss == whole->loss;
}

static bool limits(void) {
    static const int percents[] = {0, 50, 30, 20};
    sample           whole = {0};
    printf("\n%d layers\n%9s  %14s %14s  %10s %10s  %6s %6s\n", LAYERS, "limit", "peak, arrays", "with a folder",
           "time, ms", "folder", "more", "folder");
    for (size_t k = 0; k < sizeof percents / sizeof *percents; k++)
        if (!under_limit(percents[k], &whole)) return fprintf(stderr, "the losses differ\n"), false;
    return true;
}

int main(int argc, char **argv) {
    static net all, parts;
    if (argc == 4 && strcmp(argv[1], "--draw") == 0) return draw_table(argv[2], argv[3]);
    if (argc > 1) return measure_one(argc, argv);
    printf("%8s  %14s %14s  %10s %10s  %6s\n", "layers", "peak, arrays", "in segments", "time, ms", "segments", "more");
    for (int64_t layers = LEAST; layers <= MOST; layers *= 4) {
        sample a = {0}, b = {0};
        make(&all, layers, NULL), make(&parts, layers, NULL);
        for (int k = 0; k < SAMPLES; k++) a = best(&all, -1, a), b = best(&parts, 0, b);
        printf("%8lld  %14.1f %14.1f  %10.1f %10.1f  %4.0f %%\n", (long long)layers, a.arrays, b.arrays,
               1e3 * a.seconds, 1e3 * b.seconds, 100 * (b.seconds / a.seconds - 1));
        if (a.loss != b.loss) return fprintf(stderr, "the losses differ: %.9g, %.9g\n", a.loss, b.loss), 1;
        cot_tape_destroy(all.t), cot_tape_destroy(parts.t);
    }
    return !limits();
}
