/* step_text.h: lines of a screen: text that is safe for a terminal, cut to its place and
 * coloured. */
#ifndef COT_CLI_STEP_TEXT_H
#define COT_CLI_STEP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Blue is forward, orange backward, and tangents are green, as everywhere. */
typedef enum step_ink { INK_PLAIN, INK_BOLD, INK_FORWARD, INK_REVERSE, INK_FAINT, INK_WRONG, INK_TANGENT } step_ink;

/* A line that is being written, and the columns that are left. */
typedef struct step_line {
    FILE *out;
    bool  colour;
    int   left;
} step_line;

/* Replaces bytes that are not UTF-8, and control characters, by '?' (white space by a blank), byte
 * for byte, so offsets stay the same. `buf` holds at least one byte; text that does not fit is left
 * out. */
const char *step_clean(const char *text, size_t n, char *buf, size_t size);

/* Writes the text in at most `width` columns, and never more than the line has left. */
void step_put(step_line *l, step_ink ink, int width, const char *text);
/* The same, filled up to the width, with a gap of two columns behind it. */
void step_cell(step_line *l, step_ink ink, int width, const char *text);

/* Breaks text into lines of at most `width` columns, at blanks if possible. Returns the number of
 * lines, and writes line `line` to buf (-1: none). */
int step_wrapped(const char *text, int width, int line, char *buf, size_t size);

#endif
