/* reverse.c: the one reverse driver. It walks down from the seeded outputs; at each node it hands
 * the adjoint to the rule and adds what the rule gives to the operands.
 *
 * With numbers (cot_backward), runs of scalar nodes go through the switch of scalar_sweep.inc,
 * elementwise tensors through block kernels, and any other node's rule runs in recorded operations
 * that are forgotten at once: that of a structural node, and of every node in 16 bits, where each
 * operation of a rule rounds. Recording (cot_grad_of), everything the rules record
 * stays. Both take the same rules in the same order. */
#include "rules/elementwise_ids.h"
#include "diff/engine/sweep.h"
#include "ops/array/array.h"
#include "ops/precision.h"
#include "ops/structural.h"

#include <string.h>

/* It records, or words an error: built for size, as what it calls takes the time. */
#define COLD __attribute__((cold))

/* ---- contributions, as numbers --------------------------------------------------------------- */

COLD bool cot__adjoint_fits(cot__rule *r, cot_shape operand, cot_shape adjoint) {
    if (cot__same_shape(&operand, &adjoint)) return true;
    char x[COT__SHAPE_TEXT], y[COT__SHAPE_TEXT];
    cot__fail(r->t, COT_SHAPE, "[%s] its derivative rule gave an adjoint of shape %s for an operand of shape %s",
              cot__op_name(r->t, r->node), cot__shape_text(adjoint.ndim, adjoint.dim, y),
              cot__shape_text(operand.ndim, operand.dim, x));
    return false;
}

static bool shape_fits(cot__rule *r, uint32_t to, uint32_t v) {
    cot__view x = cot__layout_at(r->t, to), g = cot__layout_at(r->t, v);
    bool      same = x.ndim == g.ndim;
    for (int k = 0; same && k < x.ndim; k++) same = x.shape[k] == g.shape[k];
    return same || cot__adjoint_fits(r, cot__shape_at(r->t, to), cot__shape_at(r->t, v));
}

/* The contribution in the dtype of the operand, or invalid. */
static cot_var fitted(cot__rule *r, uint32_t to, cot_var v) {
    if (r->t->status != COT_OK) return INVALID(r->t);
    uint32_t i;
    if (cot__is_number(v)) v = cot_constant(r->t, cot__number_value(v));
    if (!cot__operand(r->t, v, cot__op_name(r->t, r->node), "contributed", &i)) return INVALID(r->t);
    cot_dtype want = cot__dtype_at(&r->t->nodes[to]);
    return cot__dtype_at(&r->t->nodes[i]) == want ? v : cot_cast(v, want);
}

static void give_numbers(cot__rule *r, int k, cot_var v) {
    cot__sweep *s = r->driver;
    cot_tape   *t = r->t;
    uint32_t    to = cot__rule_arg(r, k);
    if (!cot__rule_wants(r, k)) return;
    v = fitted(r, to, v);
    if (v.id == UINT64_MAX || !shape_fits(r, to, cot__index(v))) return;
    cot__node *n = &t->nodes[cot__index(v)];
    if (to < s->lo) s->lo = to;
    if (!cot__is_tensor(n)) {
        cot__slot_add(t, to, cot__load_f64(&n->value, cot__dtype_at(n)));
    } else if (*cot__slot(t, to) == 0) {
        cot__tensor *x = n->value.tensor;
        cot__acc_share(s, to, x->storage, x->offset, x->dims + x->ndim);
    } else {
        cot__bound given = cot__bound_at(t, cot__index(v));
        cot__acc_add(s, to, &given);
    }
}

static void give_slice_numbers(cot__rule *r, int k, cot_var v, const int64_t slice[4]) {
    cot__sweep *s = r->driver;
    uint32_t    to = cot__rule_arg(r, k);
    int64_t     stride[COT_MAX_NDIM], shape[COT_MAX_NDIM];
    if (!cot__rule_wants(r, k)) return;
    v = fitted(r, to, v);
    if (v.id == UINT64_MAX || !cot__acc_own(s, to, true)) return;
    cot__bound part = cot__acc_bound(s, to, stride), from = cot__bound_at(r->t, cot__index(v));
    part.view = cot__slice_view(&part.view, slice, shape, stride);
    cot__bound pair[2] = {part, from};
    cot__pending_value(r->t, OP_add, cot__dtype_compute(part.view.dtype), 2, pair, &part);
}

static void give_scatter_numbers(cot__rule *r, int k, cot_var v, cot_var index, int axis, bool along) {
    cot__sweep *s = r->driver;
    uint32_t    to = cot__rule_arg(r, k);
    int64_t     stride[COT_MAX_NDIM];
    if (!cot__rule_wants(r, k)) return;
    v = fitted(r, to, v);
    if (v.id == UINT64_MAX || index.id == UINT64_MAX || !cot__acc_own(s, to, true)) return;
    cot__bound all = cot__acc_bound(s, to, stride);
    cot__pending_settle(r->t, all.storage);
    cot__view from = cot__look(r->t, cot__index(v)), at = cot__look(r->t, cot__index(index));
    cot__scatter(r->t, r->op->name, &all.view, axis, &at, &from, along);
}

/* ---- contributions, recorded ----------------------------------------------------------------- */

static cot_var slot_held(cot_tape *t, uint32_t node) {
    uint64_t slot = *cot__slot(t, node);
    return VAR(t, (uint32_t)slot - 1);
}

static void slot_hold(cot__sweep *s, uint32_t node, cot_var v, bool owned) {
    if (v.id == UINT64_MAX) return;
    *cot__slot(s->t, node) = ((uint64_t)cot__index(v) + 1) | (owned ? COT__OWNED : 0);
    if (node < s->lo) s->lo = node;
}

static void give_recorded(cot__rule *r, int k, cot_var v) {
    cot__sweep *s = r->driver;
    uint32_t    to = cot__rule_arg(r, k);
    if (!cot__rule_wants(r, k)) return;
    v = fitted(r, to, v);
    if (v.id == UINT64_MAX || !shape_fits(r, to, cot__index(v))) return;
    uint64_t slot = *cot__slot(r->t, to);
    if (slot == 0) {
        slot_hold(s, to, v, false);
    } else if (slot & COT__OWNED && cot__has_axes(&r->t->nodes[to])) {
        cot_var sum = slot_held(r->t, to);
        cot_add_into(&sum, v);
        slot_hold(s, to, sum, true);
    } else
        slot_hold(s, to, cot_add(slot_held(r->t, to), v), true);
}

/* An adjoint that may be written in place: zeros, or a copy of what is there. */
static COLD cot_var owned_recorded(cot__sweep *s, uint32_t to) {
    cot_tape *t = s->t;
    uint64_t  slot = *cot__slot(t, to);
    if (slot == 0) return cot_zeros(t, cot__dtype_at(&t->nodes[to]), cot__shape_at(t, to));
    return slot & COT__OWNED ? slot_held(t, to) : cot__copy_var(t, (uint32_t)slot - 1);
}

static COLD void give_slice_recorded(cot__rule *r, int k, cot_var v, const int64_t slice[4]) {
    cot__sweep *s = r->driver;
    uint32_t    to = cot__rule_arg(r, k);
    if (!cot__rule_wants(r, k)) return;
    v = fitted(r, to, v);
    if (v.id == UINT64_MAX) return;
    cot_var sum = owned_recorded(s, to);
    cot__add_slice(&sum, v, slice);
    slot_hold(s, to, sum, true);
}

static COLD void give_scatter_recorded(cot__rule *r, int k, cot_var v, cot_var index, int axis, bool along) {
    cot__sweep *s = r->driver;
    uint32_t    to = cot__rule_arg(r, k);
    if (!cot__rule_wants(r, k)) return;
    v = fitted(r, to, v);
    if (v.id == UINT64_MAX) return;
    uint64_t slot = *cot__slot(r->t, to);
    cot_var  sum =
        slot ? slot_held(r->t, to) : cot_zeros(r->t, cot__dtype_at(&r->t->nodes[to]), cot__shape_at(r->t, to));
    sum = (along ? cot__scatter_add_along_for : cot__scatter_add_for)(cot__rule_asker(r), sum, index, v, axis);
    slot_hold(s, to, sum, true);
}

/* ---- what a rule sees ------------------------------------------------------------------------ */

bool cot__rule_wants(const cot__rule *r, int k) {
    const cot__sweep *s = r->driver;
    uint32_t          a = cot__rule_arg(r, k);
    if (a == COT__NONE || !(r->t->nodes[a].flags & COT__ACTIVE)) return false;
    if (k < 32 && r->op->inactive >> k & 1) return false;
    return !s || !s->reach || (a >= s->reach_from && s->reach[a - s->reach_from]);
}

/* Was the value of node x, as node `by` saw it, overwritten since? Sets the error. */
bool cot__saved_intact(cot_tape *t, uint32_t by, uint32_t x) {
    const cot__node *n = &t->nodes[x];
    char             a[160], b[160], c[200];
    if (cot__is_tensor(n) && n->value.tensor->version != n->value.tensor->storage->version)
        cot__describe_writer(t, n->value.tensor, c, sizeof c);
    else if (cot__assigned_since(t, x, by))
        snprintf(c, sizeof c, "%s", cot__assigner_name(n));
    else
        return true;
    cot__fail(t, COT_STALE,
              "[%s] %s needs the value of %s, which was overwritten by %s; compute before the write, or write to a "
              "copy (cot_copy)",
              t->sweep.asked ? t->sweep.asked : cot__op_name(t, by), cot__describe(t, by, a, sizeof a),
              cot__describe(t, x, b, sizeof b), c);
    return false;
}

cot_var cot__rule_x(cot__rule *r, int k) {
    uint32_t a = cot__rule_arg(r, k);
    return r->t->status == COT_OK && cot__saved_intact(r->t, r->node, a) ? VAR(r->t, a) : INVALID(r->t);
}

cot_var cot__rule_result_of(cot__rule *r, int k) {
    uint32_t z = r->node + (uint32_t)k;
    return r->t->status == COT_OK && cot__saved_intact(r->t, r->node, z) ? VAR(r->t, z) : INVALID(r->t);
}

cot_var cot__rule_z(cot__rule *r) { return cot__rule_result_of(r, 0); }

cot_var cot__slot_var(cot__sweep *s, uint32_t node) {
    cot_tape *t = s->t;
    if (s->recording) return slot_held(t, node);
    cot_dtype dtype = cot__dtype_at(&t->nodes[node]);
    if (!cot__is_tensor(&t->nodes[node])) {
        cot__result r;
        if (!cot__result_open(t, &r, "backward", dtype, 0, NULL)) return INVALID(t);
        cot__store_f64(&r.scalar, dtype, cot__slot_get(t, node));
        return cot__result_push(t, &r, OP_constant, 0, NULL, NULL);
    }
    cot__acc *a = &s->accs[*cot__slot(t, node) - 1];
    a->storage->refs++;
    if (!cot__storage_keep(t, a->storage, "backward")) return INVALID(t);
    cot__tensor *x = t->nodes[node].value.tensor;
    return cot__push_storage(t, OP_constant, a->storage, dtype, x->ndim, x->dims, a->stride, a->offset, 0, NULL);
}

/* ---- one node -------------------------------------------------------------------------------- */

bool cot__saves_intact(cot_tape *t, uint32_t i, uint32_t saves) {
    const cot__node *n = &t->nodes[i];
    for (int k = 0; k < 3; k++)
        if (saves >> k & 1 && cot__arg(n, k) != COT__NONE && !cot__saved_intact(t, i, cot__arg(n, k))) return false;
    return !(saves & COT__SAVES_Z) || cot__saved_intact(t, i, i);
}

void cot__operand_views(const cot_tape *t, const cot__node *n, cot_dtype compute, cot__view *xs, cot__value *number) {
    for (int k = 0, arity = cot__elementwise_arity(n->op); k < arity; k++) {
        uint32_t a = cot__arg(n, k);
        if (a == COT__NONE) {
            cot__store_f64(number, compute, n->extra.number);
            xs[k] = cot__number_view(number, compute);
        } else
            xs[k] = cot__look(t, a);
    }
}

void cot__operand_bounds(const cot_tape *t, const cot__node *n, cot_dtype compute, cot__bound *xs, cot__value *number) {
    cot__store_f64(number, compute, n->extra.number);
    for (int k = 0, arity = cot__elementwise_arity(n->op); k < arity; k++) {
        uint32_t a = cot__arg(n, k);
        xs[k] = a == COT__NONE ? (cot__bound){cot__number_view(number, compute), NULL} : cot__bound_at(t, a);
    }
}

/* Chooses where the partial to operand `to` is written: into its accumulator, if it has one; else
 * into the adjoint of node i itself, if nothing else needs that; else into a new accumulator. */
static bool open_partial(cot__sweep *s, uint32_t i, uint32_t to, bool *given_away, cot__pending_term *p,
                         int64_t *stride) {
    cot_tape *t = s->t;
    cot__acc *g = &s->accs[*cot__slot(t, i) - 1];
    cot__view v = cot__layout_at(t, i);
    p->accumulate = *cot__slot(t, to) != 0;
    if (!p->accumulate && !*given_away && g->storage->refs == 1 && !g->storage->borrowed &&
        cot__is_contiguous(v.ndim, v.shape, g->stride)) {
        int64_t same[COT_MAX_NDIM]; /* the list of accumulators may move */
        memcpy(same, g->stride, (size_t)v.ndim * sizeof *same);
        if (!cot__acc_share(s, to, g->storage, g->offset, same)) return false;
        *given_away = true;
    } else {
        /* did the partial before this one hand its adjoint to the same operand? */
        bool here = p->accumulate && *given_away && s->accs[*cot__slot(t, to) - 1].storage == g->storage;
        if (!here && !cot__acc_own(s, to, false)) return false;
    }
    p->out = cot__acc_bound(s, to, stride);
    return true;
}

/* An elementwise tensor node, in numbers: block kernels straight into the accumulators, all
 * partials in one pass. */
static bool elementwise_numbers(cot__sweep *s, uint32_t i, cot__rule *r) {
    cot_tape                    *t = s->t;
    const cot__node             *n = &t->nodes[i];
    const cot__elementwise_info *e = &cot__elementwise_table[n->op];
    cot_dtype                    compute = cot__dtype_compute(cot__dtype_at(n));
    cot__bound                   xs[3], z = cot__bound_at(t, i);
    cot__value                   number;
    cot__pending_term            out[3];
    int64_t                      g_stride[COT_MAX_NDIM], out_stride[3][COT_MAX_NDIM];
    int                          pending[3], count = 0;
    bool                         given_away = false;
    cot__operand_bounds(t, n, compute, xs, &number);
    for (int k = 0; k < e->arity; k++) {
        if (!e->partial[k] || !cot__rule_wants(r, k)) continue;
        uint32_t to = cot__arg(n, k);
        if (!cot__saves_intact(t, i, e->saves[k])) return false;
        bool waits = false; /* for a partial to the same operand: they are added in order */
        for (int j = 0; j < count; j++) waits |= cot__arg(n, pending[j]) == to;
        if (e->partial[k]->what == TREE_G && *cot__slot(t, to) == 0 && !waits) {
            cot__acc *g = &s->accs[*cot__slot(t, i) - 1];
            memcpy(g_stride, g->stride, (size_t)z.view.ndim * sizeof *g_stride);
            if (!cot__acc_share(s, to, g->storage, g->offset, g_stride)) return false;
            continue;
        }
        pending[count++] = k;
    }
    for (int k = 0; k < count; k++) {
        cot__pending_term p = {.k = pending[k]};
        bool              before = given_away;
        if (!open_partial(s, i, cot__arg(n, pending[k]), &given_away, &p, out_stride[k])) return false;
        /* the partial that replaces the adjoint goes first; the order of the others stays */
        int at = given_away && !before ? 0 : k;
        memmove(&out[at + 1], &out[at], (size_t)(k - at) * sizeof *out);
        out[at] = p;
    }
    if (count == 0) return true;
    for (int k = 0; k < count; k++) out[k].g = cot__acc_bound(s, i, g_stride);
    cot__pending_partials(t, n->op, compute, e->arity, xs, &z, count, out);
    return true;
}

/* An elementwise node, recorded: its trees written to the tape. */
static COLD void elementwise_recorded(cot__rule *r) {
    cot_tape                    *t = r->t;
    uint32_t                     i = r->node;
    const cot__elementwise_info *e = &cot__elementwise_table[t->nodes[i].op];
    cot_var                      xs[3];
    for (int k = 0; k < e->arity; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        xs[k] = a == COT__NONE ? cot_number(t->nodes[i].extra.number) : VAR(t, a);
    }
    cot_var z = VAR(t, i);
    for (int k = 0; k < e->arity && t->status == COT_OK; k++) {
        if (!e->partial[k] || !cot__rule_wants(r, k)) continue;
        if (!cot__saves_intact(t, i, e->saves[k])) return;
        r->give(r, k, cot__tree_record(t, e->partial[k], xs, z, r->g));
    }
}

/* Does node i repeat elements? Then it may have more of them than any memory. */
static bool repeats(const cot_tape *t, uint32_t i) {
    return cot__is_tensor(&t->nodes[i]) && cot__bytes_at(t, i) > t->nodes[i].value.tensor->storage->bytes;
}

/* Does the node stand for operations whose rules are asked themselves? It is a loop or a call. */
static bool stands_for_others(const cot__rule *r) {
    return r->op->bodies && r->op->results && !(r->op->users_rule && r->op->users_rule(r));
}

/* Has none of the results an adjoint with elements? */
static bool is_empty(const cot__rule *r) {
    if (stands_for_others(r)) return false;
    if (!r->gs) return cot__size_at(r->t, r->node) == 0;
    for (int k = 0, m = cot__results_at(r->t, r->node); k < m; k++)
        if (!cot__failed(cot__rule_g(r, k)) && cot__size_at(r->t, r->node + (uint32_t)k)) return false;
    return true;
}

/* A result without elements gives zeros to its operands, whatever the operation is, and nothing to
 * an operand that repeats elements, since the zeros would have to be added up. The rule is not
 * asked: on the way it might make rows and columns that do have elements, more than memory
 * holds. */
static COLD void give_nothing(cot__rule *r) {
    cot_tape *t = r->t;
    for (int k = 0, n = cot__nargs(cot__rule_node(r)); k < n && t->status == COT_OK; k++) {
        uint32_t a = cot__rule_arg(r, k);
        if (!cot__rule_wants(r, k) || repeats(t, a)) continue;
        cot__give(r, k, cot_broadcast_to(cot_zeros(t, cot__dtype_at(&t->nodes[a]), COT_SCALAR), cot__rule_shape(r, k)));
    }
}

void cot__run_vjp(cot__rule *r) {
    if (r->t->nodes[r->node].op < OP_structural) elementwise_recorded(r);
    else if (is_empty(r)) give_nothing(r);
    else if (r->op->vjp) r->op->vjp(r);
}

/* Generic operations that are not elementwise may keep memory of their own. */
static void run_rule(cot__rule *r) {
    bool        alone = r->op->kind == KIND_GENERIC && r->t->nodes[r->node].op >= OP_structural;
    cot__paused paused = {0};
    if (alone) paused = cot__pending_pause(r->t);
    cot__run_vjp(r);
    if (alone) cot__pending_resume(r->t, paused);
}

/* Shows r the adjoint of each of its m results, invalid where none has arrived; `gs` has room for
 * the further ones. Results behind `last` are above the sweep. */
static bool adjoints_of(cot__sweep *s, cot__rule *r, uint32_t last, cot_var *gs, int m) {
    for (int k = 0; k < m && s->t->status == COT_OK; k++) {
        uint32_t i = r->node + (uint32_t)k;
        cot_var  g = i <= last && *cot__slot(s->t, i) ? cot__slot_var(s, i) : INVALID(s->t);
        if (k == 0) r->g = g;
        else gs[k - 1] = g;
    }
    r->gs = gs;
    return s->t->status == COT_OK;
}

/* Runs the rule of an operation with several results, all adjoints in its sight. */
static void run_with_all(cot__sweep *s, cot__rule *r, uint32_t last) {
    cot_tape *t = s->t;
    int       m = cot__results_at(t, r->node);
    cot_var   few[8], *gs = m <= 9 ? few : cot__arena(t, (size_t)m * sizeof *gs, r->op->name);
    if (gs && adjoints_of(s, r, last, gs, m)) run_rule(r);
}

/* What a rule makes for leaves that have no adjoint yet: room is set aside for it before it is
 * made, so that a gradient never counts. */
static size_t room_for_gradients(const cot__sweep *s, const cot__rule *r) {
    const cot__node *n = cot__rule_node(r);
    size_t           bytes = 0;
    for (int k = 0, count = s->gradients ? cot__nargs(n) : 0; k < count; k++) {
        uint32_t a = cot__arg(n, k);
        if (a == COT__NONE || r->t->nodes[a].op != OP_leaf || !cot__is_tensor(&r->t->nodes[a])) continue;
        if (*cot__slot(r->t, a) == 0 && cot__rule_wants(r, k)) bytes += cot__cache_takes(cot__bytes_at(r->t, a));
    }
    return bytes;
}

/* The rule is over, and its gradients are set aside themselves. Where it has given a leaf what
 * others have too, the room may be in use otherwise, until that becomes the leaf's alone. */
static void take_back(cot__sweep *s, size_t room) {
    cot__cache *c = &s->t->cache;
    s->owed += room;
    if (LIKELY(!s->owed)) return;
    c->aside -= s->owed;
    if (cot__cache_room(c, 0)) s->owed = 0;
    else c->aside += s->owed;
}

/* Any other node, in numbers: its rule runs in recorded operations, which are forgotten. last: the
 * last result that the sweep meets. */
static bool forgotten_numbers(cot__sweep *s, cot__rule *r, uint32_t last) {
    cot_tape *t = s->t;
    cot_mark  m = cot__mark(t);
    cot__scope scope = cot__scope_open(t, 0);
    size_t     room = room_for_gradients(s, r);
    t->cache.aside += room;
    if (last > r->node) run_with_all(s, r, last);
    else if (r->g = cot__slot_var(s, r->node), t->status == COT_OK) run_rule(r);
    cot__scope_close(t, &scope);
    cot__rewind(t, m);
    take_back(s, room);
    return t->status == COT_OK;
}

/* Is there an operand whose adjoint is asked for? Where there is none the rule is not run, so that
 * a value which it would read cannot make the sweep fail. */
static bool wants_any(const cot__rule *r) {
    const cot__sweep *s = r->driver;
    int               n = s->reach ? cot__nargs(cot__rule_node(r)) : 0, k = 0;
    while (k < n && !cot__rule_wants(r, k)) k++;
    return !s->reach || k < n;
}

static cot__rule rule_of(cot__sweep *s, uint32_t i) {
    return (cot__rule){.t            = s->t,
                       .node         = i,
                       .op           = cot__op_of(s->t->nodes[i].op),
                       .driver       = s,
                       .give         = s->recording ? give_recorded : give_numbers,
                       .give_slice   = s->recording ? give_slice_recorded : give_slice_numbers,
                       .give_scatter = s->recording ? give_scatter_recorded : give_scatter_numbers};
}

COLD bool cot__rule_past(const cot__rule *r, int k, int op, cot__rule *under) {
    cot_tape        *t = r->t;
    uint32_t         x = cot__rule_arg(r, k);
    const cot__node *n = &t->nodes[x];
    if (n->op != op || x + 1 != r->node || (r->give != give_numbers && r->give != give_recorded)) return false;
    if ((n->flags & (COT__WANTED | COT__RETAIN)) || *cot__slot(t, x)) return false;
    /* what a limit or 16 bits keep of values is what `saves` of their records asks for */
    if (t->memory.on || cot__packs(t)) return false;
    *under = *r;
    under->node = x, under->op = cot__op_of(op);
    /* room for the gradient of a leaf is set aside by its own rule */
    return n->a != COT__NONE && t->nodes[n->a].op != OP_leaf && cot__rule_wants(under, 0) &&
           !cot__overwritten(t, n->a, x) && !cot__overwritten(t, r->node, r->node);
}

/* The adjoint of node i has been added up: somebody may have asked for it. */
static bool arrives(cot__sweep *s, uint32_t i) {
    const cot__node *n = &s->t->nodes[i];
    bool asked = (n->flags & COT__WANTED) || (!s->wanted_only && ((n->flags & COT__RETAIN) || n->op == OP_leaf));
    return !asked || s->recording || cot__arrive(s, i);
}

/* The adjoint of node i has been handed on. */
static void leave(cot__sweep *s, uint32_t i) {
    const cot__node *n = &s->t->nodes[i];
    if (s->recording && (n->flags & COT__WANTED)) return; /* it is read at the end */
    if (!s->recording && cot__is_tensor(n)) cot__acc_drop(s, i);
    else *cot__slot(s->t, i) = 0;
}

/* The sweep goes on to node i: what lies above it will not be read by this sweep any more. */
static void pass_to(cot__sweep *s, uint32_t i) {
    if (LIKELY(!s->t->memory.on)) return;
    if (!s->recording) s->t->memory.passed_from = i + 1;
    cot__memory_tick(s->t);
    if (s->t->memory.store) cot__memory_ahead(s->t, i);
}

/* An operation with several results, nodes i … last or more: its rule runs once, if any of them has
 * an adjoint. */
static bool visit_several(cot__sweep *s, uint32_t i, uint32_t last) {
    cot_tape *t = s->t;
    bool      any = false, ok = true;
    pass_to(s, last);
    for (uint32_t k = last + 1; k-- > i && ok;) /* adjoints arrive from the top down */
        if (*cot__slot(t, k)) any = true, ok = arrives(s, k);
    if (!any) return true;
    if (i < s->lo) s->lo = i;
    cot__rule r = rule_of(s, i);
    if (ok && (t->nodes[i].flags & COT__ACTIVE) && wants_any(&r)) {
        if (!s->recording) ok = forgotten_numbers(s, &r, last);
        else run_with_all(s, &r, last), ok = t->status == COT_OK;
    }
    for (uint32_t k = i; k <= last; k++)
        if (*cot__slot(t, k)) leave(s, k);
    return ok;
}

static bool visit(cot__sweep *s, uint32_t i) {
    cot_tape  *t = s->t;
    pass_to(s, i);
    cot__node *n = &t->nodes[i];
    cot__rule  r = rule_of(s, i);
    bool       ok = arrives(s, i);
    if (ok && (n->flags & COT__ACTIVE) && r.op->kind != KIND_SOURCE && wants_any(&r)) {
        if (s->recording) {
            r.g = slot_held(t, i);
            run_rule(&r);
            ok = t->status == COT_OK;
        } else if (n->op < OP_structural && cot__in_one_pass(cot__dtype_at(n)))
            ok = elementwise_numbers(s, i, &r); /* scalars have gone through the runs */
        else
            ok = forgotten_numbers(s, &r, i);
    }
    leave(s, i);
    return ok;
}

/* A run stopped at this scalar elementwise node, because it is wanted or retained: its adjoint
 * arrives, then the run goes on with it. */
static bool scalar_stop(cot__sweep *s, cot__windows *w, int64_t *i, const cot__scalar_runs *runs) {
    cot__node *n = &s->t->nodes[*i];
    uint8_t    stop = n->flags & (COT__WANTED | COT__RETAIN);
    if (*cot__slot(s->t, (uint32_t)*i) == 0) {
        --*i;
        return true;
    }
    if (((stop & COT__WANTED) || !s->wanted_only) && !cot__arrive(s, (uint32_t)*i)) return false;
    n->flags &= (uint8_t)~stop;
    *i = cot__windows_down(w, n->kind == COT_F64 ? runs->reverse_f64 : runs->reverse_f32, *i, &s->lo);
    n->flags |= stop;
    return true;
}

/* Scalar leaves, often many in a row, are only listed; their adjoints stay in the slots until the
 * sweep has succeeded. */
static bool scalar_leaves(cot__sweep *s, const cot__windows *w, int64_t *at) {
    cot_tape *t = s->t;
    int64_t   i = *at, end = w->floor > (int64_t)s->lo ? w->floor : (int64_t)s->lo;
    for (; i >= end; i--) {
        const cot__node *n = &t->nodes[i];
        if (n->op != OP_leaf || cot__is_tensor(n) || (n->flags & COT__WANTED)) break;
        if (*cot__slot(t, (uint32_t)i) == 0) continue;
        if (s->wanted_only || !(n->flags & COT__ACTIVE)) {
            *cot__slot(t, (uint32_t)i) = 0;
            continue;
        }
        if (UNLIKELY(t->sweep.arrived_count == t->sweep.arrived_capacity)) {
            void *list = t->sweep.arrived;
            if (!cot__list_grow(t, &list, &t->sweep.arrived_capacity, t->sweep.arrived_count,
                                sizeof *t->sweep.arrived, "backward"))
                return false;
            t->sweep.arrived = list;
        }
        t->sweep.arrived[t->sweep.arrived_count++] = (uint32_t)i;
    }
    *at = i;
    return true;
}

static bool walk(cot__sweep *s) {
    cot_tape        *t = s->t;
    const cot__scalar_runs *runs = cot__scalar_runs_for(1);
    int64_t          i = s->top;
    cot__windows     w = cot__windows_open(t, i);
    while (i >= (int64_t)s->lo) {
        cot__windows_at(&w, i);
        cot__node *n = &t->nodes[i];
        if (!s->recording && cot__in_run(n)) {
            if (n->flags & (COT__WANTED | COT__RETAIN)) {
                if (!scalar_stop(s, &w, &i, runs)) return false;
            } else
                i = cot__windows_down(&w, n->kind == COT_F64 ? runs->reverse_f64 : runs->reverse_f32, i, &s->lo);
            continue;
        }
        if (!s->recording && n->op == OP_leaf && !cot__is_tensor(n) && !(n->flags & COT__WANTED)) {
            if (!scalar_leaves(s, &w, &i)) return false;
            continue;
        }
        if (UNLIKELY(n->op == OP_pick)) {
            uint32_t of = n->a;
            if (!visit_several(s, of, (uint32_t)i)) return false;
            i = (int64_t)of - 1;
            continue;
        }
        if (*cot__slot(t, (uint32_t)i) != 0 && !visit(s, (uint32_t)i)) return false;
        i--;
    }
    return true;
}

bool cot__reverse(cot__sweep *s) {
    cot_precision before = cot__precision_pause(s->t);
    /* of a sweep around this one */
    uint32_t from = s->t->memory.passed_from, to = s->t->memory.passed_to;
    s->t->memory.passed_from = s->t->memory.passed_to = s->top + 1;
    cot__pending_open(s->t);
    bool ok = walk(s);
    /* accumulators are read as they lie; recorded values through cot__look */
    if (!s->recording && !s->read_later) cot__pending_finish(s->t);
    cot__pending_close(s->t);
    s->t->precision = before;
    s->t->memory.passed_from = from;
    s->t->memory.passed_to = to;
    return ok;
}
