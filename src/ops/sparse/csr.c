/* csr.c: the public functions of sparse matrices that are made: products, sums, softmax, and what a
 * matrix is in other forms.
 *
 * Each checks that the struct is one that csr_make.c makes, brings dtypes and leading axes
 * together, and records the operations of csr_ops.c. */
#include "ops/sparse/sparse.h"

/* ---- checks ---------------------------------------------------------------------------------- */

/* A matrix whose struct was looked at. */
typedef struct matrix {
    cot_tape *t;
    cot_csr   a;
    int64_t   entries;
} matrix;

/* x: an operand beside it, whose tape hears of errors, too. */
static bool check_matrix(const char *op, cot_csr a, cot_var x, matrix *m) {
    uint32_t v, p;
    char     text[COT__SHAPE_TEXT], of[COT__SHAPE_TEXT];
    cot_tape *t = cot__tape_of(3, (cot_var[]){a.values, a.pattern, x});
    if (!cot__enter(t, a.values, op, "values", &v) || !cot__enter(t, a.pattern, op, "pattern", &p)) return false;
    if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[v])) && (v = cot__as(t, v, COT_F64)) == COT__NONE) return false;
    cot_shape sp = cot__shape_at(t, p), sv = cot__shape_at(t, v);
    int64_t   n = sp.ndim == 1 ? sp.dim[0] : -1, rest = -1; /* the struct may hold any numbers */
    if (a.rows >= 0 && a.columns >= 0 && a.rows <= n && a.columns <= n) rest = n - 2 - a.rows - a.columns;
    if (rest < 0 || rest % 3 || cot__dtype_at(&t->nodes[p]) != COT_I32) {
        cot__fail(
            t, COT_SHAPE,
            "[%s] the pattern is %s of shape %s, and the matrix has %lld rows and %lld columns; a pattern is made "
            "by cot_csr_from_triplets and its like",
            op, cot__dtype_name(cot__dtype_at(&t->nodes[p])), cot__shape_text(sp.ndim, sp.dim, text), (long long)a.rows,
            (long long)a.columns);
        return false;
    }
    if (sv.ndim >= COT_MAX_NDIM) {
        cot__fail(t, COT_LIMIT, "[%s] the values have %d axes; a matrix has one more, and at most %d are possible", op,
                  sv.ndim, COT_MAX_NDIM);
        return false;
    }
    *m = (matrix){t, {a.rows, a.columns, VAR(t, v), VAR(t, p)}, rest / 3};
    if (sv.ndim > 0 && sv.dim[sv.ndim - 1] == m->entries) return true;
    cot__fail(t, COT_SHAPE,
              "[%s] the values have shape %s, the pattern %s entries; the last axis of values has one for each", op,
              cot__shape_text(sv.ndim, sv.dim, text), cot__shape_text(1, &m->entries, of));
    return false;
}

static cot_var failed(cot_csr a) { return cot__invalid(2, (cot_var[]){a.values, a.pattern}); }
static cot_csr failed_matrix(cot_csr a) { return (cot_csr){a.rows, a.columns, failed(a), failed(a)}; }

/* The leading axes of both, all but the last m of a and n of b: those of the one that has some.
 * Where both have, they are equal, which broadcasting looks at. There is room for the last axes, as
 * check_matrix leaves it. */
static bool share_leading(const char *op, cot_var *a, int m, cot_var *b, int n) {
    cot_shape sa = cot_shape_of(*a), sb = cot_shape_of(*b), from = sa.ndim - m >= sb.ndim - n ? sa : sb;
    int       lead = from.ndim - (sa.ndim - m >= sb.ndim - n ? m : n);
    for (int which = 0; which < 2 && lead > 0; which++) {
        cot_shape s = which ? sb : sa, to = from;
        to.ndim = lead;
        for (int k = which ? n : m; k > 0; k--) to.dim[to.ndim++] = s.dim[s.ndim - k];
        cot_var wide = cot__broadcast_as(op, which ? *b : *a, to);
        if (cot__failed(wide)) return false;
        *(which ? b : a) = wide;
    }
    return true;
}

/* ---- products -------------------------------------------------------------------------------- */

/* x with an axis of one column behind it if it is a vector, and rows as many as `extent`. */
static bool check_rows(const char *op, const char *name, cot_tape *t, cot_var *x, int64_t extent, const char *of) {
    char      text[COT__SHAPE_TEXT];
    cot_shape s = cot_shape_of(*x);
    int64_t   rows = s.ndim == 1 ? s.dim[0] : s.ndim > 1 ? s.dim[s.ndim - 2] : -1;
    if (rows != extent) {
        cot__fail(t, COT_SHAPE, "[%s] %s has shape %s, and the matrix %lld %s; %s has as many rows", op, name,
                  cot__shape_text(s.ndim, s.dim, text), (long long)extent, of, name);
        return false;
    }
    if (s.ndim == 1) *x = cot_expand_dims(*x, 1);
    return !cot__failed(*x);
}

/* values and x in one dtype. */
static bool promote(const char *op, const char *const names[2], cot_var *a, cot_var *b) {
    uint32_t  xs[2];
    cot_tape *t = cot__enter_all(op, names, 2, (cot_var[]){*a, *b}, true, xs);
    if (!t) return false;
    *a = VAR(t, xs[0]);
    *b = VAR(t, xs[1]);
    return true;
}

static cot_var product(const char *op, cot_csr a, cot_var x, bool transposed) {
    static const char *const names[] = {"values", "x"};
    matrix m;
    if (!check_matrix(op, a, x, &m) || !promote(op, names, &m.a.values, &x))
        return cot__invalid(3, (cot_var[]){a.values, a.pattern, x});
    bool vector = cot_shape_of(x).ndim == 1;
    if (!check_rows(op, "x", m.t, &x, transposed ? a.rows : a.columns, transposed ? "rows" : "columns") ||
        !share_leading(op, &m.a.values, 1, &x, 2))
        return INVALID(m.t);
    cot_var z = cot__csr_product(op, m.a.values, x, m.a.pattern, transposed);
    return vector ? cot_squeeze(z, COT_AXES(-1)) : z;
}

cot_var cot_csr_matmul(cot_csr a, cot_var x) { return product("csr_matmul", a, x, false); }
cot_var cot_csr_matmul_transposed(cot_csr a, cot_var x) { return product("csr_matmul_transposed", a, x, true); }

cot_var cot_matmul_csr(cot_var x, cot_csr a) {
    static const char op[] = "matmul_csr";
    uint32_t          i;
    char              text[COT__SHAPE_TEXT];
    cot_tape         *t = cot__enter(NULL, x, op, "x", &i);
    if (!t) return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, i);
    if (s.ndim < 2) return product(op, a, x, true);
    if (s.dim[s.ndim - 1] != a.rows)
        return cot__fail(t, COT_SHAPE, "[%s] x has shape %s, and the matrix %lld rows; x has as many columns", op,
                         cot__shape_text(s.ndim, s.dim, text), (long long)a.rows);
    return cot__swap_last(product(op, a, cot__swap_last(x), true));
}

cot_csr cot_csr_sddmm(cot_csr a, cot_var x, cot_var y) {
    static const char        op[] = "csr_sddmm";
    static const char *const names[] = {"x", "y"};
    matrix m;
    char   sx[COT__SHAPE_TEXT], sy[COT__SHAPE_TEXT];
    if (!check_matrix(op, a, x, &m) || !promote(op, names, &x, &y)) {
        cot_var z = cot__invalid(4, (cot_var[]){a.values, a.pattern, x, y});
        return (cot_csr){a.rows, a.columns, z, z};
    }
    cot_csr z = m.a;
    z.values = INVALID(m.t);
    if (!check_rows(op, "x", m.t, &x, a.rows, "rows") || !check_rows(op, "y", m.t, &y, a.columns, "columns")) return z;
    cot_shape l = cot_shape_of(x), r = cot_shape_of(y);
    if (l.dim[l.ndim - 1] != r.dim[r.ndim - 1])
        cot__fail(m.t, COT_SHAPE, "[%s] x has shape %s and y %s; their last axes must be equal", op,
                  cot__shape_text(l.ndim, l.dim, sx), cot__shape_text(r.ndim, r.dim, sy));
    else if (share_leading(op, &x, 2, &y, 2)) z.values = cot__csr_samples(op, x, y, m.a.pattern);
    return z;
}

/* ---- sums and softmax ------------------------------------------------------------------------ */

static cot_var sums(const char *op, cot_csr a, bool transposed) {
    matrix m;
    if (!check_matrix(op, a, a.values, &m)) return failed(a);
    cot_var ones = cot__csr_ones(m.a.values, 1, transposed ? a.rows : a.columns);
    return cot_squeeze(cot__csr_product(op, m.a.values, ones, m.a.pattern, transposed), COT_AXES(-1));
}

cot_var cot_csr_sum_rows(cot_csr a) { return sums("csr_sum_rows", a, false); }
cot_var cot_csr_sum_columns(cot_csr a) { return sums("csr_sum_columns", a, true); }

cot_csr cot_csr_softmax(cot_csr a) {
    matrix m;
    if (!check_matrix("csr_softmax", a, a.values, &m)) return failed_matrix(a);
    m.a.values = cot__csr_weights("csr_softmax", m.a.values, m.a.pattern, a.rows);
    return m.a;
}

/* ---- other forms ----------------------------------------------------------------------------- */

/* n integers of the pattern from `first` on: a view. */
static cot_var part(cot_csr a, int64_t first, int64_t n) { return cot_slice(a.pattern, 0, first, first + n, 1); }

static cot_var entry_rows(const matrix *m) {
    cot_var number = cot_arange(m->t, COT_I32, 0, (double)m->entries, 1);
    return cot_searchsorted(part(m->a, 1, m->a.rows), number, true);
}

static cot_var entry_columns(const matrix *m) { return part(m->a, m->a.rows + 1, m->entries); }

cot_var cot_csr_entry_rows(cot_csr a) {
    matrix m;
    return check_matrix("csr_entry_rows", a, a.values, &m) ? entry_rows(&m) : failed(a);
}

cot_var cot_csr_entry_columns(cot_csr a) {
    matrix m;
    return check_matrix("csr_entry_columns", a, a.values, &m) ? entry_columns(&m) : failed(a);
}

/* The halves of the pattern change places, and the order becomes its inverse: entry k of a is
 * number inverse[k] of aᵀ. */
cot_csr cot_csr_transpose(cot_csr a) {
    matrix m;
    if (!check_matrix("csr_transpose", a, a.values, &m)) return failed_matrix(a);
    int64_t half = a.rows + 1 + m.entries, turned = a.columns + 1 + m.entries;
    cot_var order = part(m.a, half + turned, m.entries);
    cot_var inverse = cot_cast(cot_argsort(order, 0, false), COT_I32);
    cot_var halves[3] = {part(m.a, half, turned), part(m.a, 0, half), inverse};
    return (cot_csr){a.columns, a.rows, cot__take_as("csr_transpose", m.a.values, order, -1), cot_concat(3, halves, 0)};
}

cot_var cot_csr_to_dense(cot_csr a) {
    matrix m;
    if (!check_matrix("csr_to_dense", a, a.values, &m)) return failed(a);
    cot_var   at = cot_add(cot_mul(entry_rows(&m), a.columns), entry_columns(&m));
    cot_shape s = cot_shape_of(m.a.values), z = s;
    z.ndim = s.ndim + 1;
    z.dim[s.ndim - 1] = a.rows;
    z.dim[s.ndim] = a.columns;
    s.dim[s.ndim - 1] = cot__size_mul(a.rows, a.columns);
    if (!cot__check_shape(m.t, "csr_to_dense", &z)) return INVALID(m.t);
    cot_var flat = cot_zeros(m.t, cot_dtype_of(m.a.values), s);
    return cot_reshape(cot_scatter_add(flat, at, m.a.values, -1), z);
}
