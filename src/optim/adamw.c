/* adamw.c: one step of AdamW over leaves, in one pass over weight, gradient and moments.
 *
 * The moments are the caller's arrays: the tape keeps no state of an optimiser. */
#include "optim/optim.h"
#include "pending/pending.h"

#include "backend/elements.h"
#include "base/math/elementary.h"
#include "tape/tape.h"

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

static bool check_leaf(cot_tape *t, cot_var x, int k, const void *m, const void *v, uint32_t *i) {
    if (!cot__operand(t, x, "adamw_step", "", i)) return false;
    const cot__node *n = &t->nodes[*i];
    cot_dtype        d = cot__dtype_at(n);
    if (n->op != OP_leaf) cot__fail(t, COT_VALUE, "[adamw_step] xs[%d] is not a leaf", k);
    else if (d != COT_F64 && d != COT_F32)
        cot__fail(
            t, COT_DTYPE,
            "[adamw_step] xs[%d] has dtype %s; weights are f32 or f64: keep those, and cast them for the computation",
            k, cot__dtype_name(d));
    else if ((!m || !v) && cot__size_at(t, *i) > 0)
        cot__fail(
            t, COT_VALUE,
            "[adamw_step] the moments of xs[%d] are NULL; they are arrays of %lld elements of its dtype, zero at first",
            k, (long long)cot__size_at(t, *i));
    else return true;
    return false;
}

/* Replaces settings that were left out (0) by their defaults. */
static cot_adamw with_defaults(cot_adamw o) {
    if (o.beta1 == 0) o.beta1 = 0.9;
    if (o.beta2 == 0) o.beta2 = 0.999;
    if (o.eps == 0) o.eps = 1e-8;
    return o;
}

/* The caller's moments lie on the host, so a device gets a copy of them and gives it back. */
static bool run_pass(cot_tape *t, cot__adamw_pass *p) {
    if (cot__on_host(t->backend)) return t->backend->adamw(p), true;
    size_t        bytes = (size_t)p->n * (size_t)cot__dtype_size(p->dtype);
    cot__storage *both = cot__storage_create(t, 2 * bytes, "adamw_step");
    int64_t       one = 1;
    cot__view     host[2] = {{p->m, p->dtype, 1, &p->n, &one}, {p->v, p->dtype, 1, &p->n, &one}};
    if (!both) return false;
    cot__view there[2] = {host[0], host[1]};
    p->m = there[0].data = both->data;
    p->v = there[1].data = (char *)both->data + bytes;
    for (int k = 0; k < 2; k++) t->backend->copy_in(&there[k], &host[k]);
    t->backend->adamw(p);
    for (int k = 0; k < 2; k++) t->backend->copy_out(&host[k], &there[k]);
    cot__storage_release(t, both);
    return true;
}

cot_status cot_adamw_step(int n, const cot_var *xs, void *const *m, void *const *v, cot_adamw options) {
    cot_adamw o = with_defaults(options);
    cot_tape *t = cot__tape_of(n, xs);
    if (n == 0) return COT_OK;
    if (!t || !check_settings(t, &o)) return cot__status_of(n, xs);
    for (int k = 0; k < n; k++) { /* all are checked before any is changed */
        uint32_t i;
        if (!check_leaf(t, xs[k], k, m ? m[k] : NULL, v ? v[k] : NULL, &i)) return t->status;
    }
    double first = 1 - cot__pow(o.beta1, (double)o.step), second = 1 - cot__pow(o.beta2, (double)o.step);
    for (int k = 0; k < n; k++) {
        uint32_t   i = cot__index(xs[k]);
        cot__node *leaf = &t->nodes[i];
        if (!(leaf->flags & COT__HAS_GRAD)) continue;
        cot__settle(t, i);
        cot__view w = cot__look(t, i);
        float     narrow = (float)leaf->extra.number;
        const void *g      = cot__is_tensor(leaf) ? leaf->extra.grad->data
                             : w.dtype == COT_F64 ? (const void *)&leaf->extra.number
                                                  : &narrow;
        cot__adamw_pass p = {w.dtype, cot__size_at(t, i), w.data, m[k], v[k], g, 1 - o.rate * o.decay, o.beta1,
                             o.beta2, o.rate / first, 1 / sqrt(second), o.eps};
        if (!run_pass(t, &p)) return t->status;
        cot__note_assign(t, i, COT__ADAMW_STEP);
    }
    return t->status;
}
