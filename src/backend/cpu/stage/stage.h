/* stage.h: stages of elementwise work (backend/runs.h): runs and folds block by block, after the
 * product that they read, if there is one.
 *
 * May call: base, the shared kernels, elementwise work, reductions, and jobs (job_run.h) of
 * operations on rows. Must not touch: tapes, nodes, vars. */
#ifndef COT_CPU_STAGE_H
#define COT_CPU_STAGE_H

#include "backend/runs.h"

/* The entry `elementwise` of the CPU's table. */
void cot__stage_run(cot__stage *s);

/* An operation on `count` rows from `first` on; what moves lies so many rows before its place
 * (rows.c). */
void cot__stage_rows_do(const cot__stage_rows *r, int64_t first, int64_t count, int64_t back);

#endif
