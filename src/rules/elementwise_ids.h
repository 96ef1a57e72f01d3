/* elementwise_ids.h: the number of every elementwise operation, in the order of rules.def. */
#ifndef COT_ELEMENTWISE_IDS_H
#define COT_ELEMENTWISE_IDS_H

#include "rules/op_numbers.h"

typedef enum cot__elementwise_id {
#define UNARY(name, ...) OP_##name,
#define BINARY(name, ...) OP_##name,
#define TERNARY(name, ...) OP_##name,
#include "rules/rules.def"
    OP_elementwise_count
} cot__elementwise_id;
_Static_assert((int)OP_elementwise_count < (int)OP_structural,
               "numbers of elementwise operations end before those of others");

#endif
