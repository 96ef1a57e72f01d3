/* lines.h: texts as a terminal shows them: how wide they are, cut, broken into lines; grid.h has
 * tables.
 *
 * May call: libc, base. Must not touch: tapes, traces, what the texts say. */
#ifndef COT_LINES_H
#define COT_LINES_H

#include <stddef.h>
#include <stdio.h>

/* The number of columns of a text in a terminal: 0 for combining marks, 2 for wide characters. */
int cot__columns(const char *utf8);
/* The text, cut to at most `width` columns. A cut text ends in "…". */
const char *cot__fit(const char *utf8, int width, char *buf, size_t size);

/* How many bytes of the text stand in a line of so many columns: up to a blank where there is one,
 * or a newline. */
size_t cot__line(const char *text, int width);
/* The text in lines of at most `width` columns. A newline in it begins a line; lines that only go
 * on are indented by so many columns. */
void cot__paragraph(FILE *out, int width, int indent, const char *text);

#endif
