/* lex.h: cuts the text into tokens, one at a time. */
#ifndef COT_EXPR_LEX_H
#define COT_EXPR_LEX_H

#include "expr/expr.h"

/* A single character is its own kind. The other kinds: */
typedef enum cot__token_kind {
    TOKEN_END,
    TOKEN_NEWLINE = '\n',
    TOKEN_NUMBER  = 256,
    TOKEN_INTEGER,
    TOKEN_STRING,
    TOKEN_NAME,
    TOKEN_POWER,
    TOKEN_FLOOR_DIVIDE,
    TOKEN_LESS_EQUAL,
    TOKEN_GREATER_EQUAL,
    TOKEN_EQUAL,
    TOKEN_NOT_EQUAL,
    TOKEN_ELLIPSIS,
    TOKEN_UPDATE,
    TOKEN_AND,
    TOKEN_OR,
    TOKEN_NOT,
    TOKEN_IF,
    TOKEN_ELSE,
    TOKEN_TRUE,
    TOKEN_FALSE,
    TOKEN_NONE,
    TOKEN_FOREIGN /* a word of Python that is not part of the language */
} cot__token_kind;

typedef struct cot__token {
    int      kind;
    int      update;      /* the operator of a TOKEN_UPDATE: '+' of += */
    /* bytes of the text; a string with its quotes: its content is [start + 1, stop - 1) */
    uint32_t start, stop;
    double   number;
    int64_t  integer;
} cot__token;

typedef struct cot__lexer {
    const char      *text;
    size_t           length, at;
    int              brackets; /* open brackets: inside them a new line is a space */
    cot__expr_error *error;
} cot__lexer;

/* Reads the next token. False, with the error filled, where there is none. */
bool cot__lex(cot__lexer *x, cot__token *out);

#endif
