/* pending.h: elementwise work that waits, and is done when somebody looks.
 *
 * One operation after the other over arrays that no cache holds reads and writes memory for each of
 * them. Here operations wait while recording or a sweep goes on with its bookkeeping. When somebody
 * looks at a value that one of them makes (cot__look), those whose results nothing can read are
 * dropped, the others are cut into groups, as those of a program are (program/fusion.h), and a
 * group is done block by block while the block is in cache, on each of the pool's threads. Every
 * element is computed and rounded as if each operation had run alone.
 *
 * What waits is an operation over values, each bound to the storage where it lies or will lie
 * (cot__bound). A storage knows whether waiting work touches it. A write in place is a new value in
 * the memory of its operand. Only operations that cannot fail wait; short ones never do. Those
 * whose results are better computed twice than written are patient: they join the queue when asked.
 * Work that still waits when the library returns to its caller touches memory that only the tape
 * can reach.
 *
 * May call: base, rules, backend, program, tape. Must not touch: derivatives; a driver says which
 * values it will read. */
#ifndef COT_PENDING_H
#define COT_PENDING_H

#include "tape/tape.h"

/* ---- when work may wait ---------------------------------------------------------------------- */

/* Between these two calls any elementwise work may wait; outside of them only recorded work may.
 * They nest. Closing the outermost does what still waits. */
void cot__pending_open(cot_tape *t);
void cot__pending_close(cot_tape *t);
/* Rules that keep memory of their own beside the tape's (loops, custom operations) run between
 * these two calls: nothing waits there. */
typedef struct cot__paused { int sweeps; bool at_once; } cot__paused;
cot__paused cot__pending_pause(cot_tape *t);
void        cot__pending_resume(cot_tape *t, cot__paused before);
/* Does all that waits. Only code that reads memory without cot__look needs to call it. */
void cot__pending_finish(const cot_tape *t);
bool cot__pending_any(const cot_tape *t);
/* Bytes of the lists that it stands in, also while they are empty. */
size_t cot__pending_lists(const cot_tape *t);
/* Frees the lists, if nothing waits. */
void cot__pending_shrink(cot_tape *t);

/* ---- operations ------------------------------------------------------------------------------ */

/* cot__run_value, cot__run_partials and copies (of one dtype), done now or later. Views are copied,
 * numbers and 0-d operands in nodes are read at once. z may be one of the operands. */
void cot__pending_value(cot_tape *t, int op, cot_dtype compute, int n, const cot__bound *xs, const cot__bound *z);
typedef struct cot__pending_term { int k; bool accumulate; cot__bound g, out; } cot__pending_term;
void cot__pending_partials(cot_tape *t, int op, cot_dtype compute, int n, const cot__bound *xs, const cot__bound *z,
                           int count, const cot__pending_term *terms);
void cot__pending_copy(cot_tape *t, const cot__bound *to, const cot__bound *from);

/* Large values that are cheap to compute are made by patient operations, which join the queue when
 * they are asked (patient.c). z (…, m, n), a new value, becomes the product of depth 1 of
 * a (…, m, 1) and b (…, 1, n), or the value of an elementwise operation, one of whose operands is
 * such a value. False: it does not wait so. */
bool cot__pending_product(cot_tape *t, const cot__bound *a, const cot__bound *b, const cot__bound *z);
bool cot__pending_extend(cot_tape *t, int op, int n, const cot__bound *xs, const cot__bound *z);
/* Somebody will read the elements of s, or is about to change them: the patient operation that
 * makes them, or each that reads them, joins the queue, if there is one. */
void cot__pending_ask(cot_tape *t, cot__storage *s);
void cot__pending_ask_readers(cot_tape *t, cot__storage *s);
/* Reduces node x, which waits, as it is computed (fold.c). False: it does not wait, or should be
 * written first. */
bool cot__pending_reduce(cot_tape *t, cot__reduction what, uint32_t x, uint32_t axes, const cot__view *z);

/* ---- memory ---------------------------------------------------------------------------------- */

/* A storage that only waiting work still needs. Work that waits after that may write its result
 * there. NULL: there is none of that size. */
cot__storage *cot__pending_reuse(cot_tape *t, size_t bytes);
/* Somebody is about to write by himself to this memory, or to that of node i: does what reads or
 * writes it. */
void cot__pending_settle(cot_tape *t, cot__storage *s);
void cot__settle(cot_tape *t, uint32_t i);

/* ---- values that nobody will read ------------------------------------------------------------ */

/* Every value that something besides the waiting work owns is computed. The driver of a sweep may
 * know better: of the values that were recorded since `since` (the tape's count of storages then)
 * it reads only those of nodes from … for which read[i - from] is not 0. */
void cot__pending_unread(cot_tape *t, uint32_t since, uint32_t from, const uint8_t *read);

/* ---- for the tests --------------------------------------------------------------------------- */

/* Work on fewer elements does not wait; and how many bytes of an array are a block. These are
 * variables only for the tests: neither must show in any result. Nor must the third, which fills
 * memory with ones (a NaN) until the waiting work on it is done, so that code which reads it
 * without cot__look finds them. */
extern int64_t cot__pending_from, cot__pending_bytes;
extern bool    cot__pending_spoils;
/* Every bit of the memory becomes 1: NaN, or -1. */
static inline void cot__spoil(const cot__backend *b, void *data, int64_t bytes) {
    static const int64_t one = 1;
    b->fill(&(cot__view){data, COT_U8, 1, &bytes, &one}, 255);
}

#endif
