/* cast.c: the same elements in another dtype (cast) or in memory of their own (copy).
 *
 * A cast between floats is linear; one to or from an integer has no derivative, because integers
 * are never active. */
#include "rules/structural_ids.h"
#include "ops/structural.h"

cot_var cot_cast(cot_var x, cot_dtype dtype) {
    uint32_t    i;
    cot_tape   *t = cot__enter(NULL, x, "cast", "", &i);
    cot__result r;
    if (!t) return cot__invalid(1, &x);
    if (!cot__check_dtype(t, "cast", dtype)) return INVALID(t);
    if (cot__dtype_at(&t->nodes[i]) == dtype) return x;
    cot__view v = cot__view_read(t, i);
    if (!cot__result_open(t, &r, "cast", dtype, v.ndim, v.shape)) return INVALID(t);
    t->backend->copy(&r.view, &v);
    return cot__result_push(t, &r, OP_cast, 1, &i, NULL);
}

/* x̄ += z̄ in x's dtype */
static void cast_vjp(cot__rule *r) {
    cot__give(r, 0, cot_cast(r->g, cot__dtype_at(&r->t->nodes[cot__rule_arg(r, 0)])));
}

static cot_var cast_apply(cot__rule *r, const cot_var *xs) { return cot_cast(xs[0], cot__dtype_at(cot__rule_node(r))); }

const cot__op cot__op_cast = {.name     = "cast",
                              .batch    = cot__batch_shift,
                              .kind     = KIND_LINEAR,
                              .formula  = "z = x in another dtype; x̄ += z̄",
                              .vjp      = cast_vjp,
                              .apply    = cast_apply,
                              .cost     = {.none = "moves data"},
                              .operands = "x",
                              .same     = 1};

cot_var cot__copy_var(cot_tape *t, uint32_t x) {
    cot__view   v = cot__view_read(t, x);
    cot__result r;
    if (!cot__result_open(t, &r, "copy", v.dtype, v.ndim, v.shape)) return INVALID(t);
    t->backend->copy(&r.view, &v);
    return cot__result_push(t, &r, OP_copy, 1, &x, NULL);
}

cot_var(cot_copy)(cot_var x) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "copy", "", &i);
    return t ? cot__copy_var(t, i) : cot__invalid(1, &x);
}

static void copy_vjp(cot__rule *r) { cot__give(r, 0, r->g); }

static cot_var copy_apply(cot__rule *r, const cot_var *xs) { return (void)r, cot_copy(xs[0]); }

const cot__op cot__op_copy = {.name     = "copy",
                              .batch    = cot__batch_shift,
                              .kind     = KIND_LINEAR,
                              .formula  = "z = x, contiguous; x̄ += z̄",
                              .vjp      = copy_vjp,
                              .apply    = copy_apply,
                              .cost     = {.none = "moves data"},
                              .operands = "x"};
