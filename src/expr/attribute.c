/* attribute.c: x.T, x.shape and their like. */
#include "expr/program.h"

#include <string.h>

bool cot__shape_tuple(cot__evaluation *r, cot_shape s, cot__item *out) {
    cot__item *items = cot__store_take(&r->pool, (size_t)(s.ndim + 1) * sizeof *items);
    if (!items) return cot__expr_short_of_memory(r->error);
    for (int k = 0; k < s.ndim; k++) items[k] = cot__item_integer(s.dim[k]);
    *out = (cot__item){.kind = ITEM_TUPLE, .n = s.ndim, .as.items = items};
    return true;
}

bool cot__operate_attribute(cot__evaluation *r, const cot__item *x, const char *name, cot__item *out) {
    static const char *const names[] = {"T", "shape", "ndim", "size", "dtype"};
    cot_var                  a;
    int                      which = 0;
    if (x->kind == ITEM_SPARSE) return cot__operate_sparse_attribute(r, x, name, out);
    while (which < COUNTOF(names) && strcmp(names[which], name)) which++;
    if (which == COUNTOF(names))
        return cot__evaluation_fail(r, "there is no attribute '%.40s'; there are T, shape, ndim, size and dtype", name);
    if (!cot__to_var(r, x, &a)) return false;
    switch (which) {
    case 0: return cot__checked(r, (cot_transpose)(a), out);
    case 1: return cot__shape_tuple(r, cot_shape_of(a), out);
    case 2: *out = cot__item_integer(cot_shape_of(a).ndim); return true;
    case 3: *out = cot__item_integer(cot_size(a)); return true;
    default: *out = (cot__item){.kind = ITEM_DTYPE, .as.integer = cot_dtype_of(a)}; return true;
    }
}
