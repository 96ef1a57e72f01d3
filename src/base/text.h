/* text.h: writes text piece by piece, to a file or into a caller's buffer, with the same calls.
 *
 * A buffer is always terminated. Text that does not fit is left out, never in the middle of a UTF-8
 * character. */
#ifndef COT_TEXT_H
#define COT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct cot__text {
    FILE  *file; /* NULL: the buffer is used */
    char  *out;
    size_t size, used;
    int    column; /* characters since the last newline */
} cot__text;

cot__text cot__text_file(FILE *file);
cot__text cot__text_buffer(char *out, size_t size);

void cot__put(cot__text *x, const char *s);
/* Formatted pieces of at most 511 bytes; longer texts go through cot__put. */
void cot__putf(cot__text *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Spaces up to a column, at least two. */
void cot__tab(cot__text *x, int column);
/* A number as people write it: up to six digits, inf, -inf, nan (never -nan). */
void cot__put_number(cot__text *x, double v);

/* Does the text match? * stands for any letters, ? for one. */
bool cot__matches(const char *pattern, const char *text);

#endif
