/* pieces.h: passes that change the order in which things are made.
 *
 * What the folder does: brings operations together that can run together (gather.c), with what can
 * follow a matrix product as its end (ends.h), and makes arrays in the order of elements in which
 * they are read: matrices turned (turns.c), arrays of pieces permuted (pieces.c).
 *
 * May call: base, job, rules, backend, program, passes. Must not touch: what passes must not. */
#ifndef COT_PASSES_PIECES_H
#define COT_PASSES_PIECES_H

#include "program/passes/passes.h"

/* A pass, as those of passes.h; turns.c runs it. */
cot__program *cot__put_together_permuted(const cot__program *p, const cot__pass_options *o);

#endif
