/* data_file.c: see data_file.h. */
#include "io/data_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "expr/expr.h"

enum { MOST_BYTES = 1 << 28 };

bool failure_of_trouble(failure *f, const cot__trouble *t) {
    if (t->status == COT_OK) return true;
    if (t->about_values) return failure_set(f, EXIT_DISAGREES, "data", "%s", t->message);
    return failure_set(f, EXIT_RUN, t->status == COT_MEMORY ? "memory" : "file", "%s", t->message);
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Reads to the end of the stream into growing memory, because the size of stdin is not known. */
static char *read_all(FILE *file, const char *name, const char *what, size_t limit, size_t *size, failure *f) {
    char  *text = NULL;
    size_t used = 0, room = 0;
    for (;;) {
        if (room - used < 2) {
            size_t more  = room ? 2 * room : 4096;
            char  *grown = realloc(text, more);
            if (!grown) {
                free(text);
                failure_memory(f);
                return NULL;
            }
            text = grown;
            room = more;
        }
        size_t got = fread(text + used, 1, room - used - 1, file);
        used += got;
        if (used > limit)
            failure_usage(f, "%s in %s is longer than %zu bytes", what, name, limit);
        else if (ferror(file))
            failure_file(f, "read", name, errno);
        else if (got)
            continue;
        break;
    }
    if (f->status != EXIT_FINE) {
        free(text);
        return NULL;
    }
    text[used] = 0;
    *size      = used;
    return text;
}

char *source_text(const char *path, const char *what, size_t limit, size_t *size, failure *f) {
    if (strcmp(path, "-") == 0) return read_all(stdin, "the standard input", what, limit, size, f);
    struct stat about;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
        failure_set(f, EXIT_RUN, "file", "cannot read %s: it is a directory", path);
        return NULL;
    }
    FILE *file = fopen(path, "rb");
    if (!file) {
        failure_file(f, "read", path, errno);
        return NULL;
    }
    char *text = read_all(file, path, what, limit, size, f);
    fclose(file);
    return text;
}

/* ---- tables ---------------------------------------------------------------------------------- */

bool table_read(cot__data_table *t, const char *path, failure *f) {
    size_t       size    = 0;
    cot__trouble trouble = {0};
    *t                   = (cot__data_table){.path = path};
    char *text           = source_text(path, "the data", MOST_BYTES, &size, f);
    if (!text) return false;
    cot__data_table_parse(t, NULL, strcmp(path, "-") == 0 ? "the standard input" : path, text, size, &trouble);
    return failure_of_trouble(f, &trouble);
}

bool table_column(const cot__data_table *t, int column, const char *name, double *out, failure *f) {
    cot__trouble trouble = {0};
    cot__data_table_column(t, column, name, true, out, &trouble);
    return failure_of_trouble(f, &trouble);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

bool array_allocate(cot_array *a, cot_dtype dtype, cot_shape shape, failure *f) {
    uint64_t bytes;
    *a = (cot_array){.dtype = dtype, .shape = shape};
    if (!cot__elements_count(&shape, (int)cot__dtype_size(dtype), &a->size, &bytes))
        return failure_set(f, EXIT_RUN, "limit", "an array of this shape has too many elements");
    /* too much where addresses have 32 bits */
    if (bytes > SIZE_MAX) return failure_memory_for(f, bytes);
    a->data = calloc(bytes ? (size_t)bytes : 1, 1);
    return a->data ? true : bytes < 1000000 ? failure_memory(f) : failure_memory_for(f, bytes);
}

static bool read_entry(cot__source *s, const cot__tensor_entry *e, cot_dtype real, cot_array *a, failure *f) {
    cot_dtype    own     = cot__coding_dtype(e->place.format);
    cot__trouble trouble = {0};
    if (!array_allocate(a, cot__dtype_is_float(own) ? real : own, e->place.shape, f)) return false;
    if (cot__tensor_read(s, e, NULL, a->dtype, a->data, &trouble)) return true;
    free(a->data);
    a->data = NULL;
    return failure_of_trouble(f, &trouble);
}

/* Names the nearest key and the first keys: enough to see what the file holds. */
static bool key_missing(const cot__source *s, const char *key, const cot__tensors *all, failure *f) {
    char        keys[400] = "";
    size_t      used = 0, shown = 0;
    const char *near = NULL;
    if (key && all->n && all->n < 100000) {
        const char **names = malloc(all->n * sizeof *names);
        for (size_t i = 0; names && i < all->n; i++) names[i] = all->entries[i].name;
        if (names) near = cot__nearest(key, (int)all->n, names);
        free(names);
    }
    for (; shown < all->n && used + strlen(all->entries[shown].name) + 3 < sizeof keys; shown++)
        used += (size_t)snprintf(keys + used, sizeof keys - used, "%s%s", shown ? ", " : "", all->entries[shown].name);
    const char *more = shown < all->n ? ", …" : "";
    if (!all->n) return failure_set(f, EXIT_RUN, "file", "%s holds no tensors", s->path);
    if (!key) return failure_usage(f, "which tensor of %s? Write @%s:KEY; it holds %s%s", s->path, s->path, keys, more);
    if (near)
        return failure_set(f, EXIT_RUN, "file", "%s has no tensor %.100s; did you mean %.100s? It holds %s%s", s->path,
                           key, near, keys, more);
    return failure_set(f, EXIT_RUN, "file", "%s has no tensor %.100s; it holds %s%s", s->path, key, keys, more);
}

typedef bool lister(cot__source *s, cot__tensors *l, cot__trouble *t);

static bool read_tensor(cot__source *s, lister *list, const char *key, cot_dtype real, cot_array *a, failure *f) {
    cot__tensors       all     = {0};
    cot__trouble       trouble = {0};
    cot__tensor_entry *e       = NULL;
    list(s, &all, &trouble);
    bool fine = failure_of_trouble(f, &trouble);
    for (size_t i = 0; fine && key && i < all.n && !e; i++)
        if (strcmp(all.entries[i].name, key) == 0) e = &all.entries[i];
    if (fine && !e) fine = key_missing(s, key, &all, f);
    if (fine && !e->place.format.kind)
        fine = failure_set(
            f, EXIT_RUN, "file",
            "%s: the tensor %.100s has dtype %s; F64, F32, F16, BF16, I8 to I64, U8 to U64 and BOOL can be read",
            s->path, e->name, e->dtype);
    fine = fine && read_entry(s, e, real, a, f);
    cot__tensors_free(&all);
    return fine;
}

bool npy_read(cot__source *s, cot_dtype real, cot_array *a, failure *f) {
    return read_tensor(s, cot__npy_list, "", real, a, f);
}

bool npz_read(cot__source *s, const char *key, cot_dtype real, cot_array *a, failure *f) {
    return read_tensor(s, cot__npz_list, key, real, a, f);
}

bool safetensors_read(cot__source *s, const char *key, cot_dtype real, cot_array *a, failure *f) {
    return read_tensor(s, cot__safetensors_list, key, real, a, f);
}
