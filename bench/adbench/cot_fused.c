/* Style `fused`: scalars too, but a product with a sum, an inner product or a long sum is one
 * operation on the tape. GMM takes a few points at a time over a short tape that stays in cache. */
#include "cot_common.h"

#include <math.h>
#include <string.h>

#define mul_add(a, b, c) cot_fma(a, b, c)

/* For one or two products a multiply and an fma are cheaper than a list of operands. */
static cot_var dot(int n, const cot_var *a, const cot_var *b) {
    if (n > 2)
        return cot_dot_of(n, a, b);
    const cot_var first = cot_mul(a[0], b[0]);
    return n == 1 ? first : cot_fma(a[1], b[1], first);
}
static cot_var squares(int n, const cot_var *a) {
    if (n > 2)
        return cot_dot_of(n, a, a);
    const cot_var first = cot_square(a[0]);
    return n == 1 ? first : cot_fma(a[1], a[1], first);
}
static cot_var sum(int n, const cot_var *a) { return cot_sum_of(n, a); }

#include "cot_problems.inc"

/* ---- GMM ------------------------------------------------------------------------------------- */

enum { GMM_TAPE = 6000 }; /* operations */
#define ROOT_HALF 0.70710678118654752440

struct parts {
    int      d, k;
    cot_var *alphas, *means, *icf;      /* the parameters (icf: packed as in the file) */
    cot_var *offset;                    /* (k): leaves for the points */
    /* (k, d(d+3)/2): leaves for the points; row i is -(R mu)[i], R[i][0] … R[i][i] */
    cot_var *rows;
    cot_var *main_term, *x, *y;         /* (k), (1 + d): 1 and the point, (k, d) */
    cot_var *total;                     /* (chunk) */
};

/* Points recorded before a sweep. */
static int chunk_of(const struct ab_gmm *g) { return 1 + GMM_TAPE / (g->k * (2 * g->d + 4)); }

static struct parts gmm_parts(const struct ab_cot *s) {
    const struct ab_gmm *g = &s->in->u.gmm;
    const size_t         d = (size_t)g->d, k = (size_t)g->k, row = d * (d + 1) / 2;
    struct parts         p = {.d = g->d, .k = g->k, .alphas = s->vars};
    p.means = p.alphas + k;
    p.icf = p.means + k * d;
    p.offset = p.icf + k * row;
    p.rows = p.offset + k;
    p.main_term = p.rows + k * (row + d);
    p.x = p.main_term + k;
    p.y = p.x + 1 + d;
    p.total = p.y + k * d;
    return p;
}

static void *gmm_open(const struct ab_instance *in, struct ab_error *error) {
    const struct ab_gmm *g = &in->u.gmm;
    const size_t         d = (size_t)g->d, k = (size_t)g->k, row = d * (d + 1) / 2;
    struct ab_cot       *s =
        ab_cot_create(in, in->param_count + 2 * k + 2 * k * d + k * row + 1 + d + (size_t)chunk_of(g), 0, error);
    if (!s)
        return NULL;
    for (size_t i = 0; i < in->param_count; i++)
        s->vars[i] = cot_scalar(s->tape, in->params[i]);
    s->start = cot_tape_mark(s->tape);
    return s;
}

/* The place of the factor of row i and column j < i among the packed factors of its component,
 * which are stored by columns. */
static int below(int d, int i, int j) { return d + j * d - j * (j + 1) / 2 + i - j - 1; }

/* Makes the leaves that the points read, with values computed from the present parameters. */
static void make_leaves(cot_tape *t, const struct ab_gmm *g, struct parts *p) {
    const int d = p->d, row = d * (d + 1) / 2;
    cot_var  *rows = p->rows;
    p->x[0] = cot_constant(t, 1);
    for (int c = 0; c < p->k; c++) {
        const double *q = g->icf + (size_t)c * (size_t)row, *mean = g->means + (size_t)c * (size_t)d;
        double        offset = g->alphas[c];
        for (int i = 0; i < d; rows += 2 + i++) {
            double shift = 0;
            offset += q[i];
            for (int j = 0; j <= i; j++) {
                const double factor = ROOT_HALF * (j < i ? q[below(d, i, j)] : exp(q[i]));
                shift -= factor * mean[j];
                rows[1 + j] = cot_scalar(t, factor);
            }
            rows[0] = cot_scalar(t, shift);
        }
        p->offset[c] = cot_scalar(t, offset);
    }
}

/* Goes row by row, and through all components of a row before the next row. Neighbours on the tape
 * then do not depend on each other, in either direction. */
static cot_var record_point(cot_tape *t, const struct parts *p, const double *x) {
    const int      d = p->d, k = p->k, stride = d * (d + 3) / 2;
    const cot_var *row = p->rows;
    cot_var       *square = p->main_term;
    for (int i = 0; i < d; i++)
        p->x[1 + i] = cot_constant(t, x[i]);
    for (int c = 0; c < k; c++)
        p->y[c * d] = cot_fma(row[c * stride + 1], p->x[1], row[c * stride]);
    if (d > 1) {
        row += 2;
        for (int c = 0; c < k; c++)
            p->y[c * d + 1] = cot_fma(row[c * stride + 1], p->x[1], row[c * stride]);
        for (int c = 0; c < k; c++)
            p->y[c * d + 1] = cot_fma(row[c * stride + 2], p->x[2], p->y[c * d + 1]);
    }
    for (int i = 2; i < d; i++) {
        row += 1 + i;
        for (int c = 0; c < k; c++)
            p->y[c * d + i] = cot_dot_of(2 + i, row + c * stride, p->x);
    }
    for (int c = 0; c < k; c++)
        square[c] = d > 2 ? cot_dot_of(d, p->y + c * d, p->y + c * d) : cot_square(p->y[c * d]);
    for (int c = 0; c < k && d == 2; c++)
        square[c] = cot_fma(p->y[c * d + 1], p->y[c * d + 1], square[c]);
    for (int c = 0; c < k; c++)
        p->main_term[c] = cot_sub(p->offset[c], square[c]);
    return cot_logsumexp_of(k, p->main_term);
}

/* Records the terms without points, plus the inner product of the points' leaves with their
 * gradients, as functions of the parameters. */
static cot_var record_rest(const struct ab_gmm *g, const struct parts *p) {
    const int      d = p->d, row = d * (d + 1) / 2;
    const cot_var *rows = p->rows;
    cot_var        f = cot_mul(-(double)g->n, cot_logsumexp_of(p->k, p->alphas));
    for (int c = 0; c < p->k; c++) {
        const cot_var *q = p->icf + (size_t)c * (size_t)row, *mean = p->means + (size_t)c * (size_t)d,
                      logs = cot_sum_of(d, q);
        const double   o = cot_grad_value(p->offset[c]), half = 0.5 * g->gamma * g->gamma;
        for (int i = 0; i < d; rows += 2 + i++) {
            const double shift = cot_grad_value(rows[0]);
            p->y[i] = cot_exp(q[i]);
            for (int j = 0; j <= i; j++) {
                /* ROOT_HALF Q[i][j] (its gradient - mu[j] that of the shift) */
                const cot_var weight = cot_sub(cot_grad_value(rows[1 + j]), cot_mul(shift, mean[j]));
                f = cot_fma(cot_mul(ROOT_HALF, weight), j < i ? q[below(d, i, j)] : p->y[i], f);
            }
        }
        f = cot_fma(half, squares(d, p->y), f);
        if (row > d)
            f = cot_fma(half, squares(row - d, q + d), f);
        f = cot_fma(o, p->alphas[c], f);
        f = cot_fma(o - g->m, logs, f);
    }
    return f;
}

static bool gmm_run(void *state, double *gradient, struct ab_error *error) {
    struct ab_cot       *s = state;
    const struct ab_gmm *g = &s->in->u.gmm;
    struct parts         p = gmm_parts(s);
    const int            chunk = chunk_of(g);
    cot_tape_zero_grads(s->tape);
    make_leaves(s->tape, g, &p);
    const cot_mark mark = cot_tape_mark(s->tape);
    for (int i = 0; i < g->n;) {
        int n = 0;
        for (; n < chunk && i < g->n; i++)
            p.total[n++] = record_point(s->tape, &p, g->x + (size_t)i * (size_t)g->d);
        if (cot_backward(cot_sum_of(n, p.total)) != COT_OK)
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
