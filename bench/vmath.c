/* vmath: ns per element of each elementwise function of one operand, f32 and f64, for every
 * instruction set this processor has, beside one call for each element (the column "plain");
 * the numbers in brackets are how many times faster. Arrays of 4096 that stay in cache, the least
 * of many runs.
 *
 *     build/bench/vmath [name]        all functions, or one */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "rules/elementwise_ids.h"
#include "backend/cpu/elementwise/blocks.h"
#include "ops/elementwise/elementwise.h"

enum { N = 4096, RUNS = 60 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double x64[N], z64[N];
static float  x32[N], z32[N];

static double measure(cot__value_kernel kernel, const void *x, void *z) {
    double best = INFINITY;
    for (int r = 0; r < RUNS; r++) {
        double t = now();
        kernel(N, x, x, x, z);
        t = now() - t;
        best = t < best ? t : best;
    }
    return best / N * 1e9;
}

static void line(int op, cot_dtype d) {
    const void *x = d == COT_F64 ? (const void *)x64 : (const void *)x32;
    void       *z = d == COT_F64 ? (void *)z64 : (void *)z32;
    double      plain = measure(cot__plain_blocks(op, d)->value, x, z);
    printf("%-14s %s %8.3f", cot__elementwise_table[op].name, d == COT_F64 ? "f64" : "f32", plain);
    for (cot__isa isa = (cot__isa)1; isa <= cot__cpu_best(); isa = (cot__isa)(isa + 1)) {
        cot__cpu_use(isa);
        double t = measure(cot__blocks(op, d)->value, x, z);
        printf(" %8.3f (%5.1f)", t, plain / t);
    }
    printf("\n");
}

int main(int argc, char **argv) {
    printf("%-14s     %8s", "ns an element", "plain");
    for (cot__isa isa = (cot__isa)1; isa <= cot__cpu_best(); isa = (cot__isa)(isa + 1))
        printf(" %8s        ", cot__isa_name(isa));
    printf("\n");
    for (int op = 0; op < OP_elementwise_count; op++) {
        const cot__elementwise_info *e = &cot__elementwise_table[op];
        if (e->arity > 2 || (argc > 1 && strcmp(argv[1], e->name) != 0)) continue;
        for (int i = 0; i < N; i++) {
            /* points of the domain in scrambled order, so that no branch can be predicted */
            x64[i] = e->lo + (e->hi - e->lo) * ((i * 2654435761u % N) + 0.5) / N;
            x32[i] = (float)x64[i];
        }
        line(op, COT_F32);
        line(op, COT_F64);
    }
    return 0;
}
