/* elements.h: the elements of an array in a file, as elements of the library. */
#ifndef COT_DATA_ELEMENTS_H
#define COT_DATA_ELEMENTS_H

#include "data/file/source.h"

/* How the file writes an element. */
typedef struct cot__coding {
    /* 'f' IEEE float, 'h' upper half of a float (bf16), 'i' signed, 'u' unsigned, 'b' bool; 0: a
     * kind that cannot be read */
    char kind;
    int  size; /* bytes */
    bool big_endian;
} cot__coding;

/* Where the elements of one array are. */
typedef struct cot__element_place {
    uint64_t    at; /* of the first, in the source */
    cot__coding format;
    cot_shape   shape;
    bool        fortran; /* the first axis runs fastest */
} cot__element_place;

/* The number of elements and of bytes of an array of this shape; false when it is beyond what a
 * tensor may have. */
bool cot__elements_count(const cot_shape *shape, int element_size, int64_t *count, uint64_t *bytes);

/* The dtype of the library that holds every element of this format: itself, or the next wider
 * integer. (An unsigned number of 64 bits may be beyond i64.) */
cot_dtype cot__coding_dtype(cot__coding format);
/* … and the other way round. */
cot__coding cot__dtype_coding(cot_dtype dtype);

/* Reads all elements in a dtype, row-major, to `out`, which has room for them. Floats become any
 * float dtype, rounded once. Integers and bools become any dtype as long as each of them is the
 * same number there; the first that is not is a failure, and so are floats read as integers. The
 * caller has checked that all bytes are there, so that nothing is allocated for a file that
 * lies. */
bool cot__elements_read(cot__source *s, const cot__element_place *place, cot_dtype dtype, void *out, cot__trouble *t);

#endif
