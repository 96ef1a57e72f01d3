/* expression.h: errors of the expression language and of tapes as failures of the command. */
#ifndef COT_CLI_EXPRESSION_H
#define COT_CLI_EXPRESSION_H

#include "expr/expr.h"
#include "io/failure.h"

/* Always false. An error in the text is bad usage; an error of an operation that ran is a run-time
 * error. */
bool expression_failure(const cot__expr_error *error, const char *text, size_t length, failure *f);

/* For a trace or a cost that the library cannot make, and its reason. Always false. The code is
 * "memory" if memory was short, else the given one. */
bool sentence_failure(const char *why, const char *code, failure *f);

/* For the error on a tape. Always false. */
bool tape_failure(const cot_tape *t, failure *f);

#endif
