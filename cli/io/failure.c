/* failure.c: setting a failure. */
#include "io/failure.h"

#include "base/number.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool set(failure *f, int status, const char *code, const char *format, va_list arguments) {
    if (f->status != EXIT_FINE) return false;
    f->status = status;
    snprintf(f->code, sizeof f->code, "%s", code);
    cot__vformat(f->message, sizeof f->message, format, arguments);
    return false;
}

bool failure_set(failure *f, int status, const char *code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    set(f, status, code, format, arguments);
    va_end(arguments);
    return false;
}

bool failure_said(failure *f, int status, const char *code, const char *format, ...) {
    va_list arguments;
    if (f->status == EXIT_FINE) f->said = true;
    va_start(arguments, format);
    set(f, status, code, format, arguments);
    va_end(arguments);
    return false;
}

bool failure_usage(failure *f, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    set(f, EXIT_USAGE, "usage", format, arguments);
    va_end(arguments);
    return false;
}

/* Opening a stream takes memory too. If that fails, the file is not to blame. */
bool failure_file(failure *f, const char *what, const char *path, int error) {
    if (error == ENOMEM) return failure_memory(f);
    return failure_set(f, EXIT_RUN, "file", "cannot %s %s: %s", what, *path ? path : "a file with an empty name",
                       strerror(error));
}

bool failure_memory_for(failure *f, uint64_t bytes) {
    return failure_set(f, EXIT_RUN, "memory", "memory is short: %.3g GB are needed in one piece", (double)bytes / 1e9);
}

bool failure_memory(failure *f) { return failure_set(f, EXIT_RUN, "memory", "memory is short"); }
