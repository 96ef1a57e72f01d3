/* safetensors.c: the .safetensors format: eight bytes for the length of the header, a header in
 * JSON, the data.
 *
 * The header is {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …,
 * "__metadata__": {"key": "text", …}}. As in the format's own reader, tensors must lie one after
 * the other without holes, and must fill the file. Otherwise the file is damaged. */
#include "io/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "expr/expr.h"
#include "io/json_scan.h"

enum { MAX_HEADER = 100000000 }; /* the limit of the format's own reader */

typedef struct entry {
    char     *key;
    char      dtype[16];
    cot_shape shape;
    uint64_t  begin, end;
} entry;

typedef struct listing {
    entry *entries;
    size_t n, room;
} listing;

static void listing_free(listing *all) {
    for (size_t i = 0; i < all->n; i++) free(all->entries[i].key);
    free(all->entries);
}

static bool element_format_of(const char *dtype, element_format *format) {
    static const struct {
        const char    *name;
        element_format format;
    } known[] = {{"F64", {'f', 8, false}},  {"F32", {'f', 4, false}}, {"F16", {'f', 2, false}},
                 {"BF16", {'h', 2, false}}, {"I64", {'i', 8, false}}, {"I32", {'i', 4, false}},
                 {"I16", {'i', 2, false}},  {"I8", {'i', 1, false}},  {"U64", {'u', 8, false}},
                 {"U32", {'u', 4, false}},  {"U16", {'u', 2, false}}, {"U8", {'u', 1, false}},
                 {"BOOL", {'b', 1, false}}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, dtype) == 0) {
            *format = known[i].format;
            return true;
        }
    }
    return false;
}

static bool scan_shape(json_scan *x, cot_shape *shape) {
    *shape = (cot_shape){0};
    if (!json_scan_open(x, '[')) return false;
    while (json_scan_next(x, ']')) {
        uint64_t d;
        if (!json_scan_natural(x, &d) || d > INT64_MAX) return json_scan_fails(x, "an extent that is no 64-bit number");
        if (shape->ndim == COT_MAX_NDIM) return json_scan_fails(x, "a tensor with more than 16 axes");
        shape->dim[shape->ndim++] = (int64_t)d;
    }
    return !x->what;
}

static bool scan_offsets(json_scan *x, entry *e) {
    uint64_t at[2] = {0};
    int      n = 0;
    if (!json_scan_open(x, '[')) return false;
    while (json_scan_next(x, ']')) {
        if (n == 2 || !json_scan_natural(x, &at[n++]))
            return json_scan_fails(x, "data_offsets that are not two natural numbers");
    }
    if (!x->what && n != 2) return json_scan_fails(x, "data_offsets that are not two natural numbers");
    e->begin = at[0];
    e->end = at[1];
    return !x->what;
}

static bool scan_entry(json_scan *x, entry *e) {
    bool has_dtype = false, has_shape = false, has_offsets = false;
    if (!json_scan_open(x, '{')) return false;
    while (json_scan_next(x, '}')) {
        char *name = json_scan_key(x);
        if (!name) return false;
        bool fine;
        if (strcmp(name, "dtype") == 0 && !has_dtype) {
            char *dtype = json_scan_string(x);
            has_dtype = fine = dtype && strlen(dtype) < sizeof e->dtype;
            if (fine) strcpy(e->dtype, dtype);
            free(dtype);
        } else if (strcmp(name, "shape") == 0 && !has_shape) {
            has_shape = fine = scan_shape(x, &e->shape);
        } else if (strcmp(name, "data_offsets") == 0 && !has_offsets) {
            has_offsets = fine = scan_offsets(x, e);
        } else {
            fine = false;
        }
        free(name);
        if (!fine)
            return json_scan_fails(x, "a tensor with something else than dtype, shape and data_offsets, once each");
    }
    if (!x->what && !(has_dtype && has_shape && has_offsets))
        return json_scan_fails(x, "a tensor without dtype, shape or data_offsets");
    return !x->what;
}

static bool scan_metadata(json_scan *x) {
    if (!json_scan_open(x, '{')) return false;
    while (json_scan_next(x, '}')) {
        char *name = json_scan_key(x);
        if (!name) return false;
        free(name);
        char *text = json_scan_string(x);
        if (!text) return false;
        free(text);
    }
    return !x->what;
}

static bool scan_header(json_scan *x, listing *all) {
    if (!json_scan_open(x, '{')) return false;
    while (json_scan_next(x, '}')) {
        char *key = json_scan_key(x);
        if (!key) return false;
        if (strcmp(key, "__metadata__") == 0) {
            free(key);
            if (!scan_metadata(x)) return false;
            continue;
        }
        if (all->n == all->room) {
            size_t room = all->room ? 2 * all->room : 16;
            entry *grown = realloc(all->entries, room * sizeof *grown);
            if (!grown) {
                free(key);
                return json_scan_memory(x);
            }
            all->entries = grown;
            all->room = room;
        }
        entry *e = &all->entries[all->n++];
        *e = (entry){.key = key};
        if (!scan_entry(x, e)) return false;
    }
    return !x->what && json_scan_end(x);
}

static int by_place(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return strcmp(x->key, y->key);
}

static int by_key(const void *a, const void *b) { return strcmp(((const entry *)a)->key, ((const entry *)b)->key); }

/* Checks ranges, sizes, overlaps, holes, and names given twice. Sorts the entries by key. */
static bool check_entries(const source *s, listing *all, uint64_t data, failure *f) {
    uint64_t at = 0;
    if (all->n) qsort(all->entries, all->n, sizeof *all->entries, by_place);
    for (size_t i = 0; i < all->n; i++) {
        const entry   *e = &all->entries[i];
        element_format format;
        int64_t        count;
        uint64_t       bytes;
        if (e->begin > e->end || e->end > data)
            return failure_set(
                f, EXIT_RUN, "file", "%s is truncated or wrong: the tensor %.100s lies at bytes %llu to %llu of %llu",
                s->path, e->key, (unsigned long long)e->begin, (unsigned long long)e->end, (unsigned long long)data);
        if (!elements_count(e->shape, 1, &count, &bytes))
            return failure_set(f, EXIT_RUN, "file", "%s: the tensor %.100s has too many elements", s->path, e->key);
        if (element_format_of(e->dtype, &format) && bytes * (uint64_t)format.size != e->end - e->begin)
            return failure_set(f, EXIT_RUN, "file",
                               "%s: the tensor %.100s takes %llu bytes by its shape and dtype, %llu by its offsets",
                               s->path, e->key, (unsigned long long)(bytes * (uint64_t)format.size),
                               (unsigned long long)(e->end - e->begin));
        if (e->begin != at)
            return failure_set(f, EXIT_RUN, "file", "%s: the tensor %.100s %s", s->path, e->key,
                               e->begin < at ? "overlaps another" : "has unused bytes before it");
        at = e->end;
    }
    if (at != data)
        return failure_set(f, EXIT_RUN, "file", "%s has %llu bytes left over behind its last tensor", s->path,
                           (unsigned long long)(data - at));
    if (all->n) qsort(all->entries, all->n, sizeof *all->entries, by_key);
    for (size_t i = 1; i < all->n; i++) {
        if (strcmp(all->entries[i - 1].key, all->entries[i].key) == 0)
            return failure_set(f, EXIT_RUN, "file", "%s names the tensor %.100s twice", s->path, all->entries[i].key);
    }
    return true;
}

/* Names the nearest key and the first keys: enough to see what the file holds. */
static bool key_missing(const source *s, const char *key, const listing *all, failure *f) {
    char        keys[400] = "";
    size_t      used = 0, shown = 0;
    const char *near = NULL;
    if (key && all->n && all->n < 100000) {
        const char **names = malloc(all->n * sizeof *names);
        for (size_t i = 0; names && i < all->n; i++) names[i] = all->entries[i].key;
        if (names) near = cot__nearest(key, (int)all->n, names);
        free(names);
    }
    for (; shown < all->n && used + strlen(all->entries[shown].key) + 3 < sizeof keys; shown++)
        used += (size_t)snprintf(keys + used, sizeof keys - used, "%s%s", shown ? ", " : "", all->entries[shown].key);
    const char *more = shown < all->n ? ", …" : "";
    if (!all->n) return failure_set(f, EXIT_RUN, "file", "%s holds no tensors", s->path);
    if (!key) return failure_usage(f, "which tensor of %s? Write @%s:KEY; it holds %s%s", s->path, s->path, keys, more);
    if (near)
        return failure_set(f, EXIT_RUN, "file", "%s has no tensor %.100s; did you mean %.100s? It holds %s%s", s->path,
                           key, near, keys, more);
    return failure_set(f, EXIT_RUN, "file", "%s has no tensor %.100s; it holds %s%s", s->path, key, keys, more);
}

static bool find(source *s, uint64_t header, listing *all, const char *key, cot_dtype real, cot_array *a, failure *f) {
    if (!check_entries(s, all, s->size - 8 - header, f)) return false;
    entry  wanted = {0};
    entry *e = NULL;
    for (size_t i = 0; key && i < all->n && !e; i++)
        if (strcmp(all->entries[i].key, key) == 0) e = &all->entries[i];
    if (!e) return key_missing(s, key, all, f);
    wanted = *e;
    element_format format;
    if (!element_format_of(wanted.dtype, &format))
        return failure_set(
            f, EXIT_RUN, "file",
            "%s: the tensor %.100s has dtype %s; F64, F32, F16, BF16, I8 to I64, U8 to U64 and BOOL can be read",
            s->path, wanted.key, wanted.dtype);
    return elements_read(s, 8 + header + wanted.begin, format, wanted.shape, false, real, a, f);
}

bool safetensors_read(source *s, const char *key, cot_dtype real, cot_array *a, failure *f) {
    uint8_t  prefix[8];
    uint64_t header = 0;
    if (s->size < sizeof prefix)
        return failure_set(f, EXIT_RUN, "file", "%s is not a .safetensors file: it has fewer than 8 bytes", s->path);
    if (!source_read(s, 0, prefix, sizeof prefix, f)) return false;
    for (int k = 7; k >= 0; k--) header = header << 8 | prefix[k];
    if (header > s->size - sizeof prefix)
        return failure_set(
            f, EXIT_RUN, "file",
            "%s is truncated or no .safetensors file: its header takes %llu bytes, and the file has %llu", s->path,
            (unsigned long long)header, (unsigned long long)s->size);
    if (header > MAX_HEADER)
        return failure_set(f, EXIT_RUN, "file", "%s has a header of %llu bytes; %d is the most that is read", s->path,
                           (unsigned long long)header, MAX_HEADER);
    char *text = malloc((size_t)header + 1);
    if (!text) return failure_memory(f);
    listing all = {0};
    bool    fine = source_read(s, sizeof prefix, text, (size_t)header, f);
    if (fine) {
        json_scan x = {.start = text, .at = text, .end = text + header};
        fine = scan_header(&x, &all);
        if (!fine && x.memory)
            failure_memory(f);
        else if (!fine)
            failure_set(f, EXIT_RUN, "file", "%s has a header that cannot be read: %s at byte %zu", s->path, x.what,
                        8 + (size_t)(x.at - x.start));
    }
    free(text);
    fine = fine && find(s, header, &all, key, real, a, f);
    listing_free(&all);
    return fine;
}
