/* makers.h: what makes a value of a program. */
#ifndef COT_PASSES_MAKERS_H
#define COT_PASSES_MAKERS_H

#include "program/program.h"

/* The operation that makes the value, or COT__NO_VALUE: an input, a constant, a plain number. */
static inline uint32_t cot__maker_of(const cot__program *p, uint32_t v) {
    bool made = v != COT__NO_VALUE && cot__value_origin(p, v) == COT__FROM_OPERATION;
    return made ? cot__value_maker(p, v) : COT__NO_VALUE;
}

/* Does operation `op` make the value? Then *of becomes its first operand; otherwise it stays. */
static inline bool cot__made_by(const cot__program *p, uint32_t v, int op, uint32_t *of) {
    uint32_t k = cot__maker_of(p, v);
    if (k == COT__NO_VALUE || p->operation[k].op != op) return false;
    *of = cot__operation_operand(p, k)[0];
    return true;
}

#endif
