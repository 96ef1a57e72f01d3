/* npy.h: arrays as numpy.save writes them. */
#ifndef COT_CLI_NPY_H
#define COT_CLI_NPY_H

#include "io/elements.h"

/* Reads versions 1 to 3, both byte orders, C and Fortran order. Floats of 2, 4 and 8 bytes become
 * `real`; integers and bools keep their dtype. Header, shape and file size are compared before
 * memory is allocated. */
bool npy_read(source *s, cot_dtype real, cot_array *a, failure *f);

#endif
