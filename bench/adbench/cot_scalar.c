/* Style `scalar`: the objectives in the simplest way, one operation at a time on scalars, on one
 * tape. */
#include "cot_common.h"

#include <string.h>

#define mul_add(a, b, c) cot_add(cot_mul(a, b), c)

static cot_var dot(int n, const cot_var *a, const cot_var *b) {
    cot_var total = cot_mul(a[0], b[0]);
    for (int i = 1; i < n; i++)
        total = cot_add(total, cot_mul(a[i], b[i]));
    return total;
}

static cot_var sum(int n, const cot_var *a) {
    cot_var total = a[0];
    for (int i = 1; i < n; i++)
        total = cot_add(total, a[i]);
    return total;
}

#include "cot_problems.inc"

/* ---- GMM ------------------------------------------------------------------------------------- */

/* vars: params, exp(q) (k, d), offset (k), main (k), y (d), z (d) */
static void *gmm_open(const struct ab_instance *in, struct ab_error *error) {
    struct ab_cot *s = ab_cot_create(in, in->param_count + in->work_count, 0, error);
    if (!s)
        return NULL;
    for (size_t i = 0; i < in->param_count; i++)
        s->vars[i] = cot_scalar(s->tape, in->params[i]);
    s->start = cot_tape_mark(s->tape);
    return s;
}

/* The largest value is subtracted as a plain number: its derivative cancels. */
static cot_var log_sum_exp(int n, const cot_var *v) {
    double top = cot_value(v[0]);
    for (int i = 1; i < n; i++)
        top = cot_value(v[i]) > top ? cot_value(v[i]) : top;
    cot_var total = cot_exp(cot_sub(v[0], top));
    for (int i = 1; i < n; i++)
        total = cot_add(total, cot_exp(cot_sub(v[i], top)));
    return cot_add(cot_log(total), top);
}

/* alpha + sum q - |Q (x - mean)|^2 / 2 */
static cot_var record_component(int d, const double *x, cot_var offset, const cot_var *mean, const cot_var *expq,
                                const cot_var *l, cot_var *y, cot_var *z) {
    for (int i = 0; i < d; i++) {
        z[i] = cot_sub(x[i], mean[i]);
        y[i] = cot_mul(expq[i], z[i]);
    }
    for (int i = 0; i < d; i++)
        for (int j = i + 1; j < d; j++)
            y[j] = cot_add(y[j], cot_mul(*l++, z[i]));
    return cot_sub(offset, cot_mul(0.5, dot(d, y, y)));
}

/* Records the terms without points: exp(q), the offsets, the prior. Returns their value. */
static cot_var record_prefix(const struct ab_cot *s, cot_var *expq, cot_var *offset) {
    const struct ab_gmm *g = &s->in->u.gmm;
    const int            d = g->d, k = g->k, row = d * (d + 1) / 2;
    const cot_var       *alphas = s->vars, *icf = alphas + k + (size_t)k * (size_t)d;
    cot_var              f = cot_constant(s->tape, g->constant);
    for (int c = 0; c < k; c++) {
        const cot_var *q = icf + (size_t)c * (size_t)row;
        for (int i = 0; i < d; i++)
            expq[c * d + i] = cot_exp(q[i]);
        const cot_var logs = sum(d, q);
        cot_var       frobenius = dot(d, expq + c * d, expq + c * d);
        if (row > d)
            frobenius = cot_add(frobenius, dot(row - d, q + d, q + d));
        f = cot_add(f, cot_sub(cot_mul(0.5 * g->gamma * g->gamma, frobenius), cot_mul((double)g->m, logs)));
        offset[c] = cot_add(alphas[c], logs);
    }
    return cot_sub(f, cot_mul((double)g->n, log_sum_exp(k, alphas)));
}

/* The objective is a sum over points, and gradients accumulate: a few points are recorded, swept
 * and forgotten at a time, so that the tape stays in cache however many points there are. */
enum { GMM_TAPE = 12000 }; /* operations */

static bool gmm_run(void *state, double *gradient, struct ab_error *error) {
    struct ab_cot       *s = state;
    const struct ab_gmm *g = &s->in->u.gmm;
    const int            d = g->d, k = g->k, row = d * (d + 1) / 2;
    const cot_var       *means = s->vars + k, *icf = means + (size_t)k * (size_t)d;
    cot_var             *expq = s->vars + s->in->param_count, *offset = expq + (size_t)k * (size_t)d;
    cot_var             *main_term = offset + k, *y = main_term + k, *z = y + d;
    const int            chunk = 1 + GMM_TAPE / (k * (d * d + 4 * d + 8));
    cot_tape_zero_grads(s->tape);
    cot_backward(record_prefix(s, expq, offset));
    const cot_mark prefix = cot_tape_mark(s->tape);
    for (int p = 0; p < g->n;) {
        cot_var f = cot_constant(s->tape, 0);
        for (int i = 0; i < chunk && p < g->n; i++, p++) {
            for (int c = 0; c < k; c++)
                main_term[c] = record_component(d, g->x + (size_t)p * (size_t)d, offset[c], means + c * d, expq + c * d,
                                                icf + (size_t)c * (size_t)row + d, y, z);
            f = cot_add(f, log_sum_exp(k, main_term));
        }
        cot_backward(f);
        if (p <= chunk)
            ab_cot_note_peak(s);
        cot_tape_rewind(s->tape, prefix);
    }
    for (size_t i = 0; i < s->in->param_count; i++)
        gradient[i] = cot_grad_value(s->vars[i]);
    return ab_cot_finish(s, error);
}

const struct ab_method ab_methods_scalar[] = {
    {AB_GMM, "scalar", gmm_open, gmm_run, ab_cot_peak_bytes, ab_cot_close},
    {AB_BA, "scalar", ba_open, ba_run, ab_cot_peak_bytes, ab_cot_close},
    {AB_BAFULL, "scalar", ba_open, ba_run, ab_cot_peak_bytes, ab_cot_close},
    {AB_LSTM, "scalar", lstm_open, lstm_run, ab_cot_peak_bytes, ab_cot_close},
    {AB_HAND, "scalar", hand_open, hand_run, ab_cot_peak_bytes, ab_cot_close},
    {AB_HAND_COMPLICATED, "scalar", hand_open, hand_run, ab_cot_peak_bytes, ab_cot_close},
    {.style = NULL},
};
