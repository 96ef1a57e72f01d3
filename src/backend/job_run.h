/* job_run.h: a job (job/job.h) of any operation, elementwise or structural, asked and run. */
#ifndef COT_JOB_RUN_H
#define COT_JOB_RUN_H

#include "backend/backend.h"
#include "rules/record.h"

/* The type of the result. *z holds what is asked for, where the record reads that. A result that no
 * memory can hold is refused. */
bool cot__job_infer(const cot__job *j, cot__type *z);
/* Bytes of workspace; negative: more than there can be. */
int64_t cot__job_workspace(const cot__job *j);
/* Are the elements of the operands legal? */
bool cot__job_check(const cot__job *j);
void cot__job_run(const cot__job *j);
/* The status words of a job, brought to the host: how many things were found, and the first. */
void cot__job_found(const cot__job *j, int64_t found[2]);

/* Are all elements of operand k positions on an axis of this extent? Negative ones count from the
 * end if `wrap`. Messages call them `what`. */
bool cot__job_positions(const cot__job *j, int k, const char *what, int64_t extent, bool wrap);

/* "[1,2]": the place of the k-th element of a shape; "" for a scalar. buf has COT__SHAPE_TEXT
 * bytes. */
const char *cot__place_text(int ndim, const int64_t *shape, int64_t k, char *buf);

#endif
