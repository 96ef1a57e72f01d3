/* gemm: compares matrix products with OpenBLAS on its own threads. It prints one line for each
 * shape: GFLOP/s of both, and the ratio of times.
 *
 * Both take turns of several products each. In a pause between them the threads of the other side
 * fall asleep. Times are the least. Without OpenBLAS only our numbers are printed. Products of
 * vectors and matrices are compared with gemv, of two vectors with dot. Then come products of bf16,
 * as they are and with `fast`, in turn with f32's. */
#include "openblas.h"
#include "workloads/measure.h"

#include <cotangent.h>

typedef struct shape { const char *of; int m, n, k; } shape;

static const shape shapes[] = {
    {"mlp", 128, 512, 784},           {"mlp", 128, 512, 512},        {"mlp dW", 784, 512, 128},
    {"mlp_wide", 512, 4096, 1024},    {"mlp_wide", 512, 4096, 4096}, {"mlp_wide", 512, 1000, 4096},
    {"mlp_wide dW", 4096, 4096, 512}, {"gpt_nano", 1024, 512, 128},  {"square", 64, 64, 64},
    {"square", 256, 256, 256},        {"square", 512, 512, 512},     {"square", 1024, 1024, 1024},
    {"vector", 512, 1, 512},          {"vector", 1, 512, 512},       {"vector", 4096, 1, 4096},
    {"vector", 1, 4096, 4096},        {"dot", 1, 1, 1 << 14},        {"dot", 1, 1, 1 << 17},
    {"dot", 1, 1, 1 << 23},
};

/* The most that our time may be of OpenBLAS's. An element of a matrix times a vector is one chain
 * of additions, which costs where memory does not bound the product. */
static double target_of(const shape *s) {
    bool vector = (s->m == 1) != (s->n == 1), cached = (int64_t)s->k * (s->m > s->n ? s->m : s->n) <= 1 << 20;
    return vector && cached ? 1.5 : s->m == 1 || s->n == 1 ? 1.1 : 1.05;
}

enum { TURNS = 4 };

static void pause_for_threads(void) { nanosleep(&(struct timespec){0, 5000000}, NULL); }

static void theirs_once(const shape *s, cot_dtype d, const openblas *blas, const void *a, const void *b, void *c) {
    if (s->m == 1 && s->n == 1) {
        if (d == COT_F32) *(float *)c = blas->sdot(s->k, a, 1, b, 1);
        else *(double *)c = blas->ddot(s->k, a, 1, b, 1);
    } else if (s->n == 1) {
        if (d == COT_F32) blas->sgemv(BLAS_ROWS, BLAS_PLAIN, s->m, s->k, 1, a, s->k, b, 1, 0, c, 1);
        else blas->dgemv(BLAS_ROWS, BLAS_PLAIN, s->m, s->k, 1, a, s->k, b, 1, 0, c, 1);
    } else if (s->m == 1) {
        if (d == COT_F32) blas->sgemv(BLAS_ROWS, BLAS_TRANSPOSED, s->k, s->n, 1, b, s->n, a, 1, 0, c, 1);
        else blas->dgemv(BLAS_ROWS, BLAS_TRANSPOSED, s->k, s->n, 1, b, s->n, a, 1, 0, c, 1);
    } else if (d == COT_F32)
        blas->sgemm(BLAS_ROWS, BLAS_PLAIN, BLAS_PLAIN, s->m, s->n, s->k, 1, a, s->k, b, s->n, 0, c, s->n);
    else blas->dgemm(BLAS_ROWS, BLAS_PLAIN, BLAS_PLAIN, s->m, s->n, s->k, 1, a, s->k, b, s->n, 0, c, s->n);
}

static void bench(const shape *s, cot_dtype d, const openblas *blas, double seconds) {
    cot_tape *t = must(cot_tape_create(NULL));
    size_t    size = d == COT_F32 ? sizeof(float) : sizeof(double);
    void *a = d == COT_F32 ? (void *)uniform_f32(1, (int64_t)s->m * s->k, 1) : uniform_f64(1, (int64_t)s->m * s->k, 1);
    void *b = d == COT_F32 ? (void *)uniform_f32(2, (int64_t)s->k * s->n, 1) : uniform_f64(2, (int64_t)s->k * s->n, 1);
    void     *c = must(calloc((size_t)s->m * (size_t)s->n, size));
    cot_var   x = cot_wrap(t, d, COT_SHAPE(s->m, s->k), a), y = cot_wrap(t, d, COT_SHAPE(s->k, s->n), b);
    cot_mark  start = cot_tape_mark(t);
    double    ours = INFINITY, theirs = INFINITY, flops = 2.0 * s->m * s->n * s->k;
    for (int turn = 0; turn < TURNS; turn++) {
        pause_for_threads();
        double until = now() + seconds / (2 * TURNS);
        for (int i = 0; i < 3 || now() < until; i++) {
            double t0 = now();
            cot_matmul(x, y);
            double t1 = now();
            cot_tape_rewind(t, start);
            ours = fmin(ours, t1 - t0);
        }
        if (!blas) continue;
        pause_for_threads();
        until = now() + seconds / (2 * TURNS);
        for (int i = 0; i < 3 || now() < until; i++) {
            double t0 = now();
            theirs_once(s, d, blas, a, b, c);
            theirs = fmin(theirs, now() - t0);
        }
    }
    printf("%-12s %5d x %5d x %5d  %s  %8.1f GFLOP/s", s->of, s->m, s->n, s->k, cot_dtype_name(d), flops / ours * 1e-9);
    if (blas) printf("  OpenBLAS %8.1f  time / OpenBLAS's %5.2f", flops / theirs * 1e-9, ours / theirs);
    if (blas) printf("  target <= %.2f %s", target_of(s), ours <= target_of(s) * theirs ? "met" : "MISSED");
    printf("\n");
    fflush(stdout);
    cot_tape_destroy(t);
    free(a), free(b), free(c);
}

/* One product on its tape, the least time of a turn. */
static double turn(cot_tape *t, cot_var x, cot_var y, double seconds) {
    cot_mark start = cot_tape_mark(t);
    double   least = INFINITY, until = now() + seconds;
    pause_for_threads();
    for (int i = 0; i < 3 || now() < until; i++) {
        double t0 = now();
        cot_matmul(x, y);
        least = fmin(least, now() - t0);
        cot_tape_rewind(t, start);
    }
    return least;
}

static void bench_bf16(const shape *s, double seconds) {
    enum { F32, BF16, FAST, WAYS };
    static const char *const name[WAYS] = {"f32", "bf16", "bf16 fast"};
    cot_tape *t[WAYS];
    cot_var   x[WAYS], y[WAYS];
    double    time[WAYS] = {INFINITY, INFINITY, INFINITY};
    for (int k = 0; k < WAYS; k++) {
        t[k] = must(cot_tape_create(&(cot_options){.fast = k == FAST}));
        x[k] = cot_normal(t[k], cot_key_of(1), k == F32 ? COT_F32 : COT_BF16, COT_SHAPE(s->m, s->k));
        y[k] = cot_normal(t[k], cot_key_of(2), k == F32 ? COT_F32 : COT_BF16, COT_SHAPE(s->k, s->n));
    }
    for (int i = 0; i < TURNS; i++)
        for (int k = 0; k < WAYS; k++) time[k] = fmin(time[k], turn(t[k], x[k], y[k], seconds / (WAYS * TURNS)));
    printf("%-12s %5d x %5d x %5d", s->of, s->m, s->n, s->k);
    for (int k = 0; k < WAYS; k++) printf("  %s %8.1f GFLOP/s", name[k], 2e-9 * s->m * s->n * s->k / time[k]);
    printf("  fast is %5.2f times as fast as f32\n", time[F32] / time[FAST]);
    fflush(stdout);
    for (int k = 0; k < WAYS; k++) cot_tape_destroy(t[k]);
}

int main(int argc, char **argv) {
    settings s = read_arguments(argc, argv, "gemm");
    openblas blas;
    bool     there = openblas_load(&blas);
    cot_set_threads(s.threads);
    if (there) blas.set_threads(s.threads);
    printf("%d threads; %s\n", s.threads,
           there ? blas.config() : "OpenBLAS is not installed (Debian: libopenblas0-pthread): no ratios");
    if (argc == 1) s.seconds = 0.5;
    for (int d = COT_F64; d <= COT_F32; d++)
        for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++)
            if (wanted(s.only, shapes[i].of))
                bench(&shapes[i], d == COT_F64 ? COT_F32 : COT_F64, there ? &blas : NULL, s.seconds);
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++)
        if (wanted(s.only, shapes[i].of) && (shapes[i].m > 1 || shapes[i].n > 1)) bench_bf16(&shapes[i], s.seconds);
    return 0;
}
