/* direct.h: large outputs that a run writes where the caller wants them, rather than in its arena.
 *
 * An output may lie where an input lies, so it is decided at each run: if something that is still
 * to be read lies there, the output is made in the arena and copied at the end, as small ones
 * always are. A run that refuses its data writes no output, so only what is made after the last
 * effect can be written so.
 *
 * If the caller has donated an input of its type, which nobody reads by then, it needs no place in
 * the arena: it is made there. Under a memory limit (program/limit) no direct output has one. */
#ifndef COT_PROGRAM_DIRECT_H
#define COT_PROGRAM_DIRECT_H

#include "program/program.h"

typedef struct cot__direct {
    uint32_t root, output;
    /* The operation that makes it, and the first of those that run together with it. */
    uint32_t at, first;
    int64_t  bytes, place; /* place: in the arena, when it is made there */
    /* The donated input in which it is made instead, when it cannot be written where it is wanted;
     * COT__NO_VALUE: none. */
    uint32_t donor;
} cot__direct;

/* The last operation that reads an input; the last that reads more of it, for an element of a
 * result, than the element of the same number; and the last on rows, of a group, which reads a row
 * and must not write there. COT__NO_VALUE: none does. low and high: which bytes it takes, counted
 * from its first element. */
typedef struct cot__last_read { uint32_t any, scattered, rows; int64_t low, high; } cot__last_read;

typedef struct cot__directs {
    /* For each value: which of `one` it is, or COT__NO_VALUE. NULL: none is. */
    uint32_t       *of;
    cot__direct    *one;
    cot__last_read *read; /* one for each input */
    uint32_t        count;
} cot__directs;

/* Memory of the caller's that a run counts on. donated: a flag for each input that it may write
 * over; NULL: it may over none. outputs: direct outputs have no place in the arena. A run in which
 * one can be written neither where it is wanted nor in a donated input does not begin. */
typedef struct cot__lent {
    const bool *donated;
    bool        outputs;
    const char *spill; /* a folder for what fetches bring back (plan.h); NULL: none */
} cot__lent;

struct cot__planner;
/* Finds them, when it is known how operations run and who reads what. False after telling the
 * caller that there is no memory. */
bool cot__directs_open(struct cot__planner *q);
void cot__directs_close(cot__directs *d, const cot__program *p, const cot_allocator *al);
/* Which one the value is, a root, or COT__NO_VALUE. */
static inline uint32_t cot__direct_of(const cot__directs *d, uint32_t root) {
    return d->of ? d->of[root] : COT__NO_VALUE;
}

/* A donated input in which the direct output `one` may be made, and which no other has;
 * COT__NO_VALUE: there is none. */
uint32_t cot__direct_donor(const struct cot__planner *q, uint32_t one);

/* May direct output `one` lie just where input i lies? */
bool cot__may_take_place(const cot__program *p, const cot__directs *d, uint32_t one, uint32_t i);
/* May direct output `one` be written at `to` in this run: where it is wanted, or in a donated
 * input? */
bool cot__may_write_there(const cot__program *p, const cot__directs *d, uint32_t one, const void *to,
                          const void *const *inputs, void *const *outputs);
/* Do bytes a … a + a_bytes - 1 and those from b on have one in common? */
bool cot__bytes_overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes);

#endif
