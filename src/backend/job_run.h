/* job_run.h: a job (job/job.h) of any operation, elementwise or structural, asked and run. */
#ifndef COT_JOB_RUN_H
#define COT_JOB_RUN_H

#include "backend/backend.h"
#include "rules/record.h"

/* How many results the operation has. */
int cot__job_results(const cot__job *j);
/* The type of each result. *z holds what is asked for, where the record reads that. A result that
 * no memory can hold is refused. */
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
/* The same for the elements [.., column] of operand k. */
bool cot__job_positions_in(const cot__job *j, int k, int64_t column, const char *what, int64_t extent, bool wrap);

/* ---- arrays as many kernels want them: row-major, in one dtype ------------------------------- */

/* Bytes of workspace for an array like v in `dtype`: never 0, and a multiple of 16. */
int64_t cot__room_bytes(const cot__view *v, cot_dtype dtype);
/* The same, or 0 where v is row-major in `dtype` as it is. */
int64_t cot__pack_bytes(const cot__view *v, cot_dtype dtype);
/* Where v lies row-major in `dtype`: where it is, or at *at in the workspace, which moves on. */
void *cot__pack_room(const cot__view *v, cot_dtype dtype, char **at);
/* The elements of operand k so: themselves, or a copy at *at. */
const void *cot__pack_operand(const cot__job *j, int k, cot_dtype dtype, char **at);
/* Row-major elements in `dtype` to a row-major result z, unless it is there that they lie. */
void cot__unpack(const cot__job *j, const cot__view *z, cot_dtype dtype, void *data);

/* "[1,2]": the place of the k-th element of a shape; "" for a scalar. buf has COT__SHAPE_TEXT
 * bytes. */
const char *cot__place_text(int ndim, const int64_t *shape, int64_t k, char *buf);

#endif
