/* recurrent.c: LSTM and GRU: the inputs of all steps in one product, then a loop over the steps.
 *
 * In 16 bits products and gates are narrow, and so is what a step gives. What adds up over the
 * steps has the dtype of the parameters: c of an LSTM, h of a GRU. */
#include "nn/nn.h"

/* What the body of a loop takes from outside. */
typedef struct cell {
    cot_var weight, bias; /* of h */
    int64_t units;
} cell;

/* x as narrow as the layer is, if it is: of 16 bits. */
static cot_var narrowed(const cell *l, cot_var x) {
    cot_dtype d = cot_dtype_of(l->weight);
    return d == COT_BF16 || d == COT_F16 ? cot_cast(x, d) : x;
}

static cot_var gate(cot_var x, int k, int64_t units) { return cot_slice(x, -1, k * units, (k + 1) * units, 1); }

/* xs: h, c, what x gives to the gates; ys: h, c, h. */
static int lstm_step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cell *l   = user;
    cot_var     all = cot_add(xs[2], cot_add(cot_matmul(xs[0], l->weight), l->bias));
    cot_var     i = cot_sigmoid(gate(all, 0, l->units)), f = cot_sigmoid(gate(all, 1, l->units));
    cot_var     g = cot_tanh(gate(all, 2, l->units)), o = cot_sigmoid(gate(all, 3, l->units));
    (void)n, (void)m;
    ys[1] = cot_add(cot_mul(f, xs[1]), cot_mul(i, g));
    ys[0] = ys[2] = narrowed(l, cot_mul(o, cot_tanh(ys[1])));
    return 0;
}

/* xs: h, what x gives to the gates; ys: h, h. (1 - z) n + z h = n + z (h - n) */
static int gru_step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cell *l = user;
    cot_var     h = cot_add(cot_matmul(narrowed(l, xs[0]), l->weight), l->bias);
    cot_var     r = cot_sigmoid(cot_add(gate(xs[1], 0, l->units), gate(h, 0, l->units)));
    cot_var     z = cot_sigmoid(cot_add(gate(xs[1], 1, l->units), gate(h, 1, l->units)));
    cot_var new   = cot_tanh(cot_add(gate(xs[1], 2, l->units), cot_mul(r, gate(h, 2, l->units))));
    (void)n, (void)m;
    ys[0] = cot_add(new, cot_mul(z, cot_sub(xs[0], new)));
    ys[1] = narrowed(l, ys[0]);
    return 0;
}

static cot_var recurrent(cot_params *p, cot_var x, int64_t units, cot_var *state, int gates, int carried, cot_fn step) {
    cot_shape s = cot_shape_of(x);
    if (!cot__layer_axes(p, x, 2)) return INVALID(p->on);
    if (units < 1)
        return cot__fail(p->on, COT_SHAPE, "[%s] the layer has %lld units; it needs 1 or more", p->op,
                         (long long)units);
    cot_dtype d  = cot__params_dtype(p, x);
    int64_t   in = s.dim[s.ndim - 1], all = cot__size_mul(gates, units);
    cot__wish w[4] = {{.name = "weight_ih", .shape = {2, {in, all}}},
                      {.name = "weight_hh", .shape = {2, {units, all}}},
                      {.name = "bias_ih", .shape = {1, {all}}},
                      {.name = "bias_hh", .shape = {1, {all}}}};
    cot_var   got[4], begin[2], end[2], ys[1];
    for (int k = 0; k < 4; k++) {
        w[k].dtype = d, w[k].how.kind = COT_INIT_UNIFORM, w[k].fan_in = (double)units, w[k].fan_out = (double)all;
        got[k] = cot__layer_get(p, &w[k]);
    }
    cell l = {got[1], got[3], units};
    for (int k = 0; k < carried; k++) {
        cot_shape h = {s.ndim - 1, {0}};
        for (int i = 1; i + 1 < s.ndim; i++) h.dim[i - 1] = s.dim[i];
        h.dim[h.ndim - 1] = units;
        begin[k]          = state && state[k].tape ? state[k] : cot_zeros(p->on, d, h);
        if (k + 1 < carried) begin[k] = narrowed(&l, begin[k]);
    }
    cot_var inputs = cot_add(cot_matmul(x, got[0]), got[2]);
    if (cot_scan(step, &l, -1, carried, begin, 1, &inputs, end, 1, ys, NULL) != COT_OK) return INVALID(p->on);
    for (int k = 0; state && k < carried; k++) state[k] = end[k];
    return ys[0];
}

cot_var cot_nn_lstm(cot_params *p, const char *name, cot_var x, int64_t units, cot_var *state) {
    if (!cot__layer_open(p, "nn_lstm", name, &x)) return cot__layer_none(p, x);
    return cot__layer_close(p, recurrent(p, x, units, state, 4, 2, lstm_step));
}

cot_var cot_nn_gru(cot_params *p, const char *name, cot_var x, int64_t units, cot_var *state) {
    if (!cot__layer_open(p, "nn_gru", name, &x)) return cot__layer_none(p, x);
    return cot__layer_close(p, recurrent(p, x, units, state, 3, 1, gru_step));
}
