/* emit.h: a program as it grows under the parser: its steps, its names, the height of its stack. */
#ifndef COT_EXPR_EMIT_H
#define COT_EXPR_EMIT_H

#include "expr/lex.h"
#include "expr/program.h"

typedef struct cot__parser {
    cot__expr       *e;
    cot__lexer       lexer;
    cot__token       token; /* the one to be looked at next */
    uint32_t         last_stop; /* where the one before it ended */
    int              depth;
    int64_t          height; /* of the stack now */
    const char     **functions; /* names, for suggestions; made when first needed */
    cot__expr_error *error;
} cot__parser;

/* A step that changes the height of the stack by `change`. NULL, with the error filled, when memory
 * is short. */
cot__expr_step *cot__emit(cot__parser *p, cot__expr_step_kind kind, int change, uint32_t start, uint32_t stop);
/* The index of a name, new or old; -1 when memory is short. */
int cot__intern(cot__parser *p, uint32_t start, uint32_t stop);
/* Exchanges the neighbouring blocks of steps [a, b) and [b, c). Jumps inside either stay right:
 * they are relative. */
void cot__exchange(cot__expr *e, size_t a, size_t b, size_t c);

/* The parameters that positional and keyword arguments mean, checked as they are parsed
 * (parse_call.c). */
bool cot__parse_call(cot__parser *p, const cot__token *name);

/* parse.c */
bool cot__parse_expression(cot__parser *p);
/* A step of two operands, and the operator to blame. */
bool cot__parse_step(cot__parser *p, cot__expr_step_kind kind, const cot__token *operator, int what, uint32_t start);

/* parse_atom.c */
bool cot__parse_postfix(cot__parser *p);
bool cot__parse_load(cot__parser *p, const cot__token *name);
bool cot__parse_next(cot__parser *p);
bool cot__parse_deeper(cot__parser *p);
bool cot__parse_close(cot__parser *p, int bracket, uint32_t opened);
/* "expected WHAT, found …" */
bool cot__parse_expected(cot__parser *p, const char *what);

#endif
