/* safetensors.h: one tensor out of a .safetensors file. */
#ifndef COT_CLI_SAFETENSORS_H
#define COT_CLI_SAFETENSORS_H

#include "io/elements.h"

/* key NULL is an error that lists the keys. Floats (F64, F32, F16, BF16) become `real`, integers
 * and bools stay what they are. The header is checked against the file before it is read, and every
 * tensor against the data, before anything is allocated for the one wanted. */
bool safetensors_read(source *s, const char *key, cot_dtype real, cot_array *a, failure *f);

#endif
