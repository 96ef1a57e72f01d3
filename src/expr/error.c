/* error.c: finds and shows the place of an error in a text. */
#include "expr/program.h"

#include "base/number.h"
#include "base/text.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The bytes that take one column: a character, or a byte that belongs to none. */
static size_t one_column(const char *s, size_t left) {
    size_t n = cot__utf8(s, left);
    return n ? n : 1;
}

/* Computes line, column and length, in characters, from bytes. A place that spans lines ends with
 * its first line. */
static void locate(cot__expr_error *error, const char *text, size_t length, size_t start, size_t stop) {
    if (start > length) start = length;
    if (stop > length) stop = length;
    error->line = 1;
    error->column = 1;
    error->length = 0;
    for (size_t i = 0; i < start; i += one_column(text + i, length - i)) {
        error->column++;
        if (text[i] == '\n') {
            error->line++;
            error->column = 1;
        }
    }
    for (size_t i = start; i < stop && text[i] != '\n'; i += one_column(text + i, length - i)) error->length++;
    if (error->length < 1) error->length = 1;
}

/* Makes a message valid UTF-8, whatever the text was and wherever a piece of it was cut off. */
static void finish(char *message) {
    for (size_t left = strlen(message), n; left > 0; message += n, left -= n) {
        n = cot__utf8(message, left);
        if (n == 0) {
            *message = '?';
            n = 1;
        }
    }
}

static bool fail_v(cot__expr_error *error, const char *text, size_t length, size_t start, size_t stop,
                   const char *format, va_list args) {
    cot__expr_error filled = {.status = COT_OK};
    if (!error) return false;
    locate(&filled, text, length, start, stop);
    cot__vformat(filled.message, sizeof filled.message, format, args);
    finish(filled.message);
    *error = filled;
    return false;
}

bool cot__expr_fail(cot__expr_error *error, const char *text, size_t length, size_t start, size_t stop,
                    const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail_v(error, text, length, start, stop, format, args);
    va_end(args);
    return false;
}

bool cot__expr_short_of_memory(cot__expr_error *error) {
    if (error) *error = (cot__expr_error){.status = COT_MEMORY, .message = "memory is short"};
    return false;
}

bool cot__evaluation_fail_at(cot__evaluation *r, size_t start, size_t stop, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail_v(r->error, r->e->text, r->e->length, start, stop, format, args);
    va_end(args);
    return false;
}

bool cot__evaluation_fail(cot__evaluation *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail_v(r->error, r->e->text, r->e->length, r->step->at, r->step->at_stop, format, args);
    va_end(args);
    return false;
}

/* Advice of the library that names what expressions have not, and theirs in its place. */
static const struct { const char *in_c, *here; } advice[] = {
    {"use cot_key_at with an integer input", "make the random numbers an input, such as 'r=uniform(1, [3])'"}};

/* The library's messages have the C names of functions. Here cot_mul is called mul. */
static void speak_as_here(const char *message, char *out, size_t size) {
    cot__text x = cot__text_buffer(out, size);
    for (const char *p = message; *p;) {
        size_t n = 0;
        for (int k = 0; k < COUNTOF(advice); k++)
            if (strncmp(p, advice[k].in_c, strlen(advice[k].in_c)) == 0)
                cot__put(&x, advice[k].here), p += strlen(advice[k].in_c);
        if (!*p) break;
        if (strncmp(p, "cot_", 4) == 0 && (p == message || p[-1] == ' ' || p[-1] == '('))
            while ((p[4 + n] >= 'a' && p[4 + n] <= 'z') || (p[4 + n] >= '0' && p[4 + n] <= '9') || p[4 + n] == '_') n++;
        if (n && cot__find_callee(p + 4, n)) p += 4;
        char one[2] = {*p++, 0};
        cot__put(&x, one);
    }
}

bool cot__evaluation_tape_failed(cot__evaluation *r) {
    if (r->error) {
        cot_status status = cot_tape_status(r->t);
        char       message[sizeof r->error->message];
        speak_as_here(status == COT_OK ? "there is no value here, and the tape knows no reason"
                                       : cot_tape_message(r->t),
                      message, sizeof message);
        cot__evaluation_fail(r, "%s", message);
        r->error->status = status == COT_OK ? COT_VAR : status;
    }
    return false;
}

/* Shows the line of the text, cut around the column if it is long, and the caret below. */
void cot__expr_show(const cot__expr_error *error, const char *text, size_t length, char *out, size_t size) {
    enum { WIDTH = 100, BEFORE = 60 };
    cot__text x = cot__text_buffer(out, size);
    if (!error || error->column < 1) return;
    size_t start = 0;
    for (int line = 1; line < error->line && start < length; start++) line += text[start] == '\n';
    int skip = error->column > BEFORE + 20 ? error->column - BEFORE : 0, column = 0;
    if (skip) cot__put(&x, "…");
    for (size_t i = start, n; i < length && text[i] != '\n'; i += n) {
        char one[5] = "?";
        n = one_column(text + i, length - i);
        if (cot__utf8(text + i, length - i)) memcpy(one, text + i, n);
        /* Control characters and tabs would shift the caret, so they are shown as spaces. */
        if (one[0] != '?' && !cot__utf8_shown(one, n)) strcpy(one, " ");
        if (++column <= skip) continue;
        if (column > skip + WIDTH) {
            cot__put(&x, "…");
            break;
        }
        cot__put(&x, one);
    }
    cot__put(&x, "\n");
    if (skip) cot__put(&x, " ");
    for (int i = skip + 1; i < error->column; i++) cot__put(&x, " ");
    cot__put(&x, "^");
    for (int i = 1; i < error->length && error->column + i <= skip + WIDTH; i++) cot__put(&x, "~");
    cot__put(&x, "\n");
}
