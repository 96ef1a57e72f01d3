/* sparse.c: sparse matrices in expressions: products from both sides, transposed too, scaling by a
 * number, sums, means and softmax, systems to solve, and the array or the entries of one.
 *
 * A matrix that is transposed is a mark on the item, so that products with it need nothing made.
 * What takes no matrix finds out where it asks for an array (convert.c), and says what does. */
#include "expr/program.h"

#include "ops/structural.h"

#include <string.h>

static bool put(cot__evaluation *r, cot_csr a, bool transposed, cot__item *out) {
    cot_csr *kept = cot__store_take(&r->pool, sizeof *kept);
    if (!kept) return cot__expr_short_of_memory(r->error);
    if (!cot_is_valid(a.values) || !cot_is_valid(a.pattern)) return cot__evaluation_tape_failed(r);
    *kept = a;
    *out = (cot__item){.kind = ITEM_SPARSE, .n = transposed, .as.matrix = kept};
    return true;
}

/* The matrix that the item means, made. */
static cot_csr made(const cot__item *x) { return x->n ? cot_csr_transpose(*x->as.matrix) : *x->as.matrix; }

cot_shape cot__matrix_shape(const cot__item *x) {
    const cot_csr *a = x->as.matrix;
    return COT_SHAPE(x->n ? a->columns : a->rows, x->n ? a->rows : a->columns);
}

int64_t cot__matrix_entries(const cot__item *x) {
    cot_shape s = cot_shape_of(x->as.matrix->values);
    return s.ndim ? s.dim[s.ndim - 1] : 0;
}

/* ---- operators ------------------------------------------------------------------------------- */

static bool is_single(const cot__item *x) {
    return cot__is_plain(x) || (x->kind == ITEM_VAR && cot_shape_of(x->as.var).ndim == 0);
}

static bool product(cot__evaluation *r, const cot__item *x, const cot__item *y, cot__item *out) {
    cot_var          d;
    const cot__item *a = x->kind == ITEM_SPARSE ? x : y;
    if (!cot__to_var(r, a == x ? y : x, &d)) return false;
    cot_csr m = *a->as.matrix;
    if (a == x) return cot__checked(r, a->n ? cot_csr_matmul_transposed(m, d) : cot_csr_matmul(m, d), out);
    if (!a->n) return cot__checked(r, cot_matmul_csr(d, m), out);
    /* x aᵀ = (a xᵀ)ᵀ, and of a vector a x */
    if (cot_shape_of(d).ndim < 2) return cot__checked(r, cot_csr_matmul(m, d), out);
    return cot__checked(r, cot__swap_last(cot_csr_matmul(m, cot__swap_last(d))), out);
}

bool cot__operate_sparse_binary(cot__evaluation *r, int what, const cot__item *x, const cot__item *y, cot__item *out) {
    cot_var s;
    if (what == '@' && x->kind == ITEM_SPARSE && y->kind == ITEM_SPARSE)
        return cot__evaluation_fail(r, "both are sparse matrices; one of a product's operands may be: to_dense(…) "
                                       "makes an array of the other");
    if (what == '@') return product(r, x, y, out);
    const cot__item *a = x->kind == ITEM_SPARSE ? x : y, *number = a == x ? y : x;
    if (!is_single(number) || !(what == '*' || (what == '/' && a == x))) /* says what it takes */
        return cot__to_var(r, a, &s);
    if (!cot__to_operand(r, number, &s)) return false;
    cot_csr m = *a->as.matrix;
    m.values = what == '*' ? (cot_mul)(m.values, s) : (cot_div)(m.values, s);
    return put(r, m, a->n, out);
}

bool cot__operate_sparse_unary(cot__evaluation *r, int what, const cot__item *x, cot__item *out) {
    cot_csr m = *x->as.matrix;
    if (what == '-') m.values = (cot_neg)(m.values);
    return put(r, m, x->n, out);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The argument of this name; NULL: it was not given. */
static const cot__item *argument(const cot__evaluation *r, const cot__item *given, const char *name) {
    const cot__expr_step *s = r->step;
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->as.call.callee->parameter[s->as.call.given[i].parameter].name, name) == 0) return &given[i];
    return NULL;
}

enum { ALL = -1, DOWN, ACROSS };

/* 0 or 1 for one of the two axes, ALL for None, if that is a choice. */
static bool axis_of(cot__evaluation *r, const cot__item *x, int fallback, bool may_be_all, int *axis) {
    int64_t k;
    *axis = fallback;
    if (!x || (x->kind == ITEM_NONE && may_be_all)) return true;
    if (!cot__as_integer(x, &k) || k < -2 || k > 1)
        return cot__evaluation_fail(r, "[%s] an axis of a sparse matrix is 0 or 1%s", r->step->as.call.callee->name,
                                    may_be_all ? ", or None for both" : "");
    *axis = k < 0 ? (int)k + 2 : (int)k;
    return true;
}

static bool sum(cot__evaluation *r, const cot__item *x, const cot__item *given, bool mean, cot__item *out) {
    const cot__item *keep = argument(r, given, "keepdims");
    int64_t          keeps = 0;
    int              axis;
    cot_var          z;
    if (keep && !cot__as_integer(keep, &keeps)) return cot__evaluation_fail(r, "keepdims is True or False");
    if (!axis_of(r, argument(r, given, "axis"), ALL, true, &axis)) return false;
    cot_shape s = cot__matrix_shape(x);
    /* the rows of a transposed matrix are columns of the one that is there */
    if (axis == ALL) z = (cot_sum)(x->as.matrix->values, COT_ALL);
    else if ((axis == ACROSS) != (x->n != 0)) z = cot_csr_sum_rows(*x->as.matrix);
    else z = cot_csr_sum_columns(*x->as.matrix);
    double count = (double)(axis == ALL ? s.dim[0] * s.dim[1] : s.dim[axis]);
    if (mean) z = (cot_div)(z, cot_number(count));
    if (keeps && axis == ALL) z = (cot_reshape)(z, COT_SHAPE(1, 1));
    else if (keeps) z = (cot_expand_dims)(z, axis);
    return cot__checked(r, z, out);
}

static bool softmax(cot__evaluation *r, const cot__item *x, const cot__item *given, cot__item *out) {
    int axis;
    if (!axis_of(r, argument(r, given, "axis"), ACROSS, false, &axis)) return false;
    cot__item turned = *x;
    if (axis == DOWN) turned.n = !turned.n;
    return put(r, cot_csr_softmax(made(&turned)), axis == DOWN, out);
}

bool cot__operate_sparse_call(cot__evaluation *r, const cot__item *given, cot__item *out, bool *taken) {
    const cot__callee *f = r->step->as.call.callee;
    const cot__item   *x = argument(r, given, f->parameter[0].name), *b = NULL;
    cot_var            d;
    *taken = true;
    if (f->n && x && x->kind == ITEM_SPARSE) {
        bool mean = strcmp(f->function, "mean") == 0;
        if (mean || strcmp(f->function, "sum") == 0) return sum(r, x, given, mean, out);
        if (strcmp(f->function, "softmax") == 0) return softmax(r, x, given, out);
        if (strcmp(f->function, "to_dense") == 0) {
            cot_var z = cot_csr_to_dense(*x->as.matrix);
            return cot__checked(r, x->n ? (cot_transpose)(z) : z, out);
        }
        if (strcmp(f->function, "solve") == 0 && (b = argument(r, given, f->parameter[1].name)))
            return cot__to_var(r, b, &d) && cot__checked(r, cot_csr_solve(made(x), d, NULL), out);
    }
    *taken = false; /* what asks for an array refuses a matrix, and names the argument */
    return true;
}

/* ---- attributes ------------------------------------------------------------------------------ */

bool cot__operate_sparse_attribute(cot__evaluation *r, const cot__item *x, const char *name, cot__item *out) {
    if (strcmp(name, "T") == 0) {
        *out = *x;
        out->n = !x->n;
        return true;
    }
    if (strcmp(name, "nnz") == 0) return *out = cot__item_integer(cot__matrix_entries(x)), true;
    if (strcmp(name, "ndim") == 0) return *out = cot__item_integer(2), true;
    if (strcmp(name, "data") == 0) return *out = cot__item_var(x->as.matrix->values), true;
    if (strcmp(name, "shape") == 0) return cot__shape_tuple(r, cot__matrix_shape(x), out);
    if (strcmp(name, "dtype") == 0) {
        *out = (cot__item){.kind = ITEM_DTYPE, .as.integer = cot_dtype_of(x->as.matrix->values)};
        return true;
    }
    return cot__evaluation_fail(r,
                                "a sparse matrix has no attribute '%.40s'; there are T, shape, ndim, nnz, data (its "
                                "entries) and dtype",
                                name);
}
