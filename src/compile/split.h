/* split.h: a function together with its derivative, taken apart where the derivative begins.
 *
 * The joint program reads inputs x and seeds, and gives results y and adjoints x̄. What does not
 * depend on a seed can run before the seeds are known: the forward program gives y and, beside it,
 * what the rest reads, and the backward program reads that, and the seeds:
 *
 *     joint     x, seeds        -> y, x̄
 *     forward   x               -> y, residuals
 *     backward  saved, seeds    -> x̄          saved: some of x, and residuals or results
 *
 * Views, and arithmetic that only the derivative reads, are made again in the backward program
 * rather than stored. */
#ifndef COT_COMPILE_SPLIT_H
#define COT_COMPILE_SPLIT_H

#include "program/program.h"

typedef struct cot__split {
    cot__program *forward, *backward;
    /* What the backward program reads before the seeds: below `inputs` an input of the function,
     * else inputs + a result of the forward program. In memory of the joint program's allocator. */
    uint32_t *saved, count, inputs;
    /* Bytes of values that do not depend on a seed and are computed in the backward program, again
     * or only there, rather than stored; views take none. */
    int64_t   recomputed;
} cot__split;

/* The joint program has `inputs` inputs before the seeds and `results` results before the adjoints.
 * ran: the results are known, by a program that gives no more; so the backward program alone is
 * made, reads them, and computes again what else it needs. False after telling the caller that
 * there is no memory. */
bool cot__split_open(cot__split *s, const cot__program *joint, uint32_t inputs, uint32_t results, bool ran,
                     const cot__caller *caller);
void cot__split_close(cot__split *s, const cot_allocator *al);

#endif
