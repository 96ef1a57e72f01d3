/* one.h: one measurement in a process of its own, as a line of JSON; and pictures of many. */
#ifndef BENCH_MEMORY_ONE_H
#define BENCH_MEMORY_ONE_H

/* memory --model NAME [--limit BYTES] [--folder FOLDER] [--seconds S] [--threads N] */
int measure_one(int argc, char **argv);
/* memory --draw TABLE FOLDER: a picture of each model, from lines "model, series, bytes, seconds"
 * with tabs between them. */
int draw_table(const char *table, const char *folder);

#endif
