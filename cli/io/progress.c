/* progress.c: one line that is overwritten again and again. */
#include "io/progress.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "io/system.h"

progress progress_start(const char *what, int64_t total) {
    progress p = {.what = what, .total = total, .wanted = system_is_terminal(stderr)};
    if (p.wanted) p.start = p.shown = system_seconds();
    return p;
}

void progress_at(progress *p, int64_t done) {
    if (!p->wanted) return;
    double now = system_seconds();
    if (now - p->start < 1.0 || now - p->shown < 0.1) return;
    p->shown = now;
    p->visible = true;
    if (p->total > 0)
        cot__write(stderr, "\r%s: %3.0f %% of %lld, %.0f s\033[K", p->what, 100.0 * (double)done / (double)p->total,
                (long long)p->total, now - p->start);
    else
        cot__write(stderr, "\r%s: %lld evaluations, %.0f s\033[K", p->what, (long long)done, now - p->start);
}

void progress_end(progress *p) {
    if (p->visible) fprintf(stderr, "\r\033[K");
    p->visible = false;
}
