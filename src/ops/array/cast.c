/* cast.c: the same elements in another dtype (cast) or in memory of their own (copy).
 *
 * A cast between floats is linear; one to or from an integer has no derivative, because integers
 * are never active. */
#include "rules/structural_ids.h"
#include "ops/structural.h"

/* Both records: the elements of x in z's memory and dtype. */
static void copy_run(const cot__job *j) { j->backend->copy(&j->z, &j->x[0]); }

static bool cast_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, 0)) return false;
    cot__extents_of(&z->shape, &j->x[0]);
    return true;
}

cot_var cot_cast(cot_var x, cot_dtype dtype) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "cast", "", &i);
    cot__type asked;
    if (!t) return cot__invalid(1, &x);
    if (!cot__check_dtype(t, "cast", dtype)) return INVALID(t);
    if (cot__dtype_at(&t->nodes[i]) == dtype) return x;
    return cot__record(t, "cast", OP_cast, 1, &i, NULL, cot__ask_dtype(&asked, dtype));
}

/* x̄ += z̄ in x's dtype */
static void cast_vjp(cot__rule *r) {
    cot__give(r, 0, cot_cast(r->g, cot__dtype_at(&r->t->nodes[cot__rule_arg(r, 0)])));
}

const cot__op cot__op_cast = {.name     = "cast",
                              .batch    = cot__batch_shift,
                              .kind     = KIND_LINEAR,
                              .formula  = "z = x in another dtype; x̄ += z̄",
                              .vjp      = cast_vjp,
                              .infer    = cast_infer,
                              .asks     = COT__ASKS_DTYPE,
                              .run      = copy_run,
                              .cost     = {.none = "moves data"},
                              .operands = "x",
                              .same     = 1};

cot_var cot__copy_var(cot_tape *t, uint32_t x) {
    return cot__record(t, "copy", OP_copy, 1, &x, NULL, NULL);
}

cot_var(cot_copy)(cot_var x) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "copy", "", &i);
    return t ? cot__copy_var(t, i) : cot__invalid(1, &x);
}

static void copy_vjp(cot__rule *r) { cot__give(r, 0, r->g); }

const cot__op cot__op_copy = {.name     = "copy",
                              .batch    = cot__batch_shift,
                              .kind     = KIND_LINEAR,
                              .formula  = "z = x, contiguous; x̄ += z̄",
                              .vjp      = copy_vjp,
                              .infer    = cot__infer_same,
                              .run      = copy_run,
                              .cost     = {.none = "moves data"},
                              .operands = "x"};
