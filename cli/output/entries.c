/* entries.c: see entries.h. */
#include "output/entries.h"

#include "base/number.h"

/* WHOLE: the most entries that are all shown. EDGE: entries shown at each end of a longer list. */
enum { WHOLE = 1000, EDGE = 3 };

static int digits(int64_t n) {
    int count = 1;
    for (; n > 9; n /= 10) count++;
    return count;
}

void entries_head(const entries *e, look how, const char *name) {
    fprintf(e->out, "%s%s%s: %lld × %lld, %lld %s\n", how.colour ? "\033[1;36m" : "", name,
            how.colour ? "\033[0m" : "", (long long)e->rows, (long long)e->columns, (long long)e->count,
            e->count == 1 ? "entry (row, column, value)" : "entries (row, column, value)");
}

void entries_put(entries *e, int64_t row, int64_t column, double value) {
    char    buf[32];
    int64_t k      = e->at++;
    bool    hidden = e->count > WHOLE && k >= EDGE && k < e->count - EDGE;
    if (hidden && k == EDGE) fputs("  …\n", e->out);
    if (hidden) return;
    fprintf(e->out, "  %*lld %*lld  %s\n", digits(e->rows - 1), (long long)row, digits(e->columns - 1),
            (long long)column,
            e->dtype == COT_F64 ? cot__shortest(value, buf) : cot__shortest_float((float)value, buf));
}
