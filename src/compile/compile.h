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

#include "backend/cpu/table/cpu.h"
#include "backend/elements.h"
#include "base/parallel.h"
#include "native/native.h"
#include "program/program.h"
#include "program/run.h"

enum { COT__MESSAGE = 512, COT__IDLE_RUNS = 4 };

struct cot_program {
    atomic_uint   refs;
    cot_allocator al;
    cot_status    status;
    char          message[COT__MESSAGE];
    bool          plain;         /* passes are left out, of its derivatives too */
    bool          fast;          /* what IEEE does not allow is allowed, of its derivatives too */
    cot__program *source, *runs; /* NULL: it failed */
    bool          wants_native;  /* of its derivatives too */
    cot__native  *native;        /* of `runs`; NULL: there is none */
    cot_fn        verified;      /* what it was compiled from, if runs are compared with it */
    void         *verified_user;
    bool         *donated;       /* of each input: may a run write over it? NULL: none may */
    int64_t       memory_limit;  /* of a run, in bytes; 0: none */
    int64_t       unlimited;     /* bytes of a run without the limit */
    bool          lends;         /* outputs are lent to runs, which keep to the limit so */
    char         *spill;         /* the folder where runs move values to; NULL: they move none */
    cot__program *resident;      /* moves none, within the limit; NULL: there is no such form */
    double        again;         /* work that the limit has done again, as a share of all before */
    atomic_bool   records;       /* calls that are differentiated record its operations */
    atomic_bool   batches_record; /* calls for a batch do */
    atomic_int    idles;         /* nodes of nothing.h. 1: there are none, 2: some; 0: unknown */
    cot__lock     making;        /* of variants: making one takes long, while others call */
    struct cot__variant *variants;
    struct cot__batched_program *batched; /* those used last come first */
    cot__lock     lock;          /* of idle runs */
    cot__run     *idle[COT__IDLE_RUNS];
    int           idle_count;
};

/* Where an output lay at the last run, NULL: nowhere yet; and the numbers of outputs, of which the
 * list is sorted by where they lay. */
typedef struct cot__laid {
    const void *at;
    int         sorted;
} cot__laid;

struct cot_run {
    cot_program *p; /* counted */
    /* what is wrong with it, or with the arguments of the last run; OK: ask `run` */
    cot_status   status;
    char         message[COT__MESSAGE];
    cot__run    *run; /* NULL: it could not be made */
    /* for the comparison of native code; NULL: none is made */
    void        *aside;
    size_t       aside_bytes;
    /* Of a program with donated inputs: one that writes over none, made when it is first needed;
     * and whether it did the last run. */
    cot__run    *sparing;
    bool         spared;
    bool         left_disk; /* it had a file, which failed: `run` moves nothing, or is to be made */
    char         note[COT__MESSAGE]; /* why runs move nothing, though they should; "": they do */
    bool         apart; /* the outputs did not lie across one another */
    cot__laid    laid[]; /* of each output */
};

/* Bytes of the object itself. */
static inline size_t cot__run_object(const cot_program *p) {
    return sizeof(cot_run) + (size_t)cot_program_outputs(p) * sizeof(cot__laid);
}

/* Do the options go together? What is wrong with them stays on the program. */
bool cot__options_are_legal(cot_program *p, const cot_compile_options *options);
/* Takes the donated inputs from the options; what is wrong with them stays on the program. */
void cot__program_donate(cot_program *p, const cot_compile_options *options);
/* One more owner of p. */
cot_program *cot__program_counted(cot_program *p);
/* One that has no program yet; NULL when there is no memory. */
cot_program *cot__program_empty(const cot_allocator *al);
/* cot_compile; smooth: derivatives inside are watched for kinks, as on a smooth tape, on behalf of
 * cot_program_call. */
cot_program *cot__compile(cot_fn f, void *user, int n, const cot_type *types, int m,
                          const cot_compile_options *options, bool smooth);
/* A program of this source, whose owner it becomes; optimised as the options say. within: its
 * inputs are what another program has computed. NULL when there is no memory, or no source. */
cot_program *cot__program_object(cot__program *source, const cot_compile_options *options, bool within);
/* What a program was asked for that its derivatives are, too. */
cot_compile_options cot__program_options(const cot_program *p);
/* Holds the form that runs to the limit of the options (program/limit), if they have one. It is
 * called when the donated inputs are known. What is wrong stays on the program. */
void cot__program_limit(cot_program *p, const cot_compile_options *options);
/* The table that it runs by on the CPU: its own option decides, whatever tape it is called on. */
static inline const cot__backend *cot__program_backend(const cot_program *p) {
    return cot__backend_of(&cot__cpu_backend, p->fast);
}
/* What cot_program_run may count on. */
static inline cot__lent cot__program_lent(const cot_program *p) {
    return (cot__lent){p->donated, p->lends, p->spill};
}
/* A copy of the name of a folder, and its end. NULL is fine. */
char *cot__folder_copy(const cot_allocator *al, const char *name);
void  cot__folder_free(const cot_allocator *al, char *name);
/* A run of it on the host, by native code where that is there; lent: NULL: nothing is. If it cannot
 * have its file, it is one that moves nothing, if that may be. NULL after telling the caller. */
cot__run *cot__program_make_run(cot_program *p, const cot__backend *backend, const cot__lent *lent,
                                const cot__caller *caller);
/* Runs it once; takes memory for a comparison, if one is due. */
bool cot__program_go(cot_program *p, const cot__backend *backend, cot__run *r, const void *const *inputs,
                     void *const *outputs);

/* An error that is heard where there is no tape and no run to put it on: the first one. The status
 * is COT_OK while there is none. */
typedef struct cot__heard {
    cot_status status;
    char       message[COT__MESSAGE];
} cot__heard;
/* A caller that writes to h, and passes notes by. */
cot__caller cot__heard_by(cot__heard *h, const char *name);

#endif
