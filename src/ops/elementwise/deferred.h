/* deferred.h: elementwise work of sweeps and of recording that may be deferred (deferred.c). Work
 * that cannot be deferred is done at once. */
#ifndef COT_DEFERRED_H
#define COT_DEFERRED_H

#include "ops/elementwise/elementwise.h"

/* Between these two calls any elementwise work may be deferred; outside of them only recorded work
 * may. They nest. Closing the outermost runs what is still deferred. */
void cot__deferred_open(cot_tape *t);
void cot__deferred_close(cot_tape *t);
/* Rules that keep memory of their own beside the tape's (loops, custom operations) run between
 * these two calls: nothing is deferred there. */
typedef struct cot__paused { int sweeps; bool at_once; } cot__paused;
cot__paused cot__deferred_pause(cot_tape *t);
void        cot__deferred_resume(cot_tape *t, cot__paused before);
/* Runs all deferred work. Only code that reads memory without cot__view_read needs to call it. */
static inline void cot__deferred_finish(const cot_tape *t) {
    if (t->deferred.work && t->deferred.work->runs) cot__deferred_run(t);
}

/* cot__run_value, cot__run_partials and copies (of one dtype), done now or deferred.
 * Views are copied, numbers and 0-d operands in nodes are read at once. The memory of tensors must
 * belong to storages of the tape. `nodes` are the nodes that own the memory (COT__NONE: a number);
 * if they are given, the work may be deferred outside of sweeps too, unless the caller could reach
 * the memory (cot_wrap). */
void cot__deferred_elementwise(cot_tape *t, int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z,
                               const uint32_t *nodes);
void cot__deferred_partials(cot_tape *t, int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z,
                            int count, const cot__term *terms);
void cot__deferred_copy(cot_tape *t, const cot__view *to, const cot__view *from, const uint32_t *nodes);

/* From cot__deferred_hold on, more work is deferred than can be done together. Then
 * cot__deferred_drop_since drops the runs that write values of nodes from … which nothing will
 * read: needed[i - from] is 0 for those. For recording alone. needed NULL: nothing is dropped. */
typedef struct cot__deferred_point { int64_t emptied; int runs; } cot__deferred_point;
cot__deferred_point cot__deferred_hold(cot_tape *t);
bool             cot__deferred_any_since(const cot_tape *t, cot__deferred_point since);
void             cot__deferred_drop_since(cot_tape *t, cot__deferred_point since, uint32_t from, const uint8_t *needed);

/* A storage that only deferred work still needs. Work that is deferred after that may write its
 * result there. NULL: there is none of that size. */
cot__storage *cot__deferred_reuse(cot_tape *t, size_t bytes);

/* Work on fewer elements is not deferred; and how many bytes of an array are a block. These are
 * variables only for the tests: neither must show in any result. Nor must the third, which fills
 * memory with ones (a NaN) until the deferred work on it is done, so that code which reads it
 * without cot__view_read finds them. */
extern int64_t cot__deferred_from, cot__deferred_bytes;
extern bool    cot__deferred_spoils;
/* Every bit of the memory becomes 1: NaN, or -1. */
static inline void cot__spoil(const cot__backend *b, void *data, int64_t bytes) {
    static const int64_t one = 1;
    b->fill(&(cot__view){data, COT_U8, 1, &bytes, &one}, 255);
}

#endif
