/* fuzz_table.c: any bytes as a table of numbers: CSV in its many forms, or a NIST file. Cells lie
 * within the text, columns are read to their end, and every refusal has a sentence. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/data_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void broken(const char *what) {
    fprintf(stderr, "fuzz_table: %s\n", what);
    abort();
}

static void check_failure(bool fine, const failure *f) {
    if (fine != (f->status == EXIT_FINE)) broken("a failure that is none, or none that is one");
    if (!fine && !f->message[0]) broken("a failure without a message");
}

static void check_cells(const cot__data_table *t, size_t size) {
    for (int64_t i = 0; i < t->rows * t->columns; i++) {
        const cot__data_table_cell *c = &t->cells[i];
        if (c->text < t->text || c->length > size || c->text + c->length > t->text + size)
            broken("a cell outside of the text");
    }
    for (int64_t i = 0; i < t->rows; i++)
        if (t->lines[i] < 1 || t->lines[i] > (int64_t)size + 1) broken("a line that is not there");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size]              = 0;
    cot__data_table t       = {0};
    failure         f       = {0};
    cot__trouble    trouble = {0};
    cot__data_table_parse(&t, NULL, "fuzz", text, size, &trouble);
    bool fine = failure_of_trouble(&f, &trouble);
    check_failure(fine, &f);
    if (fine) {
        double *column = malloc((size_t)t.rows * sizeof *column + 1);
        check_cells(&t, size);
        for (int k = 0; k < t.columns && k < 16 && column; k++) {
            failure g    = {0};
            bool    read = table_column(&t, k, "c", column, &g);
            check_failure(read, &g);
            for (int64_t i = 0; read && i < t.rows; i++)
                if (!isfinite(column[i])) broken("a number that is not finite");
            if (t.names && cot__data_table_find(&t, t.names[k]) == COT__COLUMN_NONE) broken("a name that is not found");
        }
        free(column);
    }
    cot__data_table_free(&t);
    return 0;
}
