/* trouble.c: see trouble.h. */
#include "data/file/trouble.h"

#include "base/number.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void set(cot__trouble *t, cot_status status, const char *format, va_list arguments) {
    if (t->status != COT_OK) return;
    t->status = status;
    cot__vformat(t->message, sizeof t->message, format, arguments);
}

bool cot__trouble_set(cot__trouble *t, cot_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    set(t, status, format, arguments);
    va_end(arguments);
    return false;
}

bool cot__trouble_file(cot__trouble *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    set(t, COT_VALUE, format, arguments);
    va_end(arguments);
    return false;
}

/* Opening a stream takes memory too. If that fails, the file is not to blame. */
bool cot__trouble_errno(cot__trouble *t, const char *what, const char *path, int error) {
    if (error == ENOMEM) return cot__trouble_memory(t);
    if (error == EISDIR) return cot__trouble_file(t, "cannot %s %s: it is a directory", what, path);
    return cot__trouble_file(t, "cannot %s %s: %s", what, *path ? path : "a file with an empty name", strerror(error));
}

bool cot__trouble_memory(cot__trouble *t) { return cot__trouble_set(t, COT_MEMORY, "memory is short"); }

bool cot__trouble_memory_for(cot__trouble *t, uint64_t bytes) {
    if (bytes < 1000000) return cot__trouble_memory(t);
    return cot__trouble_set(t, COT_MEMORY, "memory is short: %.3g GB are needed in one piece", (double)bytes / 1e9);
}

cot_status cot__trouble_tell(const cot__trouble *t, const char *op, char *why, size_t room) {
    if (why && room) {
        if (!t->message[0])
            why[0] = 0;
        else
            cot__format(why, room, "[%s] %s", op, t->message);
    }
    return t->status;
}
