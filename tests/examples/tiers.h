/* tiers.h: what led to a value on a tape, as a program of its own, or a function that an example
 * compiles itself, run by every tier. */
#ifndef TIERS_H
#define TIERS_H

#include "program/program.h"
#include "tape/tape.h"

#include <cotangent_program.h>

/* Of a tape: leaves are the inputs, in their order; the value is the output. */
typedef struct taken {
    cot_fn        f;       /* a function that was compiled; NULL: it is of a tape … */
    void         *user;
    cot__program *p;       /* … as this program */
    bool         *cut;     /* of each operation: was it recorded without a gradient? */
    int           n;       /* inputs */
    uint32_t     *leaf;    /* of each input: its node */
    bool         *wanted;  /* does it require a gradient? */
    cot_type     *types;
    void        **in;      /* its elements */
    int           m;       /* outputs; of a tape the value, and the gradients that are wanted */
    cot_type     *results; /* … their types … */
    void        **want;    /* … and their elements, as the tape has them; NULL: it has none */
    double      **swept;   /* gradients as cot_backward gave them; NULL: others were there before */
    bool          native;  /* was native code among the tiers? */
    char          why[512]; /* it cannot be compared */
} taken;

/* What y was made from. Nodes that it does not need are left out, but for leaves. False: it cannot
 * be a program, and `why` tells. */
bool taken_open(taken *s, cot_var y);
/* What a program that is checked (`verify`) was compiled from, and what it is to run on now. */
void taken_compiled(taken *s, const cot_program *p, const void *const *inputs);
/* Notes the gradients of leaves that cot_backward is about to add to, … */
void taken_before(taken *s, cot_tape *t);
/* … and takes what it has added. */
void taken_after(taken *s, cot_tape *t);
void taken_close(taken *s);

/* Runs it eagerly and compiled, with passes, without, and native if asked for, by 1, 2 and 7
 * threads; of a tape y is the value. Tells stderr what differs; returns how many results did, and
 * adds to *compared how many were compared. */
int taken_by_tiers(taken *s, cot_var y, bool native, const char *where, int *compared);

#endif
