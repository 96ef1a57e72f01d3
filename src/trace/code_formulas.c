/* code_formulas.c: ways back that the library does in kernels without a public name and that are a
 * formula of a few calls: those of norms and of means over windows. They agree with the kernels to
 * rounding. */
#include "trace/code_calls.h"

#include "rules/structural_ids.h"

/* ---- norms ----------------------------------------------------------------------------------- */

/* COT_KEEP(1, 2), COT_AXES(0) */
static const char *axes_text(const char *how, int from, int to, char *buf) {
    cot__text x = cot__text_buffer(buf, COT__C_NAME);
    cot__put(&x, how);
    for (int k = from; k < to; k++) cot__putf(&x, k > from ? ", %d" : "(%d", k);
    cot__put(&x, ")");
    return buf;
}

/* v added up over all rows, in the shape of weight and bias. */
static void add_over_rows(const cot__c_step *s, int operand, int axis, const char *v) {
    char axes[COT__C_NAME], amount[COT__C_TEXT];
    if (axis == 0) s->add(s->to, operand, v);
    if (axis == 0) return;
    snprintf(amount, sizeof amount, "cot_sum(%.3800s, %s)", v, axes_text("COT_AXES", 0, axis, axes));
    s->add(s->to, operand, amount);
}

/* z = y·w + b, y = (x - μ) r along rows: with h = z̄·w, x̄ += r (h - mean h - y mean(h y)),
 * w̄ += Σ z̄ y, b̄ += Σ z̄; rms: y = x r, and without mean h. */
static bool put_norm(cot__c_step *s) {
    const cot__node *n = &s->t->nodes[s->id];
    bool             rms = n->op == OP_rms_norm, weight = cot__nargs(n) > 1, bias = cot__nargs(n) > 2;
    cot_shape        shape = cot__shape_at(s->t, s->id);
    int              axis = (int)n->extra.attr->ints[0], y = s->temporaries + 1, r = y + 1, h = y + 2;
    char             rows[COT__C_NAME], eps[COT__C_NAME], line[COT__C_TEXT];
    const char      *x = s->operand[0];
    axes_text("COT_KEEP", axis, shape.ndim, rows);
    cot__c_number(n->extra.attr->number, eps);
    s->temporaries += 3;
    snprintf(line, sizeof line, "    cot_var part%d = cot_%s_norm(%s, COT_NONE, %s%d, %s);  /* y */", y,
             rms ? "rms" : "layer", x, rms ? "" : "COT_NONE, ", axis, eps);
    s->line(s->to, line);
    snprintf(line, sizeof line, "    cot_var part%d = cot_rsqrt(cot_add(cot_%s%s%s, %s), %s));  /* r */", r,
             rms ? "mean(cot_square(" : "variance(", x, rms ? ")" : "", rows, eps);
    s->line(s->to, line);
    if (weight) snprintf(line, sizeof line, "    cot_var part%d = cot_mul(%s, %s);  /* h */", h, s->bar, s->operand[1]);
    else snprintf(line, sizeof line, "    cot_var part%d = %s;  /* h */", h, s->bar);
    s->line(s->to, line);
    if (s->wanted[0]) {
        char centred[COT__C_NAME];
        snprintf(centred, sizeof centred, rms ? "part%d" : "cot_sub(part%d, cot_mean(part%d, %s))", h, h, rows);
        snprintf(line, sizeof line,
                 "cot_mul(part%d, cot_sub(%s, cot_mul(part%d, cot_mean(cot_mul(part%d, part%d), %s))))", r, centred, y,
                 h, y, rows);
        s->add(s->to, 0, line);
    }
    if (weight && s->wanted[1]) {
        snprintf(line, sizeof line, "cot_mul(%s, part%d)", s->bar, y);
        add_over_rows(s, 1, axis, line);
    }
    if (bias && s->wanted[2]) add_over_rows(s, 2, axis, s->bar);
    return true;
}

/* ---- means over windows ---------------------------------------------------------------------- */

/* Each window hands its adjoint down in equal parts: a convolution's transpose with ones, a group
 * for each channel. Not where windows have other numbers of elements. */
static bool put_mean(cot__c_step *s) {
    const cot__node *n = &s->t->nodes[s->id];
    cot_shape        x = cot__shape_at(s->t, cot__arg(n, 0)), z = cot__shape_at(s->t, s->id), ones = {0};
    int              space = x.ndim - 2;
    const int64_t   *window = n->extra.attr->ints + 1, *stride = window + space, *padding = stride + space;
    long long        all = 1;
    char             amount[COT__C_TEXT];
    cot__text        to = cot__text_buffer(amount, sizeof amount);
    ones.dim[ones.ndim++] = x.dim[1], ones.dim[ones.ndim++] = 1;
    for (int k = 0; k < space; k++) {
        int64_t reached = (z.dim[2 + k] - 1) * stride[k] + window[k] - 2 * padding[k];
        if (reached > x.dim[2 + k] || (padding[k] && n->extra.attr->ints[0])) return false;
        all *= window[k], ones.dim[ones.ndim++] = window[k];
    }
    cot__putf(&to, "cot_conv_transpose%dd(cot_div(%.180s, %lld.0), cot_ones(t, %s, ", space, s->bar, all,
              cot__c_dtype_name(cot__dtype_at(n)));
    cot__c_shape_put(&to, ones.ndim, ones.dim);
    cot__putf(&to, "), COT_CONV(.groups = %lld, .stride = {", (long long)x.dim[1]);
    for (int k = 0; k < space; k++) cot__putf(&to, k ? ", %lld" : "%lld", (long long)stride[k]);
    cot__put(&to, "}, .padding = {");
    for (int k = 0; k < space; k++) cot__putf(&to, k ? ", %lld" : "%lld", (long long)padding[k]);
    cot__put(&to, "}, .output_padding = {");
    for (int k = 0; k < space; k++) {
        int64_t reached = (z.dim[2 + k] - 1) * stride[k] + window[k] - 2 * padding[k];
        cot__putf(&to, k ? ", %lld" : "%lld", (long long)(x.dim[2 + k] - reached));
    }
    cot__put(&to, "}))");
    s->add(s->to, 0, amount);
    return true;
}

bool cot__c_formula_put(cot__c_step *s) {
    int op = s->t->nodes[s->id].op;
    if (cot__size_at(s->t, s->id) == 0) return false;
    return op == OP_layer_norm || op == OP_rms_norm ? put_norm(s) : op == OP_avg_pool && put_mean(s);
}
