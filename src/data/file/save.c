/* save.c: see save.h. A text is made in the pool, then everything is written through one sink. */
#include "data/file/save.h"

#include "base/file/bytes.h"
#include "base/file/replace.h"
#include "base/utf8.h"
#include "data/file/zlib.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* How a file with a sum begins, behind the eight bytes of its header's length: the sixteen digits
 * of the sum follow, and then all that is summed, together with these eight bytes. */
static const char before_sum[] = "{\"__metadata__\":{\"checksum\":\"";
enum { DIGITS = 16, SUM_AT = 8 + sizeof before_sum - 1, SUMMED_FROM = SUM_AT + DIGITS };

cot__file_form cot__file_form_of(const char *path) {
    static const char *const endings[] = {".safetensors", ".npy", ".npz"};
    size_t                   n         = strlen(path);
    for (int k = 0; k < COUNTOF(endings); k++) {
        size_t m = strlen(endings[k]);
        if (n >= m && strcmp(path + n - m, endings[k]) == 0) return (cot__file_form)(COT__FILE_SAFETENSORS + k);
    }
    return COT__FILE_OTHER;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* A text that grows in a pool. */
typedef struct text {
    cot__keep pool;
    char     *at;
    size_t    n, room;
    bool      failed;
} text;

static void put(text *x, const char *bytes, size_t n) {
    while (!x->failed && x->room - x->n < n) {
        size_t more  = x->room ? 2 * x->room : 1024;
        char  *grown = cot__keep_take(&x->pool, more);
        x->failed    = !grown;
        if (!grown) return;
        if (x->n) memcpy(grown, x->at, x->n);
        x->at   = grown;
        x->room = more;
    }
    if (!x->failed && n) memcpy(x->at + x->n, bytes, n), x->n += n;
}

static void putf(text *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void putf(text *x, const char *format, ...) {
    char    piece[64];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    put(x, piece, (size_t)n);
}

static void put_json(text *x, const char *s) {
    put(x, "\"", 1);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x20)
            putf(x, "\\u%04x", c);
        else {
            if (c == '"' || c == '\\') put(x, "\\", 1);
            put(x, s, 1);
        }
    }
    put(x, "\"", 1);
}

static void put_list(text *x, const cot_shape *shape) {
    for (int k = 0; k < shape->ndim; k++) putf(x, "%s%lld", k ? ", " : "", (long long)shape->dim[k]);
}

static uint64_t bytes_of(const cot__saved_item *item) {
    return (uint64_t)cot__count(item->shape.ndim, item->shape.dim) * (uint64_t)cot__dtype_size(item->dtype);
}

/* ---- .safetensors ---------------------------------------------------------------------------- */

static void safetensors_header(text *x, const cot__saving *w) {
    static const char *const names[COT_DTYPE_COUNT] = {"F64", "F32", "BF16", "F16", "I64", "I32", "U8", "BOOL"};
    uint64_t                 at                     = 0;
    const char              *comma                  = "";
    if (w->sum)
        put(x, before_sum, sizeof before_sum - 1), put(x, "0000000000000000\"", DIGITS + 1);
    else
        put(x, w->pair_count ? "{\"__metadata__\":{" : "{", w->pair_count ? 17 : 1);
    for (int k = 0; k < w->pair_count; k++) {
        put(x, ",", k || w->sum);
        put_json(x, w->pairs[k].key);
        put(x, ":", 1);
        put_json(x, w->pairs[k].text);
    }
    if (w->sum || w->pair_count) put(x, "}", 1), comma = ",";
    for (int k = 0; k < w->n; k++, comma = ",") {
        put(x, comma, strlen(comma));
        put_json(x, w->items[k].name);
        putf(x, ":{\"dtype\":\"%s\",\"shape\":[", names[w->items[k].dtype]);
        put_list(x, &w->items[k].shape);
        putf(x, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
             (unsigned long long)(at + bytes_of(&w->items[k])));
        at += bytes_of(&w->items[k]);
    }
    put(x, "}", 1);
    /* elements begin at a multiple of 8, so that others may map the file */
    while (!x->failed && x->n % 8) put(x, " ", 1);
}

/* ---- .npy ------------------------------------------------------------------------------------ */

/* Version 1: the header ends with a newline, and elements begin at a multiple of 64. NumPy has no
 * bf16, which caller has refused. */
static void npy_header(text *x, const cot__saved_item *item) {
    static const char *const descr[COT_DTYPE_COUNT] = {"<f8", "<f4", "", "<f2", "<i8", "<i4", "|u1", "|b1"};
    size_t                   start                  = x->n;
    put(x, "\x93NUMPY\1\0\0\0", 10);
    putf(x, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr[item->dtype]);
    put_list(x, &item->shape);
    putf(x, "%s), }", item->shape.ndim == 1 ? "," : "");
    while (!x->failed && (x->n - start + 1) % 64) put(x, " ", 1);
    put(x, "\n", 1);
    if (!x->failed) cot__to_bytes((unsigned char *)x->at + start + 8, x->n - start - 10, 2);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* What is written to the file, and what went wrong that is not the file's fault. */
typedef struct writer {
    const cot__saving *w;
    cot__trouble      *t;
    text               head, directory;
    cot__sink          sink;
    int                members;
} writer;

/* The bytes of elements are those of the file, where the machine has the same order of bytes. */
static void put_elements(cot__sink *to, const void *from, uint64_t bytes, int size) {
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ || size == 1) cot__sink_put(to, from, (size_t)bytes);
    for (uint64_t at = 0; __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ && size > 1 && at < bytes; at += (uint64_t)size)
        for (int k = size - 1; k >= 0; k--) cot__sink_put(to, (const char *)from + at + (uint64_t)k, 1);
}

static const void *elements_of(writer *x, int k) {
    const void *p = x->w->elements(x->w->user, k, x->t);
    x->sink.failed |= !p;
    return p;
}

static void put_item(writer *x, int k) {
    const void *from = elements_of(x, k);
    if (from) put_elements(&x->sink, from, bytes_of(&x->w->items[k]), cot__dtype_size(x->w->items[k].dtype));
}

static void member_head(text *to, bool central, bool packed, uint32_t crc, uint64_t size, uint64_t full,
                        const char *name) {
    unsigned char  b[46] = "PK\3\4\24";
    unsigned char *p     = b + 4 + 2 * central;
    if (central) memcpy(b, "PK\1\2\24\0\24", 7);
    p[4] = packed ? 8 : 0;
    p[8] = 0x21; /* the first day that the format knows */
    cot__to_bytes(p + 10, crc, 4);
    cot__to_bytes(p + 14, size, 4);
    cot__to_bytes(p + 18, full, 4);
    cot__to_bytes(p + 22, strlen(name) + 4, 2);
    put(to, (const char *)b, central ? 46 : 30);
    put(to, name, strlen(name));
    put(to, ".npy", 4);
}

/* A member of an archive: its head holds the sum and length of what follows, so that is made
 * first. */
static void put_member(writer *x, int k) {
    const cot__saved_item *item  = &x->w->items[k];
    const void            *from  = elements_of(x, k);
    uint64_t               begin = x->sink.count, bytes = bytes_of(item);
    if (!from) return;
    x->head.n = 0;
    npy_header(&x->head, item);
    size_t   header = x->head.n, full = header + (size_t)bytes, size = full, room = full + 4096;
    char    *whole  = x->w->pack ? cot__alloc(&x->w->al, full) : NULL;
    char    *packed = x->w->pack ? cot__alloc(&x->w->al, room) : NULL;
    uint32_t crc    = 0;
    if (x->head.failed || (x->w->pack && (!whole || !packed))) {
        cot__trouble_memory_for(x->t, full);
        x->sink.failed = true;
    } else {
        crc = cot__crc32(cot__crc32(0, x->head.at, header), from, (size_t)bytes);
        if (x->w->pack) {
            memcpy(whole, x->head.at, header);
            if (bytes) memcpy(whole + header, from, (size_t)bytes);
            size = cot__deflate(whole, full, packed, room);
            x->sink.failed |= size == 0;
        }
        text local = {.pool.al = x->w->al};
        member_head(&local, false, x->w->pack, crc, size, full, item->name);
        if (local.failed)
            x->sink.failed = true, cot__trouble_memory(x->t);
        else
            cot__sink_put(&x->sink, local.at, local.n);
        cot__keep_free(&local.pool);
        if (x->w->pack)
            cot__sink_put(&x->sink, packed, size);
        else {
            cot__sink_put(&x->sink, x->head.at, header);
            put_elements(&x->sink, from, bytes, cot__dtype_size(item->dtype));
        }
        size_t at = x->directory.n;
        member_head(&x->directory, true, x->w->pack, crc, size, full, item->name);
        if (!x->directory.failed) cot__to_bytes((unsigned char *)x->directory.at + at + 42, begin, 4);
        x->members++;
    }
    cot__free(&x->w->al, whole, full);
    cot__free(&x->w->al, packed, room);
}

static void put_directory(writer *x) {
    unsigned char end[22] = "PK\5\6";
    cot__to_bytes(end + 8, (uint64_t)x->members, 2);
    cot__to_bytes(end + 10, (uint64_t)x->members, 2);
    cot__to_bytes(end + 12, x->directory.n, 4);
    cot__to_bytes(end + 16, x->sink.count, 4);
    x->sink.failed |= x->directory.failed;
    if (x->directory.n && !x->directory.failed) cot__sink_put(&x->sink, x->directory.at, x->directory.n);
    cot__sink_put(&x->sink, end, sizeof end);
}

/* The digits are written last, over the zeros. */
static bool put_sum(writer *x, FILE *file) {
    char digits[DIGITS + 1];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)x->sink.sum);
    return fseeko(file, SUM_AT, SEEK_SET) == 0 && fwrite(digits, 1, DIGITS, file) == DIGITS;
}

static bool fill(FILE *file, void *content) {
    writer            *x = content;
    const cot__saving *w = x->w;
    x->sink              = (cot__sink){.write = cot__write_to_file, .to = file};
    if (w->form == COT__FILE_SAFETENSORS) {
        size_t from = w->sum ? SUMMED_FROM - 8 : 0;
        cot__sink_number(&x->sink, x->head.n, 8);
        uint64_t sum = x->sink.sum;
        cot__sink_put(&x->sink, x->head.at, from);
        x->sink.sum = sum;
        cot__sink_put(&x->sink, x->head.at + from, x->head.n - from);
    } else if (w->form == COT__FILE_NPY) {
        cot__sink_put(&x->sink, x->head.at, x->head.n);
    }
    for (int k = 0; k < w->n && !x->sink.failed; k++)
        if (w->form == COT__FILE_NPZ)
            put_member(x, k);
        else
            put_item(x, k);
    if (w->form == COT__FILE_NPZ) put_directory(x);
    return cot__sink_end(&x->sink) && (!w->sum || put_sum(x, file));
}

/* ---- can it be written? ---------------------------------------------------------------------- */

static bool is_text(const char *s) {
    size_t n = strlen(s);
    for (size_t step; n; s += step, n -= step)
        if (!(step = cot__utf8(s, n))) return false;
    return true;
}

/* Bytes that the file takes, a little more than less. */
static bool measure(const char *path, const cot__saving *w, uint64_t head, uint64_t *bytes, cot__trouble *t) {
    *bytes = head + 8;
    for (int k = 0; k < w->n; k++) {
        *bytes += bytes_of(&w->items[k]);
        if (w->form != COT__FILE_SAFETENSORS && w->items[k].dtype == COT_BF16)
            return cot__trouble_set(t, COT_DTYPE, "NumPy knows no bf16, which %.100s in %s is; cast it to f32",
                                    w->items[k].name, path);
        if (w->form == COT__FILE_NPZ) *bytes += 256 + 2 * (strlen(w->items[k].name) + 64);
    }
    if (w->form == COT__FILE_NPZ && (*bytes > UINT32_MAX || w->n >= UINT16_MAX))
        return cot__trouble_set(t, COT_LIMIT,
                                "%s would take more than 4 GB or 65534 arrays, and no more go into an .npz file; "
                                "write a .safetensors file",
                                path);
    if (w->form == COT__FILE_NPZ && w->pack && !cot__has_zlib())
        return cot__inflate_trouble(COT__INFLATE_MISSING, path, t);
    return true;
}

bool cot__save(const char *path, const cot__saving *w, cot__trouble *t) {
    writer   x     = {.w = w, .t = t, .head.pool.al = w->al, .directory.pool.al = w->al};
    uint64_t bytes = 0;
    bool     fine  = true;
    for (int k = 0; fine && k < w->n; k++)
        if (!is_text(w->items[k].name))
            fine = cot__trouble_file(t, "a name of a tensor for %s is not UTF-8", path);
        else if (w->form == COT__FILE_SAFETENSORS && strcmp(w->items[k].name, "__metadata__") == 0)
            fine = cot__trouble_file(t, "a tensor for %s has the name __metadata__, which .safetensors files keep for "
                                        "the texts beside tensors", path);
    for (int k = 0; fine && k < w->pair_count; k++)
        if (!is_text(w->pairs[k].key) || !is_text(w->pairs[k].text))
            fine = cot__trouble_file(t, "a text beside the tensors of %s is not UTF-8", path);
    if (w->form == COT__FILE_SAFETENSORS)
        safetensors_header(&x.head, w);
    else if (w->form == COT__FILE_NPY && fine)
        npy_header(&x.head, w->items);
    if (fine && x.head.failed) fine = cot__trouble_memory(t);
    fine = fine && measure(path, w, x.head.n, &bytes, t);
    if (fine && !cot__file_replace(&w->al, path, bytes, fill, &x, NULL)) {
        int error = errno;
        /* what is not the file's fault has been told */
        fine =
            x.head.failed || x.directory.failed ? cot__trouble_memory(t) : cot__trouble_errno(t, "write", path, error);
    }
    cot__keep_free(&x.head.pool);
    cot__keep_free(&x.directory.pool);
    return fine;
}

bool cot__safetensors_sum(cot__source *s, cot__trouble *t) {
    unsigned char start[SUMMED_FROM], block[16384];
    char          digits[DIGITS + 1];
    if (s->size < SUMMED_FROM)
        return cot__trouble_file(t, "%s is cut short: it has %llu bytes", s->path, (unsigned long long)s->size);
    if (!cot__source_read(s, 0, start, SUMMED_FROM, t)) return false;
    if (memcmp(start + 8, before_sum, sizeof before_sum - 1) != 0)
        return cot__trouble_file(t, "%s is no checkpoint, or was altered: its sum is not at byte 8", s->path);
    uint64_t sum = cot__checksum(0, start, 8);
    for (uint64_t at = SUMMED_FROM; at < s->size;) {
        size_t n = s->size - at < sizeof block ? (size_t)(s->size - at) : sizeof block;
        if (!cot__source_read(s, at, block, n, t)) return false;
        sum = cot__checksum(sum, block, n);
        at += n;
    }
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)sum);
    return memcmp(start + SUM_AT, digits, DIGITS) == 0 ||
           cot__trouble_file(t, "%s is cut short or was altered: the sum of its %llu bytes does not fit", s->path,
                             (unsigned long long)s->size);
}
