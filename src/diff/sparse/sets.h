/* sets.h: sets of columns. Each set is kept once and known by a number, so the pattern of a million
 * elements is a million numbers.
 *
 * A set is a sorted list, or the union of two other sets that was not written out. A running sum of
 * n terms makes n sets, which would take n²/2 columns as lists. A union is written out when it
 * names four times as many columns as it is known to have. So neither a long sum of new columns nor
 * a long loop over the same columns costs more than a few steps for each set. After a failure of
 * memory `failed` is set, and all further sets are empty. */
#ifndef COT_SETS_H
#define COT_SETS_H

#include "base/base.h"

typedef uint32_t cot__set; /* 0: the empty set */

typedef struct cot__set_entry {
    uint64_t start;      /* of a list: the place of its first column; of a union: its two sets */
    /* number of columns it names, repeated ones counted again; of a list: its length */
    uint64_t cost;
    uint32_t least;      /* number of columns that it has at least */
    uint32_t hash, next; /* next: the next entry of the same bucket; 0: none */
    cot__set as;         /* this set itself, or the list to which the union was written out */
    bool     pair;
} cot__set_entry;

typedef struct cot__sets {
    const cot_allocator *al;
    /* full: the lists would have more than `most` columns in all; `failed` is then set too */
    bool                 failed, full;
    int64_t              most;
    cot__set_entry      *entries; /* entries[0] is the empty set */
    int64_t              count, capacity;
    uint32_t            *columns; /* the columns of all lists */
    int64_t              column_count, column_capacity;
    uint32_t            *buckets;
    int64_t              bucket_count; /* a power of two */
    /* by column: the number of the last round of writing out that met it */
    uint32_t            *seen;
    int64_t              width;
    uint32_t             round;
    uint32_t            *scratch; /* a list that is being made */
    int64_t              scratch_capacity;
    cot__set            *stack;
    int64_t              stack_capacity;
} cot__sets;

bool     cot__sets_open(cot__sets *s, const cot_allocator *al, int64_t columns, int64_t most);
void     cot__sets_close(cot__sets *s);
cot__set cot__set_of(cot__sets *s, uint32_t column);
cot__set cot__set_union(cot__sets *s, cot__set a, cot__set b);
/* Do a and b have the same columns? To compare them, unions are written out. */
bool cot__set_same(cot__sets *s, cot__set a, cot__set b);
/* The columns of a set, ascending; valid until the next call. */
const uint32_t *cot__set_columns(cot__sets *s, cot__set a, int64_t *count);

/* Sorts in place, ascending. */
void cot__sort(uint32_t *a, int64_t n);
/* Room for `count` elements in an array that doubles; false when memory is short. */
bool cot__ensure(const cot_allocator *al, void **data, int64_t *capacity, int64_t count, size_t element);

#endif
