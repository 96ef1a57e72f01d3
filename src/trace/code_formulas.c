/* code_formulas.c: a way back that the library does in a kernel without a public name and that is
 * one call of another function: that of means over windows. It agrees with the kernel to
 * rounding. */
#include "trace/code_calls.h"

#include "rules/structural_ids.h"

/* Each window hands its adjoint down in equal parts: a convolution's transpose with ones, a group
 * for each channel. Not where windows have other numbers of elements. */
static bool put_mean(cot__text *to, const cot_tape *t, uint32_t id, const char *bar) {
    const cot__node *n = &t->nodes[id];
    cot_shape        x = cot__shape_at(t, cot__arg(n, 0)), z = cot__shape_at(t, id), ones = {0};
    int              space = x.ndim - 2;
    const int64_t   *window = n->extra.attr->ints + 1, *stride = window + space, *padding = stride + space;
    long long        all = 1;
    ones.dim[ones.ndim++] = x.dim[1], ones.dim[ones.ndim++] = 1;
    for (int k = 0; k < space; k++) {
        int64_t reached = (z.dim[2 + k] - 1) * stride[k] + window[k] - 2 * padding[k];
        if (reached > x.dim[2 + k] || (padding[k] && n->extra.attr->ints[0])) return false;
        all *= window[k], ones.dim[ones.ndim++] = window[k];
    }
    cot__putf(to, "cot_conv_transpose%dd(cot_div(%.180s, %lld.0), cot_ones(t, %s, ", space, bar, all,
              cot__c_dtype_name(cot__dtype_at(n)));
    cot__c_shape_put(to, ones.ndim, ones.dim);
    cot__putf(to, "), COT_CONV(.groups = %lld, .stride = {", (long long)x.dim[1]);
    for (int k = 0; k < space; k++) cot__putf(to, k ? ", %lld" : "%lld", (long long)stride[k]);
    cot__put(to, "}, .padding = {");
    for (int k = 0; k < space; k++) cot__putf(to, k ? ", %lld" : "%lld", (long long)padding[k]);
    cot__put(to, "}, .output_padding = {");
    for (int k = 0; k < space; k++) {
        int64_t reached = (z.dim[2 + k] - 1) * stride[k] + window[k] - 2 * padding[k];
        cot__putf(to, k ? ", %lld" : "%lld", (long long)(x.dim[2 + k] - reached));
    }
    cot__put(to, "}))");
    return true;
}

bool cot__c_formula_put(cot__text *x, const cot_tape *t, uint32_t id, const char *bar) {
    return t->nodes[id].op == OP_avg_pool && cot__size_at(t, id) > 0 && put_mean(x, t, id, bar);
}
