/* vmap.h: plays a body for a batch, for cot_vmap and for loops inside of it.
 *
 * May call: base, rules, backend, tape, ops, the engine. Must not touch: slots and adjoints. */
#ifndef COT_VMAP_H
#define COT_VMAP_H

#include "tape/region.h"

/* Plays a body on values for its inputs and captures. A value has the batch as axis 0 if `given`
 * says so; out_is tells which of the m results have it. */
bool cot__play_batched(cot_tape *t, const char *op, const cot__region *r, const cot_var *values, const bool *given,
                       int64_t extent, cot_var *out, bool *out_is);
/* Tells which results will have the batch, without playing. False: out of memory. */
bool cot__batch_reaches(cot_tape *t, const cot__region *r, const bool *given, bool *out_is);

/* Elements that the operations of a function make for a whole batch, those of elementwise ones
 * counted four times, from where on cot_vmap runs them as a program the first time, too. A test may
 * set it; with INT64_MAX they never are a program. */
extern int64_t cot__vmap_program_from;

#endif
