/* Style `fused`: scalars still, but a product with a sum, an inner product or a long sum is one operation on the tape; and
 * GMM goes a few points at a time over a short tape that stays in cache. */
#include "cot_common.h"

#include <math.h>
#include <string.h>

#define mul_add(a, b, c) cot_fma(a, b, c)

/* Up to two products a multiply and an fma are cheaper than a list of operands. */
static cot_var dot(int n, const cot_var *a, const cot_var *b) {
    if (n > 2)
        return cot_dot_of(n, a, b);
    const cot_var first = cot_mul(a[0], b[0]);
    return n == 1 ? first : cot_fma(a[1], b[1], first);
}
static cot_var sum(int n, const cot_var *a) { return cot_sum_of(n, a); }

#include "cot_problems.inc"

/* ---- GMM ----------------------------------------------------------------------------------------------------------
 * Points meet the parameters only through o_c = alpha_c + sum q, the means, and Q with its diagonal exp(q). Those are leaves of
 * their own, and each point adds to their gradients and is forgotten. At the end one more sweep takes what arrived at o and exp(q)
 * on to alpha and q, together with the terms that have no points in them. */

enum { GMM_TAPE = 6000 }; /* operations */

struct parts {
    int      d, k;
    cot_var *alphas, *means, *icf;      /* the parameters (icf: packed as in the file) */
    cot_var *offset, *expq;             /* (k), (k, d): leaves for the points */
    cot_var *rows;                      /* (k, d(d+1)/2): Q by rows, from expq and icf */
    cot_var *main_term, *e, *y, *z;     /* (k), (k), (d), (d) */
    cot_var  minus_half;                /* one constant, not one for each use: a number beside two vars is a node of its own */
};

static struct parts gmm_parts(const struct ab_cot *s) {
    const struct ab_gmm *g = &s->in->u.gmm;
    const size_t         d = (size_t)g->d, k = (size_t)g->k, row = d * (d + 1) / 2;
    struct parts         p = {.d = g->d, .k = g->k, .alphas = s->vars};
    p.means = p.alphas + k;
    p.icf = p.means + k * d;
    p.offset = p.icf + k * row;
    p.expq = p.offset + k;
    p.rows = p.expq + k * d;
    p.main_term = p.rows + k * row;
    p.e = p.main_term + k;
    p.y = p.e + k;
    p.z = p.y + d;
    return p;
}

static void *gmm_open(const struct ab_instance *in, struct ab_error *error) {
    const struct ab_gmm *g = &in->u.gmm;
    const size_t         d = (size_t)g->d, k = (size_t)g->k, row = d * (d + 1) / 2;
    struct ab_cot       *s = ab_cot_create(in, in->param_count + 3 * k + k * d + k * row + 2 * d, 0, error);
    if (!s)
        return NULL;
    for (size_t i = 0; i < in->param_count; i++)
        s->vars[i] = cot_scalar(s->tape, in->params[i]);
    s->start = cot_tape_mark(s->tape);
    return s;
}

/* The largest value is subtracted as a plain number: its derivative cancels. */
static cot_var log_sum_exp(int n, const cot_var *v, cot_var *e) {
    double top = cot_value(v[0]);
    for (int i = 1; i < n; i++)
        top = cot_value(v[i]) > top ? cot_value(v[i]) : top;
    for (int i = 0; i < n; i++)
        e[i] = cot_exp(cot_sub(v[i], top));
    return cot_add(cot_log(cot_sum_of(n, e)), top);
}

/* The leaves that points see, at the parameters' present values. */
static void make_leaves(cot_tape *t, const struct ab_gmm *g, struct parts *p) {
    const int d = p->d, row = d * (d + 1) / 2;
    p->minus_half = cot_constant(t, -0.5);
    for (int c = 0; c < p->k; c++) {
        const double *q = g->icf + (size_t)c * (size_t)row;
        cot_var      *rows = p->rows + (size_t)c * (size_t)row, *l = p->icf + (size_t)c * (size_t)row + d;
        double        offset = g->alphas[c];
        for (int i = 0; i < d; i++) {
            offset += q[i];
            rows[i * (i + 1) / 2 + i] = p->expq[c * d + i] = cot_scalar(t, exp(q[i]));
            for (int j = i + 1; j < d; j++)
                rows[j * (j + 1) / 2 + i] = *l++;
        }
        p->offset[c] = cot_scalar(t, offset);
    }
}

static cot_var record_point(const struct parts *p, const double *x) {
    const int d = p->d, row = d * (d + 1) / 2;
    for (int c = 0; c < p->k; c++) {
        const cot_var *Q = p->rows + (size_t)c * (size_t)row;
        for (int i = 0; i < d; i++)
            p->z[i] = cot_sub(x[i], p->means[c * d + i]);
        for (int i = 0; i < d; Q += ++i)
            p->y[i] = dot(i + 1, Q, p->z);
        p->main_term[c] = cot_fma(p->minus_half, dot(d, p->y, p->y), p->offset[c]);
    }
    return log_sum_exp(p->k, p->main_term, p->e);
}

/* What has no points in it, plus <gradient of offset, offset(alpha, q)> + <gradient of expq, exp(q)>. */
static cot_var record_rest(const struct ab_gmm *g, const struct parts *p) {
    const int d = p->d, row = d * (d + 1) / 2;
    cot_var   f = cot_mul(-(double)g->n, log_sum_exp(p->k, p->alphas, p->e));
    for (int c = 0; c < p->k; c++) {
        const cot_var *q = p->icf + (size_t)c * (size_t)row, logs = cot_sum_of(d, q);
        const double   o = cot_grad_value(p->offset[c]), half = 0.5 * g->gamma * g->gamma;
        for (int i = 0; i < d; i++) {
            p->y[i] = cot_exp(q[i]);
            f = cot_fma(cot_grad_value(p->expq[c * d + i]), p->y[i], f);
        }
        f = cot_fma(half, dot(d, p->y, p->y), f);
        if (row > d)
            f = cot_fma(half, dot(row - d, q + d, q + d), f);
        f = cot_fma(o, p->alphas[c], f);
        f = cot_fma(o - g->m, logs, f);
    }
    return f;
}

static bool gmm_run(void *state, double *gradient, struct ab_error *error) {
    struct ab_cot       *s = state;
    const struct ab_gmm *g = &s->in->u.gmm;
    struct parts         p = gmm_parts(s);
    const int            chunk = 1 + GMM_TAPE / (g->k * (2 * g->d + 8));
    cot_tape_zero_grads(s->tape);
    make_leaves(s->tape, g, &p);
    const cot_mark mark = cot_tape_mark(s->tape);
    for (int i = 0; i < g->n;) {
        cot_var f = cot_constant(s->tape, 0);
        for (int c = 0; c < chunk && i < g->n; c++, i++)
            f = cot_add(f, record_point(&p, g->x + (size_t)i * (size_t)g->d));
        if (cot_backward(f) != COT_OK)
            return ab_cot_finish(s, error);
        if (i <= chunk)
            ab_cot_note_peak(s);
        cot_tape_rewind(s->tape, mark);
    }
    cot_backward(record_rest(g, &p));
    for (size_t i = 0; i < s->in->param_count; i++)
        gradient[i] = cot_grad_value(s->vars[i]);
    return ab_cot_finish(s, error);
}

const struct ab_method ab_methods_fused[] = {
    {AB_GMM, "fused", gmm_open, gmm_run, ab_cot_peak_bytes, ab_cot_close},
    {AB_BA, "fused", ba_open, ba_run, ab_cot_peak_bytes, ab_cot_close},
    {AB_BAFULL, "fused", ba_open, ba_run, ab_cot_peak_bytes, ab_cot_close},
    {AB_LSTM, "fused", lstm_open, lstm_run, ab_cot_peak_bytes, ab_cot_close},
    {AB_HAND, "fused", hand_open, hand_run, ab_cot_peak_bytes, ab_cot_close},
    {AB_HAND_COMPLICATED, "fused", hand_open, hand_run, ab_cot_peak_bytes, ab_cot_close},
    {.style = NULL},
};
