/* build.h: a trace while it is made: its memory, and the two passes over the tape. */
#ifndef COT_TRACE_BUILD_H
#define COT_TRACE_BUILD_H

#include "diff/engine/kept_adjoints.h"
#include "trace/trace.h"

typedef struct cot__trace_chunk {
    struct cot__trace_chunk *prev;
    size_t                   size, used; /* in bytes, with this header */
} cot__trace_chunk;

/* The trace and its data. All memory is in chunks that are freed together. */
typedef struct cot__trace_build {
    cot__trace        trace;
    cot__trace_chunk *chunks;
    cot__kept_adjoints        watch;    /* holds the adjoints */
    bool              watching, calling; /* kept_adjoints and cot__calling are open */
    bool              failed;   /* memory was short */
    struct cot__trace_piece *device; /* arrays on a device, the newest first */
    cot__view         seed;     /* where the sweep reads it; the trace shows it */
    uint8_t          *marks;    /* while the trace is made: marks of nodes 0 … top */
    uint32_t          top;
} cot__trace_build;

/* marks: the node is shown; an adjoint may flow to the node */
enum { COT__TRACE_SHOWN = 1, COT__TRACE_FLOWS = 2 };

/* Memory of the trace, 16-byte aligned, not cleared. NULL, with `failed` set, when memory is
 * short. */
void *cot__trace_memory(cot__trace_build *b, size_t bytes);
/* A row-major array with the shape of `like` and the given dtype, to compute with. It lives as long
 * as the trace. data is NULL when memory is short. */
cot__view cot__trace_array(cot__trace_build *b, const cot__view *like, cot_dtype dtype, bool zeros);
/* The same elements where the host can load them, for as long as the trace lives: a copy, if they
 * lie on a device. data NULL when there is no memory. */
cot__view cot__trace_shown(cot__trace_build *b, const cot__view *v);

/* Makes the steps. False when memory is short. For any other reason why there are none, trace.why
 * is set. */
bool cot__trace_sweep(cot__trace_build *b);

/* Collects the amounts that node `id` adds to its operands when its adjoint is g (data NULL: only
 * further results have one): appended to adds, in the order of the sweep. False when an error is on
 * the tape or memory is short. */
typedef struct cot__trace_giver {
    /* first, because rules see it as their driver */
    cot__sweep        sweep;
    cot__trace_build *build;
    uint32_t          id;
    cot__view         g;
    int               count, capacity;
    cot__trace_add   *adds;
    cot__view        *sums;     /* by index of the node; data NULL: nothing has arrived yet */
} cot__trace_giver;
bool cot__trace_give(cot__trace_giver *giver);

#endif
