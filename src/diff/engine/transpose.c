/* transpose.c: one direction of a rule from the other, in recorded operations.
 *
 * A rule is linear in what it is given, so J·v is the derivative of <vjp(g), v> with respect to g,
 * and Jᵀ·g that of <jvp(v), g> with respect to v. Both are recorded sweeps over what the rule just
 * recorded: they touch no slot of the sweep that called them. */
#include "rules/structural_ids.h"
#include "diff/engine/kept_adjoints.h"
#include "diff/engine/linearity.h"
#include "ops/structural.h"

#include <math.h>
#include <string.h>

/* ---- rules of the user's --------------------------------------------------------------------- */

static bool is_users(const cot__rule *r) { return r->op->users_rule && r->op->users_rule(r); }

/* Does what the rule recorded, up to node y, depend linearly on the nodes `from`? Otherwise it has
 * no transpose: sets the error. */
static bool is_linear(cot__rule *r, const char *which, const char *of, const char *other, int n, const uint32_t *from,
                      uint32_t y) {
    cot_tape *t = r->t;
    uint32_t  curved;
    char      text[160];
    if (!is_users(r) || n == 0) return true;
    if (!cot__find_curved(t, n, from, y, &curved)) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: marks for what depends on the inputs", cot__op_name(t, r->node));
        return false;
    }
    if (curved == COT__NONE) return true;
    cot__fail(t, COT_GRAD,
              "[%s] its %s is not linear in %s, which %s makes of them: it has no transpose; give a %s too",
              cot__op_name(t, r->node), which, of, cot__describe(t, curved, text, sizeof text), other);
    return false;
}

/* An element of v that is not 0, or 0 if there is none. NaN counts as 0: a rule may divide by
 * zero. */
static double some_of(cot_tape *t, cot_var v) {
    if (cot__is_number(v)) return cot__number_value(v);
    cot__view   view = cot__look(t, cot__index(v));
    cot__reader r;
    cot__reader_open(&r, t->backend, &view);
    while (r.at < r.size) {
        double value = cot__reader_next(&r);
        if (isfinite(value) && value != 0) return value;
    }
    return 0;
}

/* The rule ran for a direction of zeros, which was node `first`: what is linear gave zeros. The
 * solution of an equation is 0 to its tolerance only, and an example in a body may be anything:
 * neither shows anything. */
static bool is_zero_at_zero(cot__rule *r, const char *which, const char *of, const char *other, uint32_t first,
                            double value) {
    cot_tape *t = r->t;
    for (uint32_t i = first; value != 0 && i < t->count; i++)
        if (t->nodes[i].op == OP_root || (t->mode.body && cot__op_of(t->nodes[i].op)->example)) return true;
    if (value != 0)
        cot__fail(
            t, COT_GRAD,
            "[%s] its %s is not linear in %s, it gives %g where they are zero: it has no transpose; give a %s too",
            cot__op_name(t, r->node), which, of, value, other);
    return value == 0;
}

/* ---- J·v from a vjp -------------------------------------------------------------------------- */

/* <vjp(g), v>, collected as the rule gives its contributions. at_zero: an element of vjp(0) that is
 * not 0, if there is one. */
typedef struct transposed { cot__sweep sweep; cot_var inner; double at_zero; } transposed;

static void give_inner(cot__rule *r, int k, cot_var v) {
    transposed *tr = r->driver;
    if (cot__failed(r->tangents[k]) || r->t->status != COT_OK) return;
    if (!cot__adjoint_fits(r, cot_shape_of(r->tangents[k]), cot_shape_of(v))) return;
    if (tr->at_zero == 0 && is_users(r)) tr->at_zero = some_of(r->t, v);
    cot_var term = cot_sum(cot_smul(v, r->tangents[k]), COT_ALL);
    tr->inner = cot__failed(tr->inner) ? term : cot_add(tr->inner, term);
}

static void give_slice_inner(cot__rule *r, int k, cot_var v, const int64_t s[4]) {
    if (cot__failed(r->tangents[k])) return;
    cot_var dx = r->tangents[k];
    cot__rule part = *r;
    int64_t end = s[1] + s[2] * s[3];
    cot_var cut = cot_slice(dx, (int)s[0], s[1], end < 0 ? COT_END : end, s[3]);
    cot_var tangents[1] = {cot_reshape(cut, cot_shape_of(v))};
    part.tangents = tangents;
    give_inner(&part, 0, v);
}

static void give_scatter_inner(cot__rule *r, int k, cot_var v, cot_var index, int axis, bool along) {
    if (cot__failed(r->tangents[k])) return;
    cot_var   dx = r->tangents[k];
    cot__rule part = *r;
    cot_var   tangents[1] = {(along ? cot__take_along_for : cot__take_for)(cot__rule_asker(r), dx, index, axis)};
    part.tangents = tangents;
    give_inner(&part, 0, v);
}

/* Nodes that are transposed must be active to be swept, whatever the caller records; the result is
 * as active as what the caller records itself. */
static cot_var as_recorded(cot_tape *t, cot_var v) {
    return t->active_mask || cot__failed(v) ? v : cot_detach(v);
}

/* Active zeros, with respect to which a rule is transposed. They are no leaf: the rule may run in a
 * body, which makes none, and loops inside of the rule read them when they are played. */
static cot_var direction(cot_tape *t, cot_dtype dtype, cot_shape shape) {
    return cot__fresh_input(cot_zeros(t, dtype, shape));
}

/* Adjoints of all float results, with respect to which a vjp is transposed: of r->node and its
 * picks. */
typedef struct directions {
    int       m, count;
    cot_var  *g, *dz;  /* by result; invalid where it is no float */
    cot_var  *grads;   /* by direction, as `at` */
    uint32_t *at;
    cot_var   few[12]; /* for up to 4 results */
    uint32_t  few_at[4];
} directions;

static bool directions_open(directions *d, cot_tape *t, uint32_t node) {
    d->m = cot__results_at(t, node);
    d->count = 0;
    size_t m = (size_t)d->m;
    d->g = d->m <= 4 ? d->few : cot__arena(t, m * (3 * sizeof *d->g + sizeof *d->at), "jvp");
    if (!d->g) return false;
    d->dz = d->g + m, d->grads = d->dz + m;
    d->at = d->m <= 4 ? d->few_at : (uint32_t *)(void *)(d->grads + m);
    for (int k = 0; k < d->m; k++) {
        const cot__node *n = &t->nodes[node + (uint32_t)k];
        d->g[k] = d->dz[k] = INVALID(t);
        if (t->status != COT_OK || !cot__dtype_is_float(cot__dtype_at(n))) continue;
        d->g[k] = direction(t, cot__dtype_at(n), cot__shape_at(t, node + (uint32_t)k));
        d->at[d->count++] = cot__index(d->g[k]);
    }
    return t->status == COT_OK;
}

/* The derivatives of `inner` by the directions: the tangents of the results. */
static void directions_grad(directions *d, cot__rule *r, const transposed *tr) {
    cot_tape *t = r->t;
    cot_var   one = cot_ones(t, cot_dtype_of(tr->inner), COT_SCALAR);
    if (t->status != COT_OK || !is_linear(r, "vjp", "ybars", "jvp", d->count, d->at, cot__index(tr->inner)) ||
        !is_zero_at_zero(r, "vjp", "ybars", "jvp", d->at[0], tr->at_zero) ||
        cot__grad_recorded(t, "jvp", cot__index(tr->inner), one, d->count, d->at, d->grads) != COT_OK)
        return;
    for (int k = 0, j = 0; k < d->m; k++)
        if (!cot__failed(d->g[k])) d->dz[k] = d->grads[j++];
}

cot_var cot__transpose_vjp(cot__rule *r, void (*vjp)(cot__rule *r)) {
    cot_tape  *t = r->t;
    cot__rule  back = *r;
    transposed tr = {.sweep = {.t = t}, .inner = INVALID(t)};
    directions d;
    cot_var    dz = INVALID(t);
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    bool       ok = directions_open(&d, t, r->node);
    back.driver = &tr;
    back.give = give_inner;
    back.give_slice = give_slice_inner;
    back.give_scatter = give_scatter_inner;
    if (ok) back.g = d.g[0], back.gs = d.m > 1 ? d.g + 1 : NULL;
    if (ok) vjp(&back);
    if (t->status == COT_OK && !cot__failed(tr.inner)) directions_grad(&d, r, &tr);
    cot__scope_close(t, &scope);
    if (ok && t->status == COT_OK) {
        dz = as_recorded(t, d.dz[0]);
        for (int k = 1; k < d.m; k++) cot__rule_tangent(r, k, as_recorded(t, d.dz[k]));
    }
    return dz;
}

/* ---- Jᵀ·g from a jvp ------------------------------------------------------------------------- */

/* A direction for the tangent of each operand whose adjoint is asked for; their number. */
static int tangent_leaves(cot__rule *r, int n, cot_var *tangents, uint32_t *leaves) {
    int count = 0;
    for (int k = 0; k < n; k++) {
        tangents[k] = INVALID(r->t);
        if (r->t->status != COT_OK || !cot__rule_wants(r, k)) continue;
        tangents[k] = direction(r->t, cot__dtype_at(&r->t->nodes[cot__rule_arg(r, k)]), cot__rule_shape(r, k));
        leaves[count++] = cot__index(tangents[k]);
    }
    return count;
}

/* <jvp(v), g> over all results that have an adjoint; invalid where none moves. */
static cot_var inner_product(const cot__rule *r, const cot__rule *forth, int m) {
    cot_var inner = INVALID(r->t);
    for (int k = 0; k < m && r->t->status == COT_OK; k++) {
        cot_var dz = k ? forth->more[k - 1] : forth->tangent, g = cot__rule_g(r, k);
        if (cot__failed(dz) || cot__failed(g)) continue;
        cot_var term = cot_sum(cot_smul(dz, g), COT_ALL);
        inner = cot__failed(inner) ? term : cot_add(inner, term);
    }
    return inner;
}

/* Is what a jvp of the user's gave linear in the directions, as far as can be seen? */
static bool is_transposable(cot__rule *r, const cot__rule *forth, int m, int count, const uint32_t *leaves) {
    cot_tape *t = r->t;
    for (int k = 0; k < m && is_users(r); k++) {
        cot_var dz = k ? forth->more[k - 1] : forth->tangent;
        if (cot__failed(dz)) continue;
        if (!is_linear(r, "jvp", "dxs", "vjp", count, leaves, cot__index(dz)) ||
            !is_zero_at_zero(r, "jvp", "dxs", "vjp", leaves[0], some_of(t, dz)))
            return false;
    }
    return t->status == COT_OK;
}

void cot__transpose_jvp(cot__rule *r, void (*jvp)(cot__rule *r)) {
    cot_tape *t = r->t;
    int       n = cot__nargs(cot__rule_node(r)), m = cot__results_at(t, r->node);
    size_t    bytes = (size_t)n * (2 * sizeof(cot_var) + sizeof(uint32_t)) + (size_t)m * sizeof(cot_var);
    cot_var  *tangents = cot__alloc(&t->al, bytes);
    if (!tangents) {
        cot__fail(t, COT_MEMORY, "[vjp] out of memory: the tangents of %d operands", n);
        return;
    }
    cot_var  *grads = tangents + n, *more = grads + n;
    uint32_t *leaves = (uint32_t *)(void *)(more + m);
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    cot__rule forth = *r;
    int       count = tangent_leaves(r, n, tangents, leaves);
    forth.tangents = tangents;
    forth.tangent = INVALID(t);
    forth.more = more;
    for (int k = 0; k < m; k++) more[k] = INVALID(t);
    if (count && t->status == COT_OK) jvp(&forth);
    bool    ok = t->status == COT_OK && is_transposable(r, &forth, m, count, leaves);
    cot_var inner = ok ? inner_product(r, &forth, m) : INVALID(t);
    ok = ok && !cot__failed(inner);
    if (ok) {
        cot_var one = cot_ones(t, cot_dtype_of(inner), COT_SCALAR);
        ok =
            t->status == COT_OK && cot__grad_recorded(t, "vjp", cot__index(inner), one, count, leaves, grads) == COT_OK;
    }
    cot__scope_close(t, &scope);
    for (int k = 0, j = 0; k < n && ok; k++)
        if (!cot__failed(tangents[k])) cot__give(r, k, as_recorded(t, grads[j++]));
    cot__free(&t->al, tangents, bytes);
}
