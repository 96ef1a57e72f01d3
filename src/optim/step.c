/* step.c: one step over a leaf, in one pass over weight, gradient and states; and the steps whose
 * states are the caller's arrays or none.
 *
 * All leaves are checked before the first is written. The tape keeps no state of an optimiser. */
#include "optim/optim.h"
#include "pending/pending.h"

#include "backend/elements.h"
#include "tape/tape.h"

bool cot__weight(cot_tape *t, const char *op, const char *what, int k, cot_var x, uint32_t *i) {
    char name[300];
    if (!cot__operand(t, x, op, "", i)) return false;
    cot_dtype d = cot__dtype_at(&t->nodes[*i]);
    bool      leaf = t->nodes[*i].op == OP_leaf;
    if (leaf && (d == COT_F64 || d == COT_F32)) return true;
    if (k < 0) snprintf(name, sizeof name, "%s", what);
    else snprintf(name, sizeof name, "%s[%d]", what, k);
    if (!leaf) cot__fail(t, COT_VALUE, "[%s] %s is not a leaf", op, name);
    else
        cot__fail(t, COT_DTYPE,
                  "[%s] %s has dtype %s; weights are f32 or f64: keep those, and cast them for the computation", op,
                  name, cot__dtype_name(d));
    return false;
}

/* States lie on the host, so a device gets a copy of them and gives it back. */
static bool run_pass(cot_tape *t, const char *op, cot__update *u) {
    if (cot__on_host(t->backend)) return t->backend->update(u), true;
    int64_t one = 1, bytes = u->n * cot__dtype_size(u->dtype);
    bool    any = u->state[0] || u->state[1] || u->state[2] || u->state[3];
    if (!any) return t->backend->update(u), true;
    cot__storage *all = cot__storage_create(t, COT__STATES * (size_t)bytes, op);
    cot__view     host[COT__STATES], there[COT__STATES];
    if (!all) return false;
    for (int k = 0; k < COT__STATES; k++) {
        if (!u->state[k]) continue;
        there[k] = host[k] = (cot__view){u->state[k], u->dtype, 1, &u->n, &one};
        u->state[k] = there[k].data = (char *)all->data + k * bytes;
        t->backend->copy_in(&there[k], &host[k]);
    }
    t->backend->update(u);
    for (int k = 0; k < COT__STATES; k++)
        if (u->state[k]) t->backend->copy_out(&host[k], &there[k]);
    cot__storage_release(t, all);
    return true;
}

bool cot__update_leaf(cot_tape *t, const char *op, uint32_t i, cot__update *u, cot__assigner who) {
    cot__node *leaf = &t->nodes[i];
    bool       moves = (leaf->flags & COT__HAS_GRAD) != 0;
    if (!moves && !u->state[COT__AVERAGE]) return true;
    if (moves) cot__settle(t, i);
    cot__view w = cot__look(t, i);
    float     narrow = (float)leaf->extra.number;
    u->dtype = w.dtype, u->n = cot__size_at(t, i), u->w = w.data;
    if (!moves) u->g = NULL;
    else if (cot__is_tensor(leaf)) u->g = leaf->extra.grad->data;
    else u->g = w.dtype == COT_F64 ? (const void *)&leaf->extra.number : &narrow;
    if (!run_pass(t, op, u)) return false;
    if (moves) cot__note_assign(t, i, who);
    return true;
}

/* ---- along the gradient ---------------------------------------------------------------------- */

/* A step in recorded operations, for 16-bit floats. */
static void step_recorded(cot_tape *t, cot_var x, uint32_t i, double rate) {
    cot_mark m = cot__mark(t);
    uint32_t at = t->assigned_at;
    cot_no_grad_open(t);
    cot_var next = cot__descended(cot_detach(x), rate, cot_grad(x));
    cot_no_grad_close(t);
    if (t->status == COT_OK) (cot_assign)(x, next);
    /* the assignment counts from the time of the step, not from the cot_assign inside it */
    t->assigned_at = at;
    cot__rewind(t, m);
    if (t->status == COT_OK) cot__note_time(t, i, COT__SGD_STEP);
}

cot_status cot_sgd_step(int n, const cot_var *xs, double rate) {
    cot_tape *t = cot__tape_of(n, xs);
    uint32_t  i;
    if (n == 0) return COT_OK;
    if (!t) return cot__status_of(n, xs);
    if (!cot__is_rate(rate))
        cot__fail(t, COT_VALUE, "[sgd_step] the rate is %g; it must be finite and not negative", rate);
    for (int k = 0; k < n && t->status == COT_OK; k++)
        if (cot__operand(t, xs[k], "sgd_step", "", &i) && t->nodes[i].op != OP_leaf)
            cot__fail(t, COT_VALUE, "[sgd_step] xs[%d] is not a leaf", k);
    cot_optim_options plain = {.kind = COT_SGD};
    for (int k = 0; k < n && t->status == COT_OK; k++) {
        cot__update u = cot__update_of(&plain, rate, 0, 1);
        i = cot__index(xs[k]);
        cot_dtype d = cot__dtype_at(&t->nodes[i]);
        if (d == COT_F64 || d == COT_F32) cot__update_leaf(t, "sgd_step", i, &u, COT__SGD_STEP);
        else if (t->nodes[i].flags & COT__HAS_GRAD) step_recorded(t, xs[k], i, rate);
    }
    return t->status;
}

/* ---- AdamW ----------------------------------------------------------------------------------- */

static bool check_settings(cot_tape *t, const cot_adamw *o) {
    bool rates = cot__is_rate(o->rate) && cot__is_rate(o->eps) && cot__is_rate(o->decay);
    if (o->step >= 1 && rates && o->beta1 >= 0 && o->beta1 < 1 && o->beta2 >= 0 && o->beta2 < 1) return true;
    cot__fail(
        t, COT_VALUE,
        "[adamw_step] step %lld, rate %g, betas %g and %g, eps %g, decay %g; steps count from 1, betas are in [0, 1), "
        "the others finite and not negative",
        (long long)o->step, o->rate, o->beta1, o->beta2, o->eps, o->decay);
    return false;
}

static bool check_moments(cot_tape *t, int k, uint32_t i, const void *m, const void *v) {
    if ((m && v) || cot__size_at(t, i) == 0) return true;
    cot__fail(
        t, COT_VALUE,
        "[adamw_step] the moments of xs[%d] are NULL; they are arrays of %lld elements of its dtype, zero at first", k,
        (long long)cot__size_at(t, i));
    return false;
}

cot_status cot_adamw_step(int n, const cot_var *xs, void *const *m, void *const *v, cot_adamw a) {
    cot_tape         *t = cot__tape_of(n, xs);
    cot_optim_options o = cot__optim_defaults(
        (cot_optim_options){.kind = COT_ADAMW, .beta1 = a.beta1, .beta2 = a.beta2, .eps = a.eps});
    uint32_t i;
    a.beta1 = o.beta1, a.beta2 = o.beta2, a.eps = o.eps;
    if (n == 0) return COT_OK;
    if (!t || !check_settings(t, &a)) return cot__status_of(n, xs);
    for (int k = 0; k < n; k++)
        if (!cot__weight(t, "adamw_step", "xs", k, xs[k], &i) ||
            !check_moments(t, k, i, m ? m[k] : NULL, v ? v[k] : NULL))
            return t->status;
    for (int k = 0; k < n; k++) {
        cot__update u = cot__update_of(&o, a.rate, a.decay, a.step);
        if (m && v) u.state[COT__MEAN] = m[k], u.state[COT__SQUARE] = v[k];
        if (!cot__update_leaf(t, "adamw_step", cot__index(xs[k]), &u, COT__ADAMW_STEP)) break;
    }
    return t->status;
}
