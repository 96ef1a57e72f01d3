/* blocks.h: the block kernels made from rules.def: the values and partials of every elementwise
 * operation over a block of elements, for each compute type and instruction set.
 *
 * May call: base, rules, the shared kernels. Must not touch: tapes, nodes, vars. */
#ifndef COT_BLOCKS_H
#define COT_BLOCKS_H

#include "backend/cpu/kernels.h"
#include "base/cpu.h"
#include "rules/elementwise_table.h"

typedef struct cot__block_kernels {
    cot__value_kernel   value;
    cot__partial_kernel partial[3];
} cot__block_kernels;

/* Compute types: f64, f32, i64 (value only; NULL where integers are not taken). */
extern const cot__block_kernels cot__blocks_f64[], cot__blocks_f32[],
    cot__blocks_i64[];

/* The same in vectors, for the instruction sets after the first of base/cpu.h. */
extern const cot__block_kernels *const cot__vector_blocks[COT__ISAS][2];

/* Plain kernels: a call for every element. Same bits; quicker for single values. */
static inline const cot__block_kernels *cot__plain_blocks(int op, cot_dtype compute) {
    return compute == COT_F64 ? &cot__blocks_f64[op] : compute == COT_F32 ? &cot__blocks_f32[op] : &cot__blocks_i64[op];
}

static inline const cot__block_kernels *cot__blocks(int op, cot_dtype compute) {
    return compute == COT_I64 ? &cot__blocks_i64[op] : &cot__vector_blocks[cot__cpu_isa()][compute == COT_F32][op];
}

#endif
