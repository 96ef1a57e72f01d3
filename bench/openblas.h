/* openblas.h: OpenBLAS for comparison, loaded at run time if the machine has it. */
#ifndef BENCH_OPENBLAS_H
#define BENCH_OPENBLAS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BLAS_ROWS = 101, BLAS_PLAIN = 111, BLAS_TRANSPOSED = 112 };

typedef struct openblas {
    void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                  int ldb, float beta, float *c, int ldc);
    void (*dgemm)(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                  const double *b, int ldb, double beta, double *c, int ldc);
    void (*sgemv)(int order, int ta, int m, int n, float alpha, const float *a, int lda, const float *x, int incx,
                  float beta, float *y, int incy);
    void (*dgemv)(int order, int ta, int m, int n, double alpha, const double *a, int lda, const double *x, int incx,
                  double beta, double *y, int incy);
    float (*sdot)(int n, const float *x, int incx, const float *y, int incy);
    double (*ddot)(int n, const double *x, int incx, const double *y, int incy);
    void (*set_threads)(int n);
    char *(*config)(void);
} openblas;

/* False: it is not installed. */
static inline bool openblas_load(openblas *b) {
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
    void *library = NULL;
    memset(b, 0, sizeof *b);
    /* Its idle threads spin for 2^26 cycles on the cores that we measure. Make that 2^20. */
    setenv("OPENBLAS_THREAD_TIMEOUT", "20", 0);
    for (int i = 0; i < 2 && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    void *f[8] = {dlsym(library, "cblas_sgemm"),
                  dlsym(library, "cblas_dgemm"),
                  dlsym(library, "openblas_set_num_threads"),
                  dlsym(library, "openblas_get_config"),
                  dlsym(library, "cblas_sgemv"),
                  dlsym(library, "cblas_dgemv"),
                  dlsym(library, "cblas_sdot"),
                  dlsym(library, "cblas_ddot")};
    /* POSIX lets a pointer to data hold a function; ISO C has no cast for it */
    memcpy(&b->sgemm, &f[0], sizeof f[0]);
    memcpy(&b->dgemm, &f[1], sizeof f[1]);
    memcpy(&b->set_threads, &f[2], sizeof f[2]);
    memcpy(&b->config, &f[3], sizeof f[3]);
    memcpy(&b->sgemv, &f[4], sizeof f[4]);
    memcpy(&b->dgemv, &f[5], sizeof f[5]);
    memcpy(&b->sdot, &f[6], sizeof f[6]);
    memcpy(&b->ddot, &f[7], sizeof f[7]);
    return f[0] && f[1] && f[2] && f[3] && f[4] && f[5] && f[6] && f[7];
}

#endif
