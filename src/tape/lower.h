/* lower.h: from a body, which lives on its tape, to a program, which needs none. */
#ifndef COT_LOWER_H
#define COT_LOWER_H

#include "program/program.h"
#include "tape/region.h"

/* Why a body cannot be a program yet. */
typedef struct cot__not_yet {
    const char *op;  /* the operation in the way; NULL: none is */
    const char *why;
} cot__not_yet;

/* The program of a body, in memory of `al`. Its inputs are the n inputs of the body, then the
 * captures; its constants are the fixed values, its outputs the m results. NULL: it cannot be
 * lowered yet, and *not_yet says why; or there is an error on the tape. */
cot__program *cot__region_lower(cot_tape *t, const cot__region *r, const cot_allocator *al, cot__not_yet *not_yet);

/* The same, kept with the body: made on the first call, in the tape's memory, and forgotten with
 * the body, or by a rewind that forgets what was recorded since. NULL: it cannot be lowered yet, or
 * there is an error on the tape. */
const cot__program *cot__region_program(cot_tape *t, const cot__region *r);

#endif
