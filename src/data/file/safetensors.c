/* safetensors.c: the .safetensors format: eight bytes for the length of the header, a header in
 * JSON, the data.
 *
 * The header is {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …,
 * "__metadata__": {"key": "text", …}}. As in the format's own reader, tensors must lie one after
 * the other without holes, and must fill the file. Otherwise the file is damaged. */
#include "data/file/listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/bytes.h"
#include "data/file/json.h"

enum { MAX_HEADER = 100000000 }; /* the limit of the format's own reader */

static bool format_of(const char *dtype, cot__coding *format) {
    static const struct {
        const char *name;
        cot__coding format;
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

static bool scan_shape(cot__scan *x, cot_shape *shape) {
    *shape = (cot_shape){0};
    if (!cot__scan_open(x, '[')) return false;
    while (cot__scan_next(x, ']')) {
        uint64_t d;
        if (!cot__scan_natural(x, &d) || d > INT64_MAX) return cot__scan_fails(x, "an extent that is no 64-bit number");
        if (shape->ndim == COT_MAX_NDIM) return cot__scan_fails(x, "a tensor with more than 16 axes");
        shape->dim[shape->ndim++] = (int64_t)d;
    }
    return !x->what;
}

static bool scan_offsets(cot__scan *x, cot__tensor_entry *e) {
    uint64_t at[2] = {0};
    int      n     = 0;
    if (!cot__scan_open(x, '[')) return false;
    while (cot__scan_next(x, ']')) {
        if (n == 2 || !cot__scan_natural(x, &at[n++]))
            return cot__scan_fails(x, "data_offsets that are not two natural numbers");
    }
    if (!x->what && n != 2) return cot__scan_fails(x, "data_offsets that are not two natural numbers");
    e->place.at = at[0];
    e->end      = at[1];
    return !x->what;
}

static bool scan_entry(cot__scan *x, cot__tensor_entry *e) {
    bool has_dtype = false, has_shape = false, has_offsets = false;
    if (!cot__scan_open(x, '{')) return false;
    while (cot__scan_next(x, '}')) {
        char *name = cot__scan_key(x);
        if (!name) return false;
        bool fine;
        if (strcmp(name, "dtype") == 0 && !has_dtype) {
            e->dtype  = cot__scan_string(x);
            has_dtype = fine = e->dtype && strlen(e->dtype) < 16;
            if (fine) format_of(e->dtype, &e->place.format);
        } else if (strcmp(name, "shape") == 0 && !has_shape) {
            has_shape = fine = scan_shape(x, &e->place.shape);
        } else if (strcmp(name, "data_offsets") == 0 && !has_offsets) {
            has_offsets = fine = scan_offsets(x, e);
        } else {
            fine = false;
        }
        if (!fine)
            return cot__scan_fails(x, "a tensor with something else than dtype, shape and data_offsets, once each");
    }
    if (!x->what && !(has_dtype && has_shape && has_offsets))
        return cot__scan_fails(x, "a tensor without dtype, shape or data_offsets");
    return !x->what;
}

static bool scan_metadata(cot__scan *x, cot__tensors *l) {
    if (!cot__scan_open(x, '{')) return false;
    while (cot__scan_next(x, '}')) {
        cot_text_pair pair = {cot__scan_key(x), NULL};
        if (pair.key) pair.text = cot__scan_string(x);
        if (!pair.text) return false;
        cot_text_pair *grown = cot__keep_grow(&l->pool, l->pairs, l->pair_count, &l->pair_room, sizeof *grown);
        if (!grown) return cot__scan_memory(x);
        l->pairs               = grown;
        grown[l->pair_count++] = pair;
    }
    return !x->what;
}

static bool scan_header(cot__scan *x, cot__tensors *l) {
    if (!cot__scan_open(x, '{')) return false;
    while (cot__scan_next(x, '}')) {
        char *key = cot__scan_key(x);
        if (!key) return false;
        if (strcmp(key, "__metadata__") == 0) {
            if (!scan_metadata(x, l)) return false;
            continue;
        }
        cot__tensor_entry *e = cot__tensors_add(l, key);
        if (!e) return cot__scan_memory(x);
        if (!scan_entry(x, e)) return false;
    }
    return !x->what && cot__scan_end(x);
}

static int by_place(const void *a, const void *b) {
    const cot__tensor_entry *x = a, *y = b;
    if (x->place.at != y->place.at) return x->place.at < y->place.at ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const cot__tensor_entry *)a)->name, ((const cot__tensor_entry *)b)->name);
}

/* Ranges and sizes of one tensor, which shall begin at byte `at` of the data. */
static bool check_entry(const cot__source *s, const cot__tensor_entry *e, uint64_t at, uint64_t data, cot__trouble *t) {
    int64_t  count;
    uint64_t bytes, begin = e->place.at;
    if (begin > e->end || e->end > data)
        return cot__trouble_file(t, "%s is truncated or wrong: the tensor %.100s lies at bytes %llu to %llu of %llu",
                                 s->path, e->name, (unsigned long long)begin, (unsigned long long)e->end,
                                 (unsigned long long)data);
    if (!cot__elements_count(&e->place.shape, 1, &count, &bytes))
        return cot__trouble_file(t, "%s: the tensor %.100s has too many elements", s->path, e->name);
    bytes *= (uint64_t)e->place.format.size;
    if (e->place.format.kind && bytes != e->end - begin)
        return cot__trouble_file(t,
                                 "%s: the tensor %.100s takes %llu bytes by its shape and dtype, %llu by its offsets",
                                 s->path, e->name, (unsigned long long)bytes, (unsigned long long)(e->end - begin));
    if (begin != at)
        return cot__trouble_file(t, "%s: the tensor %.100s %s", s->path, e->name,
                                 begin < at ? "overlaps another" : "has unused bytes before it");
    return true;
}

/* Checks ranges, sizes, overlaps, holes, and names given twice. Sorts the entries by name. */
static bool check_entries(const cot__source *s, cot__tensors *l, uint64_t data, cot__trouble *t) {
    uint64_t at = 0;
    if (l->n) qsort(l->entries, l->n, sizeof *l->entries, by_place);
    for (size_t i = 0; i < l->n; i++) {
        if (!check_entry(s, &l->entries[i], at, data, t)) return false;
        at = l->entries[i].end;
    }
    if (at != data)
        return cot__trouble_file(t, "%s has %llu bytes left over behind its last tensor", s->path,
                                 (unsigned long long)(data - at));
    if (l->n) qsort(l->entries, l->n, sizeof *l->entries, by_name);
    for (size_t i = 1; i < l->n; i++) {
        if (strcmp(l->entries[i - 1].name, l->entries[i].name) == 0)
            return cot__trouble_file(t, "%s names the tensor %.100s twice", s->path, l->entries[i].name);
    }
    for (size_t i = 0; i < l->n; i++) l->entries[i].place.at += l->data, l->entries[i].end += l->data;
    return true;
}

/* The header is in the pool: all strings of the listing would be there too. */
static bool read_header(cot__source *s, cot__tensors *l, uint64_t length, cot__trouble *t) {
    char *text = cot__keep_take(&l->pool, (size_t)length + 1);
    if (!text) return cot__trouble_memory_for(t, length);
    if (!cot__source_read(s, 8, text, (size_t)length, t)) return false;
    cot__scan x = {.start = text, .at = text, .end = text + length, .pool = &l->pool};
    if (scan_header(&x, l)) return true;
    if (x.memory) return cot__trouble_memory(t);
    return cot__trouble_file(t, "%s has a header that cannot be read: %s at byte %zu", s->path, x.what,
                             8 + (size_t)(x.at - x.start));
}

bool cot__safetensors_list(cot__source *s, cot__tensors *l, cot__trouble *t) {
    uint8_t prefix[8];
    if (s->size < sizeof prefix)
        return cot__trouble_file(t, "%s is not a .safetensors file: it has fewer than 8 bytes", s->path);
    if (!cot__source_read(s, 0, prefix, sizeof prefix, t)) return false;
    uint64_t length = cot__from_bytes(prefix, 8);
    if (length > s->size - sizeof prefix)
        return cot__trouble_file(
            t, "%s is truncated or no .safetensors file: its header takes %llu bytes, and the file has %llu", s->path,
            (unsigned long long)length, (unsigned long long)s->size);
    if (length > MAX_HEADER)
        return cot__trouble_file(t, "%s has a header of %llu bytes; %d is the most that is read", s->path,
                                 (unsigned long long)length, MAX_HEADER);
    l->data = 8 + length;
    return read_header(s, l, length, t) && check_entries(s, l, s->size - l->data, t);
}
