/* forward.c: the one forward driver: it walks up from the inputs and computes the tangent of every
 * node that depends on them.
 *
 * The rules are the reverse ones. Elementwise: the same partials. Linear: the operation on the
 * tangents. Bilinear: f(dx, y) + f(x, dy). Generic: its jvp where one is written, else the
 * transpose of its vjp: J·v is the derivative of <vjp(g), v> with respect to g. */
#include "rules/structural_ids.h"
#include "rules/elementwise_ids.h"
#include "diff/engine/find_kinks.h"
#include "ops/array/array.h"
#include "ops/precision.h"
#include "pending/pending.h"
#include "ops/structural.h"

#include <string.h>

/* ---- structural nodes ------------------------------------------------------------------------ */

static cot_var zeros_like(cot_tape *t, uint32_t i) {
    return cot_zeros(t, cot__dtype_at(&t->nodes[i]), cot__shape_at(t, i));
}

static cot_var linear(cot__rule *r, int n, cot_var *xs) {
    for (int k = 0; k < n; k++) {
        bool passive = k < 32 && r->op->inactive >> k & 1;
        xs[k]        = passive                        ? cot__rule_x(r, k)
                       : !cot__failed(r->tangents[k]) ? r->tangents[k]
                                                      : zeros_like(r->t, cot__rule_arg(r, k));
    }
    return cot__apply(r, xs);
}

static cot_var bilinear(cot__rule *r, cot_var *xs) {
    cot_var sum = INVALID(r->t);
    for (int k = 2, n = cot__nargs(cot__rule_node(r)); k < n; k++) xs[k] = cot__rule_x(r, k);
    for (int k = 0; k < 2; k++) {
        if (cot__failed(r->tangents[k])) continue;
        xs[k] = r->tangents[k];
        xs[1 - k] = cot__rule_x(r, 1 - k);
        cot_var term = cot__apply(r, xs);
        sum = cot__failed(sum) ? term : cot_add(sum, term);
    }
    return sum;
}

/* Has any result of the operation elements? */
static bool has_elements(const cot_tape *t, uint32_t i, int m) {
    for (int k = 0; k < m; k++)
        if (cot__size_at(t, i + (uint32_t)k)) return true;
    return false;
}

cot_var cot__structural_tangent(cot_tape *t, uint32_t i, const cot_var *tangents, cot_var *more) {
    int       n = cot__nargs(&t->nodes[i]), m = more ? cot__results_at(t, i) : 1;
    cot_var   few[8], *xs = few;
    bool      moves = false;
    cot__rule r     = {.t        = t,
                       .node     = i,
                       .op       = cot__op_of(t->nodes[i].op),
                       .tangents = tangents,
                       .tangent  = INVALID(t),
                       .more     = more,
                       .driver   = NULL};
    for (int k = 0; k < n; k++) moves |= !cot__failed(tangents[k]);
    for (int k = 1; k < m; k++) more[k - 1] = INVALID(t);
    /* A result without elements does not move; its rule might make elements on the way. */
    moves = moves && has_elements(t, i, m);
    if (!moves || t->status != COT_OK) return r.tangent;
    if (r.op->kind == KIND_LINEAR) {
        if (n > 8 && !(xs = cot__alloc(&t->al, (size_t)n * sizeof *xs)))
            return cot__fail(t, COT_MEMORY, "[jvp] out of memory: the tangents of %d operands", n);
        r.tangent = linear(&r, n, xs);
        if (n > 8) cot__free(&t->al, xs, (size_t)n * sizeof *xs);
    } else if (r.op->kind == KIND_BILINEAR)
        r.tangent = bilinear(&r, xs);
    else if (r.op->jvp)
        r.op->jvp(&r);
    else if (r.op->vjp)
        r.tangent = cot__transpose_vjp(&r, r.op->vjp);
    return r.tangent;
}

/* Does node a move in this sweep? Nodes below its inputs do not, whatever is in their slots: sweeps
 * nest (the rule of a node may run another sweep over what it recorded), and those slots belong to
 * the outer one. */
static bool moves_here(const cot__sweep *s, uint32_t a) { return a >= s->lo && *cot__slot(s->t, a) != 0; }

static cot_var structural_tangent(cot__sweep *s, uint32_t i, cot_var *more) {
    cot_tape      *t = s->t;
    const cot__op *op = cot__op_of(t->nodes[i].op);
    int            n = cot__nargs(&t->nodes[i]);
    cot_var        few[8], *tangents = n > 8 ? cot__alloc(&t->al, (size_t)n * sizeof *tangents) : few;
    if (!tangents) return cot__fail(t, COT_MEMORY, "[jvp] out of memory: the tangents of %d operands", n);
    for (int k = 0; k < n; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        bool     passive = (k < 32 && op->inactive >> k & 1) || !moves_here(s, a);
        tangents[k] = passive ? INVALID(t) : cot__slot_var(s, a);
    }
    bool        alone = op->kind == KIND_GENERIC; /* it may keep memory of its own */
    cot__paused paused = {0};
    if (alone) paused = cot__pending_pause(t);
    cot_var dz = cot__structural_tangent(t, i, tangents, more);
    if (alone) cot__pending_resume(t, paused);
    if (n > 8) cot__free(&t->al, tangents, (size_t)n * sizeof *tangents);
    return dz;
}

/* ---- elementwise nodes ----------------------------------------------------------------------- */

cot_var cot__elementwise_tangent(cot_tape *t, uint32_t i, const cot_var *tangents) {
    const cot__elementwise_info *e = &cot__elementwise_table[t->nodes[i].op];
    cot_var                      xs[3], z = VAR(t, i), sum = INVALID(t);
    for (int k = 0; k < e->arity; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        xs[k] = a == COT__NONE ? cot_number(t->nodes[i].extra.number) : VAR(t, a);
    }
    for (int k = 0; k < e->arity && t->status == COT_OK; k++) {
        if (!e->partial[k] || cot__failed(tangents[k])) continue;
        if (!cot__saves_intact(t, i, e->saves[k])) return INVALID(t);
        cot_var term = cot__tree_record(t, e->partial[k], xs, z, tangents[k]);
        sum = cot__failed(sum) ? term : cot_add(sum, term);
    }
    return sum;
}

static cot_var elementwise_tangent(cot__sweep *s, uint32_t i) {
    cot_tape *t = s->t;
    cot_var   tangents[3];
    for (int k = 0, n = cot__nargs(&t->nodes[i]); k < n; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        tangents[k] = a == COT__NONE || !moves_here(s, a) ? INVALID(t) : cot__slot_var(s, a);
    }
    return cot__elementwise_tangent(t, i, tangents);
}

/* Does node `by` multiply its operand k by the number 1, spread over a shape? The adjoint of the
 * terms of a sum is such a 1. The spread value is a copy, so the number itself may have been
 * assigned since. A number on a device is not looked at: multiplying by it is as good. */
static bool times_one(const cot_tape *t, uint32_t by, int k) {
    bool     product = t->nodes[by].op == OP_mul || t->nodes[by].op == OP_smul;
    uint32_t i = product ? cot__arg(&t->nodes[by], 1 - k) : COT__NONE;
    if (i == COT__NONE || t->nodes[i].op != OP_broadcast_to) return false;
    uint32_t         one = cot__arg(&t->nodes[i], 0);
    const cot__node *n = &t->nodes[one];
    return !cot__is_tensor(n) && cot__load_f64(&n->value, cot__dtype_at(n)) == 1 && !cot__assigned_since(t, one, i);
}

/* The same in numbers for a tensor node: block kernels straight into its tangent, all terms in one
 * pass. A tangent that is only handed on is kept by reference. */
static bool elementwise_numbers(cot__sweep *s, uint32_t i) {
    cot_tape                    *t = s->t;
    const cot__elementwise_info *e = &cot__elementwise_table[t->nodes[i].op];
    cot_dtype                    compute = cot__dtype_compute(cot__dtype_at(&t->nodes[i]));
    cot__bound                   xs[3], z = cot__bound_at(t, i);
    cot__value                   number;
    cot__pending_term            terms[3];
    int64_t                      g_stride[3][COT_MAX_NDIM], out_stride[COT_MAX_NDIM];
    int                          count = 0;
    for (int k = 0; k < e->arity; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        if (!e->partial[k] || a == COT__NONE || !moves_here(s, a)) continue;
        if (!cot__saves_intact(t, i, e->saves[k])) return false;
        terms[count] = (cot__pending_term){.k = k, .accumulate = count > 0};
        count++;
    }
    if (count == 0) return true;
    uint32_t first = cot__arg(&t->nodes[i], terms[0].k);
    bool handed_on = count == 1 && (e->partial[terms[0].k]->what == TREE_G || times_one(t, i, terms[0].k));
    if (handed_on && *cot__slot(t, i) == 0) {
        cot__acc g = s->accs[*cot__slot(t, first) - 1];
        return cot__acc_share(s, i, g.storage, g.offset, g.stride);
    }
    if (!cot__acc_own(s, i, false)) return false;
    cot__operand_bounds(t, &t->nodes[i], compute, xs, &number);
    for (int k = 0; k < count; k++) {
        terms[k].g = cot__acc_bound(s, cot__arg(&t->nodes[i], terms[k].k), g_stride[k]);
        terms[k].out = cot__acc_bound(s, i, out_stride);
    }
    uint16_t op = t->nodes[i].op;
    /* the operation itself: one pass instead of one for each term and their sum */
    if (count == 2 && (op == OP_add || op == OP_sub))
        cot__pending_value(t, op, compute, 2, (cot__bound[]){terms[0].g, terms[1].g}, &terms[0].out);
    else
        cot__pending_partials(t, op, compute, e->arity, xs, &z, count, terms);
    return true;
}

/* ---- writes to slices, in numbers ------------------------------------------------------------ */

/* Fills with zeros what lies before and after a slice of step 1 along its axis. */
static void zeros_around(const cot_tape *t, const cot__view *z, const int64_t *slice) {
    int     axis = (int)slice[0];
    int64_t shape[COT_MAX_NDIM], stride[COT_MAX_NDIM], end = slice[1] + slice[2];
    int64_t sides[2][4] = {{axis, 0, slice[1], 1}, {axis, end, z->shape[axis] - end, 1}};
    for (int k = 0; k < 2; k++) {
        cot__view side = cot__slice_view(z, sides[k], shape, stride);
        if (shape[axis] > 0) t->backend->fill(&side, 0);
    }
}

/* x[slice] += y where x does not move: only around the slice must there be zeros, in memory that
 * no waiting work touches. */
static bool fresh_slice(cot__sweep *s, uint32_t i, uint32_t y, const int64_t *slice) {
    static const double zero;
    cot_tape     *t = s->t;
    int64_t       shape[COT_MAX_NDIM], stride[COT_MAX_NDIM], y_stride[COT_MAX_NDIM], z_stride[COT_MAX_NDIM];
    cot__view     v = cot__layout_at(t, i);
    cot__storage       *fresh =
        cot__storage_create(t, (size_t)(cot__count(v.ndim, v.shape) * cot__dtype_size(v.dtype)), "jvp");
    if (!fresh) return false;
    cot__strides(v.ndim, v.shape, z_stride);
    cot__view  z = {fresh->data, v.dtype, v.ndim, v.shape, z_stride};
    cot__bound part = {cot__slice_view(&z, slice, shape, stride), fresh};
    bool       ok = cot__acc_share(s, i, fresh, 0, z_stride);
    cot__storage_release(t, fresh);
    if (!ok) return false;
    zeros_around(t, &z, slice);
    cot__bound pair[2] = {{cot__number_view(&zero, COT_F64), NULL}, cot__acc_bound(s, y, y_stride)};
    /* 0 + y: as adding to zeros would, also of -0 */
    cot__pending_value(t, OP_add, cot__dtype_compute(v.dtype), 2, pair, &part);
    return true;
}

/* x[slice] += y or = y, in place: the tangent takes over the memory of x's tangent too, if nothing
 * else holds it, because nothing reads x after the write, not even an output; unless x is a leaf
 * that was assigned since. The gradient of a function of slices, swept forward for a Hessian, is
 * full of these. */
static bool written_slice(cot__sweep *s, uint32_t i) {
    cot_tape      *t = s->t;
    uint32_t       x = t->nodes[i].a, y = t->nodes[i].b;
    const int64_t *slice = t->nodes[i].extra.attr->ints;
    bool           adds = cot__op_of(t->nodes[i].op)->writes == COT__ADDS_SLICE;
    int64_t        shape[COT_MAX_NDIM], stride[COT_MAX_NDIM], y_stride[COT_MAX_NDIM], z_stride[COT_MAX_NDIM];
    if (*cot__slot(t, x) == 0 && *cot__slot(t, y) == 0) return true;
    if (*cot__slot(t, x) == 0 && adds && slice[3] == 1) return fresh_slice(s, i, y, slice);
    if (*cot__slot(t, x) != 0 && cot__assigned_since(t, x, i)) {
        cot__acc g = s->accs[*cot__slot(t, x) - 1];
        if (!cot__acc_share(s, i, g.storage, g.offset, g.stride)) return false;
    } else {
        *cot__slot(t, i) = *cot__slot(t, x);
        *cot__slot(t, x) = 0;
    }
    if (!cot__acc_own(s, i, true)) return false;
    cot__bound part = cot__acc_bound(s, i, z_stride);
    part.view = cot__slice_view(&part.view, slice, shape, stride);
    if (*cot__slot(t, y) == 0) {
        if (adds) return true;
        cot__pending_settle(t, part.storage);
        t->backend->fill(&part.view, 0);
        return true;
    }
    cot__bound dy = cot__acc_bound(s, y, y_stride), pair[2] = {part, dy};
    if (adds) cot__pending_value(t, OP_add, cot__dtype_compute(part.view.dtype), 2, pair, &part);
    else cot__pending_copy(t, &part, &dy);
    return true;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool hold_recorded(cot__sweep *s, uint32_t i, cot_var v) {
    if (s->t->status != COT_OK) return false;
    if (cot__failed(v)) return true;
    *cot__slot(s->t, i) = (uint64_t)cot__index(v) + 1;
    return true;
}

/* In numbers: forgets what the rule recorded and keeps its value. */
static bool hold_numbers(cot__sweep *s, uint32_t i, cot_var v) {
    cot_tape *t = s->t;
    if (t->status != COT_OK) return false;
    if (cot__failed(v)) return true;
    cot__node *n = &t->nodes[cot__index(v)];
    if (cot__is_tensor(n)) {
        cot__tensor *x = n->value.tensor;
        return cot__acc_share(s, i, x->storage, x->offset, x->dims + x->ndim);
    }
    cot__slot_add(t, i, cot__load_f64(&n->value, cot__dtype_at(n)));
    return true;
}

/* slot += the tangent that was given, which is taken out while the node's own is computed. */
static bool add_given(cot__sweep *s, uint32_t i, uint64_t given) {
    cot_tape *t = s->t;
    uint64_t  own = *cot__slot(t, i);
    int64_t   stride[COT_MAX_NDIM];
    *cot__slot(t, i) = given;
    if (own == 0 || given == 0) {
        if (own) *cot__slot(t, i) = own;
        return true;
    }
    if (s->recording) return hold_recorded(s, i, cot_add(VAR(t, (uint32_t)own - 1), VAR(t, (uint32_t)given - 1)));
    if (cot__is_tensor(&t->nodes[i])) {
        cot__bound v = cot__acc_bound(s, i, stride);
        *cot__slot(t, i) = own;
        return cot__acc_add(s, i, &v);
    }
    double v = cot__slot_get(t, i);
    *cot__slot(t, i) = own;
    cot__slot_add(t, i, v);
    return true;
}

static bool hold(cot__sweep *s, uint32_t i, cot_var v) {
    return s->recording ? hold_recorded(s, i, v) : hold_numbers(s, i, v);
}

/* The tangents of further results, where they are needed. One that is an input too moves by what
 * was given for it on top. */
static bool hold_further(cot__sweep *s, uint32_t i, int m, const cot_var *more) {
    bool ok = true;
    for (uint32_t k = i + 1; k < i + (uint32_t)m && k <= s->top && ok; k++) {
        bool     input = s->t->nodes[k].flags & COT__WANTED;
        uint64_t given = input ? *cot__slot(s->t, k) : 0;
        if (!s->reach[k - s->reach_from]) continue;
        if (input) *cot__slot(s->t, k) = 0;
        ok = hold(s, k, more[k - i - 1]) && (!input || add_given(s, k, given));
    }
    return ok;
}

/* A structural node and its further results. */
static bool visit_structural(cot__sweep *s, uint32_t i) {
    cot_tape *t = s->t;
    int       m = cot__results_at(t, i);
    cot_var   few[8], *more = m == 1 ? NULL : m <= 9 ? few : cot__arena(t, (size_t)m * sizeof *more, "jvp");
    if (m > 1 && !more) return false;
    return hold(s, i, structural_tangent(s, i, more)) && (m == 1 || hold_further(s, i, m, more));
}

static bool visit(cot__sweep *s, uint32_t i) {
    cot_tape *t = s->t;
    cot__memory_tick(t);
    bool      elementwise = t->nodes[i].op < OP_structural;
    if (s->recording) return elementwise ? hold_recorded(s, i, elementwise_tangent(s, i)) : visit_structural(s, i);
    /* scalars have gone through the runs */
    if (elementwise && cot__in_one_pass(cot__dtype_at(&t->nodes[i]))) return elementwise_numbers(s, i);
    if (!elementwise && cot__op_of(t->nodes[i].op)->writes) return written_slice(s, i);
    cot_mark m = cot__mark(t);
    cot__scope scope = cot__scope_open(t, 0);
    bool ok = elementwise ? hold_numbers(s, i, elementwise_tangent(s, i)) : visit_structural(s, i);
    cot__scope_close(t, &scope);
    cot__rewind(t, m);
    return ok && t->status == COT_OK;
}

/* Other nodes need no tangent, and must not fail for want of one. */
static bool mark_needed(cot__sweep *s, uint32_t from) {
    s->reach_from = from;
    s->reach_bytes = (size_t)s->top - from + 1;
    s->reach = s->ys ? cot__needed(s->t, from, s->top, s->ny, s->ys, COT__EDGES_MOVING)
                     : cot__needed(s->t, from, s->top, 1, &s->top, COT__EDGES_MOVING);
    if (s->reach) return true;
    cot__fail(s->t, COT_MEMORY, "[jvp] out of memory: %zu bytes to mark what the results depend on", s->reach_bytes);
    s->reach_bytes = 0;
    return false;
}

/* Tangents that no later node needs; those of scalars lie in their slots. */
static void drop_last_used(cot__sweep *s, uint32_t i) {
    for (int k = 0, n = cot__nargs(&s->t->nodes[i]); k < n && k < COT__LAST_USES; k++) {
        if (!(s->reach[i - s->reach_from] >> (k + 1) & 1)) continue;
        uint32_t a = cot__arg(&s->t->nodes[i], k);
        if (cot__is_tensor(&s->t->nodes[a]) && moves_here(s, a)) cot__acc_drop(s, a);
    }
}

/* A node that is not part of a run of scalars. */
static bool visit_if_needed(cot__sweep *s, uint32_t from, uint32_t i) {
    if (!s->reach && !mark_needed(s, from)) return false;
    if (!s->reach[i - s->reach_from]) return true;
    if (!visit(s, i)) return false;
    if (!s->recording) drop_last_used(s, i);
    return true;
}

static bool in_run(const cot__sweep *s, const cot__node *n) { return !s->recording && cot__in_run(n); }

static uint32_t run(cot__sweep *s, uint32_t i, uint32_t end) {
    const cot__scalar_runs *runs = cot__scalar_runs_for(1);
    return (s->t->nodes[i].kind == COT_F64 ? runs->forward_f64 : runs->forward_f32)(s->t->nodes, i, end,
                                                                                    s->t->sweep.adjoints.data);
}

/* An input that is itself computed moves with the inputs below it, and by the tangent given for it
 * on top. */
static bool visit_input(cot__sweep *s, uint32_t from, uint32_t i) {
    cot_tape *t = s->t;
    uint64_t  given = *cot__slot(t, i);
    bool      ok = true;
    *cot__slot(t, i) = 0;
    t->nodes[i].flags &= (uint8_t)~COT__WANTED;
    if (in_run(s, &t->nodes[i]))
        run(s, i, i);
    else
        ok = visit_if_needed(s, from, i);
    t->nodes[i].flags |= COT__WANTED;
    return ok && add_given(s, i, given);
}

static bool walk(cot__sweep *s, uint32_t from) {
    cot_tape *t = s->t;
    uint32_t  i = from, last = cot__window(t) > s->top ? s->top : 0;
    while (i <= s->top) {
        cot__windows_up(t, i, s->top, &last);
        const cot__node *n = &t->nodes[i];
        /* a pick got its tangent with the others of its operation */
        if (n->op == OP_leaf || !(n->flags & COT__ACTIVE) || n->op == OP_pick) {
            i++;
        } else if (n->flags & COT__WANTED) {
            if (!visit_input(s, from, i)) return false;
            i++;
        } else if (in_run(s, n)) {
            i = run(s, i, last);
        } else {
            if (!visit_if_needed(s, from, i)) return false;
            i++;
        }
    }
    return true;
}

bool cot__forward(cot__sweep *s, uint32_t from) {
    cot_precision before = cot__precision_pause(s->t);
    cot__pending_open(s->t);
    bool ok = walk(s, from);
    if (!s->recording && !s->read_later) cot__pending_finish(s->t);
    cot__pending_close(s->t);
    s->t->precision = before;
    return ok;
}

/* ---- cot_jvp --------------------------------------------------------------------------------- */

/* The tangent of x as a value of x's shape and dtype. */
static bool take_tangent(cot_tape *t, int k, uint32_t x, cot_var v, uint32_t *out) {
    char which[40], a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    if (cot__is_number(v)) /* the same for every element */
        v = cot_full(t, cot__dtype_at(&t->nodes[x]), cot__shape_at(t, x), cot__number_value(v));
    snprintf(which, sizeof which, "tangents[%d]", k);
    if (t->status != COT_OK || !cot__operand(t, v, "jvp", which, out)) return false;
    cot_shape have = cot__shape_at(t, *out), want = cot__shape_at(t, x);
    if (!cot__same_shape(&have, &want)) {
        cot__fail(t, COT_SHAPE, "[jvp] tangents[%d] has shape %s, xs[%d] has %s; they must be equal", k,
                  cot__shape_text_at(t, *out, a), k, cot__shape_text_at(t, x, b));
        return false;
    }
    *out = cot__as(t, *out, cot__dtype_at(&t->nodes[x]));
    return *out != COT__NONE;
}

/* An input that is listed twice moves by both tangents. */
static void seed_recorded(cot_tape *t, uint32_t x, uint32_t dx) {
    uint64_t slot = *cot__slot(t, x);
    cot_var  sum = slot ? cot_add(VAR(t, (uint32_t)slot - 1), VAR(t, dx)) : VAR(t, dx);
    if (!cot__failed(sum)) *cot__slot(t, x) = (uint64_t)cot__index(sum) + 1;
}

cot_status cot__jvp_recorded(cot_tape *t, const char *op, int m, const uint32_t *ys, int n, const uint32_t *xs,
                             const uint32_t *dxs, cot_var *dys) {
    uint32_t top = 0, from = COT__NONE;
    for (int k = 0; k < m; k++) top = ys[k] > top ? ys[k] : top;
    for (int k = 0; k < n; k++) from = xs[k] < from ? xs[k] : from;
    for (int k = 0; k < m; k++) dys[k] = INVALID(t);
    if (from > top) from = top;
    if (!cot__slots(t, top, 1, op)) return t->status;
    cot__sweep s = {.t = t, .recording = true, .lo = from, .top = top, .ny = m, .ys = ys};
    for (int k = 0; k < n; k++)
        if (xs[k] <= top) seed_recorded(t, xs[k], dxs[k]);
    const char *before = cot__ask(t, op);
    uint8_t     repeats = t->mode.repeats;
    t->mode.repeats = COT__REPEATS;
    cot__mark_wanted(t, n, xs, true);
    bool ok = t->status == COT_OK && cot__forward(&s, from);
    t->mode.repeats = repeats;
    cot__mark_wanted(t, n, xs, false);
    cot__asked(t, before);
    for (int k = 0; k < m && ok; k++) {
        uint64_t slot = ys[k] >= from ? *cot__slot(t, ys[k]) : 0;
        if (slot) dys[k] = VAR(t, (uint32_t)slot - 1);
    }
    cot__sweep_close(&s, false);
    for (int k = 0; k < m && ok; k++)
        if (cot__failed(dys[k]) && cot__dtype_is_float(cot__dtype_at(&t->nodes[ys[k]]))) dys[k] = zeros_like(t, ys[k]);
    return t->status;
}

cot_var cot_jvp(cot_var y, int n, const cot_var *xs, const cot_var *tangents) {
    uint32_t  yi, few[32];
    cot_tape *t = cot__tape_beside("jvp", "y", 1, &y, n, xs);
    if (!t || !cot__enter(t, y, "jvp", "", &yi) || !cot__may_sweep(t, "jvp")) return cot__invalid(1, &y);
    uint32_t *index = n <= 16 ? few : cot__alloc(&t->al, 2 * (size_t)n * sizeof *index);
    if (!index) return cot__fail(t, COT_MEMORY, "[jvp] out of memory: a list of %d inputs", n);
    uint32_t *dx = index + n, from;
    cot_var   dy = INVALID(t);
    bool      ok = cot__check_inputs(t, "jvp", n, xs, index) && cot__list_given(t, "jvp", "tangents", n, tangents);
    for (int k = 0; k < n && ok; k++) ok = take_tangent(t, k, index[k], tangents[k], &dx[k]);
    from = t->count;
    ok = ok && cot__smooth_between(t, "jvp", 1, &yi, n, index);
    if (ok && cot__jvp_recorded(t, "jvp", 1, &yi, n, index, dx, &dy) == COT_OK && cot__failed(dy))
        dy = zeros_like(t, yi);
    if (index != few) cot__free(&t->al, index, 2 * (size_t)n * sizeof *index);
    return t->status == COT_OK ? cot__as_recorded(t, from, dy) : INVALID(t);
}
