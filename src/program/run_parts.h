/* run_parts.h: the inside of a run, which prepare.c and prepare_groups.c make and run.c goes
 * through. */
#ifndef COT_PROGRAM_RUN_PARTS_H
#define COT_PROGRAM_RUN_PARTS_H

#include "program/memory/moves.h"
#include "program/plan.h"
#include "program/run.h"
#include "program/scalars/along.h"
#include "program/scalars/scalars.h"

enum { COT__RUN_TEXT = 512 };
enum { COT__MEMBER_VIEWS = 3 }; /* operands of an elementwise operation */

/* A job, and what is done before and after it; or a stage instead. */
typedef struct cot__prepared {
    cot__job job;
    double   number; /* its plain number, in the computing dtype */
    uint32_t operation;
    bool     moves;  /* z = x, and no more */
    bool     copies; /* z = operand 0 first */
    bool     effect; /* it may refuse data, or tell what it found */
    cot__stage stage; /* size 0: it is a job */
} cot__prepared;

/* Instructions from `first` on, up to the end; or the prepared job `first`; or the part `first`; or
 * the move `first`, from COT__STEP_MOVE on, plus its cot__moving. operation: its first. */
typedef enum cot__step_kind { COT__STEP_JOB, COT__STEP_SCALARS, COT__STEP_PART, COT__STEP_MOVE } cot__step_kind;
typedef struct cot__step { uint32_t first, kind, operation; } cot__step;

/* A part that a function may do: where its memory begins in `part_at`. */
typedef struct cot__ready_part { uint32_t at; int64_t shared, cost; bool ends; } cot__ready_part;

/* A place of `part_at` that lies so many bytes behind a base, see below. */
typedef struct cot__part_binding { uint32_t at, base; int64_t place; } cot__part_binding;

/* A view that lies so many bytes behind the first element of an input; or, from the number of the
 * inputs on, of a direct output. */
typedef struct cot__binding { cot__view *view; int64_t place; uint32_t base; } cot__binding;

/* A 0-d input, which goes to a slot. stays: of a straight run that may go along; no instruction
 * writes to that slot. */
typedef struct cot__load { void *to; uint32_t input; uint16_t bytes; bool stays; } cot__load;

typedef struct cot__given {
    cot__view view;  /* where it lies; in an input: data is set when that is known */
    uint32_t  input; /* COT__NO_VALUE: it does not lie in an input */
    int64_t   bytes; /* of row-major elements on the host; -1: the backend copies them */
    bool      direct; /* it may be written where the caller wants it */
    void     *kept;  /* room in the arena for one that lies in an input, until all are copied */
} cot__given;

struct cot__run {
    const cot__program *p;
    const cot__backend *backend;
    cot_allocator       below, al; /* `al` counts in `held` what it takes from the one below */
    size_t              held;
    cot__run           *outermost; /* the run that it belongs to, as that of a body; or itself */
    int64_t            *left; /* of the outermost: see cot__run_bound */
    bool                measured; /* to know what it takes: it has no arena, and cannot run */
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
    cot__block_run     *block_run; /* of stages; for each its plain number and its moves */
    double             *number;
    uint16_t           *moves;
    cot__stage_fold    *fold;
    cot__stage_rows    *on_rows;
    cot__stage_product *product;
    cot__run_span      *span;   /* one for each run of a stage */
    int64_t            *extent; /* of those that do a part of an array */
    cot__directs        directs;
    cot__moves          spilled; /* moves of what is stored, then fetches */
    bool                lost;  /* the last run ended because of its disk */
    bool                lends_outputs; /* they have no place in the arena */
    bool                unfit; /* the last run did not begin, … */
    uint32_t            unfit_output; /* … since this output could be made nowhere */
    const void        **base; /* of inputs and direct outputs, at this run */
    const void        **lay;  /* inputs and outputs at the last run that bound direct outputs */
    bool                bound_directs; /* there was one */
    /* how many there are */
    uint32_t            jobs, views, steps, bindings, loads, scalars, runs, folds, rows, products;
    /* the steps again, with parts instead of what functions do */
    cot__step          *part_step;
    cot__ready_part    *part;
    void              **part_at; /* memory of the values of all parts */
    cot__part_binding  *part_binding;
    uint32_t            part_steps, part_bindings;
    uint32_t            words; /* loads of 8 bytes, which stand first */
    bool                lent;  /* some output lies in an input */
    /* Nothing is done but one row of instructions, on words that are loaded, and all outputs are
     * words in slots: nothing can be refused or noted. */
    bool                straight;
    cot__along         *along; /* of such a run that may go along */
    int64_t            *status; /* in memory of the backend */
    int64_t             host_status[2];
    /* what the last run has found */
    cot__caller         caller;
    uint32_t            at; /* the operation that runs */
    cot_status          code;
    uint32_t            failed_at, noted_at;
    char                message[COT__RUN_TEXT], note[COT__RUN_TEXT];
};

/* Which `base` of a run the value lies behind; COT__NO_VALUE: it lies in the arena, or is a
 * constant. */
uint32_t cot__run_base(const cot__plan *plan, uint32_t v);
/* The value where it lies; in an input: data is NULL. What is direct lies in the arena for this. */
cot__view cot__run_see(const cot__run *r, const cot__plan *plan, uint32_t v);
/* x, a view of the value, learns at each run where its memory is, if that is the caller's; the
 * second makes x such a view first. */
void cot__run_bind_view(cot__run *r, const cot__plan *plan, uint32_t v, cot__view *x);
void cot__run_bind(cot__run *r, const cot__plan *plan, uint32_t v, cot__view *x);
/* A group as the next job (prepare_groups.c). */
void cot__run_prepare_group(cot__run *r, const cot__plan *plan, const cot__group *g);

/* Bytes for the parts in the lists of a run, which begin at `from`; NULL: they are only counted. */
size_t cot__run_lay_out_parts(cot__run *r, const cot__run_parts *parts, size_t steps, char *from);
/* Do two operations belong to different parts, or one to none? */
bool cot__run_parts_differ(const cot__run_parts *parts, uint32_t a, uint32_t b);
/* Fills the lists of parts, when all steps are there. */
void cot__run_prepare_parts(cot__run *r, const cot__plan *plan, const cot__run_parts *parts);
/* Where parts find what lies in memory of the caller's; and one of them. */
void cot__run_bind_parts(cot__run *r);
void cot__run_do_part(const cot__run *r, uint32_t part, cot__part_fn *fn);

#endif
