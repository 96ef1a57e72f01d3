/* linalg.c: what the files of linear algebra share. See linalg.h. */
#include "ops/linalg/linalg.h"
#include "backend/elements.h"

#include <string.h>

#include <float.h>

/* ---- operands -------------------------------------------------------------------------------- */

static bool check_matrix(const cot__caller *c, const char *what, const cot__view *v, bool square) {
    char text[COT__SHAPE_TEXT];
    if (v->ndim < 2)
        return cot__refuse(c, COT_SHAPE, "%s has shape %s; a matrix has two axes, a batch of them more", what,
                           cot__shape_text(v->ndim, v->shape, text));
    return !square || v->shape[v->ndim - 2] == v->shape[v->ndim - 1] ||
           cot__refuse(c, COT_SHAPE, "%s has shape %s; its last two axes must be equal", what,
                       cot__shape_text(v->ndim, v->shape, text));
}

static bool check_entered(cot_tape *t, const char *op, const char *what, uint32_t i, bool square) {
    cot__caller caller = cot__tape_caller(t, op);
    cot__view   v = cot__layout_at(t, i);
    return check_matrix(&caller, what, &v, square);
}

/* f64 and f32 as they are, bf16 and f16 in f32, all else in f64. */
static cot_dtype working_dtype(cot_dtype d) { return cot__dtype_is_float(d) ? cot__dtype_compute(d) : COT_F64; }

cot_tape *cot__enter_matrix(const char *op, cot_var a, bool square, uint32_t *index, cot_dtype *dtype) {
    cot_tape *t = cot__enter(NULL, a, op, "", index);
    if (!t || !check_entered(t, op, "the operand", *index, square)) return NULL;
    *dtype = cot__dtype_at(&t->nodes[*index]);
    cot_dtype work = working_dtype(*dtype);
    if (!cot__dtype_is_float(*dtype)) *dtype = work;
    return (*index = cot__as(t, *index, work)) == COT__NONE ? NULL : t;
}

cot_tape *cot__enter_system(const char *op, cot_var *a, cot_var *b, bool square, bool right, bool *vector,
                            cot_dtype *dtype) {
    static const char *const names[] = {"left", "right"};
    uint32_t                 xs[2];
    char                     ta[COT__SHAPE_TEXT], tb[COT__SHAPE_TEXT];
    cot_tape                *t = cot__enter_all(op, names, 2, (cot_var[]){*a, *b}, true, xs);
    if (!t || !check_entered(t, op, "a", xs[0], square)) return NULL;
    cot_shape sa = cot__shape_at(t, xs[0]), sb = cot__shape_at(t, xs[1]);
    *vector = sb.ndim == 1 && !right;
    int64_t fits = sb.ndim == 0   ? -1
                   : *vector      ? sb.dim[0]
                   : sb.ndim == 1 ? -1
                   : right        ? cot__columns_of(&sb)
                                  : cot__rows_of(&sb);
    if (fits != cot__rows_of(&sa)) {
        cot__fail(t, COT_SHAPE, "[%s] a has shape %s and b %s; the %s of b must be as many as the rows of a", op,
                  cot__shape_text(sa.ndim, sa.dim, ta), cot__shape_text(sb.ndim, sb.dim, tb),
                  right ? "columns" : "rows");
        return NULL;
    }
    *dtype = cot__dtype_at(&t->nodes[xs[0]]);
    for (int k = 0; k < 2; k++)
        if ((xs[k] = cot__as(t, xs[k], working_dtype(*dtype))) == COT__NONE) return NULL;
    *a = VAR(t, xs[0]);
    *b = *vector ? cot_expand_dims(VAR(t, xs[1]), 1) : VAR(t, xs[1]);
    return cot__failed(*b) ? NULL : t;
}

cot_var cot__with_leading(cot_var x, int tail, int n, const int64_t *leading) {
    cot_shape s = cot_shape_of(x), z = {n + tail, {0}};
    for (int k = 0; k < n; k++) z.dim[k] = leading[k];
    for (int k = 0; k < tail; k++) z.dim[n + k] = cot__extent_back(&s, tail - k);
    return cot_broadcast_to(x, z);
}

bool cot__broadcast_batches(cot_tape *t, const char *op, cot_var *a, cot_var *b) {
    cot_shape sa = cot_shape_of(*a), sb = cot_shape_of(*b);
    char      ta[COT__SHAPE_TEXT], tb[COT__SHAPE_TEXT];
    int       n = (sa.ndim > sb.ndim ? sa.ndim : sb.ndim) - 2;
    int64_t   leading[COT_MAX_NDIM];
    for (int k = 0; k < n; k++) {
        int     ka = k - (n + 2 - sa.ndim), kb = k - (n + 2 - sb.ndim);
        int64_t da = ka < 0 ? 1 : sa.dim[ka], db = kb < 0 ? 1 : sb.dim[kb];
        if (da != db && da != 1 && db != 1) {
            cot__fail(t, COT_SHAPE, "[%s] a has shape %s and b %s; aligned before the last two, extents are equal or 1",
                      op, cot__shape_text(sa.ndim, sa.dim, ta), cot__shape_text(sb.ndim, sb.dim, tb));
            return false;
        }
        leading[k] = da == 1 ? db : da;
    }
    *a = cot__with_leading(*a, 2, n, leading);
    *b = cot__with_leading(*b, 2, n, leading);
    return !cot__failed(*a) && !cot__failed(*b);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

bool cot__job_matrix(const cot__job *j, int k, bool square) {
    cot_dtype d = j->x[k].dtype;
    if (d != COT_F64 && d != COT_F32)
        return cot__job_illegal(j, "operand %d has dtype %s, not f64 or f32", k, cot__dtype_name(d));
    return check_matrix(j->caller, "the operand", &j->x[k], square);
}

bool cot__job_beside(const cot__job *j, int k, int of, int tail, const int64_t *extent) {
    const cot__view *v = &j->x[k], *a = &j->x[of];
    int              leading = a->ndim - 2;
    bool             fits = v->ndim == leading + tail;
    for (int i = 0; fits && i < v->ndim; i++) fits = v->shape[i] == (i < leading ? a->shape[i] : extent[i - leading]);
    if (fits) return true;
    cot_shape s = cot__view_extents(a);
    s.ndim = leading + tail;
    for (int i = 0; i < tail; i++) s.dim[leading + i] = extent[i];
    return cot__job_shape(j, k, s.ndim, s.dim);
}

/* ---- notes ----------------------------------------------------------------------------------- */

void cot__note_matrices(const cot__caller *c, const cot_shape *batch, const int64_t found[2], const char *what,
                        const char *consequence) {
    char    place[COT__SHAPE_TEXT] = "";
    int64_t at[COT_MAX_NDIM], count = cot__count(batch->ndim - 2, batch->dim), first = found[1];
    int     used = 0;
    for (int k = batch->ndim - 3; k >= 0; k--) at[k] = first % batch->dim[k], first /= batch->dim[k];
    for (int k = 0; k < batch->ndim - 2 && used < COT__SHAPE_TEXT - 24; k++)
        used += snprintf(place + used, sizeof place - (size_t)used, "%s%lld", k ? "," : "", (long long)at[k]);
    if (batch->ndim == 2) cot__remark(c, "the matrix %s; %s", what, consequence);
    else if (found[0] == 1)
        cot__remark(c, "matrix [%s] of %lld %s; %s", place, (long long)count, what, consequence);
    else
        cot__remark(c, "matrix [%s] and %lld more of %lld: each %s; %s", place, (long long)found[0] - 1,
                    (long long)count, what, consequence);
}

void cot__tell_matrices(const cot__job *j, const int64_t found[2], const char *what, const char *consequence) {
    cot_shape batch = cot__view_extents(&j->z);
    cot__note_matrices(j->caller, &batch, found, what, consequence);
}

cot_var cot__lin_no_memory(cot_tape *t, const char *op) {
    return cot__fail(t, COT_MEMORY, "[%s] out of memory for working on the matrices", op);
}

/* The elements of row b of a batch. */
static void row_open(cot__elements *e, const cot__backend *on, const cot__view *v, int64_t b) {
    int64_t size = v->shape[v->ndim - 1];
    cot__elements_open(e, on, v, COT_F64);
    e->first = b * size;
    e->size = e->first + size;
}

int64_t cot__count_ties(const cot__backend *on, const cot__view *values, bool zero, double slack, int64_t *first) {
    int64_t       found = 0, count = cot__count(values->ndim - 1, values->shape);
    cot__elements e;
    for (int64_t b = 0; b < count && values->shape[values->ndim - 1] > 0; b++) {
        bool   tied = false;
        double most = 0, before = (double)NAN;
        for (row_open(&e, on, values, b); cot__elements_next(&e);)
            for (int j = 0; j < e.n; j++) most = fmax(most, fabs(e.f64[j]));
        for (row_open(&e, on, values, b); cot__elements_next(&e);)
            for (int j = 0; j < e.n; j++) {
                tied |= (zero && e.f64[j] <= slack * most) || fabs(before - e.f64[j]) <= slack * most;
                before = e.f64[j];
            }
        if (tied && found++ == 0) *first = b;
    }
    return found;
}

void cot__note_ties(cot_tape *t, const char *op, uint32_t i, bool zero) {
    cot__caller caller = cot__tape_caller(t, op);
    cot_shape   s = cot__shape_at(t, i), of = cot__shape_at(t, cot__arg(&t->nodes[i], 0));
    double      unit = cot__dtype_at(&t->nodes[i]) == COT_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    int64_t     found[2] = {0, 0};
    cot__view   values = cot__look(t, i + 1);
    found[0] = cot__count_ties(t->backend, &values, zero, 0, &found[1]);
    if (found[0]) {
        cot__note_matrices(&caller, &s, found,
                           zero ? "has singular values that are equal or 0" : "has equal eigenvalues",
                           "terms of the derivative that divide by 0 were taken as 0");
        return;
    }
    /* extents count as they do in bounds of errors of the values */
    double extents = (double)(cot__rows_of(&of) + (zero ? cot__columns_of(&of) : 0) + 1);
    found[0] = cot__count_ties(t->backend, &values, zero, extents * unit, &found[1]);
    if (found[0])
        cot__note_matrices(&caller, &s, found,
                           zero ? "has singular values that are equal or 0 up to rounding"
                                : "has eigenvalues that are equal up to rounding",
                           "terms of the derivative that divide by what is left are large and mean nothing");
}

/* ---- triangles ------------------------------------------------------------------------------- */

/* A constant bool (rows, columns): [i,j] with lower <= j - i <= upper. */
static cot_var band(cot_tape *t, int64_t rows, int64_t columns, int64_t lower, int64_t upper) {
    size_t bytes = (size_t)(rows * columns) + 1;
    bool  *mask = cot__alloc(&t->al, bytes);
    if (!mask) return cot__lin_no_memory(t, "linalg");
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) mask[i * columns + j] = j - i >= lower && j - i <= upper;
    cot_var m = (cot_data)(t, COT_BOOL, COT_SHAPE(rows, columns), mask);
    cot__free(&t->al, mask, bytes);
    return m;
}

static cot_var within(cot_var x, int64_t lower, int64_t upper) {
    cot_shape s = cot_shape_of(x);
    /* x is invalid, or has no elements, and a mask of its matrices might be large. */
    if (s.ndim < 2 || cot_size(x) == 0) return x;
    return cot_where(band(x.tape, cot__rows_of(&s), cot__columns_of(&s), lower, upper), x, 0.0);
}

cot_var cot__lower(cot_var x, int offset) { return within(x, INT64_MIN, offset); }
cot_var cot__upper(cot_var x, int offset) { return within(x, offset, INT64_MAX); }

cot_var cot__diagonal(cot_var x) {
    cot_shape s = cot_shape_of(x);
    if (s.ndim < 1) return x;
    int64_t n = s.dim[s.ndim - 1];
    if (cot_size(x) == 0) {
        cot_var column = cot_expand_dims(x, -1);
        s = cot_shape_of(column);
        return cot_broadcast_to(column, cot__matrices(s, n, n));
    }
    return cot_where(band(x.tape, n, n, 0, 0), cot_expand_dims(x, -1), 0.0);
}

cot_var cot__symmetrised(cot_var x) { return cot_mul(cot_add(x, cot__swap_last(x)), 0.5); }
