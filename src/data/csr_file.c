/* csr_file.c: sparse matrices in SciPy's .npz files: the arrays of a format, which a text beside
 * them names.
 *
 *     csr, csc    indptr, indices, data, shape: rows (of csc columns) one after the other
 *     coo         row, col, data, shape
 *
 * Every size is held against that of the file's own arrays before memory is taken; sorting and
 * summing are left to cot_csr_from_triplets. */
#include "data/data.h"
#include "tape/tape.h"

#include <string.h>

static const char op[] = "csr_load";

/* What is read: n places, and their values. */
typedef struct stored {
    cot_tape   *t;
    cot_file   *f;
    const char *path, *format;
    int64_t     shape[2], n;
    int64_t    *memory, *row, *column, *starts; /* `starts` of compressed formats */
    size_t      bytes;
} stored;

static bool file_failed(const stored *x) {
    cot__fail(x->t, cot_file_status(x->f), "[%s] %s", op, cot_file_message(x->f));
    return false;
}

/* The number of an array of the file that has one axis of n elements; n < 0: of any number. */
static int find_array(const stored *x, const char *name, int64_t n) {
    char      text[COT__SHAPE_TEXT];
    int       k = cot_file_find(x->f, name);
    cot_shape s = cot_file_shape(x->f, k);
    if (k < 0)
        cot__fail(x->t, COT_VALUE, "[%s] %s has no array %s, which belongs to a matrix of format %s", op, x->path, name,
                  x->format);
    else if (s.ndim != 1 || (n >= 0 && s.dim[0] != n))
        cot__fail(x->t, COT_SHAPE, "[%s] %s: %s has shape %s, and the other arrays of the matrix another length", op,
                  x->path, name, cot__shape_text(s.ndim, s.dim, text));
    else return k;
    return -1;
}

static bool read_integers(const stored *x, const char *name, int64_t n, int64_t *to) {
    int k = find_array(x, name, n);
    if (k < 0) return false;
    return cot_file_read(x->f, k, COT_I64, to) == COT_OK || file_failed(x);
}

static bool is_compressed(const stored *x) { return strcmp(x->format, "coo") != 0; }
/* Which axis the starts run along: that of rows, of csc that of columns. */
static int major(const stored *x) { return strcmp(x->format, "csc") == 0; }

static bool read_head(stored *x) {
    int data;
    x->format = cot_file_text(x->f, "format");
    if (!x->format) {
        cot__fail(x->t, COT_VALUE, "[%s] %s holds no sparse matrix; scipy.sparse.save_npz writes one", op, x->path);
        return false;
    }
    if (strcmp(x->format, "csr") && strcmp(x->format, "csc") && strcmp(x->format, "coo")) {
        cot__fail(x->t, COT_VALUE,
                  "[%s] %s holds a matrix of format %.31s; csr, csc and coo can be read: save a.tocsr()", op, x->path,
                  x->format);
        return false;
    }
    if (!read_integers(x, "shape", 2, x->shape) || (data = find_array(x, "data", -1)) < 0) return false;
    x->n = cot_file_size(x->f, data);
    if (x->shape[0] >= 0 && x->shape[1] >= 0) return true;
    cot__fail(x->t, COT_SHAPE, "[%s] %s: the shape is (%lld,%lld); extents are not negative", op, x->path,
              (long long)x->shape[0], (long long)x->shape[1]);
    return false;
}

static bool take_memory(stored *x) {
    int64_t starts = 0;
    if (is_compressed(x)) {
        int k = find_array(x, "indptr", -1);
        if (k < 0) return false;
        starts = cot_file_size(x->f, k);
        if (starts - 1 != x->shape[major(x)]) {
            cot__fail(x->t, COT_SHAPE, "[%s] %s: indptr has %lld elements for %lld %s; there is one more than these",
                      op, x->path, (long long)starts, (long long)x->shape[major(x)], major(x) ? "columns" : "rows");
            return false;
        }
    }
    x->bytes  = (size_t)(3 * x->n + starts + 1) * sizeof *x->memory; /* the last n are for values */
    x->memory = cot__scratch_open(x->t, x->bytes);
    if (!x->memory) {
        cot__fail(x->t, COT_MEMORY, "[%s] out of memory: %zu bytes for the matrix", op, x->bytes);
        return false;
    }
    x->row    = x->memory + x->n;
    x->column = x->row + x->n;
    x->starts = x->column + x->n;
    return true;
}

/* Starts ascend from 0 to n; the places between two are those of one row, or column. */
static bool spread_starts(stored *x) {
    int64_t *along = major(x) ? x->column : x->row, extent = x->shape[major(x)];
    for (int64_t i = 0; i <= extent; i++) {
        int64_t at = x->starts[i], before = i ? x->starts[i - 1] : 0, most = i ? x->n : 0;
        if (at < before || at > most || (i == extent && at != x->n)) {
            cot__fail(x->t, COT_VALUE,
                      "[%s] %s: indptr[%lld] is %lld, for %lld entries; it ascends from 0 to their number", op, x->path,
                      (long long)i, (long long)at, (long long)x->n);
            return false;
        }
        for (int64_t k = before; k < at; k++) along[k] = i - 1;
    }
    return true;
}

static bool read_places(stored *x) {
    if (is_compressed(x)) {
        if (!read_integers(x, "indptr", x->shape[major(x)] + 1, x->starts) ||
            !read_integers(x, "indices", x->n, major(x) ? x->row : x->column) || !spread_starts(x))
            return false;
    } else if (!read_integers(x, "row", x->n, x->row) || !read_integers(x, "col", x->n, x->column)) {
        return false;
    }
    for (int64_t k = 0; k < x->n; k++) {
        if (x->row[k] >= 0 && x->row[k] < x->shape[0] && x->column[k] >= 0 && x->column[k] < x->shape[1]) continue;
        cot__fail(x->t, COT_VALUE, "[%s] %s: entry %lld lies at (%lld, %lld), outside of a matrix of shape (%lld,%lld)",
                  op, x->path, (long long)k, (long long)x->row[k], (long long)x->column[k], (long long)x->shape[0],
                  (long long)x->shape[1]);
        return false;
    }
    return true;
}

static bool read_matrix(stored *x, cot_dtype dtype, cot_csr *a) {
    if (cot_file_status(x->f) != COT_OK) return file_failed(x);
    if (!read_head(x) || !take_memory(x) || !read_places(x)) return false;
    if (cot_file_read(x->f, cot_file_find(x->f, "data"), dtype, x->memory) != COT_OK) return file_failed(x);
    cot_var values = cot_data(x->t, dtype, COT_SHAPE(x->n), x->memory);
    *a = cot_csr_from_triplets(x->t, x->shape[0], x->shape[1], x->n, x->row, x->column, values);
    return true;
}

cot_csr cot_csr_load(cot_tape *t, const char *path, cot_dtype dtype) {
    cot_csr a = {0, 0, {t, UINT64_MAX}, {t, UINT64_MAX}};
    if (!t || cot_tape_status(t) != COT_OK) return a;
    if (!path) cot__fail(t, COT_VALUE, "[%s] the path is NULL", op);
    else if (!cot__dtype_is_float(dtype))
        cot__fail(t, COT_DTYPE, "[%s] dtype %s; values are floats", op, cot__dtype_name(dtype));
    else {
        stored x = {.t = t, .f = cot_file_open(path, &t->al), .path = path};
        read_matrix(&x, dtype, &a);
        cot__scratch_close(t, x.memory, x.bytes);
        cot_file_close(x.f);
    }
    return a;
}
