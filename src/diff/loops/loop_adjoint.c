/* loop_adjoint.c: the way back through a loop as one operation: x̄ = Jᵀ z̄, where z = loop(x) and J
 * is its derivative.
 *
 * While a body is recorded, the length of a cot_while inside it is not known, so the way back
 * cannot be recorded as a loop over states. If the user has bounded the states, a loop over all of
 * them is not allowed either. This operation finds the length when it is played: it runs the loop,
 * keeps states under the bound, sweeps back in numbers, and forgets the run and the sweep. Its own
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
#include "diff/loops/loop.h"
#include "ops/structural.h"

#include <string.h>

typedef struct adjoint {
    const char *name;     /* of the loop, for messages */
    cot__loop   loop;
    int         operands; /* number of operands of the loop; z̄ stands behind them */
    cot_dtype   dtype;    /* one float dtype that holds all adjoints */
    int64_t     size;     /* number of elements of all adjoints together */
    bool        of[];     /* operands whose adjoints the value holds, one behind the other */
} adjoint;

static const char OP[] = "loop_adjoint";

/* ---- the value ------------------------------------------------------------------------------- */

/* A source with the value of node x. An active source can be reached by a sweep. */
static uint32_t source_of(cot_tape *t, uint32_t x, bool active) {
    t->active_mask = active ? COT__ACTIVE : 0;
    return cot__index(cot__parameter(t, x));
}

static void put(cot_tape *t, const cot__sweep *w, uint32_t x, const cot__view *flat, int64_t at) {
    int64_t   stride[COT_MAX_NDIM];
    cot__view v = cot__view_read(t, x);
    cot__strides(v.ndim, v.shape, stride);
    cot__view to = {(char *)flat->data + at * cot__dtype_size(flat->dtype), flat->dtype, v.ndim, v.shape, stride};
    const cot__arrival *a = cot__arrival_at(w, x);
    if (!a || !a->tensor.storage) {
        t->backend->fill(&to, a ? a->scalar : 0);
        return;
    }
    v.stride = a->tensor.stride;
    v.data = (char *)a->tensor.storage->data + a->tensor.offset * cot__dtype_size(v.dtype);
    t->backend->copy(&to, &v);
}

/* Sweeps from the loop's value z, whose adjoint is node g, to the sources x. */
static bool sweep(cot_tape *t, const adjoint *a, uint32_t z, uint32_t g, const uint32_t *x, const cot__view *flat) {
    const cot__tensor *seed = t->nodes[g].value.tensor;
    cot__sweep         w = {.t = t, .lo = z, .top = z, .wanted_only = true};
    int64_t            at = 0;
    if (!cot__slots(t, z, 1, a->name)) return false;
    for (int k = 0; k < a->operands; k++)
        if (a->of[k]) cot__mark_wanted(t, 1, &x[k], true);
    bool ok = cot__acc_share(&w, z, seed->storage, seed->offset, seed->dims + seed->ndim) && cot__reverse(&w);
    for (int k = 0; k < a->operands; k++) {
        if (!a->of[k]) continue;
        cot__mark_wanted(t, 1, &x[k], false);
        if (ok) put(t, &w, x[k], flat, at);
        at += cot__size_at(t, x[k]);
    }
    cot__sweep_close(&w, false);
    return ok;
}

/* Runs the loop on sources of its own. Another sweep may be under way, and it must not see the
 * nodes that this run leaves. */
static bool run(cot_tape *t, const adjoint *a, const uint32_t *args, const cot__view *flat) {
    cot_mark  m = cot__mark(t);
    uint32_t *x = cot__arena(t, ((size_t)a->operands + 1) * sizeof *x, a->name);
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    for (int k = 0; x && k < a->operands && t->status == COT_OK; k++) x[k] = source_of(t, args[k], a->of[k]);
    t->active_mask = COT__ACTIVE;
    cot_var z = t->status == COT_OK ? cot__loop_value(t, &a->loop, x) : INVALID(t);
    bool    ok = !cot__failed(z) && sweep(t, a, cot__index(z), args[a->operands], x, flat);
    cot__scope_close(t, &scope);
    cot__rewind(t, m);
    return ok;
}

static cot_var record_value(cot_tape *t, const adjoint *a, const uint32_t *args) {
    cot__attr  *attr = cot__attr_make(t, OP, 0, NULL, a->operands + 1, args);
    cot__result r;
    if (!attr || !cot__result_open(t, &r, OP, a->dtype, 1, &a->size)) return INVALID(t);
    /* while a body is recorded the value is only an example; the loop might not even end */
    if (t->mode.body) t->backend->fill(&r.view, 0);
    else if (!run(t, a, attr->args, &r.view)) return INVALID(t);
    attr->pointer = a;
    return cot__result_push(t, &r, OP_loop_adjoint, (int)attr->nargs, attr->args, attr);
}

/* ---- apart and together ---------------------------------------------------------------------- */

/* The piece of a flat value at *at that belongs to x. */
static cot_var piece(cot_var flat, int64_t *at, cot_var x) {
    cot_shape shape = cot_shape_of(x);
    int64_t   size = cot_size(x), from = *at;
    *at += size;
    cot_var part = shape.ndim ? cot_reshape(cot_slice(flat, 0, from, from + size, 1), shape) : cot_index(flat, 0, from);
    return cot_dtype_of(part) == cot_dtype_of(x) ? part : cot_cast(part, cot_dtype_of(x));
}

static cot_var together(cot_tape *t, const adjoint *a, int n, cot_var *parts) {
    for (int k = 0; k < n && t->status == COT_OK; k++)
        parts[k] = cot_cast(cot_reshape(parts[k], COT_SHAPE(cot_size(parts[k]))), a->dtype);
    return t->status == COT_OK ? cot_concat(n, parts, 0) : INVALID(t);
}

void cot__loop_reverse_as_operation(cot__rule *r) {
    cot_tape        *t = r->t;
    const cot__loop *l = cot__rule_attr(r)->pointer;
    int              n = cot__loop_operands(l), tested = l->test ? l->test->captures : 0, count = 0;
    adjoint         *a = cot__arena(t, sizeof *a + (size_t)n, OP);
    uint32_t        *args = a ? cot__arena(t, ((size_t)n + 1) * sizeof *args, OP) : NULL;
    if (!args) return;
    *a = (adjoint){.name = l->name, .loop = *l, .operands = n};
    a->loop.bounded = true;
    for (int k = 0; k < n; k++) {
        cot_var x = cot__rule_x(r, k);
        if (cot__failed(x)) return;
        args[k] = cot__index(x);
        /* the test has no derivative, so captures of the test get no adjoint */
        a->of[k] = k < n - tested && cot__rule_wants(r, k);
        if (!a->of[k]) continue;
        a->dtype = count++ ? cot__dtype_promote(a->dtype, cot_dtype_of(x)) : cot_dtype_of(x);
        a->size = cot__size_add(a->size, cot_size(x));
    }
    args[n] = cot__index(r->g);
    cot_var flat = count ? record_value(t, a, args) : INVALID(t);
    int64_t at = 0;
    for (int k = 0; k < n && count && t->status == COT_OK; k++)
        if (a->of[k]) cot__give(r, k, piece(flat, &at, VAR(t, args[k])));
}

cot_var cot__loop_adjoint_as_loops(cot_tape *t, uint32_t node) {
    const cot__attr *attr = t->nodes[node].extra.attr;
    const adjoint   *a = attr->pointer;
    int              n = 0;
    cot_var *x = cot__arena(t, 2 * ((size_t)a->operands + 1) * sizeof *x, OP), *bars = cot__behind(x, a->operands + 1);
    if (!x) return INVALID(t);
    for (int k = 0; k <= a->operands; k++) x[k] = VAR(t, attr->args[k]);
    if (!cot__loop_back(t, &a->loop, a->loop.test ? 1 : a->loop.length, x, a->of, x[a->operands], bars))
        return INVALID(t);
    for (int k = 0; k < a->operands; k++)
        if (a->of[k]) bars[n++] = bars[k];
    return together(t, a, n, bars);
}

/* ---- derivatives ----------------------------------------------------------------------------- */

/* The loop with its tangents, on fresh inputs that have the values of its operands. */
typedef struct moving {
    cot_tape      *t;
    const adjoint *a;
    cot_var       *x; /* fresh inputs for float operands, the other operands themselves, then z̄ */
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
    size_t n = (size_t)g->a->operands + 1, values = (size_t)(g->a->loop.carry + g->a->loop.nys) + 1;
    g->x = cot__arena(t, (2 * n + 3 * values) * sizeof *g->x, OP);
    g->to = g->x ? cot__arena(t, (n + values) * sizeof *g->to, OP) : NULL;
    if (!g->to) return false;
    g->grads = g->x + n, g->results = g->grads + n, g->seeds = g->results + 2 * values;
    g->y = g->to + n;
    for (int k = 0; k <= g->a->operands; k++) {
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

/* Seeds the tangents with the pieces of z̄. */
static bool seed(moving *g) {
    const cot__loop *l = &g->a->loop;
    int              n = l->carry + l->nys;
    cot_var         *pieces = cot__arena(g->t, ((size_t)n + 1) * sizeof *pieces, OP);
    if (!pieces) return false;
    cot__loop_apart(g->t, l, length_of(g->a), g->x[g->a->operands], pieces);
    for (int k = 0; k < n; k++) {
        if (!cot__dtype_is_float(cot__dtype_at(&g->t->nodes[l->body[0]->out[k]]))) continue;
        g->y[g->seeded] = cot__index(g->results[l->carry + g->seeded]);
        g->seeds[g->seeded++] = pieces[k];
    }
    return g->t->status == COT_OK;
}

static bool sweep_recorded(moving *g) {
    return g->wanted == 0 ||
           cot__vjp_recorded(g->t, OP, g->seeded, g->y, g->seeds, g->wanted, g->to, g->grads) == COT_OK;
}

static void loop_adjoint_vjp(cot__rule *r) {
    cot_tape *t = r->t;
    moving    g;
    int64_t   at = 0;
    int       n = 0;
    /* the nodes swept here must be active, also while the caller records without gradients */
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    cot_var *u = open_moving(&g, r) ? cot__arena(t, ((size_t)g.a->operands + 1) * sizeof *u, OP) : NULL;
    for (int k = 0; u && k < g.a->operands; k++) u[k] = g.a->of[k] ? piece(r->g, &at, g.x[k]) : INVALID(t);
    bool ok = u && t->status == COT_OK && run_moving(&g, u);
    for (int k = 0; ok && k < g.a->operands; k++)
        if (cot__rule_wants(r, k)) g.to[g.wanted++] = cot__index(g.x[k]);
    ok = ok && seed(&g) && sweep_recorded(&g);
    cot__scope_close(t, &scope);
    for (int k = 0; ok && k < g.a->operands; k++)
        if (cot__rule_wants(r, k)) cot__give(r, k, g.grads[n++]);
    if (!ok || !cot__rule_wants(r, g.a->operands)) return;
    cot__give(r, g.a->operands, cot__loop_flatten(t, &g.a->loop, length_of(g.a), cot_dtype_of(g.x[g.a->operands]),
                                                  g.results + g.a->loop.carry));
}

/* The operation is linear in z̄, so its tangent by z̄ is the same operation on dz̄. */
static cot_var of_other(cot__rule *r, const adjoint *a, cot_var g) {
    uint32_t *args = cot__arena(r->t, ((size_t)a->operands + 1) * sizeof *args, OP);
    for (int k = 0; args && k < a->operands; k++) args[k] = cot__index(cot__rule_x(r, k));
    if (!args || r->t->status != COT_OK) return INVALID(r->t);
    args[a->operands] = cot__index(g);
    return record_value(r->t, a, args);
}

static void loop_adjoint_jvp(cot__rule *r) {
    cot_tape      *t = r->t;
    const adjoint *a = cot__rule_attr(r)->pointer;
    cot_var        dg = r->tangents[a->operands];
    moving         g;
    bool           moves = false;
    for (int k = 0; k < a->operands; k++) moves |= !cot__failed(r->tangents[k]);
    if (!cot__failed(dg)) r->tangent = of_other(r, a, dg);
    if (!moves || t->status != COT_OK) return;
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    bool ok = open_moving(&g, r) && run_moving(&g, r->tangents);
    for (int k = 0; ok && k < a->operands; k++)
        if (a->of[k]) g.to[g.wanted++] = cot__index(g.x[k]);
    ok = ok && seed(&g) && sweep_recorded(&g);
    cot__scope_close(t, &scope);
    if (!ok) return;
    cot_var moved = together(t, a, g.wanted, g.grads);
    r->tangent = cot__failed(dg) ? moved : cot_add(r->tangent, moved);
}

static cot_var loop_adjoint_apply(cot__rule *r, const cot_var *xs) {
    const adjoint *a = cot__rule_attr(r)->pointer;
    uint32_t      *args = cot__arena(r->t, ((size_t)a->operands + 1) * sizeof *args, OP);
    for (int k = 0; args && k <= a->operands; k++)
        if (!cot__enter(r->t, xs[k], OP, "replayed", &args[k])) return INVALID(r->t);
    return args ? record_value(r->t, a, args) : INVALID(r->t);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* The adjoint of the wide loop's flat value, from one flat adjoint z̄ for each element. A carried
 * value without a batch depends on no wanted operand, so zeros stand for its adjoint. */
static cot_var wide_adjoint(const adjoint *a, const cot__wide *w, cot_var g) {
    const cot__loop *l = w->l;
    int              m = l->carry + l->nys;
    int64_t          at = 0;
    cot_var         *parts = cot__arena(w->t, ((size_t)m + 2) * sizeof *parts, OP);
    if (!parts) return INVALID(w->t);
    for (int j = 0; j < m && w->t->status == COT_OK; j++) {
        cot_shape one;
        cot__loop_result(w->t, l, length_of(a), j, &one);
        int64_t size = cot__count(one.ndim, one.dim), all = size * w->extent;
        bool    stacked = j >= l->carry && !l->once, is = j >= l->carry || w->is[cot__loop_first_carry(l) + j];
        parts[j] = is ? cot_slice(g, 1, at, at + size, 1) : cot_zeros(w->t, cot_dtype_of(g), COT_SHAPE(all = size));
        int64_t steps = stacked ? one.dim[0] : 0;
        if (steps) parts[j] = cot__moved_axis(cot_reshape(parts[j], COT_SHAPE(w->extent, steps, size / steps)), 0, 1);
        parts[j] = cot_reshape(parts[j], COT_SHAPE(all));
        at += size;
    }
    if (w->masked) parts[m++] = cot_zeros(w->t, cot_dtype_of(g), COT_SHAPE(w->extent));
    return w->t->status == COT_OK ? cot_concat(m, parts, 0) : INVALID(w->t);
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

/* Splits the adjoints that the wide loop gave (one flat array) into one row for each element. */
static cot_var each_apart(const adjoint *a, const adjoint *all, const cot__wide *w, cot_var flat) {
    int      n = 0;
    cot_var *parts = cot__arena(w->t, ((size_t)a->operands + 1) * sizeof *parts, OP);
    for (int k = 0; parts && k < a->operands && w->t->status == COT_OK; k++) {
        int     at = a->of[k] ? wide_operand(w, k) : -1;
        int64_t from = 0, size = cot_size(w->x[k]);
        if (!a->of[k]) continue;
        for (int j = 0; j < at; j++) from += all->of[j] ? cot__size_at(w->t, w->args[j]) : 0;
        cot_var part = at < 0 ? cot_zeros(w->t, a->dtype, COT_SHAPE(size)) : cot_slice(flat, 0, from, from + size, 1);
        if (k >= cot__loop_first_xs(w->l) && k < cot__loop_first_capture(w->l))
            part = cot__moved_axis(cot_reshape(part, cot_shape_of(VAR(w->t, w->args[at]))), 1, 0);
        parts[n++] = cot_reshape(part, COT_SHAPE(w->extent, size / w->extent));
    }
    return parts && w->t->status == COT_OK ? cot_concat(n, parts, 1) : INVALID(w->t);
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
    int       n = cot__loop_operands(w.loop);
    adjoint  *all = cot__arena(t, sizeof *all + (size_t)n, OP);
    uint32_t *args = all ? cot__arena(t, ((size_t)n + 1) * sizeof *args, OP) : NULL;
    cot_var   g = args ? wide_adjoint(a, &w, cot__batch_full(b, a->operands, xs[a->operands])) : INVALID(t);
    if (cot__failed(g)) return g;
    *all = (adjoint){.name = a->name, .loop = *w.loop, .operands = n, .dtype = a->dtype};
    memset(all->of, 0, (size_t)n);
    for (int k = 0; k < a->operands; k++) {
        int at = a->of[k] ? wide_operand(&w, k) : -1;
        if (at < 0) continue;
        all->of[at] = true;
        all->size = cot__size_add(all->size, cot__size_at(t, w.args[at]));
    }
    memcpy(args, w.args, (size_t)n * sizeof *args);
    args[n] = cot__index(g);
    cot_var flat = record_value(t, all, args);
    return cot__failed(flat) ? flat : each_apart(a, all, &w, flat);
}

const cot__op cot__op_loop_adjoint = {.name = "loop_adjoint", .kind = KIND_GENERIC, .sweeps_alone = true, .saves = 0x7f,
                                      .formula = "x̄ = Jᵀ z̄ of a loop z of unknown length; with u the adjoint of x̄, z̄ "
                                                 "gets J u, x the way back of z̄ through J u",
                                      .vjp = loop_adjoint_vjp, .jvp = loop_adjoint_jvp, .apply = loop_adjoint_apply,
                                      .needs_tape = "it plays a body and sweeps it back, on the tape of the body",
                                      .batch = loop_adjoint_batch,
                                      .cost = {.none = "what its functions do is not counted"},
                                      .opaque = true,
                                      .operands = "*",
                                      .example = true};
