/* pieces.h: arrays that are put together in the order in which they are read. */
#ifndef COT_PASSES_PIECES_H
#define COT_PASSES_PIECES_H

#include "program/passes/passes.h"

/* A pass, as those of passes.h; turns.c runs it. */
cot__program *cot__put_together_permuted(const cot__program *p, const cot__pass_options *o);

#endif
