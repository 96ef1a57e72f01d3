/* block_run.h: runs of elementwise work (backend/runs.h) on the CPU: prepared once, then done
 * range by range. */
#ifndef COT_BLOCK_RUN_H
#define COT_BLOCK_RUN_H

#include "backend/cpu/elementwise/blocks.h"

/* Chooses kernels and the way to run. The views must stay as they are after that. */
void cot__block_run_prepare(cot__block_run *r);

/* Blocks filled with numbers that repeat (the 2 of 2·x), kept from one range or run to the next.
 * count and next are 0 at first. */
/* small, because they are on the stack and a program's threads may have small stacks */
enum { COT__LONG = 512, COT__REPEATED = 3 };
typedef struct cot__repeated {
    int count, next;
    struct {
        uint64_t bits;
        int      size, filled;
        union {
            uint64_t u64[COT__LONG];
            uint32_t u32[2 * COT__LONG];
        };
    } block[COT__REPEATED];
} cot__repeated;
/* Elements start … stop - 1; start is a multiple of COT__BLOCK. */
void cot__block_run_range(const cot__block_run *r, int64_t start, int64_t stop, cot__repeated *repeated);
/* All elements, on the pool's threads where that pays. */
void cot__block_run_now(cot__block_run *r);

#endif
