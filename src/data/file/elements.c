/* elements.c: converts elements, in chunks, so that a file is never in memory twice. */
#include "data/file/elements.h"

#include "base/element.h"
#include "base/file/bytes.h"
#include "base/half.h"

#include <string.h>

enum { CHUNK = 4096 }; /* elements */

bool cot__elements_count(const cot_shape *shape, int element_size, int64_t *count, uint64_t *bytes) {
    /* With 2^40 elements all sums of byte counts stay below 2^63, and no machine can read more. A
     * zero extent makes the whole count zero, but the other extents are still bounded, because
     * their product is a stride. */
    const int64_t most = INT64_C(1) << 40;
    int64_t       n = 1, stride = 1;
    if (shape->ndim < 0 || shape->ndim > COT_MAX_NDIM) return false;
    for (int k = 0; k < shape->ndim; k++) {
        int64_t d = shape->dim[k];
        if (d < 0 || (d > 0 && stride > most / d)) return false;
        if (d > 0) stride *= d;
        n *= d ? 1 : 0;
    }
    *count = n ? stride : 0;
    *bytes = (uint64_t)*count * (uint64_t)element_size;
    return true;
}

cot_dtype cot__coding_dtype(cot__coding format) {
    switch (format.kind) {
    case 'b': return COT_BOOL;
    case 'i': return format.size == 8 ? COT_I64 : COT_I32;
    case 'u': return format.size == 1 ? COT_U8 : format.size == 2 ? COT_I32 : COT_I64;
    case 'h': return COT_BF16;
    default: return format.size == 8 ? COT_F64 : format.size == 4 ? COT_F32 : COT_F16;
    }
}

cot__coding cot__dtype_coding(cot_dtype dtype) {
    static const char kind[COT_DTYPE_COUNT + 1] = "ffhfiiub";
    return (cot__coding){kind[dtype], cot__dtype_size(dtype), false};
}

static uint64_t bits_at(const uint8_t *p, cot__coding format) {
    uint64_t u = 0;
    for (int k = 0; k < format.size; k++) u = u << 8 | p[format.big_endian ? k : format.size - 1 - k];
    return u;
}

static double real_of(uint64_t bits, cot__coding format) {
    if (format.kind == 'h') return (double)cot__f32_from_bf16((uint16_t)bits);
    if (format.size == 2) return (double)cot__f32_from_f16((uint16_t)bits);
    if (format.size == 4) return (double)cot__f32_from_bits((uint32_t)bits);
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* False when no i64 holds it. */
static bool whole_of(uint64_t bits, cot__coding format, int64_t *v) {
    if (format.kind == 'b') {
        *v = bits != 0;
    } else if (format.kind == 'u' || format.size == 8) {
        if (format.kind == 'u' && bits > INT64_MAX) return false;
        memcpy(v, &bits, sizeof *v);
    } else {
        uint64_t sign = UINT64_C(1) << (8 * format.size - 1);
        *v            = (int64_t)(bits & (sign - 1)) - (int64_t)(bits & sign);
    }
    return true;
}

static bool same_whole(const void *p, cot_dtype dtype, int64_t v) {
    if (!cot__dtype_is_float(dtype)) return cot__load_i64(p, dtype) == v;
    double d = cot__load_f64(p, dtype);
    return d >= -0x1p63 && d < 0x1p63 && (int64_t)d == v;
}

/* Stores one element at `to`. False when the dtype cannot hold it. */
static bool store(void *to, cot_dtype dtype, uint64_t bits, cot__coding format) {
    if (format.kind == 'f' || format.kind == 'h') {
        cot__store_f64(to, dtype, real_of(bits, format));
        return true;
    }
    int64_t v = 0;
    if (!whole_of(bits, format, &v)) return false;
    cot__store_i64(to, dtype, v);
    return same_whole(to, dtype, v);
}

static bool too_large(const cot__source *s, cot_dtype dtype, uint64_t bits, cot__coding format, uint64_t at,
                      cot__trouble *t) {
    int64_t v = 0;
    if (!whole_of(bits, format, &v))
        return cot__trouble_file(t, "%s holds an unsigned number that no i64 holds, %llu at byte %llu", s->path,
                                 (unsigned long long)bits, (unsigned long long)at);
    return cot__trouble_file(t, "%s holds the number %lld at byte %llu, which no %s is", s->path, (long long)v,
                             (unsigned long long)at, cot__dtype_name(dtype));
}

/* Are the bytes of the file those of the array? Bools are read one by one, for they may be any byte
 * in a file. */
static bool as_they_are(const cot__element_place *p, cot_dtype dtype) {
    cot__coding f = p->format, own = cot__dtype_coding(dtype);
    bool        little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    return !p->fortran && f.kind == own.kind && f.kind != 'b' && f.size == own.size &&
           (f.size == 1 || f.big_endian != little);
}

bool cot__elements_read(cot__source *s, const cot__element_place *p, cot_dtype dtype, void *out, cot__trouble *t) {
    cot__coding format = p->format;
    int64_t     size, stride[COT_MAX_NDIM], index[COT_MAX_NDIM] = {0}, at = 0;
    uint64_t    bytes;
    if (!cot__elements_count(&p->shape, format.size, &size, &bytes)) return false;
    if ((format.kind == 'f' || format.kind == 'h') && !cot__dtype_is_float(dtype))
        return cot__trouble_set(t, COT_DTYPE, "%s holds floating-point numbers, which are not read as %s", s->path,
                                cot__dtype_name(dtype));
    if (as_they_are(p, dtype)) return cot__source_read(s, p->at, out, (size_t)bytes, t);
    cot__strides(p->shape.ndim, p->shape.dim, stride);
    uint8_t chunk[CHUNK * 8];
    for (int64_t done = 0; done < size;) {
        int64_t  n    = size - done < CHUNK ? size - done : CHUNK;
        uint64_t from = p->at + (uint64_t)done * (uint64_t)format.size;
        if (!cot__source_read(s, from, chunk, (size_t)n * (size_t)format.size, t)) return false;
        for (int64_t i = 0; i < n; i++, done++) {
            uint64_t bits = bits_at(chunk + i * format.size, format);
            if (!store((char *)out + (p->fortran ? at : done) * cot__dtype_size(dtype), dtype, bits, format))
                return too_large(s, dtype, bits, format, from + (uint64_t)(i * format.size), t);
            for (int k = 0; p->fortran && k < p->shape.ndim; k++) {
                /* go to the next place; the first axis runs fastest */
                at += stride[k];
                if (++index[k] < p->shape.dim[k]) break;
                at -= stride[k] * p->shape.dim[k];
                index[k] = 0;
            }
        }
    }
    return true;
}
