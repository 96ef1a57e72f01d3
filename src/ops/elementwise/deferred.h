/* deferred.h: elementwise work that may wait (deferred.c), of sweeps and of recording. Where it
 * cannot wait it is done at once. */
#ifndef COT_DEFERRED_H
#define COT_DEFERRED_H

#include "ops/elementwise/elementwise.h"

/* Between these two any elementwise work may wait, outside only what is recorded; they nest.
 * Closing the outermost does what still waits. */
void cot__deferred_open(cot_tape *t);
void cot__deferred_close(cot_tape *t);
/* Rules that keep memory of their own beside the tape's (loops, custom operations) run between
 * these: nothing waits there. */
typedef struct cot__paused { int sweeps; bool at_once; } cot__paused;
cot__paused cot__deferred_pause(cot_tape *t);
void        cot__deferred_resume(cot_tape *t, cot__paused before);
/* Does what waits. Of need only where memory is read around cot__view_read. */
static inline void cot__deferred_finish(const cot_tape *t) {
    if (t->deferred && t->deferred->runs) cot__deferred_run(t);
}

/* cot__run_value, cot__run_partials and copies (of one dtype), now or later.
 * Views are copied, 0-d operands read at once. The memory of tensors must belong to storages of the
 * tape. With `nodes`, those that the memory belongs to (COT__NONE: a number), it may wait outside
 * of sweeps too, unless the caller could reach it (cot_wrap). */
void cot__deferred_elementwise(cot_tape *t, int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z,
                               const uint32_t *nodes);
void cot__deferred_partials(cot_tape *t, int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z,
                            int count, const cot__term *terms);
void cot__deferred_copy(cot_tape *t, const cot__view *to, const cot__view *from, const uint32_t *nodes);

/* Between these two more waits than is done together, and then what writes values of nodes from …
 * that nobody will read is forgotten: needed[i - from] is 0 for them. For recording alone. NULL:
 * nothing is forgotten. */
typedef struct cot__deferred_point { int64_t emptied; int runs; } cot__deferred_point;
cot__deferred_point cot__deferred_hold(cot_tape *t);
bool             cot__deferred_waits_since(const cot_tape *t, cot__deferred_point since);
void             cot__deferred_drop_since(cot_tape *t, cot__deferred_point since, uint32_t from, const uint8_t *needed);

/* A storage that nobody needs any more but waiting work, for what will be written by work that
 * waits behind it; NULL: none of that size. */
cot__storage *cot__deferred_reuse(cot_tape *t, size_t bytes);

/* Fewer elements do not wait; and how many bytes of an array are a block. Variables only for the
 * tests: neither must show in any result. Nor the third, which fills memory with ones (a NaN) until
 * what waits for it is done: who reads it around cot__view_read finds them. */
extern int64_t cot__deferred_from, cot__deferred_bytes;
extern bool    cot__deferred_spoils;

#endif
