/* scalars.h: elementwise operations on 0-d values as instructions on slots of 8 bytes, with the
 * bits of recorded scalars.
 *
 *   scalars.c                    runs a list of them
 *   along.c, along_lanes.h       run a list many times, sixteen at a time where that may be
 *   along_parts.h, along_plan.c  find where it may
 *
 * May call: base, rules. Must not touch: programs, tapes, memory that it was not given. */
#ifndef COT_PROGRAM_SCALARS_H
#define COT_PROGRAM_SCALARS_H

#include "base/base.h"
#include "rules/elementwise_ids.h"

/* A 0-d value in its own dtype. */
typedef union cot__slot { double f64; float f32; uint8_t u8; uint64_t bits; } cot__slot;

/* z = op(x, y, w), numbers of slots; operands that it does not have are not read. Of a pair: t =
 * x y, then z = t + w, t - w or w - t. go: where the code for it is, known when the list is
 * linked. */
typedef struct cot__scalar { uint32_t code, z, x, y, w, t; const void *go; } cot__scalar;

/* The code of an operation on F64 or F32; after these come pairs, the end of the list, and
 * what linking makes of some. */
static inline uint32_t cot__scalar_code(int op, cot_dtype dtype) { return 2 * (uint32_t)op + (dtype == COT_F32); }
enum {
    COT__PAIR_ADD, COT__PAIR_SUB, COT__PAIR_FROM, /* t + w, t - w, w - t */
    COT__PAIR_KEPT, /* and these three where t stays in its slot */
    COT__PAIR_FORMS = 2 * COT__PAIR_KEPT,
    COT__PAIR_mul_f64 = 2 * OP_elementwise_count,
    COT__PAIR_mul_f32 = COT__PAIR_mul_f64 + COT__PAIR_FORMS,
    COT__PAIR_smul_f64 = COT__PAIR_mul_f32 + COT__PAIR_FORMS,
    COT__PAIR_smul_f32 = COT__PAIR_smul_f64 + COT__PAIR_FORMS,
    COT__SCALAR_END = COT__PAIR_smul_f32 + COT__PAIR_FORMS,
    COT__SCALAR_LATE, /* those that take what was made just before from a register */
    COT__SCALAR_TWO = COT__SCALAR_LATE + 14, /* those that do the next one as well */
    COT__SCALAR_CODES = COT__SCALAR_TWO + 32
};

/* Makes `first`, if the two can be one, an instruction that does both, one after the other. */
bool cot__scalars_join(cot__scalar *first, const cot__scalar *next);
/* Makes n instructions ready to run: what lies behind them becomes their end. */
void cot__scalars_link(cot__scalar *first, uint32_t n);
/* Runs instructions that are linked. */
void cot__scalars_run(const cot__scalar *c, cot__slot *slots);

#endif
