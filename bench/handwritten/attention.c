/* attention.c: causal attention over 128 positions and its derivative, one head at a time, by
 * products whose tile of eight rows and two vectors stays in registers. Tiles beyond the diagonal
 * are left out. */
#include "handwritten/gpt.h"

enum { LANES = 16, ROWS = 8, COLUMNS = 2 * LANES };
typedef float vec __attribute__((vector_size(4 * LANES)));

typedef struct head {
    _Alignas(64) float q[T * EACH], k[T * EACH], v[T * EACH], z[T * EACH], turned[EACH * T], s[T * T];
} head;

/* c[8][32] (rows ldc apart) = Σ over p in [from, to) of a[i · row + p · step] b[p · ldb + j] */
static inline __attribute__((always_inline)) void tile(const float *restrict a, int row, int step,
                                                       const float *restrict b, int ldb, float *restrict c, int ldc,
                                                       int from, int to) {
    vec sum[2 * ROWS] = {{0}};
    for (int p = from; p < to; p++) {
        const vec *line = (const vec *)(b + p * ldb);
        UNROLLED
        for (int s = 0; s < 2 * ROWS; s++) sum[s] += a[s / 2 * row + p * step] * line[s % 2];
    }
    for (int s = 0; s < 2 * ROWS; s++) ((vec *)(c + s / 2 * ldc))[s % 2] = sum[s];
}

/* c (T, T) = a (T, EACH) b (EACH, T), up to the diagonal */
static void lower(const float *a, const float *b, float *c) {
    for (int i = 0; i < T; i += ROWS)
        for (int j = 0; j < i + ROWS; j += COLUMNS) tile(a + i * EACH, EACH, 1, b + j, T, c + i * T + j, T, 0, EACH);
}

/* c (T, EACH) = s b or sᵀ b with s (T, T) zero beyond its diagonal */
static void mix(const float *s, const float *b, float *c) {
    for (int i = 0; i < T; i += ROWS) tile(s + i * T, T, 1, b, EACH, c + i * EACH, EACH, 0, i + ROWS);
}
static void mix_turned(const float *s, const float *b, float *c) {
    for (int i = 0; i < T; i += ROWS) tile(s + i, 1, T, b, EACH, c + i * EACH, EACH, i, T);
}

static void turn(const float *restrict x, float *restrict z) {
    for (int i = 0; i < T; i++)
        for (int j = 0; j < EACH; j++) z[j * T + i] = x[i * EACH + j];
}

/* part (T, EACH) of x, whose rows are `row` apart, or back */
static void get(const float *restrict x, int row, float scale, float *restrict part) {
    for (int i = 0; i < T; i++)
        for (int j = 0; j < EACH; j++) part[i * EACH + j] = scale * x[i * row + j];
}
static void put(const float *restrict part, float scale, float *restrict x, int row) {
    for (int i = 0; i < T; i++)
        for (int j = 0; j < EACH; j++) x[i * row + j] = scale * part[i * EACH + j];
}

static const float root = 0.17677669529663687f; /* 1 / √EACH */

void attend(const float *qkv, float *weights, float *mixed) {
    head h;
    for (int n = 0; n < HEADS; n++) {
        const float *from = qkv + n * EACH;
        float       *s = weights + n * T * T;
        get(from, 3 * D, root, h.q), get(from + D, 3 * D, 1, h.k), get(from + 2 * D, 3 * D, 1, h.v);
        turn(h.k, h.turned);
        lower(h.q, h.turned, s);
        for (int i = 0; i < T; i++) {
            float *w = s + i * T, top = w[0], sum = 0;
            /* the part of this row that is read */
            int    end = (i / ROWS + 1) * ROWS;
            for (int j = 1; j <= i; j++) top = w[j] > top ? w[j] : top;
            for (int j = 0; j <= i; j++) sum += w[j] = expf(w[j] - top);
            sum = 1 / sum;
            for (int j = 0; j <= i; j++) w[j] *= sum;
            for (int j = i + 1; j < end; j++) w[j] = 0;
        }
        mix(s, h.v, h.z);
        put(h.z, 1, mixed + n * EACH, D);
    }
}

void attend_back(const float *qkv, const float *weights, const float *mixed, const float *dmixed, float *dqkv) {
    head  h;
    float grad[T * EACH] __attribute__((aligned(64)));
    for (int n = 0; n < HEADS; n++) {
        int          at = n * EACH;
        const float *w = weights + n * T * T;
        get(qkv + at, 3 * D, root, h.q), get(qkv + at + D, 3 * D, 1, h.k), get(qkv + at + 2 * D, 3 * D, 1, h.v);
        get(dmixed + at, D, 1, h.z);
        turn(h.v, h.turned);
        mix_turned(w, h.z, grad);
        put(grad, 1, dqkv + at + 2 * D, 3 * D);
        /* the adjoint of the weights, then that of the softmax's input: w (d - Σ w d), where the
         * sum is z · dz */
        lower(h.z, h.turned, h.s);
        for (int i = 0; i < T; i++) {
            float dot = 0;
            int   end = (i / ROWS + 1) * ROWS;
            for (int j = 0; j < EACH; j++) dot += h.z[i * EACH + j] * mixed[at + i * D + j];
            for (int j = 0; j < end; j++) h.s[i * T + j] = w[i * T + j] * (h.s[i * T + j] - dot);
        }
        mix(h.s, h.k, grad);
        put(grad, root, dqkv + at, 3 * D);
        mix_turned(h.s, h.q, grad);
        put(grad, 1, dqkv + at + D, 3 * D);
    }
}
