/* deep.c: dense layers with tanh; the activation before each segment is kept, those within it are
 * computed again on the way back. */
#include "handwritten/handwritten.h"

enum { LAYERS = SIZED(64, 8), EACH = SIZED(8, 2), WIDTH = SIZED(1024, 64), BATCH = SIZED(512, 32) };
enum { SEGMENTS = LAYERS / EACH, SIZE = BATCH * WIDTH };

typedef struct deep {
    float *x, *target, *w[LAYERS], *dw[LAYERS];
    float *kept[SEGMENTS + 1]; /* the activation before each segment; kept[0] is x */
    float *h[EACH], *d, *other;
    double loss[64];
} deep;

typedef struct part { deep *all; float *h, *d; } part;

static float *room(int64_t n) { return must(malloc((size_t)n * sizeof(float))); }

static void *deep_make(void) {
    deep *d = must(calloc(1, sizeof *d));
    d->x = d->kept[0] = uniform_f32(29, SIZE, 1);
    d->target = uniform_f32(28, SIZE, 1);
    for (int i = 0; i < LAYERS; i++) {
        d->w[i] = uniform_f32(30 + (uint64_t)i, WIDTH * WIDTH, 0.05);
        d->dw[i] = room(WIDTH * WIDTH);
    }
    for (int s = 1; s <= SEGMENTS; s++) d->kept[s] = room(SIZE);
    for (int i = 0; i < EACH; i++) d->h[i] = room(SIZE);
    d->d = room(SIZE), d->other = room(SIZE);
    return d;
}

static void deep_destroy(void *state) {
    deep *d = state;
    for (int i = 0; i < LAYERS; i++) free(d->w[i]), free(d->dw[i]);
    for (int s = 0; s <= SEGMENTS; s++) free(d->kept[s]);
    for (int i = 0; i < EACH; i++) free(d->h[i]);
    free(d->target), free(d->d), free(d->other), free(d);
}

static int64_t edge(int of) { return (int64_t)SIZE * of / share_threads(); }

static void squash(void *ctx, int of) {
    part *p = ctx;
    for (int64_t i = edge(of); i < edge(of + 1); i++) p->h[i] = tanhf(p->h[i]);
}

static void unsquash(void *ctx, int of) {
    part *p = ctx;
    for (int64_t i = edge(of); i < edge(of + 1); i++) p->d[i] *= 1 - p->h[i] * p->h[i];
}

static void lose(void *ctx, int of) {
    part  *p = ctx;
    double total = 0;
    for (int64_t i = edge(of); i < edge(of + 1); i++) {
        float e = p->h[i] - p->all->target[i];
        total += e * e;
        p->d[i] = 2 * e / (float)SIZE;
    }
    p->all->loss[of] = total;
}

static void layer(deep *d, int i, const float *from, float *to) {
    product(false, false, BATCH, WIDTH, WIDTH, from, d->w[i], to);
    share(squash, &(part){d, to, NULL});
}

static void back(deep *d, int i, const float *from, float *h) {
    share(unsquash, &(part){d, h, d->d});
    product(true, false, WIDTH, WIDTH, BATCH, from, d->d, d->dw[i]);
    if (i == 0) return;
    product(false, true, BATCH, WIDTH, WIDTH, d->d, d->w[i], d->other);
    float *t = d->d;
    d->d = d->other, d->other = t;
}

/* The activation before layer i of segment s. */
static float *before(deep *d, int s, int i) { return i == 0 ? d->kept[s] : d->h[i - 1]; }

static double deep_step(void *state) {
    deep  *d = state;
    double total = 0;
    for (int s = 0; s < SEGMENTS; s++)
        for (int i = 0; i < EACH; i++)
            layer(d, s * EACH + i, before(d, s, i), i + 1 < EACH ? d->h[i] : d->kept[s + 1]);
    share(lose, &(part){d, d->kept[SEGMENTS], d->d});
    for (int i = 0; i < share_threads(); i++) total += d->loss[i];
    for (int s = SEGMENTS - 1; s >= 0; s--) {
        for (int i = 0; i + 1 < EACH; i++) layer(d, s * EACH + i, before(d, s, i), d->h[i]);
        for (int i = EACH - 1; i >= 0; i--)
            back(d, s * EACH + i, before(d, s, i), i + 1 < EACH ? d->h[i] : d->kept[s + 1]);
    }
    return total / SIZE;
}

const workload deep_by_hand = {"deep_ckpt", "f32", deep_make, deep_step, deep_destroy, 0.3332661, SIZED(1e-6, 0), NULL};
