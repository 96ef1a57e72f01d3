/* emit.h: a program while it is parsed: its steps, its names, the height of its stack. */
#ifndef COT_EXPR_EMIT_H
#define COT_EXPR_EMIT_H

#include "expr/lex.h"
#include "expr/program.h"

typedef struct cot__parser {
    cot__expr       *e;
    cot__lexer       lexer;
    cot__token       token; /* the token that is parsed next */
    uint32_t         last_stop; /* where the token before it ended */
    int              depth;
    int64_t          height; /* of the stack now */
    const char     **functions; /* names, for suggestions; made when first needed */
    cot__expr_error *error;
} cot__parser;

/* Adds a step that changes the height of the stack by `change`. NULL, with the error filled, when
 * memory is short. */
cot__expr_step *cot__emit(cot__parser *p, cot__expr_step_kind kind, int change, uint32_t start, uint32_t stop);
/* The index of a name, new or old; -1 when memory is short. */
int cot__intern(cot__parser *p, uint32_t start, uint32_t stop);
/* Exchanges the neighbouring blocks of steps [a, b) and [b, c). Jumps inside each block are
 * relative, so they stay right. */
void cot__exchange(cot__expr *e, size_t a, size_t b, size_t c);

/* Parses the arguments of a call, and checks which parameters they are (parse_call.c). */
bool cot__parse_call(cot__parser *p, const cot__token *name);

/* parse.c */
bool cot__parse_expression(cot__parser *p);
/* Adds a step of two operands. `operator` is the token to blame when the step fails. */
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
