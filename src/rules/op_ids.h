/* op_ids.h: the number of every operation, in the order of the tables. */
#ifndef COT_OP_IDS_H
#define COT_OP_IDS_H

typedef enum cot__op_id {
#define UNARY(name, ...) OP_##name,
#define BINARY(name, ...) OP_##name,
#define TERNARY(name, ...) OP_##name,
#include "rules/rules.def"
    OP_elementwise_count, /* all before are elementwise; all after are structural */
#define STRUCTURAL(name) OP_##name,
#include "rules/ops.def"
    OP_count
} cot__op_id;

#endif
