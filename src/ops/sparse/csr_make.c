/* csr_make.c: sparse matrices from triplets, from the arrays of compressed rows, from a dense
 * matrix and from the edges of a graph.
 *
 * Positions come from the host and are checked here, once: within the matrix, and then sorted by
 * two counting sorts, which keep equal places in the order in which they were given. The pattern is
 * one constant of the tape (sparse.h); values are moved to their entries by recorded operations, so
 * that gradients go back to them as they were given. */
#include "ops/sparse/sparse.h"
#include "backend/elements.h"
#include "base/element.h"
#include "base/sizes.h"

#include <math.h>

/* So that all that is counted here is an i32. */
enum { MOST = INT32_MAX / 2 };

/* ---- places ---------------------------------------------------------------------------------- */

/* n places as they were given, and their order. */
typedef struct places {
    cot_tape   *t;
    const char *op;
    int64_t     rows, columns, n, entries;
    int32_t    *row, *column; /* of each */
    int32_t    *order;        /* sorted: which was given */
    int32_t    *entry;        /* which entry each goes to */
    int32_t    *count;        /* room for counting: as many as rows or columns, and one */
    void       *memory;
    size_t      bytes;
    bool        in_order;     /* entries are the places as given */
} places;

static bool check_size(cot_tape *t, const char *op, const char *what, int64_t n) {
    if (n >= 0 && n <= MOST) return true;
    cot__fail(t, n < 0 ? COT_SHAPE : COT_LIMIT, "[%s] %lld %s; a sparse matrix has from 0 to %d of them", op,
              (long long)n, what, (int)MOST);
    return false;
}

static bool places_open(places *p, cot_tape *t, const char *op, int64_t rows, int64_t columns, int64_t n) {
    *p = (places){.t = t, .op = op, .rows = rows, .columns = columns, .n = n};
    if (!t || t->status != COT_OK || !check_size(t, op, "rows", rows) || !check_size(t, op, "columns", columns) ||
        !check_size(t, op, "entries", n))
        return false;
    int64_t count = (rows > columns ? rows : columns) + 1;
    p->bytes = (size_t)(4 * n + count) * sizeof(int32_t);
    if (!(p->memory = cot__scratch_open(t, p->bytes))) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for the pattern", op, p->bytes);
        return false;
    }
    p->row = p->memory;
    p->column = p->row + n;
    p->order = p->column + n;
    p->entry = p->order + n;
    p->count = p->entry + n;
    return true;
}

static void places_close(places *p) { cot__scratch_close(p->t, p->memory, p->bytes); }

/* Place k is (row, column). */
static bool put(places *p, int64_t k, int64_t row, int64_t column, const char *rows, const char *columns) {
    bool    fits = row >= 0 && row < p->rows, both = fits && column >= 0 && column < p->columns;
    int64_t extent = fits ? p->columns : p->rows;
    p->row[k] = (int32_t)row;
    p->column[k] = (int32_t)column;
    if (both) return true;
    cot__fail(p->t, COT_VALUE, "[%s] %s[%lld] is %lld, out of range for extent %lld; values run from 0 to %lld", p->op,
              fits ? columns : rows, (long long)k, (long long)(fits ? column : row), (long long)extent,
              (long long)extent - 1);
    return false;
}

/* to = from (NULL: 0, 1, …) sorted by key[…] < extent, equal ones in their order. */
static void sort_by(places *p, const int32_t *key, int64_t extent, const int32_t *from, int32_t *to) {
    for (int64_t k = 0; k <= extent; k++) p->count[k] = 0;
    for (int64_t k = 0; k < p->n; k++) p->count[key[k] + 1]++;
    for (int64_t k = 0; k < extent; k++) p->count[k + 1] += p->count[k];
    for (int64_t k = 0; k < p->n; k++) {
        int32_t i = from ? from[k] : (int32_t)k;
        to[p->count[key[i]]++] = i;
    }
}

static bool follows(const places *p, int32_t a, int32_t b) {
    return p->row[a] < p->row[b] || (p->row[a] == p->row[b] && p->column[a] < p->column[b]);
}

static void sort_places(places *p) {
    p->in_order = true;
    for (int64_t k = 1; k < p->n && p->in_order; k++) p->in_order = follows(p, (int32_t)k - 1, (int32_t)k);
    if (p->in_order) {
        for (int64_t k = 0; k < p->n; k++) p->order[k] = p->entry[k] = (int32_t)k;
        p->entries = p->n;
        return;
    }
    sort_by(p, p->column, p->columns, NULL, p->entry);
    sort_by(p, p->row, p->rows, p->entry, p->order);
    p->entries = 0;
    for (int64_t k = 0; k < p->n; k++) {
        if (k == 0 || follows(p, p->order[k - 1], p->order[k])) p->entries++;
        p->entry[p->order[k]] = (int32_t)p->entries - 1;
    }
}

/* ---- the pattern ----------------------------------------------------------------------------- */

/* starts[k] = how many entries have a smaller key, for all n keys and the end. */
static void count_starts(int32_t *starts, int64_t n, const int32_t *keys, int64_t entries) {
    for (int64_t k = 0; k <= n; k++) starts[k] = 0;
    for (int64_t e = 0; e < entries; e++) starts[keys[e] + 1]++;
    for (int64_t k = 0; k < n; k++) starts[k + 1] += starts[k];
}

/* Writes the pattern; `rows_of` is the room of the last part, which is written last. */
static void write_pattern(places *p, int32_t *to) {
    int64_t  e = p->entries;
    int32_t *starts = to, *columns = starts + p->rows + 1, *turned = columns + e,
            *turned_columns = turned + p->columns + 1, *order = turned_columns + e;
    for (int64_t k = 0; k < p->n; k++) {
        columns[p->entry[k]] = p->column[k];
        order[p->entry[k]] = p->row[k]; /* for now */
    }
    count_starts(starts, p->rows, order, e);
    count_starts(turned, p->columns, columns, e);
    for (int64_t k = 0; k < p->columns; k++) p->count[k] = turned[k];
    for (int64_t i = 0, k = 0; i < p->rows; i++)
        for (; k < starts[i + 1]; k++) {
            int32_t at = p->count[columns[k]]++;
            turned_columns[at] = (int32_t)i;
            order[at] = (int32_t)k;
        }
}

static cot_var pattern_of(places *p) {
    cot_shape   shape = COT_SHAPE(p->rows + p->columns + 2 + 3 * p->entries);
    size_t      bytes = (size_t)shape.dim[0] * sizeof(int32_t);
    int32_t    *host = cot__scratch_open(p->t, bytes);
    cot_var     z = INVALID(p->t);
    if (!host)
        return cot__fail(p->t, COT_MEMORY, "[%s] out of memory: %zu bytes for the pattern", p->op, bytes);
    write_pattern(p, host);
    z = cot_data(p->t, COT_I32, shape, host);
    cot__scratch_close(p->t, host, bytes);
    return z;
}

/* Values (…, n) as those of the entries, equal places summed. */
static cot_var values_of(const places *p, cot_var values) {
    cot_shape s = cot_shape_of(values);
    if (p->in_order || cot__failed(values)) return values;
    int last = s.ndim - 1;
    if (p->entries == p->n)
        return cot__take_as(p->op, values, cot_data(p->t, COT_I32, COT_SHAPE(p->n), p->order), last);
    s.dim[last] = p->entries;
    return cot_scatter_add(cot_zeros(p->t, cot_dtype_of(values), s), cot_data(p->t, COT_I32, COT_SHAPE(p->n), p->entry),
                           values, last);
}

static bool check_values(cot_tape *t, const char *op, cot_var *values, int64_t n) {
    uint32_t i;
    char     text[COT__SHAPE_TEXT];
    if (!cot__enter(t, *values, op, "values", &i)) return false;
    if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[i])) && (i = cot__as(t, i, COT_F64)) == COT__NONE) return false;
    cot_shape s = cot__shape_at(t, i);
    *values = VAR(t, i);
    if (s.ndim > 0 && s.dim[s.ndim - 1] == n) return true;
    cot__fail(t, COT_SHAPE, "[%s] values have shape %s, and %lld places are given; their last axis has one for each",
              op, cot__shape_text(s.ndim, s.dim, text), (long long)n);
    return false;
}

/* The matrix of places that are all put, and closes them. */
static cot_csr finish(places *p, cot_var values) {
    cot_csr a = {p->rows, p->columns, INVALID(p->t), INVALID(p->t)};
    sort_places(p);
    if (check_values(p->t, p->op, &values, p->n)) {
        a.pattern = pattern_of(p);
        a.values = values_of(p, values);
    }
    places_close(p);
    return a;
}

static cot_csr none(cot_tape *t) { return (cot_csr){0, 0, {t, UINT64_MAX}, {t, UINT64_MAX}}; }

/* ---- the public functions -------------------------------------------------------------------- */

/* The tape, or where there is none that of the values, after an error there. */
static bool check_tape(cot_tape **t, const char *op, cot_var values) {
    if (*t) return true;
    *t = cot__tape_of(1, &values);
    if (*t) cot__fail(*t, COT_VALUE, "[%s] the tape is NULL; it is that of the values", op);
    return false;
}

static bool check_list(cot_tape *t, const char *op, const char *what, const void *list, int64_t n) {
    if (list || n <= 0 || !t || t->status != COT_OK) return true;
    cot__fail(t, COT_VALUE, "[%s] %s is NULL; it lists %lld of them", op, what, (long long)n);
    return false;
}

cot_csr cot_csr_from_triplets(cot_tape *t, int64_t rows, int64_t columns, int64_t n, const int64_t *row,
                              const int64_t *column, cot_var values) {
    static const char op[] = "csr_from_triplets";
    places            p;
    if (!check_tape(&t, op, values) || !check_list(t, op, "row", row, n) || !check_list(t, op, "column", column, n) ||
        !places_open(&p, t, op, rows, columns, n))
        return none(t);
    for (int64_t k = 0; k < n; k++)
        if (!put(&p, k, row[k], column[k], "row", "column")) return places_close(&p), none(t);
    return finish(&p, values);
}

/* Element k of a list of integers. */
static int64_t integer_at(const cot_array *a, int64_t k) {
    return a->dtype == COT_I64 ? ((const int64_t *)a->data)[k] : ((const int32_t *)a->data)[k];
}

static bool check_integers(cot_tape *t, const char *op, const char *what, const cot_array *a) {
    if (!t || t->status != COT_OK) return false;
    if (!a || a->size < 0 || (a->size > 0 && !a->data))
        cot__fail(t, COT_VALUE, "[%s] %s are NULL; they are an array of the host", op, what);
    else if (a->dtype != COT_I32 && a->dtype != COT_I64)
        cot__fail(t, COT_DTYPE, "[%s] %s have dtype %s; they must be i32 or i64", op, what, cot__dtype_name(a->dtype));
    else return true;
    return false;
}

/* Rows of the places from where they start. */
static bool put_rows(places *p, const cot_array *starts, const cot_array *indices) {
    int64_t before = 0;
    for (int64_t i = 0; i <= p->rows; i++) {
        int64_t at = integer_at(starts, i), end = i == 0 ? 0 : p->n;
        if (at < before || at > end || (i == p->rows && at != p->n)) {
            cot__fail(p->t, COT_VALUE,
                      "[%s] starts[%lld] is %lld, for %lld indices; starts ascend from 0 to the number of indices",
                      p->op, (long long)i, (long long)at, (long long)p->n);
            return false;
        }
        for (int64_t k = before; k < at; k++)
            if (!put(p, k, i - 1, integer_at(indices, k), "row", "indices")) return false;
        before = at;
    }
    return true;
}

cot_csr cot_csr_from_arrays(cot_tape *t, int64_t rows, int64_t columns, const cot_array *starts,
                            const cot_array *indices, cot_var values) {
    static const char op[] = "csr_from_arrays";
    places            p;
    if (!check_tape(&t, op, values) || !check_integers(t, op, "starts", starts) ||
        !check_integers(t, op, "indices", indices))
        return none(t);
    if (starts->size - 1 != rows) {
        cot__fail(t, COT_SHAPE, "[%s] %lld starts for %lld rows; there is one more than there are rows", op,
                  (long long)starts->size, (long long)rows);
        return none(t);
    }
    if (!places_open(&p, t, op, rows, columns, indices->size)) return none(t);
    if (!put_rows(&p, starts, indices)) return places_close(&p), none(t);
    return finish(&p, values);
}

/* How many elements are not 0; their places in order, and their numbers row-major, go to p and at
 * (NULL: they are only counted). */
static int64_t find_places(places *p, const cot__view *v, int64_t *at) {
    cot__elements e;
    int64_t       n = 0;
    for (cot__elements_open(&e, p->t->backend, v, COT_F64); cot__elements_next(&e);)
        for (int k = 0; k < e.n; k++) {
            if (e.f64[k] == 0) continue;
            if (at) {
                at[n] = e.first + k;
                p->row[n] = (int32_t)(at[n] / p->columns);
                p->column[n] = (int32_t)(at[n] % p->columns);
            }
            n++;
        }
    return n;
}

static cot_csr sparse_of(cot_tape *t, const char *op, uint32_t i) {
    places    p = {.t = t};
    cot__view v = cot__look(t, i);
    int64_t   n = t->status == COT_OK ? find_places(&p, &v, NULL) : 0;
    size_t    bytes = (size_t)n * sizeof(int64_t) + 1;
    if (!places_open(&p, t, op, v.shape[0], v.shape[1], n)) return none(t);
    int64_t *at = cot__scratch_open(t, bytes);
    if (!at) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for the pattern", op, bytes);
        return places_close(&p), none(t);
    }
    find_places(&p, &v, at);
    cot_var flat = cot_reshape(VAR(t, i), COT_SHAPE(p.rows * p.columns));
    cot_csr z = finish(&p, cot__take_as(op, flat, cot_data(t, COT_I64, COT_SHAPE(n), at), 0));
    cot__scratch_close(t, at, bytes);
    return z;
}

cot_csr cot_csr_from_dense(cot_var a) {
    static const char op[] = "csr_from_dense";
    uint32_t          i;
    char              text[COT__SHAPE_TEXT];
    cot_tape         *t = cot__enter_all(op, (const char *const[]){"a"}, 1, &a, true, &i);
    if (!t) return none(cot__invalid(1, &a).tape);
    cot_shape s = cot__shape_at(t, i);
    if (s.ndim != 2) {
        cot__fail(t, COT_SHAPE, "[%s] a has shape %s; a matrix has two axes", op, cot__shape_text(s.ndim, s.dim, text));
        return none(t);
    }
    cot__memory_tick(t); /* what was read before is not being read any more */
    return cot__has_values(t, op, i, "give its places to cot_csr_from_triplets") ? sparse_of(t, op, i) : none(t);
}

/* 1/√(d[i] d[j]) for each entry, d the entries of a row. */
static cot_var normalised(places *p, cot_dtype dtype, cot_var pattern) {
    size_t   bytes = (size_t)p->entries * sizeof(double) + 1;
    double  *v = cot__scratch_open(p->t, bytes);
    int32_t *degree = p->count;
    if (!v) return cot__fail(p->t, COT_MEMORY, "[%s] out of memory: %zu bytes for the values", p->op, bytes);
    if (cot__failed(pattern)) return cot__scratch_close(p->t, v, bytes), pattern;
    for (int64_t i = 0; i <= p->rows; i++) degree[i] = 0;
    for (int64_t k = 0; k < p->n; k++)
        if (k == 0 || follows(p, p->order[k - 1], p->order[k])) degree[p->row[p->order[k]]]++;
    for (int64_t k = 0; k < p->n; k++)
        v[p->entry[k]] = 1 / sqrt((double)degree[p->row[k]] * (double)degree[p->column[k]]);
    cot_var z = cot_cast(cot_data(p->t, COT_F64, COT_SHAPE(p->entries), v), dtype);
    cot__scratch_close(p->t, v, bytes);
    return z;
}

cot_csr cot_csr_gcn(cot_tape *t, cot_dtype dtype, int64_t nodes, int64_t n, const int64_t *from, const int64_t *to) {
    static const char op[] = "csr_gcn";
    places            p;
    if (!check_list(t, op, "from", from, n) || !check_list(t, op, "to", to, n)) return none(t);
    if (t && t->status == COT_OK && !cot__dtype_is_float(dtype)) {
        cot__fail(t, COT_DTYPE, "[%s] dtype %s; values are floats", op, cot__dtype_name(dtype));
        return none(t);
    }
    if (t && !check_size(t, op, "edges", n < 0 ? n : n > MOST ? n : 0)) return none(t);
    if (!places_open(&p, t, op, nodes, nodes, cot__size_add(cot__size_mul(2, n), nodes))) return none(t);
    for (int64_t k = 0; k < n; k++) {
        if (!put(&p, k, from[k], to[k], "from", "to")) return places_close(&p), none(t);
        p.row[n + k] = p.column[k];
        p.column[n + k] = p.row[k];
    }
    for (int64_t k = 0; k < nodes; k++) p.row[2 * n + k] = p.column[2 * n + k] = (int32_t)k;
    sort_places(&p);
    cot_csr a = {nodes, nodes, INVALID(t), pattern_of(&p)};
    a.values = normalised(&p, dtype, a.pattern);
    places_close(&p);
    return a;
}
