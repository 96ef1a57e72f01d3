/* order.c: sorting and searching.
 *
 * One operation finds the order, argsort (of the k first only, for topk); values are then taken
 * from there, so their derivatives follow the permutation. Orders are stable: of equal elements the
 * first comes first, and gets the gradient. A NaN is above everything. */
#include "rules/structural_ids.h"
#include "ops/costs.h"
#include "ops/kinks.h"
#include "ops/structural.h"

enum { AXIS, DESCENDING, SORT_INTS };

/* The places of the k first along the axis, k of the shape that is asked for. */
static bool argsort_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, SORT_INTS) || !cot__job_axis(j, AXIS, j->x[0].ndim)) return false;
    const cot__view *x = &j->x[0];
    int64_t          axis = cot__job_int(j, AXIS);
    bool             fits = z->shape.ndim == x->ndim;
    for (int k = 0; fits && k < x->ndim; k++)
        fits = k == axis ? z->shape.dim[k] >= 0 && z->shape.dim[k] <= x->shape[k] : z->shape.dim[k] == x->shape[k];
    z->dtype = COT_I64;
    return fits || cot__job_illegal(j, "more places than elements, or in another shape");
}

static int64_t argsort_workspace(const cot__job *j) {
    int axis = (int)cot__job_int(j, AXIS);
    return j->backend->argsort_workspace(&j->x[0], axis, j->z.shape[axis]);
}

static void argsort_run(const cot__job *j) {
    j->backend->argsort(&j->x[0], (int)cot__job_int(j, AXIS), cot__job_int(j, DESCENDING) != 0, &j->z, j->workspace);
}

/* k < 0: all. */
static cot_var push_argsort(const char *op, cot_tape *t, uint32_t i, int axis, int64_t k, bool descending) {
    cot__type asked = {COT_I64, cot__shape_at(t, i)};
    if (k >= 0) asked.shape.dim[axis] = k;
    cot__attr *attr = cot__attr_make(t, op, SORT_INTS, (int64_t[]){axis, descending}, 0, NULL);
    return attr ? cot__record(t, op, OP_argsort, 1, &i, attr, &asked) : INVALID(t);
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
    int64_t extent = cot__layout_at(t, i).shape[axis];
    if (k < 0 || k > extent)
        return cot__fail(t, COT_VALUE,
                         "[topk] the %lld largest of %lld elements along axis %d; k runs from 0 to the extent",
                         (long long)k, (long long)extent, axis);
    cot_var places = push_argsort("topk", t, i, axis, k, true);
    if (indices) *indices = places;
    return cot_take_along_axis(x, places, axis);
}

static double argsort_cost(const cot_tape *t, uint32_t node) {
    double n = cot__operand_size(t, node, 0);
    return n * cot__halvings(n);
}

const cot__op cot__op_argsort = {.name     = "argsort",
                                 .batch    = cot__batch_shift,
                                 .attrs    = "axis:a descending:f",
                                 .kind     = KIND_NONE,
                                 .infer    = argsort_infer,
                                 .asks     = COT__ASKS_SHAPE,
                                 .workspace = argsort_workspace,
                                 .run      = argsort_run,
                                 .formula =
                                     "z = the places that bring x in order; of equal elements the first comes first",
                                 .cost     = {.more = argsort_cost},
                                 .operands = "x",
                                 .kinks    = cot__order_kinks};

/* ---- searchsorted ---------------------------------------------------------------------------- */

static bool searchsorted_infer(const cot__job *j, cot__type *z) {
    char text[COT__SHAPE_TEXT];
    if (!cot__job_has(j, 2, 2, 1)) return false;
    const cot__view *x = &j->x[0];
    if (x->ndim != 1)
        return cot__refuse(j->caller, COT_SHAPE, "the sorted array has shape %s; it must be a vector",
                           cot__shape_text(x->ndim, x->shape, text));
    cot__type_like(z, COT_I64, &j->x[1]);
    return cot__job_dtype(j, 1, x->dtype);
}

static bool searchsorted_check(const cot__job *j) {
    int64_t found[2];
    j->backend->first_descent(&j->x[0], j->status);
    cot__job_found(j, found);
    return !found[0] ||
           cot__refuse(j->caller, COT_VALUE,
                       "element %lld is smaller than the one before it; the array must be sorted, upward, NaN last",
                       (long long)found[1]);
}

static void searchsorted_run(const cot__job *j) {
    j->backend->searchsorted(&j->x[0], &j->x[1], cot__job_int(j, 0) != 0, &j->z);
}

cot_var cot_searchsorted(cot_var sorted, cot_var v, bool right) {
    static const char *const names[2] = {"first", "second"};
    uint32_t                 index[2];
    cot_tape                *t = cot__enter_all("searchsorted", names, 2, (cot_var[]){sorted, v}, false, index);
    if (!t) return cot__invalid(2, (cot_var[]){sorted, v});
    cot__attr *attr = cot__attr_make(t, "searchsorted", 1, (int64_t[]){right}, 0, NULL);
    return attr ? cot__record(t, "searchsorted", OP_searchsorted, 2, index, attr, NULL) : INVALID(t);
}

static double searchsorted_cost(const cot_tape *t, uint32_t node) {
    return (double)cot__size_at(t, node) * cot__halvings(cot__operand_size(t, node, 0));
}

const cot__op cot__op_searchsorted = {.name = "searchsorted", .batch = cot__batch_searchsorted, .attrs = "right:f",
                                      .kind = KIND_NONE, .infer = searchsorted_infer,
                                      .check = searchsorted_check, .run = searchsorted_run,
                                      .formula = "z[i] = how many of the sorted array are < v[i] (right: <= v[i])",
                                      .cost = {.more = searchsorted_cost},
                                      .operands = "x y"};
