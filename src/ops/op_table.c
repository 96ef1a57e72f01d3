/* op_table.c: the record of every operation, by its number. */
#include "rules/record.h"

#define STRUCTURAL(name) extern const cot__op cot__op_##name;
#include "rules/ops.def"
static const cot__op *const structural_ops[OP_count - OP_elementwise_count - 1] = {
#define STRUCTURAL(name) [OP_##name - OP_elementwise_count - 1] = &cot__op_##name,
#include "rules/ops.def"
};

const cot__op *cot__op_of(int op) {
    return op < OP_elementwise_count ? &cot__elementwise_ops[op] : structural_ops[op - OP_elementwise_count - 1];
}
