/* ranges.h: which parts of a piece of memory are free, while it is planned. No memory is touched:
 * ranges are numbers.
 *
 * What the folder does: lists and numbers that know nothing of programs: free ranges, entries by
 * their hash, which states of a loop to keep, and bytes that go to a file and come back.
 *
 * May call: base. Must not touch: programs. */
#ifndef COT_PROGRAM_RANGES_H
#define COT_PROGRAM_RANGES_H

#include "base/base.h"

typedef struct cot__range { int64_t at, bytes; } cot__range;

typedef struct cot__ranges {
    const cot_allocator *al;
    cot__range          *free; /* in order; no two touch each other */
    uint32_t             count, room;
    int64_t              top; /* everything from here on is free */
} cot__ranges;

/* A multiple of 64 bytes, not 0. */
static inline int64_t cot__range_bytes(int64_t bytes) { return bytes > 0 ? (bytes + 63) & ~(int64_t)63 : 64; }

/* The smallest free range of at least so many bytes (cot__range_bytes); -1: more than there can
 * be. */
int64_t cot__ranges_take(cot__ranges *r, int64_t bytes);
/* Gives one back. False: out of memory. */
bool cot__ranges_give(cot__ranges *r, int64_t at, int64_t bytes);
void cot__ranges_close(cot__ranges *r);

#endif
