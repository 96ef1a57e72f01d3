/* handwritten.h: the workloads in plain C, with derivatives by hand: a best effort to compare
 * with. */
#ifndef BENCH_HANDWRITTEN_H
#define BENCH_HANDWRITTEN_H

#include "workloads/measure.h"

extern const workload mlp_by_hand[3], cnn_by_hand, gpt_by_hand, numbers_by_hand[3], passes_by_hand,
    chain_by_hand, deep_by_hand;

/* Runs run(ctx, 0) … run(ctx, threads - 1) at the same time, on threads that wait for work. Returns
 * when all are done. */
void share_start(int threads);
int  share_threads(void);
void share(void (*run)(void *ctx, int part), void *ctx);

/* C(m,n) = A B, or C += A B, row-major; ta, tb: the operand is stored transposed. Uses OpenBLAS if
 * it is installed, else loops. It runs on as many threads as product_start was given. With one
 * thread, several threads may call it at once. */
void product(bool ta, bool tb, int m, int n, int k, const float *a, const float *b, float *c);
void product_add(bool ta, bool tb, int m, int n, int k, const float *a, const float *b, float *c);
bool product_is_blas(void);
void product_start(int threads);

/* Marks a loop over a tile that should stay in registers. */
#ifdef __clang__
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED _Pragma("GCC unroll 32")
#endif

static inline void *aligned_zeros(size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    return memset(must(aligned_alloc(64, bytes)), 0, bytes);
}

#endif
