/* gpt.c: a decoder-only transformer of 4 layers, pre-norm, tied head, derivatives by hand, AdamW.
 * Each thread takes its sequences through the whole network, forward and back, with gradients of
 * its own, which the step adds up: nothing is shared in between. Shapes in comments: T positions, D
 * width, V tokens. */
#include "handwritten/gpt.h"

static void put(float *to, uint64_t seed, int64_t n, double scale) {
    float *from = uniform_f32(seed, n, scale);
    memcpy(to, from, (size_t)n * sizeof *to);
    free(from);
}

static void ones(float *to, int n) {
    for (int i = 0; i < n; i++) to[i] = 1;
}

static void *gpt_make(void) {
    const double scale = 0.02 * sqrt(3);
    uint64_t     seed = 100;
    gpt         *g = must(calloc(1, sizeof *g));
    g->p = aligned_zeros(COUNT * sizeof(float)), g->m = aligned_zeros(COUNT * sizeof(float)),
    g->v    = aligned_zeros(COUNT * sizeof(float));
    g->each = aligned_zeros((size_t)share_threads() * sizeof *g->each);
    put(g->p + TOKENS, seed++, V * D, scale);
    put(g->p + PLACES, seed++, T * D, scale);
    for (int l = 0; l < LAYERS; l++) {
        float *p = g->p + LAYER0 + l * PER_LAYER;
        put(p + QKV, seed++, D * 3 * D, scale);
        put(p + OUT, seed++, D * D, scale);
        put(p + UP, seed++, D * 4 * D, scale);
        put(p + DOWN, seed++, 4 * D * D, scale);
        ones(p + NORM1, D), ones(p + NORM2, D);
    }
    ones(g->p + NORM, D);
    for (int i = 0; i < BATCH * T; i++) g->token[i] = 7919 * i % V, g->target[i] = (31 * g->token[i] + 1) % V;
    product_start(1); /* because each thread calls product by itself */
    return g;
}

static void gpt_destroy(void *state) {
    gpt *g = state;
    free(g->p), free(g->m), free(g->v), free(g->each);
    free(g);
    product_start(share_threads());
}

/* ---- what a layer is made of ----------------------------------------------------------------- */

/* z (T, n) = x (T, k) w (k, n) + bias */
static void dense(int k, int n, const float *x, const float *w, const float *bias, float *restrict z) {
    product(false, false, T, n, k, x, w, z);
    for (int i = 0; i < T; i++)
        for (int j = 0; j < n; j++) z[i * n + j] += bias[j];
}

/* dx = dz wᵀ; dw += xᵀ dz; dbias += the sum of rows */
static void dense_back(int k, int n, const float *x, const float *w, const float *dz, float *dx, float *dw,
                       float *restrict dbias) {
    product(false, true, T, k, n, dz, w, dx);
    product_add(true, false, k, n, T, x, dz, dw);
    for (int i = 0; i < T; i++)
        for (int j = 0; j < n; j++) dbias[j] += dz[i * n + j];
}

/* z = (x - mean) / deviation · weight + bias along rows of D; scale keeps mean and 1 / deviation */
static void normalise(const float *restrict x, const float *restrict weight, const float *restrict bias,
                      float *restrict z, float (*restrict scale)[2]) {
    for (int i = 0; i < T; i++, x += D, z += D) {
        float mean = 0, square = 0;
        for (int j = 0; j < D; j++) mean += x[j];
        mean /= D;
        for (int j = 0; j < D; j++) square += (x[j] - mean) * (x[j] - mean);
        float r = 1 / sqrtf(square / D + 1e-5f);
        for (int j = 0; j < D; j++) z[j] = (x[j] - mean) * r * weight[j] + bias[j];
        scale[i][0] = mean, scale[i][1] = r;
    }
}

/* dx += (g - mean(g) - u mean(g u)) / deviation, where u is x normalised and g = dz · weight */
static void normalise_back(const float *restrict x, const float *restrict weight, float (*restrict scale)[2],
                           const float *restrict dz, float *restrict dx, float *restrict dweight,
                           float *restrict dbias) {
    for (int i = 0; i < T; i++, x += D, dz += D, dx += D) {
        float mean = scale[i][0], r = scale[i][1], first = 0, second = 0;
        for (int j = 0; j < D; j++) {
            float u = (x[j] - mean) * r, g = dz[j] * weight[j];
            first += g, second += g * u;
            dweight[j] += dz[j] * u, dbias[j] += dz[j];
        }
        first /= D, second /= D;
        for (int j = 0; j < D; j++) dx[j] += r * (dz[j] * weight[j] - first - (x[j] - mean) * r * second);
    }
}

/* z = gelu(x), and x becomes its derivative */
static void gelu(int n, float *restrict x, float *restrict z) {
    for (int i = 0; i < n; i++) {
        const float c = 0.7978845608f, a = 0.044715f;
        float       v = x[i], t = tanhf(c * (v + a * v * v * v));
        z[i] = 0.5f * v * (1 + t);
        x[i] = 0.5f * (1 + t) + 0.5f * v * (1 - t * t) * c * (1 + 3 * a * v * v);
    }
}

static void add_to(int n, const float *restrict x, float *restrict z) {
    for (int i = 0; i < n; i++) z[i] += x[i];
}

/* Replaces logits (T, V) by their derivative, and returns the sum of the losses. */
static double lose(float *restrict z, const int *target) {
    double total = 0;
    for (int i = 0; i < T; i++, z += V) {
        float top = z[0], sum = 0;
        for (int j = 1; j < V; j++) top = z[j] > top ? z[j] : top;
        total += top - z[target[i]];
        for (int j = 0; j < V; j++) sum += z[j] = expf(z[j] - top);
        total += logf(sum);
        for (int j = 0; j < V; j++) z[j] *= 1 / (sum * BATCH * T);
        z[target[i]] -= 1.0f / (BATCH * T);
    }
    return total;
}

/* ---- the step -------------------------------------------------------------------------------- */

static void layer(const float *p, saved *s, float *x, float *scratch) { /* x (T, D) is changed */
    memcpy(s->x1, x, sizeof s->x1);
    normalise(s->x1, p + NORM1, p + NORM1_BIAS, s->n1, s->scale1);
    dense(D, 3 * D, s->n1, p + QKV, p + QKV_BIAS, s->qkv);
    attend(s->qkv, s->weights, s->mixed);
    dense(D, D, s->mixed, p + OUT, p + OUT_BIAS, scratch);
    add_to(T * D, scratch, x);
    memcpy(s->x2, x, sizeof s->x2);
    normalise(s->x2, p + NORM2, p + NORM2_BIAS, s->n2, s->scale2);
    dense(D, 4 * D, s->n2, p + UP, p + UP_BIAS, s->slope);
    gelu(T * 4 * D, s->slope, s->up);
    dense(4 * D, D, s->up, p + DOWN, p + DOWN_BIAS, scratch);
    add_to(T * D, scratch, x);
}

static void layer_back(const float *p, float *g, saved *s, work *w) { /* w->dx (T, D) is changed */
    dense_back(4 * D, D, s->up, p + DOWN, w->dx, w->wide, g + DOWN, g + DOWN_BIAS);
    for (int i = 0; i < T * 4 * D; i++) w->wide[i] *= s->slope[i];
    dense_back(D, 4 * D, s->n2, p + UP, w->wide, w->row, g + UP, g + UP_BIAS);
    normalise_back(s->x2, p + NORM2, s->scale2, w->row, w->dx, g + NORM2, g + NORM2_BIAS);
    dense_back(D, D, s->mixed, p + OUT, w->dx, w->row, g + OUT, g + OUT_BIAS);
    attend_back(s->qkv, s->weights, s->mixed, w->row, w->wide);
    dense_back(D, 3 * D, s->n1, p + QKV, w->wide, w->row, g + QKV, g + QKV_BIAS);
    normalise_back(s->x1, p + NORM1, s->scale1, w->row, w->dx, g + NORM1, g + NORM1_BIAS);
}

static void sequences(void *ctx, int part) {
    gpt         *all = ctx;
    work        *w = &all->each[part];
    const float *p = all->p;
    float       *g = w->g;
    memset(g, 0, sizeof w->g);
    w->loss = 0;
    for (int b = BATCH * part / share_threads(); b < BATCH * (part + 1) / share_threads(); b++) {
        const int *token = all->token + b * T, *target = all->target + b * T;
        for (int i = 0; i < T; i++)
            for (int j = 0; j < D; j++) w->x[i * D + j] = p[TOKENS + token[i] * D + j] + p[PLACES + i * D + j];
        for (int l = 0; l < LAYERS; l++) layer(p + LAYER0 + l * PER_LAYER, &w->layer[l], w->x, w->row);
        normalise(w->x, p + NORM, p + NORM_BIAS, w->last, w->scale);
        product(false, true, T, V, D, w->last, p + TOKENS, w->logits);
        w->loss += lose(w->logits, target);
        product(false, false, T, D, V, w->logits, p + TOKENS, w->row);
        product_add(true, false, V, D, T, w->logits, w->last, g + TOKENS);
        memset(w->dx, 0, sizeof w->dx);
        normalise_back(w->x, p + NORM, w->scale, w->row, w->dx, g + NORM, g + NORM_BIAS);
        for (int l = LAYERS - 1; l >= 0; l--)
            layer_back(p + LAYER0 + l * PER_LAYER, g + LAYER0 + l * PER_LAYER, &w->layer[l], w);
        for (int i = 0; i < T; i++) {
            add_to(D, w->dx + i * D, g + TOKENS + token[i] * D);
            add_to(D, w->dx + i * D, g + PLACES + i * D);
        }
    }
}

static void adamw(void *ctx, int part) {
    gpt        *all = ctx;
    int         threads = share_threads(), from = (int)((int64_t)COUNT * part / threads),
        to           = (int)((int64_t)COUNT * (part + 1) / threads);
    const float rate = 1e-4f, c1 = (float)(1 / (1 - pow(0.9, (double)all->step))),
                c2    = (float)(1 / (1 - pow(0.999, (double)all->step)));
    float *restrict p = all->p, *restrict m = all->m, *restrict v = all->v, *restrict sum = all->each[0].g;
    for (int k = 1; k < threads; k++) {
        const float *restrict more = all->each[k].g;
        for (int i = from; i < to; i++) sum[i] += more[i];
    }
    for (int i = from; i < to; i++) {
        float g = sum[i];
        m[i] = 0.9f * m[i] + 0.1f * g;
        v[i] = 0.999f * v[i] + 0.001f * g * g;
        p[i] = p[i] * (1 - rate * 0.01f) - rate * c1 * m[i] / (sqrtf(v[i] * c2) + 1e-8f);
    }
}

static double gpt_step(void *state) {
    gpt   *all = state;
    double loss = 0;
    share(sequences, all);
    all->step++;
    share(adamw, all);
    for (int i = 0; i < share_threads(); i++) loss += all->each[i].loss;
    return loss / (BATCH * T);
}

const workload gpt_by_hand = {"gpt_nano", "f32", gpt_make, gpt_step, gpt_destroy, 5.567428, SIZED(1e-6, 0), NULL};
