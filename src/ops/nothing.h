/* nothing.h: the result of an operation that has nothing to do: a cast to the same dtype, a reshape
 * to the same shape, a sum over no axes.
 *
 * Users take the result of an operation for a computed value. If it were their leaf or constant
 * itself, a cot_assign to that would change the result, and derivatives through it, in silence. So
 * the public functions of nothing.def return such an operand as a node of its own (nothing.c). A
 * computed operand, which cannot be assigned, is returned itself.
 *
 * Inside of the library the same names stand for the functions beneath them, which return any
 * operand itself: a rule or a composition shows its intermediate values to nobody, so a node or a
 * copy would only cost. Expressions use these too, because their inputs are never assigned. */
#ifndef COT_NOTHING_H
#define COT_NOTHING_H

#include "tape/tape.h"

typedef enum cot__how { COT__COPY, COT__VIEW } cot__how;
/* z as a node of its own, a copy or a view, which has a derivative if z has one. */
cot_var cot__own(cot_var z, cot__how how);
/* z, the result of an operation, as a node of its own if it is a leaf or a constant, which
 * cot_assign may write; and if it is an input of a function form or of a compiled function, which
 * stands for such a one: what is recorded, and so the order in which adjoints are added, does not
 * depend on where a function runs. Not in the body of a loop or the like, on a tape or in a
 * program: nothing is assigned there. */
cot_var cot__unchanged(cot_var z, cot__how how);
/* Would it be a node of its own? */
bool    cot__is_unchanged_apart(const cot_tape *t, uint32_t node);

#define NOTHING(name, how, parameters, arguments) cot_var cot__inner_##name parameters;
#include "ops/nothing.def"

#ifndef COT__PUBLIC_NAMES
#undef cot_cast
#undef cot_sum
#undef cot_mean
#undef cot_prod
#undef cot_max
#undef cot_min
#undef cot_logsumexp
#undef cot_reshape
#undef cot_transpose
#undef cot_permute
#undef cot_broadcast_to
#undef cot_squeeze
#undef cot_slice
#undef cot_flip
#undef cot_pad
#undef cot_roll
#undef cot_tile
#undef cot_repeat
#undef cot_tril
#undef cot_triu
#undef cot_cumprod
#undef cot_einsum
#undef cot_matrix_exp
#undef cot_dropout

#define cot_cast         cot__inner_cast
#define cot_sum          cot__inner_sum
#define cot_mean         cot__inner_mean
#define cot_prod         cot__inner_prod
#define cot_max          cot__inner_max
#define cot_min          cot__inner_min
#define cot_logsumexp    cot__inner_logsumexp
#define cot_reshape      cot__inner_reshape
#define cot_transpose    cot__inner_transpose
#define cot_permute      cot__inner_permute
#define cot_broadcast_to cot__inner_broadcast_to
#define cot_squeeze      cot__inner_squeeze
#define cot_slice        cot__inner_slice
#define cot_flip         cot__inner_flip
#define cot_pad          cot__inner_pad
#define cot_roll         cot__inner_roll
#define cot_tile         cot__inner_tile
#define cot_repeat       cot__inner_repeat
#define cot_tril         cot__inner_tril
#define cot_triu         cot__inner_triu
#define cot_cumprod      cot__inner_cumprod
#define cot_einsum       cot__inner_einsum
#define cot_matrix_exp   cot__inner_matrix_exp
#define cot_dropout      cot__inner_dropout
#endif

#endif
