/* expression.c: turns errors of the expression language, or of a tape, into failures. */
#include "problem/expression.h"

#include <stdio.h>
#include <string.h>

bool sentence_failure(const char *why, const char *code, failure *f) {
    /* "[zeros] out of memory: 8000 bytes for …" */
    const char *size = strstr(why, "out of memory: ");
    if (size)
        return failure_said(f, EXIT_RUN, "memory", "%.*smemory is short: %s", (int)(size - why), why,
                            size + strlen("out of memory: "));
    return failure_said(f, EXIT_RUN, code, "%s", why);
}

/* The code of a status: its name in small letters. */
static bool status_failure(cot_status status, const char *message, failure *f) {
    char code[16];
    if (status == COT_MEMORY && !strstr(message, "out of memory: ")) return failure_memory(f);
    snprintf(code, sizeof code, "%s", cot_status_name(status));
    for (char *p = code; *p; p++)
        /* tolower would depend on the locale */
        if (*p >= 'A' && *p <= 'Z') *p = (char)(*p - 'A' + 'a');
    return status == COT_MEMORY ? sentence_failure(message, code, f) : failure_said(f, EXIT_RUN, code, "%s", message);
}

bool tape_failure(const cot_tape *t, failure *f) { return status_failure(cot_tape_status(t), cot_tape_message(t), f); }

bool expression_failure(const cot__expr_error *error, const char *text, size_t length, failure *f) {
    if (error->status == COT_OK) failure_set(f, EXIT_USAGE, "expression", "%s", error->message);
    else status_failure(error->status, error->message, f);
    f->line   = error->line;
    f->column = error->column;
    if (error->column > 0) cot__expr_show(error, text, length, f->caret, sizeof f->caret);
    /* an empty line has no place to point at */
    if (f->caret[strspn(f->caret, " \t")] == '\n') f->caret[0] = 0;
    return false;
}
