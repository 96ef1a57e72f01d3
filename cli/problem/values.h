/* values.h: reads the value behind the = of x=…: a constant expression, an array in a file, or
 * uniform(seed, [shape], scale). */
#ifndef COT_CLI_VALUES_H
#define COT_CLI_VALUES_H

#include "problem/sparse_input.h"

/* Floats become `real`; a value with an integer or bool dtype of its own keeps it. `who` ("x=",
 * "--seed") begins messages. Free a->data with free. */
bool value_read(const char *who, const char *text, cot_dtype real, cot_array *a, failure *f);
/* The same, or @file.npz with a sparse matrix: its entries, and in m where they are. */
bool value_or_matrix_read(const char *who, const char *text, cot_dtype real, cot_array *a, sparse_input *m,
                          failure *f);

/* The elements of a var, as an array of its own dtype. */
bool value_of_var(cot_var x, cot_array *a, failure *f);

/* The dtype and shape of uniform(seed, [extents], scale), without its elements: data is NULL.
 * False: the text is something else, has no axes or no elements, or a mistake in it. */
bool value_shape(const char *text, cot_dtype real, cot_array *a);

#endif
