/* record_job.h: recording a structural operation through its record: infer, make room, check, run,
 * push.
 *
 * An operation whose result lies in new memory is recorded by cot__record. One that may find a
 * cheaper way than `run` (a product that waits) does the steps itself:
 *
 *     cot__recording r;
 *     if (!cot__record_open(&r, t, name, op, n, args, attr, NULL)) return INVALID(t);
 *     if (!cheaper(r.result) && !cot__record_run(&r)) return INVALID(t);
 *     return cot__record_push(&r);
 */
#ifndef COT_RECORD_JOB_H
#define COT_RECORD_JOB_H

#include "backend/job_run.h"
#include "tape/tape.h"

enum { COT__FEW_OPERANDS = 8 };

typedef struct cot__recording {
    cot_tape       *t;
    cot__caller     caller;
    cot__job        job;
    int             results;
    cot__result     result[COT__JOB_RESULTS];
    cot__view       more[COT__JOB_RESULTS - 1]; /* of the job */
    const uint32_t *args;
    cot__attr      *attr;
    cot__view       few[COT__FEW_OPERANDS]; /* of the operands, unless there are more */
    int64_t         status[2];              /* of the job, where the host computes */
} cot__recording;

/* The tape as the one who hears what is wrong, for checks that a public function shares with
 * `infer`. */
cot__caller cot__tape_caller(cot_tape *t, const char *name);

/* Records operation `op` on nodes args[0..n) with these attributes (of the arena; NULL: none).
 * `name` is how messages call it. `asked` is what the record reads of the result's type (cot__op
 * asks); NULL: nothing. The result is a view of operand 0 where the record says so. Of several
 * results, the var is the first (cot__result_of). */
cot_var cot__record(cot_tape *t, const char *name, int op, int n, const uint32_t *args, cot__attr *attr,
                    const cot__type *asked);
/* The operation of r's node once more, on other operands, as `apply` of its record does it. A
 * record that brings none is recorded with the node's attributes as they are. */
cot_var cot__apply(cot__rule *r, const cot_var *xs);

/* Infers the types of the results and makes room for them. r need not be pushed after a failure. */
bool cot__record_open(cot__recording *r, cot_tape *t, const char *name, int op, int n, const uint32_t *args,
                      cot__attr *attr, const cot__type *asked);
/* Reads the operands, checks them, and runs the job. */
bool cot__record_run(cot__recording *r);
/* The node; invalid after a failure. */
cot_var cot__record_push(cot__recording *r);

/* Memory of the tape's backend for the time of one call, `bytes` > 0 (negative: more than there can
 * be), and its return. NULL after setting the error. */
void *cot__workspace_open(cot_tape *t, const char *op, int64_t bytes);
void  cot__workspace_close(cot_tape *t, void *memory, int64_t bytes);

/* The first halves of record_open and record_run: a job of no operation, for checks alone. */
bool cot__recording_begin(cot__recording *r, cot_tape *t, const char *name, int n, const uint32_t *args);
bool cot__recording_read(cot__recording *r);
/* Reads the operands and calls `look`, which writes status words; found: these. */
bool cot__recording_look(cot__recording *r, void (*look)(const cot__job *j), int64_t found[2]);

#endif
