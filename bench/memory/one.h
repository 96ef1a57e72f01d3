/* one.h: one measurement in a process of its own, as a line of JSON; and pictures of many. */
#ifndef BENCH_MEMORY_ONE_H
#define BENCH_MEMORY_ONE_H

#include "memory/models.h"

/* memory --model NAME [--as program] [--limit BYTES] [--folder FOLDER] [--seconds S]
 * [--threads N] */
int measure_one(int argc, char **argv);
/* The same as a program: its status. */
enum { UNREACHED = 3 }; /* no run keeps to the limit */
int measure_program(const model *of, const cot_options *o, double seconds);
/* memory --draw TABLE FOLDER: a picture of each model, from lines "model, series, bytes, seconds"
 * with tabs between them. */
int draw_table(const char *table, const char *folder);

#endif
