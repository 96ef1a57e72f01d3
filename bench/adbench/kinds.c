/* Names of the problems, and the one way to report a failure. */
#include "problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[AB_KINDS] = {"gmm", "ba", "bafull", "lstm", "hand", "hand_complicated"};

const char *ab_kind_name(enum ab_kind kind) { return names[kind]; }

bool ab_kind_parse(const char *name, enum ab_kind *kind) {
    for (int i = 0; i < AB_KINDS; i++)
        if (strcmp(name, names[i]) == 0) {
            *kind = (enum ab_kind)i;
            return true;
        }
    return false;
}

bool ab_fail(struct ab_error *error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return false;
}
