/* csr: products with sparse matrices: a x, and the gradients of its sum of squares by the values
 * and by x. For each case a line
 *
 *     cora-16 f32  product MS  gradients MS
 *
 * the least of several samples. Given the name of a case, only that: tools/bench_csr.py takes turns
 * with SciPy and PyTorch by it. This is not a test: speed is measured, not asserted.
 *
 * usage: csr [CASE [SAMPLES]] */
#include <cotangent.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Nodes, entries and columns: a graph of papers that all know, and one of a citation network. */
static const struct problem { const char *name; int64_t nodes, entries, width; } problems[] = {
    {"cora-16", 2708, 13264, 16},
    {"cora-1433", 2708, 13264, 1433},
    {"large-1", 110000, 860000, 1},
#ifndef BENCH_SMALL
    {"large-200", 110000, 860000, 200},
#endif
};

static uint64_t seed = 1;
static int64_t  whole(int64_t n) {
     seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
     return (int64_t)((seed >> 33) % (uint64_t)n);
}

typedef struct times { double product, gradients; } times;

static times measure(const struct problem *p, cot_dtype d, int samples) {
    int64_t  *row = malloc((size_t)p->entries * 2 * sizeof *row), *column = row + p->entries;
    times     least = {1e9, 1e9};
    cot_tape *t = cot_tape_create(NULL);
    cot_key   key = cot_key_of(1);
    if (!row || !t) exit(1);
    for (int64_t e = 0; e < p->entries; e++) row[e] = whole(p->nodes), column[e] = whole(p->nodes);
    cot_csr a = cot_csr_from_triplets(t, p->nodes, p->nodes, p->entries, row, column,
                                      cot_normal(t, key, d, COT_SHAPE(p->entries)));
    cot_var x = cot_normal(t, key, d, COT_SHAPE(p->nodes, p->width));
    cot_var v = a.values = cot_leaf(a.values), y = cot_leaf(x);
    cot_mark m = cot_tape_mark(t);
    for (int k = 0; k < samples && cot_tape_status(t) == COT_OK; k++) {
        double from = now();
        cot_csr_matmul(a, x);
        double  middle = now();
        cot_var g[2], z = cot_csr_matmul(a, y), seeds = cot_detach(z);
        double  begun = now();
        cot_vjp(z, seeds, 2, (cot_var[]){v, y}, g);
        double end = now();
        if (middle - from < least.product) least.product = middle - from;
        if (end - begun < least.gradients) least.gradients = end - begun;
        cot_tape_rewind(t, m);
    }
    if (cot_tape_status(t) != COT_OK) {
        fprintf(stderr, "%s\n", cot_tape_message(t));
        exit(1);
    }
    cot_tape_destroy(t);
    free(row);
    return least;
}

int main(int argc, char **argv) {
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++) {
        const struct problem *p = &problems[k];
        if (argc > 1 && strcmp(argv[1], p->name)) continue;
        int few = p->entries * p->width > 50 << 20 ? 3 : p->width > 200 ? 20 : 200;
        for (int narrow = 1; narrow >= 0; narrow--) {
            times t = measure(p, narrow ? COT_F32 : COT_F64, argc > 2 ? atoi(argv[2]) : few);
            printf("%-10s %s  product %9.3f ms  gradients %9.3f ms\n", p->name, narrow ? "f32" : "f64", 1e3 * t.product,
                   1e3 * t.gradients);
        }
    }
    return 0;
}
