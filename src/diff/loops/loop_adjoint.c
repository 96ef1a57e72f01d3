/* loop_adjoint.c: the way back through a loop as one operation: x̄ = Jᵀ z̄, where z = loop(x) and J
 * is its derivative.
 *
 * While a body is recorded, the length of a cot_while inside it is not known, so the way back
 * cannot be recorded as a loop over states. If the user has bounded the states, a loop over all of
 * them is not allowed either. This operation finds the length when it is played: it runs the loop,
 * keeps states under the bound, goes back in numbers, and forgets the run and the way. Its own
 * derivatives need no way back through a way back. They follow from the tangent of the loop, ż =
 * J(x) ẋ, which is a loop again:
 *
 *     reverse, of <u, Jᵀ z̄> = <J u, z̄>      the adjoint of z̄ is J u; that of x is the way back of z̄
 *                                             through x -> J(x) u
 *     forward                               Jᵀ dz̄ + the way back of z̄ through x -> J(x) dx
 *
 * Both are recorded, and the way back through a tangent is this operation again. So there are
 * derivatives of every order, all under the bound. */
#include "rules/structural_ids.h"
#include "diff/loops/loop_job.h"
#include "ops/structural.h"

#include <string.h>

/* Operands of a node: those of the loop, then the adjoints of those of its results that have one.
 * Results: the adjoints of those of the loop's operands that are asked for. */
typedef struct adjoint {
    const char *name;     /* of the loop, for messages */
    cot__loop   loop;
    int         operands; /* of the loop */
    int         seeds;    /* how many results of the loop have an adjoint */
    int         count;    /* how many operands get one */
    bool       *has;      /* by result of the loop */
    bool       *of;       /* by operand */
} adjoint;

static int args_of(const adjoint *a) { return a->operands + a->seeds; }

static const char OP[] = "loop_adjoint";

/* ---- the value ------------------------------------------------------------------------------- */

/* A source with the value of node x. An active source can be reached by a sweep. */
static uint32_t source_of(cot_tape *t, uint32_t x, bool active) {
    t->active_mask = active ? COT__ACTIVE : 0;
    return cot__index(cot__parameter(t, x));
}

/* What stands for a driver: the way back hands adjoints to it, which are kept as they are. In slots
 * of a sweep a scalar would be added to 0, and -0 would be 0, which it is not in a program. */
typedef struct taking {
    cot__rule      rule; /* first: it is handed on by a pointer to this */
    const adjoint *a;
    cot__result   *r;
} taking;

static void take(cot__rule *rule, int k, cot_var v) {
    const taking *to = (const taking *)(void *)rule;
    int           result = 0;
    for (int i = 0; i < k; i++) result += to->a->of[i];
    cot__view from = cot__look(rule->t, cot__index(v));
    rule->t->backend->copy(&to->r[result].view, &from);
}

/* The results of the loop that have an adjoint are floats, so they are results 0, 1, … of its node,
 * but for those floats that have none. */
static void seed_results(taking *to, cot_var *gs, const uint32_t *args) {
    const cot__loop *l = &to->a->loop;
    cot_tape        *t = to->rule.t;
    for (int j = 0, f = 0; j < cot__loop_results(l); j++) {
        cot_var g = to->a->has[j] ? VAR(t, *args) : INVALID(t);
        args += to->a->has[j];
        if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[l->body[0]->out[j]]))) continue;
        if (f == 0) to->rule.g = g;
        else gs[f - 1] = g;
        f++;
    }
    to->rule.gs = gs;
}

/* Runs the loop on sources of its own, and the way back. Another sweep may be under way, and it
 * must not see the nodes that this run leaves. */
static bool run(cot_tape *t, const adjoint *a, const uint32_t *args, cot__result *r) {
    cot_mark   m = cot__mark(t);
    size_t     n = (size_t)a->operands + 1, results = (size_t)cot__loop_results(&a->loop) + 1;
    uint32_t  *x = cot__arena(t, n * sizeof *x, a->name);
    cot_var   *gs = x ? cot__arena(t, results * sizeof *gs, a->name) : NULL;
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    for (int k = 0; gs && k < a->operands && t->status == COT_OK; k++) x[k] = source_of(t, args[k], a->of[k]);
    t->active_mask = COT__ACTIVE;
    cot_var z = t->status == COT_OK ? cot__loop_node(t, &a->loop, x) : INVALID(t);
    if (!cot__failed(z)) {
        taking to = {{.t = t, .node = cot__index(z), .op = cot__op_of(OP_loop), .give = take}, a, r};
        seed_results(&to, gs, args + a->operands);
        cot__loop_reverse_numbers(&to.rule);
    }
    cot__scope_close(t, &scope);
    cot__rewind(t, m);
    return t->status == COT_OK;
}

/* Room for each adjoint that is asked for. */
static bool open_results(cot_tape *t, const adjoint *a, const uint32_t *args, cot__result *r) {
    for (int k = 0; k < a->operands; k++) {
        if (!a->of[k]) continue;
        cot_shape s = cot__shape_at(t, args[k]);
        if (!cot__result_open(t, r, OP, cot__dtype_at(&t->nodes[args[k]]), s.ndim, s.dim)) return false;
        /* while a body is recorded the value is only an example; the loop might not even end */
        if (t->mode.body) t->backend->fill(&r->view, 0);
        r++;
    }
    return true;
}

static cot_var record_node(cot_tape *t, const adjoint *a, const uint32_t *args) {
    cot__attr   *attr = cot__attr_make(t, OP, 0, NULL, args_of(a), args);
    cot__result *r = attr ? cot__arena(t, ((size_t)a->count + 1) * sizeof *r, OP) : NULL;
    if (!r || !open_results(t, a, attr->args, r)) return INVALID(t);
    if (!t->mode.body && !run(t, a, attr->args, r)) return INVALID(t);
    attr->pointer = a;
    return cot__results_push(t, a->count, r, OP_loop_adjoint, (int)attr->nargs, attr->args, attr);
}

/* ---- recording it ---------------------------------------------------------------------------- */

/* An operation for this loop; nothing is asked for yet. NULL after setting the error. */
static adjoint *make_adjoint(cot_tape *t, const char *name, const cot__loop *l) {
    int      n = cot__loop_operands(l), m = cot__loop_results(l);
    adjoint *a = cot__arena(t, sizeof *a + (size_t)n + (size_t)m + 1, OP);
    if (!a) return NULL;
    *a = (adjoint){.name = name, .loop = *l, .operands = n, .has = (bool *)(a + 1)};
    a->of = a->has + m;
    memset(a->has, 0, (size_t)n + (size_t)m);
    return a;
}

void cot__loop_reverse_as_operation(cot__rule *r) {
    cot_tape        *t = r->t;
    const cot__loop *l = cot__rule_attr(r)->pointer;
    int              n = cot__loop_operands(l), m = cot__loop_results(l);
    adjoint         *a = make_adjoint(t, l->name, l);
    cot_var         *gs = a ? cot__arena(t, ((size_t)m + 1) * sizeof *gs, OP) : NULL;
    uint32_t        *args = gs ? cot__arena(t, ((size_t)n + (size_t)m + 1) * sizeof *args, OP) : NULL;
    if (!args) return;
    a->loop.bounded = true;
    cot__loop_adjoints(r, l, gs);
    const bool *reached = cot__loop_reached(t, l, gs);
    for (int k = 0; k < n; k++) {
        cot_var x = cot__rule_x(r, k);
        if (cot__failed(x) || !reached) return;
        args[k] = cot__index(x);
        a->of[k] = reached[k] && cot__loop_has_adjoint(l, k) && cot__rule_wants(r, k);
        a->count += a->of[k];
    }
    for (int j = 0; j < m; j++) {
        a->has[j] = !cot__failed(gs[j]);
        if (a->has[j]) args[n + a->seeds++] = cot__index(gs[j]);
    }
    cot_var z = a->count ? record_node(t, a, args) : INVALID(t);
    for (int k = 0, f = 0; k < n && a->count && t->status == COT_OK; k++)
        if (a->of[k]) cot__give(r, k, cot__result_of(z, f++));
}

/* The adjoints of the loop's results among the operands of a node, invalid where there is none. */
static void seeds_of(const adjoint *a, const cot_var *x, cot_var *gs) {
    for (int j = 0, f = 0; j < cot__loop_results(&a->loop); j++)
        gs[j] = a->has[j] ? x[a->operands + f++] : INVALID(x[0].tape);
}

cot_var *cot__loop_adjoint_as_loops(cot_tape *t, uint32_t node) {
    const cot__attr *attr = t->nodes[node].extra.attr;
    const adjoint   *a = attr->pointer;
    int              n = 0, args = args_of(a), results = cot__loop_results(&a->loop);
    cot_var *x = cot__arena(t, (2 * (size_t)args + (size_t)results + 1) * sizeof *x, OP), *bars = cot__behind(x, args),
            *gs = cot__behind(bars, args);
    if (!x) return NULL;
    for (int k = 0; k < args; k++) x[k] = VAR(t, attr->args[k]);
    seeds_of(a, x, gs);
    if (!cot__loop_back(t, &a->loop, a->loop.test ? 1 : a->loop.length, x, a->of, gs, bars)) return NULL;
    for (int k = 0; k < a->operands; k++)
        if (a->of[k]) bars[n++] = bars[k];
    return bars;
}

/* ---- derivatives ----------------------------------------------------------------------------- */

/* The loop with its tangents, on fresh inputs that have the values of its operands. */
typedef struct moving {
    cot_tape      *t;
    const adjoint *a;
    /* fresh inputs for float operands, the other operands themselves, then adjoints of results */
    cot_var       *x;
    /* the carried values of the loop, then the tangents of its float results */
    cot_var       *results;
    uint32_t      *y;       /* nodes of these tangents, and */
    cot_var       *seeds;   /* the seed of each */
    int            seeded;
    uint32_t      *to;      /* nodes whose adjoints are wanted, and */
    cot_var       *grads;   /* the adjoint of each */
    int            wanted;
} moving;

static bool open_moving(moving *g, cot__rule *r) {
    cot_tape *t = r->t;
    *g = (moving){.t = t, .a = cot__rule_attr(r)->pointer};
    size_t n = (size_t)args_of(g->a) + 1, values = (size_t)cot__loop_results(&g->a->loop) + 1;
    g->x = cot__arena(t, (2 * n + 3 * values) * sizeof *g->x, OP);
    g->to = g->x ? cot__arena(t, (n + values) * sizeof *g->to, OP) : NULL;
    if (!g->to) return false;
    g->grads = g->x + n, g->results = g->grads + n, g->seeds = g->results + 2 * values;
    g->y = g->to + n;
    for (int k = 0; k < args_of(g->a); k++) {
        g->x[k] = cot__rule_x(r, k);
        if (!cot__failed(g->x[k]) && k < g->a->operands && cot__dtype_is_float(cot_dtype_of(g->x[k])))
            g->x[k] = cot__fresh_input(g->x[k]);
        if (cot__failed(g->x[k])) return false;
    }
    return true;
}

/* The length of the loop where it is known. For a cot_while no shape depends on the length. */
static int64_t length_of(const adjoint *a) { return a->loop.test ? 0 : a->loop.length; }

static bool run_moving(moving *g, const cot_var *dx) {
    return cot__loop_with_tangents(g->t, &g->a->loop, length_of(g->a), g->x, dx, g->results) == COT_OK;
}

/* Seeds the tangents of results with their adjoints. */
static void seed(moving *g) {
    const cot__loop *l = &g->a->loop;
    for (int j = 0, f = 0; j < cot__loop_results(l); j++) {
        bool is_float = cot__dtype_is_float(cot__dtype_at(&g->t->nodes[l->body[0]->out[j]]));
        if (g->a->has[j]) {
            g->y[g->seeded] = cot__index(g->results[l->carry + f]);
            g->seeds[g->seeded] = g->x[g->a->operands + g->seeded];
            g->seeded++;
        }
        f += is_float;
    }
}

static bool sweep_recorded(moving *g) {
    return g->wanted == 0 ||
           cot__vjp_recorded(g->t, OP, g->seeded, g->y, g->seeds, g->wanted, g->to, g->grads) == COT_OK;
}

/* The adjoints of x̄ as tangents of the loop's operands; zeros where one has none. */
static cot_var *directions_of(cot__rule *r, const moving *g) {
    cot_var *u = cot__arena(g->t, ((size_t)g->a->operands + 1) * sizeof *u, OP);
    for (int k = 0, f = 0; u && k < g->a->operands; k++)
        u[k] = g->a->of[k] ? cot__rule_g(r, f++) : INVALID(g->t);
    return u;
}

/* The adjoint of the adjoint of each result is its tangent. */
static void give_tangents(cot__rule *r, const moving *g) {
    const adjoint *a = g->a;
    for (int j = 0, f = 0, k = a->operands; j < cot__loop_results(&a->loop); j++) {
        if (a->has[j]) {
            if (cot__rule_wants(r, k)) cot__give(r, k, g->results[a->loop.carry + f]);
            k++;
        }
        f += cot__dtype_is_float(cot__dtype_at(&g->t->nodes[a->loop.body[0]->out[j]]));
    }
}

static void loop_adjoint_vjp(cot__rule *r) {
    cot_tape *t = r->t;
    moving    g;
    int       n = 0;
    /* the nodes swept here must be active, also while the caller records without gradients */
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    cot_var *u = open_moving(&g, r) ? directions_of(r, &g) : NULL;
    bool ok = u && t->status == COT_OK && run_moving(&g, u);
    for (int k = 0; ok && k < g.a->operands; k++)
        if (cot__rule_wants(r, k)) g.to[g.wanted++] = cot__index(g.x[k]);
    if (ok) seed(&g), ok = sweep_recorded(&g);
    cot__scope_close(t, &scope);
    for (int k = 0; ok && k < g.a->operands; k++)
        if (cot__rule_wants(r, k)) cot__give(r, k, g.grads[n++]);
    if (ok) give_tangents(r, &g);
}

/* The operation is linear in the adjoints of results, so its tangent by them is the same operation
 * on their tangents. */
static cot_var of_other(cot__rule *r, const adjoint *a) {
    cot_tape *t = r->t;
    uint32_t *args = cot__arena(t, ((size_t)args_of(a) + 1) * sizeof *args, OP);
    for (int k = 0; args && k < args_of(a) && t->status == COT_OK; k++) {
        cot_dtype dtype = cot__dtype_at(&t->nodes[cot__rule_arg(r, k)]);
        cot_var   x = k < a->operands ? cot__rule_x(r, k) : r->tangents[k];
        if (k >= a->operands && cot__failed(x)) x = cot_zeros(t, dtype, cot__rule_shape(r, k));
        args[k] = cot__index(x);
    }
    return args && t->status == COT_OK ? record_node(t, a, args) : INVALID(t);
}

static bool any_moves(const cot__rule *r, int from, int to) {
    for (int k = from; k < to; k++)
        if (!cot__failed(r->tangents[k])) return true;
    return false;
}

static void loop_adjoint_jvp(cot__rule *r) {
    cot_tape      *t = r->t;
    const adjoint *a = cot__rule_attr(r)->pointer;
    cot_var        other = any_moves(r, a->operands, args_of(a)) ? of_other(r, a) : INVALID(t);
    moving         g;
    for (int f = 0; f < a->count; f++) cot__rule_tangent(r, f, cot__result_of(other, f));
    if (!any_moves(r, 0, a->operands) || t->status != COT_OK) return;
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    bool ok = open_moving(&g, r) && run_moving(&g, r->tangents);
    for (int k = 0; ok && k < a->operands; k++)
        if (a->of[k]) g.to[g.wanted++] = cot__index(g.x[k]);
    if (ok) seed(&g), ok = sweep_recorded(&g);
    cot__scope_close(t, &scope);
    for (int f = 0; ok && f < a->count; f++)
        cot__rule_tangent(r, f, cot__failed(other) ? g.grads[f] : cot_add(cot__result_of(other, f), g.grads[f]));
}

static cot_var loop_adjoint_apply(cot__rule *r, const cot_var *xs) {
    const adjoint *a = cot__rule_attr(r)->pointer;
    uint32_t      *args = cot__arena(r->t, ((size_t)args_of(a) + 1) * sizeof *args, OP);
    for (int k = 0; args && k < args_of(a); k++)
        if (!cot__enter(r->t, xs[k], OP, "replayed", &args[k])) return INVALID(r->t);
    return args ? record_node(r->t, a, args) : INVALID(r->t);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* The adjoint of result j of the wide loop, from one for each element, g. Invalid: none. A carried
 * value without a batch depends on no wanted operand, so its adjoint does not matter. */
static cot_var wide_adjoint(const cot__wide *w, int j, cot_var g) {
    const cot__loop *l = w->l;
    if (j >= l->carry) return l->once ? g : cot__moved_axis(g, 0, 1);
    return w->is[cot__loop_first_carry(l) + j] ? g : INVALID(w->t);
}

/* The operand of the new loop that takes the value of operand k of the old one. -1: operand k is a
 * capture that the new loop does not read. */
static int wide_operand(const cot__wide *w, int k) {
    int first = cot__loop_first_capture(w->loop);
    if (k < cot__loop_first_capture(w->l)) return k < cot__loop_first_xs(w->l) ? k : k + w->masked;
    for (int j = first; j < cot__loop_operands(w->loop); j++)
        if (w->args[j] == cot__index(w->x[k])) return j;
    return -1;
}

/* The adjoint of operand k for each element, from those that the wide loop gave (z). */
static cot_var of_element(const adjoint *all, const cot__wide *w, int k, cot_var z) {
    int at = wide_operand(w, k), f = 0;
    if (at < 0) return cot_zeros(w->t, cot_dtype_of(w->x[k]), cot_shape_of(w->x[k]));
    for (int j = 0; j < at; j++) f += all->of[j];
    cot_var bar = cot__result_of(z, f);
    bool    sliced = k >= cot__loop_first_xs(w->l) && k < cot__loop_first_capture(w->l);
    return sliced ? cot__moved_axis(bar, 1, 0) : bar;
}

/* The way back through the wide loop; xs are operands of the node with their batch. */
static cot_var record_wide(const adjoint *a, const cot__wide *w, const cot__batch *b, const cot_var *xs,
                           adjoint *all) {
    cot_tape *t = w->t;
    int       n = cot__loop_operands(w->loop), m = cot__loop_results(w->l), f = a->operands;
    uint32_t *args = cot__arena(t, ((size_t)n + (size_t)m + 1) * sizeof *args, OP);
    if (!args) return INVALID(t);
    for (int k = 0; k < a->operands; k++) {
        int at = a->of[k] ? wide_operand(w, k) : -1;
        if (at >= 0 && !all->of[at]) all->of[at] = true, all->count++;
    }
    memcpy(args, w->args, (size_t)n * sizeof *args);
    for (int j = 0; j < m && t->status == COT_OK; j++) {
        if (!a->has[j]) continue;
        /* a mask is carried behind the other carried values, and then nothing is given out */
        cot_var g = wide_adjoint(w, j, cot__batch_full(b, f, xs[f]));
        f++;
        all->has[j] = !cot__failed(g);
        if (all->has[j]) args[n + all->seeds++] = cot__index(g);
    }
    /* an operand that the wide loop does not read gets zeros */
    return t->status == COT_OK && all->count ? record_node(t, all, args) : INVALID(t);
}

/* The way back through the loop of all elements. Each element has its own adjoint, also for
 * operands that all elements share, so shared operands are repeated first. */
static cot_var loop_adjoint_batch(cot__rule *r, const cot__batch *b, cot_var *xs) {
    cot_tape        *t = r->t;
    const adjoint   *a = cot__rule_attr(r)->pointer;
    const cot__loop *l = &a->loop;
    if (cot__loop_goes_one_by_one(l, b->extent) || b->extent == 0 || (cot__loop_chosen(l) && b->is[0]))
        return cot__batch_loop(r, b, xs);
    bool *given = cot__arena(t, (size_t)a->operands + 1, OP);
    for (int k = 0; given && k < a->operands && t->status == COT_OK; k++) {
        given[k] = b->is[k] || a->of[k];
        if (given[k]) xs[k] = cot__batch_full(b, k, xs[k]);
        /* a node of its own, so that wide_operand finds exactly one operand */
        if (a->of[k]) xs[k] = cot__fresh_input(xs[k]);
    }
    cot__wide w = {.t = t, .l = l, .extent = b->extent, .x = xs, .given = given};
    if (!given || t->status != COT_OK || !cot__widen(&w)) return INVALID(t);
    adjoint *all = make_adjoint(t, a->name, w.loop);
    cot_var  z = all ? record_wide(a, &w, b, xs, all) : INVALID(t), first = INVALID(t);
    for (int k = 0, f = 0; k < a->operands && t->status == COT_OK; k++) {
        if (!a->of[k]) continue;
        cot_var bar = of_element(all, &w, k, z);
        if (f == 0) first = bar;
        else if (r->more) r->more[f - 1] = bar;
        f++;
    }
    return first;
}

/* ---- in programs ----------------------------------------------------------------------------- */

/* A program records the step back through each body when it is made, on examples; this is what is
 * known of them. */
typedef struct steps_back {
    const adjoint *a;
    cot_var       *x, *gs;
    int64_t       *ints; /* see loop_adjoint_job.c */
    int            count;
} steps_back;

static cot_var example_of(cot_tape *t, uint32_t node) {
    cot_dtype dtype = cot__dtype_at(&t->nodes[node]);
    return cot_full(t, dtype, cot__shape_at(t, node), cot__dtype_is_float(dtype));
}

static bool open_steps_back(cot_tape *t, steps_back *s, const cot__attr *attr) {
    const adjoint *a = s->a;
    int            results = cot__loop_results(&a->loop);
    s->x = cot__arena(t, ((size_t)a->operands + (size_t)results + 1) * sizeof *s->x, OP);
    if (!s->x) return false;
    s->gs = s->x + a->operands;
    for (int k = 0; k < a->operands; k++) s->x[k] = example_of(t, attr->args[k]);
    for (int j = 0, f = a->operands; j < results; j++)
        s->gs[j] = a->has[j] ? example_of(t, attr->args[f++]) : INVALID(t);
    return t->status == COT_OK;
}

/* What the captures of a step back are: operands, by number, or constants of the loop's body. */
static bool list_captures(cot_tape *t, steps_back *s, const cot__region *back, bool *constant) {
    for (int k = 0; k < back->captures; k++) {
        int operand = 0;
        while (operand < s->a->operands && cot__index(s->x[operand]) != back->captured[k]) operand++;
        constant[k] = operand == s->a->operands;
        if (!constant[k]) s->ints[s->count++] = operand;
        else if (!(t->nodes[back->captured[k]].flags & COT__FIXED)) return false;
    }
    return true;
}

/* The number of captures, then their numbers. */
static bool add_step_back(cot_tape *t, steps_back *s, int which, cot__plain *to) {
    const cot__region *back = cot__loop_back_step(t, &s->a->loop, which, s->x, s->a->of, s->gs);
    size_t             captures = back ? (size_t)back->captures + 1 : 0;
    int64_t           *ints = back ? cot__arena(t, ((size_t)s->count + captures) * sizeof *ints, OP) : NULL;
    bool              *constant = ints ? cot__arena(t, captures, OP) : NULL;
    if (!constant) return false;
    memcpy(ints, s->ints, (size_t)s->count * sizeof *ints);
    s->ints = ints;
    int at = s->count++;
    if (!list_captures(t, s, back, constant)) to->why = "its step back reads what is not its own";
    s->ints[at] = s->count - at - 1;
    to->constant[to->bodies] = constant;
    to->body[to->bodies++] = back;
    return true;
}

static bool make_plain(cot_tape *t, steps_back *s, const cot__attr *attr, cot__plain *to) {
    const cot__loop *l = &s->a->loop;
    int              m = cot__loop_results(l), n = s->a->operands;
    s->ints = cot__arena(t, ((size_t)COT__LOOP_INTS + (size_t)m + (size_t)n) * sizeof *s->ints, OP);
    if (!s->ints || !open_steps_back(t, s, attr)) return false;
    cot__loop_ints(l, s->ints);
    s->count = COT__LOOP_INTS;
    for (int j = 0; j < m; j++) s->ints[s->count++] = s->a->has[j];
    for (int k = 0; k < n; k++) s->ints[s->count++] = s->a->of[k];
    to->body[to->bodies++] = l->body[0];
    if (l->body[1]) to->body[to->bodies++] = l->body[1];
    if (l->test) to->body[to->bodies++] = l->test;
    if (!add_step_back(t, s, 0, to) || (l->body[1] && !add_step_back(t, s, 1, to))) return false;
    to->attr = cot__attr_make(t, OP, s->count, s->ints, 0, NULL);
    return to->attr;
}

static bool loop_adjoint_plain(cot__rule *r, cot__plain *to) {
    const cot__attr *attr = cot__rule_attr(r);
    steps_back       s = {.a = attr->pointer};
    to->name = s.a->name;
    if (!r->t->mode.compiling) to->why = "it plays a body and sweeps it back, on the tape of the body";
    return to->why || make_plain(r->t, &s, attr, to);
}

/* Operand k of the program's loop among those of the loop that was recorded again; -1: its bodies
 * do not read it. */
static int operand_again(const cot__loop *l, const uint32_t *args, const cot_var *xs, int k) {
    int first = cot__loop_first_capture(l), end = cot__loop_operands(l) - (l->test ? l->test->captures : 0);
    if (k < first || (k < end && args[k] == cot__index(xs[k]))) return k;
    for (int i = first; i < end; i++)
        if (args[i] == cot__index(xs[k])) return i;
    return -1;
}

static adjoint *adjoint_again(cot_tape *t, const cot__loop *l, const int64_t *has, const int64_t *of, int operands,
                              const cot_var *xs, uint32_t *args) {
    adjoint *a = make_adjoint(t, l->name, l);
    if (!a) return NULL;
    a->loop.bounded = true;
    for (int k = 0; k < operands; k++) {
        int at = of[k] ? operand_again(l, args, xs, k) : -1;
        if (at >= 0 && !a->of[at]) a->of[at] = true, a->count++;
    }
    for (int j = 0; j < cot__loop_results(l); j++) {
        a->has[j] = has[j];
        if (has[j]) args[a->operands + a->seeds] = cot__index(xs[operands + a->seeds]), a->seeds++;
    }
    return a;
}

bool cot__loop_adjoint_replay(cot_tape *t, const cot__program *p, uint32_t operation, const cot_var *given,
                              cot__replayer *replay, cot_var *out) {
    const cot__attr *attr = cot__operation_attr(p, operation);
    cot__form        f = cot__form_read(attr, p->body + p->operation[operation].body);
    int              operands = cot__form_operands(&f), n = cot__operation_operands(p, operation);
    const int64_t   *has = attr->ints + COT__LOOP_INTS, *of = has + cot__form_results(&f);
    cot_var         *xs = cot__arena(t, ((size_t)n + 1) * sizeof *xs, OP);
    /* a node of its own for each that gets an adjoint, so that it is found among the captures;
     * those of a tape's file are where they were, and the file has no such nodes */
    for (int k = 0; xs && k < n; k++)
        xs[k] = k < operands && of[k] && !cot__is_loading(t) ? cot__fresh_input(given[k]) : given[k];
    const cot__loop *l = xs && t->status == COT_OK ? cot__loop_record_again(t, p, operation, xs, replay) : NULL;
    uint32_t        *args = l ? cot__loop_list_operands(t, l, xs, n - operands) : NULL;
    adjoint         *a = args ? adjoint_again(t, l, has, of, operands, xs, args) : NULL;
    cot_var          z = a && a->count ? record_node(t, a, args) : INVALID(t);
    for (int k = 0; a && k < operands && t->status == COT_OK; k++) {
        int at = of[k] ? operand_again(l, args, xs, k) : -1, result = 0;
        for (int i = 0; i < at; i++) result += a->of[i];
        if (of[k]) *out++ = at >= 0 ? cot__result_of(z, result)
                                    : cot_zeros(t, cot_dtype_of(xs[k]), cot_shape_of(xs[k]));
    }
    return t->status == COT_OK;
}

const cot__op cot__op_loop_adjoint = {.name = "loop_adjoint", .kind = KIND_GENERIC, .sweeps_alone = true, .saves = 0x7f,
                                      .formula = "x̄ = Jᵀ z̄ of a loop z of unknown length; with u the adjoint of x̄, z̄ "
                                                 "gets J u, x the way back of z̄ through J u",
                                      .vjp = loop_adjoint_vjp, .jvp = loop_adjoint_jvp, .apply = loop_adjoint_apply,
                                      .results = cot__loop_adjoint_job_results, .infer = cot__loop_adjoint_job_infer,
                                      .workspace = cot__loop_adjoint_job_workspace, .bodies = 5,
                                      .open = cot__loop_adjoint_job_open, .go = cot__loop_adjoint_job_go,
                                      .close = cot__loop_adjoint_job_close, .effect = cot__loop_job_effect,
                                      .plain = loop_adjoint_plain,
                                      .batch = loop_adjoint_batch,
                                      .cost = {.none = "what its functions do is not counted"},
                                      .opaque = true,
                                      .operands = "*",
                                      .example = true};
