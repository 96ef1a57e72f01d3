/* screen.h: a small terminal for tests. It takes the output of a program and computes the contents
 * of the screen. A sequence that it does not know, or a character beyond the right edge, is noted
 * as a fault. */
#ifndef COT_SCREEN_H
#define COT_SCREEN_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/trace.h"

enum { SCREEN_ROWS = 60, SCREEN_COLUMNS = 200, SCREEN_CELL = 16 };

typedef struct screen {
    /* the cursor, from 0; column == columns: behind the last one */
    int  rows, columns, row, column;
    char cell[SCREEN_ROWS][SCREEN_COLUMNS][SCREEN_CELL];
    bool alternate, cursor, wraps, coloured;
    char pending[64]; /* the beginning of a sequence or a character */
    int  used;
    char fault[128];
} screen;

static inline void screen_clear(screen *s) {
    for (int r = 0; r < SCREEN_ROWS; r++)
        for (int c = 0; c < SCREEN_COLUMNS; c++) strcpy(s->cell[r][c], " ");
}

static inline void screen_start(screen *s, int rows, int columns) {
    *s = (screen){.rows = rows, .columns = columns, .cursor = true, .wraps = true};
    screen_clear(s);
}

static inline void screen_fault(screen *s, const char *what, const char *which) {
    if (!s->fault[0]) snprintf(s->fault, sizeof s->fault, "%s: '%.60s'", what, which);
}

static inline void screen_private(screen *s, int number, bool on) {
    if (number == 1049) s->alternate = on;
    else if (number == 25) s->cursor = on;
    else if (number == 7) s->wraps = on;
    else screen_fault(s, "unknown mode", s->pending);
}

/* ESC [ … letter, whole in pending. */
static inline void screen_sequence(screen *s, char letter) {
    int a = 1, b = 1;
    switch (letter) {
    case 'H':
        sscanf(s->pending + 2, "%d;%d", &a, &b);
        if (a < 1 || a > s->rows || b < 1 || b > s->columns) screen_fault(s, "cursor outside", s->pending + 1);
        s->row = a - 1;
        s->column = b - 1;
        break;
    case 'K':
        if (s->column == s->columns) s->column--; /* as real terminals do */
        for (int c = s->column; c < s->columns; c++) strcpy(s->cell[s->row][c], " ");
        break;
    case 'J': screen_clear(s); break;
    case 'm':
        if (s->pending[2] == '3') s->coloured = true;
        break;
    case 'h':
    case 'l':
        if (s->pending[2] == '?') screen_private(s, atoi(s->pending + 3), letter == 'h');
        else screen_fault(s, "unknown sequence", s->pending + 1);
        break;
    default: screen_fault(s, "unknown sequence", s->pending + 1);
    }
}

static inline void screen_character(screen *s, const char *utf8) {
    int width = cot__columns(utf8);
    if (width == 0) { /* it joins the character before it */
        if (s->column == 0) screen_fault(s, "a mark without a character", utf8);
        else {
            char  *cell = s->cell[s->row][s->column - 1];
            size_t used = strlen(cell);
            snprintf(cell + used, SCREEN_CELL - used, "%.4s", utf8);
        }
        return;
    }
    if (s->row >= s->rows || s->column + width > s->columns) {
        screen_fault(s, "beyond the edge", utf8);
        return;
    }
    snprintf(s->cell[s->row][s->column], SCREEN_CELL, "%.4s", utf8);
    for (int k = 1; k < width; k++) s->cell[s->row][s->column + k][0] = 0;
    s->column += width;
}

static inline void screen_feed(screen *s, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        /* a shell would print this */
        if (!s->alternate && s->used == 0 && c != 27) continue;
        s->pending[s->used++] = (char)c;
        s->pending[s->used] = 0;
        if (s->used > 60) {
            screen_fault(s, "a sequence without end", s->pending + 1);
            s->used = 0;
        } else if (s->pending[0] == 27) {
            if (s->used < 3 || (c >= 0x20 && c < 0x40)) continue;
            screen_sequence(s, (char)c);
            s->used = 0;
        } else {
            unsigned char first = (unsigned char)s->pending[0];
            int           length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
            if (s->used < length) continue;
            s->used = 0;
            if (first < 0x20 || first == 0x7f) screen_fault(s, "a control character", "");
            else screen_character(s, s->pending);
        }
    }
}

/* A row from 1 on, without the blanks at its end. */
static inline const char *screen_line(const screen *s, int row, char *buf, size_t size) {
    size_t used = 0;
    for (int c = 0; c < s->columns; c++) used += (size_t)snprintf(buf + used, size - used, "%s", s->cell[row - 1][c]);
    while (used > 0 && buf[used - 1] == ' ') buf[--used] = 0;
    return buf;
}

#endif
