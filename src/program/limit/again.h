/* again.h: one walk over the units of a program within a budget of bytes, which builds a program
 * that computes again what was let go, or fetches it from a file. */
#ifndef COT_PROGRAM_AGAIN_H
#define COT_PROGRAM_AGAIN_H

#include "program/limit/units.h"
#include "program/passes/passes.h"

/* A new owner of the program, or of the old one if nothing is computed again. spills: values may go
 * to a file. NULL: *too_long, if it would become many times as long; otherwise after telling the
 * caller that there is no memory. */
cot__program *cot__compute_again(const cot__units *u, int64_t budget, bool spills, const cot__pass_options *o,
                                 bool *too_long);

#endif
