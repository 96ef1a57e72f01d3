/* scalar_sweep.h: sweeps over runs of scalar nodes, one switch made from rules.def
 * (scalar_sweep.inc). */
#ifndef COT_SCALAR_SWEEP_H
#define COT_SCALAR_SWEEP_H

#include "tape/tape.h"

/* Runs of scalar nodes. They stop at the first node that is not a scalar of that kind, or is
 * wanted, and return its index. reverse: downward from i, stops below *lo, which follows the lowest
 * slot pushed to, and at `floor` if nothing is to be passed on there (cot__windows_down). forward:
 * upward to `end`. */
typedef int64_t (*cot__reverse_run)(const cot__node *nodes, int64_t i, int64_t floor, void *slots, uint32_t *lo);
typedef uint32_t (*cot__forward_run)(const cot__node *nodes, uint32_t i, uint32_t end, void *slots);
typedef struct cot__scalar_runs {
    int              lanes;
    cot__reverse_run reverse_f64, reverse_f32;
    cot__forward_run forward_f64, forward_f32;
} cot__scalar_runs;
/* The widest instance not wider than `lanes`: 1, 2 or 4; only the first knows f32. */
const cot__scalar_runs *cot__scalar_runs_for(int lanes);

/* ---- tapes whose lists lie in files (windows.c) ---- */

/* A walk down such a tape goes a window at a time, and has the pages leave that it has passed. A
 * run of scalars, the hottest loop of all, does not ask at each node whether it has passed one: it
 * stops at a node with a flag, and the node at the floor of the window gets that flag while it
 * runs. At nodes with nothing to pass on it does not look; there it asks. */
typedef struct cot__windows {
    cot_tape *t;
    int64_t   floor; /* the last node of the window; negative: there is none */
} cot__windows;
/* A walk down from node i. */
static inline cot__windows cot__windows_open(cot_tape *t, int64_t i) {
    return (cot__windows){t, t->memory.mapped ? i : INT64_MIN};
}
void cot__windows_next(cot__windows *w, int64_t i);
static inline void cot__windows_at(cot__windows *w, int64_t i) { /* the walk has come to node i */
    if (UNLIKELY(i <= w->floor)) cot__windows_next(w, i);
}
/* A run down from node i, which cot__windows_at has seen; it may stop at the floor. */
int64_t cot__windows_run(cot__windows *w, cot__reverse_run down, int64_t i, uint32_t *lo);
static inline int64_t cot__windows_down(cot__windows *w, cot__reverse_run down, int64_t i, uint32_t *lo) {
    cot_tape *t = w->t;
    if (UNLIKELY(w->floor >= 0)) return cot__windows_run(w, down, i, lo);
    return down(t->nodes, i, -1, t->sweep.adjoints.data, lo);
}
/* A walk up to `top` has come to node i: the last node of the window, *last, changes when it has
 * passed it. */
static inline void cot__windows_up(cot_tape *t, uint32_t i, uint32_t top, uint32_t *last) {
    if (LIKELY(i <= *last)) return;
    cot__lists_leave(t);
    *last = i + cot__window(t) <= top ? i + (uint32_t)cot__window(t) - 1 : top;
}

/* The forward runs from lo to hi over f64 scalars: slots of the inputs, marked COT__WANTED, hold
 * their tangents. */
void cot__forward_lanes(cot_tape *t, uint32_t lo, uint32_t hi, const cot__scalar_runs *runs, void *slots);

#endif
