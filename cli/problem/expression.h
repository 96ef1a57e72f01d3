/* expression.h: errors of the expression language and of tapes as failures of the command. */
#ifndef COT_CLI_EXPRESSION_H
#define COT_CLI_EXPRESSION_H

#include "expr/expr.h"
#include "io/failure.h"

/* False. An error of the text is bad usage; one of an operation that ran, a run-time error. */
bool expression_failure(const cot__expr_error *error, const char *text, size_t length, failure *f);

/* What the library says of a trace or a cost that it cannot make; false. The code is "memory"
 * where that is why, else the given one. */
bool sentence_failure(const char *why, const char *code, failure *f);

/* The error on a tape; false. */
bool tape_failure(const cot_tape *t, failure *f);

#endif
