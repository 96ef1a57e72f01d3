/* replay.h: a program recorded on a tape, operation by operation: where derivatives, batches and
 * bodies begin, since those are made on tapes. */
#ifndef COT_COMPILE_REPLAY_H
#define COT_COMPILE_REPLAY_H

#include "program/program.h"
#include "tape/tape.h"

/* Records p on inputs xs, which have its types, and gives its outputs. False after an error. */
bool cot__replay(cot_tape *t, const cot__program *p, const cot_var *xs, cot_var *ys);

#endif
