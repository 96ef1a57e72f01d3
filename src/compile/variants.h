/* variants.h: programs that are derived from a program: its derivatives, and its cot_vmap. Each is
 * made once, when it is first asked for, under a lock of the program's. A derivative lives as long
 * as the program; batches may have any extent, so those that were used last are kept.
 *
 * All are made in the same way: a function that records the source and its derivative, or cot_vmap
 * of it, on a tape is compiled. So there is one set of rules, and derivatives of any order exist,
 * of batches too. */
#ifndef COT_COMPILE_VARIANTS_H
#define COT_COMPILE_VARIANTS_H

#include "compile/compile.h"
#include "compile/split.h"
#include "tape/tape.h"

typedef enum cot__derivative {
    /* y and residuals of x; x̄ of what was saved and the seeds of all float results */
    COT__SPLIT,
    /* x̄ of x, of results that are known, and the seeds of some; smooth: of x and the seeds alone */
    COT__PULL,
    COT__PUSH, /* the tangents of float results, of x and the tangents of some inputs */
    COT__FLOW  /* no program: which results have a derivative by some inputs; what is detached or
                * recorded without a gradient has none, nor has a value the second time */
} cot__derivative;

typedef struct cot__variant {
    struct cot__variant *next;
    cot__derivative      what;
    bool                 smooth;
    cot_program         *forward, *backward; /* SPLIT: both; else the one program is `backward` */
    /* SPLIT, PULL: what `backward` reads, see split.h. FLOW: of each result the first one that is
     * the same value */
    uint32_t            *saved, count;
    int64_t              recomputed;
    bool                *inputs, *results;   /* which of them take part */
    bool                *reached;            /* SPLIT, PULL: the inputs that get an adjoint */
} cot__variant;

/* The variant for these inputs and results (float ones alone; FLOW finds them). smooth, neither for
 * SPLIT nor for FLOW: it refuses where what it differentiates sits on a kink. NULL after telling
 * the caller. */
const cot__variant *cot__variant_of(cot_program *p, cot__derivative what, bool smooth, const bool *inputs,
                                    const bool *results, const cot__caller *caller);

/* ---- batches --------------------------------------------------------------------------------- */

/* Which outputs depend on an input that has the batch (`is`). False after an error on the tape. */
bool cot__batched_outputs(cot_tape *t, const cot_program *p, const bool *is, bool *outputs);
/* The program of p for `extent` elements: inputs that have the batch, and outputs that depend on
 * one, have it as axis 0. The caller is one owner of it. NULL after telling the caller. */
cot_program *cot__batched(cot_program *p, const bool *is, int64_t extent, const cot__caller *caller);
/* The program of p for inputs that are computed (`is`), see cot__replay_computed. */
cot_program *cot__computed(cot_program *p, const bool *is, const cot__caller *caller);
/* The program of p for operands of which some are the same: it has one input for these. `first`: of
 * each input the first one that is the same operand, itself if there is none. */
cot_program *cot__merged(cot_program *p, const uint32_t *first, const cot__caller *caller);
/* ys = the batch, recorded on t operation by operation. False after an error on the tape. */
bool cot__batched_record(cot_tape *t, cot_program *p, const bool *is, const cot_var *xs, cot_var *ys);

/* Of both kinds. */
void cot__variants_close(cot_program *p);

#endif
