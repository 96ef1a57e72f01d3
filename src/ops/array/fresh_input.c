/* fresh_input.c: a value under another number: what a function form differentiates with respect to,
 * so that other uses of the value do not count. It has a derivative even where the value has none:
 * a function may be differentiated at a constant. */
#include "ops/structural.h"

cot_var cot__fresh_input(cot_var x) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "alias", "", &i);
    if (!t) return cot__invalid(1, &x);
    cot__view v = cot__view_read(t, i);
    cot_var z = cot__push_view(t, OP_alias, i, v.ndim, v.shape, v.stride, 0, NULL);
    if (!cot__failed(z) && cot__dtype_is_float(v.dtype)) t->nodes[cot__index(z)].flags |= t->active_mask;
    return z;
}

static void alias_vjp(cot__rule *r) { cot__give(r, 0, r->g); }
static cot_var alias_apply(cot__rule *r, const cot_var *xs) {
    (void)r;
    return cot__fresh_input(xs[0]);
}

const cot__op cot__op_alias = {.name     = "alias",
                               .kind     = KIND_LINEAR,
                               .formula  = "z = x; x̄ += z̄",
                               .vjp      = alias_vjp,
                               .apply    = alias_apply,
                               .batch    = cot__batch_shift,
                               .cost     = {.none = "moves data"},
                               .operands = "x",
                               .same     = 1};
