/* handwritten.h: the workloads in plain C, derivatives by hand: an honest best effort to be measured against. */
#ifndef BENCH_HANDWRITTEN_H
#define BENCH_HANDWRITTEN_H

#include "workloads/measure.h"

extern const workload mlp_by_hand[3], numbers_by_hand[3], passes_by_hand;

/* run(ctx, 0) … run(ctx, threads - 1) at once, on threads that wait for work; returns when all are done. */
void share_start(int threads);
int  share_threads(void);
void share(void (*run)(void *ctx, int part), void *ctx);

/* C(m,n) = A B, row-major; ta, tb: the operand is stored transposed. OpenBLAS if there is one, loops otherwise. */
void product(bool ta, bool tb, int m, int n, int k, const float *a, const float *b, float *c);
bool product_is_blas(void);
void product_start(int threads);

#endif
