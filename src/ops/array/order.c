/* order.c: sorting and searching.
 *
 * One operation finds the order, argsort (of the k first only, for topk); values are then taken
 * from there, so their derivatives follow the permutation. Orders are stable: of equal elements the
 * first comes first, and gets the gradient. A NaN is above everything. */
#include "rules/structural_ids.h"
#include "ops/costs.h"
#include "ops/kinks.h"
#include "ops/structural.h"

/* The places of the k first along the axis; k < 0: all. */
static cot_var push_argsort(const char *op, cot_tape *t, uint32_t i, int axis, int64_t k, bool descending) {
    cot__result r;
    cot__view   v = cot__view_read(t, i);
    cot_shape   shape = cot__shape_at(t, i);
    if (k >= 0) shape.dim[axis] = k;
    cot__attr *attr = cot__attr_make(t, op, 2, (int64_t[]){axis, descending}, 0, NULL);
    if (!attr || !cot__result_open(t, &r, op, COT_I64, shape.ndim, shape.dim)) return INVALID(t);
    size_t bytes = t->backend->argsort_workspace(&v, axis, shape.dim[axis]);
    void  *scratch = bytes > 0 ? cot__alloc(&t->al, bytes) : NULL;
    if (bytes > 0 && !scratch) return cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes to sort in", op, bytes);
    t->backend->argsort(&v, axis, descending, &r.view, scratch);
    cot__free(&t->al, scratch, bytes);
    return cot__result_push(t, &r, OP_argsort, 1, &i, attr);
}

cot_var cot_argsort(cot_var x, int axis, bool descending) {
    uint32_t  i;
    cot_tape *t = cot__enter_axis("argsort", x, &axis, &i);
    return t ? push_argsort("argsort", t, i, axis, -1, descending) : cot__invalid(1, &x);
}

cot_var cot_sort(cot_var x, int axis, bool descending) {
    uint32_t  i;
    cot_tape *t = cot__enter_axis("sort", x, &axis, &i);
    return t ? cot_take_along_axis(x, push_argsort("sort", t, i, axis, -1, descending), axis) : cot__invalid(1, &x);
}

cot_var cot_topk(cot_var x, int64_t k, int axis, cot_var *indices) {
    uint32_t  i;
    cot_tape *t = cot__enter_axis("topk", x, &axis, &i);
    if (indices) *indices = cot__invalid(1, &x);
    if (!t) return cot__invalid(1, &x);
    int64_t extent = cot__view_read(t, i).shape[axis];
    if (k < 0 || k > extent)
        return cot__fail(t, COT_VALUE,
                         "[topk] the %lld largest of %lld elements along axis %d; k runs from 0 to the extent",
                         (long long)k, (long long)extent, axis);
    cot_var places = push_argsort("topk", t, i, axis, k, true);
    if (indices) *indices = places;
    return cot_take_along_axis(x, places, axis);
}

/* All along the axis where the node has all, else as many of the first as it has. */
static cot_var argsort_apply(cot__rule *r, const cot_var *xs) {
    const int64_t *a = cot__rule_attr(r)->ints;
    uint32_t       i;
    /* in the node; that in a may be another */
    int            axis = (int)cot__rule_node(r)->extra.attr->ints[0];
    int64_t        k = cot__shape_at(r->t, r->node).dim[axis];
    if (!cot__enter(r->t, xs[0], "argsort", "", &i)) return INVALID(r->t);
    return push_argsort("argsort", r->t, i, (int)a[0], k == cot__rule_shape(r, 0).dim[axis] ? -1 : k, a[1] != 0);
}

static double argsort_cost(const cot_tape *t, uint32_t node) {
    double n = cot__operand_size(t, node, 0);
    return n * cot__halvings(n);
}

const cot__op cot__op_argsort = {.name     = "argsort",
                                 .batch    = cot__batch_shift,
                                 .attrs    = "axis:a descending:f",
                                 .kind     = KIND_NONE,
                                 .apply    = argsort_apply,
                                 .formula =
                                     "z = the places that bring x in order; of equal elements the first comes first",
                                 .cost     = {.more = argsort_cost},
                                 .operands = "x",
                                 .kinks    = cot__order_kinks};

/* ---- searchsorted ---------------------------------------------------------------------------- */

cot_var cot_searchsorted(cot_var sorted, cot_var v, bool right) {
    static const char *const names[2] = {"first", "second"};
    char                     text[COT__SHAPE_TEXT];
    uint32_t                 index[2];
    cot_tape                *t = cot__enter_all("searchsorted", names, 2, (cot_var[]){sorted, v}, false, index);
    cot__result              r;
    if (!t) return cot__invalid(2, (cot_var[]){sorted, v});
    cot__view x = cot__view_read(t, index[0]), q = cot__view_read(t, index[1]);
    if (x.ndim != 1)
        return cot__fail(t, COT_SHAPE, "[searchsorted] the sorted array has shape %s; it must be a vector",
                         cot__shape_text(x.ndim, x.shape, text));
    int64_t bad = t->backend->first_descent(&x);
    if (bad >= 0)
        return cot__fail(
            t, COT_VALUE,
            "[searchsorted] element %lld is smaller than the one before it; the array must be sorted, upward, NaN last",
            (long long)bad);
    if (!cot__result_open(t, &r, "searchsorted", COT_I64, q.ndim, q.shape)) return INVALID(t);
    cot__attr *attr = cot__attr_make(t, "searchsorted", 1, (int64_t[]){right}, 0, NULL);
    if (!attr) return INVALID(t);
    t->backend->searchsorted(&x, &q, right, r.view.data);
    return cot__result_push(t, &r, OP_searchsorted, 2, index, attr);
}

static cot_var searchsorted_apply(cot__rule *r, const cot_var *xs) {
    return cot_searchsorted(xs[0], xs[1], cot__rule_attr(r)->ints[0] != 0);
}

static double searchsorted_cost(const cot_tape *t, uint32_t node) {
    return (double)cot__size_at(t, node) * cot__halvings(cot__operand_size(t, node, 0));
}

const cot__op cot__op_searchsorted = {.name = "searchsorted", .batch = cot__batch_searchsorted, .attrs = "right:f",
                                      .kind = KIND_NONE, .apply = searchsorted_apply,
                                      .formula = "z[i] = how many of the sorted array are < v[i] (right: <= v[i])",
                                      .cost = {.more = searchsorted_cost},
                                      .operands = "x y"};
