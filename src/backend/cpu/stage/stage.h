/* stage.h: stages of elementwise work (backend/runs.h): runs and folds block by block, and runs at
 * the end of a product.
 *
 * May call: base, the shared kernels, elementwise work, reductions. Must not touch: tapes, nodes,
 * vars. */
#ifndef COT_CPU_STAGE_H
#define COT_CPU_STAGE_H

#include "backend/runs.h"

/* The entry `elementwise` of the CPU's table. */
void cot__stage_run(cot__stage *s);

/* The parts of it, for a stage that is prepared: its runs and folds, without its product (stage.c);
 * all of a stage with a product (ends.c). */
void cot__stage_blocks(cot__stage *s);
void cot__stage_product_run(cot__stage *s);

/* An operation on `count` rows from `first` on; what moves lies so many rows before its place
 * (rows.c). */
void cot__stage_rows_do(const cot__stage_rows *r, int64_t first, int64_t count, int64_t back);

#endif
