/* expr.h: expressions as people type them, a subset of Python's syntax with NumPy's names, run on a
 * tape.
 *
 * A text is parsed once into a program. The program runs any number of times, on any tape, with
 * vars for its names. Every operation of it is a call of the public library, so a program is
 * differentiated like any C function. Nothing here knows a derivative, and the list of operations
 * comes from the library's own tables.
 *
 * Running a program does not change it, so threads may share one.
 *
 * May call: base, and the public library. Must not touch: tapes' insides. */
#ifndef COT_EXPR_H
#define COT_EXPR_H

#include "base/names/nearest.h"
#include "cotangent.h"

typedef struct cot__expr cot__expr;

/* An error and its place. Columns count characters (not bytes) from 1; lines from 1. column 0: no
 * place in the text is to blame. */
typedef struct cot__expr_error {
    int        line, column, length; /* length: number of characters that are marked, at least 1 */
    /* status of the tape, when an operation failed; COT_OK for an error in the text itself */
    cot_status status;
    char       message[512];
} cot__expr_error;

/* Bounds: a longer text or deeper nesting is an error, not a crash. Parsing at the full depth takes
 * about 200 kB of stack. */
enum { COT__EXPR_MAX_BYTES = 1 << 20, COT__EXPR_MAX_DEPTH = 200 };

/* Parses a text. NULL, with *error filled, when the text is not a program or memory is short. */
cot__expr *cot__expr_parse(const char *text, size_t length, cot__expr_error *error);
/* The same with an allocator, which the program and its runs keep using; NULL: malloc. */
cot__expr *cot__expr_parse_with(const cot_allocator *al, const char *text, size_t length, cot__expr_error *error);
void       cot__expr_free(cot__expr *e);

/* The names that must be given: used before they are assigned, in order of first use. They belong
 * to e. */
int cot__expr_names(const cot__expr *e, const char *const **names);

/* Does the text use this name at all? Names such as e or pi may be given, but need not be. */
bool cot__expr_uses(const cot__expr *e, const char *name);
/* The number of a name, from 0 to cot__expr_name_count - 1. A caller may keep its own data for each
 * name by this number. -1: the text does not use the name. */
int cot__expr_name(const cot__expr *e, const char *name, size_t length);
int cot__expr_name_count(const cot__expr *e);

/* The constants pi, e, inf and nan that the text uses, and does not assign: their names and values,
 * and how many. Given as an input, such a name is no constant; that the caller knows. */
enum { COT__EXPR_CONSTANTS = 4 };
int cot__expr_constants(const cot__expr *e, const char *name[COT__EXPR_CONSTANTS], double value[COT__EXPR_CONSTANTS]);

typedef struct cot__expr_input {
    const char    *name;
    cot_var        value;
    /* A sparse matrix, which then is the value. NULL: there is none. */
    const cot_csr *matrix;
} cot__expr_input;

/* The part of the text that recorded a node: bytes [start, stop). There is one entry for each node
 * that the run recorded. If the node was given a number that is not finite and was computed from
 * numbers of the text, such as log(-1), [odd_start, odd_stop) is where; else these are 0. */
typedef struct cot__expr_span {
    uint32_t start, stop, odd_start, odd_stop;
} cot__expr_span;

/* Runs e on t. Returns the result of the last statement. A number is recorded as a constant, so the
 * result is always a var of t. On failure it is invalid and *error is filled (an error of the tape
 * stays there too, with its own message). spans, if not NULL, is set to a malloced array of
 * *span_count entries. */
cot_var cot__expr_run(const cot__expr *e, cot_tape *t, int n, const cot__expr_input *inputs, cot__expr_error *error,
                      cot__expr_span **spans, int64_t *span_count);

/* The same, for derivatives. A result that is a plain number of the text, such as the 0 of `x if x
 * > 0 else 0`, becomes a constant of dtype `real`. COT_DTYPE_COUNT: it keeps its own dtype, i64 for
 * an integer. */
cot_var cot__expr_run_as(const cot__expr *e, cot_tape *t, cot_dtype real, int n, const cot__expr_input *inputs,
                         cot__expr_error *error, cot__expr_span **spans, int64_t *span_count);

/* Shows an error in its text: the line of the text, and below it ^~~~ at the column. Always
 * terminated. */
void cot__expr_show(const cot__expr_error *error, const char *text, size_t length, char *out, size_t size);

/* All functions that can be called, in order of names: their number, the name of function i, and
 * how to call a function, "sum(x, axis=None, keepdims=False)"; NULL for a name that is not a
 * function. */
int         cot__expr_function_count(void);
const char *cot__expr_function_name(int i);
const char *cot__expr_signature(const char *function, char *buf, size_t size);
/* The function of the library that a name or an operator calls: "clamp" for "clip", "mul" for "*",
 * "sin" for "sin". NULL where there is none. */
const char *cot__expr_behind(const char *name);

#endif
