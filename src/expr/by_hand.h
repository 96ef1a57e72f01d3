/* by_hand.h: calls that the generated table cannot make from a prototype alone. */
#ifndef COT_EXPR_BY_HAND_H
#define COT_EXPR_BY_HAND_H

#include "expr/program.h"

void cot__by_hand_transpose(cot__invocation *c);
void cot__by_hand_pad(cot__invocation *c);
void cot__by_hand_tensordot(cot__invocation *c);
void cot__by_hand_split(cot__invocation *c);
void cot__by_hand_array(cot__invocation *c);
/* Of an array: itself; of a sparse matrix: sparse.c. */
void cot__by_hand_to_dense(cot__invocation *c);
void cot__by_hand_zeros_like(cot__invocation *c);
void cot__by_hand_ones_like(cot__invocation *c);
void cot__by_hand_full_like(cot__invocation *c);
void cot__by_hand_floor_divide(cot__invocation *c);
void cot__by_hand_arange(cot__invocation *c);
void cot__by_hand_eye(cot__invocation *c);
void cot__by_hand_roll(cot__invocation *c);
void cot__by_hand_norm(cot__invocation *c);
void cot__by_hand_trace(cot__invocation *c);
void cot__by_hand_compress(cot__invocation *c);
void cot__by_hand_dot_of(cot__invocation *c);

/* dtype=None: the dtype of the numbers given. */
cot_dtype cot__dtype_or(const cot__invocation *c, cot_dtype given);
/* x // y, as in Python. */
cot_var cot__floor_divide(cot_var x, cot_var y);

#endif
