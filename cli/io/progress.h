/* progress.h: shows the progress of a long computation on stderr, if it is a terminal, and only
 * after a second. */
#ifndef COT_CLI_PROGRESS_H
#define COT_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    const char *what;
    int64_t     total; /* steps in all; 0: unknown, the number of steps so far is shown */
    double      start, shown;
    bool        wanted, visible;
} progress;

progress progress_start(const char *what, int64_t total);
void     progress_at(progress *p, int64_t done);
void     progress_end(progress *p); /* clears the line */

#endif
