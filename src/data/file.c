/* file.c: a file of tensors as an object. The kind of a file is known by its first bytes, or else
 * by the ending of its name. */
#include "data/data.h"

#include "data/file/save.h"
#include "data/table/table.h"

#include <stdlib.h>
#include <string.h>

struct cot_file {
    cot_allocator   al;
    cot__trouble    trouble;
    cot__source     source;
    cot__tensors    all;
    cot__data_table table; /* of columns; then the entries are none but names and shapes */
    bool            is_table;
};

/* ---- opening --------------------------------------------------------------------------------- */

static bool ends_with(const char *path, const char *ending) {
    size_t n = strlen(path), m = strlen(ending);
    if (n > 3 && strcmp(path + n - 3, ".gz") == 0) n -= 3;
    return n >= m && memcmp(path + n - m, ending, m) == 0;
}

/* Columns become entries, which have a name and a shape. */
static bool list_table(cot_file *f) {
    size_t size = (size_t)f->source.size;
    char  *text = cot__source_all(&f->source, &f->al, &f->trouble);
    if (!text) return false;
    f->is_table = true;
    if (!cot__data_table_parse(&f->table, &f->al, f->source.path, text, size, &f->trouble)) return false;
    for (int k = 0; k < f->table.columns; k++) {
        char               number[16];
        int                n    = snprintf(number, sizeof number, "%d", k);
        const char        *name = f->table.names ? f->table.names[k] : cot__keep_text(&f->all.pool, number, (size_t)n);
        cot__tensor_entry *e    = cot__tensors_add(&f->all, name);
        if (!e) return cot__trouble_memory(&f->trouble);
        e->place.format = cot__dtype_coding(COT_F64);
        e->place.shape  = (cot_shape){1, {f->table.rows}};
    }
    return true;
}

static bool list(cot_file *f) {
    static const char *const tables[] = {".csv", ".tsv", ".txt", ".dat"};
    cot__source             *s        = &f->source;
    uint8_t                  mark[8]  = {0};
    size_t                   n        = s->size < sizeof mark ? (size_t)s->size : sizeof mark;
    if (!cot__source_read(s, 0, mark, n, &f->trouble)) return false;
    if (ends_with(s->path, ".safetensors")) return cot__safetensors_list(s, &f->all, &f->trouble);
    for (int k = 0; k < COUNTOF(tables); k++)
        if (ends_with(s->path, tables[k])) return list_table(f);
    if (n >= 6 && memcmp(mark, "\x93NUMPY", 6) == 0) return cot__npy_list(s, &f->all, &f->trouble);
    if (n >= 4 && (memcmp(mark, "PK\3\4", 4) == 0 || memcmp(mark, "PK\5\6", 4) == 0))
        return cot__npz_list(s, &f->all, &f->trouble);
    if (ends_with(s->path, ".npy")) return cot__npy_list(s, &f->all, &f->trouble);
    if (ends_with(s->path, ".npz")) return cot__npz_list(s, &f->all, &f->trouble);
    if (n >= 4 && !mark[0] && !mark[1] && mark[2] >= 8 && mark[2] <= 14) return cot__idx_list(s, &f->all, &f->trouble);
    return cot__trouble_file(&f->trouble,
                             "%s is of no kind that is known: .safetensors, .npy, .npz, IDX, or a table .csv, .tsv, "
                             ".txt or .dat",
                             s->path);
}

cot_file *cot_file_open(const char *path, const cot_allocator *allocator) {
    cot_file *f = cot__alloc(allocator, sizeof *f);
    if (!f) return NULL;
    *f             = (cot_file){.al = allocator ? *allocator : (cot_allocator){0}};
    f->all.pool.al = f->al;
    char *copy     = path ? cot__keep_text(&f->all.pool, path, strlen(path)) : NULL;
    if (!path)
        cot__trouble_file(&f->trouble, "the path is NULL");
    else if (!copy)
        cot__trouble_memory(&f->trouble);
    if (!copy || !cot__source_open(&f->source, copy, &f->al, &f->trouble) || !list(f)) f->all.n = f->all.pair_count = 0;
    return f;
}

void cot_file_close(cot_file *f) {
    if (!f) return;
    cot_allocator al = f->al;
    if (f->is_table) cot__data_table_free(&f->table);
    cot__source_close(&f->source);
    cot__tensors_free(&f->all);
    cot__free(&al, f, sizeof *f);
}

cot_status  cot_file_status(const cot_file *f) { return f ? f->trouble.status : COT_MEMORY; }
const char *cot_file_message(const cot_file *f) { return f ? f->trouble.message : "memory is short"; }

/* ---- asking ---------------------------------------------------------------------------------- */

int cot_file_count(const cot_file *f) { return f ? (int)f->all.n : 0; }

static const cot__tensor_entry *entry_at(const cot_file *f, int k) {
    return f && k >= 0 && (size_t)k < f->all.n ? &f->all.entries[k] : NULL;
}

const char *cot_file_name(const cot_file *f, int k) {
    const cot__tensor_entry *e = entry_at(f, k);
    return e ? e->name : NULL;
}

int cot_file_find(const cot_file *f, const char *name) {
    int found = -1;
    for (size_t k = 0; f && name && k < f->all.n; k++) {
        if (strcmp(f->all.entries[k].name, name) != 0) continue;
        if (found >= 0) return -1;
        found = (int)k;
    }
    return found;
}

cot_shape cot_file_shape(const cot_file *f, int k) {
    const cot__tensor_entry *e = entry_at(f, k);
    return e ? e->place.shape : (cot_shape){0, {0}};
}

int64_t cot_file_size(const cot_file *f, int k) {
    const cot__tensor_entry *e = entry_at(f, k);
    return e ? cot__count(e->place.shape.ndim, e->place.shape.dim) : 0;
}

cot_dtype cot_file_dtype(const cot_file *f, int k) {
    const cot__tensor_entry *e = entry_at(f, k);
    return e ? cot__coding_dtype(e->place.format) : COT_F64;
}

const char *cot_file_text(const cot_file *f, const char *key) {
    for (size_t k = 0; f && key && k < f->all.pair_count; k++)
        if (strcmp(f->all.pairs[k].key, key) == 0) return f->all.pairs[k].text;
    return NULL;
}

bool cot_file_pair(const cot_file *f, int k, cot_text_pair *pair) {
    if (!f || !pair || k < 0 || (size_t)k >= f->all.pair_count) return false;
    *pair = (cot_text_pair){f->all.pairs[k].key, f->all.pairs[k].text};
    return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A column is read as f64 first, in memory of its own. */
static bool read_column(cot_file *f, int k, cot_dtype dtype, void *out) {
    cot__trouble      *t      = &f->trouble;
    size_t             bytes  = (size_t)f->table.rows * sizeof(double);
    double            *column = dtype == COT_F64 ? out : cot__alloc(&f->al, bytes);
    cot__element_place place  = {.format = cot__dtype_coding(COT_F64), .shape = {1, {f->table.rows}}};
    if (!column) return cot__trouble_memory_for(t, bytes);
    bool fine = cot__data_table_column(&f->table, k, f->all.entries[k].name, false, column, t);
    if (column == out) return fine;
    cot__source memory      = cot__source_of_memory(f->source.path, column, bytes);
    place.format.big_endian = __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__;
    fine                    = fine && cot__elements_read(&memory, &place, dtype, out, t);
    cot__free(&f->al, column, bytes);
    return fine;
}

bool cot__file_can_read(const cot_file *f, int k, cot_dtype dtype) {
    const cot__tensor_entry *e = entry_at(f, k);
    return e && e->place.format.kind &&
           (cot__dtype_is_float(dtype) || !cot__dtype_is_float(cot__coding_dtype(e->place.format)));
}

cot_status cot_file_read(cot_file *f, int k, cot_dtype dtype, void *out) {
    const cot__tensor_entry *e = entry_at(f, k);
    if (!f || f->trouble.status) return cot_file_status(f);
    if (!e)
        cot__trouble_file(&f->trouble, "%s has %d tensors, and none is number %d", f->source.path, (int)f->all.n, k);
    else if ((unsigned)dtype >= COT_DTYPE_COUNT)
        cot__trouble_set(&f->trouble, COT_DTYPE, "%s is read in a dtype that is none (%d)", f->source.path, (int)dtype);
    else if (!out)
        cot__trouble_file(&f->trouble, "%s is read to NULL", f->source.path);
    else if (!e->place.format.kind)
        cot__trouble_set(&f->trouble, COT_DTYPE,
                         "%s: the tensor %.100s has dtype %s; F64, F32, F16, BF16, I8 to I64, U8 to U64 and BOOL can "
                         "be read",
                         f->source.path, e->name, e->dtype);
    else if (f->is_table)
        read_column(f, k, dtype, out);
    else
        cot__tensor_read(&f->source, e, &f->al, dtype, out, &f->trouble);
    return f->trouble.status;
}
