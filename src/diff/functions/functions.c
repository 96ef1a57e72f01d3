/* functions.c: derivatives of C functions, thin over the recorded sweeps.
 *
 * A function runs on inputs of its own: aliases of what it is given, so that other uses of those
 * values do not count, and nested derivatives do not mix. What comes out is recorded: it can be
 * differentiated again, batched, looped. */
#include "diff/functions/functions.h"
#include "diff/engine/find_kinks.h"
#include "ops/structural.h"
#include "tape/region.h"
#include "tape/scope.h"

#include <string.h>

/* ---- running --------------------------------------------------------------------------------- */

bool cot__form_open(cot__form *c, const char *op, int n, const cot_var *xs, int m, const cot_var *others) {
    cot_tape *t = cot__tape_beside(op, n == 1 ? "x" : "xs", n, xs, m, others);
    *c          = (cot__form){
                 .t = t, .op = op, .n = n, .none = cot__invalid(n, xs), .status = t ? COT_OK : cot__status_of(n, xs)};
    c->from = t ? t->count : 0;
    return t != NULL;
}

void cot__form_fill(const cot__form *c, int n, cot_var *list, const cot_var *found) {
    for (int k = 0; list && k < n; k++) list[k] = found ? found[k] : c->none;
}

cot_status cot__form_status(const cot__form *c) { return c->t ? c->t->status : c->status; }

/* What the function gave, as values of the tape. */
static bool take_results(cot__form *c, int m, cot_var *ys) {
    if (!cot__check_set(c->t, c->op, "the function", m, ys)) return false;
    for (int k = 0; k < m && c->t->status == COT_OK; k++)
        if (cot__enter_listed(c->t, ys[k], c->op, "function's result ys", k, " as", &c->y[k]))
            ys[k] = VAR(c->t, c->y[k]);
    return c->t->status == COT_OK;
}

/* Calls f on aliases of xs. */
static bool call_on_aliases(cot__form *c, cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys) {
    cot_tape *t = c->t;
    for (int k = 0; k < n; k++) {
        uint32_t i;
        if (!cot__enter_listed(t, xs[k], c->op, "xs", k, "", &i)) return false;
        c->in[k] = cot__fresh_input(VAR(t, i));
        if (cot__failed(c->in[k])) return false;
        c->x[k] = cot__index(c->in[k]);
    }
    int code = f(n, c->in, m, ys, user);
    cot__error_in_function(t, "function", c->op);
    if (code) cot__fail(t, COT_CUSTOM, "[%s] the function failed with code %d", c->op, code);
    return take_results(c, m, ys);
}

/* What is differentiated here must be active also in a no-grad scope, which is about what comes
 * out. */
bool cot__form_run(cot__form *c, cot_fn f, void *user, const cot_var *xs, int m, const cot_var *ys) {
    cot_tape *t = c->t;
    int       n = c->n;
    if (!cot__check_call(t, c->op, f, n, xs, m, ys) || !cot__may_sweep(t, c->op)) return false;
    c->m = m;
    c->in = cot__arena(t, ((size_t)n + (size_t)m + 1) * sizeof *c->in, c->op);
    c->x = c->in ? cot__arena(t, ((size_t)n + (size_t)m + 1) * sizeof *c->x, c->op) : NULL;
    if (!c->x) return false;
    c->out = c->in + n;
    c->y = c->x + n;
    for (int k = 0; k < m; k++) c->out[k] = INVALID(t);
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    t->mode.no_grad = 0;
    bool ok = call_on_aliases(c, f, user, n, xs, m, c->out);
    cot__scope_close(t, &scope);
    for (int k = 0; k < m && ok; k++) {
        if (!scope.active_mask) c->out[k] = cot_detach(c->out[k]);
        /* inputs are views, too */
        else if (c->y[k] < c->from) c->out[k] = cot__unchanged(c->out[k], COT__VIEW);
        ok = !cot__failed(c->out[k]);
    }
    return ok;
}

/* Derivatives are taken with respect to floats: the others are left out of the lists, and get
 * nothing. */
static int only_floats(const cot__form *c, uint32_t *x) {
    int count = 0;
    for (int k = 0; k < c->n; k++)
        if (cot__dtype_is_float(cot__dtype_at(&c->t->nodes[c->x[k]]))) x[count++] = c->x[k];
    return count;
}

/* ---- seeds and tangents ---------------------------------------------------------------------- */

/* A direction for node i: a number (the same everywhere), or a value of its shape. */
static bool fit(cot_tape *t, const char *op, const char *what, int k, uint32_t i, cot_var v, uint32_t *out) {
    char which[48], a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    snprintf(which, sizeof which, "%s[%d]", what, k);
    if (cot__is_number(v)) v = cot_full(t, cot__dtype_at(&t->nodes[i]), cot__shape_at(t, i), cot__number_value(v));
    if (t->status != COT_OK || !cot__operand(t, v, op, which, out)) return false;
    cot_shape have = cot__shape_at(t, *out), want = cot__shape_at(t, i);
    if (!cot__same_shape(&have, &want)) {
        cot__fail(t, COT_SHAPE, "[%s] %s has shape %s, but belongs to a value of shape %s; they must be equal", op,
                  which, cot__shape_text_at(t, *out, a), cot__shape_text_at(t, i, b));
        return false;
    }
    *out = cot__as(t, *out, cot__dtype_at(&t->nodes[i]));
    return *out != COT__NONE;
}

cot_var *cot__form_pull(cot__form *c, const cot_var *seeds) {
    cot_tape *t = c->t;
    size_t    lists = (size_t)c->n + (size_t)c->m + 1;
    uint32_t *x = cot__arena(t, lists * sizeof *x, c->op), *y = cot__behind(x, c->n), seed;
    cot_var  *grads = x ? cot__arena(t, (lists + (size_t)c->n) * sizeof *grads, c->op) : NULL,
            *g = cot__behind(grads, c->n), *s = cot__behind(g, c->n);
    if (!grads) return NULL;
    int n = only_floats(c, x), m = 0;
    for (int k = 0; k < c->m; k++) {
        if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[c->y[k]]))) continue;
        if (!cot__is_number(seeds[k]) && !seeds[k].tape) continue; /* COT_NONE: zero */
        if (!fit(t, c->op, "seeds", k, c->y[k], seeds[k], &seed)) return NULL;
        y[m] = c->y[k];
        s[m++] = VAR(t, seed);
    }
    uint32_t from = t->count;
    if (!cot__smooth_between(t, c->op, m, y, n, x) ||
        cot__vjp_recorded_to(t, c->op, m, y, s, n, x, g, c->absent) != COT_OK)
        return NULL;
    for (int k = 0; k < c->n; k++)
        grads[k] =
            cot__dtype_is_float(cot__dtype_at(&t->nodes[c->x[k]])) ? cot__as_recorded(t, from, *g++) : INVALID(t);
    return t->status == COT_OK ? grads : NULL;
}

/* The tangents of the results; NULL after a failure. */
static cot_var *push(cot__form *c, const cot_var *tangents) {
    cot_tape *t = c->t;
    uint32_t *x = cot__arena(t, 2 * ((size_t)c->n + 1) * sizeof *x, c->op), *dx = cot__behind(x, c->n);
    cot_var  *dys = x ? cot__arena(t, ((size_t)c->m + 1) * sizeof *dys, c->op) : NULL;
    int       n = 0;
    if (!dys) return NULL;
    for (int k = 0; k < c->n; k++) {
        /* COT_NONE: does not move */
        if (!cot__is_number(tangents[k]) && !tangents[k].tape) continue;
        if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[c->x[k]]))) {
            if (cot__is_number(tangents[k]) && cot__number_value(tangents[k]) == 0) continue;
            cot__fail(t, COT_DTYPE,
                      "[%s] tangents[%d] belongs to an input of dtype %s, which does not move; give COT_NONE", c->op, k,
                      cot__dtype_name(cot__dtype_at(&t->nodes[c->x[k]])));
            return NULL;
        }
        if (!fit(t, c->op, "tangents", k, c->x[k], tangents[k], &dx[n])) return NULL;
        x[n++] = c->x[k];
    }
    uint32_t from = t->count;
    if (!cot__smooth_between(t, c->op, c->m, c->y, n, x)) return NULL;
    if (cot__jvp_recorded(t, c->op, c->m, c->y, n, x, dx, dys) != COT_OK) return NULL;
    for (int k = 0; k < c->m; k++) dys[k] = cot__as_recorded(t, from, dys[k]);
    return t->status == COT_OK ? dys : NULL;
}

/* ---- the forms ------------------------------------------------------------------------------- */

static bool gives_one_float(const cot__form *c, const char *rule) {
    char text[COT__SHAPE_TEXT];
    if (cot__size_at(c->t, c->y[0]) == 1 && cot__dtype_is_float(cot__dtype_at(&c->t->nodes[c->y[0]]))) return true;
    cot__fail(c->t, COT_SHAPE, "[%s] the function gives %s of shape %s; %s", c->op,
              cot__dtype_name(cot__dtype_at(&c->t->nodes[c->y[0]])), cot__shape_text_at(c->t, c->y[0], text), rule);
    return false;
}

cot_status cot_value_and_grad(cot_fn f, void *user, int n, const cot_var *xs, cot_var *y, cot_var *grads) {
    return cot__value_and_grad("value_and_grad", "a gradient is of one float, use cot_fn_vjp", f, user, n, xs, y,
                               grads);
}

cot_status cot__value_and_grad(const char *op, const char *rule, cot_fn f, void *user, int n, const cot_var *xs,
                               cot_var *y, cot_var *grads) {
    cot__form c;
    cot_var   value, one = cot_number(1);
    bool      ran = cot__form_open(&c, op, n, xs, 0, NULL) && cot__check_lists(c.t, c.op, n, grads, 0, NULL) &&
               cot__form_run(&c, f, user, xs, 1, &value) && gives_one_float(&c, rule);
    cot_var *given = ran ? cot__form_pull(&c, &one) : NULL;
    cot__form_fill(&c, n, grads, given);
    cot__form_fill(&c, 1, y, given ? c.out : NULL);
    return cot__form_status(&c);
}

cot_status cot__fn_vjp(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys, const cot_var *seeds,
                       cot_var *grads, bool *absent) {
    cot__form c;
    bool      ran = cot__form_open(&c, "fn_vjp", n, xs, m, seeds) && cot__check_lists(c.t, c.op, n, grads, m, seeds) &&
               cot__form_run(&c, f, user, xs, m, ys);
    c.absent = absent;
    cot_var *given = ran ? cot__form_pull(&c, seeds) : NULL;
    cot__form_fill(&c, n, grads, given);
    cot__form_fill(&c, m, ys, given ? c.out : NULL);
    return cot__form_status(&c);
}

cot_status cot_fn_vjp(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys, const cot_var *seeds,
                      cot_var *grads) {
    return cot__fn_vjp(f, user, n, xs, m, ys, seeds, grads, NULL);
}

cot_status cot_fn_jvp(cot_fn f, void *user, int n, const cot_var *xs, const cot_var *tangents, int m, cot_var *ys,
                      cot_var *dys) {
    cot__form c;
    bool ran = cot__form_open(&c, "fn_jvp", n, xs, n, tangents) && cot__check_lists(c.t, c.op, m, dys, n, tangents) &&
               cot__form_run(&c, f, user, xs, m, ys);
    cot_var *given = ran ? push(&c, tangents) : NULL;
    cot__form_fill(&c, m, dys, given);
    cot__form_fill(&c, m, ys, given ? c.out : NULL);
    return cot__form_status(&c);
}

/* ---- one recording, many products ------------------------------------------------------------ */

struct cot_linear {
    cot__form c;
};

cot_status cot_linearize(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys, cot_linear **linear) {
    cot__form c;
    if (linear) *linear = NULL;
    bool ran = cot__form_open(&c, "linearize", n, xs, 0, NULL);
    if (ran && !linear) cot__fail(c.t, COT_VALUE, "[linearize] the place for the derivative is NULL");
    ran = ran && linear && cot__form_run(&c, f, user, xs, m, ys);
    cot_linear *l = ran ? cot__arena(c.t, sizeof *l, "linearize") : NULL;
    if (l) *l = (cot_linear){.c = c}, *linear = l;
    cot__form_fill(&c, m, ys, ran ? c.out : NULL);
    return cot__form_status(&c);
}

cot_status cot_linear_jvp(cot_linear *l, const cot_var *tangents, cot_var *dys) {
    if (!l) return COT_VAR; /* how many tangents there are, it alone knows */
    l->c.op = "linear_jvp";
    bool given = cot__usable(l->c.t) && cot__check_lists(l->c.t, l->c.op, l->c.n, tangents, l->c.m, dys);
    cot__form_fill(&l->c, l->c.m, dys, given ? push(&l->c, tangents) : NULL);
    return l->c.t->status;
}

cot_status cot_linear_vjp(cot_linear *l, const cot_var *seeds, cot_var *grads) {
    if (!l) return COT_VAR;
    l->c.op = "linear_vjp";
    bool given = cot__usable(l->c.t) && cot__check_lists(l->c.t, l->c.op, l->c.m, seeds, l->c.n, grads);
    cot__form_fill(&l->c, l->c.n, grads, given ? cot__form_pull(&l->c, seeds) : NULL);
    return l->c.t->status;
}

cot_var cot_stop_gradient(cot_var x) { return cot__detach("stop_gradient", x); }
