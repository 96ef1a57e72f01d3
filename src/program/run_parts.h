/* run_parts.h: the inside of a run, which prepare.c makes and run.c goes through. */
#ifndef COT_PROGRAM_RUN_PARTS_H
#define COT_PROGRAM_RUN_PARTS_H

#include "program/plan.h"
#include "program/run.h"
#include "program/scalars.h"

enum { COT__RUN_TEXT = 512 };

/* A job, and what is done before and after it. */
typedef struct cot__prepared {
    cot__job job;
    double   number; /* its plain number, in the computing dtype */
    uint32_t operation;
    bool     moves;  /* z = x, and no more */
    bool     copies; /* z = operand 0 first */
    bool     effect; /* it may refuse data, or tell what it found */
} cot__prepared;

/* `count` instructions from `first` on; count 0: the prepared job `first`. */
typedef struct cot__step { uint32_t first, count; } cot__step;

/* An operand of a job that lies in an input, so many bytes behind its first element. */
typedef struct cot__binding { cot__view *view; int64_t place; uint32_t input; } cot__binding;

/* A 0-d input, which goes to a slot. */
typedef struct cot__load { void *to; uint32_t input, bytes; } cot__load;

typedef struct cot__given {
    cot__view view;  /* where it lies; in an input: data is set when that is known */
    int64_t   place; /* in that input */
    uint32_t  input; /* COT__NO_VALUE: it does not lie in an input */
    int64_t   bytes; /* of row-major elements on the host; -1: the backend copies them */
    void     *kept;  /* room in the arena for one that lies in an input, until all are copied */
} cot__given;

struct cot__run {
    const cot__program *p;
    const cot__backend *backend;
    cot_allocator       al;
    char               *block, *arena; /* of the backend; the arena is the aligned part */
    size_t              block_bytes, arena_bytes;
    void               *lists; /* all of the following, in one piece */
    size_t              lists_bytes;
    cot__prepared      *job;
    cot__view          *view;
    cot__step          *step;
    cot__binding       *binding;
    cot__load          *load;
    cot__given         *given; /* one for each output */
    int64_t            *strides;
    cot__scalar        *scalar;
    uint32_t            jobs, views, steps, bindings, loads, scalars; /* how many there are */
    int64_t            *status; /* in memory of the backend */
    int64_t             host_status[2];
    /* what the last run has found */
    cot__caller         caller;
    uint32_t            at; /* the operation that runs */
    cot_status          code;
    uint32_t            failed_at, noted_at;
    char                message[COT__RUN_TEXT], note[COT__RUN_TEXT];
};

#endif
