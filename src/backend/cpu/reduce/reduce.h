/* reduce.h: the parts of the reductions that softmax and stages of elementwise work share.
 *
 * May call: base, the shared kernels, matrix products. Must not touch: tapes, nodes, vars. */
#ifndef COT_REDUCE_H
#define COT_REDUCE_H

#include "backend/cpu/kernels.h"

/* For every slice of x along `axes`: m = max x and s = sum exp(x - m), both in the type `as` (F64
 * or F32). m and s are views like z of cot__reduce, equal strides. Where m is infinite or NaN, the
 * shift is 0 instead. */
void cot__reduce_exp(const cot__view *x, uint32_t axes, cot_dtype as, const cot__view *m, const cot__view *s);

/* The sum, maximum or minimum of an array of which each part of 2^k leaves was reduced to a node in
 * the computing type d, F64 or F32; the first `whole` parts are full. */
void cot__reduce_join(cot__reduction what, cot_dtype d, const void *nodes, int64_t whole, int64_t parts,
                      const cot__view *z);

#endif
