/* sweep.h: what the reverse and the forward driver share: slots parallel to the nodes, accumulators
 * for tensors, lanes for scalars.
 *
 * A slot is 8 bytes a lane. What it holds for a node:
 *   numbers, scalar node    the adjoint or tangent itself, as T in {double, float} (W lanes of it)
 *   numbers, tensor node    index + 1 of an accumulator of the sweep
 *   recording, any node     index + 1 of the var, with OWNED set when its storage belongs to the
 *                           sweep alone
 * All slots are zero between sweeps.
 *
 * May call: base, rules, backend, tape, ops. Must not touch: the transformations above, which
 * call the engine. */
#ifndef COT_SWEEP_H
#define COT_SWEEP_H

#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/deferred.h"
#include "tape/flow.h"
#include "tape/scope.h"

#define COT__OWNED (UINT64_C(1) << 40)

/* Where the adjoint of a tensor node lies: a reference on a storage and strides. */
typedef struct cot__acc {
    cot__storage *storage; /* NULL: free */
    int64_t       offset;  /* of a free one: the next free one, as in acc_free */
    int64_t       stride[COT_MAX_NDIM];
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
    /* elementwise work may still be deferred when the driver returns; the reader runs it first */
    bool          read_later;
} cot__sweep;

/* Slots for nodes 0 … top, `lanes` wide; zeroed. False after setting the error. */
bool cot__slots(cot_tape *t, uint32_t top, int lanes, const char *op);
typedef uint64_t cot__slot_bits __attribute__((may_alias)); /* slots are seen with several types */
typedef double   cot__slot_number __attribute__((may_alias));
static inline cot__slot_bits   *cot__slot(cot_tape *t, uint32_t i) {
    return (cot__slot_bits *)t->sweep.adjoints.data + i;
}
static inline cot__slot_number *cot__slot_f64(cot_tape *t, uint32_t i) {
    return (cot__slot_number *)t->sweep.adjoints.data + i;
}
/* The number in a scalar node's slot, and adding to it, whatever its dtype. */
double cot__slot_get(cot_tape *t, uint32_t i);
void   cot__slot_add(cot_tape *t, uint32_t i, double v);

/* Accumulators (numbers, tensors). Views are valid until the next push. */
cot__view cot__acc_view(cot__sweep *s, uint32_t node, int64_t *stride_buffer);
bool      cot__acc_share(cot__sweep *s, uint32_t node, cot__storage *storage, int64_t offset, const int64_t *stride);
/* row-major memory of its own */
bool      cot__acc_own(cot__sweep *s, uint32_t node, bool zeros_if_empty);
/* += v, which is shaped like the node */
bool      cot__acc_add(cot__sweep *s, uint32_t node, const cot__view *v);
void      cot__acc_drop(cot__sweep *s, uint32_t node);
/* the adjoint in the slot arrives, and stays there (a reference for tensors) */
bool      cot__arrive(cot__sweep *s, uint32_t node);
/* the arrival at a node; NULL: none */
cot__arrival *cot__arrival_at(const cot__sweep *s, uint32_t node);
/* Every tensor that arrived gets memory of its own first, so that adding to gradients cannot fail
 * half way. */
bool cot__own_arrivals(cot__sweep *s);
/* Adds what arrived to the gradients of leaves and retained values. */
void cot__commit_arrivals(cot__sweep *s);
/* Frees all; zeroes the slots lo … top unless the sweep has consumed them already. */
void cot__sweep_close(cot__sweep *s, bool consumed);

/* Runs of scalar nodes. They stop at the first node that is not a scalar of that kind, or is
 * wanted, and return its index. reverse: downward from i, stops below *lo, which follows the lowest
 * slot pushed to. forward: upward to `end`. */
typedef int64_t (*cot__reverse_run)(const cot__node *nodes, int64_t i, void *slots, uint32_t *lo);
typedef uint32_t (*cot__forward_run)(const cot__node *nodes, uint32_t i, uint32_t end, void *slots);
typedef struct cot__scalar_runs {
    int              lanes;
    cot__reverse_run reverse_f64, reverse_f32;
    cot__forward_run forward_f64, forward_f32;
} cot__scalar_runs;
/* The widest instance not wider than `lanes`: 1, 2 or 4; only the first knows f32. */
const cot__scalar_runs *cot__scalar_runs_for(int lanes);

/* The forward runs from lo to hi over f64 scalars: slots of the inputs, marked COT__WANTED, hold
 * their tangents. */
void cot__forward_lanes(cot_tape *t, uint32_t lo, uint32_t hi, const cot__scalar_runs *runs, void *slots);

/* Was node x, a leaf or constant, assigned after node `by` was recorded? (What a body read when it
 * was recorded is an example.) */
static inline bool cot__assigned_since(const cot_tape *t, uint32_t x, uint32_t by) {
    const cot__node *n = &t->nodes[x], *user = &t->nodes[by];
    if (!cot__was_assigned(n) || cot__in_body(user)) return false;
    return n->b / 4 > user->stamp || (n->b / 4 == user->stamp && n->a > by);
}
/* Has the value of node x, as node `by` saw it, been overwritten? */
static inline bool cot__overwritten(const cot_tape *t, uint32_t x, uint32_t by) {
    const cot__node *n = &t->nodes[x];
    return (cot__is_tensor(n) && n->value.tensor->version != n->value.tensor->storage->version) ||
           cot__assigned_since(t, x, by);
}
/* Is the value of node x still the one that node `by` saw? Otherwise sets the error that names both
 * operations. */
bool cot__saved_intact(cot_tape *t, uint32_t by, uint32_t x);
/* The same for all that an elementwise partial of node i reads (a mask of
 * elementwise_info.saves). */
bool cot__saves_intact(cot_tape *t, uint32_t i, uint32_t saves);

/* Operands of an elementwise node as views; an immediate goes into `number`. */
void cot__operand_views(const cot_tape *t, const cot__node *n, cot_dtype compute, cot__view *xs, cot__value *number);

/* Looks at the scalars that a sweep from the ys to the xs (NULL: to all leaves) can meet: false,
 * with the error set, if one of them reads a leaf or constant that was assigned since. Other nodes
 * are looked at when their rule runs. */
bool cot__leaves_unassigned(cot_tape *t, const char *op, int m, const uint32_t *ys, int n, const uint32_t *xs);

/* Does what a rule gave have the shape of the operand it is for? Otherwise sets the error. */
bool cot__adjoint_fits(cot__rule *r, cot_shape operand, cot_shape adjoint);
/* The rule of a structural node, in reverse mode; one without elements gives zeros instead. */
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
 * nothing moves it. */
cot_var cot__structural_tangent(cot_tape *t, uint32_t i, const cot_var *tangents);
cot_var cot__elementwise_tangent(cot_tape *t, uint32_t i, const cot_var *tangents);

/* The var a rule sees for an adjoint or tangent that is a number so far. */
cot_var cot__slot_var(cot__sweep *s, uint32_t node);
/* Recorded reverse sweep: the gradients of Σ <seeds[k], ys[k]> with respect to xs, all of them
 * indices. A y that does not depend on any x counts for nothing. */
cot_status cot__vjp_recorded(cot_tape *t, const char *op, int m, const uint32_t *ys, const cot_var *seeds, int n,
                             const uint32_t *xs, cot_var *grads);
/* Recorded forward sweep: the tangents of ys when xs (parameters, leaves, any values) move by dxs,
 * shaped like them. A tangent that is zero is recorded as zeros for float ys, and invalid for
 * others. */
cot_status cot__jvp_recorded(cot_tape *t, const char *op, int m, const uint32_t *ys, int n, const uint32_t *xs,
                             const uint32_t *dxs, cot_var *dys);
cot_status cot__grad_recorded(cot_tape *t, const char *op, uint32_t y, cot_var seed, int n, const uint32_t *xs,
                              cot_var *grads);

/* v, a derivative that was recorded, as the user gets it: not a seed or tangent itself, which are
 * older than node `from`, where the sweep began; and, in a no-grad scope, without a gradient: rules
 * that differentiate bodies record some even there. */
cot_var cot__as_recorded(cot_tape *t, uint32_t from, cot_var v);

/* No y was computed from an x while no gradients were recorded; otherwise sets the error
 * (no_grad_check.c). */
bool cot__no_grad_check(cot_tape *t, const char *op, int m, const uint32_t *ys, int n, const uint32_t *xs);

/* May a sweep begin? Not inside a function of a custom operation: the slots belong to the sweep
 * that called it. Sets the error. */
bool cot__may_sweep(cot_tape *t, const char *op);
/* May a sweep begin that gives numbers, of a value y? Not of values in a body that is being
 * recorded either. */
bool cot__may_sweep_numbers(cot_tape *t, const char *op, uint32_t y);
/* cot_grad_of and cot_vjp (given: the seed, or NULL) under the name of the function that the user
 * called. */
cot_status cot__grad_of(const char *op, cot_var y, const cot_var *given, int n, const cot_var *xs, cot_var *grads);

/* The elements of all vars together; 0 for a NULL list. */
int64_t cot__total_size(int n, const cot_var *vars);
/* Checks xs for a sweep: alive and active; gives indices. */
bool cot__check_inputs(cot_tape *t, const char *op, int n, const cot_var *xs, uint32_t *index);
void cot__mark_wanted(cot_tape *t, int n, const uint32_t *index, bool on);

#endif
