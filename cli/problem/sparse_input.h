/* sparse_input.h: an input that is a sparse matrix, A=@graph.npz. Its value is the vector of its
 * entries, row by row, so that whatever is done with inputs (sweeps, checks, directions) is done
 * with those; here stands where they are. */
#ifndef COT_CLI_SPARSE_INPUT_H
#define COT_CLI_SPARSE_INPUT_H

#include "io/data_file.h"

typedef struct sparse_input {
    int64_t  rows, columns;
    int64_t *row, *column; /* of each entry; NULL: the input is an array */
} sparse_input;

/* Is it a file in which SciPy wrote a sparse matrix? */
bool sparse_input_is(cot__source *s, bool *is, failure *f);
/* Reads the matrix; its entries become `values`. */
bool sparse_input_read(const char *path, cot_dtype real, cot_array *values, sparse_input *m, failure *f);
void sparse_input_free(sparse_input *m);

/* The matrix on a tape, where its entries are `values`. */
cot_csr sparse_input_matrix(const sparse_input *m, cot_var values);

#endif
