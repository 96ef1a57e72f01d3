/* custom_fn.c: a recorded function whose derivative the user gives. The function is a body that is
 * played once; the user's rule replaces the sweep through the body. */
#include "diff/loops/loop.h"
#include "ops/structural.h"
#include "tape/scope.h"

/* The arguments of the user's rules: inputs xs, results ys, the adjoints or tangents of the results
 * (ybars), and room for the rule's answers (out). */
typedef struct seen { cot_var *xs, *ys, *ybars, *out; } seen;

static bool look_at_results(cot__rule *r, const cot__loop *l, cot_var *ys) {
    cot_tape *t = r->t;
    int      *at = cot__arena(t, ((size_t)l->nys + 1) * sizeof *at, l->name);
    if (!at) return false;
    cot__loop_order(t, l, at);
    for (int k = 0; k < l->nys; k++) ys[k] = cot__rule_result_of(r, at[k]);
    return t->status == COT_OK;
}

/* The user's vjp sees zeros for a result that has no adjoint. */
static bool look_at_adjoints(cot__rule *r, const cot__loop *l, const cot_var *ys, cot_var *ybars) {
    cot__loop_adjoints(r, l, ybars);
    for (int k = 0; k < l->nys && r->t->status == COT_OK; k++)
        if (cot__failed(ybars[k])) ybars[k] = cot_zeros(r->t, cot_dtype_of(ys[k]), cot_shape_of(ys[k]));
    return r->t->status == COT_OK;
}

static bool look(cot__rule *r, const cot__loop *l, seen *s) {
    cot_tape *t = r->t;
    int       n = l->consts, m = l->nys;
    cot_var  *all = cot__arena(t, (2 * ((size_t)n + (size_t)m) + 1) * sizeof *all, l->name);
    if (!all) return false;
    *s = (seen){all, all + n, all + n + m, all + n + 2 * m};
    for (int k = 0; k < n; k++) s->xs[k] = cot__rule_x(r, cot__loop_first_const(l) + k);
    return t->status == COT_OK && look_at_results(r, l, s->ys);
}

static bool went_well(cot_tape *t, const cot__loop *l, const char *which, int code) {
    cot__error_in_function(t, which, l->name);
    if (code) cot__fail(t, COT_CUSTOM, "[%s] its %s failed with code %d", l->name, which, code);
    return t->status == COT_OK;
}

/* What the user checks in a rule, nobody has checked before. */
static cot__scope theirs(cot_tape *t) {
    cot__scope scope = cot__scope_open(t, t->active_mask);
    t->mode.repeats = 0;
    return scope;
}

static void given_vjp(cot__rule *r) {
    const cot__loop *l = cot__rule_attr(r)->pointer;
    cot_tape        *t = r->t;
    seen             s;
    if (!look(r, l, &s) || !look_at_adjoints(r, l, s.ys, s.ybars)) return;
    for (int k = 0; k < l->consts; k++) s.out[k] = INVALID(t);
    cot__scope scope = theirs(t);
    int        code = l->rules->vjp(l->consts, s.xs, l->nys, s.ys, s.ybars, s.out, l->user);
    cot__scope_close(t, &scope);
    if (!went_well(t, l, "vjp", code)) return;
    for (int k = 0; k < l->consts; k++)
        if (cot__is_number(s.out[k]) || (s.out[k].tape && !cot__failed(s.out[k])))
            cot__give(r, cot__loop_first_const(l) + k, s.out[k]);
}

/* The tangent that a jvp gave for result k, as a value of the result's shape. COT_NONE stands for
 * zeros. Invalid after setting the error. */
static cot_var tangent_of(cot_tape *t, const cot__loop *l, int k, cot_var y, cot_var dy) {
    char     which[48], a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    uint32_t i;
    bool     number = cot__is_number(dy);
    if (number || !dy.tape || cot__failed(dy))
        return cot_full(t, cot_dtype_of(y), cot_shape_of(y), number ? cot__number_value(dy) : 0);
    snprintf(which, sizeof which, "jvp's dys[%d] as", k);
    if (!cot__operand(t, dy, l->name, which, &i)) return INVALID(t);
    cot_shape have = cot_shape_of(dy), want = cot_shape_of(y);
    if (cot__same_shape(&have, &want)) return dy;
    return cot__fail(t, COT_SHAPE, "[%s] its jvp gave dys[%d] of shape %s for a result of shape %s; they must be equal",
                     l->name, k, cot__shape_text(have.ndim, have.dim, a), cot__shape_text(want.ndim, want.dim, b));
}

static void given_jvp(cot__rule *r) {
    const cot__loop *l = cot__rule_attr(r)->pointer;
    cot_tape        *t = r->t;
    seen             s;
    /* Captures may move too, but the user's jvp has no argument for them, so they do not count. */
    bool             moves = false;
    for (int k = 0; k < l->consts; k++) moves |= !cot__failed(r->tangents[cot__loop_first_const(l) + k]);
    if (!moves || !look(r, l, &s)) return;
    for (int k = 0; k < l->nys; k++) s.ybars[k] = INVALID(t);
    /* An input that does not move is COT_NONE, as in cot_fn_jvp, so a rule may pass it on. */
    for (int k = 0; k < l->consts; k++) {
        cot_var dx = r->tangents[cot__loop_first_const(l) + k];
        s.out[k] = cot__failed(dx) ? COT_NONE : dx;
    }
    cot__scope scope = theirs(t);
    int        code = l->rules->jvp(l->consts, s.xs, l->nys, s.ys, s.out, s.ybars, l->user);
    cot__scope_close(t, &scope);
    if (!went_well(t, l, "jvp", code)) return;
    /* only float results have tangents */
    for (int k = 0, f = 0; k < l->nys && t->status == COT_OK; k++)
        if (cot__dtype_is_float(cot_dtype_of(s.ys[k])))
            cot__rule_tangent(r, f++, cot_cast(tangent_of(t, l, k, s.ys[k], s.ybars[k]), cot_dtype_of(s.ys[k])));
}

void cot__loop_given_vjp(cot__rule *r) {
    const cot__loop *l = cot__rule_attr(r)->pointer;
    if (l->rules->vjp) given_vjp(r);
    else cot__transpose_jvp(r, given_jvp);
}

void cot__loop_given_jvp(cot__rule *r) {
    const cot__loop *l = cot__rule_attr(r)->pointer;
    if (l->rules->jvp) given_jvp(r);
    else r->tangent = cot__transpose_vjp(r, given_vjp);
}
