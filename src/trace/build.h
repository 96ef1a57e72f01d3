/* build.h: a trace while it is made: the memory it lies in, and the two passes over the tape. */
#ifndef COT_TRACE_BUILD_H
#define COT_TRACE_BUILD_H

#include "diff/engine/kept_adjoints.h"
#include "trace/trace.h"

typedef struct cot__trace_chunk {
    struct cot__trace_chunk *prev;
    size_t                   size, used; /* of all, header included */
} cot__trace_chunk;

/* The trace and what belongs to it; all its memory is in chunks, freed together. */
typedef struct cot__trace_build {
    cot__trace        trace;
    cot__trace_chunk *chunks;
    cot__kept_adjoints        watch;    /* holds the adjoints */
    bool              watching;
    bool              failed;   /* memory was short */
    struct cot__trace_piece *device; /* arrays on a device, the newest first */
    cot__view         seed;     /* where the sweep reads it; the trace shows it */
    uint8_t          *marks;    /* while it is made, a byte a node: … */
    uint32_t          top;      /* … 0 … top */
} cot__trace_build;

/* marks: is shown; an adjoint may flow there */
enum { COT__TRACE_SHOWN = 1, COT__TRACE_FLOWS = 2 };

/* Memory of the trace, 16-byte aligned, not cleared; NULL (and failed is set) when there is
 * none. */
void *cot__trace_memory(cot__trace_build *b, size_t bytes);
/* A row-major array like v (dtype as given) to compute with, which lives as long as the trace; data
 * NULL when there is none. */
cot__view cot__trace_array(cot__trace_build *b, const cot__view *like, cot_dtype dtype, bool zeros);
/* The same elements where the host can load them, for as long as the trace lives: a copy, if they
 * lie on a device. data NULL when there is no memory. */
cot__view cot__trace_shown(cot__trace_build *b, const cot__view *v);

/* The dtype in which the adjoint of a node is kept: its own, or for scalars of 16 bits f32, as in
 * the slots of sweeps. */
cot_dtype cot__trace_adjoint_dtype(const cot_tape *t, uint32_t id);

/* The steps. False when memory is short; any other reason why there are none is in trace.why. */
bool cot__trace_sweep(cot__trace_build *b);

/* What node `id` adds to its operands when its adjoint is g: appended to adds, in the order of the
 * sweep. False when an error is on the tape or memory is short. */
typedef struct cot__trace_giver {
    cot__sweep        sweep;    /* first: rules see a driver */
    cot__trace_build *build;
    uint32_t          id;
    cot__view         g;
    int               count, capacity;
    cot__trace_add   *adds;
    cot__view        *sums;     /* by index of the node; data NULL: nothing has arrived yet */
} cot__trace_giver;
bool cot__trace_give(cot__trace_giver *giver);

#endif
