/* op_numbers.h: how operations are numbered, and the numbers that the tape needs. It reads no table
 * of operations, so that most files are not compiled again when one is added: elementwise_ids.h and
 * structural_ids.h have all numbers. */
#ifndef COT_OP_NUMBERS_H
#define COT_OP_NUMBERS_H

/* Elementwise operations are numbered from 0, structural ones from here. */
enum { OP_structural = 1024 };

typedef enum cot__tape_op_id {
    COT__before_tape_ops = OP_structural - 1,
#define STRUCTURAL(name) OP_##name,
#include "rules/tape_ops.def"
#undef STRUCTURAL
    COT__after_tape_ops
} cot__tape_op_id;

#endif
