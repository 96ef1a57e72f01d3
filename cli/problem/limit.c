/* limit.c: bytes as people write them. */
#include "problem/limit.h"

#include "base/number.h"

bool read_limit(const char *text, double *limit, failure *f) {
    *limit = text ? cot__read_bytes(text) : 0;
    return !text || *limit > 0 ||
           failure_usage(f,
                         "--limit is \"%.40s\"; it is a number of bytes, or with B, KiB, MiB, GiB or TiB behind it",
                         text);
}
