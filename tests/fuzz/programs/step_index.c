/* step_index.c: positions, masks, selections. Positions are made so that they are in range, or
 * nearly. */
#include "program.h"

/* i64 positions into an extent n, some negative; on a wild step one is out of range. */
static cot_var positions(frame *f, chooser *c, cot_shape s, int64_t n) {
    int64_t at[64], size = 1;
    for (int i = 0; i < s.ndim; i++) size *= s.dim[i];
    for (int64_t i = 0; i < size && i < 64; i++) at[i] = n > 0 ? (int64_t)choose(c, 2 * (unsigned)n) - n : 0;
    if (size > 0 && wild(f, c)) at[0] = n + 1;
    return cot_data(f->run->tape, COT_I64, s, at);
}

static cot_shape few(chooser *c,
                     int64_t  n) {
                         /* a shape of up to 12 positions; none where there is nothing to point
                          * at */
    if (n == 0) return (cot_shape){1, {0}};
    return chance(c, 3)   ? (cot_shape){2, {choose(c, 3), 1 + choose(c, 3)}}
           : chance(c, 4) ? (cot_shape){0, {0}}
                          : (cot_shape){1, {choose(c, 5)}};
}

STEP_FUNCTION(take) {
    value x = pick(f, c, has_axes, no_value);
    if (x.name < 0) return;
    int     axis = choose_axis(f, c, x, 0);
    int64_t n    = extent(x, axis);
    if (chance(c, 3)) {
        value i = pick(f, c, is_integer, no_value); /* whatever it holds */
        if (i.name < 0 || cot_size(x.var) * (cot_size(i.var) + 1) > MOST_ELEMENTS || f->depth > 0) return;
        say(f, "cot_take(%s, %s, %d)", name_of(x), name_of(i), axis);
        put(f, cot_take(x.var, i.var, axis));
        return;
    }
    if (chance(c, 3)) {
        cot_shape s = cot_shape_of(x.var);
        int       k = axis < 0 ? axis + s.ndim : axis;
        if (k < 0 || k >= s.ndim || cot_size(x.var) > 60 || n == 0) return;
        s.dim[k] = 1;
        say(f, "cot_take_along_axis(%s, positions %s, %d)", name_of(x), shape_text(s), axis);
        put(f, cot_take_along_axis(x.var, positions(f, c, s, n), axis));
        return;
    }
    cot_shape s = few(c, n);
    say(f, "cot_take(%s, positions %s, %d)", name_of(x), shape_text(s), axis);
    put(f, cot_take(x.var, positions(f, c, s, n), axis));
}

STEP_FUNCTION(scatter) {
    value x = pick(f, c, has_axes, no_value);
    if (x.name < 0 || cot_size(x.var) > 200) return;
    int       k = (int)choose(c, (unsigned)(rank(x) > 0 ? rank(x) : 1));
    int64_t   n = extent(x, k), count = n > 0 ? (int64_t)choose(c, 5) : 0;
    cot_shape at = {1, {count}}, s = cot_shape_of(x.var);
    s.dim[k]        = count;
    cot_var updates = chance(c, 2) ? cot_mul(cot_ones(f->run->tape, cot_dtype_of(x.var), s),
                                             cot_sum(x.var, (cot_axes){-1, false, {0}}))
                                   : cot_full(f->run->tape, cot_dtype_of(x.var), s, 2);
    bool    add     = chance(c, 2);
    say(f, "%s(%s, positions %s, sum or 2 in %s, %d)", add ? "cot_scatter_add" : "cot_scatter", name_of(x),
        shape_text(at), shape_text(s), k);
    put(f, (add ? cot_scatter_add : cot_scatter)(x.var, positions(f, c, at, n), updates, k));
}

STEP_FUNCTION(select) {
    value x = pick(f, c, has_axes, no_value);
    if (x.name < 0) return;
    int axis = choose_axis(f, c, x, 0);
    if (chance(c, 2) && f->depth == 0) {
        say(f, "cot_masked_select(%s, %s > 0)", name_of(x), name_of(x));
        put(f, cot_masked_select(x.var, cot_greater(x.var, cot_number(0))));
        return;
    }
    int64_t n = extent(x, axis), size = (int64_t)choose(c, 5);
    cot_var mask = cot_less(cot_arange(f->run->tape, COT_I64, 0, (double)n, 1), cot_integer((int64_t)choose(c, 4)));
    say(f, "cot_compress_to(%s, first few, %d, %lld, -1)", name_of(x), axis, (long long)size);
    put(f, cot_compress_to(x.var, mask, axis, size, -1));
}

STEP_FUNCTION(gather) {
    value x = pick(f, c, has_axes, no_value);
    if (x.name < 0 || rank(x) == 0 || cot_size(x.var) == 0 || cot_size(x.var) > 200) return;
    int64_t   depth = 1 + choose(c, (unsigned)rank(x)), least = extent(x, 0);
    cot_shape s = {2, {choose(c, 4), depth}};
    for (int i = 1; i < depth; i++) least = extent(x, i) < least ? extent(x, i) : least;
    say(f, "cot_gather(%s, positions %s below %lld)", name_of(x), shape_text(s), (long long)least);
    put(f, cot_gather(x.var, positions(f, c, s, least)));
}

STEP_FUNCTION(one_hot) {
    cot_shape s = few(c, 4);
    cot_dtype d = choose_float(c, f->run->flags & MIXED);
    say(f, "cot_one_hot(positions %s below 4, 4, %s)", shape_text(s), cot_dtype_name(d));
    put(f, cot_one_hot(positions(f, c, s, 4), 4, d));
}

/* A sparse matrix of some places, whose values come from elements of x, beside y. */
STEP_FUNCTION(sparse) {
    value   x = pick(f, c, is_float, no_value), y = pick(f, c, has_axes, no_value);
    int64_t row[12], column[12], n = 1 + (int64_t)choose(c, 12);
    if (x.name < 0 || y.name < 0 || rank(y) == 0 || cot_size(x.var) < n || cot_size(y.var) > 200) return;
    int64_t rows = 1 + (int64_t)choose(c, 4), columns = extent(y, rank(y) > 1 ? rank(y) - 2 : 0);
    if (columns == 0) return;
    for (int64_t e = 0; e < n; e++) row[e] = choose(c, (unsigned)rows), column[e] = choose(c, (unsigned)columns);
    if (wild(f, c)) column[0] = columns;
    unsigned which = choose(c, 3);
    say(f, "cot_csr_matmul(%s of %lld places of %s by %lld, %s)", which == 0 ? "softmax" : "a matrix", (long long)n,
        name_of(x), (long long)rows, name_of(y));
    cot_var values = cot_slice(cot_reshape(x.var, COT_SHAPE(-1)), 0, 0, n, 1);
    cot_csr a = cot_csr_from_triplets(f->run->tape, rows, columns, n, row, column, values);
    put(f, cot_csr_matmul(which == 0 ? cot_csr_softmax(a) : a, y.var));
}
