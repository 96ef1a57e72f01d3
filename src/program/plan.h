/* plan.h: where the values of a program lie while it runs: one arena, laid out by lifetimes.
 *
 *   - A value whose record says so is a view of another one (an alias): it takes no memory.
 *   - The result of an elementwise operation takes the memory of an operand that nobody reads
 *     later, and so does that of an operation in place. Where that operand is still read, it is
 *     copied first.
 *   - A value that lives only within the blocks of a group lies in memory that no other value of
 *     the group has, unless that lives so, too. What a group reads is not written before its end,
 *     but element by element.
 *   - On the host a 0-d value lies in a slot of 8 bytes of its own, and operations of one float
 *     dtype on such values are instructions (scalars.h), not jobs.
 *   - Any other result gets the smallest free range that holds it; large outputs, too, for runs in
 *     which they cannot be written where the caller wants them (direct.h).
 *   - A value that fetches read, and for which there is a folder (cot__lent.spill), lies in a file
 *     after all others have read it, and nothing is written in its place before: a thread writes it
 *     meanwhile. A fetch reads it back, to memory of its own.
 *   - Tensor inputs and constants lie where they are given; nothing is written there, but outputs
 *     where the caller wants them or has donated the memory. */
#ifndef COT_PROGRAM_PLAN_H
#define COT_PROGRAM_PLAN_H

#include "backend/backend.h"
#include "program/direct.h"
#include "program/fusion.h"
#include "program/program.h"

typedef enum cot__how {
    COT__BY_JOB,      /* its job runs */
    COT__BY_JOB_COPY, /* operand 0 is copied to the result, then its job runs */
    COT__BY_SCALARS,  /* an instruction on slots */
    COT__BY_GROUP,    /* together with the others of its group (fusion.h) */
    COT__BY_VIEW,     /* nothing is done */
    COT__BY_MOVE,     /* the one element of the view is copied to its slot */
    COT__BY_FETCH     /* it is read from a file */
} cot__how;

/* A value that lies in a file after operation `until`, the last that reads it there but for
 * fetches. */
typedef struct cot__stored { uint32_t value, until; } cot__stored;

typedef struct cot__plan {
    const cot__program  *p;
    const cot__backend  *backend;
    cot_allocator        al;
    bool                 slots; /* 0-d values lie in slots */
    /* For each value: the value in whose memory it lies, itself unless it is an alias; … */
    uint32_t            *root;
    /* … where: of an alias, bytes behind the first element of its root; of a root in the arena,
     * bytes behind the arena's first; … */
    int64_t             *place;
    /* … and where its strides begin in `strides`; COT__NO_VALUE: they are row-major. */
    uint32_t            *stride;
    int64_t             *strides;
    uint32_t             strides_count, strides_room;
    /* For each operation: how it is done, and where in the arena its workspace is (-1: none). */
    uint8_t             *how;
    int64_t             *workspace;
    /* Of an instruction: the place of the slot of its plain number, or -1. Of a move: the bytes
     * from the first element of its operand's root to the element. Of a fetch: its number. */
    int64_t             *extra;
    int64_t              bytes; /* of the arena */
    uint32_t             fullest; /* the operation for which it grew last */
    int64_t              most_workspace; /* bytes of the largest */
    /* instructions; jobs; operands of jobs, and results after the first */
    uint32_t             scalars, jobs, views;
    cot__fusion          fusion; /* what runs in groups */
    /* Members of groups; folds and operations on rows; the latter; products with an end. */
    uint32_t             runs, folds, rows, products;
    cot__directs         directs; /* what is written where the caller wants it */
    bool                 lends_outputs; /* they have no place in the arena (direct.h) */
    /* For each value: which of `stored` it is, or COT__NO_VALUE. NULL: none lies in a file. */
    uint32_t            *stored_as;
    cot__stored         *stored;
    uint32_t             stores, fetches; /* how many there are */
} cot__plan;

/* Does it lie in a file meanwhile? */
static inline bool cot__is_in_file(const cot__plan *plan, uint32_t v) {
    return plan->stored_as && plan->stored_as[v] != COT__NO_VALUE;
}

/* Plans a legal program for a backend. `inputs` has a view of each input, whose strides hold for
 * every run; NULL: all are row-major. Without `fuse` each operation runs by itself. False after
 * telling the caller that there is no memory. */
bool cot__plan_open(cot__plan *plan, const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                    const cot__view *inputs, bool fuse, const cot__caller *caller);
/* The same with memory that the caller lends. */
bool cot__plan_open_lent(cot__plan *plan, const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                         const cot__view *inputs, bool fuse, const cot__lent *lent, const cot__caller *caller);
void cot__plan_close(cot__plan *plan);

/* The value as a view; `data` counts from the memory of its root. */
cot__view cot__plan_view(const cot__plan *plan, uint32_t value);
/* Does the root lie in the arena? Otherwise it is an input or a constant. */
bool cot__in_arena(const cot__plan *plan, uint32_t root);

#endif
