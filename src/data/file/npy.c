/* npy.c: the .npy format: magic, version, the length of a header, the header (a Python dict as
 * text), the elements.
 *
 * The header is read by a small scanner that knows the three keys and nothing else. */
#include "data/file/json.h"
#include "data/file/listing.h"

#include <string.h>

enum { MAX_HEADER = 65535 };

typedef struct scanner {
    const char *at, *end;
} scanner;

typedef struct header {
    cot__coding format;
    bool        fortran;
    cot_shape   shape;
    bool        has_descr, has_order, has_shape;
    char        descr[32]; /* for messages */
} header;

static void skip_spaces(scanner *x) { x->at = cot__after_spaces(x->at, x->end); }

static bool take(scanner *x, char c) {
    skip_spaces(x);
    if (x->at == x->end || *x->at != c) return false;
    x->at++;
    return true;
}

/* Reads 'text' or "text", without escapes. */
static bool take_string(scanner *x, char *out, size_t size) {
    skip_spaces(x);
    if (x->at == x->end || (*x->at != '\'' && *x->at != '"')) return false;
    char   quote = *x->at++;
    size_t n     = 0;
    while (x->at < x->end && *x->at != quote && *x->at != '\\' && n + 1 < size) out[n++] = *x->at++;
    out[n] = 0;
    return x->at < x->end && *x->at++ == quote;
}

static bool take_word(scanner *x, const char *word) {
    size_t n = strlen(word);
    skip_spaces(x);
    if ((size_t)(x->end - x->at) < n || memcmp(x->at, word, n) != 0) return false;
    x->at += n;
    return true;
}

static bool take_extent(scanner *x, int64_t *out) {
    skip_spaces(x);
    const char *start = x->at;
    int64_t     n     = 0;
    for (; x->at < x->end && *x->at >= '0' && *x->at <= '9'; x->at++) {
        int64_t d = *x->at - '0';
        if (n > (INT64_MAX - d) / 10) return false;
        n = 10 * n + d;
    }
    if (x->at == start) return false;
    if (x->at < x->end && *x->at == 'L') x->at++; /* a long of Python 2 */
    *out = n;
    return true;
}

/* (), (3,), (2, 3) */
static bool take_shape(scanner *x, cot_shape *shape) {
    *shape = (cot_shape){0};
    if (!take(x, '(')) return false;
    while (!take(x, ')')) {
        int64_t n;
        if (shape->ndim == COT_MAX_NDIM || !take_extent(x, &n)) return false;
        shape->dim[shape->ndim++] = n;
        if (take(x, ',')) continue;
        return shape->ndim > 1 && take(x, ')'); /* (3) is a number, not a shape */
    }
    return true;
}

static bool take_header(scanner *x, header *h) {
    if (!take(x, '{')) return false;
    while (!take(x, '}')) {
        char key[16];
        if (!take_string(x, key, sizeof key) || !take(x, ':')) return false;
        if (strcmp(key, "descr") == 0 && !h->has_descr) {
            h->has_descr = true;
            if (!take_string(x, h->descr, sizeof h->descr)) return false;
        } else if (strcmp(key, "fortran_order") == 0 && !h->has_order) {
            h->has_order = true;
            h->fortran   = take_word(x, "True");
            if (!h->fortran && !take_word(x, "False")) return false;
        } else if (strcmp(key, "shape") == 0 && !h->has_shape) {
            h->has_shape = true;
            if (!take_shape(x, &h->shape)) return false;
        } else {
            return false;
        }
        if (take(x, ',')) continue;
        if (!take(x, '}')) return false;
        break;
    }
    skip_spaces(x);
    return x->at == x->end && h->has_descr && h->has_order && h->has_shape;
}

/* "<f8", ">i4", "|u1", "|b1" */
static bool read_descr(const char *descr, cot__coding *format) {
    if (!strchr("<>|=", descr[0]) || !descr[0] || !descr[1] || !descr[2] || descr[3]) return false;
    *format = (cot__coding){descr[1], descr[2] - '0', descr[0] == '>'};
    switch (format->kind) {
    case 'f': return format->size == 2 || format->size == 4 || format->size == 8;
    case 'i':
    case 'u': return format->size == 1 || format->size == 2 || format->size == 4 || format->size == 8;
    case 'b': return format->size == 1;
    default: return false;
    }
}

/* The text of the header, which begins behind `prefix` bytes; and how long that is. */
static bool find_header(cot__source *s, uint64_t *prefix, uint64_t *length, cot__trouble *t) {
    uint8_t start[12] = {0};
    size_t  first     = s->size < sizeof start ? (size_t)s->size : sizeof start;
    if (!cot__source_read(s, 0, start, first, t)) return false;
    if (first < 10 || memcmp(start, "\x93NUMPY", 6) != 0)
        return cot__trouble_file(t, "%s is not a .npy file: it does not begin with \\x93NUMPY and a version", s->path);
    int major = start[6];
    if (major < 1 || major > 3 || start[7] != 0)
        return cot__trouble_file(t, "%s is a .npy file of version %d.%d; 1.0, 2.0 and 3.0 can be read", s->path, major,
                                 start[7]);
    *length = (uint64_t)start[8] | (uint64_t)start[9] << 8, *prefix = major == 1 ? 10 : 12;
    if (major > 1) *length |= (uint64_t)start[10] << 16 | (uint64_t)start[11] << 24;
    if (s->size < *prefix || *length > s->size - *prefix)
        return cot__trouble_file(t, "%s is truncated: its header takes %llu bytes, and the file has %llu", s->path,
                                 (unsigned long long)*length, (unsigned long long)s->size);
    if (*length > MAX_HEADER)
        return cot__trouble_file(t, "%s has a header of %llu bytes; %d is the most that is read", s->path,
                                 (unsigned long long)*length, MAX_HEADER);
    return true;
}

/* What the header says, whatever its elements are, and whether or not they are there. */
static bool any_header(cot__source *s, header *h, uint64_t *at, cot__trouble *t) {
    uint64_t prefix = 0, length = 0;
    if (!find_header(s, &prefix, &length, t)) return false;
    size_t room = (size_t)length + 1;
    char  *text = cot__alloc(&s->al, room);
    if (!text) return cot__trouble_memory(t);
    bool fine       = cot__source_read(s, prefix, text, (size_t)length, t);
    bool understood = fine && take_header(&(scanner){text, text + length}, h);
    cot__free(&s->al, text, room);
    if (!fine) return false;
    if (!understood && h->has_descr && !h->descr[0])
        return cot__trouble_file(t, "%s holds records; only arrays of numbers can be read", s->path);
    if (!understood)
        return cot__trouble_file(
            t,
            "%s has a header that is not {'descr': …, 'fortran_order': …, 'shape': …} of an array of at most %d axes",
            s->path, COT_MAX_NDIM);
    *at = prefix + length;
    return true;
}

static bool read_header(cot__source *s, header *h, uint64_t *at, cot__trouble *t) {
    if (!any_header(s, h, at, t)) return false;
    if (!read_descr(h->descr, &h->format))
        return cot__trouble_file(t, "%s has elements of type '%s'; f2, f4, f8, i1 to i8, u1 to u8 and b1 can be read",
                                 s->path, h->descr);
    return true;
}

bool cot__npy_text(cot__source *s, char to[COT__NPY_TEXT + 1], bool *is, cot__trouble *t) {
    header   h  = {0};
    uint64_t at = 0;
    uint8_t  bytes[4 * COT__NPY_TEXT];
    size_t   n = 0;
    *is        = false;
    if (!any_header(s, &h, &at, t)) return false;
    if (h.shape.ndim != 0 || !h.descr[0] || (h.descr[1] != 'S' && h.descr[1] != 'U')) return true;
    for (const char *d = h.descr + 2; *d >= '0' && *d <= '9' && n <= COT__NPY_TEXT; d++)
        n = 10 * n + (size_t)(*d - '0');
    size_t wide = h.descr[1] == 'U' ? 4 : 1, first = wide == 4 && h.descr[0] == '>' ? 3 : 0;
    if (n > COT__NPY_TEXT || s->size - at != n * wide) return true;
    if (!cot__source_read(s, at, bytes, n * wide, t)) return false;
    for (size_t k = 0; k < n; k++) to[k] = (char)bytes[k * wide + first];
    to[n] = 0;
    *is   = true;
    return true;
}

bool cot__npy_place(cot__source *s, cot__element_place *p, cot__trouble *t) {
    header   h  = {0};
    uint64_t at = 0, bytes = 0;
    int64_t  count;
    if (!read_header(s, &h, &at, t)) return false;
    if (!cot__elements_count(&h.shape, h.format.size, &count, &bytes))
        return cot__trouble_file(t, "%s has a shape with too many elements", s->path);
    uint64_t there = s->size - at;
    if (bytes != there)
        return cot__trouble_file(t, "%s %s: its shape takes %llu bytes, and %llu follow the header", s->path,
                                 bytes > there ? "is truncated" : "has bytes left over", (unsigned long long)bytes,
                                 (unsigned long long)there);
    *p = (cot__element_place){at, h.format, h.shape, h.fortran};
    return true;
}

bool cot__npy_list(cot__source *s, cot__tensors *l, cot__trouble *t) {
    cot__element_place place;
    if (!cot__npy_place(s, &place, t)) return false;
    cot__tensor_entry *e = cot__tensors_add(l, "");
    if (!e) return cot__trouble_memory(t);
    e->place = place;
    e->end   = s->size;
    return true;
}
