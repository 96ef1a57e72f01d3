/* safetensors.h: one tensor out of a .safetensors file. */
#ifndef COT_CLI_SAFETENSORS_H
#define COT_CLI_SAFETENSORS_H

#include "io/elements.h"

/* Reads a tensor. key NULL is an error that lists the keys. Floats (F64, F32, F16, BF16) become
 * `real`; integers and bools keep their dtype. The length of the header is checked against the file
 * before the header is read, and every tensor is checked against the data before memory is
 * allocated for the wanted one. */
bool safetensors_read(source *s, const char *key, cot_dtype real, cot_array *a, failure *f);

#endif
