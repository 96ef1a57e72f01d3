/* gpt.h: the sizes and arrays of the handwritten transformer, and its attention. */
#ifndef BENCH_HANDWRITTEN_GPT_H
#define BENCH_HANDWRITTEN_GPT_H

#include "handwritten/handwritten.h"

/* Sequences go through the network one by one. Two or four together, with longer products, took the
 * same time. */
enum { V = 256, T = 128, BATCH = SIZED(8, 4), LAYERS = SIZED(4, 2), HEADS = 4, D = 128, EACH = D / HEADS };

/* Where each weight begins: in a layer, and in the whole network. */
enum {
    QKV        = 0,
    QKV_BIAS   = QKV + D * 3 * D,
    OUT        = QKV_BIAS + 3 * D,
    OUT_BIAS   = OUT + D * D,
    UP         = OUT_BIAS + D,
    UP_BIAS    = UP + D * 4 * D,
    DOWN       = UP_BIAS + 4 * D,
    DOWN_BIAS  = DOWN + 4 * D * D,
    NORM1      = DOWN_BIAS + D,
    NORM1_BIAS = NORM1 + D,
    NORM2      = NORM1_BIAS + D,
    NORM2_BIAS = NORM2 + D,
    PER_LAYER  = NORM2_BIAS + D
};
enum {
    TOKENS    = 0,
    PLACES    = TOKENS + V * D,
    NORM      = PLACES + T * D,
    NORM_BIAS = NORM + D,
    LAYER0    = NORM_BIAS + D,
    COUNT     = LAYER0 + LAYERS * PER_LAYER
};

/* The values of a layer that its derivative reads. */
typedef struct saved {
    _Alignas(64) float x1[T * D];
    float n1[T * D], qkv[T * 3 * D], weights[HEADS * T * T], mixed[T * D];
    float x2[T * D], n2[T * D], slope[T * 4 * D], up[T * 4 * D];
    float scale1[T][2], scale2[T][2];
} saved;

typedef struct work { /* of one thread */
    _Alignas(64) float g[COUNT];
    saved  layer[LAYERS];
    float  x[T * D], last[T * D], logits[T * V], dx[T * D], row[T * D], wide[T * 4 * D], scale[T][2];
    double loss;
} work;

typedef struct gpt {
    float  *p, *m, *v;
    int     token[BATCH * T], target[BATCH * T];
    int64_t step;
    work   *each;
} gpt;

/* mixed (T, D) = softmax(q kᵀ / √EACH, keys up to the query's own) v for each head; qkv (T, 3,
 * HEADS, EACH). weights keeps the softmax. */
void attend(const float *qkv, float *weights, float *mixed);
void attend_back(const float *qkv, const float *weights, const float *mixed, const float *dmixed, float *dqkv);

#endif
