/* limit.c: bytes as people write them. */
#include "problem/limit.h"

#include <string.h>

#include "base/number.h"

bool read_limit(const char *text, double *limit, failure *f) {
    *limit = text ? cot__read_bytes(text) : 0;
    return !text || *limit > 0 ||
           failure_usage(f,
                         "--limit is \"%.40s\"; it is a number of bytes, 1 or more, or with B, KiB, MiB, GiB or TiB "
                         "behind it",
                         text);
}

/* "30 %": the number, or -1. */
static double percents(const char *text) {
    char  *end;
    double v = cot__read_number(text, &end);
    while (*end == ' ') end++;
    return end != text && strcmp(end, "%") == 0 && v > 0 && v <= 100 ? v : -1;
}

bool read_memory(const char *text, memory_wish *wish, failure *f) {
    *wish = (memory_wish){0};
    if (!text) return true;
    double bytes = cot__read_bytes(text), part = percents(text);
    if (bytes >= 1 && bytes < 0x1p63) return wish->bytes = (int64_t)bytes, true;
    if (part > 0) return wish->part = part / 100, true;
    return failure_usage(f,
                         "--memory is \"%.40s\"; it is a number of bytes, 1 or more, or with B, KiB, MiB, GiB or TiB "
                         "behind it, or with %% and at most 100",
                         text);
}
