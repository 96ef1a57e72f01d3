/* batch.h: operations done for a batch at once: the batch rules that records name, and their
 * building blocks. */
#ifndef COT_BATCH_H
#define COT_BATCH_H

#include "tape/tape.h"

/* ---- batches (see cot__op.batch) ------------------------------------------------------------- */

/* Does one element of the batch after the other, and stacks the results. */
cot_var cot__batch_loop(cot__rule *r, const cot__batch *b, cot_var *xs);
cot_var cot__batch_broadcast(cot__rule *r, const cot__batch *b, cot_var *xs);
cot_var cot__batch_take(cot__rule *r, const cot__batch *b, cot_var *xs);
cot_var cot__batch_scatter(cot__rule *r, const cot__batch *b, cot_var *xs);
cot_var cot__batch_last_writer(cot__rule *r, const cot__batch *b, cot_var *xs);
cot_var cot__batch_searchsorted(cot__rule *r, const cot__batch *b, cot_var *xs);
cot_var cot__batch_matmul(cot__rule *r, const cot__batch *b, cot_var *xs);
cot_var cot__batch_nary(cot__rule *r, const cot__batch *b, cot_var *xs);
cot_var cot__batch_loss(cot__rule *r, const cot__batch *b, cot_var *xs);
cot_var cot__batch_norm(cot__rule *r, const cot__batch *b, cot_var *xs);
cot_var cot__batch_norm_weights(cot__rule *r, const cot__batch *b, cot_var *xs);
cot_var cot__batch_conv(cot__rule *r, const cot__batch *b, cot_var *xs);

/* Building blocks. The shape with the batch in front; ndim is COT_MAX_NDIM + 1 after setting the
 * error. */
cot_shape cot__batch_shape(cot_tape *t, int64_t extent, cot_shape s);
/* Operand k with the batch in front, whether it has it or not. */
cot_var cot__batch_full(const cot__batch *b, int k, cot_var x);
/* x (batch, …) with axes of extent 1 behind the batch, so that it broadcasts with results of rank
 * `ndim` for one element. */
cot_var cot__batch_align(cot_var x, int ndim);
/* The node's apply on operands with the batch in front, and the shifted attributes. */
cot_var cot__batch_apply(cot__rule *r, int64_t extent, const cot_var *xs);
/* Axis `from` of x becomes axis `to`; the axes between them move. */
cot_var cot__moved_axis(cot_var x, int from, int to);

#endif
