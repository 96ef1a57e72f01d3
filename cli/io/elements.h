/* elements.h: the elements of an array in a file, read into an array of the library. */
#ifndef COT_CLI_ELEMENTS_H
#define COT_CLI_ELEMENTS_H

#include "cotangent.h"
#include "io/source.h"

/* How the file writes an element. */
typedef struct element_format {
    /* 'f' IEEE float, 'h' upper half of a float (bf16), 'i' signed, 'u' unsigned, 'b' bool */
    char kind;
    int  size; /* bytes */
    bool big_endian;
} element_format;

/* The number of elements and of bytes of an array of this shape; false when it is beyond what a
 * tensor may have. */
bool elements_count(cot_shape shape, int element_size, int64_t *count, uint64_t *bytes);

/* A zeroed array. Free its data with free. */
bool elements_allocate(cot_array *a, cot_dtype dtype, cot_shape shape, failure *f);

/* Reads the array that stands at an offset. Floats become `real`, integers i64, i32 or u8,
 * whichever holds them, bools bool. Fortran order: the first axis runs fastest. The caller has
 * checked that all bytes are there, so that nothing is allocated for a file that lies. */
bool elements_read(source *s, uint64_t offset, element_format format, cot_shape shape, bool fortran, cot_dtype real,
                   cot_array *a, failure *f);

#endif
