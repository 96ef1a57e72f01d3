/* cnn.c: two convolutions with ReLU and pooling, a dense layer, derivatives by hand. Each thread
 * takes its images through the whole network, forward and back, with gradients of its own; these
 * are added up in the step. Nothing is shared in between.
 *
 * Channels come last, 16 of them are one vector, and every image has a border of zeros, so that a
 * tap is an offset. A convolution keeps a tile of neighbouring places times all its channels in
 * registers while the taps pass; against im2col and a product that saves the copies. */
#include "handwritten/handwritten.h"

enum { BATCH = 64, CLASSES = 10, TAPS = 25, WIDE = 5, PAD = 2, LANES = 16 };
/* sides, with borders, channels */
enum { S1 = 28, B1 = S1 + 2 * PAD, C1 = 16, S2 = 14, B2 = S2 + 2 * PAD, C2 = 32, S3 = 7, FEATURES = S3 * S3 * C2 };
enum {
    CONV1 = 0,
    BIAS1 = CONV1 + TAPS * C1,
    CONV2 = BIAS1 + C1,
    BIAS2 = CONV2 + TAPS * C1 * C2,
    DENSE = BIAS2 + C2,
    BIAS3 = DENSE + CLASSES * FEATURES
};
enum { WEIGHTS = (BIAS3 + CLASSES + LANES - 1) / LANES * LANES, THREADS = 64 };

typedef float vec __attribute__((vector_size(4 * LANES)));

/* The memory of one thread for one image, and its sums of gradients. Weights: conv1 (tap, C1),
 * conv2 (tap, C1, C2), dense (class, feature). */
typedef struct work {
    _Alignas(64) float g[WEIGHTS];
    float   z1[S1 * S1 * C1], dz1[S1 * S1 * C1], h1[B2 * B2 * C1], dh1[S2 * S2 * C1];
    float   z2[S2 * S2 * C2], dz2[B2 * B2 * C2], h2[FEATURES], dh2[FEATURES];
    /* the place, of four, from which each maximum came; 4: the ReLU gave 0 */
    uint8_t from1[S2 * S2 * C1], from2[FEATURES];
    double  loss;
} work;

typedef struct cnn {
    float *p, *turned, *x; /* turned: conv2 as (tap, C2, C1); x (BATCH, B1, B1) */
    work  *each;
} cnn;

static void *cnn_make(void) {
    cnn   *c = must(calloc(1, sizeof *c));
    float *x = uniform_f32(6, BATCH * S1 * S1, 1), *w1 = uniform_f32(40, C1 * TAPS, 0.2),
          *w2    = uniform_f32(41, C2 * C1 * TAPS, 0.05);
    float *dense = uniform_f32(42, FEATURES * CLASSES, 0.025);
    c->p = aligned_zeros(WEIGHTS * sizeof(float));
    c->turned = aligned_zeros(TAPS * C1 * C2 * sizeof(float));
    c->x = aligned_zeros((size_t)BATCH * B1 * B1 * sizeof(float));
    c->each = aligned_zeros((size_t)share_threads() * sizeof *c->each);
    for (int i = 0; i < BATCH * S1 * S1; i++) c->x[(i / (S1 * S1) * B1 + i / S1 % S1 + PAD) * B1 + i % S1 + PAD] = x[i];
    for (int k = 0; k < TAPS; k++)
        for (int o = 0; o < C1; o++) c->p[CONV1 + k * C1 + o] = w1[o * TAPS + k];
    for (int k = 0; k < TAPS; k++)
        for (int i = 0; i < C1; i++)
            for (int o = 0; o < C2; o++) c->p[CONV2 + (k * C1 + i) * C2 + o] = w2[(o * C1 + i) * TAPS + k];
    for (int o = 0; o < C2; o++)
        for (int s = 0; s < S3 * S3; s++)
            for (int j = 0; j < CLASSES; j++)
                c->p[DENSE + j * FEATURES + s * C2 + o] = dense[(o * S3 * S3 + s) * CLASSES + j];
    free(x), free(w1), free(w2), free(dense);
    return c;
}

static void cnn_destroy(void *state) {
    cnn *c = state;
    free(c->p), free(c->turned), free(c->x), free(c->each);
    free(c);
}

/* z (side, side, out) of x (side + 4, side + 4, in), w (tap, in, out): tiles of some neighbouring
 * places times out = 16 · vectors, TILE vectors in all. The callers pass constants, so the compiler
 * keeps the tile in registers. */
static inline __attribute__((always_inline)) void convolve(int side, int in, int vectors, const float *restrict x,
                                                           const float *restrict w, float *restrict z) {
    enum { TILE = 14 };
    const int border = side + 2 * PAD, places = TILE / vectors;
    for (int y = 0; y < side; y++)
        for (int start = 0; start < side; start += places) {
            vec sum[TILE] = {{0}};
            for (int k = 0; k < TAPS; k++) {
                const float *from = x + ((y + k / WIDE) * border + start + k % WIDE) * in;
                const vec   *kernel = (const vec *)(w + k * in * vectors * LANES);
                for (int i = 0; i < in; i++) UNROLLED
                for (int s = 0; s < TILE; s++) sum[s] += from[s / vectors * in + i] * kernel[i * vectors + s % vectors];
            }
            vec *to = (vec *)z + (y * side + start) * vectors;
            for (int s = 0; s < TILE; s++) to[s] = sum[s];
        }
}

/* The largest of four places, plus bias, then ReLU; `out` has a border of `pad`. */
static inline void pool(int side, int channels, int pad, const float *restrict z, const float *restrict bias,
                        float *restrict out, uint8_t *restrict place) {
    const int half = side / 2, border = half + 2 * pad;
    for (int y = 0; y < half; y++)
        for (int x = 0; x < half; x++) {
            const float *a = z + (2 * y * side + 2 * x) * channels, *b = a + channels, *c = a + side * channels,
                        *d    = c + channels;
            float       *to = out + ((y + pad) * border + x + pad) * channels;
            uint8_t     *from = place + (y * half + x) * channels;
            for (int i = 0; i < channels; i++) {
                float   top = a[i];
                uint8_t best = 0;
                best = b[i] > top ? 1 : best, top = b[i] > top ? b[i] : top;
                best = c[i] > top ? 2 : best, top = c[i] > top ? c[i] : top;
                best = d[i] > top ? 3 : best, top = d[i] > top ? d[i] : top;
                top += bias[i];
                to[i] = top > 0 ? top : 0;
                from[i] = top > 0 ? best : 4;
            }
        }
}

/* The adjoint of pool, into dz with a border of `pad`. The bias gets the sum of the adjoints that
 * pass. */
static inline void unpool(int side, int channels, int pad, const float *restrict d, const uint8_t *restrict place,
                          float *restrict dz, float *restrict bias) {
    const int half = side / 2, border = side + 2 * pad;
    for (int y = 0; y < half; y++)
        for (int x = 0; x < half; x++) {
            const float   *g = d + (y * half + x) * channels;
            const uint8_t *from = place + (y * half + x) * channels;
            for (int k = 0; k < 4; k++) {
                float *to = dz + ((2 * y + k / 2 + pad) * border + 2 * x + k % 2 + pad) * channels;
                for (int i = 0; i < channels; i++) to[i] = from[i] == k ? g[i] : 0;
            }
            for (int i = 0; i < channels; i++) bias[i] += from[i] < 4 ? g[i] : 0;
        }
}

/* dense layer, loss, and back to h2 */
static void classify(const float *p, work *t, int label) {
    float z[CLASSES], top, sum = 0;
    for (int j = 0; j < CLASSES; j++) {
        float dot = 0;
        for (int f = 0; f < FEATURES; f++) dot += p[DENSE + j * FEATURES + f] * t->h2[f];
        z[j] = dot + p[BIAS3 + j];
    }
    top = z[0];
    for (int j = 1; j < CLASSES; j++) top = z[j] > top ? z[j] : top;
    t->loss += top - z[label];
    for (int j = 0; j < CLASSES; j++) sum += z[j] = expf(z[j] - top);
    t->loss += logf(sum);
    for (int j = 0; j < CLASSES; j++) z[j] = (z[j] / sum - (j == label)) / BATCH;
    for (int f = 0; f < FEATURES; f++) t->dh2[f] = 0;
    for (int j = 0; j < CLASSES; j++) {
        t->g[BIAS3 + j] += z[j];
        for (int f = 0; f < FEATURES; f++) {
            t->dh2[f] += z[j] * p[DENSE + j * FEATURES + f];
            t->g[DENSE + j * FEATURES + f] += z[j] * t->h2[f];
        }
    }
}

/* g (tap, C1, C2) += h1 · dz2: eight input channels by all output channels in registers while the
 * places pass */
static void weights2(const float *restrict h, const float *restrict dz, float *restrict g) {
    enum { SOME = 8, VECTORS = C2 / LANES, TILE = SOME * VECTORS };
    for (int k = 0; k < TAPS; k++)
        for (int first = 0; first < C1; first += SOME) {
            vec *at = (vec *)(g + (k * C1 + first) * C2), sum[TILE];
            for (int s = 0; s < TILE; s++) sum[s] = at[s];
            for (int y = 0; y < S2; y++) {
                const float *from = h + ((y + k / WIDE) * B2 + k % WIDE) * C1 + first;
                const vec   *d = (const vec *)(dz + ((y + PAD) * B2 + PAD) * C2);
                for (int x = 0; x < S2; x++) UNROLLED
                    for (int s = 0; s < TILE; s++) sum[s] += from[x * C1 + s / VECTORS] * d[x * VECTORS + s % VECTORS];
            }
            for (int s = 0; s < TILE; s++) at[s] = sum[s];
        }
}

/* g (tap, C1) += x · dz1: all taps in registers */
static void weights1(const float *restrict image, const float *restrict dz, float *restrict g) {
    vec sum[TAPS];
    for (int k = 0; k < TAPS; k++) sum[k] = ((vec *)g)[k];
    for (int y = 0; y < S1; y++)
        for (int x = 0; x < S1; x++) {
            vec d = ((const vec *)dz)[y * S1 + x];
            UNROLLED
            for (int k = 0; k < TAPS; k++) sum[k] += image[(y + k / WIDE) * B1 + x + k % WIDE] * d;
        }
    for (int k = 0; k < TAPS; k++) ((vec *)g)[k] = sum[k];
}

static void images(void *ctx, int part) {
    cnn  *c = ctx;
    work *t = &c->each[part];
    memset(t->g, 0, sizeof t->g);
    t->loss = 0;
    for (int b = BATCH * part / share_threads(); b < BATCH * (part + 1) / share_threads(); b++) {
        const float *x = c->x + b * B1 * B1, *p = c->p;
        convolve(S1, 1, 1, x, p + CONV1, t->z1);
        pool(S1, C1, PAD, t->z1, p + BIAS1, t->h1, t->from1);
        convolve(S2, C1, 2, t->h1, p + CONV2, t->z2);
        pool(S2, C2, 0, t->z2, p + BIAS2, t->h2, t->from2);
        classify(p, t, b % CLASSES);
        unpool(S2, C2, PAD, t->dh2, t->from2, t->dz2, t->g + BIAS2);
        weights2(t->h1, t->dz2, t->g + CONV2);
        convolve(S2, C2, 1, t->dz2, c->turned, t->dh1);
        unpool(S1, C1, 0, t->dh1, t->from1, t->dz1, t->g + BIAS1);
        weights1(x, t->dz1, t->g + CONV1);
    }
}

static double cnn_step(void *state) {
    cnn   *c = state;
    double loss = 0;
    /* the adjoint of h1 is a convolution with the kernel turned by half and its channels
     * exchanged */
    for (int k = 0; k < TAPS; k++)
        for (int i = 0; i < C1; i++)
            for (int o = 0; o < C2; o++)
                c->turned[((TAPS - 1 - k) * C2 + o) * C1 + i] = c->p[CONV2 + (k * C1 + i) * C2 + o];
    share(images, c);
    for (int i = 0; i < share_threads(); i++) {
        loss += c->each[i].loss;
        for (int k = 0; k < WEIGHTS; k++) c->p[k] -= 0.01f * c->each[i].g[k];
    }
    return loss / BATCH;
}

const workload cnn_by_hand = {"cnn", "f32", cnn_make, cnn_step, cnn_destroy, 2.295677, 1e-6, NULL};
