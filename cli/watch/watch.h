/* watch.h: what a person sees of a run that is trained: a line of progress, a file of JSON lines,
 * and event files for TensorBoard.
 *
 *     watch *w = watch_open(&(watch_options){.name = "mnist", .steps = 1000, .log = "run.jsonl"},
 *                           f);
 *     system_stop_gently();
 *     for (int64_t step = 1; w && step <= 1000 && !system_stop_asked(); step++) {
 *         … one step …
 *         watch_step(w, step, loss, 1, &(watch_number){"rate", rate});
 *         if (step % 100 == 0) {
 *             watch_row(w, step, 1, &(watch_number){"test/accuracy", accuracy});
 *             … save a checkpoint …
 *         }
 *     }
 *     watch_close(w);
 *
 * Nothing that goes wrong with a file later ends a run: it is said once, and again at the end.
 *
 * May call: the public library, io, JSON. Must not touch: expressions, models. */
#ifndef COT_CLI_WATCH_H
#define COT_CLI_WATCH_H

#include <stdint.h>

#include "io/failure.h"

typedef struct watch watch;

typedef struct watch_options {
    const char *name;        /* of the run */
    int64_t     steps;       /* how many there will be; 0: unknown */
    int64_t     resumed;     /* steps that were done before, by the checkpoint; 0: none */
    double      examples;    /* of a step; 0: not shown */
    const char *unit;        /* what they are called: "tokens"; NULL: "examples" */
    double      flops;       /* floating-point operations of a step; 0: speed is not shown */
    const char *log;         /* the file of JSON lines; NULL: none; "-": the standard output */
    const char *tensorboard; /* the folder of event files, made if it is missing; NULL: none */
    bool        quiet;       /* no progress on stderr */
} watch_options;

typedef struct watch_number {
    const char *name;
    double      value;
} watch_number;

/* Opens all files. A run that goes on (`resumed`) keeps the rows up to that step and cuts off the
 * later ones: after it, the file is that of a run without interruption, but for times. So write a
 * step's rows before its checkpoint. NULL, with f, if a file cannot be opened or is no log. */
watch *watch_open(const watch_options *o, failure *f);
/* A step has ended: steps count from 1. The loss and up to 62 more numbers, under their names. */
void watch_step(watch *w, int64_t step, double loss, int n, const watch_number *more);
/* An evaluation after a step, also as a line for people. */
void watch_row(watch *w, int64_t step, int n, const watch_number *numbers);
/* A remark, for people and in the file of JSON lines. */
void watch_note(watch *w, int64_t step, const char *text);
/* A line for people only: where the run was saved, how it is resumed. Also when quiet. */
void watch_say(watch *w, const char *text);
/* Leaves the last line of progress, and says what is missing in which file. NULL is fine. */
void watch_close(watch *w);

#endif
