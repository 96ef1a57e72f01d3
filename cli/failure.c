/* failure.c: setting a failure. */
#include "failure.h"

#include <stdarg.h>
#include <stdio.h>

bool failure_set(failure *f, int status, const char *code, const char *format, ...) {
    if (f->status != EXIT_FINE) return false;
    f->status = status;
    snprintf(f->code, sizeof f->code, "%s", code);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->message, sizeof f->message, format, arguments);
    va_end(arguments);
    return false;
}

bool failure_memory(failure *f) { return failure_set(f, EXIT_RUN, "memory", "memory is short"); }
