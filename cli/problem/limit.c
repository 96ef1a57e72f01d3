/* limit.c: bytes as people write them. */
#include "problem/limit.h"

#include <math.h>
#include <string.h>

#include "base/number.h"

bool read_limit(const char *text, double *limit, failure *f) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    char                    *end;
    double                   v = text ? cot__read_number(text, &end) : 0;
    *limit = 0;
    if (!text) return true;
    while (*end == ' ') end++;
    for (int k = 0; k < 5 && end != text && v > 0; k++)
        if (strcmp(end, units[k]) == 0) return *limit = ldexp(v, 10 * k), true;
    return failure_usage(f, "--limit is \"%.40s\"; it is a number of bytes, or with KiB, MiB, GiB or TiB behind it",
                         text);
}
