/* run.h: the plain executor: a program is run through a cot__run, which is its workspace, one for
 * each thread.
 *
 * Making a run takes all memory: the arena that plan.h lays out, and a list of prepared jobs. A run
 * then allocates nothing: it binds the inputs, does the jobs in order on the backend, and copies
 * the outputs out. */
#ifndef COT_PROGRAM_RUN_H
#define COT_PROGRAM_RUN_H

#include "backend/backend.h"
#include "program/program.h"

typedef struct cot__run cot__run;

/* `inputs` has a view of each input, whose dtype, shape and strides hold for every run; its data is
 * not read. NULL: all are row-major. The program is shared, `al` copied. NULL after telling the
 * caller that there is no memory. */
cot__run *cot__run_create(const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                          const cot__view *inputs, const cot__caller *caller);
void      cot__run_destroy(cot__run *r);

/* Runs the program on inputs and outputs in memory of the backend: the first element of each input,
 * and where each output goes, row-major; NULL: it is not wanted (see cot__run_output). An output
 * may lie where an input lies: all inputs are read before the first output is written. False: a
 * check of data has refused something. Then no output was written. */
bool cot__run_go(cot__run *r, const void *const *inputs, void *const *outputs);

/* Where output k of the last run lies: in the arena, in a constant, or in an input. Until the next
 * run. */
cot__view cot__run_output(const cot__run *r, uint32_t k);

/* What the last run has refused, and what it has noted: the first in the order of the operations.
 * "": nothing. Texts are "[name] fact, fact; rule". */
cot_status  cot__run_status(const cot__run *r);
const char *cot__run_message(const cot__run *r);
const char *cot__run_note(const cot__run *r);
/* The operation that the message is about, or that the note is about; COT__NO_VALUE: none. */
uint32_t cot__run_failed_at(const cot__run *r);
uint32_t cot__run_noted_at(const cot__run *r);
/* Bytes of its arena. */
size_t cot__run_bytes(const cot__run *r);

#endif
