/* directions.c: sweeps over unit directions, LANES at a time: as many as one sweep carries. */
#include "problem/directions.h"

#include <stdlib.h>

#include "problem/expression.h"
#include "io/progress.h"

enum { LANES = 4 };

/* Writes LANES unit vectors of length n as rows, beginning with number `from`. */
static int set_units(double *rows, int64_t n, int64_t from) {
    int used = 0;
    for (; used < LANES && from + used < n; used++) {
        for (int64_t i = 0; i < n; i++) rows[used * n + i] = 0;
        rows[used * n + from + used] = 1;
    }
    return used;
}

bool directions_jacobian(const char *what, cot_tape *t, cot_mode mode, int m, const cot_var *ys, int64_t M, int n,
                         const cot_var *xs, int64_t N, double *out, failure *f) {
    int64_t  sweeps = mode == COT_REVERSE ? M : N, length = mode == COT_REVERSE ? N : M;
    double  *units = malloc(LANES * ((size_t)sweeps + 1) * sizeof *units);
    double  *columns = malloc(LANES * ((size_t)length + 1) * sizeof *columns);
    progress shown = progress_start(what, sweeps);
    bool     fine = (units && columns) || failure_memory(f);
    for (int64_t i = 0; fine && i < sweeps; i += LANES) {
        int used = set_units(units, sweeps, i);
        if (mode == COT_REVERSE) {
            fine = cot_vjps(used, m, ys, units, n, xs, out + i * N) == COT_OK;
        } else {
            fine = cot_jvps(used, n, xs, units, m, ys, columns) == COT_OK;
            for (int64_t k = 0; fine && k < used * M; k++) out[(k % M) * N + i + k / M] = columns[k];
        }
        progress_at(&shown, i + used);
    }
    progress_end(&shown);
    free(units);
    free(columns);
    return fine || tape_failure(t, f);
}

bool directions_gradient(cot_tape *t, cot_mode mode, cot_var y, int64_t M, const double *seed, int n, const cot_var *xs,
                         int64_t N, double *out, failure *f) {
    if (mode != COT_FORWARD) return cot_vjps(1, 1, &y, seed, n, xs, out) == COT_OK || tape_failure(t, f);
    double  *units = malloc(LANES * ((size_t)N + 1) * sizeof *units);
    double  *moved = malloc(LANES * ((size_t)M + 1) * sizeof *moved);
    progress shown = progress_start("forward sweeps", N);
    bool     fine = (units && moved) || failure_memory(f);
    for (int64_t i = 0; fine && i < N; i += LANES) {
        int used = set_units(units, N, i);
        fine = cot_jvps(used, n, xs, units, 1, &y, moved) == COT_OK;
        for (int k = 0; fine && k < used; k++) {
            double sum = 0;
            for (int64_t r = 0; r < M; r++) sum += seed[r] * moved[k * M + r];
            out[i + k] = sum;
        }
        progress_at(&shown, i + used);
    }
    progress_end(&shown);
    free(units);
    free(moved);
    return fine || tape_failure(t, f);
}
