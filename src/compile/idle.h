/* idle.h: runs of a program that nobody uses just now. A call on a tape takes one and gives it
 * back, so that a training loop makes none after its first step. */
#ifndef COT_COMPILE_IDLE_H
#define COT_COMPILE_IDLE_H

#include "compile/compile.h"

/* NULL after telling the caller that there is no memory. Only runs on the host are kept. */
cot__run *cot__idle_take(cot_program *p, const cot__backend *backend, const cot__caller *caller);
void      cot__idle_give(cot_program *p, const cot__backend *backend, cot__run *r);
void      cot__idle_close(cot_program *p);

#endif
