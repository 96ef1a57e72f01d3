/* scalar_sweep.h: sweeps over runs of scalar nodes, one switch made from rules.def
 * (scalar_sweep.inc). */
#ifndef COT_SCALAR_SWEEP_H
#define COT_SCALAR_SWEEP_H

#include "tape/tape.h"

/* Runs of scalar nodes. They stop at the first node that is not a scalar of that kind, or is
 * wanted, and return its index. reverse: downward from i, stops below *lo, which follows the lowest
 * slot pushed to. forward: upward to `end`. */
typedef int64_t (*cot__reverse_run)(const cot__node *nodes, int64_t i, void *slots, uint32_t *lo);
typedef uint32_t (*cot__forward_run)(const cot__node *nodes, uint32_t i, uint32_t end, void *slots);
typedef struct cot__scalar_runs {
    int              lanes;
    cot__reverse_run reverse_f64, reverse_f32;
    cot__forward_run forward_f64, forward_f32;
} cot__scalar_runs;
/* The widest instance not wider than `lanes`: 1, 2 or 4; only the first knows f32. */
const cot__scalar_runs *cot__scalar_runs_for(int lanes);

/* The forward runs from lo to hi over f64 scalars: slots of the inputs, marked COT__WANTED, hold
 * their tangents. */
void cot__forward_lanes(cot_tape *t, uint32_t lo, uint32_t hi, const cot__scalar_runs *runs, void *slots);

#endif
