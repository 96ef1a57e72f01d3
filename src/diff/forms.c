/* forms.c: derivatives of C functions, thin over the recorded sweeps.
 *
 * A function runs on inputs of its own: aliases of what it is given, so that other uses of those values do not count, and nested derivatives do not mix.
 * What comes out is recorded: it can be differentiated again, batched, looped. */
#include "diff/forms.h"
#include "diff/find_kinks.h"
#include "ops/structural.h"
#include "tape/region.h"

#include <string.h>

/* ---- running ----------------------------------------------------------------------------------------------------------------- */

bool cot__form_lists(const char *op, int n, const cot_var *xs, int fills, cot_var *filled, int reads, const cot_var *read) {
    cot_tape *t = cot__tape_of(n, xs);
    for (int k = 0; filled && k < fills; k++) filled[k] = cot__invalid(n, xs);
    return t && cot__check_lists(t, op, fills, filled, reads, read);
}

/* What the function gave, as values of the tape. */
static bool take_results(cot__form *c, int m, cot_var *ys) {
    if (!cot__check_set(c->t, c->op, "the function", m, ys)) return false;
    for (int k = 0; k < m && c->t->status == COT_OK; k++)
        if (cot__enter_listed(c->t, ys[k], c->op, "function's result ys", k, " as", &c->y[k])) ys[k] = VAR(c->t, c->y[k]);
    return c->t->status == COT_OK;
}

/* Calls f on aliases of xs. */
static bool call_on_aliases(cot__form *c, cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys) {
    cot_tape *t = c->t;
    for (int k = 0; k < n; k++) {
        uint32_t i;
        if (!cot__enter_listed(t, xs[k], c->op, "xs", k, "", &i)) return false;
        c->in[k] = cot__alias(VAR(t, i));
        if (cot__failed(c->in[k])) return false;
        c->x[k] = cot__index(c->in[k]);
    }
    int code = f(n, c->in, m, ys, user);
    if (code) cot__fail(t, COT_CUSTOM, "[%s] the function failed with code %d", c->op, code);
    return take_results(c, m, ys);
}

/* Runs f; false after a failure. ys receives its m results. What is differentiated here must be active also in a no-grad scope, which is
 * about what comes out. */
bool cot__form_run(cot__form *c, const char *op, cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys) {
    cot_tape *t = cot__tape_of(n, xs);
    if (!t || !cot__check_call(t, op, f, n, xs, m, ys) || !cot__may_sweep(t, op)) return false;
    for (int k = 0; k < m; k++) ys[k] = INVALID(t);
    *c = (cot__form){.t = t, .op = op, .n = n, .m = m};
    c->in = cot__arena(t, ((size_t)n + 1) * sizeof *c->in, op);
    c->x = c->in ? cot__arena(t, ((size_t)n + (size_t)m + 1) * sizeof *c->x, op) : NULL;
    if (!c->x) return false;
    c->y = c->x + n;
    uint8_t mask = t->active_mask;
    int     no_grad = t->no_grad;
    t->active_mask = COT__ACTIVE;
    t->no_grad = 0;
    bool ok = call_on_aliases(c, f, user, n, xs, m, ys);
    t->active_mask = mask;
    t->no_grad = no_grad;
    for (int k = 0; k < m && ok && !mask; k++) {
        ys[k] = cot_detach(ys[k]);
        ok = !cot__failed(ys[k]);
    }
    return ok;
}

cot_status cot__form_status(int n, const cot_var *xs) {
    cot_tape *t = cot__tape_of(n, xs);
    return t ? t->status : cot__status_of(n, xs);
}

/* Derivatives are taken with respect to floats: the others are left out of the lists, and get nothing. */
static int only_floats(const cot__form *c, uint32_t *x) {
    int count = 0;
    for (int k = 0; k < c->n; k++)
        if (cot__dtype_is_float(cot__dtype_at(&c->t->nodes[c->x[k]]))) x[count++] = c->x[k];
    return count;
}

/* ---- seeds and tangents ------------------------------------------------------------------------------------------------------------- */

/* A direction for node i: a number (the same everywhere), or a value of its shape. */
static bool fit(cot_tape *t, const char *op, const char *what, int k, uint32_t i, cot_var v, uint32_t *out) {
    char which[48], a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    snprintf(which, sizeof which, "%s[%d]", what, k);
    if (cot__is_number(v)) v = cot_full(t, cot__dtype_at(&t->nodes[i]), cot__shape_at(t, i), cot__number_value(v));
    if (t->status != COT_OK || !cot__operand(t, v, op, which, out)) return false;
    cot_shape have = cot__shape_at(t, *out), want = cot__shape_at(t, i);
    if (!cot__same_shape(&have, &want)) {
        cot__fail(t, COT_SHAPE, "[%s] %s has shape %s, but belongs to a value of shape %s; they must be equal", op, which, cot__shape_text_at(t, *out, a),
                  cot__shape_text_at(t, i, b));
        return false;
    }
    *out = cot__as(t, *out, cot__dtype_at(&t->nodes[i]));
    return *out != COT__NONE;
}

cot_status cot__form_pull(cot__form *c, const cot_var *seeds, cot_var *grads) {
    cot_tape *t = c->t;
    uint32_t *x = cot__arena(t, ((size_t)c->n + (size_t)c->m + 1) * sizeof *x, c->op), *y = x + c->n, seed;
    cot_var  *g = x ? cot__arena(t, ((size_t)c->n + (size_t)c->m + 1) * sizeof *g, c->op) : NULL, *s = g + c->n;
    for (int k = 0; k < c->n; k++) grads[k] = INVALID(t);
    if (!g) return t->status;
    int n = only_floats(c, x), m = 0;
    for (int k = 0; k < c->m; k++) {
        if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[c->y[k]]))) continue;
        if (!fit(t, c->op, "seeds", k, c->y[k], seeds[k], &seed)) return t->status;
        y[m] = c->y[k];
        s[m++] = VAR(t, seed);
    }
    if (!cot__smooth_between(t, c->op, m, y, n, x) || cot__vjp_recorded(t, c->op, m, y, s, n, x, g) != COT_OK) return t->status;
    for (int k = 0; k < c->n; k++)
        if (cot__dtype_is_float(cot__dtype_at(&t->nodes[c->x[k]]))) grads[k] = *g++;
    return t->status;
}

static cot_status push(cot__form *c, const cot_var *tangents, cot_var *dys) {
    cot_tape *t = c->t;
    uint32_t *x = cot__arena(t, 2 * ((size_t)c->n + 1) * sizeof *x, c->op), *dx = x + c->n;
    int       n = 0;
    for (int k = 0; k < c->m; k++) dys[k] = INVALID(t);
    if (!x) return t->status;
    for (int k = 0; k < c->n; k++) {
        if (!cot__is_number(tangents[k]) && !tangents[k].tape) continue; /* COT_NONE: does not move */
        if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[c->x[k]]))) {
            if (cot__is_number(tangents[k]) && cot__number_value(tangents[k]) == 0) continue;
            cot__fail(t, COT_DTYPE, "[%s] tangents[%d] belongs to an input of dtype %s, which does not move; give COT_NONE", c->op,
                      k, cot__dtype_name(cot__dtype_at(&t->nodes[c->x[k]])));
            return t->status;
        }
        if (!fit(t, c->op, "tangents", k, c->x[k], tangents[k], &dx[n])) return t->status;
        x[n++] = c->x[k];
    }
    return cot__smooth_between(t, c->op, c->m, c->y, n, x) ? cot__jvp_recorded(t, c->op, c->m, c->y, n, x, dx, dys) : t->status;
}

/* ---- the forms ------------------------------------------------------------------------------------------------------------------------- */

cot_status cot_value_and_grad(cot_fn f, void *user, int n, const cot_var *xs, cot_var *y, cot_var *grads) {
    cot__form    c;
    cot_var value, one = cot_number(1);
    char    text[COT__SHAPE_TEXT];
    if (y) *y = cot__invalid(n, xs);
    if (!cot__form_lists("value_and_grad", n, xs, n, grads, 0, NULL) || !cot__form_run(&c, "value_and_grad", f, user, n, xs, 1, &value)) return cot__form_status(n, xs);
    if (cot__size_at(c.t, c.y[0]) != 1 || !cot__dtype_is_float(cot__dtype_at(&c.t->nodes[c.y[0]]))) {
        cot__fail(c.t, COT_SHAPE, "[value_and_grad] the function gives %s of shape %s; a gradient is of one float, use cot_fn_vjp",
                  cot__dtype_name(cot__dtype_at(&c.t->nodes[c.y[0]])), cot__shape_text_at(c.t, c.y[0], text));
        return c.t->status;
    }
    if (y) *y = value;
    return cot__form_pull(&c, &one, grads);
}

cot_status cot_fn_vjp(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys, const cot_var *seeds, cot_var *grads) {
    cot__form c;
    bool given = cot__form_lists("fn_vjp", n, xs, n, grads, m, seeds);
    return given && cot__form_run(&c, "fn_vjp", f, user, n, xs, m, ys) ? cot__form_pull(&c, seeds, grads) : cot__form_status(n, xs);
}

cot_status cot_fn_jvp(cot_fn f, void *user, int n, const cot_var *xs, const cot_var *tangents, int m, cot_var *ys, cot_var *dys) {
    cot__form c;
    bool given = cot__form_lists("fn_jvp", n, xs, m, dys, n, tangents);
    return given && cot__form_run(&c, "fn_jvp", f, user, n, xs, m, ys) ? push(&c, tangents, dys) : cot__form_status(n, xs);
}

/* ---- one recording, many products ---------------------------------------------------------------------------------------------------------- */

struct cot_linear {
    cot__form c;
};

cot_status cot_linearize(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys, cot_linear **linear) {
    cot__form c;
    cot_tape *t = cot__tape_of(n, xs);
    if (linear) *linear = NULL;
    else if (t) cot__fail(t, COT_VALUE, "[linearize] the place for the derivative is NULL");
    for (int k = 0; !linear && ys && k < m; k++) ys[k] = cot__invalid(n, xs);
    if (!linear || !cot__form_run(&c, "linearize", f, user, n, xs, m, ys)) return cot__form_status(n, xs);
    cot_linear *l = cot__arena(c.t, sizeof *l, "linearize");
    if (l) *l = (cot_linear){.c = c}, *linear = l;
    return c.t->status;
}

cot_status cot_linear_jvp(cot_linear *l, const cot_var *tangents, cot_var *dys) {
    if (!l) return COT_VAR;
    l->c.op = "linear_jvp";
    bool given = cot__usable(l->c.t) && cot__check_lists(l->c.t, l->c.op, l->c.n, tangents, l->c.m, dys);
    return given ? push(&l->c, tangents, dys) : l->c.t->status;
}

cot_status cot_linear_vjp(cot_linear *l, const cot_var *seeds, cot_var *grads) {
    if (!l) return COT_VAR;
    l->c.op = "linear_vjp";
    bool given = cot__usable(l->c.t) && cot__check_lists(l->c.t, l->c.op, l->c.m, seeds, l->c.n, grads);
    return given ? cot__form_pull(&l->c, seeds, grads) : l->c.t->status;
}

cot_var cot_stop_gradient(cot_var x) { return cot_detach(x); }
