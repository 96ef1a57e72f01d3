/* mlp.c: dense layers with ReLU, mean squared error or softmax cross-entropy, and their derivatives
 * by hand. */
#include "handwritten/handwritten.h"

enum { LAYERS = 3 };

typedef struct mlp {
    int    batch, size[LAYERS + 1];
    bool   squared;
    /* h[i]: after layer i */
    float *x, *target, *w[LAYERS], *b[LAYERS], *dw[LAYERS], *h[LAYERS], *dh[LAYERS];
    double loss[64];
} mlp;

static float *zeros(int64_t n) { return must(calloc((size_t)n, sizeof(float))); }

static void *mlp_make(int batch, const int size[LAYERS + 1], bool squared) {
    mlp *m = must(calloc(1, sizeof *m));
    m->batch = batch;
    m->squared = squared;
    memcpy(m->size, size, sizeof m->size);
    m->x = uniform_f32(1, (int64_t)batch * size[0], 1);
    m->target = uniform_f32(2, (int64_t)batch * size[LAYERS], 1);
    for (int i = 0; i < LAYERS; i++) {
        int64_t n = (int64_t)size[i] * size[i + 1], out = (int64_t)batch * size[i + 1];
        m->w[i] = uniform_f32(10 + (uint64_t)i, n, 1 / sqrt((double)size[i]));
        m->b[i] = zeros(size[i + 1]), m->dw[i] = zeros(n), m->h[i] = zeros(out), m->dh[i] = zeros(out);
    }
    return m;
}

static void mlp_destroy(void *state) {
    mlp *m = state;
    for (int i = 0; i < LAYERS; i++) free(m->w[i]), free(m->b[i]), free(m->dw[i]), free(m->h[i]), free(m->dh[i]);
    free(m->x), free(m->target);
    free(m);
}

/* The work of each thread: its share of rows, or of weights. */
typedef struct part { mlp *m; int layer; } part;

static void range(int64_t n, int of, int64_t *from, int64_t *to) {
    *from = n * of / share_threads();
    *to = n * (of + 1) / share_threads();
}

static void add_bias(void *ctx, int of) {
    part   *p = ctx;
    mlp    *m = p->m;
    int64_t from, to, n = m->size[p->layer + 1];
    float  *h = m->h[p->layer], *b = m->b[p->layer];
    range(m->batch, of, &from, &to);
    for (int64_t i = from; i < to; i++)
        for (int64_t j = 0; j < n; j++) {
            float v = h[i * n + j] + b[j];
            h[i * n + j] = p->layer + 1 < LAYERS && v < 0 ? 0 : v;
        }
}

/* The loss of some rows, and its derivative by the last layer's output. */
static void lose(void *ctx, int of) {
    mlp    *m = ((part *)ctx)->m;
    int64_t from, to, n = m->size[LAYERS];
    double  total = 0;
    range(m->batch, of, &from, &to);
    for (int64_t i = from; i < to; i++) {
        float *z = m->h[LAYERS - 1] + i * n, *d = m->dh[LAYERS - 1] + i * n, top = z[0], sum = 0;
        if (m->squared) {
            for (int64_t j = 0; j < n; j++) {
                float e = z[j] - m->target[i * n + j];
                total += e * e;
                d[j] = 2 * e / (float)(m->batch * n);
            }
            continue;
        }
        for (int64_t j = 1; j < n; j++) top = z[j] > top ? z[j] : top;
        for (int64_t j = 0; j < n; j++) sum += d[j] = expf(z[j] - top);
        for (int64_t j = 0; j < n; j++) d[j] /= sum * (float)m->batch;
        d[i % n] -= 1 / (float)m->batch;
        total += top + logf(sum) - z[i % n];
    }
    m->loss[of] = total;
}

static void mask(void *ctx, int of) { /* through the ReLU */
    part   *p = ctx;
    int64_t from, to, n = (int64_t)p->m->batch * p->m->size[p->layer + 1];
    float  *h = p->m->h[p->layer], *d = p->m->dh[p->layer];
    range(n, of, &from, &to);
    for (int64_t i = from; i < to; i++) d[i] = h[i] > 0 ? d[i] : 0;
}

static void descend(void *ctx, int of) {
    part   *p = ctx;
    mlp    *m = p->m;
    int64_t from, to, n = m->size[p->layer + 1];
    range(m->size[p->layer] * n, of, &from, &to);
    for (int64_t i = from; i < to; i++) m->w[p->layer][i] -= 0.01f * m->dw[p->layer][i];
    if (of == 0)
        for (int i = 0; i < m->batch; i++)
            for (int64_t j = 0; j < n; j++) m->b[p->layer][j] -= 0.01f * m->dh[p->layer][i * n + j];
}

/* Small layers stay on this thread. */
static void over(mlp *m, int layer, void (*run)(void *, int)) {
    part p = {m, layer};
    if ((int64_t)m->batch * m->size[1] > 20000) share(run, &p);
    else
        for (int i = 0; i < share_threads(); i++) run(&p, i);
}

static double mlp_step(void *state) {
    mlp   *m = state;
    double total = 0;
    for (int i = 0; i < LAYERS; i++) {
        product(false, false, m->batch, m->size[i + 1], m->size[i], i ? m->h[i - 1] : m->x, m->w[i], m->h[i]);
        over(m, i, add_bias);
    }
    over(m, LAYERS - 1, lose);
    for (int i = 0; i < share_threads(); i++) total += m->loss[i];
    for (int i = LAYERS - 1; i >= 0; i--) {
        product(true, false, m->size[i], m->size[i + 1], m->batch, i ? m->h[i - 1] : m->x, m->dh[i], m->dw[i]);
        if (i > 0) {
            product(false, true, m->batch, m->size[i], m->size[i + 1], m->dh[i], m->w[i], m->dh[i - 1]);
            over(m, i - 1, mask);
        }
        over(m, i, descend);
    }
    return total / (double)(m->squared ? m->batch * m->size[LAYERS] : m->batch);
}

static void *make_small(void) { return mlp_make(16, (int[]){10, 32, 32, 1}, true); }
static void *make_mlp(void) { return mlp_make(128, (int[]){784, 512, 512, 10}, false); }
static void *make_wide(void) { return mlp_make(512, (int[]){1024, 4096, 4096, 1000}, false); }

const workload mlp_by_hand[3] = {
    {"mlp_small", "f32", make_small, mlp_step, mlp_destroy, 0.270273, 3e-6, NULL},
    {"mlp", "f32", make_mlp, mlp_step, mlp_destroy, 2.302103, 1e-6, NULL},
    {"mlp_wide", "f32", make_wide, mlp_step, mlp_destroy, 6.907989, 1e-6, NULL},
};
