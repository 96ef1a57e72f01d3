/* npy.h: arrays as numpy.save writes them. */
#ifndef COT_CLI_NPY_H
#define COT_CLI_NPY_H

#include "io/elements.h"

/* Versions 1 to 3, either byte order, C and Fortran order; floats of 2, 4 and 8 bytes become
 * `real`, integers and bools stay what they are. Header, shape and file size are compared before
 * anything is allocated. */
bool npy_read(source *s, cot_dtype real, cot_array *a, failure *f);

#endif
