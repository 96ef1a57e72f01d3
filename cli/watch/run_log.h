/* run_log.h: writes the file of JSON lines that run_file.h reads. */
#ifndef COT_CLI_RUN_LOG_H
#define COT_CLI_RUN_LOG_H

#include "io/append.h"
#include "watch/watch.h"

typedef struct run_log {
    append_file file;
    double      before; /* seconds of the run until it was resumed */
} run_log;

/* Begins a file, or goes on with one (o->resumed > 0). */
bool run_log_open(run_log *l, const watch_options *o, failure *f);
/* One row: n numbers, or a note. `seconds` are since the file was opened. False where the first
 * record is missed. */
bool run_log_row(run_log *l, int64_t step, double seconds, int n, const watch_number *numbers, const char *note);
void run_log_close(run_log *l);

#endif
