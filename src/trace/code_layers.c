/* code_layers.c: convolutions, pooling, norms, attention and Fourier transforms as calls: their
 * attributes as the options that give them. */
#include "trace/code_calls.h"

#include "rules/structural_ids.h"

/* Options of a call; the first one has no comma before it. */
typedef struct listing {
    cot__text  *to;
    const char *comma;
} listing;

static void put_option(listing *l, const char *text) {
    cot__put(l->to, l->comma), cot__put(l->to, text);
    l->comma = ", ";
}

/* ".name = {1, 2}", unless all numbers are `usual`. */
static void put_list(listing *l, const char *name, int n, const int64_t *v, int64_t usual) {
    bool all = true;
    for (int k = 0; k < n; k++) all = all && v[k] == usual;
    if (all) return;
    put_option(l, "."), cot__putf(l->to, "%s = {", name);
    for (int k = 0; k < n; k++) cot__putf(l->to, k ? ", %lld" : "%lld", (long long)v[k]);
    cot__put(l->to, "}");
}

static bool end_options(const listing *l) {
    cot__put(l->to, *l->comma ? "))" : "0))");
    return true;
}

/* ---- convolutions ---------------------------------------------------------------------------- */

/* groups, then of each spatial axis strides, dilations, zeros in front, extents of the result. What
 * is behind follows from these: no more than a step of it can be missing, and that is not read. */
bool cot__c_conv_put(const cot__c_calling *c) {
    bool      transposed = c->n->op == OP_conv_transpose;
    cot_shape x = cot__shape_at(c->t, cot__arg(c->n, 0)), w = cot__shape_at(c->t, cot__arg(c->n, 1));
    int       space = x.ndim - 2;
    const int64_t *stride = c->a + 1, *dilation = stride + space, *before = dilation + space, *z = before + space;
    int64_t   after[3] = {0}, more[3] = {0};
    bool      even = true;
    for (int k = 0; k < space; k++) {
        int64_t reach = dilation[k] * (w.dim[2 + k] - 1) + 1, in = x.dim[2 + k];
        after[k] = transposed ? (in - 1) * stride[k] + reach - before[k] - z[k]
                              : (z[k] - 1) * stride[k] + reach - in - before[k];
        if (after[k] < 0) more[k] = transposed ? -after[k] : 0, after[k] = 0;
        if (before[k] < 0) return false;
    }
    for (int k = 0; k < space; k++) even = even && after[k] == before[k];
    cot__putf(c->to, "cot_conv%s%dd(", transposed ? "_transpose" : "", space);
    cot__put(c->to, c->operand[0]), cot__put(c->to, ", "), cot__put(c->to, c->operand[1]);
    cot__put(c->to, ", COT_CONV(");
    listing l = {c->to, ""};
    if (c->a[0] != 1) put_option(&l, ".groups = "), cot__putf(c->to, "%lld", (long long)c->a[0]);
    put_list(&l, "stride", space, stride, 1);
    put_list(&l, "dilation", space, dilation, 1);
    if (even) put_list(&l, "padding", space, before, 0);
    else put_list(&l, "padding_before", space, before, 0), put_list(&l, "padding_after", space, after, 0);
    put_list(&l, "output_padding", space, more, 0);
    return end_options(&l);
}

/* ---- pooling --------------------------------------------------------------------------------- */

/* Of means: are places without elements left out? Then windows, strides, padding, extents of x. */
bool cot__c_pool_put(const cot__c_calling *c) {
    bool           mean = c->n->op == OP_avg_pool, ceil = false;
    cot_shape      x = cot__shape_at(c->t, cot__arg(c->n, 0)), z = cot__shape_at(c->t, c->id);
    int            space = x.ndim - 2;
    const int64_t *window = c->a + mean, *stride = window + space, *padding = stride + space;
    bool           usual = true;
    for (int k = 0; k < space; k++) {
        int64_t whole = (x.dim[2 + k] + 2 * padding[k] - window[k]) / stride[k] + 1;
        ceil = ceil || z.dim[2 + k] > whole;
        usual = usual && stride[k] == window[k];
    }
    cot__putf(c->to, "cot_%s_pool%dd(", mean ? "avg" : "max", space), cot__put(c->to, c->operand[0]);
    cot__put(c->to, ", COT_POOL(");
    listing l = {c->to, ""};
    put_list(&l, "window", space, window, 0);
    if (!usual) put_list(&l, "stride", space, stride, 0);
    put_list(&l, "padding", space, padding, 0);
    if (ceil) put_option(&l, ".ceil_mode = true");
    if (mean && c->a[0]) put_option(&l, ".exclude_padding = true");
    return end_options(&l);
}

/* ---- norms, attention ------------------------------------------------------------------------ */

/* The first axis of a row; the number is eps. Weight and bias may be absent. */
bool cot__c_norm_put(const cot__c_calling *c) {
    bool rms = c->n->op == OP_rms_norm;
    int  n = cot__nargs(c->n);
    char eps[COT__C_NAME];
    cot__put(c->to, rms ? "cot_rms_norm(" : "cot_layer_norm(");
    for (int k = 0; k < (rms ? 2 : 3); k++)
        cot__put(c->to, k < n ? c->operand[k] : "COT_NONE"), cot__put(c->to, ", ");
    cot__putf(c->to, "%lld, %s)", (long long)c->a[0], cot__c_number(c->n->extra.attr->number, eps));
    return true;
}

/* How many keys the first query sees, 0 for all; is there a mask, a bias? */
bool cot__c_attention_put(const cot__c_calling *c) {
    char scale[COT__C_NAME];
    int  at = 3;
    cot__put(c->to, "cot_attention(");
    for (int k = 0; k < 3; k++) cot__put(c->to, c->operand[k]), cot__put(c->to, ", ");
    cot__putf(c->to, "&(cot_attention_options){.scale = %s", cot__c_number(c->n->extra.attr->number, scale));
    if (c->a[0]) cot__putf(c->to, ", .causal = true, .first_query = %lld", (long long)c->a[0] - 1);
    if (c->a[1]) cot__put(c->to, ", .mask = "), cot__put(c->to, c->operand[at++]);
    if (c->a[2]) cot__put(c->to, ", .bias = "), cot__put(c->to, c->operand[at]);
    cot__put(c->to, "})");
    return true;
}

/* ---- Fourier transforms ---------------------------------------------------------------------- */

/* axis, scaled, inverse. The transposes of the real ones count each bin once, which no public
 * function does. */
bool cot__c_fft_put(const cot__c_calling *c) {
    cot_shape z = cot__shape_at(c->t, c->id);
    int       op = c->n->op;
    bool      scaled = c->a[1] != 0, inverse = op == OP_irfft || (op == OP_fft && c->a[2]);
    long long axis = c->a[0], n = z.dim[axis];
    const char *name = op == OP_rfft ? "rfft" : op == OP_irfft ? "irfft" : inverse ? "ifft" : "fft";
    if (op != OP_fft && scaled != inverse) return false;
    if (scaled != inverse) cot__put(c->to, inverse ? "cot_mul(" : "cot_div(");
    cot__putf(c->to, "cot_%s(", name), cot__put(c->to, c->operand[0]);
    cot__putf(c->to, ", %lld, %lld)", op == OP_irfft ? n : 0LL, axis);
    if (scaled != inverse) cot__putf(c->to, ", %lld.0)", n);
    return true;
}
