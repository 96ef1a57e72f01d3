/* limit.c: bytes as people write them. */
#include "problem/limit.h"

#include <math.h>
#include <string.h>

#include "base/number.h"

/* A number above 0 and what stands behind it. */
static bool number_and_unit(const char *text, double *number, const char **unit) {
    char *end;
    *number = cot__read_number(text, &end);
    if (end == text || !(*number > 0)) return false;
    while (*end == ' ') end++;
    *unit = end;
    return true;
}

static bool read_bytes(const char *text, double *bytes) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    const char              *unit;
    double                   v;
    if (!number_and_unit(text, &v, &unit)) return false;
    for (int k = 0; k < 5; k++)
        if (strcmp(unit, units[k]) == 0) return *bytes = ldexp(v, 10 * k), true;
    return false;
}

bool read_limit(const char *text, double *limit, failure *f) {
    *limit = 0;
    if (!text || read_bytes(text, limit)) return true;
    return failure_usage(f, "--limit is \"%.40s\"; it is a number of bytes, or with KiB, MiB, GiB or TiB behind it",
                         text);
}

bool read_memory(const char *text, memory_wish *wish, failure *f) {
    const char *unit;
    double      v;
    *wish = (memory_wish){0};
    if (!text) return true;
    if (read_bytes(text, &v) && v >= 1 && v < 0x1p63) return wish->bytes = (int64_t)v, true;
    if (number_and_unit(text, &v, &unit) && strcmp(unit, "%") == 0 && v <= 100) return wish->part = v / 100, true;
    return failure_usage(f,
                         "--memory is \"%.40s\"; it is a number of bytes, or with KiB, MiB, GiB or TiB behind it, or "
                         "with %% and at most 100",
                         text);
}
