/* linalg: compares eigh and svd of one f64 matrix by our own kernels with LAPACK, if it is
 * installed. It prints milliseconds of both and their ratio. Times are the least of several runs,
 * in which both take turns. LAPACK is the library that COTANGENT_LAPACK names, or liblapack.so.3,
 * with its own choice of threads. */
#include "backend/cpu/linalg/lin.h"

#include <cotangent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of one call. */
static double timed(cot_tape *t, cot_var x, bool svd) {
    cot_mark m = cot_tape_mark(t);
    cot_var  a, b, c;
    double   start = now();
    if (svd) cot_svd(x, &a, &b, &c);
    else cot_eigh(x, &a, &b);
    double took = now() - start;
    if (cot_tape_status(t) != COT_OK) fprintf(stderr, "%s\n", cot_tape_message(t)), exit(1);
    cot_tape_rewind(t, m);
    return took;
}

int main(void) {
    const char *name = getenv("COTANGENT_LAPACK");
    if (!name || !*name) name = "liblapack.so.3";
    bool      there = cot__lapack_use(name);
    cot_tape *t = cot_tape_create(NULL);
    cot_set_threads(2);
    printf("%-6s %6s %10s %10s %8s\n", "", "n", "ours, ms", "LAPACK, ms", "ratio");
    for (int svd = 0; svd < 2; svd++)
        for (int64_t n = 100; n <= 1000; n = n == 100 ? 300 : n == 300 ? 1000 : n + 1) {
            cot_var x = cot_normal(t, cot_key_of(3), COT_F64, COT_SHAPE(n, n));
            double  ours = INFINITY, theirs = INFINITY;
            for (int run = 0; run < (n <= 100 ? 20 : n <= 300 ? 8 : 3); run++) {
                cot__lapack_use(NULL);
                ours = fmin(ours, timed(t, x, svd));
                if (there && cot__lapack_use(name)) theirs = fmin(theirs, timed(t, x, svd));
            }
            printf("%-6s %6lld %10.4g ", svd ? "svd" : "eigh", (long long)n, ours * 1e3);
            if (there) printf("%10.4g %8.3g\n", theirs * 1e3, ours / theirs);
            else printf("%10s %8s\n", "-", "-");
            fflush(stdout);
        }
    cot_tape_destroy(t);
    return 0;
}
