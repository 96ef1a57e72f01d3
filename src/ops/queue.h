/* queue.h: elementwise work of a sweep that may wait (queue.c). Outside of sweeps, and where it cannot wait, it is done at once. */
#ifndef COT_QUEUE_H
#define COT_QUEUE_H

#include "ops/elementwise.h"

/* Between these two elementwise work may wait; they nest. Closing the outermost does what still waits. */
void cot__queue_open(cot_tape *t);
void cot__queue_close(cot_tape *t);
/* Rules that keep memory of their own beside the tape's (loops, custom operations) run between these: nothing waits there. */
int  cot__queue_pause(cot_tape *t);
void cot__queue_resume(cot_tape *t, int paused);
/* Does what waits. Of need only where memory is read around cot__view_of. */
static inline void cot__queue_finish(const cot_tape *t) {
    if (t->put_off && t->put_off->runs) cot__queue_run(t);
}

/* cot__run_elementwise, cot__run_partials and cot__copy (of one dtype), now or later. Views are copied, 0-d operands read at once. The memory
 * of tensors must belong to storages of the tape. */
void cot__queue_elementwise(cot_tape *t, int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z);
void cot__queue_partials(cot_tape *t, int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z, int count, const cot__term *terms);
void cot__queue_copy(cot_tape *t, const cot__view *to, const cot__view *from);

/* A storage that nobody needs any more but waiting work, for what will be written by work that waits behind it; NULL: none of that size. */
cot__storage *cot__queue_reuse(cot_tape *t, size_t bytes);

/* Fewer elements do not wait; and how many bytes of an array are a block. Variables only for the tests: neither must show in any result. */
extern int64_t cot__queue_from, cot__queue_bytes;

#endif
