/* sparse_input.c: see sparse_input.h. The library reads, sorts and sums on a tape of its own. */
#include "problem/sparse_input.h"

#include <stdlib.h>
#include <string.h>

#include "problem/expression.h"
#include "problem/values.h"

bool sparse_input_is(cot__source *s, bool *is, failure *f) {
    cot__tensors all     = {0};
    cot__trouble trouble = {0};
    *is                  = false;
    if (cot__npz_list(s, &all, &trouble))
        for (size_t k = 0; k < all.pair_count && !*is; k++) *is = strcmp(all.pairs[k].key, "format") == 0;
    cot__tensors_free(&all);
    return failure_of_trouble(f, &trouble);
}

static bool take(cot_csr a, cot_array *values, sparse_input *m, failure *f) {
    if (!cot_is_valid(a.values)) return tape_failure(a.values.tape, f);
    if (!value_of_var(a.values, values, f)) return false;
    size_t bytes = ((size_t)values->size + 1) * sizeof *m->row;
    *m           = (sparse_input){a.rows, a.columns, malloc(bytes), malloc(bytes)};
    if (!m->row || !m->column) return failure_memory(f);
    cot_var rows = cot_csr_entry_rows(a), columns = cot_csr_entry_columns(a);
    return (cot_read_as(rows, COT_I64, m->row, values->size) == COT_OK &&
            cot_read_as(columns, COT_I64, m->column, values->size) == COT_OK) ||
           tape_failure(a.values.tape, f);
}

bool sparse_input_read(const char *path, cot_dtype real, cot_array *values, sparse_input *m, failure *f) {
    cot_tape *t = cot_tape_create(NULL);
    if (!t) return failure_memory(f);
    bool fine = take(cot_csr_load(t, path, real), values, m, f);
    cot_tape_destroy(t);
    if (fine) return true;
    free(values->data);
    values->data = NULL;
    sparse_input_free(m);
    return false;
}

void sparse_input_free(sparse_input *m) {
    free(m->row);
    free(m->column);
    *m = (sparse_input){0};
}

cot_csr sparse_input_matrix(const sparse_input *m, cot_var values) {
    return cot_csr_from_triplets(values.tape, m->rows, m->columns, cot_size(values), m->row, m->column, values);
}
