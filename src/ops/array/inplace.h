/* inplace.h: writes into the storage of a value, for the drivers and the public in-place
 * functions. */
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

/* Notes that source i was written for good: values computed from its old numbers are recognised by
 * their time. */
void cot__note_assign(cot_tape *t, uint32_t i, cot__assigner who);
/* May an optimiser be given this rate, or decay? */
static inline bool cot__is_rate(double v) { return v >= 0 && isfinite(v); }

#endif
