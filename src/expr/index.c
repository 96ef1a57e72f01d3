/* index.c: x[…] as NumPy reads it: integers, slices, None and `...`; one array of positions or of
 * bools anywhere; several arrays of positions in front. */
#include "expr/program.h"

static bool is_array(const cot__item *x) {
    return cot__is_sequence(x) || (x->kind == ITEM_VAR && cot_shape_of(x->as.var).ndim > 0);
}

/* ---- what is asked for ----------------------------------------------------------------------- */

typedef struct plan {
    int              n;
    const cot__item *items;
    int              arrays;    /* number of items that are arrays */
    int              consumed;  /* number of axes of x that the items index */
    int              ellipsis;
} plan;

static bool make_plan(cot__evaluation *r, plan *p, int ndim) {
    int first = -1, last = -1, advanced = 0;
    for (int i = 0; i < p->n; i++) {
        const cot__item *x = &p->items[i];
        int64_t          unused;
        char             words[100];
        bool             array = is_array(x);
        if (x->kind == ITEM_ELLIPSIS) {
            if (p->ellipsis++) return cot__evaluation_fail(r, "an index has at most one '...'");
            continue;
        }
        if (x->kind == ITEM_NONE) continue;
        if (x->kind == ITEM_SLICE) {
            p->consumed++;
            continue;
        }
        if (!array && (x->kind == ITEM_BOOL || !cot__as_integer(x, &unused)))
            return cot__evaluation_fail(
                r, "an index must be an integer, a slice, an array of integers or bools, None or ..., not %s%s",
                cot__item_words(x, words, sizeof words),
                x->kind != ITEM_VAR           ? ""
                : cot__is_compiled(x->as.var) ? "; take(x, i, axis=0) takes one"
                                              : "; cast(…, i64) makes an integer");
        if (array && x->kind == ITEM_VAR && cot__dtype_is_float(cot_dtype_of(x->as.var)))
            return cot__evaluation_fail(r, "positions are integers, and this is %s; cast(…, i64) makes them",
                                        cot__item_words(x, words, sizeof words));
        bool mask = array && x->kind == ITEM_VAR && cot_dtype_of(x->as.var) == COT_BOOL;
        p->consumed += mask ? cot_shape_of(x->as.var).ndim : 1;
        p->arrays += array;
        advanced++;
        if (first < 0) first = i;
        last = i;
    }
    if (p->consumed > ndim && ndim == 0)
        return cot__evaluation_fail(r, "a single number has no elements to choose from");
    if (p->consumed > ndim)
        return cot__evaluation_fail(r, "%d indices for an array of %d %s", p->consumed, ndim,
                                    ndim == 1 ? "axis" : "axes");
    if (p->arrays > 0 && last - first + 1 != advanced)
        return cot__evaluation_fail(
            r, "integers and arrays with a slice between them: NumPy would move axes; index in two steps");
    if (p->arrays > 1 && first != 0)
        return cot__evaluation_fail(r, "several arrays of positions must come first; index in two steps");
    return true;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static bool part(cot__evaluation *r, const cot__item *x, int64_t otherwise, int64_t *out) {
    char words[100];
    if (x->kind == ITEM_NONE) {
        *out = otherwise;
        return true;
    }
    if (x->kind != ITEM_BOOL && cot__as_integer(x, out)) return true;
    return cot__evaluation_fail(r, "the parts of a slice are integers, not %s",
                                cot__item_words(x, words, sizeof words));
}

static bool slice(cot__evaluation *r, cot_var *x, int axis, const cot__item *item) {
    int64_t          start, stop, step, extent = cot_shape_of(*x).dim[axis];
    const cot__item *three = item->as.items;
    if (three[0].kind == ITEM_NONE && three[1].kind == ITEM_NONE && three[2].kind == ITEM_NONE) return true;
    if (!part(r, &three[2], 1, &step) || !part(r, &three[0], step < 0 ? extent - 1 : 0, &start) ||
        !part(r, &three[1], COT_END, &stop))
        return false;
    *x = (cot_slice)(*x, axis, start, stop, step);
    return cot_is_valid(*x) || cot__evaluation_tape_failed(r);
}

/* Takes one array of positions or of bools along an axis. *axes: number of axes of the result that
 * it makes. */
static bool take(cot__evaluation *r, cot_var *x, int axis, const cot__item *item, int *axes) {
    cot_var at;
    if (!cot__to_var(r, item, &at)) return false;
    cot_shape s = cot_shape_of(at);
    *axes = s.ndim;
    if (cot_dtype_of(at) == COT_BOOL) {
        if (axis > 0 && s.ndim > 1)
            return cot__evaluation_fail(r, "a mask of %d axes must come first; index in two steps", s.ndim);
        *axes = 1;
        *x = axis == 0 ? (cot_masked_select)(*x, at) : (cot_compress)(*x, at, axis);
    } else {
        *x = (cot_take)(*x, at, axis);
    }
    return cot_is_valid(*x) || cot__evaluation_tape_failed(r);
}

static bool common_shape(cot__evaluation *r, int n, const cot_var *xs, cot_shape *out) {
    *out = (cot_shape){.ndim = 0};
    for (int i = 0; i < n; i++) {
        cot_shape s = cot_shape_of(xs[i]);
        for (; out->ndim < s.ndim; out->ndim++) {
            for (int k = out->ndim; k > 0; k--) out->dim[k] = out->dim[k - 1];
            out->dim[0] = 1;
        }
        for (int k = 0; k < s.ndim; k++) {
            int64_t *d = &out->dim[out->ndim - s.ndim + k];
            if (*d == 1)
                *d = s.dim[k];
            else if (s.dim[k] != 1 && s.dim[k] != *d)
                return cot__evaluation_fail(r, "the arrays of positions do not fit each other: extents %lld and %lld",
                                            (long long)*d, (long long)s.dim[k]);
        }
    }
    return true;
}

/* x[i, j, …] with arrays: puts the coordinates side by side, then gathers once. */
static bool gather(cot__evaluation *r, cot_var *x, int n, const cot__item *items, int *axes) {
    cot_var   at[COT_MAX_NDIM];
    cot_shape shape;
    for (int i = 0; i < n; i++) {
        if (!cot__to_var(r, &items[i], &at[i])) return false;
        if (cot_dtype_of(at[i]) == COT_BOOL)
            return cot__evaluation_fail(r, "a mask beside other arrays is not possible; index in two steps");
    }
    if (!common_shape(r, n, at, &shape)) return false;
    for (int i = 0; i < n; i++) at[i] = (cot_broadcast_to)(at[i], shape);
    *x = (cot_gather)(*x, (cot_stack)(n, at, -1));
    *axes = shape.ndim;
    return cot_is_valid(*x) || cot__evaluation_tape_failed(r);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Negative positions count from the end, as in Python. A position outside of the list is an
 * error. */
static bool of_sequence(cot__evaluation *r, const cot__item *x, int64_t i, cot__item *out) {
    if (i < -(int64_t)x->n || i >= x->n)
        return cot__evaluation_fail(r, "element %lld of %d; they are counted from 0, or from the end as -1, -2, …",
                                    (long long)i, x->n);
    *out = x->as.items[i < 0 ? i + x->n : i];
    return true;
}

bool cot__operate_index(cot__evaluation *r, const cot__item *of, int n, const cot__item *items, cot__item *out) {
    int64_t i;
    cot_var x;
    if (n == 1 && cot__is_sequence(of) && items[0].kind == ITEM_INTEGER)
        return of_sequence(r, of, items[0].as.integer, out);
    if (n == 1 && items[0].kind == ITEM_TUPLE) { /* x[(0, 1)] is x[0, 1] */
        n = items[0].n;
        items = items[0].as.items;
    }
    if (!cot__to_var(r, of, &x)) return false;
    int  ndim = cot_shape_of(x).ndim, axis = 0, done = 0;
    plan p = {.n = n, .items = items};
    if (!make_plan(r, &p, ndim)) return false;
    if (p.arrays > 1) {
        int together = 0;
        while (together < n && items[together].kind != ITEM_SLICE && items[together].kind != ITEM_NONE &&
               items[together].kind != ITEM_ELLIPSIS)
            together++;
        if (!gather(r, &x, together, items, &axis)) return false;
        done = together;
    }
    for (int k = done; k < n; k++) {
        const cot__item *item = &items[k];
        int              axes = 0;
        if (item->kind == ITEM_ELLIPSIS) {
            axis += ndim - p.consumed;
        } else if (item->kind == ITEM_NONE) {
            x = (cot_expand_dims)(x, axis++);
        } else if (item->kind == ITEM_SLICE) {
            if (!slice(r, &x, axis++, item)) return false;
        } else if (is_array(item)) {
            if (!take(r, &x, axis, item, &axes)) return false;
            axis += axes;
        } else {
            cot__as_integer(item, &i);
            x = (cot_index)(x, axis, i);
        }
        if (!cot_is_valid(x)) return cot__evaluation_tape_failed(r);
    }
    return cot__checked(r, x, out);
}
