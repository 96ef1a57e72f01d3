/* structural.h: what the families of structural operations share: the checks of their arguments,
 * and the few operations that have no public name.
 *
 * Every check that fails puts "[op] fact, fact; rule" on the tape and returns false.
 *
 * May call: base, job, rules, backend, tape. Must not touch: sweeps, slots and adjoints; a rule
 * sees its own cot__rule alone. */
#ifndef COT_STRUCTURAL_H
#define COT_STRUCTURAL_H

#include "ops/batch.h"
#include "tape/record_job.h"
#include "tape/tape.h"

static inline bool cot__failed(cot_var x) { return x.id == UINT64_MAX; }

/* ---- checks ---------------------------------------------------------------------------------- */

bool cot__check_dtype(cot_tape *t, const char *op, cot_dtype dtype);
/* At most COT_MAX_NDIM axes, no negative extent, and an addressable number of elements even if
 * empty extents counted as 1. */
bool cot__check_shape(cot_tape *t, const char *op, const cot_shape *shape);
/* `axis` counted from the front; ndim is the rank it must fit. */
bool cot__check_axis(cot_tape *t, const char *op, int axis, int ndim, int *out);
/* The axes as a bit mask; each may appear once. */
bool cot__check_axes(cot_tape *t, const char *op, cot_axes axes, int ndim, uint32_t *mask);
/* Python's start:stop:step over `extent` elements as first index, number of elements and step.
 * COT_END is an open end. */
bool cot__check_slice(cot_tape *t, const char *op, int64_t extent, int64_t start, int64_t stop, int64_t *step,
                      int64_t *first, int64_t *length);

/* ---- operands -------------------------------------------------------------------------------- */

/* Enters n operands (xs[k]: messages call it `names[k]`, or "xs[k]" when names is NULL), brought to
 * one dtype by recorded casts: the promotion of all; plain numbers are weak. real: integers become
 * f64. index has room for n. NULL after a failure. */
cot_tape *cot__enter_all(const char *op, const char *const *names, int n, const cot_var *xs, bool real,
                         uint32_t *index);
/* One operand and an axis of it, counted from the front; NULL after a failure. */
cot_tape *cot__enter_axis(const char *op, cot_var x, int *axis, uint32_t *index);
/* Equal shapes, or a scalar on one side, which is broadcast. */
bool cot__match_shapes(cot_tape *t, const char *op, uint32_t xs[2]);
/* Index of node i as dtype: itself, or a recorded cast; COT__NONE after a failure. */
uint32_t cot__as(cot_tape *t, uint32_t i, cot_dtype dtype);

/* Node i, or a row-major copy of it: what some kernels ask for; COT__NONE after a failure. */
uint32_t cot__dense(cot_tape *t, uint32_t i);

/* ---- shapes ---------------------------------------------------------------------------------- */

/* The extent of the k-th axis from the end, 1 for the last. A var that failed has no axes, and
 * rules go on after a failure, as all code does here: its extents are 0. */
static inline int64_t cot__extent_back(const cot_shape *s, int k) { return s->ndim >= k ? s->dim[s->ndim - k] : 0; }

/* A shape without the axes of the mask, or with extent 1 there. */
void      cot__reduced_shape(cot_shape *z, int ndim, const int64_t *shape, uint32_t mask, bool keep);
/* x's shape with the axes of the mask at extent 1. */
cot_shape cot__kept_shape(cot_shape x, uint32_t mask);
bool      cot__same_shape(const cot_shape *a, const cot_shape *b);
/* The error of two types that must be equal and are not. */
static inline cot_status cot__misfit(cot_dtype a, cot_dtype b) { return a == b ? COT_SHAPE : COT_DTYPE; }
/* cot_take and cot_broadcast_to on behalf of `op`, whose name errors have. */
cot_var cot__take_as(const char *op, cot_var x, cot_var indices, int axis);
/* cot_take, cot_take_along_axis and their transposes, on behalf of a function that asks for such
 * positions: its name errors have, also in programs. */
cot_var cot__take_for(cot__asker who, cot_var x, cot_var indices, int axis);
cot_var cot__take_along_for(cot__asker who, cot_var x, cot_var indices, int axis);
cot_var cot__scatter_add_for(cot__asker who, cot_var x, cot_var indices, cot_var updates, int axis);
/* x with x[i, indices[i,j]] += updates[i,j] */
cot_var cot__scatter_add_along_for(cot__asker who, cot_var x, cot_var indices, cot_var updates, int axis);
/* Positions on one axis of this extent, which `who` asks for, as i64 counted from the front. */
cot_var cot__places_for(cot__asker who, cot_var indices, int64_t extent);
cot_var cot__broadcast_as(const char *op, cot_var x, cot_shape shape);
/* The shape of take: x.shape[:axis] + indices.shape + x.shape[axis+1:]. It may have more axes or
 * elements than there can be, which the caller looks at. */
cot_shape cot__taken_shape(const cot__view *x, const cot__view *indices, int axis);
/* Room for a constant of dtype and shape, with all checks; a NULL or failed tape gives false. Write
 * through r->view, then push. */
bool    cot__constant_open(cot_tape *t, cot__result *r, const char *op, cot_dtype dtype, const cot_shape *shape);
cot_var cot__constant_push(cot_tape *t, cot__result *r);

/* ---- operations without a public name -------------------------------------------------------- */

/* argmax along the axis of logits and noise, with a note where the logits give no probabilities. */
cot_var cot__categorical(cot_var sums, int axis);
/* A contiguous copy of any value. */
cot_var cot__copy_var(cot_tape *t, uint32_t x);
/* x[.., index, ..] += u (along: as in take_along_axis). Halves are summed in f32 and rounded once:
 * thousands of repeats of one position would stop growing otherwise. False after setting the
 * error. */
bool cot__scatter(cot_tape *t, const char *op, const cot__view *x, int axis, const cot__view *index, const cot__view *u,
                  bool along);
/* x under another number, as a view. */
cot_var cot__fresh_input(cot_var x);
/* The first slice of what steps or a batch go through, or zeros like it where there is none: what a
 * body is recorded on. */
cot_var cot__first_slice(cot_tape *t, cot_var x);
/* The last two axes exchanged. */
cot_var cot__swap_last(cot_var x);

#ifdef COT_BUILDING
#include "ops/nothing.h" /* last: it gives names of public functions another meaning */
#endif

/* The adjoint of result k of an operation with several; zeros where none has arrived. */
cot_var cot__rule_adjoint(cot__rule *r, int k);

#endif
