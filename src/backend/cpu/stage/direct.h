/* direct.h: runs of a stage each of which is one call of its kernel for a block, or for a row of
 * elements: plain arrays, numbers, and rows that repeat. */
#ifndef COT_CPU_DIRECT_H
#define COT_CPU_DIRECT_H

#include "backend/runs.h"

/* How an operand of a direct run is found: for each block at its own place, at the place of the
 * first block, or the same for all. Rows repeat: short ones fill a block, others end a call. */
enum { COT__ABSENT, COT__ABSOLUTE, COT__MOVED, COT__REPEATING, COT__FILLED_ROWS, COT__ROWS };
enum { COT__FILLED_ROW = 1024 }; /* bytes of the longest row that fills a block */

/* A run as one call of its kernel for a block: of a value, or of a partial, which reads the result
 * and G behind the operands. */
enum { COT__DIRECT_Z = 3, COT__DIRECT_G, COT__DIRECT_READS };
typedef struct cot__direct_run {
    cot__value_kernel   value; /* NULL: it is the partial */
    cot__partial_kernel partial;
    const char         *x[COT__DIRECT_READS];
    char               *z;
    int64_t             row[COT__DIRECT_READS]; /* elements */
    uint8_t             kind[COT__DIRECT_READS], to;
    bool                splits; /* at the end of a row */
    int8_t              size;   /* of an element */
} cot__direct_run;

/* Bytes of an array in a block of which all arrays stay in the first cache. Blocks full of numbers
 * or of short rows, and the bytes of all of them: as many numbers, or fewer blocks that are longer,
 * by an eighth where elements are done again and by a row. They lie on the stack, and sweeps, with
 * all that they call, on one of 64 kB. */
enum {
    COT__NEAR_BYTES = 4096, COT__MOST_FILLED = 8,
    COT__FILLED_BYTES = COT__MOST_FILLED * COT__NEAR_BYTES + COT__FILLED_ROW
};

/* Blocks full of numbers, of `length` elements, and of rows, of as many and a row, in memory of
 * COT__FILLED_BYTES. count, and used of the bytes, are 0 at first. */
typedef struct cot__filled {
    int         count, length, used;
    char       *memory;
    void       *block[COT__MOST_FILLED];
    const void *from[COT__MOST_FILLED]; /* of a row */
    uint64_t    bits[COT__MOST_FILLED]; /* a number; of a row its length */
    int         size[COT__MOST_FILLED];
} cot__filled;

/* Can each block of the run be one call, or a call for each long row? It is prepared. */
bool cot__is_direct(const cot__block_run *r);
/* All runs of a stage, each of which can. False: there are too many numbers. */
bool cot__direct_runs_open(cot__direct_run *d, const cot__stage *s, cot__filled *f);
/* n elements from `start` on; back: how far moved ones lie before their place. */
void cot__direct_run_range(const cot__direct_run *d, int64_t start, int64_t n, int64_t back);

#endif
