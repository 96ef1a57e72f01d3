/* structural_ids.h: the number of every structural operation, in the order of ops.def. */
#ifndef COT_STRUCTURAL_IDS_H
#define COT_STRUCTURAL_IDS_H

#include "rules/op_numbers.h"

typedef enum cot__structural_id {
    COT__before_ops = COT__after_tape_ops - 1,
#define STRUCTURAL(name) OP_##name,
#define COT__WITHOUT_TAPE_OPS
#include "rules/ops.def"
#undef COT__WITHOUT_TAPE_OPS
    OP_count
} cot__structural_id;

#endif
