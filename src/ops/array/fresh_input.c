/* fresh_input.c: a value under another number: what a function form differentiates with respect to,
 * so that other uses of the value do not count. It has a derivative even where the value has none:
 * a function may be differentiated at a constant. */
#include "rules/structural_ids.h"
#include "ops/structural.h"

cot_var cot__fresh_input(cot_var x) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "alias", "", &i);
    if (!t) return cot__invalid(1, &x);
    cot_var z = cot__record(t, "alias", OP_alias, 1, &i, NULL, NULL);
    if (!cot__failed(z) && cot__dtype_is_float(cot__dtype_at(&t->nodes[i])))
        t->nodes[cot__index(z)].flags |= t->active_mask;
    return z;
}

static void alias_vjp(cot__rule *r) { cot__give(r, 0, r->g); }
/* Has a derivative even where xs[0] has none. */
static cot_var alias_apply(cot__rule *r, const cot_var *xs) {
    (void)r;
    return cot__fresh_input(xs[0]);
}

const cot__op cot__op_alias = {.name     = "alias",
                               .kind     = KIND_LINEAR,
                               .formula  = "z = x; x̄ += z̄",
                               .vjp      = alias_vjp,
                               .apply    = alias_apply,
                               .infer    = cot__infer_same,
                               .view     = cot__view_same,
                               .batch    = cot__batch_shift,
                               .cost     = {.none = "moves data"},
                               .operands = "x",
                               .same     = 1};
