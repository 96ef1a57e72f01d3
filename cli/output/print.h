/* print.h: results, for people and as JSON.
 *
 * May call: libc, base, JSON. Must not touch: expressions, files, terminals. */
#ifndef COT_CLI_PRINT_H
#define COT_CLI_PRINT_H

#include <stdio.h>

#include "cotangent.h"
#include "trace/json/json.h"

typedef struct look {
    bool colour;
    int  width; /* columns */
} look;

/* Lines "label = value", with the = in one column. label NULL: only the value. Every number reads
 * back to the same number. Of arrays with more than 1000 elements only the corners are shown. */
typedef struct labelled {
    char             label[96];
    const cot_array *value;
} labelled;
void print_values(FILE *out, look how, int n, const labelled *values);

/* "(2, 3)", "()"; buf of 400 bytes. */
const char *shape_text(cot_shape shape, char *buf);

void print_json(cot__json *j, const cot_array *value);

#endif
