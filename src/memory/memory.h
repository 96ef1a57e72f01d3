/* memory.h: values that a tape drops so that a limit holds, and computes again when they are read.
 *
 * The allocator of a tape counts what is in use (base/cache.h). When it would pass the limit it
 * asks drop.c, which lets the elements of some values go: those that cost least to make again for
 * what they free and for how long nobody has read them. A storage without elements is `dropped`.
 * Whoever asks for elements (cot__look, cot__bound_at) comes to replay.c, which does the operations
 * again that made them, by their records (job/job.h), without recording anything.
 *
 * Invariants:
 *   - a dropped value can be made again: its operands are as its operation saw them, or can be
 *     made again themselves, but for leaves, constants and wrapped memory, whose writes are found
 *     then;
 *   - what is being computed with is not dropped: elements that were asked for since the last
 *     operation was over (read_at), and what a replay holds (pins);
 *   - nothing recurses: a replay keeps what is to be made in a list.
 *
 * May call: all up to diff. Must not touch: what is recorded; the tape stays as it was. */
#ifndef COT_MEMORY_H
#define COT_MEMORY_H

#include "tape/tape.h"

/* What it takes to do the operation of a node again, in operations on numbers: those of its value,
 * and one for each element that it reads or writes (cost.c). */
double cot__cost_again(const cot_tape *t, uint32_t operation);

/* Can the operation be done again without recording it? (replay.c) */
bool cot__can_replay(const cot_tape *t, uint32_t operation);

/* Lets elements go until `bytes` more are within the limit, if it can (drop.c): what a cache asks
 * when memory is short. */
void cot__drop_for(void *tape, size_t bytes);

/* For the tests: whatever can be dropped is dropped as soon as an operation is over, on every tape
 * that is created after this was set. It must not show in any result. */
extern bool cot__drop_always;

#endif
