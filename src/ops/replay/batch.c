/* batch.c: a recorded operation for a batch at once.
 *
 * The batch is always a new axis 0, of operands and of the result. For most operations that is all:
 * attributes that are axes, which the record's `attrs` tells, move by one, and apply is called on
 * the longer operands (cot__batch_shift). Where an operand without the batch can stay without, or
 * the operation itself mixes rows, the record has a function of its own: batch_rules.c. */
#include "ops/replay/replay.h"
#include "tape/region.h"

#include <string.h>

/* ---- shapes ---------------------------------------------------------------------------------- */

cot_shape cot__batch_shape(cot_tape *t, int64_t extent, cot_shape s) {
    cot_shape z = {s.ndim + 1, {extent}};
    if (s.ndim >= COT_MAX_NDIM) {
        cot__fail(t, COT_LIMIT, "[vmap] a value inside has %d axes already; a batch adds one, and there are at most %d",
                  s.ndim, COT_MAX_NDIM);
        return z;
    }
    memcpy(z.dim + 1, s.dim, (size_t)s.ndim * sizeof *s.dim);
    return z;
}

cot_var cot__batch_full(const cot__batch *b, int k, cot_var x) {
    if (b->is[k]) return x;
    cot_shape s = cot__batch_shape(x.tape, b->extent, cot_shape_of(x));
    return x.tape->status == COT_OK ? cot_broadcast_to(x, s) : INVALID(x.tape);
}

cot_var cot__batch_align(cot_var x, int ndim) {
    cot_shape s = cot_shape_of(x), z = {ndim + 1, {s.dim[0]}};
    if (s.ndim == z.ndim || ndim >= COT_MAX_NDIM) return x;
    for (int k = 1; k < z.ndim; k++) z.dim[k] = k <= z.ndim - s.ndim ? 1 : s.dim[k - (z.ndim - s.ndim)];
    return cot_reshape(x, z);
}

cot_var cot__moved_axis(cot_var x, int from, int to) {
    cot_axes order = {cot_shape_of(x).ndim, false, {0}};
    for (int k = 0, next = 0; k < order.n; k++) {
        if (next == from) next++;
        order.axis[k] = k == to ? from : next++;
    }
    return cot_permute(x, order);
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* The node's attributes with every axis one further. */
static cot__attr *shifted_attr(cot__rule *r) {
    const cot__attr *of = cot__rule_attr(r);
    int64_t          ints[2 * COT_MAX_NDIM + 2];
    uint32_t         n = 0, at = 0;
    for (const char *p = r->op->attrs; (p = strchr(p, ':')) != NULL; p++) {
        char code = p[1];
        if (code == 'n') continue;
        if (code == 'p') ints[n++] = 0;
        if (code == 'b') ints[n++] = 0, ints[n++] = 0;
        uint32_t end = cot__attr_is_list(code) ? of->nints : at + 1;
        for (; at < end && n < COUNTOF(ints); at++)
            ints[n++] = code == 'a' || code == 'p' ? of->ints[at] + 1 : code == 'm' ? of->ints[at] << 1 : of->ints[at];
    }
    cot__attr *attr = cot__attr_make(r->t, r->op->name, (int)n, ints, 0, NULL);
    if (!attr) return NULL;
    attr->number = of->number, attr->pointer = of->pointer, attr->pointer2 = of->pointer2;
    return attr;
}

/* Hands out the results of an operation that was recorded once more. */
static cot_var all_results(cot__rule *r, cot_var z) {
    for (int k = 1, m = r->more ? cot__results_at(r->t, r->node) : 1; k < m; k++) r->more[k - 1] = cot__result_of(z, k);
    return z;
}

cot_var cot__batch_apply(cot__rule *r, int64_t extent, const cot_var *xs) {
    cot__rule batched = *r;
    cot_shape z = cot__batch_shape(r->t, extent, cot__shape_at(r->t, r->node));
    if (r->op->attrs && !(batched.attr = shifted_attr(r))) return INVALID(r->t);
    batched.result = &z;
    return r->t->status == COT_OK ? all_results(r, cot__apply(&batched, xs)) : INVALID(r->t);
}

cot_var cot__batch_shift(cot__rule *r, const cot__batch *b, cot_var *xs) {
    for (int k = 0; k < b->n; k++) xs[k] = cot__batch_full(b, k, xs[k]);
    return cot__batch_apply(r, b->extent, xs);
}

/* ---- one after the other --------------------------------------------------------------------- */

static cot_var no_examples(cot_tape *t, uint32_t result) {
    cot_shape z = cot__batch_shape(t, 0, cot__shape_at(t, result));
    return t->status == COT_OK ? cot_zeros(t, cot__dtype_at(&t->nodes[result]), z) : INVALID(t);
}

/* Result k of all examples, for each k in order: `each` holds result 0 of each, then result k. */
static cot_var stacked(cot_tape *t, int64_t extent, cot_var *each, int k) {
    if (t->status != COT_OK) return INVALID(t);
    for (int64_t i = 0; k > 0 && i < extent; i++) each[i] = cot__result_of(each[i], 1);
    return cot_stack((int)extent, each, 0);
}

cot_var cot__batch_loop(cot__rule *r, const cot__batch *b, cot_var *xs) {
    cot_tape *t = r->t;
    int       m = r->more ? cot__results_at(t, r->node) : 1;
    if (b->extent == 0) {
        for (int k = 1; k < m; k++) r->more[k - 1] = no_examples(t, r->node + (uint32_t)k);
        return no_examples(t, r->node);
    }
    cot__batch_shape(t, b->extent, cot__shape_at(t, r->node)); /* is there an axis left? */
    if (b->extent > INT32_MAX)
        return cot__fail(t, COT_LIMIT, "[%s] a batch of %lld is done one by one, and is too large for that",
                         r->op->name, (long long)b->extent);
    size_t   bytes = (size_t)(b->extent + b->n) * sizeof(cot_var);
    cot_var *each = cot__alloc(&t->al, bytes), result = INVALID(t);
    if (!each)
        return cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %lld values", r->op->name, (long long)b->extent);
    cot_var *one = each + b->extent;
    for (int64_t i = 0; i < b->extent && t->status == COT_OK; i++) {
        for (int k = 0; k < b->n; k++) one[k] = b->is[k] ? cot_index(xs[k], 0, i) : xs[k];
        each[i] = cot__reapply(t, r->node, one);
        cot__error_in(t, "example %lld of the batch", (long long)i);
    }
    result = stacked(t, b->extent, each, 0);
    for (int k = 1; k < m; k++) r->more[k - 1] = stacked(t, b->extent, each, k);
    cot__free(&t->al, each, bytes);
    return result;
}

/* ---- any node -------------------------------------------------------------------------------- */

cot_var cot__reapply_batched(cot_tape *t, uint32_t node, const cot__batch *b, cot_var *xs, cot_var *more) {
    int       op = t->nodes[node].op, ndim = cot__ndim_at(t, node);
    cot__rule r = {.t = t, .node = node, .op = cot__op_of(op), .more = more};
    bool      any = false;
    for (int k = 0; k < b->n; k++) any |= b->is[k];
    if (!any && !r.op->reached) return all_results(&r, cot__reapply(t, node, xs));
    if (op < OP_structural) {
        for (int k = 0; k < b->n; k++)
            if (b->is[k]) xs[k] = cot__batch_align(xs[k], ndim);
        return cot__reapply(t, node, xs);
    }
    return (r.op->batch ? r.op->batch : cot__batch_loop)(&r, b, xs);
}
