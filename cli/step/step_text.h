/* step_text.h: lines of a screen: text that a terminal can be trusted with, cut to its place and
 * coloured. */
#ifndef COT_CLI_STEP_TEXT_H
#define COT_CLI_STEP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Blue goes forward and orange backward, as everywhere. */
typedef enum step_ink { INK_PLAIN, INK_BOLD, INK_FORWARD, INK_REVERSE, INK_FAINT, INK_WRONG } step_ink;

/* A line that is being written: what is left of it. */
typedef struct step_line {
    FILE *out;
    bool  colour;
    int   left;
} step_line;

/* Bytes that are no UTF-8, and control characters, become '?' (white space a blank), byte for byte:
 * offsets stay. `buf` holds at least one byte; what does not fit is left out. */
const char *step_clean(const char *text, size_t n, char *buf, size_t size);

/* The text in at most `width` columns, and never more than the line has left. */
void step_put(step_line *l, step_ink ink, int width, const char *text);
/* The same, filled up to the width and followed by a gap of two. */
void step_cell(step_line *l, step_ink ink, int width, const char *text);

/* Text in lines of at most `width` columns, broken at blanks where there are some: how many, and in
 * buf the one asked for (-1: none). */
int step_wrapped(const char *text, int width, int line, char *buf, size_t size);

#endif
