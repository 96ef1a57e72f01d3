/* revolve.c: the arithmetic of binomial checkpointing. Exported files hold this text too
 * (emit/text/states.inc), so it is plain C99. */
#include "program/memory/revolve.h"

int64_t cot__binomial(int64_t s, int64_t r) {
    if (r < 0 || s < 0) return 0;
    int64_t low = s < r ? s : r, all = s + r, c = 1;
    for (int64_t k = 1; k <= low; k++) {
        if (c > INT64_MAX / (all - low + k)) return INT64_MAX;
        c = c * (all - low + k) / k;
    }
    return c;
}

/* The least r with C(s + r, s) >= steps. */
static int64_t repetitions(int64_t steps, int64_t s) {
    int64_t r = 0;
    while (cot__binomial(s, r) < steps) r++;
    return r;
}

/* Any m with C(s, r-2) <= m <= C(s, r-1) and C(s-1, r-1) <= steps - m <= C(s-1, r) is optimal, in
 * the notation C(s, r) = C(s + r, s): the first part is then reversed with r - 1 repetitions, the
 * rest with one state less and r. The shortest such m is taken. */
int64_t cot__revolve_split(int64_t steps, int64_t s) {
    if (s <= 1) return steps - 1;
    int64_t r = repetitions(steps, s), low = cot__binomial(s, r - 2), rest = cot__binomial(s - 1, r);
    if (rest < steps && steps - rest > low) low = steps - rest;
    return low < 1 ? 1 : low > steps - 1 ? steps - 1 : low;
}
