/* give.c: the amounts that one node adds to the adjoints of its operands, one addition at a time.
 *
 * The partials of an elementwise node run in the block kernels. Any other node runs its own rule,
 * which gives its contributions to this file instead of to the driver. Sums are computed as in the
 * driver (diff/engine/reverse.c), so they have the same bits. */
#include "rules/elementwise_ids.h"
#include "trace/build.h"

#include "ops/array/array.h"
#include "ops/structural.h"
#include "tape/scope.h"

#include <string.h>

static cot__trace_add *room(cot__trace_giver *w) {
    if (w->count == w->capacity) {
        /* The rule gives more than once to an operand. The old list stays in the trace's memory. */
        int             capacity = 2 * w->capacity;
        if (capacity == 0) capacity = cot__nargs(&w->build->trace.t->nodes[w->id]);
        cot__trace_add *list = cot__trace_memory(w->build, (size_t)capacity * sizeof *list);
        if (!list) return NULL;
        if (w->count) memcpy(list, w->adds, (size_t)w->count * sizeof *list);
        w->adds = list;
        w->capacity = capacity;
    }
    return &w->adds[w->count++];
}

static bool put(cot__trace_giver *w, int k, uint32_t to, cot__view amount, cot__view sum) {
    cot__trace_add *add = amount.data && sum.data ? room(w) : NULL;
    if (!add) return false;
    *add = (cot__trace_add){to, k, cot__trace_shown(w->build, &amount), cot__trace_shown(w->build, &sum)};
    if (!add->amount.data || !add->sum.data) return false;
    w->sums[cot__trace_find(&w->build->trace, to)] = sum;
    return true;
}

static cot__view *sum_of(cot__trace_giver *w, uint32_t to) { return &w->sums[cot__trace_find(&w->build->trace, to)]; }

/* The sum that has arrived at `to` so far, in memory of its own, to which more can be added. */
static cot__view sum_so_far(cot__trace_giver *w, uint32_t to) {
    cot_tape *t = w->build->trace.t;
    cot__view shape = cot__look(t, to), before = *sum_of(w, to);
    cot__view sum = cot__trace_array(w->build, &shape, shape.dtype, !before.data);
    if (sum.data && before.data) t->backend->copy(&sum, &before);
    return sum;
}

/* Scalars in nodes are summed beginning with zero, as in slots. */
static bool put_scalar(cot__trace_giver *w, int k, uint32_t to, double v) {
    cot_tape *t = w->build->trace.t;
    cot__view shape = cot__look(t, to), amount = cot__trace_array(w->build, &shape, shape.dtype, false);
    cot__view sum = sum_so_far(w, to);
    if (!amount.data || !sum.data) return false;
    cot__store_f64(amount.data, amount.dtype, v);
    double before = cot__load_f64(sum.data, sum.dtype);
    cot__store_f64(sum.data, sum.dtype, sum.dtype == COT_F64 ? before + v : (double)((float)before + (float)v));
    return put(w, k, to, amount, sum);
}

/* ---- elementwise ----------------------------------------------------------------------------- */

static bool elementwise(cot__trace_giver *w) {
    cot_tape                    *t = w->build->trace.t;
    const cot__node             *n = &t->nodes[w->id];
    const cot__elementwise_info *e = &cot__elementwise_table[n->op];
    cot_dtype                    compute = cot__dtype_compute(cot__dtype_at(n));
    cot__view                    xs[3], z = cot__look(t, w->id);
    cot__value                   number;
    cot__operand_views(t, n, compute, xs, &number);
    for (int k = 0; k < e->arity; k++) {
        uint32_t to = cot__arg(n, k);
        if (to == COT__NONE || !e->partial[k] || !(t->nodes[to].flags & COT__ACTIVE)) continue;
        if (!cot__is_tensor(n)) {
            cot__value scalar = {0};
            cot__term  term = {k, false, w->g, {&scalar, compute, 0, z.shape, z.stride}};
            cot__run_partials(t->backend, n->op, compute, e->arity, xs, &z, 1, &term);
            if (!put_scalar(w, k, to, cot__load_f64(&scalar, compute))) return false;
            continue;
        }
        bool      first = !sum_of(w, to)->data;
        cot__view amount = w->g;
        if (e->partial[k]->what != TREE_G) {
            amount = cot__trace_array(w->build, &z, z.dtype, false);
            if (!amount.data) return false;
            cot__run_partials(t->backend, n->op, compute, e->arity, xs, &z, 1, &(cot__term){k, false, w->g, amount});
        }
        cot__view sum = first ? amount : sum_so_far(w, to);
        if (!sum.data) return false;
        if (!first)
            cot__run_partials(t->backend, n->op, compute, e->arity, xs, &z, 1, &(cot__term){k, true, w->g, sum});
        if (!put(w, k, to, amount, sum)) return false;
    }
    return true;
}

/* ---- rules in recorded operations ------------------------------------------------------------ */

/* The contribution as a node in the operand's dtype, or NONE. Rules may give plain numbers and
 * other dtypes. */
static bool fitted(cot__rule *r, int k, cot_var v, uint32_t *to, uint32_t *from) {
    if (r->t->status != COT_OK || !cot__rule_wants(r, k)) return false;
    *to = cot__rule_arg(r, k);
    if (cot__is_number(v)) v = cot_constant(r->t, cot__number_value(v));
    if (!cot__operand(r->t, v, r->op->name, "contributed", from)) return false;
    cot_dtype want = cot__dtype_at(&r->t->nodes[*to]);
    if (cot__dtype_at(&r->t->nodes[*from]) != want) v = cot_cast(v, want);
    *from = cot__index(v);
    return v.id != UINT64_MAX;
}

static void failed(cot__trace_giver *w) { w->build->failed = true; }

static void give_all(cot__rule *r, int k, cot_var v) {
    cot__trace_giver *w = r->driver;
    uint32_t          to, from;
    if (!fitted(r, k, v, &to, &from) || !cot__adjoint_fits(r, cot__shape_at(r->t, to), cot__shape_at(r->t, from)))
        return;
    cot__view given = cot__look(r->t, from);
    if (!cot__is_tensor(&r->t->nodes[from])) {
        if (!put_scalar(w, k, to, cot__load_f64(given.data, given.dtype))) failed(w);
        return;
    }
    cot__view like = cot__look(r->t, to), amount = cot__trace_array(w->build, &like, given.dtype, false);
    bool      first = !sum_of(w, to)->data;
    cot__view sum = first ? amount : sum_so_far(w, to), pair[2] = {sum, amount};
    if (!amount.data || !sum.data) {
        failed(w);
        return;
    }
    r->t->backend->copy(&amount, &given);
    if (!first) cot__run_value(r->t->backend, OP_add, cot__dtype_compute(sum.dtype), 2, pair, &sum);
    if (!put(w, k, to, amount, sum)) failed(w);
}

/* Adds a contribution to a part of the operand. Added to zeros it is the amount, added to the
 * earlier sum it is the new sum. */
typedef void (*into)(cot__rule *r, const cot__view *all, uint32_t from, const void *where);

static void give_part(cot__rule *r, int k, cot_var v, into add, const void *where) {
    cot__trace_giver *w = r->driver;
    uint32_t          to, from;
    if (!fitted(r, k, v, &to, &from)) return;
    cot__view like = cot__look(r->t, to), amount = cot__trace_array(w->build, &like, like.dtype, true),
              sum = sum_so_far(w, to);
    if (!amount.data || !sum.data) {
        failed(w);
        return;
    }
    add(r, &amount, from, where);
    add(r, &sum, from, where);
    if (!put(w, k, to, amount, sum)) failed(w);
}

static void into_slice(cot__rule *r, const cot__view *all, uint32_t from, const void *slice) {
    int64_t   stride[COT_MAX_NDIM], shape[COT_MAX_NDIM];
    cot__view part = cot__slice_view(all, slice, shape, stride), pair[2] = {part, cot__look(r->t, from)};
    cot__run_value(r->t->backend, OP_add, cot__dtype_compute(part.dtype), 2, pair, &part);
}

static void give_slice(cot__rule *r, int k, cot_var v, const int64_t slice[4]) {
    give_part(r, k, v, into_slice, slice);
}

typedef struct positions { uint32_t index; int axis; bool along; } positions;

static void into_positions(cot__rule *r, const cot__view *all, uint32_t from, const void *where) {
    const positions *p = where;
    cot__view        given = cot__look(r->t, from), at = cot__look(r->t, p->index);
    cot__scatter(r->t, r->op->name, all, p->axis, &at, &given, p->along);
}

static void give_scatter(cot__rule *r, int k, cot_var v, cot_var index, int axis, bool along) {
    if (index.id != UINT64_MAX) give_part(r, k, v, into_positions, &(positions){cot__index(index), axis, along});
}

/* The adjoint as a var. The operations recorded for it are forgotten afterwards. */
static cot_var as_var(cot_tape *t, uint32_t id, const cot__view *g) {
    cot__result r;
    if (!cot__result_open(t, &r, "trace", cot__dtype_at(&t->nodes[id]), g->ndim, g->shape)) return INVALID(t);
    t->backend->copy(&r.view, g);
    return cot__result_push(t, &r, OP_constant, 0, NULL, NULL);
}

/* The adjoints of further results as the sweep had them; NULL after a failure. */
static cot_var *further_adjoints(cot__trace_giver *w, int m) {
    cot_tape *t = w->build->trace.t;
    cot_var  *gs = cot__arena(t, (size_t)m * sizeof *gs, "trace");
    for (uint32_t k = 1; gs && k < (uint32_t)m && t->status == COT_OK; k++) {
        cot__view g;
        bool      arrived = w->id + k <= w->build->top && cot__kept_adjoint(&w->build->watch, w->id + k, &g);
        gs[k - 1] = arrived ? as_var(t, w->id + k, &g) : INVALID(t);
    }
    return gs;
}

static bool recorded(cot__trace_giver *w) {
    cot_tape *t = w->build->trace.t;
    int       results = cot__results_at(t, w->id);
    cot__rule r = {.t = t, .node = w->id, .op = cot__op_of(t->nodes[w->id].op), .driver = w,
                   .give = give_all, .give_slice = give_slice, .give_scatter = give_scatter};
    cot_mark  m = cot__mark(t);
    cot__scope scope = cot__scope_open(t, 0);
    r.g = w->g.data ? as_var(t, w->id, &w->g) : INVALID(t);
    if (results > 1) r.gs = further_adjoints(w, results);
    if (t->status == COT_OK) cot__run_vjp(&r);
    cot__scope_close(t, &scope);
    cot__rewind(t, m);
    return t->status == COT_OK && !w->build->failed;
}

bool cot__trace_give(cot__trace_giver *w) {
    const cot__node *n = &w->build->trace.t->nodes[w->id];
    return n->op < OP_structural && cot__in_one_pass(cot__dtype_at(n)) ? elementwise(w) : recorded(w);
}
