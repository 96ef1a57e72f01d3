/* Style `tensor`: GMM in matrix products. All points meet all components in one product X Q' (n, k d).
 *
 * Y = X Q' - mu Q' is computed rather than (X - mu) Q': it needs no (n, k, d) copy of the differences and saves a third of the
 * products, at the price of a cancellation that matters only where |x| is much larger than |x - mu|. */
#include "cot_common.h"

#include <stdlib.h>

/* The three leaves and two constants that open makes. */
enum { ALPHAS, MEANS, ICF, POINTS, WHERE, COUNT };

/* WHERE (d, k d): element [i][c d + j] is the place of Q_c[j][i] in the flattened (k, d + d(d-1)/2 + 1) array whose rows are
 * exp(q), l, 0. */
static int64_t *make_places(const struct ab_gmm *g) {
    const int64_t d = g->d, k = g->k, width = d * (d + 1) / 2 + 1;
    int64_t      *place = malloc((size_t)(d * k * d) * sizeof *place);
    for (int64_t c = 0; place && c < k; c++)
        for (int64_t i = 0, l = d; i < d; i++)
            for (int64_t j = 0; j < d; j++)
                place[i * k * d + c * d + j] = c * width + (j < i ? width - 1 : j == i ? i : l++);
    return place;
}

static void *gmm_open(const struct ab_instance *in, struct ab_error *error) {
    const struct ab_gmm *g = &in->u.gmm;
    const int64_t        d = g->d, k = g->k, row = d * (d + 1) / 2;
    int64_t             *place = make_places(g);
    struct ab_cot       *s = ab_cot_create(in, COUNT, 0, error);
    if (!s || !place) {
        ab_fail(error, "not enough memory");
        free(place);
        if (s)
            ab_cot_close(s);
        return NULL;
    }
    s->vars[ALPHAS] = cot_tensor(s->tape, COT_F64, COT_SHAPE(k), g->alphas);
    s->vars[MEANS] = cot_tensor(s->tape, COT_F64, COT_SHAPE(k, d), g->means);
    s->vars[ICF] = cot_tensor(s->tape, COT_F64, COT_SHAPE(k, row), g->icf);
    s->vars[POINTS] = cot_wrap(s->tape, COT_F64, COT_SHAPE(g->n, d), g->x);
    s->vars[WHERE] = cot_data(s->tape, COT_I64, COT_SHAPE(d, k * d), place);
    s->start = cot_tape_mark(s->tape);
    free(place);
    return s;
}

static cot_var record_gmm(const struct ab_cot *s) {
    const struct ab_gmm *g = &s->in->u.gmm;
    const int64_t        d = g->d, k = g->k, n = g->n, row = d * (d + 1) / 2;
    const cot_var        alphas = s->vars[ALPHAS], icf = s->vars[ICF];
    const cot_var        q = cot_slice(icf, 1, 0, d, 1), l = cot_slice(icf, 1, d, row, 1);       /* (k, d), (k, row - d) */
    const cot_var        expq = cot_exp(q), logs = cot_sum(q, COT_AXES(1));                      /* (k, d), (k) */

    const cot_var pieces[] = {expq, l, cot_zeros(s->tape, COT_F64, COT_SHAPE(k, 1))};
    const cot_var packed = cot_reshape(cot_concat(3, pieces, 1), COT_SHAPE(-1));
    const cot_var Q = cot_take(packed, s->vars[WHERE], 0);                                       /* (d, k d): Q_c' side by side */
    const cot_var mu = cot_reshape(cot_transpose(s->vars[MEANS]), COT_SHAPE(d, k, 1));
    const cot_var muQ = cot_sum(cot_mul(mu, cot_reshape(Q, COT_SHAPE(d, k, d))), COT_AXES(0));   /* (k, d) */
    const cot_var XQ = cot_reshape(cot_matmul(s->vars[POINTS], Q), COT_SHAPE(n, k, d));
    const cot_var square = cot_sum(cot_square(cot_sub(XQ, muQ)), COT_AXES(2));                   /* (n, k) */
    const cot_var main_term = cot_fma(-0.5, square, cot_add(alphas, logs));
    const cot_var points = cot_sum(cot_logsumexp(main_term, COT_AXES(1)), COT_ALL);

    const cot_var frobenius = cot_add(cot_sum(cot_square(expq), COT_ALL), cot_sum(cot_square(l), COT_ALL));
    const cot_var prior = cot_sub(cot_mul(0.5 * g->gamma * g->gamma, frobenius), cot_mul((double)g->m, cot_sum(logs, COT_ALL)));
    const cot_var weights = cot_mul((double)n, cot_logsumexp(alphas, COT_ALL));
    return cot_add(cot_add(cot_sub(points, weights), prior), g->constant);
}

static bool gmm_run(void *state, double *gradient, struct ab_error *error) {
    struct ab_cot       *s = state;
    const struct ab_gmm *g = &s->in->u.gmm;
    const int64_t        d = g->d, k = g->k;
    cot_tape_zero_grads(s->tape);
    cot_backward(record_gmm(s));
    cot_read_grad(s->vars[ALPHAS], gradient, k);
    cot_read_grad(s->vars[MEANS], gradient + k, k * d);
    cot_read_grad(s->vars[ICF], gradient + k + k * d, k * (d * (d + 1) / 2));
    return ab_cot_finish(s, error);
}

const struct ab_method ab_methods_tensor[] = {
    {AB_GMM, "tensor", gmm_open, gmm_run, ab_cot_peak_bytes, ab_cot_close},
    {.style = NULL},
};
