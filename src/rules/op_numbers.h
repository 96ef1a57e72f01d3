/* op_numbers.h: how operations are numbered, and the numbers that the tape needs. It includes no
 * table of operations, so most files are not compiled again when an operation is added.
 * elementwise_ids.h and structural_ids.h have all numbers. */
#ifndef COT_OP_NUMBERS_H
#define COT_OP_NUMBERS_H

/* Elementwise operations are numbered from 0, structural ones from here. */
enum { OP_structural = 1024 };

/* The structural operations that the tape itself knows. The three over lists of scalars, which the
 * scalar sweeps know, stand together. */
#define COT__TAPE_OPS(_) _(leaf) _(constant) _(parameter) _(pick) _(sum_of) _(dot_of) _(logsumexp_of)

#define COT__NUMBER(name) OP_##name,
typedef enum cot__tape_op_id {
    COT__before_tape_ops = OP_structural - 1,
    COT__TAPE_OPS(COT__NUMBER)
    COT__after_tape_ops
} cot__tape_op_id;

#endif
