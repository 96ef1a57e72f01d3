/* workloads.h: the workloads as the library runs them, one table for each file. */
#ifndef BENCH_WORKLOADS_H
#define BENCH_WORKLOADS_H

#include "workloads/measure.h"

#include <cotangent.h>

extern const workload mlp_workloads[11], cnn_workloads[3], gpt_workloads[3], number_workloads[4], chain_workloads[1],
    deep_workloads[3], compiled_workloads[14], gpt_compiled_workloads[3], cnn_compiled_workloads[3], layer_workloads[4],
    gcn_workloads[2], gcn_compiled_workloads[2];

/* A workload whose loss can be recorded without the rest of a step, for tests. The state begins
 * with its tape. */
typedef struct recorded {
    const char *name;
    void *(*make)(void);
    cot_var (*loss)(void *state);
    double (*step)(void *state);
    void (*destroy)(void *state);
} recorded;
extern const recorded mlp_recorded, cnn_recorded, gcn_recorded;

/* A leaf of U(seed) f32 numbers. */
static inline cot_var weights(cot_tape *t, uint64_t seed, cot_shape shape, double scale) {
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++) n *= shape.dim[i];
    float  *data = uniform_f32(seed, n, scale);
    cot_var x = cot_tensor(t, COT_F32, shape, data);
    free(data);
    return x;
}

/* Stops if the tape has failed: timing it would mean nothing. */
static inline void check(cot_tape *t) {
    if (cot_tape_status(t) == COT_OK) return;
    fprintf(stderr, "%s\n", cot_tape_message(t));
    exit(1);
}

#endif
