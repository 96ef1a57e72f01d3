/* array.h: creation, casts, shapes, slices, joins, indices, orders, reductions, running sums and
 * Fourier transforms, whose public functions are declared in cotangent_ops.h; here stand writes
 * into the storage of a value, which drivers use as well.
 *
 * May call: base, rules, backend, tape, elementwise operations. Must not touch: sweeps, slots
 * and adjoints. */
#ifndef COT_INPLACE_H
#define COT_INPLACE_H

#include "tape/tape.h"

/* x[slice] += v in x's own storage; slice = axis, first, length, step. Linear in both. */
cot_status cot__add_slice(cot_var *x, cot_var v, const int64_t slice[4]);
/* The part of a view that a slice selects; shape and stride are the caller's memory (stride may be
 * the view's own). */
cot__view cot__slice_view(const cot__view *v, const int64_t slice[4], int64_t *shape, int64_t *stride);
/* Notes that node `writer` wrote s: everything older on it becomes stale. */
void cot__bump(cot__storage *s, uint32_t writer);

#endif
