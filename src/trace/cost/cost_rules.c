/* cost_rules.c: counts the operations of rules. An elementwise rule is counted as it is written.
 * Any other rule runs once, on ones, and the operations it records are counted. */
#include "trace/cost/cost_rules.h"

#include "diff/engine/sweep.h"
#include "ops/structural.h"
#include "trace/cost/cost.h"

static bool wanted(const cot__cost_sweep *s, uint32_t node, int k) {
    uint32_t a = cot__arg(&s->t->nodes[node], k);
    return a != COT__NONE && s->matters[a];
}

/* Counts one more contribution of `size` elements to the adjoint of node `to`. The first one is
 * only kept. */
static void arrive(cot__cost_sweep *s, uint32_t to, double size) {
    if (s->arrived[to]) s->operations += size;
    s->arrived[to] = 1;
}

/* ---- elementwise ----------------------------------------------------------------------------- */

static void elementwise_backward(cot__cost_sweep *s, uint32_t node) {
    const cot__elementwise_info *e = &cot__elementwise_table[s->t->nodes[node].op];
    double                       size = (double)cot__size_at(s->t, node);
    for (int k = 0; k < e->arity; k++) {
        if (!e->partial[k] || !wanted(s, node, k)) continue;
        s->operations += size * (double)cot__cost_of_tree(e->partial[k]);
        arrive(s, cot__arg(&s->t->nodes[node], k), size);
    }
}

static void elementwise_forward(cot__cost_sweep *s, uint32_t node) {
    const cot__elementwise_info *e = &cot__elementwise_table[s->t->nodes[node].op];
    double                       size = (double)cot__size_at(s->t, node);
    int                          terms = 0;
    for (int k = 0; k < e->arity; k++)
        if (e->partial[k] && wanted(s, node, k))
            s->operations += size * (double)(cot__cost_of_tree(e->partial[k]) + (terms++ > 0));
}

/* ---- structural ------------------------------------------------------------------------------ */

/* The driver as a rule sees it: the sweep comes first. */
typedef struct counter { cot__sweep sweep; cot__cost_sweep *cost; } counter;

static double given(cot_var v) { return cot__is_number(v) || !cot_is_valid(v) ? 1 : (double)cot_size(v); }

static void give(cot__rule *r, int k, cot_var v) {
    cot__cost_sweep *s = ((counter *)r->driver)->cost;
    if (cot__rule_wants(r, k) && wanted(s, r->node, k)) arrive(s, cot__rule_arg(r, k), given(v));
}

static void give_slice(cot__rule *r, int k, cot_var v, const int64_t slice[4]) { (void)slice, give(r, k, v); }

static void give_scatter(cot__rule *r, int k, cot_var v, cot_var index, int axis, bool along) {
    cot__cost_sweep *s = ((counter *)r->driver)->cost;
    (void)index, (void)axis, (void)along;
    if (!cot__rule_wants(r, k) || !wanted(s, r->node, k)) return;
    /* positions may be equal, so every element is added */
    s->operations += given(v);
    s->arrived[cot__rule_arg(r, k)] = 1;
}

static void count_recorded(cot__cost_sweep *s, uint32_t from) {
    for (uint32_t i = from; i < s->t->count; i++) {
        int64_t operations, bytes;
        cot__cost_of_node(s->t, i, &operations, &bytes);
        s->operations += (double)operations;
    }
}

static cot_var ones_like(cot_tape *t, uint32_t i) {
    return cot_ones(t, cot__dtype_at(&t->nodes[i]), cot__shape_at(t, i));
}

/* Adjoints for results 1, 2, … of a node; NULL after a failure. */
static cot_var *further_ones(cot_tape *t, uint32_t node, int results) {
    cot_var *gs = cot__arena(t, (size_t)results * sizeof *gs, "cost");
    for (int k = 1; gs && k < results; k++) {
        uint32_t z = node + (uint32_t)k;
        gs[k - 1] = cot__dtype_is_float(cot__dtype_at(&t->nodes[z])) ? ones_like(t, z) : INVALID(t);
    }
    return gs;
}

/* Does a rule of its own cost something? That of a pick is its operation's. */
static bool has_rule(const cot__op *op) { return op->kind != KIND_SOURCE && op->kind != KIND_PICK; }

bool cot__cost_backward(cot__cost_sweep *s, uint32_t node) {
    cot_tape      *t = s->t;
    const cot__op *op = cot__op_of(t->nodes[node].op);
    if (!has_rule(op)) return true;
    if (t->nodes[node].op < OP_structural) {
        elementwise_backward(s, node);
        return true;
    }
    int       results = cot__results_at(t, node);
    counter   c = {.sweep = {.t = t}, .cost = s};
    cot__rule r    = {.t            = t,
                      .node         = node,
                      .op           = op,
                      .driver       = &c,
                      .give         = give,
                      .give_slice   = give_slice,
                      .give_scatter = give_scatter};
    cot_mark  m = cot__mark(t);
    uint32_t  from = t->count;
    cot__scope scope = cot__scope_open(t, 0);
    r.g = ones_like(t, node);
    if (results > 1) r.gs = further_ones(t, node, results);
    if (t->status == COT_OK) cot__run_vjp(&r);
    cot__scope_close(t, &scope);
    count_recorded(s, from);
    cot__rewind(t, m);
    return t->status == COT_OK;
}

/* The tangent of a linear operation is the operation on the tangents. A product runs once for each
 * factor that moves. Any other operation runs its rule. */
static bool structural_forward(cot__cost_sweep *s, uint32_t node, const cot__op *op, cot_var *tangents) {
    cot_tape *t = s->t;
    int64_t   own, bytes;
    int       n = cot__nargs(&t->nodes[node]), moving = 0;
    for (int k = 0; k < n; k++) moving += wanted(s, node, k);
    cot__cost_of_node(t, node, &own, &bytes);
    if (op->kind == KIND_LINEAR) {
        s->operations += (double)own;
        return true;
    }
    if (op->kind == KIND_BILINEAR) {
        s->operations += (double)(moving * own + (moving - 1) * cot__size_at(t, node));
        return true;
    }
    counter   c = {.sweep = {.t = t}, .cost = s};
    cot__rule r = {.t = t, .node = node, .op = op, .driver = &c, .tangents = tangents, .tangent = INVALID(t)};
    for (int k = 0; k < n && t->status == COT_OK; k++) {
        bool moves = wanted(s, node, k) && !(k < 32 && op->inactive >> k & 1);
        tangents[k] = moves ? ones_like(t, cot__arg(&t->nodes[node], k)) : INVALID(t);
    }
    uint32_t from = t->count;
    if (cot__size_at(t, node) == 0 && cot__results_at(t, node) == 1) return t->status == COT_OK;
    if (t->status == COT_OK && op->jvp)
        op->jvp(&r);
    else if (t->status == COT_OK && op->vjp)
        cot__transpose_vjp(&r, op->vjp);
    count_recorded(s, from);
    return t->status == COT_OK;
}

bool cot__cost_forward(cot__cost_sweep *s, uint32_t node) {
    cot_tape      *t = s->t;
    const cot__op *op = cot__op_of(t->nodes[node].op);
    if (!has_rule(op)) return true;
    if (t->nodes[node].op < OP_structural) {
        elementwise_forward(s, node);
        return true;
    }
    size_t   bytes = ((size_t)cot__nargs(&t->nodes[node]) + 1) * sizeof(cot_var);
    cot_var *tangents = cot__alloc(&t->al, bytes);
    if (!tangents) {
        cot__fail(t, COT_MEMORY, "[cost] out of memory: the tangents of %d operands", cot__nargs(&t->nodes[node]));
        return false;
    }
    cot_mark m = cot__mark(t);
    cot__scope scope = cot__scope_open(t, 0);
    bool ok = structural_forward(s, node, op, tangents);
    cot__scope_close(t, &scope);
    cot__rewind(t, m);
    cot__free(&t->al, tangents, bytes);
    return ok;
}
