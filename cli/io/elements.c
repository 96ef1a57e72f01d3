/* elements.c: converts elements, in chunks, so that a file is never in memory twice. */
#include "io/elements.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/half.h"

enum { CHUNK = 4096 }; /* elements */

bool elements_count(cot_shape shape, int element_size, int64_t *count, uint64_t *bytes) {
    /* With 2^40 elements all sums of byte counts stay below 2^63, and no machine can read more. A
     * zero extent makes the whole count zero, but the other extents are still bounded, because
     * their product is a stride. */
    const int64_t most = INT64_C(1) << 40;
    int64_t       n = 1, stride = 1;
    if (shape.ndim < 0 || shape.ndim > COT_MAX_NDIM) return false;
    for (int k = 0; k < shape.ndim; k++) {
        int64_t d = shape.dim[k];
        if (d < 0 || (d > 0 && stride > most / d)) return false;
        if (d > 0) stride *= d;
        n *= d ? 1 : 0;
    }
    *count = n ? stride : 0;
    *bytes = (uint64_t)*count * (uint64_t)element_size;
    return true;
}

bool elements_allocate(cot_array *a, cot_dtype dtype, cot_shape shape, failure *f) {
    uint64_t bytes;
    *a = (cot_array){.dtype = dtype, .shape = shape};
    if (!elements_count(shape, (int)cot__dtype_size(dtype), &a->size, &bytes))
        return failure_set(f, EXIT_RUN, "limit", "an array of this shape has too many elements");
    /* too much where addresses have 32 bits */
    if (bytes > SIZE_MAX) return failure_memory_for(f, bytes);
    a->data = calloc(bytes ? (size_t)bytes : 1, 1);
    return a->data ? true : bytes < 1000000 ? failure_memory(f) : failure_memory_for(f, bytes);
}

static uint64_t bits_at(const uint8_t *p, element_format format) {
    uint64_t u = 0;
    for (int k = 0; k < format.size; k++) u = u << 8 | p[format.big_endian ? k : format.size - 1 - k];
    return u;
}

static double real_of(uint64_t bits, element_format format) {
    if (format.kind == 'h') return (double)cot__f32_from_bf16((uint16_t)bits);
    if (format.size == 2) return (double)cot__f32_from_f16((uint16_t)bits);
    if (format.size == 4) return (double)cot__f32_from_bits((uint32_t)bits);
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* False when the array's dtype cannot hold the element: an unsigned number beyond i64. */
static bool store(cot_array *a, int64_t at, uint64_t bits, element_format format) {
    switch (a->dtype) {
    case COT_F64: ((double *)a->data)[at] = real_of(bits, format); return true;
    case COT_F32: ((float *)a->data)[at] = (float)real_of(bits, format); return true;
    case COT_BOOL: ((uint8_t *)a->data)[at] = bits != 0; return true;
    case COT_U8: ((uint8_t *)a->data)[at] = (uint8_t)bits; return true;
    default: break;
    }
    int64_t v;
    if (format.kind == 'u' || format.size == 8) {
        if (format.kind == 'u' && bits > INT64_MAX) return false;
        memcpy(&v, &bits, sizeof v);
    } else {
        uint64_t sign = UINT64_C(1) << (8 * format.size - 1);
        v = (int64_t)(bits & (sign - 1)) - (int64_t)(bits & sign);
    }
    if (a->dtype == COT_I64)
        ((int64_t *)a->data)[at] = v;
    else
        ((int32_t *)a->data)[at] = (int32_t)v;
    return true;
}

static cot_dtype dtype_for(element_format format, cot_dtype real) {
    switch (format.kind) {
    case 'b': return COT_BOOL;
    case 'i': return format.size == 8 ? COT_I64 : COT_I32;
    case 'u': return format.size == 1 ? COT_U8 : format.size == 2 ? COT_I32 : COT_I64;
    default: return real;
    }
}

bool elements_read(source *s, uint64_t offset, element_format format, cot_shape shape, bool fortran, cot_dtype real,
                   cot_array *a, failure *f) {
    if (!elements_allocate(a, dtype_for(format, real), shape, f)) return false;
    int64_t stride[COT_MAX_NDIM], index[COT_MAX_NDIM] = {0}, at = 0;
    for (int64_t k = shape.ndim - 1, step = 1; k >= 0; k--) {
        stride[k] = step;
        step *= shape.dim[k];
    }
    uint8_t chunk[CHUNK * 8];
    for (int64_t done = 0; done < a->size;) {
        int64_t n = a->size - done < CHUNK ? a->size - done : CHUNK;
        if (!source_read(s, offset + (uint64_t)done * (uint64_t)format.size, chunk, (size_t)n * (size_t)format.size, f))
            goto failed;
        for (int64_t i = 0; i < n; i++, done++) {
            if (!store(a, fortran ? at : done, bits_at(chunk + i * format.size, format), format)) {
                failure_set(f, EXIT_RUN, "file", "%s holds an unsigned number that no i64 holds", s->path);
                goto failed;
            }
            for (int k = 0; fortran && k < shape.ndim; k++) {
                /* go to the next place; the first axis runs fastest */
                at += stride[k];
                if (++index[k] < shape.dim[k]) break;
                at -= stride[k] * shape.dim[k];
                index[k] = 0;
            }
        }
    }
    return true;
failed:
    free(a->data);
    a->data = NULL;
    return false;
}
