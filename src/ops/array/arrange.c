/* arrange.c: the same elements in another arrangement: roll, tile, repeat, diag, tril, triu, trace,
 * kron.
 *
 * All are compositions of recorded operations: views, joins and selections, so every order of
 * derivative is theirs, and what an operation leaves out gets a zero, also beside infinities. */
#include "ops/structural.h"

/* ---- roll, tile, repeat ---------------------------------------------------------------------- */

cot_var cot_roll(cot_var x, int64_t shift, int axis) {
    uint32_t  i;
    cot_tape *t = cot__enter_axis("roll", x, &axis, &i);
    if (!t) return cot__invalid(1, &x);
    int64_t n = cot__look(t, i).shape[axis];
    if (n == 0 || (shift %= n) == 0) return x;
    int64_t first = shift > 0 ? n - shift : -shift; /* the element that comes to the front */
    cot_var back = cot_slice(x, axis, first, n, 1), front = cot_slice(x, axis, 0, first, 1);
    return cot_concat(2, (cot_var[]){back, front}, axis);
}

/* x seen as (outer, 1, inner), repeated along the middle, in its new shape. */
static cot_var repeated(cot_var x, int64_t outer, int64_t count, int64_t inner, cot_shape shape) {
    x = cot_broadcast_to(cot_reshape(x, COT_SHAPE(outer, 1, inner)), COT_SHAPE(outer, count, inner));
    return cot_reshape(x, shape);
}

cot_var cot_tile(cot_var x, cot_shape reps) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "tile", "", &i);
    if (!t) return cot__invalid(1, &x);
    if (reps.ndim < 0 || reps.ndim > COT_MAX_NDIM)
        return cot__fail(t, COT_LIMIT, "[tile] %d repetition counts; there are 0 to %d, one for each axis", reps.ndim,
                         COT_MAX_NDIM);
    cot_shape s = cot__shape_at(t, i), now = {s.ndim > reps.ndim ? s.ndim : reps.ndim, {0}}, z = now;
    int       new_axes = now.ndim - s.ndim, no_count = now.ndim - reps.ndim;
    for (int k = 0; k < now.ndim; k++) {
        int64_t count = k < no_count ? 1 : reps.dim[k - no_count];
        if (count < 0)
            return cot__fail(t, COT_VALUE, "[tile] %lld repetitions along axis %d; counts are not negative",
                             (long long)count, k);
        now.dim[k] = k < new_axes ? 1 : s.dim[k - new_axes];
        z.dim[k] = cot__size_mul(now.dim[k], count);
    }
    if (!cot__check_shape(t, "tile", &z)) return INVALID(t);
    /* The counts do not matter, and may be more than any shape has. */
    if (cot__size_at(t, i) == 0) return cot_reshape(x, z);
    x = cot_reshape(x, now);
    for (int k = now.ndim - 1; k >= no_count; k--) {
        /* the inner axes first: the largest copy is the last */
        int64_t count = reps.dim[k - no_count], outer = cot__count(k, now.dim),
                inner = cot__count(now.ndim - k, now.dim + k);
        if (count == 1) continue;
        now.dim[k] = z.dim[k];
        x = repeated(x, outer, count, inner, now);
    }
    return x;
}

cot_var cot_repeat(cot_var x, int64_t count, int axis) {
    uint32_t  i;
    cot_tape *t = cot__enter_axis("repeat", x, &axis, &i);
    if (!t) return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, i), z = s;
    if (count < 0)
        return cot__fail(t, COT_VALUE, "[repeat] %lld repetitions; the count is not negative", (long long)count);
    z.dim[axis] = cot__size_mul(s.dim[axis], count);
    if (!cot__check_shape(t, "repeat", &z)) return INVALID(t);
    if (count == 1) return x;
    if (cot__size_at(t, i) == 0) return cot_reshape(x, z);
    return repeated(x, cot__count(axis + 1, s.dim), count, cot__count(s.ndim - axis - 1, s.dim + axis + 1), z);
}

/* ---- diagonals ------------------------------------------------------------------------------- */

/* Diagonal k of (rows, columns): its first place in the flattened matrix and its length; the places
 * are columns + 1 apart. */
static int64_t diagonal_length(int64_t rows, int64_t columns, int64_t k, int64_t *first) {
    *first = 0;
    if (k <= -rows || k >= columns) return 0;
    int64_t down = k < 0 ? -k : 0, right = k > 0 ? k : 0;
    *first = down * columns + right;
    return rows - down < columns - right ? rows - down : columns - right;
}

/* The diagonal of the last two axes: a strided slice of the flattened matrices, so its adjoint is
 * added where it belongs. */
static cot_var diagonal(cot_var x, cot_shape s, int64_t k) {
    int64_t columns = s.dim[s.ndim - 1], rows = s.dim[s.ndim - 2], first, n = diagonal_length(rows, columns, k, &first);
    cot_shape flat = s;
    flat.ndim--;
    flat.dim[flat.ndim - 1] = rows * columns;
    x = cot_reshape(x, flat);
    return n == 0 ? cot_slice(x, -1, 0, 0, 1)
                  : cot_slice(x, -1, first, first + (n - 1) * (columns + 1) + 1, columns + 1);
}

static cot_var diagonal_matrix(cot_tape *t, uint32_t i, int64_t k) {
    int64_t   n = cot__size_at(t, i), side = cot__size_add(n, k < 0 ? cot__size_neg(k) : k), first;
    cot_shape s = {2, {side, side}};
    if (!cot__check_shape(t, "diag", &s)) return INVALID(t);
    diagonal_length(side, side, k, &first);
    cot_var z = cot_zeros(t, cot__dtype_at(&t->nodes[i]), COT_SHAPE(side * side));
    if (n > 0) (cot_update_slice)(&z, 0, first, first + (n - 1) * (side + 1) + 1, side + 1, VAR(t, i));
    return cot_reshape(z, s);
}

cot_var cot_diag(cot_var x, int64_t k) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "diag", "", &i);
    if (!t) return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, i);
    if (s.ndim == 0) return cot__fail(t, COT_SHAPE, "[diag] the operand is a scalar; diag takes a vector or matrices");
    return s.ndim == 1 ? diagonal_matrix(t, i, k) : diagonal(x, s, k);
}

static cot_tape *enter_matrices(const char *op, cot_var x, cot_shape *s) {
    uint32_t  i;
    char      text[COT__SHAPE_TEXT];
    cot_tape *t = cot__enter(NULL, x, op, "", &i);
    if (!t) return NULL;
    *s = cot__shape_at(t, i);
    if (s->ndim >= 2) return t;
    cot__fail(t, COT_SHAPE,
              "[%s] the operand has shape %s; it needs at least two axes, the rows and columns of matrices", op,
              cot__shape_text(s->ndim, s->dim, text));
    return NULL;
}

cot_var cot_trace(cot_var x, int64_t k) {
    cot_shape s;
    if (!enter_matrices("trace", x, &s)) return cot__invalid(1, &x);
    return cot_sum(diagonal(x, s, k), COT_AXES(-1));
}

/* ---- triangles ------------------------------------------------------------------------------- */

/* x where column - row <= k (lower) or >= k, else 0: a selection, so that what goes out takes its
 * infinities and NaNs along. */
static cot_var triangle(const char *op, cot_var x, int64_t k, bool lower) {
    cot_shape s;
    cot_tape *t = enter_matrices(op, x, &s);
    if (!t) return cot__invalid(1, &x);
    if (cot_size(x) == 0) return x;
    int64_t rows = s.dim[s.ndim - 2], columns = s.dim[s.ndim - 1];
    k = k < -rows ? -rows : k > columns ? columns : k; /* beyond the corners nothing changes */
    cot_var down = cot_reshape(cot_arange(t, COT_I64, (double)k, (double)k + (double)rows, 1), COT_SHAPE(rows, 1));
    cot_var right = cot_arange(t, COT_I64, 0, (double)columns, 1);
    cot_var stays = lower ? cot_less_equal(right, down) : cot_greater_equal(right, down);
    if (cot_dtype_of(x) == COT_BOOL) return cot_logical_and(stays, x);
    return cot_where(stays, x, cot_zeros(t, cot_dtype_of(x), COT_SCALAR));
}

cot_var cot_tril(cot_var x, int64_t k) { return triangle("tril", x, k, true); }
cot_var cot_triu(cot_var x, int64_t k) { return triangle("triu", x, k, false); }

/* ---- kron ------------------------------------------------------------------------------------ */

/* z[i·m + j, …] = a[i, …] b[j, …]: a as (a0, 1, a1, 1, …) times b as (1, b0, 1, b1, …), neighbours
 * joined. */
cot_var(cot_kron)(cot_var a, cot_var b) {
    static const char *const names[2] = {"left", "right"};
    uint32_t                 index[2];
    cot_tape                *t = cot__enter_all("kron", names, 2, (cot_var[]){a, b}, false, index);
    if (!t) return cot__invalid(2, (cot_var[]){a, b});
    cot_shape sa = cot__shape_at(t, index[0]), sb = cot__shape_at(t, index[1]), wa, wb, z;
    int       n = sa.ndim > sb.ndim ? sa.ndim : sb.ndim;
    if (2 * n > COT_MAX_NDIM)
        return cot__fail(t, COT_LIMIT, "[kron] operands of rank %d and %d; at most %d axes are possible", sa.ndim,
                         sb.ndim, COT_MAX_NDIM / 2);
    wa.ndim = wb.ndim = 2 * n;
    z.ndim = n;
    for (int k = 0; k < n; k++) {
        wa.dim[2 * k] = k < n - sa.ndim ? 1 : sa.dim[k - (n - sa.ndim)];
        wb.dim[2 * k + 1] = k < n - sb.ndim ? 1 : sb.dim[k - (n - sb.ndim)];
        wa.dim[2 * k + 1] = wb.dim[2 * k] = 1;
        z.dim[k] = cot__size_mul(wa.dim[2 * k], wb.dim[2 * k + 1]);
    }
    if (!cot__check_shape(t, "kron", &z)) return INVALID(t);
    cot_var left = cot_reshape(VAR(t, index[0]), wa), right = cot_reshape(VAR(t, index[1]), wb);
    return cot_reshape(cot_mul(left, right), z);
}
