/* pool.h: runs of a program that nobody uses just now. A call on a tape takes one and gives it
 * back, so that a training loop makes none after its first step. */
#ifndef COT_COMPILE_POOL_H
#define COT_COMPILE_POOL_H

#include "compile/compile.h"

/* NULL after telling the caller that there is no memory. */
cot__run *cot__pool_take(cot_program *p, const cot__caller *caller);
void      cot__pool_give(cot_program *p, cot__run *r);
void      cot__pool_close(cot_program *p);

#endif
