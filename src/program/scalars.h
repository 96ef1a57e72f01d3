/* scalars.h: elementwise operations on 0-d values as instructions on slots of 8 bytes, with the
 * bits of recorded scalars. */
#ifndef COT_PROGRAM_SCALARS_H
#define COT_PROGRAM_SCALARS_H

#include "base/base.h"

/* A 0-d value in its own dtype. */
typedef union cot__slot { double f64; float f32; uint8_t u8; uint64_t bits; } cot__slot;

/* z = op(x, y, w), numbers of slots; operands that it does not have are not read. */
typedef struct cot__scalar { uint32_t code, z, x, y, w; } cot__scalar;

/* The code of an operation on F64 or F32. */
static inline uint32_t cot__scalar_code(int op, cot_dtype dtype) { return 2 * (uint32_t)op + (dtype == COT_F32); }

void cot__scalars_run(const cot__scalar *code, uint32_t n, cot__slot *slots);

#endif
