/* passes.c: `elementwise` once more, with one loop over whole arrays for each operation and nothing
 * fused. That is the memory traffic of eager execution. The gain of two threads here is what they
 * can gain if every value of the forward pass must be written. */
#include "handwritten/handwritten.h"

enum { ELEMENTS = 1 << SIZED(22, 18), THREADS = 64 };
enum { X, U, V, E, TH, A, S, SG, B, Y, G_S, G_SG, G_E, G_TH, G_X, ARRAYS };

typedef struct passes {
    float *array[ARRAYS];
    int    pass;
    double sum[THREADS][8];
} passes;

#define PASS(k, to, value)                                                                                             \
    case k: {                                                                                                          \
        float *restrict z = p->array[to];                                                                              \
        for (int64_t i = from; i < end; i++) z[i] = (value);                                                           \
        break;                                                                                                         \
    }
#define AT(name) p->array[name][i]

/* Computes the values one by one, the sum, and the adjoints, one operation at a time. z[i] is the
 * former content. */
static void run_pass(void *ctx, int part) {
    passes *p = ctx;
    int64_t from = (int64_t)ELEMENTS * part / share_threads(), end = (int64_t)ELEMENTS * (part + 1) / share_threads();
    switch (p->pass) {
        PASS(0, U, AT(X) * AT(X))
        PASS(1, V, -AT(U))
        PASS(2, E, expf(AT(V)))
        PASS(3, TH, tanhf(AT(X)))
        PASS(4, A, AT(TH) * AT(E))
        PASS(5, S, sinf(AT(X)))
        PASS(6, SG, 1 / (1 + expf(-AT(X))))
        PASS(7, B, AT(S) * AT(SG))
        PASS(8, Y, AT(A) + AT(B))
    case 9: {
        double total = 0;
        for (int64_t start = from; start < end; start += 1024) {
            float sum = 0;
            for (int64_t i = start; i < end && i < start + 1024; i++) sum += AT(Y);
            total += (double)sum;
        }
        p->sum[part][0] = total;
        break;
    }
        PASS(10, G_S, AT(SG))
        PASS(11, G_SG, AT(S))
        PASS(12, G_X, AT(G_SG) * AT(SG) * (1 - AT(SG)))
        PASS(13, G_X, z[i] + AT(G_S) * cosf(AT(X)))
        PASS(14, G_TH, AT(E))
        PASS(15, G_E, AT(TH))
        PASS(16, G_X, z[i] + AT(G_TH) * (1 - AT(TH) * AT(TH)))
        PASS(17, G_E, z[i] * AT(E))
        PASS(18, G_E, -z[i])
        PASS(19, G_X, z[i] + 2 * AT(G_E) * AT(X))
    }
}

static void *passes_make(void) {
    passes *p = must(calloc(1, sizeof *p));
    p->array[X] = uniform_f32(7, ELEMENTS, 3);
    for (int k = X + 1; k < ARRAYS; k++) p->array[k] = must(malloc(ELEMENTS * sizeof(float)));
    return p;
}

static double passes_step(void *state) {
    passes *p = state;
    double  sum = 0;
    for (p->pass = 0; p->pass < 20; p->pass++) share(run_pass, p);
    for (int i = 0; i < share_threads(); i++) sum += p->sum[i][0];
    return sum;
}

static void passes_destroy(void *state) {
    passes *p = state;
    for (int k = 0; k < ARRAYS; k++) free(p->array[k]);
    free(p);
}

const workload passes_by_hand = {"elementwise_passes", "f32",    passes_make,   passes_step,
                                 passes_destroy,       852839.9, SIZED(2e-6, 0), NULL};
