/* fold.c: reductions of values that wait.
 *
 * A sum, maximum or minimum of all elements is a fold of the group that makes them: each block is
 * reduced while it is in cache. A value that is cheaper to compute again than to write is computed
 * for the reduction alone (patient.c). The bits are those of the entry `reduce`. */
#include "pending/parts.h"

/* Is what the last operation that writes the storage makes all of its elements? */
static bool is_made_whole(const cot__pending *q, uint32_t on) {
    for (uint32_t k = q->count; k-- > 0;)
        for (uint32_t i = COT__RUN_VIEWS; i < COT__RUN_VIEWS + (uint32_t)q->run[k].outputs; i++)
            if (q->op[k].on[i] == on) return !q->op[k].made && q->op[k].straight >> i & 1;
    return false;
}

/* The same operations as in programs (program/fusion.h). */
static bool may_fold(const cot__pending *q, cot__reduction what, const cot__bound *x, const cot__view *z) {
    return (what == COT__SUM || what == COT__MAX || what == COT__MIN) && cot__dtype_is_float(x->view.dtype) &&
           cot__dtype_is_float(z->dtype) && cot__count(z->ndim, z->shape) == 1 &&
           cot__count(x->view.ndim, x->view.shape) >= 4 * COT__BLOCK && cot__is_straight(&x->view, x->storage) &&
           is_made_whole(q, x->storage->touched - 1);
}

static bool fold(cot_tape *t, cot__reduction what, const cot__bound *x, const cot__view *z) {
    cot__pending *q = t->pending.work;
    if (!may_fold(q, what, x, z)) return false;
    size_t          bytes = (size_t)(8 * cot__fold_blocks(cot__count(x->view.ndim, x->view.shape)));
    cot__stage_fold f = {.what = (int)what, .x = x->view, .z = *z, .nodes = cot__device_alloc(t, bytes)};
    if (!f.nodes) return false;
    q->fold = &f;
    q->folded = x->storage->touched - 1;
    cot__pending_ready(t, x->storage);
    q->fold = NULL;
    cot__device_free(t, f.nodes, bytes);
    return true;
}

bool cot__pending_reduce(cot_tape *t, cot__reduction what, uint32_t x, uint32_t axes, const cot__view *z) {
    cot__bound b = cot__bound_at(t, x);
    if (LIKELY(!b.storage || !b.storage->unready || b.storage->example)) return false;
    return cot__patient_of(t, b.storage) ? cot__patient_reduce(t, what, &b, axes, z) : fold(t, what, &b, z);
}
