/* stage.h: stages of elementwise work (backend/runs.h): runs and folds block by block, after the
 * product that they read, if there is one.
 *
 * May call: base, the shared kernels, elementwise work, reductions. Must not touch: tapes, nodes,
 * vars. */
#ifndef COT_CPU_STAGE_H
#define COT_CPU_STAGE_H

#include "backend/runs.h"

/* The entry `elementwise` of the CPU's table. */
void cot__stage_run(cot__stage *s);

#endif
