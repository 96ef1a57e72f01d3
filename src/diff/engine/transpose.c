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
    cot__view   view = cot__view_read(t, cot__index(v));
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
    cot_var   tangents[1] = {along ? cot_take_along_axis(dx, index, axis) : cot_take(dx, index, axis)};
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

cot_var cot__transpose_vjp(cot__rule *r, void (*vjp)(cot__rule *r)) {
    cot_tape  *t = r->t;
    cot_shape  shape = cot__shape_at(t, r->node);
    cot__rule  back = *r;
    transposed tr = {.sweep = {.t = t}, .inner = INVALID(t)};
    cot_var    dz = INVALID(t);
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    back.g = direction(t, cot__dtype_at(&t->nodes[r->node]), shape);
    back.driver = &tr;
    back.give = give_inner;
    back.give_slice = give_slice_inner;
    back.give_scatter = give_scatter_inner;
    if (t->status == COT_OK) vjp(&back);
    if (t->status == COT_OK && !cot__failed(tr.inner)) {
        uint32_t g = cot__index(back.g);
        cot_var  one = cot_ones(t, cot_dtype_of(tr.inner), COT_SCALAR);
        if (t->status == COT_OK && is_linear(r, "vjp", "ybars", "jvp", 1, &g, cot__index(tr.inner)) &&
            is_zero_at_zero(r, "vjp", "ybars", "jvp", g, tr.at_zero))
            cot__grad_recorded(t, "jvp", cot__index(tr.inner), one, 1, &g, &dz);
    }
    cot__scope_close(t, &scope);
    return as_recorded(t, dz);
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

void cot__transpose_jvp(cot__rule *r, void (*jvp)(cot__rule *r)) {
    cot_tape *t = r->t;
    int       n = cot__nargs(cot__rule_node(r));
    size_t    bytes = (size_t)n * (2 * sizeof(cot_var) + sizeof(uint32_t));
    cot_var  *tangents = cot__alloc(&t->al, bytes);
    if (!tangents) {
        cot__fail(t, COT_MEMORY, "[vjp] out of memory: the tangents of %d operands", n);
        return;
    }
    cot_var  *grads = tangents + n;
    uint32_t *leaves = (uint32_t *)(void *)(grads + n);
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    cot__rule forth = *r;
    int       count = tangent_leaves(r, n, tangents, leaves);
    forth.tangents = tangents;
    forth.tangent = INVALID(t);
    if (count && t->status == COT_OK) jvp(&forth);
    bool ok = t->status == COT_OK && !cot__failed(forth.tangent) &&
              is_linear(r, "jvp", "dxs", "vjp", count, leaves, cot__index(forth.tangent)) &&
              (!is_users(r) || is_zero_at_zero(r, "jvp", "dxs", "vjp", leaves[0], some_of(t, forth.tangent)));
    if (ok) {
        cot_var inner = cot_sum(cot_smul(forth.tangent, r->g), COT_ALL);
        cot_var one = cot_ones(t, cot_dtype_of(inner), COT_SCALAR);
        ok =
            t->status == COT_OK && cot__grad_recorded(t, "vjp", cot__index(inner), one, count, leaves, grads) == COT_OK;
    }
    cot__scope_close(t, &scope);
    for (int k = 0, j = 0; k < n && ok; k++)
        if (!cot__failed(tangents[k])) cot__give(r, k, as_recorded(t, grads[j++]));
    cot__free(&t->al, tangents, bytes);
}
