/* Style `tensor`: GMM, BA and LSTM on tensors; HAND has a file of its own. */
#include "cot_common.h"

#include <stdlib.h>

/* ---- GMM: all points meet all components in one product X Q' (n, k d) ------------------------ */

/* The three leaves and two constants that open makes. */
enum { ALPHAS, MEANS, ICF, POINTS, WHERE, COUNT };

/* WHERE (d, k d): element [i][c d + j] is the place of Q_c[j][i] in the flattened (k, d + d(d-1)/2
 * + 1) array whose rows are exp(q), l, 0. */
static int64_t *make_places(const struct ab_gmm *g) {
    const int64_t d = g->d, k = g->k, width = d * (d + 1) / 2 + 1;
    int64_t      *place = malloc((size_t)(d * k * d) * sizeof *place);
    for (int64_t c = 0; place && c < k; c++)
        for (int64_t i = 0, l = d; i < d; i++)
            for (int64_t j = 0; j < d; j++)
                place[i * k * d + c * d + j] = c * width + (j < i ? width - 1 : j == i ? i : l++);
    return place;
}

void *ab_open_gmm(const struct ab_instance *in, struct ab_error *error) {
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
    s->given = COUNT;
    s->wanted = POINTS;
    s->start = cot_tape_mark(s->tape);
    free(place);
    return s;
}

cot_var ab_record_gmm(const struct ab_cot *s) {
    const struct ab_gmm *g = &s->in->u.gmm;
    const int64_t        d = g->d, k = g->k, n = g->n, row = d * (d + 1) / 2;
    const cot_var        alphas = s->vars[ALPHAS], icf = s->vars[ICF];
    /* (k, d), (k, row - d) */
    const cot_var        q = cot_slice(icf, 1, 0, d, 1), l = cot_slice(icf, 1, d, row, 1);
    /* (k, d), (k) */
    const cot_var        expq = cot_exp(q), logs = cot_sum(q, COT_AXES(1));

    const cot_var pieces[] = {expq, l, cot_zeros(s->tape, COT_F64, COT_SHAPE(k, 1))};
    const cot_var packed = cot_reshape(cot_concat(3, pieces, 1), COT_SHAPE(-1));
    /* (d, k d): Q_c' side by side */
    const cot_var Q = cot_take(packed, s->vars[WHERE], 0);
    const cot_var mu = cot_reshape(cot_transpose(s->vars[MEANS]), COT_SHAPE(d, k, 1));
    /* (k, d) */
    const cot_var muQ = cot_sum(cot_mul(mu, cot_reshape(Q, COT_SHAPE(d, k, d))), COT_AXES(0));
    const cot_var XQ = cot_reshape(cot_matmul(s->vars[POINTS], Q), COT_SHAPE(n, k, d));
    /* (n, k) */
    const cot_var square = cot_sum(cot_square(cot_sub(XQ, muQ)), COT_AXES(2));
    const cot_var main_term = cot_fma(-0.5, square, cot_add(alphas, logs));
    const cot_var points = cot_sum(cot_logsumexp(main_term, COT_AXES(1)), COT_ALL);

    const cot_var frobenius = cot_add(cot_sum(cot_square(expq), COT_ALL), cot_sum(cot_square(l), COT_ALL));
    const cot_var prior =
        cot_sub(cot_mul(0.5 * g->gamma * g->gamma, frobenius), cot_mul((double)g->m, cot_sum(logs, COT_ALL)));
    const cot_var weights = cot_mul((double)n, cot_logsumexp(alphas, COT_ALL));
    return cot_add(cot_add(cot_sub(points, weights), prior), g->constant);
}

static bool gmm_run(void *state, double *gradient, struct ab_error *error) {
    struct ab_cot       *s = state;
    const struct ab_gmm *g = &s->in->u.gmm;
    const int64_t        d = g->d, k = g->k;
    cot_tape_zero_grads(s->tape);
    cot_backward(ab_record_gmm(s));
    cot_read_grad(s->vars[ALPHAS], gradient, k);
    cot_read_grad(s->vars[MEANS], gradient + k, k * d);
    cot_read_grad(s->vars[ICF], gradient + k + k * d, k * (d * (d + 1) / 2));
    return ab_cot_finish(s, error);
}

/* ---- BA: a vector holds one variable of many observations ------------------------------------ */

#include "cot_ba_tensor.inc"
#include "cot_ba_gather.inc"

enum { BA_CHUNK = 480 };

/* numbers: those of ba_gather, seeds (2, 3, chunk), out (2, 16, chunk) */
enum { BA_SEEDS = BA_GATHERED, BA_OUT = BA_SEEDS + 2 * BA_ERRORS };
enum { BA_NUMBERS = BA_OUT + 2 * BA_LEAVES };

static void *ba_open(const struct ab_instance *in, struct ab_error *error) {
    return ab_cot_create(in, 0, (size_t)BA_NUMBERS * BA_CHUNK, error);
}

static void ba_chunk(struct ab_cot *s, int i, int n, double *rows, double *weight_rows) {
    double    *numbers = s->numbers, *seeds = numbers + BA_SEEDS * n, *out = numbers + BA_OUT * n;
    const bool some = ba_gather(&s->in->u.ba, i, n, numbers);
    cot_var    x[BA_LEAVES], feat[2], still = {0}, err[BA_ERRORS];
    for (int j = 0; j < BA_LEAVES; j++)
        x[j] = cot_tensor(s->tape, COT_F64, COT_SHAPE(n), numbers + j * n);
    for (int j = 0; j < 2; j++)
        feat[j] = cot_wrap(s->tape, COT_F64, COT_SHAPE(n), numbers + (BA_FEATS + j) * n);
    if (some)
        still = cot_wrap(s->tape, COT_F64, COT_SHAPE(n), numbers + BA_STILL * n);
    record_observations(x, feat, still, err);
    for (int j = 0; j < 2 * BA_ERRORS; j++) /* first errors and weight errors, then second errors */
        for (int k = 0; k < n; k++)
            seeds[j * n + k] = j == 0 || j == 2 || j == BA_ERRORS + 1;
    cot_vjps(2, BA_ERRORS, err, seeds, BA_LEAVES, x, out);
    for (int k = 0; k < n; k++) {
        for (int row = 0; row < 2; row++)
            for (int j = 0; j < AB_BA_ROW; j++)
                rows[(2 * k + row) * AB_BA_ROW + j] = out[(row * BA_LEAVES + j) * n + k];
        weight_rows[k] = out[AB_BA_ROW * n + k];
    }
}

static bool ba_run(void *state, double *values, struct ab_error *error) {
    struct ab_cot      *s = state;
    const struct ab_ba *a = &s->in->u.ba;
    double             *weight_rows = values + 2 * AB_BA_ROW * (size_t)a->p;
    for (int i = 0; i < a->p; i += BA_CHUNK) {
        const int n = a->p - i < BA_CHUNK ? a->p - i : BA_CHUNK;
        ba_chunk(s, i, n, values + 2 * AB_BA_ROW * (size_t)i, weight_rows + i);
        if (cot_tape_status(s->tape) != COT_OK)
            break;
        if (i == 0)
            ab_cot_note_peak(s);
        cot_tape_rewind(s->tape, s->start);
    }
    return ab_cot_finish(s, error);
}

/* ---- LSTM: a vector holds one gate of all bits; the outputs of all steps are stacked and scored
 * together */

/* Leaves of the parameters: 8 a layer, then these three. */
enum { IN_WEIGHT, OUT_WEIGHT, OUT_BIAS, EXTRAS };
enum { FORGET, IN, OUT, CHANGE, GATES };

/* vars: leaves (8 l + 3), characters (c), the next characters of all steps, the first state (l, 2);
 * then scratch: state (l, 2), last hidden (c - 1) */
static size_t lstm_given(const struct ab_lstm *m) {
    return 8 * (size_t)m->l + EXTRAS + (size_t)m->c + 1 + 2 * (size_t)m->l;
}

void *ab_open_lstm(const struct ab_instance *in, struct ab_error *error) {
    const struct ab_lstm *m = &in->u.lstm;
    const int64_t         b = m->b;
    const size_t          leaves = 8 * (size_t)m->l + EXTRAS, c = (size_t)m->c;
    const size_t          states = 2 * (size_t)m->l;
    struct ab_cot        *s = ab_cot_create(in, lstm_given(m) + states + c - 1, 0, error);
    if (!s)
        return NULL;
    for (size_t i = 0; i < leaves; i++)
        s->vars[i] = cot_tensor(s->tape, COT_F64, COT_SHAPE(b), in->params + i * (size_t)b);
    for (size_t i = 0; i < c; i++)
        s->vars[leaves + i] = cot_wrap(s->tape, COT_F64, COT_SHAPE(b), m->seq + i * (size_t)b);
    s->vars[leaves + c] = cot_wrap(s->tape, COT_F64, COT_SHAPE(m->c - 1, b), m->seq + b);
    for (size_t i = 0; i < states; i++)
        s->vars[leaves + c + 1 + i] = cot_wrap(s->tape, COT_F64, COT_SHAPE(b), m->state + i * (size_t)b);
    s->given = lstm_given(m);
    s->wanted = leaves;
    s->start = cot_tape_mark(s->tape);
    return s;
}

/* state: hidden and cell; x: the layer's input; returns its output */
static cot_var record_layer(const cot_var *weight, cot_var *state, cot_var x) {
    const cot_var *bias = weight + GATES;
    const cot_var  forget = cot_sigmoid(cot_fma(x, weight[FORGET], bias[FORGET]));
    const cot_var  in = cot_sigmoid(cot_fma(state[0], weight[IN], bias[IN]));
    const cot_var  gate = cot_sigmoid(cot_fma(x, weight[OUT], bias[OUT]));
    const cot_var  change = cot_tanh(cot_fma(state[0], weight[CHANGE], bias[CHANGE]));
    state[1] = cot_fma(state[1], forget, cot_mul(in, change));
    return state[0] = cot_mul(gate, cot_tanh(state[1]));
}

cot_var ab_record_lstm(const struct ab_cot *s) {
    const struct ab_lstm *m = &s->in->u.lstm;
    const int             l = m->l, steps = m->c - 1;
    const cot_var        *params = s->vars, *extra = params + 8 * (size_t)l, *characters = extra + EXTRAS;
    cot_var              *state = s->vars + lstm_given(m), *last = state + 2 * (size_t)l;
    for (int i = 0; i < 2 * l; i++)
        state[i] = characters[m->c + 1 + i];
    for (int t = 0; t < steps; t++) {
        cot_var x = cot_mul(characters[t], extra[IN_WEIGHT]);
        for (int i = 0; i < l; i++)
            x = record_layer(params + 8 * (size_t)i, state + 2 * (size_t)i, x);
        last[t] = x;
    }
    /* (c - 1, b) */
    const cot_var y = cot_fma(cot_stack(steps, last, 0), extra[OUT_WEIGHT], extra[OUT_BIAS]);
    /* (c - 1, 1) */
    const cot_var lse = cot_log(cot_add(cot_sum(cot_exp(y), COT_KEEP(1)), 2.0));
    const cot_var total = cot_sum(cot_mul(characters[m->c], cot_sub(y, lse)), COT_ALL);
    return cot_mul(-1.0 / ((double)m->b * steps), total);
}

static bool lstm_run(void *state, double *gradient, struct ab_error *error) {
    struct ab_cot        *s = state;
    const struct ab_lstm *m = &s->in->u.lstm;
    cot_tape_zero_grads(s->tape);
    cot_backward(ab_record_lstm(s));
    for (size_t i = 0; i < 8 * (size_t)m->l + EXTRAS; i++)
        cot_read_grad(s->vars[i], gradient + i * (size_t)m->b, m->b);
    return ab_cot_finish(s, error);
}

const struct ab_method ab_methods_tensor[] = {
    {AB_GMM, "tensor", ab_open_gmm, gmm_run, ab_cot_peak_bytes, ab_cot_close},
    {AB_BA, "tensor", ba_open, ba_run, ab_cot_peak_bytes, ab_cot_close},
    {AB_BAFULL, "tensor", ba_open, ba_run, ab_cot_peak_bytes, ab_cot_close},
    {AB_LSTM, "tensor", ab_open_lstm, lstm_run, ab_cot_peak_bytes, ab_cot_close},
    {.style = NULL},
};
