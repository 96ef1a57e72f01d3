/* text.c: writes pieces of text to a file or a buffer. */
#include "base/text.h"

#include "base/number.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

cot__text cot__text_file(FILE *file) { return (cot__text){.file = file}; }

cot__text cot__text_buffer(char *out, size_t size) {
    if (out && size) out[0] = 0;
    return (cot__text){.out = out, .size = out ? size : 0};
}

static int is_inside_character(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

static void append(cot__text *x, const char *s, size_t n) {
    if (x->used + 1 >= x->size) return;
    size_t room = x->size - x->used - 1;
    if (n > room) {
        for (n = room; n > 0 && is_inside_character(s[n]);) n--;
        /* nothing may follow the gap */
        x->size = x->used + n + 1;
    }
    memcpy(x->out + x->used, s, n);
    x->used += n;
    x->out[x->used] = 0;
}

void cot__put(cot__text *x, const char *s) {
    for (const char *p = s; *p; p++) {
        if (*p == '\n')
            x->column = 0;
        else if (!is_inside_character(*p))
            x->column++;
    }
    if (x->file)
        fputs(s, x->file);
    else
        append(x, s, strlen(s));
}

void cot__putf(cot__text *x, const char *format, ...) {
    char    piece[512];
    va_list args;
    va_start(args, format);
    cot__vformat(piece, sizeof piece, format, args);
    va_end(args);
    cot__put(x, piece);
}

void cot__tab(cot__text *x, int column) {
    int n = x->column + 2 > column ? 2 : column - x->column;
    cot__putf(x, "%*s", n, "");
}

void cot__put_number(cot__text *x, double v) { cot__putf(x, "%g", v); }

bool cot__matches(const char *pattern, const char *text) {
    const char *star = NULL, *after = NULL; /* the last *, and what it is tried to end before */
    while (*text) {
        if (*pattern == '*')
            star = pattern++, after = text;
        else if (*pattern == '?' || *pattern == *text)
            pattern++, text++;
        else if (star)
            pattern = star + 1, text = ++after;
        else
            return false;
    }
    while (*pattern == '*') pattern++;
    return !*pattern;
}
