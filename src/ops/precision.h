/* precision.h: in which dtype an operation computes under the tape's policy
 * (cot_tape_set_precision). */
#ifndef COT_PRECISION_H
#define COT_PRECISION_H

#include "tape/tape.h"

/* The dtype in which `op` computes on operands of this dtype. */
cot_dtype cot__precision_of(const cot_tape *t, const char *op, cot_dtype dtype);

/* Sweeps record rules, which compute as what they belong to: the policy is not theirs. */
static inline cot_precision cot__precision_pause(cot_tape *t) {
    cot_precision before = t->precision;
    t->precision = (cot_precision){.saved = before.saved};
    return before;
}

#endif
