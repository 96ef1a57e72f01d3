/* blocks.h: the block kernels made from rules.def: the values and partials of every elementwise
 * operation over a block of elements, for each compute type and instruction set.
 *
 * May call: base, rules, the shared kernels. Must not touch: tapes, nodes, vars. */
#ifndef COT_BLOCKS_H
#define COT_BLOCKS_H

#include "backend/cpu/kernels.h"
#include "base/cpu.h"
#include "rules/elementwise_table.h"

/* n <= COT__BLOCK elements, contiguous, of one compute type. Unused operands are NULL. */
typedef void (*cot__value_kernel)(int n, const void *x, const void *y, const void *w, void *z);
typedef void (*cot__partial_kernel)(int n, const void *g, const void *x, const void *y, const void *w, const void *z,
                                    void *out);

typedef struct cot__block_kernels {
    cot__value_kernel   value;
    cot__partial_kernel partial[3];
} cot__block_kernels;

/* Compute types: f64, f32, i64 (value only; NULL where integers are not taken). */
extern const cot__block_kernels cot__blocks_f64[], cot__blocks_f32[],
    cot__blocks_i64[];

/* The same in vectors, for the instruction sets after the first of base/cpu.h. */
extern const cot__block_kernels *const cot__vector_blocks[COT__ISAS][2];

/* Plain kernels: libm for every element. For single values, which shall have the bits of recorded
 * scalars. */
static inline const cot__block_kernels *cot__plain_blocks(int op, cot_dtype compute) {
    return compute == COT_F64 ? &cot__blocks_f64[op] : compute == COT_F32 ? &cot__blocks_f32[op] : &cot__blocks_i64[op];
}

static inline const cot__block_kernels *cot__blocks(int op, cot_dtype compute) {
    return compute == COT_I64 ? &cot__blocks_i64[op] : &cot__vector_blocks[cot__cpu_isa()][compute == COT_F32][op];
}

/* z = op(xs) for views of z's shape (0-d operands repeat); z may be one of the operands. */
void cot__block_run_elementwise(int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z);
/* For each of `count` terms, in one pass: out = (accumulate ? out : 0) + partial k of op at (xs, z)
 * applied to g. Terms with one `out` are added in order. The first out, if it is not accumulated,
 * may be the g of the terms itself. */
typedef struct cot__term { int k; bool accumulate; cot__view g, out; } cot__term;
void cot__block_run_partials(int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z, int count,
                             const cot__term *terms);

#endif
