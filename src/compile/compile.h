/* compile.h: the user's door to programs: functions compiled, run on plain arrays, and called on a
 * tape.
 *
 * A cot_program holds its program twice: the source, as the function recorded it, from which
 * derivatives and batches start, and the form that runs, to which all passes were applied.
 *
 * May call: everything below it: it records a function on a tape of its own. Must not touch: nodes
 * other than through tape/region.h and tape/lower.h. */
#ifndef COT_COMPILE_H
#define COT_COMPILE_H

#include <cotangent_program.h>

#include "base/parallel.h"
#include "program/program.h"
#include "program/run.h"

enum { COT__MESSAGE = 512, COT__IDLE_RUNS = 4 };

struct cot_program {
    atomic_uint   refs;
    cot_allocator al;
    cot_status    status;
    char          message[COT__MESSAGE];
    bool          plain;         /* passes are left out, of its derivatives too */
    cot__program *source, *runs; /* NULL: it failed */
    atomic_bool   records;       /* calls that are differentiated record its operations */
    cot__lock     lock;          /* of all below */
    struct cot__variant *variants;
    cot__run     *idle[COT__IDLE_RUNS];
    int           idle_count;
};

struct cot_run {
    cot_program *p; /* counted */
    /* what is wrong with it, or with the arguments of the last run; OK: ask `run` */
    cot_status   status;
    char         message[COT__MESSAGE];
    cot__run    *run; /* NULL: it could not be made */
};

/* One more owner of p. */
cot_program *cot__program_counted(cot_program *p);
/* One that has no program yet; NULL when there is no memory. */
cot_program *cot__program_empty(const cot_allocator *al);
/* A program of this source, whose owner it becomes; optimised unless it is plain. NULL when there
 * is no memory, or no source. */
cot_program *cot__program_object(const cot_allocator *al, cot__program *source, bool plain);

#endif
