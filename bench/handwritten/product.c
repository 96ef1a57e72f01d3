/* product.c: the matrix products of the handwritten workloads: OpenBLAS where it is installed. */
#include "handwritten/handwritten.h"
#include "openblas.h"

static openblas blas;
static bool     loaded;

void product_start(int threads) {
    loaded = loaded || openblas_load(&blas);
    if (loaded) blas.set_threads(threads);
}

bool product_is_blas(void) { return loaded; }

/* A row of c at a time as a sum of rows of b; where b is transposed, inner products. */
static void loops(bool add, bool ta, bool tb, int m, int n, int k, const float *restrict a, const float *restrict b,
                  float *restrict c) {
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n && !add; j++) c[i * n + j] = 0;
        if (tb)
            for (int j = 0; j < n; j++) {
                float sum = 0;
                for (int p = 0; p < k; p++) sum += (ta ? a[p * m + i] : a[i * k + p]) * b[j * k + p];
                c[i * n + j] += sum;
            }
        else
            for (int p = 0; p < k; p++) {
                float s = ta ? a[p * m + i] : a[i * k + p];
                for (int j = 0; j < n; j++) c[i * n + j] += s * b[p * n + j];
            }
    }
}

static void multiply(bool add, bool ta, bool tb, int m, int n, int k, const float *a, const float *b, float *c) {
    /* a call of OpenBLAS costs more than a tiny product */
    if (!loaded || (int64_t)m * n * k < 40000) loops(add, ta, tb, m, n, k, a, b, c);
    else
        blas.sgemm(BLAS_ROWS, ta ? BLAS_TRANSPOSED : BLAS_PLAIN, tb ? BLAS_TRANSPOSED : BLAS_PLAIN, m, n, k, 1, a,
                   ta ? m : k, b, tb ? k : n, add, c, n);
}

void product(bool ta, bool tb, int m, int n, int k, const float *a, const float *b, float *c) {
    multiply(false, ta, tb, m, n, k, a, b, c);
}
void product_add(bool ta, bool tb, int m, int n, int k, const float *a, const float *b, float *c) {
    multiply(true, ta, tb, m, n, k, a, b, c);
}
