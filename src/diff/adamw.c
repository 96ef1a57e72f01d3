/* adamw.c: one step of AdamW over leaves, in one pass over weight, gradient and moments.
 *
 * The moments are the caller's arrays: the tape keeps no state of an optimiser. Elements are independent, so the work is shared out freely. */
#include "base/parallel.h"
#include "ops/inplace.h"
#include "tape/tape.h"

typedef struct pass {
    cot_dtype   dtype;
    void       *w, *m, *v;
    const void *g;
    int64_t     n, parts;
    double      keep, b1, b2, rate, spread, eps; /* keep: 1 - rate decay; rate and spread include the correction of the moments' start at 0 */
} pass;

#define PASS(NAME, T, SQRT)                                                                                                  \
    static void NAME(const pass *p, int64_t start, int64_t stop) {                                                           \
        T *restrict w = p->w, *restrict m = p->m, *restrict v = p->v;                                                        \
        const T *restrict g = p->g;                                                                                          \
        const T keep = (T)p->keep, b1 = (T)p->b1, c1 = (T)(1 - p->b1), b2 = (T)p->b2, c2 = (T)(1 - p->b2);                   \
        const T rate = (T)p->rate, spread = (T)p->spread, eps = (T)p->eps;                                                   \
        for (int64_t i = start; i < stop; i++) {                                                                             \
            m[i] = b1 * m[i] + c1 * g[i];                                                                                    \
            v[i] = b2 * v[i] + c2 * (g[i] * g[i]);                                                                           \
            w[i] = keep * w[i] - rate * m[i] / (SQRT(v[i]) * spread + eps);                                                  \
        }                                                                                                                    \
    }
PASS(pass_f64, double, sqrt)
PASS(pass_f32, float, sqrtf)

static void run_pass(void *ctx, int64_t part) {
    const pass *p = ctx;
    (p->dtype == COT_F64 ? pass_f64 : pass_f32)(p, cot__part_start(p->n, p->parts, part), cot__part_start(p->n, p->parts, part + 1));
}

static bool check_settings(cot_tape *t, const cot_adamw *o) {
    if (o->step >= 1 && o->rate >= 0 && o->beta1 >= 0 && o->beta1 < 1 && o->beta2 >= 0 && o->beta2 < 1 && o->eps >= 0 && o->decay >= 0) return true;
    cot__fail(t, COT_VALUE,
              "[adamw_step] step %lld, rate %g, betas %g and %g, eps %g, decay %g; steps count from 1, betas are in [0, 1), the others not negative",
              (long long)o->step, o->rate, o->beta1, o->beta2, o->eps, o->decay);
    return false;
}

static bool check_leaf(cot_tape *t, cot_var x, int k, const void *m, const void *v, uint32_t *i) {
    if (!cot__operand(t, x, "adamw_step", "", i)) return false;
    const cot__node *n = &t->nodes[*i];
    cot_dtype        d = cot__dtype_at(n);
    if (n->op != OP_leaf) cot__fail(t, COT_VALUE, "[adamw_step] xs[%d] is not a leaf", k);
    else if (d != COT_F64 && d != COT_F32)
        cot__fail(t, COT_DTYPE, "[adamw_step] xs[%d] has dtype %s; weights are f32 or f64: keep those, and cast them for the computation", k, cot__dtype_name(d));
    else if ((!m || !v) && cot__size_at(t, *i) > 0)
        cot__fail(t, COT_VALUE, "[adamw_step] the moments of xs[%d] are NULL; they are arrays of %lld elements of its dtype, zero at first", k,
                  (long long)cot__size_at(t, *i));
    else return true;
    return false;
}

cot_status cot_adamw_step(int n, const cot_var *xs, void *const *m, void *const *v, cot_adamw o) {
    cot_tape *t = cot__tape_of(n, xs);
    if (n == 0) return COT_OK;
    if (!t || !check_settings(t, &o)) return cot__status_of(n, xs);
    for (int k = 0; k < n; k++) { /* all are checked before any is changed */
        uint32_t i;
        if (!check_leaf(t, xs[k], k, m ? m[k] : NULL, v ? v[k] : NULL, &i)) return t->status;
    }
    double first = 1 - pow(o.beta1, (double)o.step), second = 1 - pow(o.beta2, (double)o.step);
    for (int k = 0; k < n; k++) {
        uint32_t   i = cot__index(xs[k]);
        cot__node *leaf = &t->nodes[i];
        if (!(leaf->flags & COT__HAS_GRAD)) continue;
        cot__view w = cot__view_of(t, i);
        float     narrow = (float)leaf->extra.number;
        pass      p = {w.dtype, w.data, m[k], v[k], NULL, cot__size_at(t, i), 1, 1 - o.rate * o.decay, o.beta1, o.beta2, o.rate / first, 1 / sqrt(second), o.eps};
        p.g = cot__is_tensor(leaf) ? leaf->extra.grad->data : w.dtype == COT_F64 ? (const void *)&leaf->extra.number : &narrow;
        p.parts = cot__parts(p.n, 8, 64);
        cot__parallel(p.parts, run_pass, &p);
        cot__note_assign(t, i);
    }
    return t->status;
}
