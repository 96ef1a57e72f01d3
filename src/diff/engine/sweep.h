/* sweep.h: what the reverse and the forward driver share: slots parallel to the nodes, accumulators
 * for tensors, lanes for scalars.
 *
 * A slot is 8 bytes a lane. What it holds for a node:
 *   numbers, scalar node    the adjoint or tangent itself, as T in {double, float} (W lanes of it);
 *                           of a 16-bit node a float that is rounded to the node's dtype
 *   numbers, tensor node    index + 1 of an accumulator of the sweep
 *   recording, any node     index + 1 of the var, with OWNED set when its storage belongs to the
 *                           sweep alone
 * All slots are zero between sweeps.
 *
 * The door of the folder: accumulate.h, scalar_sweep.h, saved_values.h and recorded.h, which this
 * one includes, each belong to the files they name.
 *
 * May call: base, rules, backend, tape, ops. Must not touch: the transformations above, which
 * call the engine. */
#ifndef COT_SWEEP_H
#define COT_SWEEP_H

#include "ops/elementwise/elementwise.h"
#include "pending/pending.h"
#include "tape/flow.h"
#include "tape/scope.h"

#define COT__OWNED (UINT64_C(1) << 40)

/* Where the adjoint of a tensor node lies: a reference on a storage and strides. */
typedef struct cot__acc {
    cot__storage *storage; /* NULL: free */
    int64_t       offset;  /* of a free one: the next free one, as in acc_free */
    int64_t       stride[COT_MAX_NDIM];
    bool          gradient; /* it will be the gradient of a leaf (cot__storage.gradients) */
} cot__acc;

/* An adjoint that has arrived at a node where it was wanted. */
typedef struct cot__arrival {
    uint32_t node;
    double   scalar;
    cot__acc tensor;
} cot__arrival;

typedef struct cot__sweep {
    cot_tape     *t;
    bool          recording;
    bool          gradients;    /* what arrives at leaves is a gradient, added or given */
    /* room that was set aside for gradients and is in use otherwise (reverse.c) */
    size_t        owed;
    uint32_t      lo, top;      /* the slots in use */
    cot__acc     *accs;
    uint32_t      acc_count, acc_capacity;
    uint32_t      acc_free;     /* index + 1 of the accumulator freed last; 0: none */
    cot__arrival *arrivals;
    uint32_t      arrival_count, arrival_capacity;
    uint8_t      *reach;        /* reverse: does node reach_from + i depend on what is asked for?
                                 * forward: does what is asked for depend on it? NULL: all do */
    uint32_t      reach_from;
    size_t        reach_bytes;
    int             ny;         /* forward: the outputs; NULL ys: s->top alone */
    const uint32_t *ys;
    bool          wanted_only;  /* arrivals: nodes marked COT__WANTED only, not leaves */
    /* elementwise work may still wait when the driver returns; the reader has it done first */
    bool          read_later;
} cot__sweep;

/* ---- drivers, and what they share ------------------------------------------------------------ */

/* Does a kernel that does a whole partial in one pass give the bits of the recorded partial? In
 * bf16 and f16 each of its operations rounds, so there even numbers are swept by recording. */
static inline bool cot__in_one_pass(cot_dtype dtype) { return cot__dtype_compute(dtype) == dtype; }
/* Is the node one for the runs of scalar_sweep.h? */
static inline bool cot__in_run(const cot__node *n) {
    return cot__in_switch(n) && (n->kind == COT_F64 || n->kind == COT_F32);
}

/* Operands of an elementwise node, for code that looks at their elements and for work that may
 * wait; an immediate goes into `number`. */
void cot__operand_views(const cot_tape *t, const cot__node *n, cot_dtype compute, cot__view *xs, cot__value *number);
void cot__operand_bounds(const cot_tape *t, const cot__node *n, cot_dtype compute, cot__bound *xs, cot__value *number);

/* Looks at the scalars that a sweep from the ys to the xs (NULL: to all leaves) can meet: false,
 * with the error set, if one of them reads a leaf or constant that was assigned since. Other nodes
 * are looked at when their rule runs. */
bool cot__leaves_unassigned(cot_tape *t, const char *op, int m, const uint32_t *ys, int n, const uint32_t *xs);

/* Does what a rule gave have the shape of the operand it is for? Otherwise sets the error. */
bool cot__adjoint_fits(cot__rule *r, cot_shape operand, cot_shape adjoint);
/* The rule of a node, in reverse mode, in recorded operations; a structural node without elements
 * gives zeros instead. */
void cot__run_vjp(cot__rule *r);
/* Marks in s->reach which nodes between the lowest x and y depend on any x: only those get
 * adjoints. False after setting the error. */
bool cot__mark_reach(cot__sweep *s, const char *op, int n, const uint32_t *xs, uint32_t y);
/* The reverse driver from s->top down: slots of the outputs have been seeded. False when an error
 * is on the tape. */
bool cot__reverse(cot__sweep *s);
/* The forward driver: slots of the inputs, marked COT__WANTED, hold tangents; fills the slots up to
 * s->top. */
bool cot__forward(cot__sweep *s, uint32_t from);

/* The tangent of a node from those of its operands (invalid: does not move), recorded; invalid when
 * nothing moves it. Those of further results go to `more`; NULL: there are none. */
cot_var cot__structural_tangent(cot_tape *t, uint32_t i, const cot_var *tangents, cot_var *more);
cot_var cot__elementwise_tangent(cot_tape *t, uint32_t i, const cot_var *tangents);

/* The var a rule sees for an adjoint or tangent that is a number so far. */
cot_var cot__slot_var(cot__sweep *s, uint32_t node);
/* No y was computed from an x while no gradients were recorded; otherwise sets the error
 * (no_grad_check.c). */
bool cot__no_grad_check(cot_tape *t, const char *op, int m, const uint32_t *ys, int n, const uint32_t *xs);

/* May a sweep begin? Not inside a function of a custom operation: the slots belong to the sweep
 * that called it. Sets the error. */
bool cot__may_sweep(cot_tape *t, const char *op);
/* May a sweep begin that gives numbers, of a value y? Not of values in a body that is being
 * recorded either. */
bool cot__may_sweep_numbers(cot_tape *t, const char *op, uint32_t y);
/* The elements of all vars together; 0 for a NULL list. */
int64_t cot__total_size(int n, const cot_var *vars);
/* Checks xs for a sweep: alive and active; gives indices. */
bool cot__check_inputs(cot_tape *t, const char *op, int n, const cot_var *xs, uint32_t *index);
void cot__mark_wanted(cot_tape *t, int n, const uint32_t *index, bool on);

/* The other headers of the folder, for whoever comes by its door. */
#include "diff/engine/accumulate.h"
#include "diff/engine/recorded.h"
#include "diff/engine/saved_values.h"
#include "diff/engine/scalar_sweep.h"

#endif
