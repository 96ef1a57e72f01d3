/* conv: compares the library's direct convolution with the usual other way, im2col and a matrix
 * product (our own, on as many threads), in f32: forward, the adjoint of the input, and the adjoint
 * of the weights. It prints one line for each layer and pass: milliseconds of both ways and their
 * ratio. Times are the least of several runs, in which both take turns. im2col gathers patches for
 * one image at a time, so that they stay in cache: the best case for it. */
#include "backend/cpu/conv/conv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct layer { const char *name; int64_t batch, in, out, size, window, pad; } layer;

static const layer layers[] = {
    {"first of cnn: 64 x 1 x 28², 16 of 5²", 64, 1, 16, 28, 5, 2},
    {"second of cnn: 64 x 16 x 14², 32 of 5²", 64, 16, 32, 14, 5, 2},
    {"wide: 8 x 64 x 28², 64 of 3²", 8, 64, 64, 28, 3, 1},
    {"deep: 8 x 256 x 14², 256 of 3²", 8, 256, 256, 14, 3, 1},
    {"pointwise: 8 x 256 x 14², 256 of 1²", 8, 256, 256, 14, 1, 0},
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *array(int64_t n) {
    float *p = malloc((size_t)n * sizeof *p);
    if (!p) exit(1);
    for (int64_t i = 0; i < n; i++) p[i] = (float)(i % 17) * 0.1f - 0.8f;
    return p;
}

/* Gathers the columns (in · window², size²) of one image, or adds them back to it. */
static void patches(const layer *l, float *image, float *columns, bool back) {
    int64_t n = l->size, w = l->window;
    for (int64_t c = 0; c < l->in; c++)
        for (int64_t k = 0; k < w * w; k++)
            for (int64_t i = 0; i < n; i++) {
                float  *to = columns + ((c * w * w + k) * n + i) * n;
                int64_t y = i + k / w - l->pad;
                for (int64_t j = 0; j < n; j++) {
                    int64_t x = j + k % w - l->pad;
                    bool    inside = y >= 0 && y < n && x >= 0 && x < n;
                    if (back) {
                        if (inside) image[(c * n + y) * n + x] += to[j];
                    } else to[j] = inside ? image[(c * n + y) * n + x] : 0;
                }
            }
}

static void product(cot__matrix a, cot__matrix b, cot__matrix c, bool accumulate) {
    cot__lent room = {NULL, cot__gemm_workspace(COT_F32, c.rows, c.cols, a.cols)};
    if (room.bytes && !(room.memory = malloc(room.bytes))) exit(1);
    cot__gemm(COT_F32, a, b, c, accumulate, room);
    free(room.memory);
}

static void by_columns(const layer *l, cot__conv_pass pass, float *x, float *w, float *z, float *columns) {
    int64_t     n2 = l->size * l->size, depth = l->in * l->window * l->window;
    cot__matrix kernel = {w, l->out, depth, depth, 1}, turned = {w, depth, l->out, 1, depth};
    for (int64_t b = 0; b < l->batch; b++) {
        float      *image = x + b * l->in * n2;
        cot__matrix out = {z + b * l->out * n2, l->out, n2, n2, 1}, c = {columns, depth, n2, n2, 1},
                    ct = {columns, n2, depth, 1, n2};
        if (pass != COT__CONV_INPUT) patches(l, image, columns, false);
        if (pass == COT__CONV_OUTPUT) product(kernel, c, out, false);
        else if (pass == COT__CONV_WEIGHT) product(out, ct, kernel, b > 0);
        else {
            product(turned, out, c, false);
            for (int64_t i = 0; i < l->in * n2; i++) image[i] = 0;
            patches(l, image, columns, true);
        }
    }
}

static void directly(const layer *l, cot__conv_pass pass, float *x, float *w, float *z) {
    int64_t   n = l->size, k = l->window;
    cot__conv g     = {l->batch,  1,         l->in,     l->out,    {1, n, n},
                       {1, k, k}, {1, n, n}, {1, 1, 1}, {1, 1, 1}, {0, l->pad, l->pad}};
    int64_t   xs[5] = {l->batch, l->in, 1, n, n}, ws[5] = {l->out, l->in, 1, k, k}, zs[5] = {l->batch, l->out, 1, n, n},
            st[3][5];
    cot__strides(5, xs, st[0]), cot__strides(5, ws, st[1]), cot__strides(5, zs, st[2]);
    cot__view vx = {x, COT_F32, 5, xs, st[0]}, vw = {w, COT_F32, 5, ws, st[1]}, vz = {z, COT_F32, 5, zs, st[2]};
    const cot__view *left = pass == COT__CONV_INPUT ? &vz : &vx, *right = pass == COT__CONV_WEIGHT ? &vz : &vw,
                    *result = pass == COT__CONV_OUTPUT ? &vz : pass == COT__CONV_INPUT ? &vx : &vw;
    int64_t          bytes = cot__conv_bytes(&g, pass, left, right, result);
    void            *room = malloc((size_t)bytes);
    if (bytes < 0 || !room) exit(1);
    cot__conv_run(&g, pass, left, right, result, room);
    free(room);
}

int main(void) {
    static const char *const names[] = {"forward", "input", "weights"};
    cot_tape                *holds_the_workers = cot_tape_create(NULL);
    printf("%-42s %-8s %10s %10s %8s\n", "layer", "pass", "direct ms", "im2col ms", "ratio");
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (int pass = COT__CONV_OUTPUT; pass <= COT__CONV_WEIGHT; pass++) {
            const layer *l = &layers[i];
            int64_t      n2 = l->size * l->size, depth = l->in * l->window * l->window;
            float *x = array(l->batch * l->in * n2), *w = array(l->out * depth), *z = array(l->batch * l->out * n2),
                  *c            = array(depth * n2);
            double       direct = INFINITY, columns = INFINITY;
            for (int run = 0; run < 15; run++) {
                double t0 = now();
                directly(l, (cot__conv_pass)pass, x, w, z);
                double t1 = now();
                by_columns(l, (cot__conv_pass)pass, x, w, z, c);
                double t2 = now();
                direct = fmin(direct, t1 - t0), columns = fmin(columns, t2 - t1);
            }
            printf("%-42s %-8s %10.3f %10.3f %8.2f\n", l->name, names[pass], direct * 1e3, columns * 1e3,
                   direct / columns);
            fflush(stdout);
            free(x), free(w), free(z), free(c);
        }
    cot_tape_destroy(holds_the_workers);
    return 0;
}
