/* run.h: the plain executor: a program is run through a cot__run, which is its workspace, one for
 * each thread.
 *
 * Making a run takes all memory: the arena that plan.h lays out, and a list of prepared jobs. A run
 * then allocates nothing: it binds inputs and large outputs, does the jobs in order on the backend,
 * and copies the other outputs out. */
#ifndef COT_PROGRAM_RUN_H
#define COT_PROGRAM_RUN_H

#include "backend/backend.h"
#include "program/direct.h"
#include "program/program.h"

typedef struct cot__run cot__run;

/* Operations that functions made elsewhere (src/native) do instead: first … end - 1, in which an
 * operation stands wholly, and so does a group. */
typedef struct cot__run_part {
    uint32_t first, end;
    /* those whose memory the function is given: where they begin in the list, and how many */
    uint32_t value, values;
    /* Positions that threads may share, and what one costs, in additions; shared 0: it is one
     * call. */
    int64_t  shared, cost;
    bool     ends; /* it is called once more in the end, from -1 to 0 */
    uint32_t lines; /* of text, about */
} cot__run_part;

/* Among the values of a part, instead of one: the workspace of an operation; or the one element
 * that it moves. */
#define COT__WORKSPACE_OF (UINT32_C(1) << 31)
#define COT__ELEMENT_OF (UINT32_C(1) << 30)

typedef struct cot__run_parts {
    const cot__run_part *part;
    const uint32_t      *value; /* in the lists of all parts, one after the other */
    uint32_t             parts, values;
} cot__run_parts;

/* Does positions from … to - 1 of a part; `at` has the memory of its values. */
typedef void cot__part_fn(void *const *at, int64_t from, int64_t to);

/* `inputs` has a view of each input, whose dtype, shape and strides hold for every run; its data is
 * not read. NULL: all are row-major. The program is shared, `al` copied. NULL after telling the
 * caller that there is no memory. */
cot__run *cot__run_create(const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                          const cot__view *inputs, const cot__caller *caller);
/* The same, in which each operation runs by itself: to compare with. */
cot__run *cot__run_create_unfused(const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                                  const cot__view *inputs, const cot__caller *caller);
/* The same, whose parts may be done by functions (NULL: none; see cot__run_go_by), and which counts
 * on memory that the caller lends (NULL: on none), though it is not written before the last effect:
 * then large outputs need no place in the arena (direct.h). Where inputs and outputs of a run lie
 * so that this cannot be, the run does not begin: see cot__run_unfit. */
cot__run *cot__run_create_with(const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                               const cot__run_parts *parts, const cot__lent *lent, const cot__caller *caller);
void      cot__run_destroy(cot__run *r);

/* Runs the program on inputs and outputs in memory of the backend: the first element of each input,
 * and where each output goes, row-major; NULL: it is not wanted (see cot__run_output). An output
 * may lie where an input lies: results are as if all inputs were read before the first output is
 * written (direct.h). False: a check of data has refused something. Then no output was written. */
bool cot__run_go(cot__run *r, const void *const *inputs, void *const *outputs);
/* n runs, one after the other; after each, every input and output lies so many bytes further on:
 * what a loop over numbers does, without a way through all of its drivers for each step. What one
 * run gives out may be what later ones read. False: it is more than one row of instructions on
 * words, and nothing was done. */
bool cot__run_go_along(cot__run *r, int64_t n, const void *const *in, const int64_t *in_step, void *const *out,
                       const int64_t *out_step);

/* Runs that it and the runs of its bodies may begin: each takes one of *left, and where none is
 * left it is refused, as too much for a file. NULL: as many as they like. Parts are not counted. */
void cot__run_bound(cot__run *r, int64_t *left);
#define COT__TOO_MANY_STEPS                                                                                            \
    "[tape_load] the loops and solvers of the file take more steps than load_steps of the options, 2^24 if "           \
    "not given; allow more if the file is to be trusted"

/* The same with a function for each part; without one (NULL) as if there were no parts. Outputs
 * NULL: cot__run_give writes them, or nobody does. */
bool cot__run_go_by(cot__run *r, cot__part_fn *const *functions, const void *const *inputs, void *const *outputs);
void cot__run_give(cot__run *r, void *const *outputs);

/* Has the last run not begun, because of where its inputs and outputs lay? It is to be done by
 * another one that may write over nothing. */
bool     cot__run_unfit(const cot__run *r);
/* Then: the output that could be made nowhere. */
uint32_t cot__run_unfit_output(const cot__run *r);

/* Did the last run end because its disk failed? It may have written outputs, and over donated
 * inputs. */
bool cot__run_lost(const cot__run *r);
/* Has its disk failed before, or is its file that of a parent process? Then the next run is lost,
 * too, unless the disk is well again. */
bool cot__run_disk_is_broken(const cot__run *r);

/* Where output k of the last run lies: in the arena, in a constant, in an input, or, if it is
 * large, where it was wanted. Until the next run. */
cot__view cot__run_output(const cot__run *r, uint32_t k);

/* What the last run has refused, and what it has noted: the first in the order of the operations.
 * "": nothing. Texts are "[name] fact, fact; rule". */
cot_status  cot__run_status(const cot__run *r);
const char *cot__run_message(const cot__run *r);
const char *cot__run_note(const cot__run *r);
/* The operation that the message is about, or that the note is about; COT__NO_VALUE: none. */
uint32_t cot__run_failed_at(const cot__run *r);
uint32_t cot__run_noted_at(const cot__run *r);
const cot__program *cot__run_program(const cot__run *r);
/* Bytes of all memory that it holds: itself, its arena and lists, and what its operations hold, as
 * the runs of their bodies. And of its arena alone. */
size_t cot__run_bytes(const cot__run *r);
size_t cot__run_arena_bytes(const cot__run *r);
/* Those of a run that cot__run_create_with would make, for which no arena is taken. False after
 * telling the caller why there is no such run. */
bool cot__run_measure(const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                      const cot__run_parts *parts, const cot__lent *lent, const cot__caller *caller, int64_t *bytes);
/* The same without parts, and those of its arena alone. */
bool cot__run_measure_arena(const cot__program *p, const cot__backend *backend, const cot_allocator *al,
                            const cot__lent *lent, const cot__caller *caller, int64_t *bytes, int64_t *arena);

#endif
